"""A voter set of a log, as a Fetch request and its response state it (rule 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import named_value

if TYPE_CHECKING:
    from quorate.records.ids import Epoch, Offset

# Those that one answer states.
MARKS_MAX: Final = 2


@named_value
class VotersMark:
    """The place of a voter set, the epoch there, and a checksum of who its voters are."""

    offset: Offset
    epoch: Epoch
    checksum: int
