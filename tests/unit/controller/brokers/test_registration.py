from __future__ import annotations

import gc
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.controller.brokers import registration
from quorate.controller.brokers.messages import (
    Listener,
    RegisterBrokerReply,
    UnregisterBroker,
    UnregisterBrokerReply,
)
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.features.messages import FeatureRange
from quorate.controller.partitions.partition import LOST_DIR
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, DirectoryId
from quorate.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.unit.controller.conftest import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.request_types import WriteRequest


def uuid(number: int) -> bytes:
    return b"\x10" + number.to_bytes(15, "big")


def record(**changes: object) -> RegisterBrokerRecord:
    fields: dict[str, Any] = {
        "broker_id": 1,
        "incarnation_id": uuid(1),
        "broker_epoch": 5,
        "end_points": (),
        "features": (),
        "rack": None,
    }
    fields.update(changes)
    return RegisterBrokerRecord(**fields)


def test_a_registration_is_a_fenced_broker_whose_epoch_is_the_end_of_the_log(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    decision = cluster.decide(cluster.registration(7, rack="r"))
    assert decision.reply == RegisterBrokerReply(broker_epoch=1)
    assert decision.base_offset == 1
    assert decision.records == (
        record(
            broker_id=7,
            incarnation_id=uuid(7),
            broker_epoch=1,
            end_points=(
                BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9007, security_protocol=0),
            ),
            features=tuple(
                BrokerFeature(
                    name=feature.name,
                    min_supported_version=feature.min_level,
                    max_supported_version=feature.max_level,
                )
                for feature in SUPPORTED_FEATURES
            ),
            rack="r",
            fenced=True,
            log_dirs=(DirectoryId(uuid(507)),),
        ),
    )
    assert cluster.image.brokers.by_id[7].offset == 1


def test_the_same_incarnation_amends_what_it_said_and_keeps_its_epoch(cluster: Cluster) -> None:
    before = cluster.image.brokers.by_id[1].registration
    reply = cluster.ask(cluster.registration(1, rack="new"))
    after = cluster.image.brokers.by_id[1]
    assert reply.broker_epoch == before.broker_epoch == after.registration.broker_epoch
    assert (after.registration.rack, after.registration.fenced) == ("new", False)
    assert after.offset == cluster.image.position.end_offset - 1


def test_another_process_waits_for_the_session_of_the_first(cluster: Cluster) -> None:
    cluster.now_ms = 8999
    other = cluster.registration(1, incarnation_id=uuid(99))
    reply = cluster.ask(other)
    assert reply == RegisterBrokerReply(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        "Another process is registered as broker 1 and was heard within 9000 ms; stop it, or wait"
        " until its session has run out.",
    )
    cluster.now_ms = 9000
    assert cluster.ask(other).error is ErrorCode.NONE


def test_the_successor_of_a_broker_on_its_way_out_may_register(cluster: Cluster) -> None:
    cluster.create("a", (1, 2))
    cluster.ask(cluster.heartbeat(1, want_shut_down=True))
    assert cluster.image.brokers.by_id[1].registration.in_controlled_shutdown
    assert cluster.ask(cluster.registration(1, incarnation_id=uuid(99))).error is ErrorCode.NONE
    assert not cluster.image.brokers.by_id[1].registration.in_controlled_shutdown


def test_a_new_incarnation_ends_the_leaderships_of_the_old(cluster: Cluster) -> None:
    topic_id = cluster.create("a", (1, 2))
    cluster.now_ms = 9000
    decision = cluster.decide(cluster.registration(1, incarnation_id=uuid(99)))
    assert decision.records[1:] == (
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=(2,)),
    )
    broker = cluster.image.brokers.by_id[1]
    assert broker.registration.broker_epoch == decision.base_offset == broker.offset
    assert broker.registration.fenced


