from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from immutables import Map

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.brokers.messages import BrokerHeartbeatReply, UnregisterBroker
from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings, Decision
from quorate.controller.errors import NotActiveError
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.slices import run_to_end
from quorate.controller.topics.messages import (
    CreateTopics,
    DeleteTopics,
    ListTopics,
    ListTopicsReply,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Offset, TopicId
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.records.metadata import MetadataRecord
    from tests.unit.controller.conftest import Cluster

CALLER = Caller("User:test")
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)
MIN_ISR = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1")


def uuid(number: int) -> bytes:
    return b"\x10" + number.to_bytes(15, "big")


def controller_of(*bootstrap: MetadataRecord, image: MetadataImage | None = None) -> Controller:
    settings = ControllerSettings(
        cluster_id=ClusterId("cluster"), new_topic_id=lambda: TopicId(uuid(1))
    )
    return Controller(settings, bootstrap or (LEVEL,), image)


def replay(
    controller: Controller, records: Sequence[MetadataRecord], *, count: int | None = None
) -> None:
    base = controller.end_offset
    controller.replay(
        records,
        base_offset=base,
        end_offset=Offset(base + (len(records) if count is None else count)),
        epoch=Epoch(1),
        timestamp_ms=5,
    )


def activate(controller: Controller, epoch: int = 2, now_ms: int = 0) -> Decision:
    return controller.activate(Epoch(epoch), controller.end_offset, now_ms)


def create(name: str) -> CreateTopics:
    return CreateTopics((NewTopic(name, 1, 1),))


# --- becoming active ------------------------------------------------------------------------------


def test_the_first_active_controller_writes_the_bootstrap_metadata() -> None:
    controller = controller_of(LEVEL, MIN_ISR)
    replay(controller, [], count=3)
    decision = activate(controller)
    assert decision == Decision(
        values=decision.values,
        reply=None,
        base_offset=Offset(3),
        end_offset=Offset(5),
    )
    assert decision.records == (LEVEL, MIN_ISR)
    assert controller.is_active
    assert controller.epoch == 2
    assert controller.image.features == Map()
    controller.commit(Offset(5), timestamp_ms=70)
    assert controller.image.position == LogPosition(Offset(5), Epoch(2), 70)
    assert controller.image.features == Map({"metadata.version": 30})


def test_a_log_that_has_its_metadata_version_is_not_bootstrapped_again() -> None:
    controller = controller_of(LEVEL)
    replay(controller, [FeatureLevelRecord(name="metadata.version", feature_level=25)])
    decision = activate(controller)
    assert (decision.records, decision.base_offset, decision.end_offset) == ((), 1, 1)


def test_bootstrap_metadata_without_a_metadata_version_gets_the_newest() -> None:
    controller = controller_of(MIN_ISR)
    assert activate(controller).records == (LEVEL, MIN_ISR)


def test_a_controller_that_has_not_replayed_everything_cannot_become_active() -> None:
    controller = controller_of()
    with pytest.raises(NotActiveError, match=r"^replayed up to 0, and the log goes on at 3$"):
        controller.activate(Epoch(1), Offset(3), 0)
    assert not controller.is_active


@pytest.mark.rule("lossless_replay")
@pytest.mark.parametrize("before", [[], [LEVEL]])
def test_a_transaction_left_open_is_aborted_first(before: list[MetadataRecord]) -> None:
    controller = controller_of(LEVEL)
    replay(controller, [*before, BeginTransactionRecord(), MIN_ISR])
    assert controller.is_in_transaction
    assert controller.image.position.end_offset == len(before)
    decision = activate(controller)
    abort = AbortTransactionRecord(reason="a new controller became active")
    assert decision.records == ((abort,) if before else (abort, LEVEL))
    controller.commit(decision.end_offset, timestamp_ms=0)
    assert not controller.is_in_transaction
    assert controller.image.configs.by_owner == Map()
    standby = controller_of(LEVEL)
    replay(standby, [*before, BeginTransactionRecord(), MIN_ISR, *decision.records])
    assert standby.image.features == controller.image.features == Map({"metadata.version": 30})


