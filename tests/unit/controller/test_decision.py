from __future__ import annotations

import pytest

from quorate.controller.decision import RECORDS_MAX, Proposal, too_large
from quorate.records.batch import BATCH_BYTES_MAX, encode_batch
from quorate.records.metadata import ConfigRecord, NoOpRecord, decode_record

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
    while not proposal.add((config("x" * size),) * count):
        size -= 10
    assert not proposal.add((config("x" * 200),))
    batch = encode_batch(proposal.values, timestamp_ms=2**62, base_offset=2**62)
    assert BATCH_BYTES_MAX - 200 < len(batch) <= BATCH_BYTES_MAX


def test_the_message_asks_to_split_the_request() -> None:
    assert too_large("The topic 'a'") == (
        "The topic 'a' does not fit into one batch of at most 10000 records and 8388608 bytes with"
        " the rest of the request; split the request."
    )
