"""Generated functions and the closures that they call read and write the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from quorate.records.codec.primitives import numbers, string
from quorate.records.codec.schema import SchemaError, Tagged
from quorate.records.codec.struct_codegen import (
    TEXT,
    Part,
    Run,
    Tag,
    Tags,
    make_struct_decoder,
    make_struct_encoder,
)
from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXTS = string(is_flexible=True, is_nullable=True)
LISTS = numbers("h", is_flexible=True, is_nullable=True)
UUID = bytes(range(16))


@keyword_value_type
class Thing:
    """A run, a text, an array, a field that only later versions have, and a tagged one."""

    count: int = 1
    topic_id: bytes = UUID
    text: str | None = "a"
    numbers: tuple[int, ...] | None = ()
    later: int = 0
    note: str | None = ""
    tagged: Tagged = ()


def parts(text_kind: str | None, numbers_kind: str | None) -> Sequence[Run | Part]:
    return (
        Run(("count", "topic_id"), ("i", "16s")),
        Part("text", *TEXTS, text_kind),
        Part("numbers", *LISTS, numbers_kind),
    )


def _no_tags_are_read(_: object, position: int, __: object) -> int:
    raise ValueError(f"tags at {position}")


TAGS = Tags((Tag(7, "", Part("note", *TEXTS, TEXT)),), _no_tags_are_read)
ABSENT = {"later": 0}
READ = make_struct_decoder(Thing, parts(TEXT, "h"), TAGS, ABSENT)
WRITE = make_struct_encoder(Thing, parts(TEXT, "h"), TAGS, ABSENT, 3)
READ_BY_CLOSURES = make_struct_decoder(Thing, parts(None, None), TAGS, ABSENT)
WRITE_BY_CLOSURES = make_struct_encoder(Thing, parts(None, None), TAGS, ABSENT, 3)


@pytest.mark.parametrize("text", [None, "", "a", "é" * 63, "x" * 126, "x" * 127, "x" * 20_000])
@pytest.mark.parametrize("count", [None, 0, 1, 15, 16, 200])
def test_what_is_inlined_is_what_the_closures_do(text: str | None, count: int | None) -> None:
    thing = Thing(text=text, numbers=None if count is None else tuple(range(count)))
    out, expected = bytearray(b"ab"), bytearray(b"ab")
    WRITE(out, thing)
    WRITE_BY_CLOSURES(expected, thing)
    assert out == expected
    for buffer in (bytes(out), out, memoryview(bytes(out) + b"behind")):
        assert READ(buffer, 2) == READ_BY_CLOSURES(buffer, 2) == (thing, len(out))


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (Thing(count=2**31), "count, topic_id: "),
        (Thing(topic_id=b"short"), "count, topic_id: a uuid has 16 bytes, not b'short'"),
        (Thing(topic_id="x" * 16), "count, topic_id: a uuid has 16 bytes"),  # type: ignore[arg-type]
        (Thing(text=3), "text: 'int' object has no attribute 'encode'"),  # type: ignore[arg-type]
        (Thing(text="\ud800"), "text: 'utf-8' codec"),
        (Thing(numbers=(1, 2**15)), "numbers: "),
        (Thing(numbers=3), "numbers: "),  # type: ignore[arg-type]
        (Thing(later=5), "later is 5, but version 3 has no such field"),
    ],
)
def test_what_cannot_be_written_is_named(thing: Thing, reason: str) -> None:
    for write in (WRITE, WRITE_BY_CLOSURES):
        with pytest.raises(SchemaError, match=f"^{reason}"):
            write(bytearray(), thing)


def test_what_cannot_be_read_is_named_alike() -> None:
    out = bytearray()
    WRITE(out, Thing(text="é" * 4, numbers=(1, 2)))
    for end in range(len(out) - 1):
        for data in (bytes(out[:end]), bytes(out[:end]) + b"\xff"):
            assert _told(READ, data) == _told(READ_BY_CLOSURES, data)


def _told(read: Any, data: bytes) -> str:  # noqa: ANN401 - a reader
    try:
        return f"{read(data, 0)}"
    except ValueError as error:
        return str(error)


def test_tags_are_written_in_their_order() -> None:
    out = bytearray()
    WRITE(out, Thing(note="n", tagged=((3, b"u"), (9, b""))))
    assert out.endswith(bytes.fromhex("03" + "030175" + "0702026e" + "0900"))


def test_a_version_without_tags_has_none() -> None:
    read = make_struct_decoder(Thing, parts(TEXT, "h"), None, {"later": 0, "note": "?"})
    write = make_struct_encoder(Thing, parts(TEXT, "h"), None, ABSENT, 3)
    out = bytearray()
    write(out, Thing(note="dropped"))
    assert read(out, 0) == (Thing(note="?"), len(out))
    with pytest.raises(SchemaError, match="not flexible has no tagged fields"):
        write(out, Thing(tagged=((1, b""),)))
