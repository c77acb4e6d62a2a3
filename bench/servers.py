"""The servers that are measured, each as a process tree on a free port of 127.0.0.1."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from cli.supervisor import python

WORKERS = 2
"""Processes that answer, of every server: one for each core of the machine that this is run on."""
PATIENCE = 60.0  # seconds until a server must listen


@dataclass(frozen=True)
class Server:
    """``pids``: of the processes whose trees are the server."""

    address: str
    pids: tuple[int, ...]

    def before(self, upstream: Server) -> Server:
        """This one and what it asks, as one."""
        return Server(self.address, self.pids + upstream.pids)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port


@contextmanager
def magazin(data: Path, *arguments: str, **settings: str) -> Iterator[Server]:
    """A real ``magazin serve``; ``settings`` are MAGAZIN_… variables without that beginning."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAGAZIN_")}
    environ |= {
        "MAGAZIN_SERVER_WORKERS": str(WORKERS),
        "MAGAZIN_FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "MAGAZIN_ACCESS_OPEN_WRITES": "loopback",
        "MAGAZIN_ACCESS_OPEN_LISTS": "true",
        "MAGAZIN_LOG_ACCESS": "false",
        "MAGAZIN_LOG_LEVEL": "warning",
    }
    environ |= {f"MAGAZIN_{name}": value for name, value in settings.items()}
    command = [*python("cli.main"), "serve", "--listen", "127.0.0.1:0", "--data", str(data), *arguments]
    with _running(command, environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], PATIENCE)[0]:
            raise RuntimeError("magazin serve says nothing")
        said = re.fullmatch(rb"listening on http://(127\.0\.0\.1:\d+)\n", process.stdout.readline())
        if said is None:
            raise RuntimeError("magazin serve doesn't listen")
        address = said[1].decode()
        _wait(address, process)
        yield Server(address, (process.pid,))


@contextmanager
def granian(data: Path) -> Iterator[Server]:
    """The same application on granian."""
    port = free_port()
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--factory", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", str(WORKERS), "--blocking-threads", "1", "--no-ws"]
    command += ["--log-level", "error", "cli.wsgi:application"]
    with tempfile.TemporaryDirectory() as metrics:
        environ = {**os.environ, "MAGAZIN_DATA": str(data), "PROMETHEUS_MULTIPROC_DIR": metrics}
        with _running(command, environ | {"MAGAZIN_LOG_LEVEL": "warning"}) as process:
            _wait(f"127.0.0.1:{port}", process)
            yield Server(f"127.0.0.1:{port}", (process.pid,))


