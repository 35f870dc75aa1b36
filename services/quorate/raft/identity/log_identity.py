"""Identifies the quorum of a log by the position and content of its voter sets.

See rule `sole_voter_conflict`. Two logs of one quorum with the same epoch at an offset have the
same record there. So two logs belong to two quorums if they have the same epoch at the offset of a
voter set, but different voters in effect there. A voter set from a snapshot counts as being at the
end of the snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.identity.voter_set_mark import VotersMark
from quorate.records.crc import crc32c
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from quorate.raft.messages import VotersAt
    from quorate.raft.replication.log_state import LogState
    from quorate.records.voters import VoterSet


def mark_of(log: LogState) -> VotersMark | None:
    """The newest voter set of a log; None if no record has put one in effect."""
    return _mark(log, log.voters[-1]) if log.voters_offset >= 0 else None


def marks_below(log: LogState, offset: Offset) -> tuple[VotersMark, ...]:
    """The oldest known voter set of a log, and the one in effect just below an offset.

    The oldest one is most likely to be at an offset where another log has the same epoch.
    """
    below = [entry for entry in log.voters if 0 <= entry.offset < offset]
    return tuple(
        _mark(log, entry) for entry in (below if len(below) < 2 else (below[0], below[-1]))
    )


def is_of_another_quorum(log: LogState, mark: VotersMark) -> bool:
    """True if this log cannot be of the quorum that the mark is from.

    Offsets that were cleaned or do not exist cannot be compared.
    """
    after = Offset(mark.offset + 1)
    if not max(1, log.log_start) <= after <= log.end.offset or mark.epoch <= 0:
        return False
    if log.epoch_before(after) != mark.epoch:
        return False
    in_force = [entry for entry in log.voters if entry.offset < after]
    return bool(in_force) and _checksum(in_force[-1].voters) != mark.checksum


def _mark(log: LogState, entry: VotersAt) -> VotersMark:
    epoch = log.epoch_before(Offset(entry.offset + 1))
    return VotersMark(offset=entry.offset, epoch=epoch, checksum=_checksum(entry.voters))


def _checksum(voters: VoterSet) -> int:
    """CRC-32C of the voters' identities, without their addresses."""
    keys = sorted((voter.key.node_id, voter.key.directory_id or b"") for voter in voters)
    return crc32c(b"".join(b"%d:%s," % (node_id, directory) for node_id, directory in keys))
