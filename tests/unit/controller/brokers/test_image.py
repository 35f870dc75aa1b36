from __future__ import annotations

from immutables import Map

from quorate.controller.brokers.image import Broker, Brokers
from quorate.controller.placement import RackedBroker
from quorate.records.ids import DirectoryId, Offset
from quorate.records.metadata import RegisterBrokerRecord

ONE, TWO = DirectoryId(b"1" * 16), DirectoryId(b"2" * 16)


def broker(broker_id: int, **fields: object) -> Broker:
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=bytes(16),
        broker_epoch=7,
        end_points=(),
        features=(),
        **({"rack": None, "fenced": False} | fields),  # type: ignore[arg-type]
    )
    return Broker(record, Offset(7))


def brokers(*members: Broker) -> Brokers:
    return Brokers(Map({member.registration.broker_id: member for member in members}))


def test_brokers_are_active_unless_fenced_or_shutting_down() -> None:
    members = brokers(broker(1), broker(2, fenced=True), broker(3, in_controlled_shutdown=True))
    assert members.active == {1}


def test_only_active_brokers_with_a_disk_that_is_not_cordoned_get_replicas() -> None:
    members = brokers(
        broker(1, rack="a"),
        broker(2, fenced=True),
        broker(3, log_dirs=(ONE, TWO), cordoned_log_dirs=(TWO, ONE)),
        broker(4, log_dirs=(ONE, TWO), cordoned_log_dirs=(ONE,)),
        broker(5, log_dirs=(ONE,), cordoned_log_dirs=()),
    )
    assert set(members.striped) == {RackedBroker(1, "a"), RackedBroker(4), RackedBroker(5)}


def test_where_a_registration_lay_makes_no_difference_between_images() -> None:
    assert Broker(broker(1).registration, Offset(3)) == broker(1)
    assert brokers(broker(1)) != brokers(broker(1, rack="a"))
