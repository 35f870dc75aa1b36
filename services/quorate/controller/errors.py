"""What goes wrong in the controller: a log that contradicts it, or an item that is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.records.errors import ErrorCode


class ReplayError(Exception):
    """A record that contradicts the state it applies to; the message names it and the reason.

    Going on would let this controller's image drift from its peers', so nobody catches this to
    continue: the process stops, not ready, and says so.
    """


class UnsupportedMetadataVersionError(ReplayError):
    """The log needs a level of a feature, or a version of a record, that is not known (rule 22)."""


class NotActiveError(Exception):
    """What only an active controller does (or only a standby) was asked of the other."""


class RefusedError(Exception):
    """One item of a request is refused; caught where the item's result is made."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
