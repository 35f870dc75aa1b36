"""Ends of epochs, agreement with other logs, and points of truncation."""

from __future__ import annotations

import pytest

from quorate.raft.messages import EpochStart, SnapshotInfo, VotersAt
from quorate.raft.replication.log_state import Diverging, LogState, NeedsSnapshot, Valid
from quorate.records.control import KRaftVersion, KRaftVoters
from quorate.records.ids import Epoch, Offset
from tests.unit.raft import cores


def history() -> LogState:
    """Epoch 1 at 0..9, epoch 3 at 10..19."""
    epochs = (EpochStart(Epoch(1), Offset(0)), EpochStart(Epoch(3), Offset(10)))
    return LogState(cores.recovered(1, 2, 3, log_end=cores.end(20, 3), epochs=epochs))


@pytest.mark.parametrize(
    ("offset", "epoch", "verdict"),
    [
        (0, 0, Valid()),
        (10, 1, Valid()),
        (20, 3, Valid()),
        (11, 1, Diverging(cores.end(10, 1))),
        (15, 2, Diverging(cores.end(10, 1))),
        (21, 3, Diverging(cores.end(20, 3))),
        (20, 4, Diverging(cores.end(20, 3))),
    ],
)
def test_a_replica_shares_the_log_up_to_where_its_last_epoch_ends(
    offset: int, epoch: int, verdict: object
) -> None:
    assert history().validate(Offset(offset), Epoch(epoch)) == verdict


def test_a_replica_behind_the_log_start_needs_the_newest_snapshot() -> None:
    log = history()
    snapshot = SnapshotInfo(cores.end(12, 3), 1)
    log.store_snapshot(snapshot)
    log.cleaned(Offset(12), [snapshot])
    needs = NeedsSnapshot(cores.end(12, 3))
    assert log.validate(Offset(0), Epoch(0)) == needs
    assert log.validate(Offset(10), Epoch(1)) == needs
    assert log.validate(Offset(12), Epoch(3)) == Valid()


def test_the_cut_is_where_both_logs_agree() -> None:
    log = history()
    assert log.truncation_point(cores.end(8, 1)) == cores.end(8, 1)
    assert log.truncation_point(cores.end(30, 2)) == cores.end(10, 1)
    assert log.truncation_point(cores.end(15, 3)) == cores.end(15, 3)
    assert log.truncation_point(cores.end(0, 0)) == cores.end(0, 0)


def test_a_cut_rolls_voter_sets_and_epochs_back() -> None:
    log = history()
    assert log.append_control(Offset(15), KRaftVoters(cores.voters(1, 2)))
    assert not log.append_control(Offset(16), KRaftVersion(1))
    assert log.voter_set == cores.voters(1, 2)
    log.truncate(cores.end(10, 1))
    assert log.voter_set == cores.voters(1, 2, 3)
    assert (log.end, log.flushed, log.generation) == (cores.end(10, 1), 10, 1)
    assert log.end_of_epoch(Epoch(3)) == cores.end(10, 1)


def test_the_sets_that_may_be_in_force_go_back_to_the_newest_committed_one() -> None:
    log = history()
    log.append_control(Offset(15), KRaftVoters(cores.voters(1, 2)))
    assert log.possible_voter_sets(Offset(15)) == [cores.voters(1, 2), cores.voters(1, 2, 3)]
    assert log.possible_voter_sets(Offset(16)) == [cores.voters(1, 2)]


def test_a_log_restarts_at_a_snapshot_and_still_knows_its_epoch() -> None:
    log = history()
    log.restart_at(SnapshotInfo(cores.end(40, 5), 1), cores.voters(2, 3), 1)
    assert (log.log_start, log.end) == (40, cores.end(40, 5))
    assert log.voters == [VotersAt(Offset(39), cores.voters(2, 3))]
    assert log.validate(Offset(40), Epoch(5)) == Valid()


def test_an_own_snapshot_forgets_older_sets() -> None:
    log = history()
    log.append_control(Offset(5), KRaftVoters(cores.voters(1, 2)))
    log.store_snapshot(SnapshotInfo(cores.end(8, 1), 1))
    assert log.voters == [VotersAt(Offset(5), cores.voters(1, 2))]
    assert log.epoch_before(Offset(8)) == 1


def test_an_epoch_older_than_the_oldest_snapshot_is_sent_the_newest_one() -> None:
    log = history()
    log.store_snapshot(SnapshotInfo(cores.end(12, 3), 1))
    log.store_snapshot(SnapshotInfo(cores.end(15, 3), 1))
    assert log.log_start == 0
    assert log.validate(Offset(10), Epoch(1)) == NeedsSnapshot(cores.end(15, 3))
    assert log.validate(Offset(0), Epoch(0)) == Valid()
    assert log.validate(Offset(11), Epoch(3)) == Valid()
    assert log.validate(Offset(21), Epoch(3)) == Diverging(cores.end(20, 3))
