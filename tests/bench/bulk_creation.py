"""Bulk creation while brokers send heartbeats and a client changes settings.

    python -m tests.bench.bulk_creation [--requests 192] [--in-flight 64] [--topics 9]
                                        [--partitions 1000] [--brokers 100] [--transport h2]

A client at 127.0.0.2 keeps requests in flight, each of which creates topics on three brokers each.
Brokers have an address each from 127.0.1.1 on, and send a heartbeat every two seconds. A client at
127.0.0.1 commits twenty changes of a setting a second (tests/bench/neighbour.py). Printed are the
brokers that were fenced, the median and the longest time of a change, the longest turn of the
leader's event loop (as tests/bench/fairness.py measures it), how fast partitions were made and the
leader's CPU time for each. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import itertools
import re
import select
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc

from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.settings.transport import Transport
from tests.bench.client_loads import registration
from tests.bench.fairness import TickedMembers
from tests.bench.http2_client import Connection, UnaryLoad, header_block, message
from tests.bench.neighbour import Neighbour
from tests.bench.processes import READY_S, cpu_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REPLICAS: Final = 3
HEARTBEAT_S: Final = 2.0
_SERVICE: Final = "/quorate.controller.v1.Controller/"
_CREATOR: Final = "127.0.0.2"
_TOPIC: Final = "neighbour"
_FENCED: Final = re.compile(r"^\S*timed_out_broker_heartbeats_total\S* (\S+)$", re.M)


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a run: of the creation, and of those who look on."""

    requests: int = 192
    in_flight: int = 64
    topics: int = 9
    partitions: int = 1000
    brokers: int = 100


class Broker:
    """One broker with an address of its own, which sends heartbeats and reads the answers."""

    def __init__(self, address: tuple[str, int], number: int, cluster_id: str) -> None:
        with grpc.insecure_channel(f"{address[0]}:{address[1]}") as channel:
            stub = controller_pb2_grpc.ControllerStub(channel)
            reply = stub.RegisterBroker(registration(number, cluster_id), timeout=READY_S)
            beat = pb.BrokerHeartbeat(
                broker_id=number,
                broker_epoch=reply.broker_epoch,
                current_metadata_offset=reply.broker_epoch,
            )
            stub.BrokerHeartbeat(beat, timeout=READY_S)
        self.connection = Connection(*address, source=f"127.0.1.{number}")
        self.connection.calls = self
        self._block = header_block(f"{_SERVICE}BrokerHeartbeat", self.connection.authority)
        self._message = message(beat.SerializeToString())
        self._is_waiting = False
        self._next_s = time.monotonic() + HEARTBEAT_S * (number % 100) / 100

    def beat_if_due(self) -> None:
        """Send the next one, unless the last one is not answered: as brokers do."""
        if time.monotonic() < self._next_s:
            return
        self._next_s += HEARTBEAT_S
        if not self._is_waiting:
            self._is_waiting = True
            stream = self.connection.begin(self._block)
            self.connection.send(stream, self._message, is_last=True)
            self.connection.flush()

    def receive(self) -> None:
        self.connection.receive()
        self.connection.flush()

    def received(self, stream_id: int, data: bytes) -> None: ...

    def ended(self, stream_id: int, *, had_data: bool) -> None:
        self._is_waiting = False

    def close(self) -> None:
        self.connection.close()


class Beside:
    """All clients but the neighbour, which has them take their turns."""

    def __init__(self, load: UnaryLoad, brokers: Sequence[Broker], requests: int) -> None:
        self._load = load
        self._brokers = {broker.connection.socket.fileno(): broker for broker in brokers}
        self._requests = requests
        self._poll = _polled(self._brokers)

    def is_over(self) -> bool:
        """True once all is created; until then each client has a turn."""
        for broker in self._brokers.values():
            broker.beat_if_due()
        for number, _ in self._poll.poll(0):
            self._brokers[number].receive()
        self._load.turn(0)
        load = self._load
        if load.answered + load.in_flight >= self._requests:
            load.is_open = False
        return not load.in_flight


def _polled(numbers: Sequence[int] | dict[int, Broker]) -> select.epoll:
    poll = select.epoll()
    for number in numbers:
        poll.register(number, select.EPOLLIN)
    return poll


