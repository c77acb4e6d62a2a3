"""``magazin demo``: what ``make serve`` runs. A server with sample pictures, a token, and addresses to look at."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path

import click

from app.tokens import Tokens
from cli.kinds import Address
from cli.options import Failed, flag, say, with_settings
from cli.serve import bind, run
from cli.settings import Settings
from cli.wiring import Magazin
from imaging.samples import SAMPLES, Sample
from ingest.records import Reference, Status

CONTEXT = "samples"
PORTS = 50  # tried one after the other, from the wanted one on
PATIENCE = 120  # seconds until the server must answer


@click.command()
@flag("--listen", "server.listen")
@with_settings
@click.pass_context
def demo(context: click.Context, settings: Settings) -> None:
    """Start a server to look at: puts sample pictures in, makes a token, prints addresses that work.

    The pictures are computed on the spot and served by this command to its own ingest over loopback. A second run on
    the same data folder finds them there.

    \b
    Examples:
      magazin demo
      magazin demo --listen 127.0.0.1:9000 --data /tmp/magazin
    """
    listener = bind_near(settings.server.listen)
    say("computing sample pictures and taking them in …")
    magazin = Magazin(settings, allow=(ip_network("127.0.0.1/32"),))
    references = take_samples(magazin)
    token = known_token(magazin.tokens, settings.data / "demo-token")
    magazin.close()
    shown = threading.Thread(target=show, args=(listener.getsockname()[:2], references, token), daemon=True)
    shown.start()
    sys.exit(run(settings, context.obj, listener))


def bind_near(wanted: Address) -> socket.socket:
    """A listening socket at the wanted port, or at the next free one."""
    for offset in range(PORTS):
        try:
            return bind(replace(wanted, port=wanted.port + offset))
        except Failed:
            if offset == PORTS - 1 or wanted.port + offset == 65535:
                raise
    raise AssertionError


def take_samples(magazin: Magazin) -> list[Reference]:
    """A reference for each sample, in their order: taken in over HTTP, unless it is there from an earlier run."""
    present = {
        reference.url.rpartition("/")[2]: reference
        for reference, original in magazin.references.page(CONTEXT, limit=1000)
        if original.status == Status.OK
    }
    with sampler() as address, ThreadPoolExecutor(os.cpu_count()) as pool:

        def take(sample: Sample) -> Reference:
            return present.get(sample.name) or take_in(magazin, f"{address}/{sample.name}")

        return list(pool.map(take, SAMPLES))


def take_in(magazin: Magazin, url: str) -> Reference:
    """Attach and fetch at once. Not by way of the queue: only this URL may be fetched from loopback."""
    reference, original = magazin.references.attach(CONTEXT, url)
    claim = magazin.claims.take(original)
    if claim is not None:
        original = magazin.jobs.run(claim, threading.Event())
    if original.status != Status.OK:
        raise Failed(f"{url}: {original.outcome}: {original.reason}")
    return reference


@contextmanager
def sampler() -> Iterator[str]:
    """A server of the samples on loopback; its address."""
    samples = {f"/{sample.name}": sample for sample in SAMPLES}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sample = samples.get(self.path)
            if sample is None:
                self.send_error(404)
                return
            data = sample.data()
            self.send_response(200)
            self.send_header("Content-Type", sample.mime)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def known_token(tokens: Tokens, file: Path) -> str:
    """The token of an earlier run, while it is valid, else a new one. The file is for its owner only."""
    if file.exists():
        text = file.read_text(encoding="ascii").strip()
        if tokens.valid(text):
            return text
        file.unlink()
    text = tokens.issue("demo")
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text + "\n")
    return text


def show(where: tuple[str, int], references: list[Reference], token: str) -> None:
    """Wait until the server answers, then print what to look at."""
    host, port = where
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = HTTPConnection(host, port, timeout=PATIENCE)
    try:
        connection.request("GET", "/health/ready")
        connection.getresponse().read()
    except (OSError, HTTPException) as error:
        say(f"the server doesn't answer: {error}")
        return
    finally:
        connection.close()
    base, first = f"http://{Address(host, port)}", references[0].reference_id
    say(
        f"""
Magazin is running. Ctrl-C ends it.

  page       {base}/
  thumbnail  {base}/binary/{first}/full/!440,330/0/default.jpg
  original   {base}/binary/{first}
  viewer     {base}/view/{first}
  manifest   {base}/iiif/presentation/3/{CONTEXT}/manifest
  list       {base}/binaries/{CONTEXT}
  token      {token}

Put a picture of your own in:

  curl -X PUT -H 'Authorization: Bearer {token}' \\
       -d url=https://… -d context=mine {base}/binaries
"""
    )