def test_leaderships_that_do_not_fit_into_a_slice_follow(
    cluster: Cluster, short_slices: int
) -> None:
    cluster.create("a", *[(1, 2)] * (short_slices + 3))
    cluster.now_ms = 8000
    for broker_id in (2, 3):
        cluster.ask(cluster.heartbeat(broker_id))
    cluster.now_ms = 9000
    decision = cluster.decide(cluster.registration(1, incarnation_id=uuid(99)))
    assert len(decision.records) == 1 + short_slices
    assert [len(records) for records in cluster.settle()] == [3]
    assert set(cluster.leading("a")) == {(2, (2,))}


def test_a_new_incarnation_leads_nothing_of_what_the_old_one_led(
    cluster: Cluster, short_slices: int
) -> None:
    """It may have lost what was in sync: it is fenced until all of that is led by others."""
    cluster.create("a", *[(1, 2)] * (short_slices + 3))
    cluster.now_ms = 8000
    for broker_id in (2, 3):
        cluster.ask(cluster.heartbeat(broker_id))
    cluster.now_ms = 9000
    cluster.ask(cluster.registration(1, incarnation_id=uuid(99)))
    waiting = cluster.decide(cluster.heartbeat(1))
    assert (waiting.records, waiting.reply.is_fenced) == ((), True)  # type: ignore[union-attr]
    cluster.settle()
    assert not cluster.ask(cluster.heartbeat(1)).is_fenced
    assert set(cluster.leading("a")) == {(2, (2,))}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"cluster_id": ClusterId("other")},
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            "The broker belongs to the cluster 'other' and this is 'cluster'; correct the address"
            " or format the broker with this cluster id.",
        ),
        (
            {"features": (FeatureRange("metadata.version", 7, 29),)},
            ErrorCode.UNSUPPORTED_VERSION,
            "The broker supports metadata.version from 7 to 29, but the cluster has finalised level"
            " 30; run a broker release that supports it.",
        ),
        (
            {"broker_id": -1},
            ErrorCode.INVALID_REGISTRATION,
            "The broker id -1 is below zero; give one from 0 on.",
        ),
        (
            {"incarnation_id": bytes(16)},
            ErrorCode.INVALID_REGISTRATION,
            "The incarnation id is all zero; draw a random one at each start.",
        ),
        (
            {"incarnation_id": b""},
            ErrorCode.INVALID_REGISTRATION,
            "The incarnation id has 0 bytes; draw 16 random ones at each start.",
        ),
        (
            {"listeners": (Listener("A", "h", 1, 70_000),)},
            ErrorCode.INVALID_REGISTRATION,
            "Listener A has security protocol 70000; give Kafka's number, from 0 to 3.",
        ),
        (
            {"features": (*SUPPORTED_FEATURES, FeatureRange("x", 3, 70_000))},
            ErrorCode.INVALID_REGISTRATION,
            "Feature x is supported from 3 to 70000; give levels from 0 to 32767, the lower first.",
        ),
        (
            {"features": (*SUPPORTED_FEATURES, FeatureRange("x", 0, 1), FeatureRange("x", 0, 1))},
            ErrorCode.INVALID_REGISTRATION,
            "The feature x occurs twice; name it once.",
        ),
        (
            {"features": (*SUPPORTED_FEATURES, FeatureRange("x", 2, 1))},
            ErrorCode.INVALID_REGISTRATION,
            "Feature x is supported from 2 to 1; give levels from 0 to 32767, the lower first.",
        ),
        (
            {"features": (*SUPPORTED_FEATURES, FeatureRange("", 0, 1))},
            ErrorCode.INVALID_REGISTRATION,
            "The name of a feature is empty; give it at least one character.",
        ),
        (
            {"log_dirs": (b"short",)},
            ErrorCode.INVALID_REGISTRATION,
            "A log directory id has 5 bytes; give the 16 of each directory's meta.properties.",
        ),
        (
            {"rack": "r" * 32_768},
            ErrorCode.INVALID_REGISTRATION,
            "The rack has 32768 bytes and may have 32767 at most, shorten it.",
        ),
        (
            {"rack": "a\nb"},
            ErrorCode.INVALID_REGISTRATION,
            "The rack is 'a\\nb', with control characters; leave them out.",
        ),
        (
            {"listeners": ()},
            ErrorCode.INVALID_REGISTRATION,
            "There are no listeners; name at least one.",
        ),
        (
            {"listeners": (Listener("A", "h", 1), Listener("A", "h", 2))},
            ErrorCode.INVALID_REGISTRATION,
            "The listener A occurs twice; name it once.",
        ),
        (
            {"listeners": (Listener("A", "h", 65536),)},
            ErrorCode.INVALID_REGISTRATION,
            "Listener A has port 65536; give one from 1 to 65535.",
        ),
        (
            {"listeners": (Listener("A", "h", 0),)},
            ErrorCode.INVALID_REGISTRATION,
            "Listener A has port 0; give one from 1 to 65535.",
        ),
        (
            {"listeners": (Listener("", "h", 1),)},
            ErrorCode.INVALID_REGISTRATION,
            "The name of a listener is empty; give it at least one character.",
        ),
        (
            {"listeners": (Listener("A\0", "h", 1),)},
            ErrorCode.INVALID_REGISTRATION,
            "The name of a listener is 'A\\x00', with control characters; leave them out.",
        ),
        (
            {"listeners": (Listener("ä" * 16_384, "h", 1),)},
            ErrorCode.INVALID_REGISTRATION,
            "The name of a listener has 32768 bytes and may have 32767 at most, shorten it.",
        ),
        (
            {"listeners": (Listener("A", "", 1),)},
            ErrorCode.INVALID_REGISTRATION,
            "Listener A has no host; give the one that clients call.",
        ),
        (
            {"listeners": (Listener("A", "h\r\n", 1),)},
            ErrorCode.INVALID_REGISTRATION,
            "The host of listener A is 'h\\r\\n', with control characters; leave them out.",
        ),
        (
            {"listeners": (Listener("A", "h" * 32_768, 1),)},
            ErrorCode.INVALID_REGISTRATION,
            "The host of listener A has 32768 bytes and may have 32767 at most, shorten it.",
        ),
        (
            {"log_dirs": ()},
            ErrorCode.INVALID_REGISTRATION,
            "There are no log directories; name the id of each.",
        ),
        (
            {"log_dirs": (uuid(1), uuid(1))},
            ErrorCode.INVALID_REGISTRATION,
            "A log directory occurs twice; name the id of each once.",
        ),
        (
            {"log_dirs": (LOST_DIR,)},
            ErrorCode.INVALID_REGISTRATION,
            "The log directory id AAAAAAAAAAAAAAAAAAAAAg is reserved; draw another.",
        ),
        (
            {"log_dirs": (uuid(1), uuid(502))},
            ErrorCode.INVALID_REGISTRATION,
            "The log directory EAAAAAAAAAAAAAAAAAAB9g is registered by broker 2; two brokers may"
            " not share one.",
        ),
    ],
)
def test_a_registration_that_cannot_be_is_refused_with_the_remedy(
    cluster: Cluster, changes: dict[str, Any], error: ErrorCode, message: str
) -> None:
    decision = cluster.decide(replace(cluster.registration(9), **changes))
    assert decision.records == ()
    assert decision.reply == RegisterBrokerReply(error, message)


