"""Values: compared and hashed by what is in them; that they stay is the type checker's to hold."""

from __future__ import annotations

from dataclasses import field, replace

import pytest

from quorate.records.value_types import keyword_value_type, value_type


@value_type
class Point:
    x: int
    y: int = 0
    note: str = field(default="", compare=False)


def test_equal_fields_are_equal_values() -> None:
    assert Point(1, 2, "a") == Point(1, 2, "b") != Point(2, 1)
    assert len({Point(1, 2, "a"), Point(1, 2, "b"), Point(1)}) == 2


def test_another_one_is_made_of_it() -> None:
    point = Point(1)
    assert replace(point, y=5) == Point(1, 5)
    assert point == Point(1)


@value_type
class Secret:
    name: str
    key: str = field(repr=False)


@value_type
class Shown:
    x: int

    def __repr__(self) -> str:
        return "shown"


def test_a_value_shows_its_fields_but_secret_ones() -> None:
    assert repr(Point(1, note="a")) == "Point(x=1, y=0, note='a')"
    assert repr(Secret("n", "k")) == "Secret(name='n')"
    assert repr(Shown(1)) == "shown"


def test_there_is_no_other_field() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]


@keyword_value_type
class Place:
    host: str
    port: int = 0


def test_the_fields_of_some_have_to_be_named() -> None:
    assert Place(host="h") == Place(host="h", port=0)
    with pytest.raises(TypeError):
        Place("h", 0)  # type: ignore[call-arg]


def test_the_type_checker_refuses_to_change_a_field() -> None:
    """An ignore that nothing needs is an error of the type checker."""
    point = Point(1)
    point.x = 2  # type: ignore[misc]
    assert point == Point(2)
