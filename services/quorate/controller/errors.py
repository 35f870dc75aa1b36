"""Errors of the controller: records that cannot be replayed, and items that are rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.records.errors import ErrorCode


class ReplayError(Exception):
    """A record that contradicts the state it applies to; the message names it and the reason.

    Continuing would let this controller's image drift from its peers', so no caller may catch this
    to continue: the process stops, not ready, and reports it.
    """


class UnsupportedMetadataVersionError(ReplayError):
    """The log needs a level of a feature, or a version of a record, that is not known.

    See rule `lossless_replay`.
    """


class NotActiveError(Exception):
    """An operation of an active controller was called on a standby, or vice versa."""


class RefusedError(Exception):
    """One item of a request is rejected; caught where the item's result is made."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
