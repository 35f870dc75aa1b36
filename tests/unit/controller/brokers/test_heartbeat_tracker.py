from __future__ import annotations

from typing import TYPE_CHECKING

from immutables import Map

from quorate.controller.brokers import heartbeat_tracker as module
from quorate.controller.brokers.heartbeat_tracker import (
    BrokerGone,
    BrokerSession,
    HeartbeatReceived,
    HeartbeatTracker,
)
from quorate.controller.brokers.image import Broker, Brokers
from quorate.controller.decision import VolatileState
from quorate.records.ids import Offset
from quorate.records.metadata import (
    RegisterBrokerRecord,
)

if TYPE_CHECKING:
    import pytest


def brokers(*, fenced: tuple[int, ...] = (), unfenced: tuple[int, ...] = ()) -> Brokers:
    return Brokers(
        Map(
            {
                broker_id: Broker(
                    RegisterBrokerRecord(
                        broker_id=broker_id,
                        incarnation_id=bytes(16),
                        broker_epoch=broker_id * 10,
                        end_points=(),
                        features=(),
                        rack=None,
                        fenced=broker_id in fenced,
                    ),
                    Offset(0),
                )
                for broker_id in (*fenced, *unfenced)
            }
        )
    )


def test_a_session_lives_until_its_timeout_for_its_epoch_only() -> None:
    sessions = HeartbeatTracker(9000)
    sessions.set(1, BrokerSession(broker_epoch=10, contact_ms=5))
    assert sessions.is_live(1, broker_epoch=10, now_ms=9004)
    assert not sessions.is_live(1, broker_epoch=10, now_ms=9005)
    assert not sessions.is_live(1, broker_epoch=11, now_ms=6)
    assert not sessions.is_live(2, broker_epoch=10, now_ms=6)
    sessions.remove(1)
    sessions.remove(1)
    assert sessions.get(1) is None


def test_a_broker_that_is_heard_keeps_what_else_is_known_of_it() -> None:
    sessions, members = HeartbeatTracker(9000), brokers(unfenced=(1, 2))
    for broker_id in (1, 2):
        sessions.set(
            broker_id,
            BrokerSession(
                broker_epoch=broker_id * 10,
                contact_ms=5,
                metadata_offset=Offset(7),
                shutdown_offset=Offset(8),
            ),
        )
    sessions.hear(1, broker_epoch=10, now_ms=100)
    assert sessions.get(1) == BrokerSession(
        broker_epoch=10, contact_ms=100, metadata_offset=Offset(7), shutdown_offset=Offset(8)
    )
    assert sessions.expired(members, 9005, 9) == [2]
    assert sessions.lowest_active_offset(members) == 7


def test_a_new_incarnation_that_is_heard_begins_a_session() -> None:
    sessions = HeartbeatTracker(9000)
    sessions.set(1, BrokerSession(broker_epoch=10, contact_ms=5, metadata_offset=Offset(7)))
    sessions.hear(1, broker_epoch=11, now_ms=100)
    sessions.hear(2, broker_epoch=12, now_ms=200)
    assert sessions.get(1) == BrokerSession(broker_epoch=11, contact_ms=100)
    assert sessions.get(2) == BrokerSession(broker_epoch=12, contact_ms=200)


def test_whoever_was_silent_for_longest_expires_first_and_fenced_brokers_never() -> None:
    sessions = HeartbeatTracker(9000)
    for broker_id, contact_ms in ((1, 1), (4, 2), (2, 3), (3, 5), (2, 7)):
        sessions.set(broker_id, BrokerSession(broker_epoch=0, contact_ms=contact_ms))
    members = brokers(fenced=(1,), unfenced=(2, 3))
    assert sessions.first_to_expire(members) == 9005
    assert [sessions.expired(members, now_ms, 9) for now_ms in (9004, 9005, 9007)] == [
        [],
        [3],
        [3, 2],
    ]
    assert sessions.expired(members, 9007, 1) == [3]
    assert sessions.first_to_expire(brokers(fenced=(1,))) is None


