"""Storage plugins by name, found by entry point in the group ``magazin.storage``.

An entry point names a function ``open_store(options)``: ``options`` maps the plugin's own settings; ``data`` in it is
the data folder. A third party's plugin is a package with such an entry point and a subclass of the contract suite.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, cast

from storage.interface import Store

GROUP = "magazin.storage"


def names() -> list[str]:
    return sorted({point.name for point in entry_points(group=GROUP)})


def open_store(name: str, options: Mapping[str, Any]) -> Store:
    """Open the plugin's store. Raises LookupError for an unknown name, ImportError when its library is missing."""
    for point in entry_points(group=GROUP, name=name):
        return cast(Store, point.load()(options))
    raise LookupError(f"no storage plugin {name!r}; there are: {', '.join(names())}")
