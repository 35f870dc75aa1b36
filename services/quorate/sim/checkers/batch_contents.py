"""Cache of decoded batch contents, shared by all replicas."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.records.batch import HEADER_BYTES, BatchHeader, Record, read_header, read_records
from quorate.records.control import KRaftVersion, KRaftVoters, control_records

if TYPE_CHECKING:
    from quorate.records.voters import VoterSet

# The batches of a few seeds. The key is the complete batch, so an entry cannot be stale.
_REMEMBERED: Final = 4096


class Controls(NamedTuple):
    """The voter set and kraft.version in a batch; None in most batches."""

    voters: VoterSet | None = None
    kraft_version: int | None = None


def header_at(data: bytes, position: int) -> BatchHeader:
    """The header of the batch at `position`."""
    return _header(data[position : position + HEADER_BYTES])


@lru_cache(maxsize=_REMEMBERED)
def _header(head: bytes) -> BatchHeader:
    return read_header(head)


@lru_cache(maxsize=_REMEMBERED)
def records_of(batch: bytes) -> tuple[Record, ...]:
    """The data records of one batch; none of a control batch."""
    header = read_header(batch)
    return () if header.is_control else tuple(read_records(batch, 0, header))


@lru_cache(maxsize=_REMEMBERED)
def controls_of(batch: bytes) -> Controls:
    """The last record of each kind in one control batch."""
    voters = kraft_version = None
    for record in control_records(batch, 0, read_header(batch)):
        if isinstance(record, KRaftVoters):
            voters = record.voters
        elif isinstance(record, KRaftVersion):
            kraft_version = record.kraft_version
    return Controls(voters, kraft_version)
