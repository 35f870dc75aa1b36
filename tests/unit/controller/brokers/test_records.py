from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from quorate.controller.brokers.image import Broker
from quorate.controller.brokers.records import (
    broker_record,
    replay_fence,
    replay_register,
    replay_registration_change,
    replay_unfence,
    replay_unregister,
)
from quorate.controller.errors import ReplayError
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.records.ids import Offset
from quorate.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.unit.controller.brokers.test_registration import ONE, TWO, record

if TYPE_CHECKING:
    from collections.abc import Callable


def replayed(*steps: Callable[[MetadataDelta], None]) -> dict[int, Broker]:
    delta = MetadataDelta(MetadataImage())
    replay_register(delta, record(), Offset(5))
    for step in steps:
        step(delta)
    return dict(delta.apply(LOG_BEGIN).brokers.by_id)


def change(**changes: object) -> Callable[[MetadataDelta], None]:
    fields: dict[str, Any] = {"broker_id": 1, "broker_epoch": 5}
    fields.update(changes)
    changed = BrokerRegistrationChangeRecord(**fields)
    return lambda delta: replay_registration_change(delta, changed)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([change()], {}),
        ([change(fenced=-1)], {"fenced": False}),
        ([change(fenced=-1), change(fenced=1)], {"fenced": True}),
        ([change(in_controlled_shutdown=1), change()], {"in_controlled_shutdown": True}),
        ([change(log_dirs=(ONE, TWO)), change()], {"log_dirs": (ONE, TWO)}),
        ([change(cordoned_log_dirs=(ONE,)), change()], {"cordoned_log_dirs": (ONE,)}),
        (
            [change(cordoned_log_dirs=(ONE,)), change(cordoned_log_dirs=())],
            {"cordoned_log_dirs": ()},
        ),
    ],
)
def test_a_change_sets_what_it_names(
    steps: list[Callable[[MetadataDelta], None]], expected: dict[str, Any]
) -> None:
    assert replayed(*steps) == {1: Broker(record(**expected), Offset(5))}


def test_old_logs_fence_and_unfence_by_records_of_their_own() -> None:
    unfence = UnfenceBrokerRecord(id=1, epoch=5)
    fence = FenceBrokerRecord(id=1, epoch=5)
    unfenced = replayed(lambda delta: replay_unfence(delta, unfence))
    assert not unfenced[1].registration.fenced
    fenced = replayed(
        lambda delta: replay_unfence(delta, unfence), lambda delta: replay_fence(delta, fence)
    )
    assert fenced[1].registration.fenced


def test_listeners_and_features_are_kept_by_name() -> None:
    points = [
        BrokerEndpoint(name=name, host="h", port=1, security_protocol=0) for name in ("B", "A")
    ]
    features = [
        BrokerFeature(name=name, min_supported_version=0, max_supported_version=1)
        for name in ("y", "x")
    ]
    delta = MetadataDelta(MetadataImage())
    mixed = record(end_points=tuple(points), features=tuple(features))
    replay_register(delta, mixed, Offset(0))
    assert delta.apply(LOG_BEGIN).brokers.by_id[1].registration == record(
        end_points=tuple(points[::-1]), features=tuple(features[::-1])
    )


def test_a_registration_in_a_log_is_taken_whatever_it_says() -> None:
    """Only a decision checks: a log of another release, or of Kafka, is served as it is."""
    points = (
        BrokerEndpoint(name="", host="", port=0, security_protocol=9),
        BrokerEndpoint(name="A\0", host="h\n", port=0, security_protocol=0),
    )
    features = (BrokerFeature(name="", min_supported_version=2, max_supported_version=1),)
    old = record(end_points=points, features=features, rack="a\nb")
    delta = MetadataDelta(MetadataImage())
    replay_register(delta, old, Offset(0))
    assert delta.apply(LOG_BEGIN).brokers.by_id[1].registration == old


def test_a_record_for_another_broker_or_epoch_contradicts_the_log() -> None:
    with pytest.raises(ReplayError, match="broker 2 is not registered"):
        replayed(change(broker_id=2))
    other = UnregisterBrokerRecord(broker_id=1, broker_epoch=6)
    with pytest.raises(ReplayError, match="broker 1 has epoch 5, not 6"):
        replayed(lambda delta: replay_unregister(delta, other))


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        (30, {"log_dirs": (ONE, TWO), "cordoned_log_dirs": (ONE,)}),
        (29, {"log_dirs": (ONE, TWO)}),
        (16, {}),
    ],
)
def test_a_brokers_record_says_no_more_than_its_level_can(level: int, kept: dict[str, Any]) -> None:
    full = record(log_dirs=(ONE, TWO), cordoned_log_dirs=(ONE,))
    assert broker_record(Broker(full, Offset(0)), level) == record(**kept)
