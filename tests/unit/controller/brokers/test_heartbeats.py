from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.brokers import heartbeats
from quorate.controller.brokers.messages import BrokerHeartbeatReply
from quorate.controller.slices import run_to_end
from quorate.controller.topics.messages import DeleteTopics
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset
from quorate.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)
from tests.unit.controller.conftest import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.request_types import Sender
    from tests.unit.controller.conftest import Cluster


def change(
    cluster: Cluster, broker_id: int, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=cluster.image.brokers.by_id[broker_id].registration.broker_epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )


def keep_alive(cluster: Cluster, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        cluster.ask(cluster.heartbeat(broker_id))


def heard(cluster: Cluster, broker_id: int, now_ms: int) -> Sender:
    """A heartbeat of that broker comes; whose it is."""
    sender = cluster.controller.hear(cluster.heartbeat(broker_id), CALLER, now_ms)
    assert sender is not None
    return sender


def test_a_broker_that_is_not_registered_is_told_to_register(cluster: Cluster) -> None:
    heartbeat = cluster.heartbeat(1)
    unknown = type(heartbeat)(broker_id=9, broker_epoch=1, current_metadata_offset=Offset(0))
    assert cluster.ask(unknown) == BrokerHeartbeatReply(
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "No broker is registered with the id 9; register it first.",
    )


def test_an_old_process_is_told_that_another_took_its_place(cluster: Cluster) -> None:
    epoch = cluster.image.brokers.by_id[1].registration.broker_epoch
    assert cluster.ask(cluster.heartbeat(1, broker_epoch=epoch - 1)) == BrokerHeartbeatReply(
        ErrorCode.STALE_BROKER_EPOCH,
        f"Broker 1 is registered with epoch {epoch}, not {epoch - 1}: another process took its"
        " place; register again.",
    )


def test_a_broker_is_unfenced_once_it_has_replayed_its_registration(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    cluster.ask(cluster.registration(1))
    offset = cluster.image.brokers.by_id[1].offset
    behind = cluster.decide(cluster.heartbeat(1, current_metadata_offset=Offset(offset - 1)))
    assert (behind.records, behind.reply) == ((), BrokerHeartbeatReply(is_caught_up=False))
    waiting = cluster.decide(cluster.heartbeat(1, want_fence=True))
    assert (waiting.records, waiting.reply) == ((), BrokerHeartbeatReply(is_caught_up=True))
    ready = cluster.decide(cluster.heartbeat(1))
    assert ready.records == (change(cluster, 1, fenced=-1),)
    assert ready.reply == BrokerHeartbeatReply(is_caught_up=True, is_fenced=False)
    again = cluster.decide(cluster.heartbeat(1))
    assert (again.records, again.reply) == ((), ready.reply)


def test_partitions_that_waited_for_a_broker_get_it_as_leader(cluster: Cluster) -> None:
    topic_id = cluster.create("a", (1,), (2,))
    fenced = cluster.decide(cluster.heartbeat(1, want_fence=True))
    assert fenced.reply == BrokerHeartbeatReply(is_caught_up=True, is_fenced=True)
    assert fenced.records == (
        change(cluster, 1, fenced=1),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=-1),
    )
    assert cluster.records(cluster.heartbeat(1)) == (
        change(cluster, 1, fenced=-1),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1),
    )
    assert cluster.leading("a") == [(1, (1,)), (2, (2,))]


def test_a_broker_that_is_silent_for_its_session_is_fenced_and_led_around(
    cluster: Cluster,
) -> None:
    topic_id = cluster.create("a", (1, 2), (3, 1))
    cluster.now_ms = 5000
    keep_alive(cluster, 2, 3)
    assert cluster.controller.wake_at_ms == 9000
    assert cluster.controller.expire(8999) is None
    assert cluster.controller.counted == {"timed_out_broker_heartbeats_total": 0}
    decision = cluster.controller.expire(9000)
    assert cluster.controller.counted == {"timed_out_broker_heartbeats_total": 1}
    assert decision is not None
    assert decision.reply is None
    assert decision.records == (
        change(cluster, 1, fenced=1),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=(2,)),
        PartitionChangeRecord(partition_id=1, topic_id=topic_id, isr=(3,)),
    )
    assert cluster.controller.expire(9000) is None
    assert cluster.controller.wake_at_ms == 14000


