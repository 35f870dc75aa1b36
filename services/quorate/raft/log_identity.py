"""Whose log it is: the newest voter set in it, by place and content (rule 34).

Logs with the same epoch at one offset hold the same record there, if they are of one quorum. So two
that have the same epoch where a voter set stands, and other voters in force there, are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.voters_mark import VotersMark
from quorate.records.crc import crc32c
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from quorate.raft.log_state import LogState
    from quorate.records.voters import VoterSet


def mark_of(log: LogState) -> VotersMark | None:
    """The newest set of a log; None where no record has put one in force."""
    offset = log.voters_offset
    if offset < 0:
        return None
    epoch = log.epoch_before(Offset(offset + 1))
    return VotersMark(offset=offset, epoch=epoch, checksum=_checksum(log.voter_set))


def is_of_another_quorum(log: LogState, mark: VotersMark) -> bool:
    """Whether this log cannot be of the quorum that the mark is from.

    What was cleaned away or is not there cannot be told, and what of it was kept is compared.
    """
    after = Offset(mark.offset + 1)
    if not max(1, log.log_start) <= after <= log.end.offset or mark.epoch <= 0:
        return False
    if log.epoch_before(after) != mark.epoch:
        return False
    in_force = [entry for entry in log.voters if entry.offset < after]
    return bool(in_force) and _checksum(in_force[-1].voters) != mark.checksum


def _checksum(voters: VoterSet) -> int:
    """CRC-32C of who they are, wherever they are reached."""
    keys = sorted((voter.key.node_id, voter.key.directory_id or b"") for voter in voters)
    return crc32c(b"".join(b"%d:%s," % (node_id, directory) for node_id, directory in keys))
