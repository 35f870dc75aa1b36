"""Turns of clients that have work, by the time that each has used."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.h2.start_time_fair_queue import StartTimeFairQueue


@dataclass(eq=False)
class One:
    name: str
    used_s: float = 0.0


def taken(
    start_time_fair_queue: StartTimeFairQueue[One], count: int, *, costs: dict[str, float]
) -> str:
    """The order of turns, where each client has work again after its own."""
    names = ""
    for _ in range(count):
        one = start_time_fair_queue.first()
        start_time_fair_queue.take(one)
        start_time_fair_queue.charge(one, costs[one.name], 100)
        start_time_fair_queue.add(one)
        names += one.name
    return names


def test_who_used_less_has_more_turns() -> None:
    turns: StartTimeFairQueue[One] = StartTimeFairQueue()
    for name in "ab":
        turns.add(One(name))
    assert taken(turns, 8, costs={"a": 3, "b": 1}) == "abbbabbb"


def test_time_without_work_is_not_saved_up() -> None:
    turns: StartTimeFairQueue[One] = StartTimeFairQueue()
    turns.add(One("a"))
    assert taken(turns, 5, costs={"a": 1}) == "aaaaa"
    turns.add(One("b"))
    assert taken(turns, 4, costs={"a": 1, "b": 1}) == "baba"


def test_one_that_is_charged_while_it_waits_is_behind_the_others() -> None:
    turns: StartTimeFairQueue[One] = StartTimeFairQueue()
    first, second = One("a"), One("b")
    turns.add(first)
    turns.add(second)
    turns.charge(first, 1, 100)
    assert turns.first() is second


def test_a_debt_has_a_bound() -> None:
    turns: StartTimeFairQueue[One] = StartTimeFairQueue()
    one = One("a")
    turns.charge(one, 50, 2)
    assert one.used_s == 2


def test_used_time_counts_after_none_has_work() -> None:
    turns: StartTimeFairQueue[One] = StartTimeFairQueue()
    much, little = One("a"), One("b")
    for one in (much, little):
        turns.add(one)
        turns.charge(one, 5.0 if one is much else 1.0, 100)
    turns.clear()
    assert len(turns) == 0
    turns.add(much)
    turns.add(little)
    assert turns.first() is little