def test_below_the_level_of_directories_none_are_asked_for(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(level=16)
    cluster.start_brokers(1, log_dirs=(uuid(1),))
    cluster.start_brokers(2, log_dirs=())
    assert [cluster.image.brokers.by_id[id_].registration.log_dirs for id_ in (1, 2)] == [(), ()]


def test_an_unregistered_broker_is_gone_and_leads_nothing(cluster: Cluster) -> None:
    topic_id = cluster.create("a", (1, 2))
    epoch = cluster.image.brokers.by_id[1].registration.broker_epoch
    decision = cluster.decide(UnregisterBroker(1))
    assert decision.records == (
        UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=(2,)),
    )
    assert decision.reply == UnregisterBrokerReply()
    assert sorted(cluster.image.brokers.by_id) == [2, 3]
    assert cluster.ask(cluster.registration(1, incarnation_id=uuid(99))).error is ErrorCode.NONE


def test_what_an_unregistered_broker_led_is_settled_in_slices(
    cluster: Cluster, short_slices: int
) -> None:
    cluster.create("a", *[(1, 2)] * short_slices)
    cluster.create("b", (1, 2))
    assert len(cluster.records(UnregisterBroker(1))) == 1 + short_slices
    assert [len(records) for records in cluster.settle()] == [1]


