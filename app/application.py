"""The WSGI application: which resource answers which path."""

from __future__ import annotations

import time
from collections.abc import Callable

import falcon

from app import files, iiif, problems
from app.access import Access
from app.boxes import Boxes
from app.cors import Cors
from app.forwarded import Forwarded
from app.gallery import Front
from app.grants import Grants
from app.health import Live, Ready
from app.images import Images
from app.info import Info
from app.library import Library
from app.logs import LogOfContext
from app.lookup import Lookup
from app.metrics import Metrics, MetricsPage
from app.openapi import OpenApi
from app.options import Options
from app.originals import Originals
from app.presentation import Manifest
from app.problems import App
from app.pyramids import Pyramids
from app.rawpath import RawPath
from app.references import Binaries, Context, ContextRemoval, ReferenceRemoval
from app.requestlog import RequestLog
from app.scaled import Scaled
from app.sending import ByKernel, ByProxy, Sending, Verified
from app.view import View
from app.viewerfiles import Bundle, ViewerFiles, bundle
from app.waiting import Waiting
from imaging.request import VERSIONS
from storage.ids import Clock, system_clock


def create_app(
    library: Library,
    options: Options,
    *,
    clock: Clock = system_clock,
    sleep: Callable[[float], None] = time.sleep,
    viewer: Bundle | None = None,
) -> App:
    viewer = viewer or bundle()
    metrics = Metrics(options.metrics)
    access = Access(library.tokens, options)
    lookup = Lookup(library.references, clock)
    waiting = Waiting(options.waiters, options.longest_wait, sleep=sleep)
    boxes = Boxes(library.store, metrics)
    grants = Grants(options.policy, clock)
    images = Images(library, lookup, grants, metrics, boxes, Pyramids(library.blobs))
    scaled = Scaled(images, lookup, grants, options.max_age)

    app: App = falcon.App()
    app.add_middleware(RequestLog(metrics))
    app.add_middleware(Cors())
    app.add_middleware(RawPath())
    if options.trusted_proxies:
        app.add_middleware(Forwarded(options.trusted_proxies))
    problems.register(app)
    app.add_route("/", Front(library, access, options))
    app.add_route("/binaries", Binaries(library.references, access, waiting))
    app.add_route("/binaries/{context}", Context(library.references, access))
    app.add_route("/binaries/context/{context}", ContextRemoval(library.references, access))
    app.add_route("/binaries/reference/{reference_id}", ReferenceRemoval(library.references, access))
    app.add_route(
        "/binary/{reference_id}", Originals(lookup, sending(library, options, metrics), grants, options.max_age)
    )
    app.add_route("/binary/{reference_id}/info.json", Info(library, lookup, options))
    app.add_route("/binary/{reference_id}/{region}/{size}/default.jpg", scaled)
    app.add_route("/binary/{reference_id}/{region}/{size}/{rotation}/{file}", scaled)
    app.add_route("/binary/logs/{context}", LogOfContext(library.references, library.logs, access))
    for version in VERSIONS:
        iiif_image = f"/iiif/{version}/{{identifier}}"
        app.add_route(iiif_image, iiif.Base(version, options))
        app.add_route(f"{iiif_image}/info.json", iiif.Info(version, images, options))
        app.add_route(f"{iiif_image}/{{region}}/{{size}}/{{rotation}}/{{file}}", iiif.Image(version, images, options))
    app.add_route("/iiif/presentation/3/{context}/manifest", Manifest(library, images, grants, access, options))
    app.add_route("/view/{identifier}", View(images, viewer.links))
    app.add_route("/viewer/{file}", ViewerFiles(viewer.files))
    files.add_routes(app, library, access, metrics, options)
    app.add_route("/health/live", Live())
    app.add_route("/health/ready", Ready(library.store))
    app.add_route("/metrics", MetricsPage(metrics, access))
    app.add_route("/openapi.json", OpenApi())
    return app


def sending(library: Library, options: Options, metrics: Metrics) -> Sending:
    verified = Verified(library.blobs, metrics)
    if options.accel_redirect and options.originals is not None:
        return ByProxy(library.blobs, verified, options.accel_redirect, options.originals)
    if options.sendfile:
        return ByKernel(library.blobs, verified)
    return verified