def test_brokers_get_a_whole_session_from_a_new_active_controller(cluster: Cluster) -> None:
    controller = cluster.controller
    controller.deactivate()
    assert controller.wake_at_ms is None
    activate(controller, now_ms=20_000)
    assert controller.expire(28_999) is None
    assert controller.wake_at_ms == 29_000
    controller.reset_timers(25_000)
    assert controller.wake_at_ms == 34_000


def fenced_behind_its_back(cluster: Cluster, broker_id: int) -> Controller:
    """A controller that becomes active after a batch that fenced a broker and did no more."""
    epoch = cluster.image.brokers.by_id[broker_id].registration.broker_epoch
    fence = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1)
    successor = controller_of(image=cluster.image)
    replay(successor, [fence])
    activate(successor, epoch=3)
    return successor


def test_what_a_predecessor_left_undone_is_done_by_the_next(cluster: Cluster) -> None:
    topic_id = cluster.create("a", (1, 2))
    successor = fenced_behind_its_back(cluster, 1)
    assert successor.wake_at_ms == 0
    decision = successor.expire(0)
    assert decision is not None
    assert decision.records == (
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=(2,)),
    )
    assert successor.expire(0) is None


def test_what_was_left_undone_is_done_in_slices(cluster: Cluster, short_slices: int) -> None:
    for name in ("a", "b"):
        cluster.create(name, *[(1, 2)] * (short_slices + 1))
    successor = fenced_behind_its_back(cluster, 1)
    sizes = []
    while decision := successor.expire(0):
        sizes.append(len(decision.records))
    assert sizes == [short_slices, short_slices, 2]
    assert successor.wake_at_ms == 9000


# --- deciding ahead of the commit -----------------------------------------------------------------


def test_decisions_see_what_was_decided_before_and_readers_do_not(cluster: Cluster) -> None:
    controller = cluster.controller
    before = controller.image
    first = controller.decide(create("a"), CALLER, 0)
    second = controller.decide(create("a"), CALLER, 0)
    assert first.end_offset == second.base_offset == second.end_offset
    assert second.reply.topics[0].error is ErrorCode.TOPIC_ALREADY_EXISTS  # type: ignore[union-attr]
    assert controller.image is before
    listed = run_to_end(controller.answer_in_slices(ListTopics(), CALLER))
    assert listed == ListTopicsReply(before.position.end_offset, ())
    controller.commit(first.end_offset, timestamp_ms=1)
    assert controller.image.topics.by_name_or_none("a") is not None


def test_a_decision_on_what_may_not_commit_waits_for_it(cluster: Cluster) -> None:
    deletion = cluster.controller.decide(UnregisterBroker(3), CALLER, 0)
    heartbeat = cluster.controller.decide(cluster.heartbeat(3), CALLER, 0)
    assert isinstance(heartbeat.reply, BrokerHeartbeatReply)
    assert heartbeat.reply.error is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert heartbeat.end_offset == deletion.end_offset


def test_a_commit_shows_the_decisions_that_lie_wholly_below(cluster: Cluster) -> None:
    controller = cluster.controller
    ends = [controller.decide(create(name), CALLER, 0).end_offset for name in ("a", "b", "c")]
    seen = []
    for end_offset in (ends[0] - 1, ends[0], ends[2] - 1, ends[2], ends[2]):
        controller.commit(Offset(end_offset), timestamp_ms=end_offset)
        position = controller.image.position
        seen.append((sorted(controller.image.topics.ids), position.end_offset))
    start = ends[0] - 2
    assert seen == [
        ([], start),
        (["a"], ends[0]),
        (["a", "b"], ends[1]),
        (["a", "b", "c"], ends[2]),
        (["a", "b", "c"], ends[2]),
    ]


