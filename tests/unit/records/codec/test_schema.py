"""Schemas that classes declare."""

from __future__ import annotations

from typing import Annotated

import pytest

from quorate.records.codec.schema import (
    OWN_DEFAULTS,
    Field,
    Schema,
    Struct,
    Tagged,
    Versions,
    Wire,
    message,
    schema_of,
    shapes_of,
    structure,
    zero_of,
)

NONE = Versions(0, -1)
ALL = Versions(0, 32767)


@structure
class Item:
    name: Annotated[str, Wire("string")]
    tagged: Tagged = ()


@message(api_key=77, versions="1-4", flexible="3+")
class Shopping:
    count: Annotated[int, Wire("int32", default=-1)]
    items: Annotated[tuple[Item, ...] | None, Wire("[]Item", "2+", nullable="4+")] = ()
    best: Annotated[Item, Wire("Item", "3+", tag=7, ignorable=True)]
    note: Annotated[str | None, Wire("string", "1-2", nullable="1-2", flexible="none")] = None
    tagged: Tagged = ()


ITEM = Struct(
    "Item",
    (
        Field(
            name="name",
            type="string",
            versions=ALL,
            nullable=NONE,
            tag=None,
            tagged=NONE,
            default="",
            ignorable=False,
            flexible=None,
            struct=None,
        ),
    ),
)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("3", [3], [2, 4]),
        ("1-2", [1, 2], [0, 3]),
        ("2+", [2, 99], [1]),
        ("none", [], [-1, 0, 1]),
    ],
)
def test_versions_are_written_as_kafka_writes_them(
    text: str, inside: list[int], outside: list[int]
) -> None:
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_a_class_declares_its_schema() -> None:
    count, items, best, note = schema_of(Shopping).body.fields
    assert schema_of(Shopping) == Schema(
        api_key=77,
        versions=Versions(1, 4),
        flexible=Versions(3, 32767),
        body=Struct("Shopping", (count, items, best, note)),
    )
    assert (count.name, count.type, count.default, count.struct) == ("count", "int32", -1, None)
    assert (items.is_array, items.element, items.default) == (True, "Item", ())
    assert (items.versions, items.nullable, items.struct) == (
        Versions(2, 32767),
        Versions(4, 32767),
        ITEM,
    )
    assert (best.tag, best.tagged, best.ignorable) == (7, Versions(3, 32767), True)
    assert (best.default, best.is_array) == (OWN_DEFAULTS, False)
    assert (note.flexible, note.default) == (NONE, None)


def test_a_schema_is_made_once_and_named_as_its_class() -> None:
    assert schema_of(Shopping) is schema_of(Shopping)
    assert schema_of(Shopping).name == "Shopping"


def test_the_classes_of_a_message_are_found_by_their_names() -> None:
    assert shapes_of(Shopping) == {"Shopping": Shopping, "Item": Item}


def test_messages_are_frozen_values_with_named_fields() -> None:
    one = Item(name="a")
    assert one == Item(name="a", tagged=())
    assert len({one, Item(name="a")}) == 1
    with pytest.raises(AttributeError):
        one.colour = "b"  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="positional"):
        Item("a")  # type: ignore[call-arg]


def test_a_type_without_default_starts_at_zero() -> None:
    found = [zero_of(kind) for kind in ("int8", "bool", "string", "bytes", "[]Item", "uuid")]
    assert found == [0, False, "", b"", (), bytes(16)]
    assert zero_of("Item") is OWN_DEFAULTS
