"""Identification of a voter set of a log in Fetch requests and responses.

See rule `sole_voter_conflict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from quorate.records.ids import Epoch, Offset

# Number of voter sets in one answer.
MARKS_MAX: Final = 2


@keyword_value_type
class VotersMark:
    """The offset of a voter set, the epoch there, and a checksum of its voters' identities."""

    offset: Offset
    epoch: Epoch
    checksum: int
