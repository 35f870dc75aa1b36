"""CRC-32C (Castagnoli), the checksum of every record batch.

The dependency is `google-crc32c`. `crc32c` is preferred if it is installed, because it takes any
buffer without a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.records.codec.varint import Buffer


def _google(data: Buffer, value: int = 0) -> int:
    crc: int = google_crc32c.extend(value, data if isinstance(data, bytes) else bytes(data))
    return crc


def _fastest() -> Callable[[Buffer, int], int]:
    try:
        import crc32c as without_copy
    except ImportError:
        return _google
    return without_copy.crc32c


_implementation = _fastest()


def crc32c(data: Buffer, value: int = 0) -> int:
    """The checksum of `data`, continued from `value`, as an unsigned 32-bit integer."""
    return _implementation(data, value)
