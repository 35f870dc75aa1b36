"""Kafka's variable-length integers: unsigned LEB128, and zigzag on top of it for signed values.

Readers take a buffer and a position and return (value, position after it). They raise ValueError
for a varint that is truncated or longer than its type allows.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

_UVARINT_BITS: Final = 32
_VARLONG_BITS: Final = 64


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# One and two byte forms cover nearly every length and delta of a metadata log.
_ENCODED: Final = tuple(_encode(value) for value in range(1 << 14))


def encode_uvarint(value: int) -> bytes:
    """The unsigned varint of `value` (at least 0)."""
    if 0 <= value < 1 << 14:
        return _ENCODED[value]
    if value < 0:
        raise ValueError(f"an unsigned varint cannot hold {value}")
    return _encode(value)


def encode_varint(value: int) -> bytes:
    """The zigzag varint of a signed value of up to 64 bits (Kafka's varint and varlong)."""
    return encode_uvarint((value << 1) ^ (value >> 63))


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint of up to 32 bits; returns it and the position after it."""
    try:
        byte = buffer[position]
        if byte < 0x80:
            return byte, position + 1
        return _read_long(buffer, position, _UVARINT_BITS)
    except IndexError:
        raise ValueError(f"varint at {position} is cut off") from None


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a zigzag varint of up to 64 bits; returns it and the position after it."""
    try:
        value = buffer[position]
        if value < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        value, position = _read_long(buffer, position, _VARLONG_BITS)
    except IndexError:
        raise ValueError(f"varint at {position} is cut off") from None
    return (value >> 1) ^ -(value & 1), position


def _read_long(buffer: Buffer, position: int, bits: int) -> tuple[int, int]:
    value = shift = 0
    start = position
    while True:
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise ValueError(f"varint at {start} is longer than {bits} bits")
    if value >> bits:
        raise ValueError(f"varint at {start} is longer than {bits} bits")
    return value, position