def test_a_broker_that_is_excused_late_is_not_behind_those_heard_meanwhile() -> None:
    sessions, members = HeartbeatTracker(9000), brokers(unfenced=(1, 2))
    sessions.hear(1, broker_epoch=10, now_ms=1000)
    sessions.hear(2, broker_epoch=20, now_ms=12_000)
    sessions.excuse((1,))
    assert sessions.first_to_expire(members) == 19_000
    assert sessions.expired(members, 19_000, 9) == [1]


def test_a_heartbeat_looks_at_one_broker_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = []
    is_unfenced = module._is_unfenced

    def noting(members: Brokers, broker_id: int) -> bool:
        looked_at.append(broker_id)
        return is_unfenced(members, broker_id)

    monkeypatch.setattr(module, "_is_unfenced", noting)
    fenced, unfenced = tuple(range(100)), tuple(range(100, 1000))
    members = brokers(fenced=fenced, unfenced=unfenced)
    sessions = HeartbeatTracker(9000)
    for broker_id in (*fenced, *unfenced):
        sessions.set(broker_id, BrokerSession(broker_epoch=0, contact_ms=1))
    # Those who were fenced since they were heard are passed once.
    assert sessions.first_to_expire(members) == 9001
    assert looked_at == [*fenced, unfenced[0]]
    looked_at.clear()
    for broker_id in unfenced[:10]:
        sessions.set(broker_id, BrokerSession(broker_epoch=0, contact_ms=2))
        assert sessions.first_to_expire(members) == 9001
        assert sessions.expired(members, 9000, 100) == []
    assert looked_at == list(unfenced[1:11])


def test_renewal_gives_unfenced_brokers_a_session_and_keeps_what_it_knew() -> None:
    sessions = HeartbeatTracker(9000)
    known = BrokerSession(
        broker_epoch=20, contact_ms=1, metadata_offset=Offset(7), shutdown_offset=Offset(5)
    )
    sessions.set(2, known)
    sessions.restart_all(brokers(fenced=(1,), unfenced=(2, 3)), 100)
    assert [sessions.get(broker_id) for broker_id in (1, 2, 3)] == [
        None,
        BrokerSession(
            broker_epoch=20, contact_ms=100, metadata_offset=Offset(7), shutdown_offset=Offset(5)
        ),
        BrokerSession(broker_epoch=30, contact_ms=100),
    ]


def test_the_lowest_offset_is_that_of_the_slowest_active_broker() -> None:
    sessions = HeartbeatTracker(9000)
    for broker_id, offset in ((1, 3), (2, 9), (3, 8)):
        sessions.set(
            broker_id, BrokerSession(broker_epoch=0, contact_ms=0, metadata_offset=Offset(offset))
        )
    assert sessions.lowest_active_offset(brokers(fenced=(1,), unfenced=(2, 3))) == 8
    assert sessions.lowest_active_offset(brokers(unfenced=(2,))) == 9
    assert sessions.lowest_active_offset(brokers(fenced=(1,))) is None


def test_the_lowest_offset_is_known_without_looking_at_all_brokers() -> None:
    sessions = HeartbeatTracker(9000)
    members = brokers(unfenced=tuple(range(100)))
    for offset in range(50):
        for broker_id in range(100):
            heard = BrokerSession(broker_epoch=0, contact_ms=0, metadata_offset=Offset(offset))
            sessions.set(broker_id, heard)
            expected = offset if not offset or broker_id == 99 else offset - 1
            assert sessions.lowest_active_offset(members) == expected
    # What was heard before is forgotten.
    assert len(sessions._replayed) <= 2 * 100 + 65


def test_what_is_decided_on_a_broker_begins_and_ends_its_session() -> None:
    soft, session = (
        VolatileState((HeartbeatTracker(9000),)),
        BrokerSession(broker_epoch=10, contact_ms=5),
    )
    HeartbeatReceived(1, session, 5).apply(soft)
    assert soft.of(HeartbeatTracker).get(1) is session
    BrokerGone(1).apply(soft)
    assert soft.of(HeartbeatTracker).get(1) is None
