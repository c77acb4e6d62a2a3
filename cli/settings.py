"""Every setting: its section, key, default, kind and meaning. Values are what :mod:`cli.kinds` reads.

``etc/magazin.toml`` and ``docs/settings.md`` are printed from here and tested to be equal to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli import kinds
from cli.kinds import Address, Kind, Network


def setting(default: Any, kind: Kind, doc: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"kind": kind, "doc": doc, "secret": secret})


LOCAL = Address("127.0.0.1", 8000)


@dataclass(frozen=True)
class Server:
    """The HTTP server: gunicorn with threads."""

    listen: Address = setting(LOCAL, kinds.ADDRESS, "Where to listen. Port 0 takes any free one.")
    workers: int = setting(2, kinds.number(1, 1024), "Processes that answer requests; about one for each core.")
    threads: int = setting(
        8,
        kinds.number(2, 1024),
        "Threads of each. At most half of them wait for an outcome or for another's rendering.",
    )
    graceful_timeout: float = setting(
        60.0, kinds.SPAN_OF_TIME, "How long running answers may take to end after SIGTERM, before they are cut."
    )
    keep_alive: float = setting(5.0, kinds.SPAN_OF_TIME, "How long an idle connection is kept. Whole seconds.")
    connections: int = setting(1000, kinds.number(8), "Connections that each process holds at once.")


@dataclass(frozen=True)
class Log:
    """Log lines, on standard error."""

    level: str = setting("info", kinds.choice("debug", "info", "warning", "error"), "The least level that is written.")
    format: str = setting("text", kinds.choice("text", "json"), "Lines for people, or one JSON object a line.")
    access: bool = setting(True, kinds.SWITCH, "A line for each request, a JSON object; query strings are left out.")


@dataclass(frozen=True)
class Storage:
    """Where rows and bytes are kept."""

    plugin: str = setting("sqlite", kinds.TEXT, "The storage plugin, by its entry point's name.")
    blobs: str = setting(
        "auto",
        kinds.choice("auto", "directory", "tables"),
        "Where originals are kept: files in a directory, or the plugin's chunk tables. "
        "auto: a directory beside sqlite, else the tables.",
    )
    directory: str = setting("", kinds.TEXT, "The directory of the originals. Empty: blobs in the data folder.")
    shared: bool = setting(
        False,
        kinds.SWITCH,
        "The directory is one shared file system for all machines. Without it, a store of several machines refuses a "
        "directory.",
    )
    part_size: int = setting(
        524288,
        kinds.size(4096, 1_000_000),
        "How many bytes have one checksum, and make one row of the tables.",
    )
    options: tuple[tuple[str, Any], ...] = setting(
        (), kinds.PAIRS, "Further options, handed to the plugin as they are."
    )


@dataclass(frozen=True)
class Cassandra:
    """The plugin `cassandra`, for any number of machines."""

    contact_points: tuple[str, ...] = setting(
        ("127.0.0.1",), kinds.listed(kinds.TEXT, least=1), "Hosts, or host:port, of the cluster."
    )
    keyspace: str = setting("binaries", kinds.TEXT, "The keyspace; `magazin init` makes it.")
    replication: str = setting(
        "1", kinds.TEXT, "Copies of each row when the keyspace is made: a number, or dc1:3,dc2:3 for data centres."
    )
    consistency: str = setting(
        "LOCAL_QUORUM",
        kinds.choice("LOCAL_QUORUM", "QUORUM", "ALL"),
        "For parts of originals. Whatever decides is read and written at QUORUM and SERIAL, always.",
    )
    data_center: str = setting("", kinds.TEXT, "The data centre to ask, no other. Empty: that of any contact point.")
    username: str = setting("", kinds.TEXT, "The user; empty: no credentials are sent.")
    password: str = setting("", kinds.TEXT, "Its password.", secret=True)
    tls: bool = setting(False, kinds.SWITCH, "Speak TLS to the cluster.")
    tls_ca: str = setting("", kinds.TEXT, "A PEM file of the authorities to trust. Empty: those of the system.")
    tls_certificate: str = setting("", kinds.TEXT, "A PEM file with a certificate of our own, for clusters that ask.")
    tls_key: str = setting("", kinds.TEXT, "A PEM file with its key.")
    tls_verify_host: bool = setting(True, kinds.SWITCH, "The certificate must name the host.")
    request_timeout: float = setting(6.0, kinds.SPAN_OF_TIME, "How long one request may take.")


@dataclass(frozen=True)
class Cache:
    """The disk cache of renditions. Losing it costs speed, never an answer."""

    folder: str = setting("", kinds.TEXT, "Where it is. Empty: cache in the data folder.")
    size: int = setting(2 * 1024**3, kinds.SIZE, "Bytes it may take.")
    files: int = setting(100_000, kinds.number(100), "Files it may have; what keeps a disk from running out of inodes.")
    wait: float = setting(30.0, kinds.SPAN_OF_TIME, "How long a request waits for another that makes the same value.")


@dataclass(frozen=True)
class Fetch:
    """How sources are asked. Only global addresses, unless networks are allowed here."""

    allow_networks: tuple[Network, ...] = setting(
        (), kinds.listed(kinds.NETWORK), "Networks that may be fetched from though they are not global."
    )
    user_agent: str = setting("Magazin/0.1", kinds.TEXT, "Sent to every source; a good place for a contact address.")
    connect_timeout: float = setting(10.0, kinds.SPAN_OF_TIME, "How long connecting may take.")
    read_timeout: float = setting(60.0, kinds.SPAN_OF_TIME, "How long a source may be silent.")
    deadline: float = setting(3600.0, kinds.SPAN_OF_TIME, "How long one fetch may take in all.")
    max_bytes: int = setting(10_000_000_000, kinds.SIZE, "The largest original.")
    max_redirects: int = setting(10, kinds.number(0, 50), "Redirects that are followed; each passes the same checks.")
    retry_after_cap: float = setting(
        86400.0, kinds.SPAN_OF_TIME, "The longest that a source may put off the next try with Retry-After."
    )
    ca_file: str = setting("", kinds.TEXT, "A PEM file of the authorities to trust. Empty: those of certifi.")


@dataclass(frozen=True)
class Worker:
    """The work on the queue: fetching, checking, scaling."""

    threads: int = setting(4, kinds.number(1, 1024), "Jobs done at once by one worker process.")
    per_host: int = setting(2, kinds.number(1, 256), "Jobs done at once for one source host, over all workers.")
    max_failures: int = setting(3, kinds.number(0, 100), "Failures after which trying again ends.")
    backoff: tuple[float, ...] = setting(
        (60.0, 900.0, 14400.0),
        kinds.listed(kinds.SPAN_OF_TIME, least=1),
        "How long to wait after the first failure, the second, …; the last one repeats.",
    )
    jitter: float = setting(0.2, kinds.FRACTION, "Each wait is made longer at random, by up to this part of it.")


@dataclass(frozen=True)
class Images:
    """Limits before anything is decoded, and what is made of images."""

    whole_frame_pixels: int = setting(
        100_000_000,
        kinds.number(1),
        "Largest image of a format that is decoded whole: AVIF, HEIC, WebP, GIF, interlaced PNG, progressive JPEG.",
    )
    streamed_pixels: int = setting(2_000_000_000, kinds.number(1), "Largest image of a streamed or tiled format.")
    whole_frame_bytes: int = setting(
        256 * 1024**2, kinds.SIZE, "Largest file of a format that is read whole: AVIF, HEIC, WebP, GIF."
    )
    pages: int = setting(10_000, kinds.number(1), "Pages of a TIFF; one with more is kept without images.")
    svg: bool = setting(
        False,
        kinds.SWITCH,
        "Draw SVG, too, without its scripts and without whatever it refers to, in a process of its own with a bound on "
        "time and memory. Needs the extra images. The originals stay downloads.",
    )
    output_pixels: int = setting(100_000_000, kinds.number(1), "Largest image made.")
    seconds: float = setting(300.0, kinds.SPAN_OF_TIME, "How long one decoding may take.")
    decoders: int = setting(2, kinds.number(1, 256), "Images that one worker process decodes at once.")
    pyramid_pixels: int = setting(
        4_000_000, kinds.number(0), "Images with so many pixels get a pyramid of tiles at ingest. 0: none does."
    )
    enlarged_pixels: int = setting(16_000_000, kinds.number(1), "Largest image made that is larger than its original.")
    max_area: int = setting(
        0, kinds.number(0), "Pixels of the largest image made, as info.json states them; ^max goes up to them. 0: none."
    )
    max_width: int = setting(65_500, kinds.number(1, 65_500), "Width of the widest image made; stated if set lower.")
    max_height: int = setting(65_500, kinds.number(1, 65_500), "Height of the highest image made, likewise.")
    metadata: str = setting(
        "copyright",
        kinds.choice("copyright", "all", "none"),
        "What of an image's metadata goes into what is made of it. copyright: EXIF's Copyright and Artist.",
    )
    rights: str = setting(
        "", kinds.TEXT, "The URI of a licence or statement of rights, for images whose metadata name none."
    )
    boxes: bool = setting(True, kinds.SWITCH, "Make the four boxes (800×600 … 116×87) at ingest.")
    quality: int = setting(75, kinds.number(1, 100), "Quality of the JPEG made.")
    background: tuple[int, ...] = setting(
        (255, 255, 255), kinds.COLOUR, "What shows through transparent pixels in JPEG."
    )
    concurrency: int = setting(
        1, kinds.number(1, 64), "Threads that work on one image. 1 costs the least where requests run side by side."
    )


@dataclass(frozen=True)
class Access:
    """Who may write and list. Delivery is open. See docs/operating.md."""

    open_writes: str = setting(
        "",
        kinds.choice("", "loopback"),
        "loopback: writes need no token from this machine itself. For trials only: a proxy on this machine that sends "
        "no Via or X-Forwarded-For opens them to everyone.",
    )
    open_lists: bool = setting(False, kinds.SWITCH, "Lists, logs and the gallery need no token.")
    open_manifests: bool = setting(
        False, kinds.SWITCH, "IIIF manifests, which name a context's images and not their sources, need no token."
    )
    signing_key: str = setting(
        "", kinds.TEXT, "Signs addresses that open an image whole; long and random.", secret=True
    )
    public_width: int = setting(
        0,
        kinds.number(0),
        "Of an image, nobody sees more without a signature than the whole of it with this longer side, in pixels. "
        "0: no bound.",
    )
    watermarks: tuple[tuple[str, Any], ...] = setting(
        (), kinds.PAIRS, "Image files by context, shown on whatever is made of its images without a signature."
    )


@dataclass(frozen=True)
class Delivery:
    """What is sent with answers."""

    base_url: str = setting(
        "",
        kinds.TEXT,
        "The address by which clients know this server, such as https://media.example.org. Empty: as asked.",
    )
    trusted_proxies: tuple[Network, ...] = setting(
        (),
        kinds.listed(kinds.NETWORK),
        "Networks of proxies whose Forwarded or X-Forwarded-Proto, -Host and -Prefix are believed, where base_url is "
        "empty.",
    )
    max_age: float = setting(
        3600.0, kinds.SPAN_OF_TIME, "How long caches may keep an answer without asking; a part of the takedown bound."
    )
    canvases: int = setting(
        1000, kinds.number(1, 10_000), "Images and pages in one IIIF manifest; a larger context has several."
    )
    reference_ttl: float | None = setting(
        None,
        kinds.automatic(kinds.SPAN_OF_TIME),
        "How long a process remembers which original a reference has. auto: 0s on sqlite, else 5s.",
    )
    sendfile: bool = setting(
        False,
        kinds.SWITCH,
        "Let the kernel send originals from a directory. Gives up the check of every part as it is sent.",
    )
    accel_redirect: str = setting(
        "",
        kinds.TEXT,
        "An internal location of nginx, such as /_originals/, that serves the directory; answers name the file in "
        "X-Accel-Redirect. Gives up the same check.",
    )


@dataclass(frozen=True)
class Sweep:
    """Removal of what nobody refers to."""

    grace: float = setting(
        86400.0,
        kinds.SPAN_OF_TIME,
        "How long litter is kept; must be longer than any request, lease and difference of clocks.",
    )
    interval: float = setting(3600.0, kinds.SPAN_OF_TIME, "How often the worker sweeps. 0s: never.")


@dataclass(frozen=True)
class Settings:
    data: Path = Path("magazin-data")
    config: Path | None = None
    server: Server = field(default_factory=Server)
    log: Log = field(default_factory=Log)
    storage: Storage = field(default_factory=Storage)
    cassandra: Cassandra = field(default_factory=Cassandra)
    cache: Cache = field(default_factory=Cache)
    fetch: Fetch = field(default_factory=Fetch)
    worker: Worker = field(default_factory=Worker)
    images: Images = field(default_factory=Images)
    access: Access = field(default_factory=Access)
    delivery: Delivery = field(default_factory=Delivery)
    sweep: Sweep = field(default_factory=Sweep)


@dataclass(frozen=True)
class Definition:
    section: str
    key: str
    kind: Kind
    default: Any
    doc: str
    secret: bool

    @property
    def name(self) -> str:
        return f"[{self.section}] {self.key}"

    @property
    def variable(self) -> str:
        return f"MAGAZIN_{self.section}_{self.key}".upper()


SECTIONS: dict[str, type] = {
    "server": Server,
    "log": Log,
    "storage": Storage,
    "cassandra": Cassandra,
    "cache": Cache,
    "fetch": Fetch,
    "worker": Worker,
    "images": Images,
    "access": Access,
    "delivery": Delivery,
    "sweep": Sweep,
}


def definitions() -> Iterator[Definition]:
    for section, made in SECTIONS.items():
        for one in dataclasses.fields(made):
            yield Definition(
                section, one.name, one.metadata["kind"], one.default, one.metadata["doc"], one.metadata["secret"]
            )


DEFINITIONS: dict[tuple[str, str], Definition] = {(one.section, one.key): one for one in definitions()}
