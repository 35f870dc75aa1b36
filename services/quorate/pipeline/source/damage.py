"""Damage rows: reason, file and position."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable


@value_type
class Damage:
    """Bytes that cannot be given as records, or that are not there at all.

    `offset` is the first that is missing where that is known, `behind` the first that is not;
    `size_bytes` is 0 where nothing is wrong with the file's bytes, but something should be there.
    `is_intact` says that the CRC holds
    and what it guards cannot be read; `is_unread` that another attempt may read it, as after an
    error of the disk or where a file is not in its place.
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
    """A stream that is to lose nothing has come to records that cannot be read at the moment."""


def check_read(damages: Iterable[Damage]) -> None:
    """Raises UnreadError for the first place that another attempt may read."""
    for damage in damages:
        if damage.is_unread:
            raise UnreadError(
                f"{damage}; mend that and run it again, or set failOnDataLoss to false to go on"
                " without these records"
            )


class DamageError(RuntimeError):
    """Damage was found, and the reader was asked to fail (`onDamage=fail`)."""
