"""A real Cassandra on loopback addresses, from Maven Central's jars, for tests and benchmarks.

    with Cluster(folder, nodes=3) as cluster:
        cluster.contact_points, cluster.nodes[0].kill(), .start(), .freeze(), .thaw(), .stop()

The jars are kept in ``~/.cache/magazin-cassandra`` (``CASSANDRA_TEST_CACHE`` names another folder). Each JVM is the
child of a small process that ends it when the last test process that uses the folder is gone, even by kill -9.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import filelock

VERSION = "5.0.6"
CACHE = Path(os.environ.get("CASSANDRA_TEST_CACHE") or Path.home() / ".cache" / "magazin-cassandra")
REQUIRED = os.environ.get("CI") == "true" or os.environ.get("REQUIRE_CASSANDRA") == "1"

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>magazin</groupId><artifactId>cassandra</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

LOGBACK = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level [%thread] %logger{20} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""

DATA_CENTER = "datacenter1"  # Cassandra's own default
JVM = "-Xms512m -Xmx1g -Xss512k -XX:MaxDirectMemorySize=256m -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError"
DURABLE = ("-XX:TieredStopAtLevel=1",)
"""It starts in 9 s of CPU time and not in 15, and runs slower than it could."""
QUICK = (*DURABLE, "-Dcassandra.test.flush_local_schema_changes=false")
"""Tables are made in a third of the time, and forgotten by a node that is killed."""
# What Cassandra's own jvm17-server.options opens to it.
EXPORTS = """
java.base/java.lang.ref java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch java.sql/java.sql
java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server
java.rmi/sun.rmi.transport java.rmi/sun.rmi.transport.tcp jdk.unsupported/sun.misc jdk.attach/sun.tools.attach
"""
OPENS = """
java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.net
java.base/java.nio java.base/java.nio.channels.spi java.base/java.util java.base/java.util.concurrent
java.base/java.util.concurrent.atomic java.base/jdk.internal.loader java.base/jdk.internal.math
java.base/jdk.internal.module java.base/jdk.internal.ref java.base/jdk.internal.reflect
java.base/jdk.internal.util.jar java.base/sun.nio.ch jdk.management/com.sun.management.internal
"""


class NoServer(Exception):
    """Why there can be no server here."""


def java() -> str:
    """The command of a Java 17: that of JAVA_HOME, of the PATH, or one that is installed beside them."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home, "bin", "java"))] if home else []
    candidates += ["java", *map(str, sorted(Path("/usr/lib/jvm").glob("*17*/bin/java")))]
    found = []
    for command in filter(None, map(shutil.which, candidates)):
        said = subprocess.run([command, "-version"], capture_output=True, text=True).stderr
        version = re.search(r'version "(\d+)', said)
        if version is not None and version[1] == "17":
            return command
        found.append(f"{command} is {version[1] if version else 'unknown'}")
    there = "; ".join(found) or "there is none"
    raise NoServer(f"Cassandra {VERSION} wants Java 17 (Debian: apt install openjdk-17-jre-headless): {there}")


def jars() -> Path:
    """The folder of Cassandra's jars, fetched once."""
    folder = CACHE / f"lib-{VERSION}"
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        raise NoServer("no mvn to fetch Cassandra with (Debian: apt install maven)")
    CACHE.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(CACHE / "lib.lock"):
        if folder.is_dir():
            return folder
        half, pom = CACHE / "lib.part", CACHE / "pom.xml"
        pom.write_text(POM)
        shutil.rmtree(half, ignore_errors=True)
        command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={half}"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise NoServer(f"mvn couldn't fetch Cassandra {VERSION}: {done.stdout.strip()[-300:]}")
        half.rename(folder)
    return folder


