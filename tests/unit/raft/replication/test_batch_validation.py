"""Batches that recovery would call damage, and that cannot be repaired, are never appended."""

from __future__ import annotations

import pytest

from quorate.raft import messages as m
from quorate.raft.replication.batch_validation import EPOCHS_SKIPPED, batch_problem
from quorate.raft.replication.log_state import LogState
from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
)
from quorate.records.ids import Epoch, NodeId, Offset
from quorate.records.voters import VoterSet
from tests.unit.raft import cores

CHANGE = LeaderChange(NodeId(1), (), ())


def log() -> LogState:
    """Epoch 1 at 0..4, with the voters 1, 2 and 3 in the log."""
    epochs = (m.EpochStart(Epoch(1), Offset(0)),)
    state = LogState(cores.recovered(1, 2, 3, log_end=cores.end(5, 1), epochs=epochs))
    state.append_control(Offset(1), KRaftVersion(1))
    state.append_control(Offset(2), KRaftVoters(cores.voters(1, 2, 3)))
    return state


def batch(epoch: int, *control: ControlRecord, base: int = 5) -> m.BatchInfo:
    last = base + max(len(control), 1) - 1
    return m.BatchInfo(
        base_offset=Offset(base), last_offset=Offset(last), epoch=Epoch(epoch), control=control
    )


def why(*batches: m.BatchInfo, epoch: int = 3) -> str | None:
    return batch_problem(batches, log(), epoch=Epoch(epoch), leader_id=NodeId(1))


FITTING = {
    "data": (batch(1),),
    "the next epoch": (batch(3, CHANGE), batch(3, base=6)),
    "one voter more": (batch(1, KRaftVoters(cores.voters(1, 2, 3, 4))),),
    "one voter less": (batch(1, KRaftVoters(cores.voters(1, 2))),),
    "one after the other": (
        batch(1, KRaftVoters(cores.voters(1, 2))),
        batch(1, KRaftVoters(cores.voters(1)), base=6),
    ),
    "an epoch of another leader before": (
        batch(2, LeaderChange(NodeId(2), (), ())),
        batch(3, CHANGE, base=6),
    ),
}
UNFIT = {
    "a gap": (batch(1, base=6),),
    "an overlap": (batch(1, base=4),),
    "a falling epoch": (batch(3, CHANGE), batch(1, base=6)),
    "an epoch to come": (batch(4, CHANGE),),
    "an epoch without a LeaderChange": (batch(3),),
    "a LeaderChange inside an epoch": (batch(1, CHANGE),),
    "a LeaderChange inside a batch": (batch(3, CHANGE, CHANGE),),
    "another leader of the current epoch": (batch(3, LeaderChange(NodeId(2), (), ())),),
    "two voters more": (batch(1, KRaftVoters(cores.voters(1, 2, 3, 4, 5))),),
    "two voters less": (batch(1, KRaftVoters(cores.voters(1))),),
    "a voter replaced": (batch(1, KRaftVoters(cores.voters(1, 2, 4))),),
    "two voters less in a new epoch": (batch(3, CHANGE, KRaftVoters(cores.voters(1))),),
    "no voters": (batch(1, KRaftVoters(VoterSet())),),
    "kraft.version goes back": (batch(1, KRaftVersion(0)),),
    "kraft.version is unknown": (batch(1, KRaftVersion(2)),),
    "the header of a snapshot": (batch(1, SnapshotHeader(0)),),
    "the footer of a snapshot": (batch(1, SnapshotFooter()),),
}


@pytest.mark.parametrize("what", list(FITTING))
def test_what_continues_the_log_fits(what: str) -> None:
    assert why(*FITTING[what]) is None


@pytest.mark.parametrize("what", list(UNFIT))
def test_what_may_not_stand_there_does_not_fit(what: str) -> None:
    assert why(*UNFIT[what]) is not None


def test_the_epoch_of_a_rescued_log_begins_with_any_voters() -> None:
    rescued = 1 + EPOCHS_SKIPPED
    records = (CHANGE, KRaftVersion(1), KRaftVoters(cores.voters(1)))
    assert why(batch(rescued, *records), epoch=rescued) is None
    later = batch(rescued, KRaftVoters(cores.voters(4, 5)), base=8)
    assert why(batch(rescued, *records), later, epoch=rescued) is not None


def test_the_upgrade_brings_the_voters_of_the_settings_into_the_log() -> None:
    state = LogState(cores.recovered(1, 2, log_end=cores.end(5, 1)))
    state.kraft_versions.clear()
    upgrade = batch(1, KRaftVersion(1), KRaftVoters(cores.voters(1, 2, 3, 4)))
    assert batch_problem((upgrade,), state, epoch=Epoch(1), leader_id=NodeId(1)) is None
