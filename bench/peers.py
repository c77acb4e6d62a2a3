"""Other image servers, where they are installed: how they are started, and how a thumbnail is asked of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.lab import Lab
from bench.servers import WORKERS, Server, command, free_port

QUALITY = 75


@dataclass(frozen=True)
class Peer:
    """``path`` of a file within width and height; ``start`` serves a folder's files."""

    program: str
    path: Callable[[str, int, int], str]
    start: Callable[[Lab, Path], Server]


def _imgproxy(lab: Lab, files: Path) -> Server:
    port = free_port()
    environ = {
        "IMGPROXY_BIND": f"127.0.0.1:{port}",
        "IMGPROXY_LOCAL_FILESYSTEM_ROOT": str(files),
        "IMGPROXY_WORKERS": str(WORKERS),
        "IMGPROXY_QUALITY": str(QUALITY),
        "IMGPROXY_FORMAT_QUALITY": f"jpeg={QUALITY}",
        "IMGPROXY_LOG_LEVEL": "error",
    }
    return lab.start(command(["imgproxy"], port, environ))


def _imagor(lab: Lab, files: Path) -> Server:
    port = free_port()
    program = ["imagor", "-imagor-unsafe", "-server-address", "127.0.0.1", "-port", str(port)]
    program += ["-file-loader-base-dir", str(files), "-file-result-storage-base-dir", str(lab.folder / "imagor")]
    return lab.start(command(program, port, {"VIPS_CONCURRENCY": "1"}))


def _thumbor(lab: Lab, files: Path) -> Server:
    port, config = free_port(), lab.folder / "thumbor.conf"
    config.write_text(
        f"LOADER = 'thumbor.loaders.file_loader'\nFILE_LOADER_ROOT_PATH = {str(files)!r}\nQUALITY = {QUALITY}\n"
        "STORAGE = 'thumbor.storages.no_storage'\n"
    )
    program = ["thumbor", "-i", "127.0.0.1", "-p", str(port), "-c", str(config), "--processes", str(WORKERS)]
    return lab.start(command(program, port))


PEERS = (
    Peer(
        "imgproxy",
        lambda name, width, height: f"/insecure/rs:fit:{width}:{height}/plain/local:///{name}@jpg",
        _imgproxy,
    ),
    Peer(
        "imagor",
        lambda name, width, height: f"/unsafe/fit-in/{width}x{height}/filters:format(jpeg):quality({QUALITY})/{name}",
        _imagor,
    ),
    Peer("thumbor", lambda name, width, height: f"/unsafe/fit-in/{width}x{height}/{name}", _thumbor),
)


def installed(lab: Lab) -> list[Peer]:
    return [peer for peer in PEERS if lab.has(peer.program)]
