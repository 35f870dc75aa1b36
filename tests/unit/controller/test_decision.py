from __future__ import annotations

import pytest

from quorate.controller.decision import Proposal, VolatileState, too_large
from quorate.controller.errors import RefusedError
from quorate.controller.request_types import RECORDS_MAX
from quorate.records.batch import BATCH_BYTES_MAX, encode_batch
from quorate.records.errors import ErrorCode
from quorate.records.field_limits import STRING_BYTES_MAX
from quorate.records.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    UnknownRecord,
    decode_record,
)

NOTHING = NoOpRecord()


def config(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="a", name="b", value=value)


def test_records_are_encoded_in_the_versions_of_the_level() -> None:
    proposal = Proposal(30)
    assert proposal.add((config("1"), NOTHING))
    assert [decode_record(value) for value in proposal.values] == [(config("1"), 0), (NOTHING, 0)]
    assert proposal.records == [config("1"), NOTHING]


def test_a_batch_takes_so_many_records_and_what_does_not_fit_leaves_no_trace() -> None:
    proposal = Proposal(30)
    assert proposal.add((NOTHING,) * (RECORDS_MAX - 1))
    assert not proposal.add((config("1"), NOTHING))
    assert proposal.add((NOTHING,))
    assert not proposal.add((NOTHING,))
    assert proposal.records == [NOTHING] * RECORDS_MAX == proposal.records[: len(proposal.values)]


@pytest.mark.parametrize("count", [1, 3])
def test_what_fits_in_bytes_fits_into_a_batch(count: int) -> None:
    proposal = Proposal(30)
    size = BATCH_BYTES_MAX // count
    while not proposal.add((UnknownRecord(99, 0, b"x" * size),) * count):
        size -= 10
    assert not proposal.add((config("x" * 200),))
    batch = encode_batch(proposal.values, timestamp_ms=2**62, base_offset=2**62)
    assert BATCH_BYTES_MAX - 200 < len(batch) <= BATCH_BYTES_MAX


@pytest.mark.parametrize("letter", ["x", "\N{EURO SIGN}"])
def test_a_string_that_stock_tools_could_not_read_is_refused(letter: str) -> None:
    longest = letter * (STRING_BYTES_MAX // len(letter.encode()))
    assert Proposal(30).add((config(longest),))
    with pytest.raises(RefusedError, match=r"value has 3276[89] bytes") as refused:
        Proposal(30).add((config(longest + "xx"),))
    assert refused.value.error is ErrorCode.INVALID_REQUEST


def test_a_number_that_is_wider_than_its_field_is_refused() -> None:
    proposal = Proposal(30)
    with pytest.raises(RefusedError, match="give a value that Kafka's record can hold"):
        proposal.add((NOTHING, FeatureLevelRecord(name="a", feature_level=70_000)))
    assert (proposal.records, proposal.values) == ([], [])


def test_a_record_that_does_not_fit_is_refused_by_name() -> None:
    proposal = Proposal(30)
    with pytest.raises(RefusedError, match="The registration does not fit") as refused:
        proposal.add_or_reject(UnknownRecord(99, 0, bytes(BATCH_BYTES_MAX)), "The registration")
    assert refused.value.error is ErrorCode.POLICY_VIOLATION
    assert proposal.records == []


def test_the_message_asks_to_split_the_request() -> None:
    assert too_large("The topic 'a'") == (
        "The topic 'a' does not fit into one batch of at most 10000 records and 8388608 bytes with"
        " the rest of the request; split the request."
    )


def test_soft_state_is_found_by_its_type_and_replaced_by_its_like() -> None:
    soft = VolatileState((1, "a"))
    soft.put("b")
    assert (soft.of(int), soft.of(str)) == (1, "b")


def test_room_that_is_kept_is_there_for_what_comes_later() -> None:
    proposal = Proposal(30)
    assert proposal.keep_room(RECORDS_MAX - 1, 0)
    assert proposal.has_room(1)
    assert not proposal.has_room(2)
    assert not proposal.keep_room(2, 0)
    assert not proposal.keep_room(1, BATCH_BYTES_MAX)
    proposal.give_room(RECORDS_MAX - 1, 0)
    assert proposal.keep_room(1, BATCH_BYTES_MAX // 2)
