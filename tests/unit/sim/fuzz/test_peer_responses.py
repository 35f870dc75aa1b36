"""Mutated responses: their receiver can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from quorate.raft import messages as m
from quorate.raft.replication.batch_info import batch_infos
from quorate.raft.replication.batch_validation import batch_problem
from quorate.raft.replication.log_state import LogState
from quorate.records.batch import encode_batch, restamp
from quorate.records.control import LeaderChange, encode_control_batch
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from quorate.sim.fuzz.peer_responses import _with_a_flipped_bit
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.sim.randomness import RandomSource

LEADER = NodeId(1)
LAST, NEWEST = Epoch(1), Epoch(7)


class Flip:
    """Draws one byte, and one bit of it."""

    def __init__(self, at: int, bit: int) -> None:
        self.drawn = [bit, at]

    def between(self, _low: int, _high: int) -> int:
        return self.drawn.pop()


def test_no_flipped_bit_of_a_fetched_batch_goes_unseen() -> None:
    """No checksum covers the epoch of a batch."""
    log = LogState(cores.recovered(1, 2, 3, log_end=cores.end(5, LAST)))
    change = encode_control_batch([LeaderChange(LEADER, (), ())], timestamp_ms=1)
    records = encode_batch([b"one", b"two"], timestamp_ms=1)
    data = restamp(change, 5, 5) + restamp(records, 6, 5)
    answer = m.FetchResponse(error=ErrorCode.NONE, leader=m.LeaderInfo(LEADER, NEWEST))
    for fetched in (data, data[: len(change)]):
        assert (
            batch_problem(batch_infos(fetched).batches, log, epoch=NEWEST, leader_id=LEADER) is None
        )
        for flip in range(8 * len(fetched)):
            draws = cast("RandomSource", Flip(flip // 8, flip % 8))
            garbled = _with_a_flipped_bit(fetched, (LAST, NEWEST), draws)(answer).records
            assert isinstance(garbled, m.FetchedBatches)
            try:
                batches = batch_infos(garbled.data).batches
            except ValueError:
                continue
            assert batch_problem(batches, log, epoch=NEWEST, leader_id=LEADER) is not None, flip