def creations(shape: Shape) -> Callable[[], bytes]:
    """CreateTopics, each with names of its own."""
    numbers = itertools.count()

    def make() -> bytes:
        request = next(numbers)
        topics = [
            pb.NewTopic(
                name=f"bulk-{request}-{topic}",
                partitions=shape.partitions,
                replication_factor=REPLICAS,
            )
            for topic in range(shape.topics)
        ]
        return pb.CreateTopics(topics=topics).SerializeToString()

    return make


def fenced(metrics: tuple[str, int]) -> int:
    """The number of brokers that this leader has fenced for their silence."""
    with urllib.request.urlopen(f"http://{metrics[0]}:{metrics[1]}/metrics") as answer:
        found = _FENCED.search(answer.read().decode())
    assert found is not None, "the leader tells of it"
    return int(float(found[1]))


def measure(root: Path, shape: Shape, transport: Transport) -> None:
    """Measure and print."""
    with TickedMembers(root, transport=transport) as members:
        leader = members.leader()
        address, node = members.address(leader), members.quorum.nodes[leader]
        brokers = [
            Broker(address, number, members.quorum.cluster_id)
            for number in range(1, shape.brokers + 1)
        ]
        with grpc.insecure_channel(f"{address[0]}:{address[1]}") as channel:
            topic = pb.NewTopic(name=_TOPIC, partitions=1, replication_factor=REPLICAS)
            stub = controller_pb2_grpc.ControllerStub(channel)
            stub.CreateTopics(pb.CreateTopics(topics=[topic]), timeout=READY_S)
        neighbour = Neighbour(members, leader, _TOPIC)
        members.longest_turn_ms(leader)
        used_s, begun_s = cpu_s(members.pid(leader)), time.monotonic()
        connection = Connection(*address, source=_CREATOR)
        load = UnaryLoad([connection], f"{_SERVICE}CreateTopics", creations(shape), shape.in_flight)
        try:
            service = neighbour.run(Beside(load, brokers, shape.requests).is_over)
            took_s = time.monotonic() - begun_s
            used_s = cpu_s(members.pid(leader)) - used_s
            turn_ms, passes_ms = members.longest_turn_ms(leader)
            count = fenced((address[0], node.metrics_port))
            is_same = members.leader() == leader
        finally:
            load.finish()
            neighbour.close()
            for broker in brokers:
                broker.close()
    made = load.answered * shape.topics * shape.partitions
    print(f"{made:,} partitions in {load.answered} requests, {shape.in_flight} in flight")
    print(f"  {made / took_s:,.0f} a second, {used_s / made * 1e6:.1f} us of the leader's CPU each")
    print(f"  fenced brokers: {count} of {shape.brokers}")
    print(
        f"  a change of a setting: p50 {service.p50_ms:,.1f} ms, longest {service.max_ms:,.0f} ms"
    )
    print(f"  {service.committed} committed, {service.refused} refused")
    print(f"  longest turn {turn_ms:.0f} ms, {passes_ms:.0f} ms of it garbage collection")
    print(f"  the leader {'stayed' if is_same else 'LOST'}", flush=True)


def run(root: Path) -> None:
    """Measure and print, with what is usual."""
    folder = root / "bulk-creation"
    folder.mkdir()
    measure(folder, Shape(), Transport.H2)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.bulk_creation", description=__doc__
    )
    plain = Shape()
    parser.add_argument("--requests", type=int, default=plain.requests)
    parser.add_argument("--in-flight", type=int, default=plain.in_flight)
    parser.add_argument("--topics", type=int, default=plain.topics, help="of a request")
    parser.add_argument("--partitions", type=int, default=plain.partitions, help="of a topic")
    parser.add_argument("--brokers", type=int, default=plain.brokers, help="at most 254")
    parser.add_argument("--transport", type=Transport, default=Transport.H2)
    parser.add_argument("--data-dir", type=Path, help="on the disk to measure; else a new folder")
    given = parser.parse_args(words)
    shape = Shape(given.requests, given.in_flight, given.topics, given.partitions, given.brokers)
    with tempfile.TemporaryDirectory(prefix="quorate-bench-", dir=given.data_dir) as folder:
        measure(Path(folder), shape, given.transport)
    return 0


if __name__ == "__main__":
    sys.exit(main())