def test_brokers_that_went_silent_together_are_fenced_together(cluster: Cluster) -> None:
    """None of them is given what another one led."""
    cluster.create("a", (1, 2, 3))
    cluster.create("b", (2, 1))
    cluster.now_ms = 5000
    keep_alive(cluster, 3)
    decision = cluster.controller.expire(9000)
    assert decision is not None
    cluster.commit(decision)
    assert decision.records[:2] == (change(cluster, 1, fenced=1), change(cluster, 2, fenced=1))
    assert cluster.leading("a") == [(3, (3,))]
    assert cluster.leading("b") == [(-1, (2, 1))]
    assert cluster.controller.expire(9000) is None


def test_no_more_brokers_are_fenced_together_than_a_turn_can_bear(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "FENCE_BATCH_MAX", 2)
    cluster.now_ms = 9000
    assert [len(records) for records in cluster.settle()] == [2, 1]
    assert cluster.controller.expire(2 * cluster.now_ms) is None


def test_unfencing_that_does_not_fit_into_a_slice_goes_on_in_the_next(
    cluster: Cluster, short_slices: int
) -> None:
    cluster.create("a", *[(1,)] * short_slices)
    cluster.create("b", (1,))
    cluster.ask(cluster.heartbeat(1, want_fence=True))
    assert cluster.controller.wake_at_ms == 0
    cluster.settle()
    assert {leader for leader, _ in cluster.leading("a") + cluster.leading("b")} == {-1}
    assert len(cluster.records(cluster.heartbeat(1))) == 1 + short_slices
    cluster.settle()
    assert {leader for leader, _ in cluster.leading("a") + cluster.leading("b")} == {1}


def test_a_leader_shuts_down_once_the_others_know_their_new_leaders(cluster: Cluster) -> None:
    topic_id = cluster.create("a", (1, 2), (2, 1))
    keep_alive(cluster, 2, 3)
    asked = cluster.decide(cluster.heartbeat(1, want_shut_down=True))
    assert asked.records == (
        change(cluster, 1, in_controlled_shutdown=1),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=(2,)),
        PartitionChangeRecord(partition_id=1, topic_id=topic_id, isr=(2,)),
    )
    assert asked.reply == BrokerHeartbeatReply(is_caught_up=True, is_fenced=False)
    last = Offset(asked.end_offset - 1)
    keep_alive(cluster, 2)
    cluster.ask(cluster.heartbeat(3, current_metadata_offset=Offset(last - 1)))
    waiting = cluster.decide(cluster.heartbeat(1, want_shut_down=True))
    assert (waiting.records, waiting.reply) == ((), asked.reply)
    cluster.ask(cluster.heartbeat(3, current_metadata_offset=last))
    released = cluster.decide(cluster.heartbeat(1, want_shut_down=True))
    assert released.records == (change(cluster, 1, fenced=1),)
    assert released.reply == BrokerHeartbeatReply(is_caught_up=True, should_shut_down=True)


def test_a_broker_without_leaderships_goes_at_once_and_may_be_back_at_once(
    cluster: Cluster,
) -> None:
    topic_id = cluster.create("a", (2, 1))
    released = cluster.decide(cluster.heartbeat(1, want_shut_down=True))
    assert released.records == (
        change(cluster, 1, fenced=1),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=(2,)),
    )
    assert released.reply == BrokerHeartbeatReply(is_caught_up=True, should_shut_down=True)
    back = cluster.registration(1, incarnation_id=b"n" * 16)
    assert cluster.ask(back).error is ErrorCode.NONE


@pytest.mark.parametrize("want_fence", [False, True])
def test_a_fenced_broker_goes_at_once(cluster: Cluster, *, want_fence: bool) -> None:
    cluster.ask(cluster.heartbeat(1, want_fence=True))
    released = cluster.decide(cluster.heartbeat(1, want_fence=want_fence, want_shut_down=True))
    assert released.records == ()
    assert released.reply == BrokerHeartbeatReply(is_caught_up=True, should_shut_down=True)


