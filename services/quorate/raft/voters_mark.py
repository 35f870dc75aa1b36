"""The newest voter set of a log, as a Fetch states it (rule 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value import named_value

if TYPE_CHECKING:
    from quorate.records.ids import Epoch, Offset


@named_value
class VotersMark:
    """Where a voter set stands, in which epoch, and a checksum of who its voters are."""

    offset: Offset
    epoch: Epoch
    checksum: int
