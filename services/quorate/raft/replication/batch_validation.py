"""Checks fetched batches before they are appended: recovery would report bad ones as damage.

The same rules apply to the log on the disk (`storage/recovery/log_scan.py`), which shares the rule
on epochs. The other rules reject records that no leader appends and that could not be repaired once
they are in a log: a voter set with a majority disjoint from one of the previous set, or a
kraft.version that this release does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
)
from quorate.records.ids import NodeId, Offset
from quorate.records.voters import KRAFT_VERSION_MAX

if TYPE_CHECKING:
    from quorate.raft.messages import BatchInfo
    from quorate.raft.replication.log_state import LogState
    from quorate.records.ids import Epoch
    from quorate.records.voters import VoterSet

# Distance of the epoch of a recovered log from all earlier ones (rule `quorum_loss_recovery`), so
# that no remaining old voter can reach it by campaigning. Its first batch may have any voters: the
# old ones are lost.
EPOCHS_SKIPPED: Final = 1000


@dataclass(slots=True)
class _InForce:
    """State in effect before a record; no voters if no record of this log has set any."""

    voters: VoterSet | None
    kraft_version: int
    is_rescued: bool = False


def batch_problem(
    batches: tuple[BatchInfo, ...], log: LogState, *, epoch: Epoch, leader_id: NodeId
) -> str | None:
    """The problem if these batches of that leader cannot follow `log`; None if they can."""
    offset, last = log.end.offset, log.end.epoch
    # A voter set from the bootstrap checkpoint or the settings may be of another quorum.
    force = _InForce(
        log.voter_set if log.voters_offset >= 0 else None,
        log.kraft_version if log.kraft_version_offset >= 0 else 0,
    )
    for batch in batches:
        if batch.base_offset != offset or batch.last_offset < offset:
            return f"offset {batch.base_offset} where {offset} is next"
        if batch.epoch > epoch:
            return f"epoch {batch.epoch} at {offset} in epoch {epoch}"
        problem = epoch_problem(last, batch.epoch, begins_epoch=begins_epoch(batch.control))
        if problem is not None:
            return f"{problem} at {offset}, after {last}"
        force.is_rescued = batch.epoch - last >= EPOCHS_SKIPPED
        for index, record in enumerate(batch.control):
            problem = _record_misfit(record, index, force)
            if problem is None and batch.epoch == epoch and isinstance(record, LeaderChange):
                problem = _leader_misfit(record, epoch, leader_id)
            if problem is not None:
                return f"{problem} at {offset + index}"
        offset, last = Offset(batch.last_offset + 1), batch.epoch
    return None


def begins_epoch(control: tuple[ControlRecord, ...]) -> bool:
    """True if a batch with these control records is the first of its epoch."""
    return bool(control) and isinstance(control[0], LeaderChange)


def epoch_problem(last: int, epoch: int, *, begins_epoch: bool) -> str | None:
    """The problem if a batch may not follow one of `last`: epochs rise only at a LeaderChange."""
    if epoch < last:
        return f"epoch {epoch}"
    if (epoch > last) is not begins_epoch:
        return f"epoch {epoch} {'with' if begins_epoch else 'without'} a LeaderChange"
    return None


def _record_misfit(record: ControlRecord, index: int, force: _InForce) -> str | None:
    """The problem with a control record at that index, or None; applies it to `force`."""
    match record:
        case LeaderChange():
            return None if index == 0 else "a LeaderChange inside a batch"
        case KRaftVersion(kraft_version=kraft_version):
            before, force.kraft_version = force.kraft_version, kraft_version
            if kraft_version < before:
                return f"kraft.version {kraft_version} after {before}"
            if kraft_version > KRAFT_VERSION_MAX:
                return f"kraft.version {kraft_version}, which this release does not know"
            return None
        case KRaftVoters(voters=voters):
            known, force.voters = force.voters, voters
            if not voters.voters:
                return "a voter set without voters"
            if known is None or force.is_rescued:
                return None
            changed = _changed(known, voters)
            return None if changed <= 1 else f"a voter set that differs in {changed} voters"
    return f"a {type(record).__name__} that does not belong into a log"


def _changed(one: VoterSet, other: VoterSet) -> int:
    """Number of added and removed voters: with at most one, any two majorities overlap."""
    before, after = ([voter.key for voter in voters] for voters in (one, other))
    return sum(key not in after for key in before) + sum(key not in before for key in after)


def _leader_misfit(record: LeaderChange, epoch: Epoch, leader_id: NodeId) -> str | None:
    if record.leader_id == leader_id:
        return None
    return f"epoch {epoch} of leader {record.leader_id}, which {leader_id} claims to lead,"
