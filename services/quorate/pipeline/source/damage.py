"""Damage rows: reason, file and position."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable


@value_type
class Damage:
    """Bytes that cannot be read as records, or that are missing.

    `offset` is the first missing offset if known, `behind` the first one after the gap.
    `size_bytes` is 0 if the file's bytes are valid, but bytes are missing. `is_intact` means that
    the CRC is correct, but its contents cannot be decoded. `is_unread` means that another attempt
    may read it, as after a disk error or if a file is missing.
    """

    error: str
    file: str
    position: int
    size_bytes: int
    offset: int | None = None
    is_intact: bool = False
    is_unread: bool = False
    behind: int | None = None

    @property
    def payload(self) -> str:
        """The row's JSON."""
        return json.dumps(
            {
                "error": self.error,
                "file": self.file,
                "position": self.position,
                "bytes": self.size_bytes,
            },
            separators=(",", ":"),
        )

    def __str__(self) -> str:
        return f"{self.file}: byte {self.position}: {self.error}"


def describe_os_error(error: Exception) -> str:
    """Describe why a file or directory cannot be read, with the remedy for missing permission."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if isinstance(error, PermissionError):
        said += "; let this user read it, or run as its owner"
    return said


class UnreadError(RuntimeError):
    """A stream that must not lose records has reached some that cannot be read at the moment."""


def check_read(damages: Iterable[Damage]) -> None:
    """Raise UnreadError for the first damage that another attempt may read."""
    for damage in damages:
        if damage.is_unread:
            raise UnreadError(
                f"{damage}; mend that and run it again, or set failOnDataLoss to false to go on"
                " without these records"
            )


class DamageError(RuntimeError):
    """Damage was found, and `onDamage=fail` is set."""
