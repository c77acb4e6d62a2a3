"""``magazin status`` and ``retry``."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from cli.moments import age, moment
from cli.options import Misused, say, with_settings
from cli.settings import Settings
from cli.wiring import Magazin
from ingest.fetch.outcome import Outcome
from ingest.fetch.url import mask
from ingest.records import Original
from ingest.retry import Wanted
from ingest.status import Holdings, HostQueue

SHOWN = 20  # hosts, for people


@click.command()
@click.option("--queue", "queue_only", is_flag=True, help="Only the queue; don't walk all originals.")
@click.option("--failures", "with_failures", is_flag=True, help="Also each failed original with its URL and reason.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_settings
def status(settings: Settings, queue_only: bool, with_failures: bool, as_json: bool) -> None:
    """Show what is in the queue by host, how old the oldest entry is, what failed and why.

    \b
    Examples:
      magazin status
      magazin status --queue --json
      magazin status --failures
    """
    magazin = Magazin(settings)
    overview, now = magazin.overview, magazin.clock()
    queues = overview.queues()
    holdings = None if queue_only else overview.holdings()
    failures = overview.failures() if with_failures else iter(())
    if as_json:
        document = {"queue": _queue(queues), **({} if holdings is None else _holdings(holdings))}
        if with_failures:
            document["failed"] = [_failure(original) for original in failures]
        say(json.dumps(document, ensure_ascii=False))
    else:
        _print_queues(queues, now)
        if holdings is not None:
            _print_holdings(holdings)
        for original in failures:
            say(f"{original.status} {original.outcome} {mask(original.url)}: {original.reason}")
    magazin.close()


@click.command()
@click.option("--context", help="Originals of this context's references.")
@click.option("--host", help="Originals of this source host (with :port unless the default).")
@click.option(
    "--outcome",
    type=click.Choice([one.value for one in Outcome], case_sensitive=False),
    help="Originals that ended so.",
)
@click.option("--damaged", is_flag=True, help="Originals in store whose bytes are damaged; reads and verifies them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_settings
def retry(
    settings: Settings, context: str | None, host: str | None, outcome: str | None, damaged: bool, as_json: bool
) -> None:
    """Queue again, for now, what failed or waits for a later try, or is damaged. Several options: all must fit.

    \b
    Examples:
      magazin retry --context exhibition-2019
      magazin retry --host images.example.org --outcome TIMEOUT
      magazin retry --damaged
    """
    if context is None and host is None and outcome is None and not damaged:
        raise Misused("name what to try again: --context, --host, --outcome or --damaged")
    magazin = Magazin(settings)
    done = magazin.retry.run(Wanted(context, host.lower() if host else None, outcome, damaged))
    magazin.close()
    if as_json:
        say(json.dumps(dataclasses.asdict(done)))
        return
    say(f"queued again: {done.queued}")
    if done.local:
        say(f"damaged local files: {done.local}; `magazin status --failures` names them: ingest them again")


def _queue(queues: list[HostQueue]) -> dict[str, Any]:
    oldest = [queue.oldest for queue in queues if queue.oldest is not None]
    return {
        "total": sum(queue.total for queue in queues),
        "oldest": moment(min(oldest)) if oldest else None,
        "hosts": [
            {**dataclasses.asdict(queue), "oldest": moment(queue.oldest) if queue.oldest is not None else None}
            for queue in queues
        ],
    }


def _holdings(holdings: Holdings) -> dict[str, Any]:
    return {
        "originals": dict(holdings.statuses),
        "bytes": holdings.bytes,
        "failures": {"outcomes": dict(holdings.outcomes), "hosts": dict(holdings.hosts)},
    }


def _failure(original: Original) -> dict[str, Any]:
    names = ("original_id", "status", "outcome", "reason", "http_status", "failures")
    return {
        "url": mask(original.url),
        **{name: getattr(original, name) for name in names},
        "last_failure": moment(original.last_failure) if original.last_failure else None,
    }


def _print_queues(queues: list[HostQueue], now: int) -> None:
    say(f"queue: {sum(queue.total for queue in queues)} at {len(queues)} hosts")
    for queue in queues[:SHOWN]:
        late = f", oldest {age(now - queue.oldest)}" if queue.oldest is not None and queue.oldest <= now else ""
        say(
            f"  {queue.host}: {queue.due} due, {queue.running} running, {queue.later} later, "
            f"{queue.failing} failed before{late}"
        )
    if len(queues) > SHOWN:
        say(f"  … and {len(queues) - SHOWN} more")


def _print_holdings(holdings: Holdings) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in sorted(holdings.statuses.items())) or "none"
    say(f"originals: {counts}; {holdings.bytes} bytes")
    if holdings.outcomes:
        say("failures: " + ", ".join(f"{count} {outcome}" for outcome, count in holdings.outcomes.most_common()))
        say("  most at: " + ", ".join(f"{host} ({count})" for host, count in holdings.hosts.most_common(5)))
