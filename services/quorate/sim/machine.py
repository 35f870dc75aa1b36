"""The replicated state machine of the simulation: sixteen keys, a count and a running checksum.

Small enough that a snapshot is a handful of records, strict enough that any record lost, doubled or
swapped shows in the checksum.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS: Final = 16


@dataclass(slots=True)
class Machine:
    """`applied` is the next offset wanted; everything below it is in the state."""

    applied: int = 0
    count: int = 0
    checksum: int = 0
    content: dict[int, bytes] = field(default_factory=dict)

    def apply(self, offset: int, value: bytes) -> None:
        """One record: the operation's number picks the key."""
        self.count += 1
        self.checksum = zlib.crc32(b"%d %b" % (offset, value), self.checksum)
        self.content[operation_of(value) % KEYS] = value

    def copy(self) -> Machine:
        return Machine(self.applied, self.count, self.checksum, dict(self.content))

    def records(self) -> list[bytes]:
        """The state as the records of a snapshot."""
        head = b"%d %d" % (self.count, self.checksum)
        return [head, *(b"%d %b" % (key, self.content[key]) for key in sorted(self.content))]

    @classmethod
    def load(cls, applied: int, records: Iterable[bytes]) -> Machine:
        """The state that a snapshot's records hold. Raises ValueError for other records."""
        machine = cls(applied)
        for index, record in enumerate(records):
            first, _, rest = record.partition(b" ")
            if index == 0:
                machine.count, machine.checksum = int(first), int(rest)
            else:
                machine.content[int(first)] = rest
        return machine


def encode_operation(operation: int, *, size_bytes: int) -> bytes:
    """The record of one operation, padded to about `size_bytes`."""
    return b"%d:" % operation + b"." * max(0, size_bytes - 8)


def operation_of(value: bytes) -> int:
    """Which operation a record belongs to."""
    return int(value.partition(b":")[0])
