"""A controller with everything it needs, driven without a quorum: what it decides is committed."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.controller.authorization.authorizer import UNLIMITED, Caller
from quorate.controller.brokers.messages import BrokerHeartbeat, Listener, RegisterBroker
from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.reads import answer_in_slices
from quorate.controller.slices import run_to_end
from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Offset, TopicId
from quorate.records.metadata import FeatureLevelRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.authorization.authorizer import Authorizer, Rights
    from quorate.controller.decision import Decision
    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions.partition import Partition
    from quorate.controller.request_types import ReadRequest, WriteRequest
    from quorate.records.metadata import MetadataRecord

CALLER = Caller("User:test")
SLICE = 4


def uuid(number: int) -> bytes:
    return b"\x10" + number.to_bytes(15, "big")


def answer(image: MetadataImage, request: ReadRequest, rights: Rights = UNLIMITED) -> Any:  # noqa: ANN401
    """The reply to a read, each kind of which has its own."""
    return run_to_end(answer_in_slices(image, request, rights))


class Cluster:
    """An active controller; every decision is committed immediately unless asked otherwise."""

    def __init__(
        self,
        *,
        level: int = 30,
        gathers: bool = False,
        new_topic_id: Callable[[], TopicId] | None = None,
        authorizer: Authorizer | None = None,
        **settings: Any,  # noqa: ANN401 - those of ControllerSettings
    ) -> None:
        numbers = itertools.count(1000)
        self.now_ms = 0
        self.controller = Controller(
            ControllerSettings(
                cluster_id=ClusterId("cluster"),
                new_topic_id=new_topic_id or (lambda: TopicId(uuid(next(numbers)))),
                authorizer=authorizer,
                **settings,
            ),
            [FeatureLevelRecord(name="metadata.version", feature_level=level)],
            gathers=gathers,
        )
        self.commit(self.controller.activate(Epoch(1), Offset(0), self.now_ms))
        assert self.controller.expire(self.now_ms) is None

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def commit(self, decision: Decision) -> Decision:
        self.controller.commit(decision.end_offset, timestamp_ms=self.now_ms)
        return decision

    def decide(self, request: WriteRequest, caller: Caller = CALLER) -> Decision:
        return self.commit(self.controller.decide(request, caller, self.now_ms))

    def ask(self, request: WriteRequest, caller: Caller = CALLER) -> Any:  # noqa: ANN401 - each request has its own reply
        return self.decide(request, caller).reply

    def records(self, request: WriteRequest) -> tuple[MetadataRecord, ...]:
        return self.decide(request).records

    def write(self, *records: MetadataRecord) -> None:
        """Have another controller write these; then this one is active again."""
        epoch, base = self.controller.epoch, self.controller.end_offset
        assert epoch is not None
        self.controller.deactivate()
        end = Offset(base + len(records))
        self.controller.replay(
            records, base_offset=base, end_offset=end, epoch=epoch, timestamp_ms=self.now_ms
        )
        self.commit(self.controller.activate(Epoch(epoch + 1), end, self.now_ms))
        self.settle()

    def registration(self, broker_id: int, **changes: object) -> RegisterBroker:
        fields: dict[str, Any] = {
            "incarnation_id": uuid(broker_id),
            "cluster_id": ClusterId("cluster"),
            "listeners": (Listener("PLAINTEXT", "127.0.0.1", 9000 + broker_id),),
            "features": SUPPORTED_FEATURES,
            "log_dirs": (uuid(500 + broker_id),),
        }
        fields.update(changes)
        return RegisterBroker(broker_id=broker_id, **fields)

    def heartbeat(self, broker_id: int, **wishes: object) -> BrokerHeartbeat:
        fields: dict[str, Any] = {
            "broker_epoch": self.image.brokers.by_id[broker_id].registration.broker_epoch,
            "current_metadata_offset": Offset(self.image.position.end_offset - 1),
        }
        fields.update(wishes)
        return BrokerHeartbeat(broker_id=broker_id, **fields)

    def start_brokers(self, *broker_ids: int, **changes: object) -> None:
        """Register brokers and unfence them."""
        for broker_id in broker_ids:
            assert self.ask(self.registration(broker_id, **changes)).error is ErrorCode.NONE
            assert not self.ask(self.heartbeat(broker_id)).is_fenced

    def create(self, name: str, *assignments: tuple[int, ...], **fields: object) -> TopicId:
        """Create a topic with these replicas for each partition."""
        topic = replace(NewTopic(name, assignments=assignments), **fields)  # type: ignore[arg-type]
        reply = self.ask(CreateTopics((topic,)))
        assert reply.topics[0].error is ErrorCode.NONE, reply.topics[0].message
        topic_id: TopicId = reply.topics[0].topic_id
        return topic_id

    def partition(self, name: str, partition_id: int = 0) -> Partition:
        topic = self.image.topics.by_name_or_none(name)
        assert topic is not None
        partition = self.image.topics.partition(topic.topic_id, partition_id)
        assert partition is not None
        return partition

    def settle(self) -> list[tuple[MetadataRecord, ...]]:
        """Decide what is left to decide now, each slice once the last one is committed."""
        slices = []
        while decision := self.controller.expire(self.now_ms):
            slices.append(self.commit(decision).records)
        return slices

    def leading(self, name: str) -> list[tuple[int, tuple[int, ...]]]:
        """Leader and ISR of each partition."""
        topic = self.image.topics.by_name_or_none(name)
        assert topic is not None
        partitions = self.image.topics.partitions_of(topic.topic_id)
        return [(partition.leader, partition.isr) for _, partition in partitions]


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> int:
    """Slices of so many records, for topics that do not fit into one."""
    monkeypatch.setattr("quorate.controller.partitions.leader_isr_sweep.RECORDS_SLICE", SLICE)
    return SLICE


@pytest.fixture
def make_cluster() -> Callable[..., Cluster]:
    return Cluster


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers, unfenced, at time 0."""
    cluster = Cluster()
    cluster.start_brokers(1, 2, 3)
    return cluster