def _free_prefix() -> tuple[str, int]:
    """Three bytes of loopback addresses that no other cluster of this machine has, and the lock that says so."""
    CACHE.mkdir(parents=True, exist_ok=True)
    for slot in range(1, 250):
        lock = os.open(CACHE / f"slot-{slot}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.create_server((f"127.77.{slot}.1", 9042)):
                return f"127.77.{slot}", lock
        except OSError:
            os.close(lock)
    raise NoServer("no loopback addresses left")


class Node:
    """One server. ``address`` is the same after a restart; its data too."""

    def __init__(
        self,
        folder: Path,
        address: str,
        seeds: str,
        token: int,
        yaml: Mapping[str, object],
        jvm: Sequence[str],
        data_center: str,
    ) -> None:
        self.folder, self.address, self._jvm = folder, address, jvm
        self.pid = 0
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        (folder / "conf" / "cassandra-rackdc.properties").write_text(f"dc={data_center}\nrack=rack1\n")
        (folder / "conf" / "cassandra.yaml").write_text(_yaml(folder, address, seeds, token, yaml))
        (folder / "conf" / "logback.xml").write_text(LOGBACK)

    def begin(self) -> None:
        """Start it, without waiting until it answers."""
        keeper = subprocess.Popen(
            [sys.executable, __file__, str(self.folder.parent), str(self.folder / "log"), *self._command()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert keeper.stdout is not None
        self.pid = int(keeper.stdout.readline())
        threading.Thread(target=keeper.wait, daemon=True).start()

    def wait(self, seconds: float = 300) -> None:
        """Until it takes clients."""
        end = time.monotonic() + seconds
        while not self.answers():
            if not self.runs() or time.monotonic() > end:
                raise RuntimeError(f"Cassandra at {self.address} didn't start: {self.log()[-1500:]}")
            time.sleep(0.1)

    def wait_for_others(self, count: int, seconds: float = 60) -> None:
        """Until it knows the tokens and data centres of so many other nodes; it takes clients before."""
        # Not above: a node's keeper is this file too, and needs no driver.
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile
        from cassandra.cluster import Cluster as Driver
        from cassandra.policies import WhiteListRoundRobinPolicy

        here = ExecutionProfile(WhiteListRoundRobinPolicy([self.address]))
        end = time.monotonic() + seconds
        with Driver([self.address], execution_profiles={EXEC_PROFILE_DEFAULT: here}) as driver:
            session = driver.connect()
            while sum(bool(row.tokens) for row in session.execute("SELECT tokens FROM system.peers_v2")) < count:
                if time.monotonic() > end:
                    raise RuntimeError(f"Cassandra at {self.address} didn't find the others: {self.log()[-1500:]}")
                time.sleep(0.1)

    def start(self) -> None:
        self.begin()
        self.wait()

    def stop(self) -> None:
        """As an operator would: it drains. Returns when it is gone."""
        self._signal(signal.SIGTERM)
        self._gone()

    def kill(self) -> None:
        """kill -9."""
        self._signal(signal.SIGKILL)
        self._gone()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def answers(self) -> bool:
        try:
            socket.create_connection((self.address, 9042), 1).close()
        except OSError:
            return False
        return True

    def runs(self) -> bool:
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return self.pid > 0 and state not in "ZX"

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _signal(self, number: int) -> None:
        if self.runs():
            os.kill(self.pid, number)

    def _gone(self) -> None:
        while self.runs():
            time.sleep(0.05)

    def _command(self) -> list[str]:
        conf, data = self.folder / "conf", self.folder / "data"
        return [
            java(),
            *JVM.split(),
            *self._jvm,
            "-Djdk.attach.allowAttachSelf=true",
            *(f"--add-exports={one}=ALL-UNNAMED" for one in EXPORTS.split()),
            *(f"--add-opens={one}=ALL-UNNAMED" for one in OPENS.split()),
            f"-Dcassandra.config=file://{conf}/cassandra.yaml",
            f"-Dlogback.configurationFile=file://{conf}/logback.xml",
            f"-Dcassandra.storagedir={data}",
            "-Dcassandra-foreground=yes",
            # A ring that is known from the start needn't be waited for.
            "-Dcassandra.ring_delay_ms=2000",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
            "-cp",
            f"{conf}:{jars()}/*",
            "org.apache.cassandra.service.CassandraDaemon",
        ]


class Cluster:
    """``nodes`` servers that know each other, in a folder that doesn't exist yet or was made by another process of
    the same test run: then these share the servers, and the last one to leave ends them.

    ``yaml``: settings over those of the tests. ``jvm``: options, QUICK or DURABLE, or none for benchmarks.
    ``data_centers``: that of each node.
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 1,
        *,
        yaml: Mapping[str, object] | None = None,
        jvm: Sequence[str] = QUICK,
        data_centers: Sequence[str] = (),
    ) -> None:
        java()
        jars()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._users = os.open(folder / "users", os.O_CREAT | os.O_RDWR)
        with filelock.FileLock(folder / "start.lock"):
            fcntl.flock(self._users, fcntl.LOCK_SH)
            known = folder / "addresses"
            if known.exists():
                self.nodes: list[Node] = []
                self.contact_points = known.read_text().split()
                return
            prefix, self._slot = _free_prefix()
            self.contact_points = [f"{prefix}.{number}" for number in range(1, nodes + 1)]
            self.nodes = [
                Node(
                    folder / f"node{number}",
                    address,
                    ",".join(self.contact_points),
                    -(1 << 63) + (number - 1) * ((1 << 64) // nodes) + 1,
                    yaml or {},
                    jvm,
                    (data_centers or [DATA_CENTER] * nodes)[number - 1],
                )
                for number, address in enumerate(self.contact_points, start=1)
            ]
            try:
                for node in self.nodes:
                    node.begin()
                for node in self.nodes:
                    node.wait()
                for node in self.nodes:
                    if nodes > 1:
                        node.wait_for_others(nodes - 1)
            except BaseException:
                self.close()
                raise
            known.write_text("\n".join(self.contact_points))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """The servers end when nobody uses them any more."""
        os.close(self._users)


def _yaml(folder: Path, address: str, seeds: str, token: int, more: Mapping[str, object]) -> str:
    data = folder / "data"
    settings: dict[str, object] = {
        "cluster_name": "magazin-test",
        "num_tokens": 1,
        "initial_token": token,
        "auto_bootstrap": False,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "GossipingPropertyFileSnitch",
        "listen_address": address,
        "rpc_address": address,
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": seeds}],
            }
        ],
        "commitlog_sync": "batch",  # periodic, the default, loses acknowledged writes of a node that is killed
        "commitlog_segment_size": "32MiB",
        "commitlog_total_space": "512MiB",
        "commitlog_directory": f"{data}/commitlog",
        "data_file_directories": [f"{data}/data"],
        "saved_caches_directory": f"{data}/saved_caches",
        "hints_directory": f"{data}/hints",
        "cdc_raw_directory": f"{data}/cdc",
        "auto_snapshot": False,
        "memtable_heap_space": "64MiB",
        "memtable_offheap_space": "64MiB",
        "key_cache_size": "8MiB",
        "file_cache_size": "32MiB",
        "concurrent_reads": 8,
        "concurrent_writes": 8,
        "concurrent_compactors": 1,
        "concurrent_counter_writes": 4,
    }
    return "".join(f"{key}: {_value(value)}\n" for key, value in (settings | dict(more)).items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_value(one)}" for key, one in value.items()) + "}"
    return str(value) if isinstance(value, int) else '"' + str(value) + '"'


def _keep(folder: Path, log: Path, command: list[str]) -> None:
    """Run one JVM until it ends or nobody uses the folder any more."""
    with log.open("ab") as out:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    print(server.pid, flush=True)

    def watch() -> None:
        users = os.open(folder / "users", os.O_RDWR)
        fcntl.flock(users, fcntl.LOCK_EX)  # each user holds a shared lock, which ends with its process
        server.kill()
        server.wait()
        shutil.rmtree(log.parent / "data", ignore_errors=True)
        (folder / "addresses").unlink(missing_ok=True)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    server.wait()
    watcher.join(timeout=0.5)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