def test_a_broker_that_is_not_registered_cannot_be_unregistered(cluster: Cluster) -> None:
    assert cluster.ask(UnregisterBroker(9)) == UnregisterBrokerReply(
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "No broker is registered with the id 9; list the brokers.",
    )


ONE, TWO = DirectoryId(uuid(1)), DirectoryId(uuid(2))


# --- how many -------------------------------------------------------------------------------------


def test_one_broker_too_many_is_refused_and_those_that_are_there_go_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "BROKERS_MAX", 3)
    assert cluster.ask(cluster.heartbeat(3, want_fence=True)).is_fenced
    reply = cluster.ask(cluster.registration(4))
    assert (reply.error, reply.message) == (
        ErrorCode.POLICY_VIOLATION,
        "3 brokers are registered, 1 of them fenced, and 3 may be; unregister those that are gone"
        " for good.",
    )
    assert sorted(cluster.image.brokers.by_id) == [1, 2, 3]
    # The next process of one that is registered.
    cluster.now_ms += 100_000
    again = cluster.registration(3, incarnation_id=uuid(33))
    assert cluster.ask(again).error is ErrorCode.NONE
    assert cluster.ask(UnregisterBroker(3)).error is ErrorCode.NONE
    assert cluster.ask(cluster.registration(4)).error is ErrorCode.NONE


def test_a_registration_that_is_too_large_is_refused(cluster: Cluster) -> None:
    long = tuple(Listener(f"L{number}", "h" * 170, 9092) for number in range(100))
    reply = cluster.ask(cluster.registration(4, listeners=long))
    assert reply.error is ErrorCode.POLICY_VIOLATION
    assert "bytes, and 16384 are taken; give fewer or shorter listeners" in reply.message
    assert 4 not in cluster.image.brokers.by_id
    usual = tuple(Listener(f"LISTENER-{number}", "h" * 60, 9092) for number in range(100))
    directories = tuple(uuid(9000 + number) for number in range(100))
    reply = cluster.ask(cluster.registration(4, listeners=usual, log_dirs=directories))
    assert (reply.error, reply.message) == (ErrorCode.NONE, "")


def lines_run(work: Callable[[], object]) -> int:
    """The number of lines of Python that it took: unlike time, the same on every machine."""
    count = 0

    def trace(_frame: object, event: str, _argument: object) -> Any:  # noqa: ANN401 - itself
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    # A pass of the collector may run finalizers of other tests, which count here.
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def lines_of_each(others: int) -> dict[str, int]:
    """The cost of each request of a broker when so many other brokers exist."""
    cluster = Cluster()
    cluster.start_brokers(*range(1, others + 1))
    one = others + 1

    def lines(ask: Callable[[], WriteRequest]) -> int:
        request = ask()

        def work() -> None:
            assert cluster.ask(request).error is ErrorCode.NONE
            # The core receives it after each commit.
            assert cluster.image.brokers.kraft_version_max is not None

        return lines_run(work)

    return {
        "register": lines(lambda: cluster.registration(one)),
        "beat while fenced": lines(lambda: cluster.heartbeat(one, want_fence=True)),
        "unfence": lines(lambda: cluster.heartbeat(one)),
        "beat": lines(lambda: cluster.heartbeat(one)),
        "register again": lines(lambda: cluster.registration(one)),
        "shut down": lines(lambda: cluster.heartbeat(one, want_shut_down=True)),
        "unregister": lines(lambda: UnregisterBroker(one)),
    }


def test_what_a_broker_asks_for_costs_the_same_beside_ten_brokers_and_beside_many() -> None:
    # Sets of those that may lead are copied as a whole, but not in Python.
    few, many = lines_of_each(10), lines_of_each(400)
    # A heap of how far each has replayed may have to sift a few more.
    assert {name: many[name] - few[name] for name in few if many[name] - few[name] > 50} == {}
