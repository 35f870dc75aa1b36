from __future__ import annotations

from quorate.records.batch import encode_batch
from quorate.records.control import KRaftVoters, encode_control_batch
from quorate.records.ids import DirectoryId, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from quorate.sim.checkers.log_view import LogView

SET = VoterSet((Voter(ReplicaKey(NodeId(1), DirectoryId(b"\1" * 16))),))


def batch(base: int, count: int = 1, epoch: int = 1) -> bytes:
    return encode_batch([b"x"] * count, timestamp_ms=0, base_offset=base, epoch=epoch)


def voters_batch(base: int) -> bytes:
    return encode_control_batch([KRaftVoters(SET)], timestamp_ms=0, base_offset=base, epoch=1)


def end(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset))


def a_view() -> LogView:
    view = LogView()
    view.append(batch(0, 2) + voters_batch(2), 10)
    view.append(batch(3, 1, epoch=2), 20)
    return view


def test_batches_chain_and_the_end_follows() -> None:
    view = a_view()
    assert [(e.base, e.end, e.epoch) for e in view.entries] == [(0, 2, 1), (2, 3, 1), (3, 4, 2)]
    assert view.end == end(4, 2)
    assert view.chain == view.chain_at(Offset(4))


def test_equal_prefixes_have_equal_chains_and_others_do_not() -> None:
    one, other = LogView(), LogView()
    one.append(batch(0) + batch(1), 1)
    other.append(batch(0) + batch(1, epoch=2), 1)
    assert one.chain_at(Offset(1)) == other.chain_at(Offset(1))
    assert one.chain_at(Offset(2)) != other.chain_at(Offset(2))


def test_a_chain_belongs_to_an_end_with_its_epoch() -> None:
    view = a_view()
    assert view.chain_up_to(end(4, 2)) == view.chain_at(Offset(4))
    assert view.chain_up_to(end(4, 1)) is None
    assert view.chain_up_to(end(9, 2)) is None


def test_inside_a_batch_there_is_no_chain() -> None:
    assert a_view().chain_at(Offset(1)) is None


def test_a_cut_drops_every_batch_that_reaches_beyond() -> None:
    view = a_view()
    view.cut(Offset(3))
    assert view.end == end(3, 1)


def test_voters_are_those_below_an_offset() -> None:
    view = a_view()
    assert view.voters_below(Offset(2)) == VoterSet()
    assert view.voters_below(Offset(3)) == SET
    assert view.voters == SET


def test_a_log_start_that_moves_keeps_chain_and_voters() -> None:
    view = a_view()
    chain = view.chain_at(Offset(4))
    view.drop_before(Offset(3))
    assert (view.start, view.start_voters) == (end(3, 1), SET)
    assert view.chain_at(Offset(4)) == chain
    assert view.epoch_before(Offset(3)) == 1


def test_what_a_power_cut_would_leave_ends_before_the_first_unsafe_write() -> None:
    view = a_view()
    assert view.safe_end(None) == 4
    assert view.safe_end(15) == 3
    assert view.safe_end(5) == 0
