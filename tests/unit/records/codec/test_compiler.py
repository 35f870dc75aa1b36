"""Derived codecs on messages made to hold one field of each kind."""

from __future__ import annotations

from typing import Annotated

import pytest

from quorate.records.codec.compiler import codec_of
from quorate.records.codec.schema import SchemaError, Tagged, Wire, message, structure


@structure
class Place:
    host: Annotated[str, Wire("string")]
    port: Annotated[int, Wire("uint16", "1+")] = 0
    tagged: Tagged = ()


@message(api_key=None, versions="0-3", flexible="2+")
class Greeting:
    """One field of each kind: fixed runs, gaps between them, null, absent, tagged, overruled."""

    number: Annotated[int, Wire("int32")]
    ready: Annotated[bool, Wire("bool")] = False
    note: Annotated[str | None, Wire("string", "1+", nullable="1+")] = "none"
    trace: Annotated[bytes, Wire("uuid", "2+")] = bytes(16)
    small: Annotated[int, Wire("int8", "2+", tag=3)] = -1
    large: Annotated[int, Wire("int64")] = 0
    places: Annotated[tuple[Place, ...], Wire("[]Place")] = ()
    next: Annotated[Place | None, Wire("Place", "3+", nullable="3+")] = None
    best: Annotated[Place, Wire("Place", "2+", tag=1)] = Place(host="")
    hint: Annotated[str, Wire("string", "3+", ignorable=True)] = ""
    client: Annotated[str, Wire("string", flexible="none")] = ""
    tagged: Tagged = ()


@message(api_key=None)
class Nothing:
    tagged: Tagged = ()


@message(api_key=None)
class Marked:
    mark: Annotated[bytes, Wire("uuid", tag=0)] = bytes(16)
    tagged: Tagged = ()


NUMBERS = "00000001" + "01" + "0000000000000007"
PLACES = (Place(host="h", port=9),)


@pytest.mark.parametrize(
    ("version", "value", "encoded"),
    [
        (
            0,
            Greeting(number=1, ready=True, large=7, places=(Place(host="h"),), client="c"),
            NUMBERS + "00000001" + "000168" + "000163",
        ),
        (
            1,
            Greeting(number=1, ready=True, note=None, large=7, places=PLACES, client="c"),
            "0000000101" + "ffff" + "0000000000000007" + "00000001" + "0001680009" + "000163",
        ),
        (
            2,
            Greeting(number=1, ready=True, note="n", trace=b"t" * 16, large=7, places=PLACES),
            "0000000101"
            + "026e"
            + "74" * 16
            + "0000000000000007"
            + "02"
            + "0268000900"
            + "0000"
            + "00",
        ),
        (
            3,
            Greeting(number=1, next=Place(host="x"), hint="?"),
            "0000000100"
            + "056e6f6e65"
            + "00" * 24
            + "01"
            + "01"
            + "0278000000"
            + "023f"
            + "0000"
            + "00",
        ),
        (
            2,
            Greeting(number=1, small=5, best=Place(host="b"), tagged=((2, b"u"), (9, b""))),
            "0000000100"
            + "056e6f6e65"
            + "00" * 24
            + "01"
            + "0000"
            + "04"
            + "01050262000000"
            + "020175"
            + "030105"
            + "0900",
        ),
    ],
)
def test_each_version_has_its_own_shape(version: int, value: Greeting, encoded: str) -> None:
    codec = codec_of(Greeting, version)
    assert codec.encode(value).hex() == encoded
    assert codec.decode(bytes.fromhex(encoded)) == (value, len(encoded) // 2)


def test_a_message_is_read_from_the_middle_of_any_buffer() -> None:
    codec = codec_of(Greeting, 3)
    value = Greeting(number=5, note="x", places=PLACES, tagged=((77, b"kept"),))
    encoded = b"before" + codec.encode(value) + b"behind"
    for buffer in (encoded, bytearray(encoded), memoryview(encoded)):
        assert codec.decode(buffer, 6) == (value, len(encoded) - 6)


def test_a_message_without_fields_is_its_tags_alone() -> None:
    codec = codec_of(Nothing, 0)
    assert codec.encode(Nothing()) == b"\0"
    assert codec.decode(b"\0") == (Nothing(), 1)
    assert codec.decode(b"\1\5\1x") == (Nothing(tagged=((5, b"x"),)), 4)


def test_a_tagged_field_is_left_out_at_its_default() -> None:
    codec = codec_of(Marked, 0)
    assert codec.encode(Marked()) == b"\0"
    assert codec.encode(Marked(mark=b"m" * 16)) == b"\1\0\x10" + b"m" * 16
    assert codec.decode(b"\1\0\x10" + b"m" * 16) == (Marked(mark=b"m" * 16), 19)


def test_unknown_tags_inside_structures_are_kept() -> None:
    codec = codec_of(Greeting, 3)
    value = Greeting(number=1, places=(Place(host="h", tagged=((10_000, b"ours"),)),))
    assert codec.decode(codec.encode(value))[0] == value


def test_a_codec_is_compiled_once() -> None:
    assert codec_of(Greeting, 2) is codec_of(Greeting, 2)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SchemaError, match="Greeting has versions 0 to 3, not 4"):
        codec_of(Greeting, 4)


@pytest.mark.parametrize(
    ("version", "value", "reason"),
    [
        (0, Greeting(number=1, note="x"), "note is 'x', but version 0 has no such field"),
        (1, Greeting(number=1, small=4), "small is 4, but version 1 has no such field"),
        (1, Greeting(number=1, tagged=((1, b""),)), "not flexible has no tagged fields"),
        (0, Greeting(number=2**31), "Greeting version 0: number, ready"),
        (2, Greeting(number=1, trace=b"short"), "a uuid has 16 bytes, not b'short'"),
        (0, Greeting(number=1, client=None), "client: may not be null"),  # type: ignore[arg-type]
        (0, Greeting(number=1, client=3), "client: "),  # type: ignore[arg-type]
        (0, Greeting(number=1, places=(Place(host="h" * 40_000),)), "places: host: "),
        (0, 5, "'int' object has no attribute"),
    ],
)
def test_what_a_version_cannot_carry_is_refused(version: int, value: Greeting, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        codec_of(Greeting, version).encode(value)


def test_a_field_that_may_be_dropped_is_dropped() -> None:
    codec = codec_of(Greeting, 2)
    assert codec.decode(codec.encode(Greeting(number=1, hint="?")))[0] == Greeting(number=1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "Greeting version 2: "),
        ("0000000100" + "05", "note: 4 bytes at 6 of 6"),
        ("0000000100" + "02ff", "note: 'utf-8'"),
        ("0000000100" + "01" + "00" * 24 + "00", "places: may not be null"),
        ("0000000100" + "01" + "00" * 24 + "01" + "0000" + "010504aa", "tag 5 is cut off"),
        ("0000000100" + "01" + "00" * 24 + "01" + "0000" + "0103020505", "tag 3 takes 1 of its 2"),
        ("0000000100" + "01" + "00" * 24 + "01" + "0000", "varint at 33 is cut off"),
    ],
)
def test_malformed_bytes_are_refused_with_the_fields_name(data: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        codec_of(Greeting, 2).decode(bytes.fromhex(data))


def test_every_cut_of_a_message_is_refused() -> None:
    codec = codec_of(Greeting, 3)
    encoded = codec.encode(
        Greeting(number=1, note="n", small=2, places=PLACES, next=PLACES[0], tagged=((9, b"x"),))
    )
    for end in range(len(encoded)):
        with pytest.raises(SchemaError):
            codec.decode(encoded[:end])
