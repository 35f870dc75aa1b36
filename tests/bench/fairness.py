"""A well-behaved client next to an abusive one: the service that it gets, and the leaders.

    python -m tests.bench.fairness [--load NAME] [--connections 1,10,100] [--transport h2]
                                   [--seconds 6] [--target leader|all]

Each measurement has a quorum of its own. A neighbour at 127.0.0.1 commits twenty writes a second;
a client at 127.0.0.2 runs one load (tests/bench/floods.py, tests/bench/client_loads.py) against the
leader, or against all three. A line tells the neighbour's median and longest latency and its
longest time without a commit, the longest turn of the leader's event loop (CPU time of its thread
between two ticks of 2 ms) and the garbage collector's part of it, the leader's largest resident
memory, how much the client got, and whether the leader stayed. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc

from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.settings.transport import Transport
from tests.bench.attacker import HEALTH_LOADS, LATE_S, LOADS, SECONDS_MAX
from tests.bench.client_loads import PARTITIONS, TOPICS, registration, topic_name
from tests.bench.neighbour import Neighbour
from tests.bench.processes import READY_S, rss_mib
from tests.bench.quorate_cluster import QuorateMembers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.bench.neighbour import Service

QUIET: Final = "quiet"
CONNECTIONS: Final = (1, 10, 100)
SECONDS: Final = 6.0
ATTACKER: Final = "127.0.0.2"
BROKER: Final = 1
_TOPIC: Final = "neighbour"
_WARM_S: Final = 0.5
# Connections that are closed together cost a turn, too.
_AFTER_S: Final = 1.0
_SAMPLE_S: Final = 0.1
_COLUMNS: Final = (
    ("load", 24),
    ("connections", 11),
    ("transport", 9),
    ("p50 ms", 8),
    ("max ms", 8),
    ("gap ms", 8),
    ("turn ms", 8),
    ("of it GC", 8),
    ("RSS MiB", 7),
    ("answers/s", 9),
    ("refused/s", 9),
    ("MB/s", 6),
    ("ended", 6),
    ("leader", 6),
)


class TickedMembers(QuorateMembers):
    """Members that measure the longest turn of their event loops."""

    def command(self, member: int) -> list[str]:
        command = super().command(member)
        command[command.index("quorate.server")] = "tests.bench.loop_latency_controller"
        return ["env", f"QUORATE_TURNS={self._noted(member)}", *command]

    def _noted(self, member: int) -> Path:
        return self.root / f"turns-{self.name}-{member}"

    def longest_turn_ms(self, member: int) -> tuple[float, float]:
        """The longest turn since the last look, and how much of it was garbage collection."""
        path = self._noted(member)
        path.unlink(missing_ok=True)
        os.kill(self.pid(member), signal.SIGUSR1)
        deadline = time.monotonic() + READY_S
        while not path.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} was not written")
            time.sleep(0.01)
        turn_ms, passes_ms = path.read_text(encoding="ascii").split()
        return float(turn_ms), float(passes_ms)

    def epoch(self) -> int:
        """The newest epoch that a member knows."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            answers = [self.describe(member) for member in range(self.count)]
            epochs = [a.current_leader.leader_epoch for a in answers if a is not None]
            if epochs:
                return max(epochs)
        raise TimeoutError(f"no member answers; see {self.root}")


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement."""

    load: str
    connections: int
    transport: Transport


class Attack:
    """The processes of one load, one for each controller that is attacked."""

    def __init__(
        self, case: Case, members: TickedMembers, targets: Sequence[int], *, seconds: float
    ) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._least_s = self._late_s = 0.0
        self._seconds = seconds
        if case.load == QUIET:
            return
        for member in targets:
            host, port = members.address(member)
            if case.load in HEALTH_LOADS:
                port = members.quorum.nodes[member].health_port
            command = [sys.executable, "-m", "tests.bench.attacker", case.load, host, str(port)]
            command += ["--connections", str(case.connections), "--seconds", str(seconds)]
            command += ["--source", ATTACKER, "--waits"]
            self._processes.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )

    def begin(self) -> None:
        """All of them begin together."""
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        self._least_s = time.monotonic() + self._seconds
        self._late_s = self._least_s + LATE_S

    def is_over(self) -> bool:
        """True if all processes have ended, or should have long ago."""
        now_s = time.monotonic()
        if now_s < self._least_s:
            return False
        return now_s > self._late_s or all(p.poll() is not None for p in self._processes)

    def end(self) -> dict[str, float]:
        """The sums of what they sent and got, by name; what is late is killed."""
        sums: dict[str, float] = {}
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            output, _ = process.communicate()
            for line in output.splitlines():
                for name, value in json.loads(line).items():
                    sums[name] = sums.get(name, 0) + value
        return sums


def measure(root: Path, case: Case, *, seconds: float, everyone: bool = False) -> list[str]:
    """The cells of one line."""
    with TickedMembers(root, transport=case.transport) as members:
        leader = members.leader()
        _prepare(members, leader, has_topics=case.load == "reads")
        targets = list(range(members.count)) if everyone else [leader]
        attack = Attack(case, members, targets, seconds=seconds)
        neighbour = Neighbour(members, leader, _TOPIC)
        try:
            neighbour.run(_until(time.monotonic() + _WARM_S))
            epoch = members.epoch()
            members.longest_turn_ms(leader)
            sampler = _Sampler(members.pid(leader), attack)
            attack.begin()
            service = neighbour.run(sampler.is_over)
        finally:
            neighbour.close()
            got = attack.end()
        turn_ms = members.longest_turn_ms(leader)
        stayed = members.epoch() == epoch
    return _cells(case, service, turn_ms, sampler.rss_mib, got, stayed=stayed)


class _Sampler:
    """Looks at the leader's memory while the neighbour asks whether the attack is over."""

    def __init__(self, pid: int, attack: Attack) -> None:
        self.rss_mib = 0.0
        self._pid = pid
        self._attack = attack
        self._next_s = 0.0
        self._end_s: float | None = None

    def is_over(self) -> bool:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self.rss_mib = max(self.rss_mib, rss_mib(self._pid))
            self._next_s = now_s + _SAMPLE_S
            if self._end_s is None and self._attack.is_over():
                self._end_s = now_s + _AFTER_S
        return self._end_s is not None and now_s >= self._end_s


