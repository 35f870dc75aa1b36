"""Keeps classes of stock Kafka in an archive next to its jars (Java's class data sharing).

Most of the time that a tool or a server of stock Kafka takes to start is for loading classes. With
the archive a server starts in half of that. Java passes an archive over that does not fit.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.records.ids import format_uuid
from quorate.storage.random_ids import draw_uuid
from tests.interop.stock_kafka import StockServer, write_properties
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from tests.interop.stock_kafka import StockKafka


def with_archive(kafka: StockKafka) -> StockKafka:
    """The same with its archive, which is written once for each Java and each folder of jars."""
    archive = kafka.jars / f"classes-{java_id()}.jsa"
    # Workers of one run share the jars: one writes the archive, and the others wait for it.
    with (kafka.jars / "classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            write(kafka, archive)
    return replace(kafka, archive=archive)


def java_id() -> str:
    """Names the installed Java: another one cannot read the archive."""
    java = shutil.which("java")
    assert java is not None, "java is not on the PATH"
    path = Path(java).resolve()
    return hashlib.sha256(f"{path} {path.stat().st_mtime_ns}".encode()).hexdigest()[:12]


def write(kafka: StockKafka, archive: Path) -> None:
    """Run a server to its end: Java then writes the classes that it has loaded."""
    listener = f"CONTROLLER://{HOST}:{free_ports(1)[0]}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        properties = {
            "process.roles": "controller",
            "node.id": 1,
            "log.dirs": folder / "data",
            "listeners": listener,
            "advertised.listeners": listener,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": listener.removeprefix("CONTROLLER://"),
        }
        path = write_properties(folder / "server.properties", properties)
        kafka.format(path, format_uuid(draw_uuid()), "--standalone")
        unfinished = archive.with_suffix(".unfinished")
        with StockServer(kafka, path, f"-XX:ArchiveClassesAtExit={unfinished}") as server:
            assert server.has_started()
            server.stop()
            said = "".join(server.lines)
        assert unfinished.exists(), f"Java has written no archive of its classes: {said}"
        unfinished.replace(archive)