def test_a_broker_that_wants_to_be_fenced_and_to_go_does_not_wait(cluster: Cluster) -> None:
    cluster.create("a", (1, 2))
    released = cluster.decide(cluster.heartbeat(1, want_fence=True, want_shut_down=True))
    assert released.reply == BrokerHeartbeatReply(is_caught_up=True, should_shut_down=True)
    assert cluster.leading("a") == [(2, (2,))]


def test_the_last_broker_has_nobody_to_wait_for(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.start_brokers(1)
    cluster.create("a", (1,))
    first = cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    assert not first.should_shut_down
    assert cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down
    assert cluster.leading("a") == [(-1, (1,))]


def test_leaderships_that_move_in_several_slices_hold_a_broker_back(
    cluster: Cluster, short_slices: int
) -> None:
    cluster.create("a", *[(1, 2)] * (short_slices + 1))
    cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    keep_alive(cluster, 2, 3)
    assert not cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down
    cluster.settle()
    held = cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    assert not held.should_shut_down
    keep_alive(cluster, 2, 3)
    assert cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down


def test_a_broker_of_which_nobody_knows_yet_what_it_leads_shuts_down_in_two_steps(
    cluster: Cluster, short_slices: int
) -> None:
    cluster.create("a", *[(2, 1)] * (short_slices + 1))
    asked = cluster.decide(cluster.heartbeat(1, want_shut_down=True))
    assert asked.records[0] == change(cluster, 1, in_controlled_shutdown=1)
    cluster.settle()
    keep_alive(cluster, 2, 3)
    cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    keep_alive(cluster, 2, 3)
    assert cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down
    assert set(cluster.leading("a")) == {(2, (2,))}


def test_a_broker_that_the_last_controller_let_go_on_shutting_down_is_released(
    cluster: Cluster,
) -> None:
    cluster.create("a", (1, 2))
    cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    controller = cluster.controller
    controller.deactivate()
    end = controller.end_offset
    cluster.commit(controller.activate(controller.image.position.epoch, end, 0))
    assert not cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down
    cluster.settle()
    assert not cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down
    keep_alive(cluster, 2, 3)
    assert cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down


def test_a_broker_unfenced_while_it_shuts_down_leads_nothing(cluster: Cluster) -> None:
    """Only a log of another controller holds such a broker; it counts as going, not as back."""
    cluster.create("a", (1,))
    cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    cluster.now_ms = 9000
    keep_alive(cluster, 2, 3)
    fenced = cluster.controller.expire(9000)
    assert fenced is not None
    cluster.commit(fenced)
    assert cluster.records(cluster.heartbeat(1)) == (change(cluster, 1, fenced=-1),)
    assert cluster.leading("a") == [(-1, (1,))]


def test_renewed_sessions_still_know_what_a_broker_that_shuts_down_waits_for(
    cluster: Cluster,
) -> None:
    cluster.create("a", (1, 2))
    cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    keep_alive(cluster, 2, 3)
    cluster.controller.reset_timers(0)
    assert cluster.ask(cluster.heartbeat(1, want_shut_down=True)).should_shut_down


def test_a_broker_is_heard_when_its_heartbeat_comes(cluster: Cluster) -> None:
    cluster.now_ms = 8000
    assert cluster.controller.hear(cluster.heartbeat(1), CALLER, cluster.now_ms)
    cluster.now_ms = 9000
    decision = cluster.controller.expire(cluster.now_ms)
    assert decision is not None
    fenced = [r for r in decision.records if isinstance(r, BrokerRegistrationChangeRecord)]
    assert [record.broker_id for record in fenced] == [2, 3]


def test_a_broker_whose_heartbeat_waits_is_excused_for_two_sessions_and_no_longer(
    cluster: Cluster,
) -> None:
    """A queue that is stuck keeps no dead broker in service."""
    waiting = {heard(cluster, 1, 1000), heard(cluster, 2, 2000)}
    brokers = cluster.image.brokers.by_id
    assert waiting == {(id_, brokers[id_].registration.broker_epoch) for id_ in (1, 2)}

    def fenced(now_ms: int) -> list[int]:
        decision = cluster.controller.expire(now_ms, waiting)
        if decision is None:
            return []
        cluster.commit(decision)
        changes = [r for r in decision.records if isinstance(r, BrokerRegistrationChangeRecord)]
        return [record.broker_id for record in changes]

    assert fenced(10_000) == [3]
    assert cluster.controller.wake_at_ms == 11_000
    assert fenced(11_000) == []
    assert cluster.controller.wake_at_ms == 19_000
    assert fenced(18_999) == []
    assert fenced(19_000) == [1]
    assert cluster.controller.wake_at_ms == 20_000
    waiting.clear()
    assert fenced(20_000) == [2]


def test_a_broker_whose_heartbeat_has_waited_has_a_session_after_the_decision(
    cluster: Cluster,
) -> None:
    """It waits for the answer, and asks again after that."""
    beat = cluster.heartbeat(1)
    cluster.controller.hear(beat, CALLER, 1000)
    run_to_end(cluster.controller.decide_in_slices(beat, CALLER, 18_999))
    cluster.now_ms = 19_000
    keep_alive(cluster, 2, 3)
    assert cluster.controller.expire(27_998) is None
    decision = cluster.controller.expire(27_999)
    assert decision is not None
    assert decision.records == (change(cluster, 1, fenced=1),)


def test_an_old_heartbeat_is_no_sign_of_life_when_it_is_decided(cluster: Cluster) -> None:
    beat = cluster.heartbeat(1)
    cluster.controller.hear(beat, CALLER, 1000)
    cluster.now_ms = 19_000
    keep_alive(cluster, 2, 3)
    run_to_end(cluster.controller.decide_in_slices(beat, CALLER, cluster.now_ms))
    decision = cluster.controller.expire(cluster.now_ms)
    assert decision is not None
    assert decision.records == (change(cluster, 1, fenced=1),)
    cluster.commit(decision)
    again = run_to_end(cluster.controller.decide_in_slices(beat, CALLER, cluster.now_ms))
    assert (again.records, again.reply) == ((), BrokerHeartbeatReply(is_caught_up=True))
    # The next one is.
    assert cluster.records(cluster.heartbeat(1)) == (change(cluster, 1, fenced=-1),)


def test_only_a_heartbeat_of_its_own_epoch_excuses_a_broker(cluster: Cluster) -> None:
    beat = cluster.heartbeat(1)
    waiting = {(1, beat.broker_epoch - 1), (1, beat.broker_epoch + 1)}
    decision = cluster.controller.expire(9000, waiting)
    assert decision is not None
    assert decision.records[0] == change(cluster, 1, fenced=1)


def test_no_more_brokers_are_looked_at_together_than_a_turn_can_bear(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "LOOKED_AT_TOGETHER_MAX", 2)
    waiting = {heard(cluster, 1, 0), heard(cluster, 2, 0)}
    heard(cluster, 3, 0)
    # Nothing changes but that the next look is at the third.
    assert cluster.controller.expire(9000, waiting) is None
    decision = cluster.controller.expire(9000, waiting)
    assert decision is not None
    assert decision.records[0] == change(cluster, 3, fenced=1)


def test_a_heartbeat_of_another_incarnation_is_no_sign_of_life(cluster: Cluster) -> None:
    heartbeat = cluster.heartbeat(1)
    cluster.now_ms = 8000
    for broker_id, broker_epoch in ((1, heartbeat.broker_epoch - 1), (9, 1)):
        other = type(heartbeat)(
            broker_id=broker_id, broker_epoch=broker_epoch, current_metadata_offset=Offset(0)
        )
        assert cluster.controller.hear(other, CALLER, cluster.now_ms)
    cluster.now_ms = 9000
    decision = cluster.controller.expire(cluster.now_ms)
    assert decision is not None
    fenced = [r for r in decision.records if isinstance(r, BrokerRegistrationChangeRecord)]
    assert [record.broker_id for record in fenced] == [1, 2, 3]


def test_no_other_request_is_a_sign_of_life(cluster: Cluster) -> None:
    assert not cluster.controller.hear(DeleteTopics(("a",)), CALLER, 8000)
