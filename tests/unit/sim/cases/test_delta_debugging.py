"""Lists that are made smaller."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from quorate.sim.cases.delta_debugging import bisect_min, ddmin, without_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def needs(*wanted: int) -> tuple[Callable[[Sequence[int]], bool], list[int]]:
    """Holds as long as all of these are there; and how many were looked at each time."""
    looked: list[int] = []

    def holds(parts: Sequence[int]) -> bool:
        looked.append(len(parts))
        return set(wanted) <= set(parts)

    return holds, looked


@pytest.mark.parametrize("wanted", [(), (0,), (99,), (3, 4), (0, 50, 99), (10, 11, 12, 13)])
def test_what_is_needed_stays_and_nothing_else(wanted: tuple[int, ...]) -> None:
    holds, _ = needs(*wanted)
    assert list(ddmin(range(100), holds)) == list(wanted)


def test_few_of_many_are_found_in_a_few_looks() -> None:
    holds, looked = needs(17, 900)
    assert list(ddmin(range(1000), holds)) == [17, 900]
    assert len(looked) < 100


def test_parts_that_only_go_together_are_looked_at_again() -> None:
    """A part that needs another is dropped first, and the other in the next round."""

    def holds(parts: Sequence[int]) -> bool:
        return 5 in parts and (1 not in parts or 2 in parts)

    assert list(ddmin([1, 2, 3, 4, 5], holds)) == [5]


def test_nothing_can_be_left_out_of_the_result_whatever_has_to_hold() -> None:
    for seed in range(50):
        draw = Random(seed)
        rules = [frozenset(draw.sample(range(20), draw.randint(1, 4))) for _ in range(3)]

        def holds(parts: Sequence[int], rules: list[frozenset[int]] = rules) -> bool:
            return any(rule <= set(parts) for rule in rules)

        found = list(ddmin(range(20), holds))
        assert holds(found)
        assert not any(holds([p for p in found if p != part]) for part in found)


def test_groups_go_as_a_whole() -> None:
    holds, looked = needs(3, 8)
    groups = [lambda part, rest=rest: part % 3 == rest for rest in range(3)]
    assert list(without_groups(range(10), groups, holds)) == [0, 2, 3, 5, 6, 8, 9]
    assert len(looked) == 3


def test_a_number_is_halved_until_less_does_not_do() -> None:
    assert bisect_min(1000, lambda value: value >= 137) == 137
    assert bisect_min(1000, lambda value: value >= 0, at_least=20) == 20
    assert bisect_min(1000, lambda value: value >= 1000) == 1000
