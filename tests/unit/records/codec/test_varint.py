"""Variable-length integers: their bytes, their limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.codec.varint import encode_uvarint, encode_varint, read_uvarint, read_varint

Reader: TypeAlias = Callable[[bytes, int], tuple[int, int]]


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_an_unsigned_varint_has_seven_bits_a_byte_lowest_first(value: int, encoded: str) -> None:
    assert encode_uvarint(value).hex() == encoded
    assert read_uvarint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (-(2**63), "ff" * 9 + "01")],
)
def test_a_signed_varint_is_zigzag(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_unsigned_varints_come_back(value: int, before: bytes) -> None:
    encoded = before + encode_uvarint(value)
    for buffer in (encoded, bytearray(encoded), memoryview(encoded)):
        assert read_uvarint(buffer, len(before)) == (value, len(encoded))


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_signed_varints_come_back(value: int, before: bytes) -> None:
    encoded = before + encode_varint(value)
    assert read_varint(encoded, len(before)) == (value, len(encoded))


@pytest.mark.parametrize("read", [read_uvarint, read_varint])
@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_a_varint_that_is_cut_off_is_refused(read: Reader, data: bytes) -> None:
    with pytest.raises(ValueError, match="varint at 0 is cut off"):
        read(data, 0)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_uvarint, b"\x80" * 5 + b"\x01"),
        (read_uvarint, b"\xff" * 4 + b"\x1f"),
        (read_varint, b"\x80" * 10 + b"\x01"),
        (read_varint, b"\xff" * 9 + b"\x02"),
    ],
)
def test_a_varint_longer_than_its_type_is_refused(read: Reader, data: bytes) -> None:
    with pytest.raises(ValueError, match="longer than"):
        read(data, 0)


def test_a_negative_number_has_no_unsigned_varint() -> None:
    with pytest.raises(ValueError, match="cannot hold -1"):
        encode_uvarint(-1)