@contextmanager
def nginx(
    files: Path, upstream: str = "", originals: Path | None = None, *, writable: bool = False
) -> Iterator[Server]:
    """nginx with ``files`` at /, and under /binary/ what ``upstream`` answers: scaled images cached, originals passed
    through, as etc/nginx.conf has it; ``originals`` is what X-Accel-Redirect may name under /_originals/. With
    ``writable`` files can be put."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        places = "".join(
            f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        proxy = f"""
            proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
            location ~ ^/binary/[^/]+/ {{ proxy_pass http://magazin; proxy_cache magazin; proxy_cache_lock on; }}
            location /binary/ {{
                proxy_pass http://magazin;
                proxy_buffers 16 64k; proxy_busy_buffers_size 128k; proxy_max_temp_file_size 0;
            }}
            location /_originals/ {{ internal; alias {originals or folder}/; }}
        """
        put = "dav_methods PUT; client_max_body_size 0;" if writable else ""
        config = Path(folder) / "nginx.conf"
        config.write_text(
            f"""
            worker_processes {WORKERS}; pid {folder}/pid; error_log stderr error; daemon off;
            events {{ worker_connections 256; }}
            http {{
                access_log off; sendfile on; tcp_nopush off; {places}
                keepalive_requests 1000000;
                types {{ image/jpeg jpg; application/json json; }}
                proxy_cache_path {folder}/cache keys_zone=magazin:10m use_temp_path=off;
                upstream magazin {{ server {upstream or "127.0.0.1:9"}; keepalive 32; keepalive_requests 1000000; }}
                server {{ listen 127.0.0.1:{port}; root {files}; {put} {proxy if upstream else ""} }}
            }}
            """,
            encoding="utf-8",
        )
        if os.geteuid() == 0:  # nginx' workers become nobody, and must reach all of these
            for one in (Path(folder), files, *files.parents):
                with suppress(OSError):
                    one.chmod(one.stat().st_mode | (0o077 if writable and one in (files, Path(folder)) else 0o055))
        with _running(
            [found("nginx") or "nginx", "-e", "stderr", "-p", folder, "-c", str(config)], os.environ
        ) as process:
            _wait(f"127.0.0.1:{port}", process)
            yield Server(f"127.0.0.1:{port}", (process.pid,))


@contextmanager
def iipimage(files: Path) -> Iterator[Server]:
    """IIPImage behind nginx over FastCGI, as it is run: the tiled TIFFs in ``files`` under /?IIIF={name}/…"""
    port, ports = free_port(), [free_port() for _ in range(WORKERS)]
    environ = {**os.environ, "FILESYSTEM_PREFIX": f"{files}/", "JPEG_QUALITY": "75", "VERBOSITY": "0"}
    environ |= {"LOGFILE": "/dev/null", "MAX_CVT": "20000", "IIIF_VERSION": "3"}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        program = found("iipsrv.fcgi") or "iipsrv.fcgi"
        workers = [
            stack.enter_context(_running([program, "--bind", f"127.0.0.1:{one}", "--backlog", "1024"], environ))
            for one in ports
        ]
        config = Path(folder) / "nginx.conf"
        upstream = " ".join(f"server 127.0.0.1:{one};" for one in ports)
        config.write_text(
            f"""
            worker_processes {WORKERS}; pid {folder}/pid; error_log stderr error; daemon off;
            events {{ worker_connections 256; }}
            http {{
                access_log off; tcp_nopush off; keepalive_requests 1000000; upstream iip {{ {upstream} }}
                fastcgi_temp_path {folder}/fastcgi; client_body_temp_path {folder}/body;
                proxy_temp_path {folder}/proxy; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
                server {{
                    listen 127.0.0.1:{port};
                    location / {{
                        fastcgi_pass iip;
                        fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;
                        fastcgi_param HTTP_HOST $host; fastcgi_param REQUEST_URI $request_uri;
                    }}
                }}
            }}
            """,
            encoding="utf-8",
        )
        front = [found("nginx") or "nginx", "-e", "stderr", "-p", folder, "-c", str(config)]
        process = stack.enter_context(_running(front, os.environ))
        _wait(f"127.0.0.1:{port}", process)
        yield Server(f"127.0.0.1:{port}", (process.pid, *(worker.pid for worker in workers)))


@contextmanager
def command(program: Sequence[str], port: int, environ: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Any other server that is told to listen on ``port``."""
    with _running(program, {**os.environ, **(environ or {})}) as process:
        _wait(f"127.0.0.1:{port}", process)
        yield Server(f"127.0.0.1:{port}", (process.pid,))


def found(program: str) -> str | None:
    """Where a program is; Debian keeps some where not everybody looks."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/lib/iipimage-server")


@contextmanager
def _running(
    program: Sequence[str], environ: Mapping[str, str], stdout: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(program, env=dict(environ), stdout=stdout, stderr=said, start_new_session=True)
        try:
            yield process
        except RuntimeError as error:
            said.seek(0)
            raise RuntimeError(f"{error}; {Path(program[0]).name} said: {said.read()[-2000:].decode()}") from error
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                # what it leaves behind (thumbor its workers); a session of its own: nobody else is in it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers anything."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"it ended with {process.returncode}")
        connection = HTTPConnection(address, timeout=PATIENCE)
        try:
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            return
        except (OSError, HTTPException):
            time.sleep(0.1)
        finally:
            connection.close()
    raise RuntimeError(f"nothing answers at {address}")