def test_the_committed_image_of_the_active_controller_is_what_a_standby_replays(
    cluster: Cluster,
) -> None:
    standby = controller_of(image=cluster.image)
    for request in (
        create("a"),
        cluster.heartbeat(2, want_fence=True),
        create("b"),
        UnregisterBroker(1),
        DeleteTopics(("a",)),
    ):
        decision = cluster.decide(request)
        standby.replay(
            [decode_record(value)[0] for value in decision.values],
            base_offset=decision.base_offset,
            end_offset=decision.end_offset,
            epoch=Epoch(1),
            timestamp_ms=cluster.now_ms,
        )
        assert standby.image == cluster.image


def test_offsets_go_on_behind_what_others_append(cluster: Cluster) -> None:
    controller = cluster.controller
    end = controller.end_offset
    controller.advance(Offset(end + 2))
    decision = controller.decide(create("a"), CALLER, 0)
    assert decision.base_offset == end + 2
    controller.commit(Offset(end + 2), timestamp_ms=3)
    assert controller.image.position == LogPosition(Offset(end + 2), Epoch(1), 3)
    registration = controller.decide(cluster.registration(7), CALLER, 0)
    assert registration.reply.broker_epoch == decision.end_offset  # type: ignore[union-attr]


def test_losing_leadership_drops_what_was_not_committed(cluster: Cluster) -> None:
    controller = cluster.controller
    before = controller.image
    lost = controller.decide(create("lost"), CALLER, 0)
    controller.deactivate()
    assert (controller.is_active, controller.epoch) == (False, None)
    assert controller.image is before
    replay(controller, [FeatureLevelRecord(name="group.version", feature_level=1)])
    assert controller.end_offset == lost.base_offset + 1
    decision = activate(controller, epoch=2)
    assert decision.base_offset == lost.base_offset + 1
    again = controller.decide(create("lost"), CALLER, 0)
    assert again.reply.topics[0].error is ErrorCode.NONE  # type: ignore[union-attr]


def test_who_is_not_active_decides_nothing(cluster: Cluster) -> None:
    controller = cluster.controller
    with pytest.raises(NotActiveError, match="it replays nothing"):
        replay(controller, [LEVEL])
    controller.deactivate()
    calls: list[Callable[[], object]] = [
        lambda: controller.decide(create("a"), CALLER, 0),
        lambda: controller.expire(0),
        lambda: controller.advance(Offset(99)),
        lambda: controller.commit(Offset(99), timestamp_ms=0),
        lambda: controller.reset_timers(0),
    ]
    for call in calls:
        with pytest.raises(NotActiveError, match="this controller is not active"):
            call()


def test_a_snapshot_takes_the_place_of_everything(cluster: Cluster) -> None:
    position = LogPosition(Offset(500), Epoch(4), 9)
    cluster.controller.load(MetadataImage(position=position))
    assert not cluster.controller.is_active
    assert cluster.controller.image == MetadataImage(position=position)
    assert cluster.controller.end_offset == 500


def test_the_bytes_of_a_decision_are_those_of_its_records(cluster: Cluster) -> None:
    decision = cluster.decide(create("a"))
    assert [type(record) for record in decision.records] == [TopicRecord, PartitionRecord]
    assert [decode_record(value) for value in decision.values] == [
        (decision.records[0], 0),
        (decision.records[1], 2),
    ]


def test_transactions_replay_through_the_controller() -> None:
    controller = controller_of()
    replay(controller, [LEVEL, BeginTransactionRecord(), MIN_ISR])
    assert (controller.end_offset, controller.image.position.end_offset) == (3, 1)
    replay(controller, [EndTransactionRecord()])
    assert controller.image.configs.of((4, "")) == Map({"min.insync.replicas": "1"})
    assert not controller.is_in_transaction


def test_nothing_is_committed_that_nobody_decided_here() -> None:
    controller = controller_of()
    decision = controller.activate(Epoch(1), Offset(0), now_ms=0)
    with pytest.raises(AssertionError, match="decided here"):
        controller.commit(Offset(decision.end_offset + 1), timestamp_ms=0)