def _until(end_s: float) -> Callable[[], bool]:
    return lambda: time.monotonic() >= end_s


def _prepare(members: TickedMembers, leader: int, *, has_topics: bool) -> None:
    """Register a broker, and create the topics that are written and read."""
    host, port = members.address(leader)
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        stub = controller_pb2_grpc.ControllerStub(channel)
        request = registration(BROKER, members.quorum.cluster_id)
        epoch = stub.RegisterBroker(request, timeout=READY_S).broker_epoch
        beat = pb.BrokerHeartbeat(
            broker_id=BROKER, broker_epoch=epoch, current_metadata_offset=epoch
        )
        stub.BrokerHeartbeat(beat, timeout=READY_S)
        topics = {_TOPIC: 1}
        if has_topics:
            topics |= {topic_name(number): PARTITIONS for number in range(TOPICS)}
        for name, partitions in topics.items():
            topic = pb.NewTopic(name=name, partitions=partitions, replication_factor=1)
            reply = stub.CreateTopics(pb.CreateTopics(topics=[topic]), timeout=READY_S)
            if reply.topics[0].error:
                raise RuntimeError(f"topic {name}: {reply.topics[0].message}")


def _cells(
    case: Case,
    service: Service,
    turn_ms: tuple[float, float],
    rss: float,
    got: dict[str, float],
    *,
    stayed: bool,
) -> list[str]:
    took_s = got.get("took_s", 0.0)
    per_s = {name: value / took_s for name, value in got.items()} if took_s else {}
    return [
        case.load,
        str(case.connections),
        str(case.transport),
        f"{service.p50_ms:,.1f}",
        f"{service.max_ms:,.0f}",
        f"{service.gap_ms:,.0f}",
        *(f"{each:,.0f}" for each in turn_ms),
        f"{rss:,.0f}",
        f"{per_s.get('answers', 0):,.0f}",
        f"{per_s.get('refusals', 0) + per_s.get('resets', 0):,.0f}",
        f"{per_s.get('sent_bytes', 0) / 1e6:.1f}",
        f"{got.get('ended', 0):,.0f}",
        "stayed" if stayed else "LOST",
    ]


def run(
    root: Path,
    *,
    loads: Sequence[str] = LOADS,
    connections: Sequence[int] = CONNECTIONS,
    transports: Sequence[Transport] = (Transport.H2, Transport.GRPCIO),
    seconds: float = SECONDS,
    everyone: bool = False,
) -> None:
    """Measure and print: without an attacker first, then each load on each transport."""
    print(_line([name for name, _ in _COLUMNS]))
    print("|" + "|".join("-" * (width + 2) for _, width in _COLUMNS) + "|", flush=True)
    cases = [Case(QUIET, 0, transport) for transport in transports]
    cases += [
        Case(load, count, transport)
        for load in loads
        for count in connections
        for transport in transports
    ]
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="fairness-", dir=root) as folder:
            try:
                cells = measure(Path(folder), case, seconds=seconds, everyone=everyone)
            except (OSError, grpc.RpcError, RuntimeError) as error:
                # One quorum that did not come up leaves the other measurements as they are.
                print(f"{case} was not measured: {error}", flush=True)
            else:
                print(_line(cells), flush=True)


def _line(cells: Sequence[str]) -> str:
    padded = [
        cell.ljust(width) if at == 0 else cell.rjust(width)
        for at, (cell, (_, width)) in enumerate(zip(cells, _COLUMNS, strict=True))
    ]
    return "| " + " | ".join(padded) + " |"


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fairness", description=__doc__)
    parser.add_argument(
        "--load", action="append", choices=LOADS, help="may be given again (default all)"
    )
    parser.add_argument(
        "--connections", default="1,10,100", help="of the client (default 1,10,100)"
    )
    parser.add_argument(
        "--transport", default="h2,grpcio", help="h2, grpcio or both (default both)"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a load (default 6)")
    parser.add_argument("--target", choices=("leader", "all"), default="leader")
    parser.add_argument("--data-dir", type=Path, help="on the disk to measure; else a new folder")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="quorate-bench-", dir=arguments.data_dir) as folder:
        run(
            Path(folder),
            loads=arguments.load or LOADS,
            connections=[int(count) for count in arguments.connections.split(",")],
            transports=[Transport(name) for name in arguments.transport.split(",")],
            seconds=min(arguments.seconds, SECONDS_MAX),
            everyone=arguments.target == "all",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
