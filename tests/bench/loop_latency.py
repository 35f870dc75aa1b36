"""The longest turns of the event loop with very many partitions, for which all others wait.

    python -m tests.bench.loop_latency [--topics N] [--partitions N] [--seconds N]

Six brokers with that many topics and partitions: changes of settings alone, while snapshots are
taken, while two brokers are silent together, while one is unregistered. CPU time of the loop's
thread, by callback, on the leader and on the follower that did worst; garbage collection is part of
it, and told. "noise" is what the same few milliseconds of work took at most in another thread of
that process, above their median.
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
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from quorate.rpc.gen.controller.v1 import controller_pb2
from tests.bench import payloads
from tests.bench.commit_load import connect
from tests.bench.http2_client import StreamLoad
from tests.bench.processes import READY_S
from tests.bench.quorate_cluster import QuorateMembers

if TYPE_CHECKING:
    from collections.abc import Callable

BROKERS: Final = 6
REPLICAS: Final = 3
SESSION_MS: Final = 6000
# Where leaders and ISRs of that many partitions have to change, with other work on the machine.
SETTLED_S: Final = 600.0
QUIET_S: Final = 4.0
BEGUN_S: Final = 3 * SESSION_MS / 1000
# Less than what any of the parts below writes.
SNAPSHOT_BYTES: Final = 2_000_000
_IN_FLIGHT: Final = 8
_TURNS_LONG_MS: Final = 20


class TurnedMembers(QuorateMembers):
    """Members that note what each turn of their loops costs."""

    def command(self, member: int) -> list[str]:
        command = super().command(member)
        module = command.index("quorate.server")
        command[module] = "tests.bench.profiled_controller"
        return ["env", f"QUORATE_TURNS={self._noted(member)}", *command]

    def _noted(self, member: int) -> Path:
        return self.root / f"turns-{member}"

    def turns(self, member: int, *, is_over: bool = True) -> dict[str, Any]:
        """The notes of a member since the last look that was over."""
        path = self._noted(member)
        path.unlink(missing_ok=True)
        os.kill(self.pid(member), signal.SIGUSR1 if is_over else signal.SIGUSR2)
        deadline = time.monotonic() + READY_S
        while not path.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} was not written")
            time.sleep(0.01)
        noted: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
        return noted


@dataclass(frozen=True, slots=True)
class Part:
    """The notes of one member in one part of the run."""

    what: str
    who: str
    noted: dict[str, Any]

    def row(self) -> str:
        noted = self.noted
        longest = noted["longest"]
        top, passes, name = longest[0] if longest else (0.0, 0.0, f"none of {LONG_MS:g} ms")
        over = sum(count for millis, count in noted["millis"] if millis >= _TURNS_LONG_MS)
        noise = noted["noise_ms"]
        noisy = max(noise) - median(noise) if noise else 0.0
        return (
            f"| {self.what} | {self.who} | {noted['count']:,} | {noted['sum_ms'] / 1000:.1f} s"
            f" | {top:.1f} ms | {passes:.1f} ms | {over} | {noted['longest_pass_ms']:.1f} ms"
            f" ({noted['longest_pass_objects']:,}) | {noted['most_objects']:,}"
            f" | {noted['passes_ms']:.0f} ms | {noisy:.1f} ms | {name} |"
        )


LONG_MS: Final = 4.0
_HEAD: Final = (
    "| | who | turns | together | longest | of it gc | over 20 ms | longest gc pass (objects)"
    " | most objects | gc together | noise | the longest is |\n|" + 12 * "---|"
)


class Run:
    """One quorum, and what is done to it."""

    def __init__(self, members: TurnedMembers, *, verbose: bool) -> None:
        self.members = members
        self.leader = members.leader()
        self._verbose = verbose
        print(_HEAD)

    def part(self, what: str, work: Callable[[], None]) -> None:
        """Do it, and tell what the leader's turns and those of the worst follower took."""
        for member in range(self.members.count):
            self.members.turns(member)
        begun_s = time.monotonic()
        work()
        took_s = time.monotonic() - begun_s
        noted = {member: self.members.turns(member) for member in range(self.members.count)}
        if self.members.leader() != self.leader:
            print(f"  another leader after: {what}")
            self.leader = self.members.leader()
        leader = noted.pop(self.leader)
        worst = max(noted.values(), key=_longest_ms)
        print(Part(f"{what}, {took_s:.0f} s", "leader", leader).row())
        print(Part("", "follower", worst).row(), flush=True)
        if self._verbose:
            for who, part in (("leader", leader), ("follower", worst)):
                for took, passes, name in part["longest"]:
                    print(f"    {who} {took:.1f} ms, gc {passes:.1f} ms, {name}")

    def write(self, topics: list[str], seconds: float) -> None:
        """Change settings, a few at a time."""
        load = self._load(payloads.config_writes(topics), _IN_FLIGHT)
        load.run(seconds)
        load.finish()

    def create(self, prefix: str, topics: int, partitions: int) -> None:
        """Create topics with three replicas on any brokers."""

        def make(sequence: int) -> bytes:
            topic = controller_pb2.NewTopic(
                name=f"{prefix}-{sequence}", partitions=partitions, replication_factor=REPLICAS
            )
            request = controller_pb2.CreateTopics(topics=[topic])
            message = controller_pb2.WriteRequest(sequence=sequence, create_topics=request)
            return message.SerializeToString()

        load = self._load(make, _IN_FLIGHT)
        while load.answered < topics:
            load.turn(10)
        load.finish()

    def unregister(self, broker_id: int, topics: list[str]) -> None:
        """Unregister a broker, until no partitions of others wait for it either."""

        def make(sequence: int) -> bytes:
            request = controller_pb2.UnregisterBroker(broker_id=broker_id)
            message = controller_pb2.WriteRequest(sequence=sequence, unregister_broker=request)
            return message.SerializeToString()

        self._load(make, 1).finish()
        self.until_settled(topics)

    def until_settled(self, topics: list[str]) -> None:
        """Write a little until nothing has been decided unasked for a few seconds."""
        load = self._load(payloads.config_writes(topics), 1)
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < SETTLED_S:
            load.run(1.0)
            idle_s = self.members.turns(self.leader, is_over=False)["idle_s"]
            if idle_s is None:
                if time.monotonic() - begun_s > BEGUN_S:
                    break
            elif idle_s > QUIET_S:
                break
        else:
            print("  not settled in time")
        load.finish()

    def _load(self, make: Callable[[int], bytes], in_flight: int) -> StreamLoad:
        connections = connect(self.members, self.leader, 1)
        return StreamLoad(connections, payloads.WRITE_PATH, make, payloads.last_write, in_flight)


