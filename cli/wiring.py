"""The one place that chooses implementations: from settings to the parts that are put together."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from app.application import create_app
from app.grants import Policy
from app.library import Library
from app.options import Options
from app.problems import App
from app.tokens import Tokens
from cli.settings import Settings
from cli.sources import SettingsError
from imaging.encoding import Encoding
from imaging.libvips import configure
from imaging.limits import Limits
from imaging.renditions import Renditions
from imaging.watermark import Mark
from ingest.backoff import Backoff
from ingest.check import Check
from ingest.claims import Claims
from ingest.fetch.fetcher import Fetcher
from ingest.fetch.guard import Guard, Network, Resolve
from ingest.jobs import Jobs
from ingest.localfiles import LocalFiles
from ingest.logs import Logs
from ingest.owner import this_process
from ingest.pictures import Pictures
from ingest.queue import Queue
from ingest.recent import Recent
from ingest.references import References
from ingest.retry import Retry
from ingest.status import Overview
from ingest.sweep import Sweep
from ingest.worker import Worker
from storage import plugins
from storage.announcements import Litter
from storage.blobs import BlobStore
from storage.bucket_tables import BUCKETS, tables_of
from storage.buckets import DEFAULT, Buckets
from storage.cache import Cache
from storage.chunks import ChunkBlobs
from storage.directory import DirectoryBlobs
from storage.errors import Unavailable
from storage.ids import Clock, Ids, system_clock
from storage.interface import Store
from storage.schema import BINARIES

TABLES = (*BINARIES, BUCKETS, *tables_of(DEFAULT).all)
"""All tables that there are from the start; each further bucket has its own."""

REFERENCE_TTL = 5.0  # seconds, where a look at the store is a trip over the network


class Magazin:
    """The parts, each made when it is first asked for. Made after a fork: connections don't survive one."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = system_clock,
        resolve: Resolve = socket.getaddrinfo,
        allow: tuple[Network, ...] = (),
        open_store: Callable[[str, Mapping[str, Any]], Store] = plugins.open_store,
    ) -> None:
        self.settings, self.clock, self.ids, self.owner = settings, clock, Ids(clock), this_process()
        self._resolve, self._allow, self._open = resolve, allow, open_store
        configure(settings.images.concurrency)

    @cached_property
    def store(self) -> Store:
        """The plugin's store. An embedded one gets its tables here; any other by ``magazin init``."""
        store = self._open_store()
        if store.transactional:
            self._make_tables(store)
        return store

    def create(self) -> None:
        """Make the folder and the tables, whatever the store is."""
        self._make_tables(self.store)

    def _make_tables(self, store: Store) -> None:
        store.create(TABLES)
        Buckets(store, ids=self.ids, clock=self.clock).make(DEFAULT)

    @cached_property
    def blobs(self) -> BlobStore:
        storage = self.settings.storage
        where = storage.blobs if storage.blobs != "auto" else "directory" if self.store.transactional else "tables"
        if where == "tables":
            return ChunkBlobs(self.store, part_size=storage.part_size)
        if not (self.store.transactional or storage.shared):
            raise SettingsError(
                '[storage] blobs = "directory" beside a store of several machines needs a file system that all of '
                "them share; say so with [storage] shared = true"
            )
        return DirectoryBlobs(self.directory, part_size=storage.part_size)

    @property
    def directory(self) -> Path:
        """Where originals lie, if they lie in a directory."""
        return Path(self.settings.storage.directory or self.settings.data / "blobs")

    @cached_property
    def cache(self) -> Cache:
        cache = self.settings.cache
        folder = Path(cache.folder or self.settings.data / "cache")
        return Cache(
            folder, size_limit=cache.size, file_limit=cache.files, wait=cache.wait, waiters=self._waiters - self._askers
        )

    @property
    def _waiters(self) -> int:
        return self.settings.server.threads // 2

    @property
    def _askers(self) -> int:
        """Of these, how many may wait for an outcome (Prefer); the others wait for another's rendering."""
        return self._waiters // 2

    @cached_property
    def guard(self) -> Guard:
        return Guard((*self.settings.fetch.allow_networks, *self._allow), self._resolve)

    @cached_property
    def references(self) -> References:
        ttl = self.settings.delivery.reference_ttl
        if ttl is None:
            ttl = 0.0 if self.store.transactional else REFERENCE_TTL
        return References(self.store, ids=self.ids, clock=self.clock, guard=self.guard, reference_ttl=ttl)

    @cached_property
    def logs(self) -> Logs:
        return Logs(self.store, ids=self.ids, clock=self.clock)

    @cached_property
    def recent(self) -> Recent:
        return Recent(self.store)

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self.store, self.ids, self.clock)

    @cached_property
    def limits(self) -> Limits:
        images = self.settings.images
        return Limits(
            whole_frame_pixels=images.whole_frame_pixels,
            streamed_pixels=images.streamed_pixels,
            whole_frame_bytes=images.whole_frame_bytes,
            pages=images.pages,
            output_pixels=images.output_pixels,
            enlarged_pixels=images.enlarged_pixels,
            max_area=images.max_area,
            max_width=images.max_width,
            max_height=images.max_height,
            svg=images.svg,
            seconds=images.seconds,
        )

    @cached_property
    def encoding(self) -> Encoding:
        images = self.settings.images
        red, green, blue = images.background
        return Encoding(images.quality, (red, green, blue), images.metadata)

    @cached_property
    def renditions(self) -> Renditions:
        return Renditions(self.cache, self.limits, self.encoding)

    @cached_property
    def buckets(self) -> Buckets:
        return Buckets(self.store, ids=self.ids, clock=self.clock)

    @cached_property
    def sweep(self) -> Sweep:
        return Sweep(
            self.store,
            self.blobs,
            self.references,
            owner=self.owner,
            clock=self.clock,
            others={Litter.FILE: self.buckets.sweep},
        )

    @cached_property
    def queue(self) -> Queue:
        return Queue(
            self.store,
            self.claims,
            owner=self.owner,
            clock=self.clock,
            connections=self.settings.worker.per_host,
        )

    @cached_property
    def claims(self) -> Claims:
        return Claims(self.store, owner=self.owner, ids=self.ids, clock=self.clock)

    @cached_property
    def fetcher(self) -> Fetcher:
        fetch = self.settings.fetch
        return Fetcher(
            self.guard,
            user_agent=fetch.user_agent,
            connect_timeout=fetch.connect_timeout,
            read_timeout=fetch.read_timeout,
            deadline=fetch.deadline,
            max_bytes=fetch.max_bytes,
            max_redirects=fetch.max_redirects,
            retry_after_cap=fetch.retry_after_cap,
            ca_file=fetch.ca_file or None,
            clock=self.clock,
        )

    @cached_property
    def jobs(self) -> Jobs:
        images, worker = self.settings.images, self.settings.worker
        pictures = Pictures(
            self.blobs,
            limits=self.limits,
            encoding=self.encoding,
            prepare_boxes=images.boxes,
            pyramid_pixels=images.pyramid_pixels,
            decoders=images.decoders,
        )
        return Jobs(
            self.store,
            self.blobs,
            fetcher=self.fetcher,
            pictures=pictures,
            logs=self.logs,
            clock=self.clock,
            backoff=Backoff(worker.backoff, worker.jitter, worker.max_failures),
        )

    def worker(self) -> Worker:
        """The worker, which also sweeps."""
        sweep = self.settings.sweep
        if sweep.interval == 0:
            return self.hands()
        grace = int(sweep.grace * 1_000_000)
        return self._worker(lambda: self.sweep.run(grace), sweep.interval)

    def hands(self) -> Worker:
        """A worker that only works the queue off."""
        return self._worker(lambda: None, 3600.0)

    def _worker(self, sweep: Callable[[], object], interval: float) -> Worker:
        threads = self.settings.worker.threads
        return Worker(self.queue, self.jobs, threads=threads, sweep=sweep, sweep_interval=interval)

    @cached_property
    def local_files(self) -> LocalFiles:
        return LocalFiles(self.store, self.references, self.claims, self.jobs, self.settings.fetch.max_bytes)

    @cached_property
    def check(self) -> Check:
        return Check(self.store, self.blobs, self.references, self.clock)

    @cached_property
    def retry(self) -> Retry:
        return Retry(self.store, self.blobs, self.references, self.clock)

    @cached_property
    def overview(self) -> Overview:
        return Overview(self.store, self.queue, self.clock)

    def application(self) -> App:
        """The WSGI application."""
        library = Library(
            store=self.store,
            blobs=self.blobs,
            references=self.references,
            logs=self.logs,
            recent=self.recent,
            renditions=self.renditions,
            limits=self.limits,
            tokens=self.tokens,
            buckets=self.buckets,
        )
        return create_app(library, self._http_options(), clock=self.clock)

    def _http_options(self) -> Options:
        access, delivery = self.settings.access, self.settings.delivery
        metrics = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        return Options(
            loopback_writes=access.open_writes == "loopback",
            open_lists=access.open_lists,
            open_manifests=access.open_manifests,
            canvases=delivery.canvases,
            base_url=delivery.base_url.rstrip("/"),
            max_age=round(delivery.max_age),
            trusted_proxies=delivery.trusted_proxies,
            policy=self.policy,
            rights=self.settings.images.rights,
            waiters=self._askers,
            sendfile=delivery.sendfile,
            accel_redirect=delivery.accel_redirect,
            originals=self.directory if isinstance(self.blobs, DirectoryBlobs) else None,
            metrics=Path(metrics) if metrics else None,
        )

    @cached_property
    def policy(self) -> Policy:
        """What is for everyone. SettingsError for a watermark that is no image."""
        access = self.settings.access
        try:
            marks = {context: Mark.of(Path(file)) for context, file in access.watermarks}
        except (OSError, ValueError) as error:
            raise SettingsError(f"[access] watermarks: {error}") from error
        return Policy(access.signing_key, access.public_width, marks)

    def close(self) -> None:
        for name in ("cache", "store"):
            if name in self.__dict__:
                getattr(self, name).close()

    def _open_store(self) -> Store:
        name, data = self.settings.storage.plugin, self.settings.data
        options: dict[str, Any] = {"data": data, **dict(self.settings.storage.options)}
        own = getattr(self.settings, name, None)
        if dataclasses.is_dataclass(own) and not isinstance(own, type):
            options |= {one.name: getattr(own, one.name) for one in dataclasses.fields(own)}
        try:
            data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"data folder {data}: {error.strerror}") from error
        try:
            return self._open(name, options)
        except LookupError as error:
            raise SettingsError(f"[storage] plugin: {error.args[0]}") from error
        except ImportError as error:
            raise SettingsError(f"[storage] plugin {name!r} needs a library that is missing: {error}") from error
        except ValueError as error:
            raise SettingsError(f"[{name}] {error}") from error
