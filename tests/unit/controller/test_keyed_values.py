from __future__ import annotations

from immutables import Map

from quorate.controller.keyed_values import KeyedValues


def values(**owners: dict[str, int]) -> KeyedValues[str, int]:
    return KeyedValues(Map({owner: Map(named) for owner, named in owners.items()}))


def test_nothing_is_set_where_nothing_was() -> None:
    assert values().of("a") == values().mutate().of("a") == Map()


def test_an_owner_without_any_value_left_is_gone() -> None:
    delta = values().mutate()
    delta.set("a", "x", None)
    delta.set("a", "x", 1)
    delta.set("a", "y", 2)
    delta.set("a", "x", None)
    assert delta.of("a") == Map(y=2)
    found = delta.finish()
    assert found == values(a={"y": 2})
    delta = found.mutate()
    delta.set("a", "y", None)
    assert delta.finish() == values()
    assert found == values(a={"y": 2})


def test_what_an_owner_had_goes_with_it_and_may_be_nothing() -> None:
    delta = values(a={"y": 2}, b={"x": 1}).mutate()
    delta.remove("a")
    delta.remove("a")
    assert delta.finish() == values(b={"x": 1})


def test_replacements_are_counted_and_make_no_difference() -> None:
    delta = values(a={"y": 2}).mutate()
    delta.set("a", "y", 2)
    again = delta.finish()
    assert again.replaced == 1
    assert again == values(a={"y": 2})
