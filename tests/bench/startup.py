"""Formatting, starting and idling: what an operator waits for, and what runs when nothing does."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.records.ids import UUID_BYTES, format_uuid
from tests.bench.kafka_cluster import KafkaMembers
from tests.bench.processes import READY_S, cpu_s
from tests.bench.quorate_cluster import QuorateMembers

if TYPE_CHECKING:
    from tests.bench.processes import Members

IDLE_S: Final = 20.0


def folder(root: Path, name: str, number: int) -> Path:
    """A new one for each run."""
    path = root / f"{name}-{number}"
    path.mkdir()
    return path


def quorate_formats(root: Path, count: int) -> list[float]:
    """Seconds that `quorate storage format` takes, process and all."""
    times = []
    command = [str(Path(sys.executable).with_name("quorate")), "storage", "format", "--standalone"]
    for number in range(count):
        where = folder(root, "format", number)
        config = where / "controller.properties"
        config.write_text(
            "node.id=1\nprocess.roles=controller\nlisteners=GRPC://127.0.0.1:9094\n"
            "controller.quorum.bootstrap.servers=127.0.0.1:9094\n"
            f"controller.listener.names=GRPC\nmetadata.log.dir={where}/metadata\n",
            encoding="utf-8",
        )
        cluster_id = format_uuid(bytes([65 + number]) * UUID_BYTES)
        began = time.perf_counter()
        subprocess.run(
            [*command, "--config", str(config), "--cluster-id", cluster_id],
            check=True,
            capture_output=True,
            timeout=READY_S,
        )
        times.append(time.perf_counter() - began)
    return times


def kafka_formats(root: Path, jars: Path, count: int) -> list[float]:
    """Seconds that kafka-storage format takes, process and all."""
    times = []
    for number in range(count):
        members = KafkaMembers(folder(root, "kafka-format", number), jars, 1)
        began = time.perf_counter()
        members.format(0)
        times.append(time.perf_counter() - began)
    return times


def quorate_starts(root: Path, count: int) -> list[float]:
    """Seconds from the start of a single controller's process to its being active."""
    return [
        _start(QuorateMembers(folder(root, "start", number), 1), 0.02) for number in range(count)
    ]


def kafka_starts(root: Path, jars: Path, count: int) -> list[float]:
    """The same of Kafka's."""
    times = []
    for number in range(count):
        members = KafkaMembers(folder(root, "kafka-start", number), jars, 1)
        members.format(0)
        times.append(_start(members, 0.02))
    return times


def _start(members: Members, poll_s: float) -> float:
    began = time.perf_counter()
    with members:
        while members.find_leader() is None:
            time.sleep(poll_s)
        return time.perf_counter() - began


def idle(members: Members) -> tuple[list[float], list[float]]:
    """Percent of a core that each member takes with nothing to do, and its MiB in memory."""
    before = {pid: cpu_s(pid) for pid in members.pids}
    began = time.perf_counter()
    time.sleep(IDLE_S)
    elapsed_s = time.perf_counter() - began
    shares = [100 * (cpu_s(pid) - cpu) / elapsed_s for pid, cpu in before.items()]
    return shares, members.rss_mib()
