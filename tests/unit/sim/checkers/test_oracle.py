from __future__ import annotations

import pytest

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings
from quorate.records.batch import encode_batch
from quorate.records.ids import ClusterId, Epoch, Offset, TopicId
from quorate.records.metadata import FeatureLevelRecord, encode_record
from quorate.sim.checkers.log_view import LogView
from quorate.sim.checkers.oracle import Oracle, Violation
from quorate.sim.workload.kv_model import KvModel, operation_of, request_of

EPOCH = Epoch(1)
# Not the work of a client: the first record of each log.
FEATURE = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=25), 0)


def value_of(operation: int) -> bytes:
    """The record that a controller makes of an operation."""
    settings = ControllerSettings(
        cluster_id=ClusterId("cluster"), new_topic_id=lambda: TopicId(b"t" * 16)
    )
    controller = Controller(settings)
    controller.activate(EPOCH, Offset(0), 0)
    return controller.decide(request_of((operation,), 10), Caller("User:a"), 0).values[0]


def a_history(*operations: int) -> Oracle:
    """Each operation in a batch of its own, from offset 0."""
    view, oracle = LogView(), Oracle()
    for offset, operation in enumerate(operations):
        values = [value_of(operation)]
        data = encode_batch(values, timestamp_ms=0, base_offset=offset, epoch=1)
        oracle.was_decided(operation, Offset(offset))
        for entry in view.append(data, 0):
            oracle.commit(entry, EPOCH)
    return oracle


def test_states_are_those_of_the_prefixes() -> None:
    oracle = a_history(5, 6)
    expected = KvModel(2)
    for operation in (5, 6):
        expected.apply(value_of(operation))
    assert oracle.state_at(Offset(2)) == expected
    assert len(oracle.state_at(Offset(1)).content) == 1
    assert oracle.state_at(Offset(0)) == KvModel(0)


def test_records_of_other_kinds_are_nobodys_operation() -> None:
    machine = KvModel()
    machine.apply(FEATURE)
    assert (operation_of(FEATURE), machine) == (None, KvModel())
    assert operation_of(value_of(21)) == 21


def test_a_snapshot_holds_the_state() -> None:
    machine = a_history(5, 6, 21).state_at(Offset(3))
    assert KvModel.load(3, [FEATURE, value_of(6), value_of(21)]) == machine


def test_no_operation_is_committed_twice() -> None:
    with pytest.raises(Violation, match="operation 5 is committed twice, at 0 and 2"):
        a_history(5, 6, 5)


def test_an_operation_is_committed_where_it_was_decided_for() -> None:
    view, oracle = LogView(), Oracle()
    data = encode_batch([value_of(5)], timestamp_ms=0, base_offset=0, epoch=1)
    oracle.was_decided(5, Offset(7))
    with pytest.raises(Violation, match="operation 5 was decided for offset 7, and is committed"):
        oracle.commit(view.append(data, 0)[0], EPOCH)


def test_what_is_acknowledged_is_committed() -> None:
    oracle = a_history(5)
    oracle.was_acknowledged(5)
    assert oracle.read_floor == 1
    with pytest.raises(Violation, match="operation 6 was acknowledged, but is not committed"):
        oracle.was_acknowledged(6)


def test_what_is_refused_never_is() -> None:
    with pytest.raises(Violation, match="operation 5 is committed, yet was refused"):
        a_history(5).was_refused(5)


def test_a_current_read_reflects_what_was_known_when_it_began() -> None:
    oracle = a_history(5, 6)
    with pytest.raises(Violation, match="reflects offset 1, but 1 was acknowledged"):
        oracle.current_read_answered(oracle.state_at(Offset(1)), Offset(2))
    oracle.current_read_answered(oracle.state_at(Offset(2)), Offset(2))
    assert oracle.read_floor == 2


def test_other_reads_never_go_back_for_one_client() -> None:
    oracle = a_history(5, 6)
    with pytest.raises(Violation, match="reflects offset 1 after one reflected 2"):
        oracle.read_answered(oracle.state_at(Offset(1)), Offset(2))


def test_a_read_shows_history_and_nothing_else() -> None:
    oracle = a_history(5, 6)
    with pytest.raises(
        Violation, match=r"shows 0 keys, .* history has 2 keys, operation 6 is the newest"
    ):
        oracle.read_answered(KvModel(2), Offset(0))


def test_the_end_of_earlier_epochs_leaves_later_ones_out() -> None:
    oracle = a_history(5, 6)
    assert (oracle.end_before(Epoch(2)), oracle.end_before(Epoch(1))) == (2, 0)
