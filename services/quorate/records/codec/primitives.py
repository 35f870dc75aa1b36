"""Readers and writers of single values: numbers, strings, bytes, uuids, arrays, null structures.

In flexible versions a length is encoded as an unsigned varint of the length plus one, so that 0
means null. In others it is a big-endian integer, and -1 means null (KIP-482).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from quorate.records.codec.schema import SchemaError
from quorate.records.codec.varint import Buffer, encode_uvarint, read_uvarint
from quorate.records.ids import UUID_BYTES

Reader: TypeAlias = Callable[[Buffer, int], tuple[Any, int]]
Writer: TypeAlias = Callable[[bytearray, Any], None]
Pair: TypeAlias = tuple[Reader, Writer]
_ReadLength: TypeAlias = Callable[[Buffer, int], tuple[int, int]]
_WriteLength: TypeAlias = Callable[[bytearray, int | None], None]

FIXED: Final[Mapping[str, str]] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}

_NULL: Final = -1
# Arrays below this length, such as the replicas of a partition, have precomputed layouts.
_SHORT: Final = 16
_STRUCTURE_THERE: Final = b"\x01"
_STRUCTURE_NULL: Final = b"\xff"


def number(code: str) -> Pair:
    """A number or boolean of the `struct` format `code`."""
    layout = struct.Struct(">" + code)

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        return layout.unpack_from(buffer, position)[0], position + layout.size

    def write(out: bytearray, value: object) -> None:
        out += layout.pack(value)

    return read, write


def uuid() -> Pair:
    """Sixteen bytes."""

    def read(buffer: Buffer, position: int) -> tuple[bytes, int]:
        end = position + UUID_BYTES
        return bytes(_slice(buffer, position, end)), end

    def write(out: bytearray, value: bytes) -> None:
        check_uuid(value)
        out += value

    return read, write


def check_uuid(value: bytes) -> None:
    """Raise SchemaError for anything but sixteen bytes, which `struct` would pad or truncate."""
    if not isinstance(value, bytes) or len(value) != UUID_BYTES:
        raise SchemaError(f"a uuid has {UUID_BYTES} bytes, not {value!r}")


def string(*, is_flexible: bool, is_nullable: bool) -> Pair:
    """UTF-8 text."""
    read_length, write_length = _length("h", is_flexible=is_flexible, is_nullable=is_nullable)

    def read(buffer: Buffer, position: int) -> tuple[str | None, int]:
        length, position = read_length(buffer, position)
        if length < 0:
            return None, position
        end = position + length
        return str(_slice(buffer, position, end), "utf-8"), end

    def write(out: bytearray, value: str | None) -> None:
        if value is None:
            write_length(out, None)
        else:
            content = value.encode()
            write_length(out, len(content))
            out += content

    return read, write


def octets(*, is_flexible: bool, is_nullable: bool) -> Pair:
    """Bytes, or record batches, which have the same encoding."""
    read_length, write_length = _length("i", is_flexible=is_flexible, is_nullable=is_nullable)

    def read(buffer: Buffer, position: int) -> tuple[bytes | None, int]:
        length, position = read_length(buffer, position)
        if length < 0:
            return None, position
        end = position + length
        return bytes(_slice(buffer, position, end)), end

    def write(out: bytearray, value: bytes | None) -> None:
        if value is None:
            write_length(out, None)
        else:
            write_length(out, len(value))
            out += value

    return read, write


def numbers(code: str, *, is_flexible: bool, is_nullable: bool) -> Pair:
    """An array of numbers, unpacked in one call."""
    read_length, write_length = _length("i", is_flexible=is_flexible, is_nullable=is_nullable)
    short = [struct.Struct(f">{count}{code}") for count in range(_SHORT)]

    def read(buffer: Buffer, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_length(buffer, position)
        if count < 0:
            return None, position
        layout = short[count] if count < _SHORT else struct.Struct(f">{count}{code}")
        return layout.unpack_from(buffer, position), position + layout.size

    def write(out: bytearray, value: tuple[Any, ...] | None) -> None:
        if value is None:
            write_length(out, None)
        else:
            count = len(value)
            write_length(out, count)
            layout = short[count] if count < _SHORT else struct.Struct(f">{count}{code}")
            out += layout.pack(*value)

    return read, write


def uuids(*, is_flexible: bool, is_nullable: bool) -> Pair:
    """An array of uuids."""
    read_length, write_length = _length("i", is_flexible=is_flexible, is_nullable=is_nullable)

    def read(buffer: Buffer, position: int) -> tuple[tuple[bytes, ...] | None, int]:
        count, position = read_length(buffer, position)
        if count < 0:
            return None, position
        end = position + count * UUID_BYTES
        data = bytes(_slice(buffer, position, end))
        return tuple([data[at : at + UUID_BYTES] for at in range(0, len(data), UUID_BYTES)]), end

    def write(out: bytearray, value: tuple[bytes, ...] | None) -> None:
        if value is None:
            write_length(out, None)
        else:
            write_length(out, len(value))
            for each in value:
                check_uuid(each)
            out += b"".join(value)

    return read, write


def array(element: Pair, *, is_flexible: bool, is_nullable: bool) -> Pair:
    """An array of any other elements, as a tuple."""
    read_length, write_length = _length("i", is_flexible=is_flexible, is_nullable=is_nullable)
    read_element, write_element = element

    def read(buffer: Buffer, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_length(buffer, position)
        if count < 0:
            return None, position
        if count > len(buffer) - position:
            raise SchemaError(f"{count} elements in {len(buffer) - position} bytes")
        values = []
        for _ in range(count):
            value, position = read_element(buffer, position)
            values.append(value)
        return tuple(values), position

    def write(out: bytearray, value: tuple[Any, ...] | None) -> None:
        if value is None:
            write_length(out, None)
        else:
            write_length(out, len(value))
            for item in value:
                write_element(out, item)

    return read, write


def nullable_structure(inner: Pair) -> Pair:
    """A structure after a byte for its presence: 1, or -1 for null."""
    read_inner, write_inner = inner

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        if buffer[position] >= 0x80:
            return None, position + 1
        return read_inner(buffer, position + 1)

    def write(out: bytearray, value: object) -> None:
        if value is None:
            out += _STRUCTURE_NULL
        else:
            out += _STRUCTURE_THERE
            write_inner(out, value)

    return read, write


def _length(code: str, *, is_flexible: bool, is_nullable: bool) -> tuple[_ReadLength, _WriteLength]:
    """Length codec; null is read as -1 and written for None, and rejected if not allowed.

    `code` is the `struct` format of the length in versions that are not flexible.
    """
    read_number, write_number = _varint_length() if is_flexible else number(code)

    def read(buffer: Buffer, position: int) -> tuple[int, int]:
        if is_flexible and 0 < (byte := buffer[position]) < 0x80:
            return byte - 1, position + 1
        length, position = read_number(buffer, position)
        if length < 0 and not is_nullable:
            raise SchemaError("may not be null")
        return length, position

    def write(out: bytearray, length: int | None) -> None:
        if length is None and not is_nullable:
            raise SchemaError("may not be null")
        write_number(out, _NULL if length is None else length)

    return read, write


def _varint_length() -> Pair:
    def read(buffer: Buffer, position: int) -> tuple[int, int]:
        length, position = read_uvarint(buffer, position)
        return length - 1, position

    def write(out: bytearray, length: int) -> None:
        out += encode_uvarint(length + 1)

    return read, write


def _slice(buffer: Buffer, position: int, end: int) -> Buffer:
    if end > len(buffer):
        raise SchemaError(f"{end - position} bytes at {position} of {len(buffer)}")
    return buffer[position:end]
