"""``magazin sign``."""

from __future__ import annotations

import click

from app.grants import SECOND, signed
from cli import kinds
from cli.options import Failed, Misused, say, with_settings
from cli.settings import Settings
from storage.ids import system_clock


@click.command()
@click.argument("reference_id")
@click.option("--for", "span", default="7d", help="How long it opens the image. [default: 7d]")
@with_settings
def sign(settings: Settings, reference_id: str, span: str) -> None:
    """Print the path of an image's info.json that opens it whole, past public_width and without a watermark.

    What follows /iiif/3/ up to the next slash is the identifier; it works in every address of the image.

    \b
    Examples:
      magazin sign 6f2c1f7e-2f0a-5d0e-9c53-0d4d0b6f8f3a
      magazin sign 6f2c1f7e-2f0a-5d0e-9c53-0d4d0b6f8f3a --for 12h
    """
    if not settings.access.signing_key:
        raise Failed("[access] signing_key is not set")
    try:
        seconds = kinds.SPAN_OF_TIME.read(span)
    except (ValueError, TypeError, KeyError):
        raise Misused(f"--for wants {kinds.SPAN_OF_TIME.wanted}, not {span!r}") from None
    until = system_clock() // SECOND + round(seconds)
    say(f"/iiif/3/{signed(settings.access.signing_key, reference_id, until).text}/info.json")