def _longest_ms(noted: dict[str, Any]) -> float:
    return float(noted["longest"][0][0]) if noted["longest"] else 0.0


class Brokers:
    """Processes that register brokers and keep their heartbeats going."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._command = [str(Path(sys.executable).with_name("quorate")), "brokers"]
        self._command += ["--bootstrap-controller", bootstrap_servers, "register", "--ids"]
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, ids: str) -> None:
        """Start one process for some of them."""
        output = subprocess.DEVNULL
        self._processes.append(
            subprocess.Popen([*self._command, ids], stdout=output, stderr=output)
        )

    def kill(self, number: int) -> None:
        """The brokers of a process fall silent."""
        self._processes[number].kill()
        self._processes[number].wait()

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def measure(root: Path, *, topics: int, partitions: int, seconds: float, verbose: bool) -> None:
    """All parts; prints a table."""
    overrides = {
        "broker.session.timeout.ms": str(SESSION_MS),
        "metadata.log.max.record.bytes.between.snapshots": str(SNAPSHOT_BYTES),
    }
    with TurnedMembers(root, overrides=overrides) as members:
        members.leader()
        brokers = Brokers(members.quorum.bootstrap_servers)
        try:
            # Those of one process fall silent together.
            brokers.start("1-2")
            brokers.start(f"3-{BROKERS}")
            time.sleep(SESSION_MS / 1000)
            run = Run(members, verbose=verbose)
            names = [f"many-{number}" for number in range(1, topics + 1)]
            run.part("creation", lambda: run.create("many", topics, partitions))
            run.part("changes of settings", lambda: run.write(names[:100], seconds))
            brokers.kill(0)
            run.part("two brokers silent together", lambda: run.until_settled(names[:100]))
            run.part("an unregistration", lambda: run.unregister(3, names[:100]))
        finally:
            brokers.end()


def main() -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.loop_latency", description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=10, help="of each topic")
    parser.add_argument("--seconds", type=float, default=10.0, help="of changes of settings")
    parser.add_argument("--verbose", action="store_true", help="more than the longest turn")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quorate-turns-") as folder:
        measure(
            Path(folder),
            topics=arguments.topics,
            partitions=arguments.partitions,
            seconds=arguments.seconds,
            verbose=arguments.verbose,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
