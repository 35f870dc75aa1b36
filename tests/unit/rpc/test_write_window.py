"""What streams of writes may have under way."""

from __future__ import annotations

from quorate.rpc.write_window import (
    OWN_WRITES,
    SHARED_BYTES,
    SHARED_WRITES,
    WRITES_MAX,
    WriteBudget,
    WriteWindow,
)


def test_a_stream_alone_has_all_its_writes() -> None:
    window = WriteWindow(WriteBudget())
    for _ in range(WRITES_MAX):
        assert not window.is_full
        window.take(10)
    assert window.is_full


def test_streams_that_hold_everything_leave_each_other_a_few() -> None:
    budget = WriteBudget()
    windows = [WriteWindow(budget) for _ in range(2 * SHARED_WRITES // WRITES_MAX)]
    for window in windows:
        while not window.is_full:
            window.take(1)
    others = len(windows) - SHARED_WRITES // WRITES_MAX
    assert budget.writes == SHARED_WRITES + others * OWN_WRITES
    for window in windows:
        window.close()
    assert (budget.writes, budget.bytes) == (0, 0)


def test_whoever_waits_is_told_once_when_bytes_are_given_back() -> None:
    budget = WriteBudget()
    greedy, other = WriteWindow(budget), WriteWindow(budget)
    greedy.take(SHARED_BYTES)
    other.take(SHARED_BYTES)
    assert other.is_full
    told: list[bool] = []
    for _ in range(2):
        other.wait(lambda: told.append(other.is_full))
    greedy.give_back(1, SHARED_BYTES)
    assert told == [True]
    other.wait(lambda: told.append(other.is_full))
    other.give_back(1, SHARED_BYTES)
    greedy.give_back(0, 0)
    assert told == [True, False]


def test_a_stream_that_ends_while_it_waits_is_told_nothing() -> None:
    budget = WriteBudget()
    window = WriteWindow(budget)
    window.take(SHARED_BYTES)
    told: list[None] = []
    window.wait(lambda: told.append(None))
    window.close()
    assert not budget.windows
    assert told == []
    assert (budget.writes, budget.bytes) == (0, 0)
