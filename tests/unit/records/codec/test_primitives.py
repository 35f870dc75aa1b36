"""Single values on the wire, compact and plain."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from quorate.records.codec.primitives import (
    Pair,
    array,
    check_uuid,
    nullable_structure,
    number,
    numbers,
    octets,
    string,
    uuid,
    uuids,
)
from quorate.records.codec.schema import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLAIN: Mapping[str, bool] = {"is_flexible": False, "is_nullable": True}
COMPACT: Mapping[str, bool] = {"is_flexible": True, "is_nullable": True}
LONG = tuple(range(100))


@pytest.mark.parametrize(
    ("pair", "value", "encoded"),
    [
        (number("h"), -2, "fffe"),
        (number("H"), 65535, "ffff"),
        (number("?"), True, "01"),
        (number("d"), 1.5, "3ff8000000000000"),
        (uuid(), bytes(range(16)), bytes(range(16)).hex()),
        (string(**PLAIN), "aé", "0003" + "61c3a9"),
        (string(**PLAIN), None, "ffff"),
        (string(**COMPACT), "aé", "04" + "61c3a9"),
        (string(**COMPACT), "", "01"),
        (string(**COMPACT), None, "00"),
        (octets(**PLAIN), b"ab", "00000002" + "6162"),
        (octets(**PLAIN), None, "ffffffff"),
        (octets(**COMPACT), b"ab", "03" + "6162"),
        (octets(**COMPACT), None, "00"),
        (numbers("i", **PLAIN), (1, -1), "00000002" + "00000001" + "ffffffff"),
        (numbers("i", **PLAIN), None, "ffffffff"),
        (numbers("h", **COMPACT), (1,), "02" + "0001"),
        (numbers("b", **COMPACT), (), "01"),
        (numbers("b", **COMPACT), LONG, "65" + bytes(LONG).hex()),
        (numbers("b", **COMPACT), None, "00"),
        (array(string(**COMPACT), **COMPACT), ("a", None), "03" + "0261" + "00"),
        (array(string(**PLAIN), **PLAIN), ("a",), "00000001" + "000161"),
        (array(string(**PLAIN), **COMPACT), None, "00"),
        (uuids(**COMPACT), (b"a" * 16, b"b" * 16), "03" + "61" * 16 + "62" * 16),
        (uuids(**PLAIN), (), "00000000"),
        (uuids(**COMPACT), None, "00"),
        (octets(**COMPACT), bytes(200), "c901" + "00" * 200),
        (nullable_structure(number("b")), 7, "01" + "07"),
        (nullable_structure(number("b")), None, "ff"),
    ],
)
def test_values_are_written_as_the_protocol_guide_says(
    pair: Pair, value: object, encoded: str
) -> None:
    read, write = pair
    out = bytearray(b"before")
    write(out, value)
    assert out[6:].hex() == encoded
    assert read(out, 6) == (value, len(out))
    assert read(memoryview(bytes(out) + b"behind"), 6) == (value, len(out))


@pytest.mark.parametrize("is_flexible", [True, False])
@pytest.mark.parametrize("kind", [string, octets])
def test_null_is_refused_where_it_may_not_be(
    kind: Callable[..., Pair], *, is_flexible: bool
) -> None:
    _, write_null = kind(is_flexible=is_flexible, is_nullable=True)
    read, write = kind(is_flexible=is_flexible, is_nullable=False)
    null = bytearray()
    write_null(null, None)
    with pytest.raises(SchemaError, match="may not be null"):
        read(null, 0)
    with pytest.raises(SchemaError, match="may not be null"):
        write(bytearray(), None)


@pytest.mark.parametrize(
    ("pair", "data"),
    [
        (string(**COMPACT), "05616263"),
        (octets(**COMPACT), "05616263"),
        (octets(**PLAIN), "00000004616263"),
        (array(number("b"), **COMPACT), "05616263"),
        (array(number("b"), **PLAIN), "00000004616263"),
        (uuid(), "00" * 15),
        (uuids(**COMPACT), "02" + "00" * 15),
    ],
)
def test_a_value_that_is_cut_off_is_refused(pair: Pair, data: str) -> None:
    read, _ = pair
    with pytest.raises(SchemaError, match=r"4 elements in 3 bytes|(4|16) bytes at"):
        read(bytes.fromhex(data), 0)


def test_an_array_of_numbers_that_is_cut_off_is_refused() -> None:
    read, _ = numbers("i", **COMPACT)
    for count in (b"\x03", b"\x7f", b"\xff\xff\xff\xff\x0f"):
        with pytest.raises(struct.error):
            read(count + b"\0\0\0\0", 0)


@pytest.mark.parametrize("value", [b"", bytes(15), bytes(17), None, "A" * 16])
def test_a_uuid_has_sixteen_bytes(value: bytes) -> None:
    with pytest.raises(SchemaError, match="a uuid has 16 bytes"):
        check_uuid(value)
