"""Real controllers with far more creations in flight than are decided in a session of a broker."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

import grpc
import pytest

from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from tests.bench import payloads
from tests.bench.bulk_creation import Broker, Shape, creations, fenced
from tests.bench.http2_client import Connection, header_block, message
from tests.bench.processes import READY_S
from tests.bench.quorate_cluster import QuorateMembers
from tests.integration.quorum import STEADY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from quorate.settings.transport import Transport

SHAPE: Final = Shape(requests=48, in_flight=48, topics=9, partitions=1000, brokers=8)
PATH: Final = "/quorate.controller.v1.Controller/"
TOPIC: Final = "changed"


class Caller:
    """Unary calls of one address, and how many of them are answered."""

    def __init__(self, address: tuple[str, int], source: str) -> None:
        self.connection = Connection(*address, source=source)
        self.connection.calls = self
        self.answers: list[bytes] = []
        self.ended_count = 0

    def call(self, method: str, payload: bytes) -> None:
        stream = self.connection.begin(header_block(PATH + method, self.connection.authority))
        self.connection.send(stream, message(payload), is_last=True)
        self.connection.flush()

    def receive(self) -> None:
        self.connection.receive()
        self.connection.flush()

    def received(self, stream_id: int, data: bytes) -> None:
        self.answers.append(data[5:])

    def ended(self, stream_id: int, *, had_data: bool) -> None:
        assert had_data, "no call is refused"
        self.ended_count += 1


@pytest.fixture
def members(tmp_path: Path, transport: Transport) -> Iterator[QuorateMembers]:
    """Three controllers with the default session of brokers."""
    with QuorateMembers(tmp_path, overrides=STEADY, transport=transport) as members:
        yield members


def test_neither_heartbeats_nor_a_change_wait_behind_creations(members: QuorateMembers) -> None:
    leader = members.leader()
    address = members.address(leader)
    brokers = [
        Broker(address, number, members.quorum.cluster_id) for number in range(1, SHAPE.brokers + 1)
    ]
    with grpc.insecure_channel(f"{address[0]}:{address[1]}") as channel:
        topic = pb.NewTopic(name=TOPIC, partitions=1, replication_factor=1)
        stub = controller_pb2_grpc.ControllerStub(channel)
        stub.CreateTopics(pb.CreateTopics(topics=[topic]), timeout=READY_S)
    creator, changer = Caller(address, "127.0.0.2"), Caller(address, "127.0.0.1")
    make = creations(SHAPE)
    for _ in range(SHAPE.in_flight):
        creator.call("CreateTopics", make())
    created_before = None
    while creator.ended_count < SHAPE.in_flight:
        _take_turn([changer, creator, *brokers])
        for broker in brokers:
            broker.beat_if_due()
        if creator.ended_count and not changer.answers and created_before is None:
            # All creations are there by now, and one is decided.
            change = payloads.config_change(TOPIC, "1000000")
            changer.call("IncrementalAlterConfigs", change.SerializeToString())
            created_before = -1
        if changer.ended_count and created_before == -1:
            created_before = creator.ended_count
    reply = pb.IncrementalAlterConfigsReply.FromString(changer.answers[0])
    assert [resource.error for resource in reply.resources] == [0]
    assert created_before is not None
    assert created_before < SHAPE.in_flight // 2
    for data in creator.answers:
        assert {topic.error for topic in pb.CreateTopicsReply.FromString(data).topics} == {0}
    # Of every controller: another one may have led for a while.
    assert [fenced(("127.0.0.1", node.metrics_port)) for node in members.quorum.nodes] == [0] * 3
    for one in (creator, changer):
        one.connection.close()
    for broker in brokers:
        broker.close()


def _take_turn(callers: list[Caller | Broker]) -> None:
    """Read what is there, in this order; wait a little where there is nothing."""
    by_number = {caller.connection.socket.fileno(): caller for caller in callers}
    readable, _, _ = select.select(list(by_number), [], [], 0.05)
    for number in [number for number in by_number if number in readable]:
        by_number[number].receive()
