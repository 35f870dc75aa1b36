"""The limit of what streams of writes may have in flight."""

from __future__ import annotations

from quorate.rpc.controller.write_window import (
    OWN_WRITES,
    SHARED_BYTES,
    SHARED_WRITES,
    WRITES_MAX,
    SharedWriteBudget,
    WriteWindow,
)


def test_a_stream_alone_has_all_its_writes() -> None:
    window = WriteWindow(SharedWriteBudget())
    assert window.capacity == WRITES_MAX
    for left in range(WRITES_MAX, 0, -2):
        assert window.capacity == left
        window.acquire(2, 10)
    assert window.capacity == 0


def test_streams_that_hold_everything_leave_each_other_a_few() -> None:
    budget = SharedWriteBudget()
    windows = [WriteWindow(budget) for _ in range(2 * SHARED_WRITES // WRITES_MAX)]
    for window in windows:
        while window.capacity:
            window.acquire(1, 1)
    others = len(windows) - SHARED_WRITES // WRITES_MAX
    assert budget.writes == SHARED_WRITES + others * OWN_WRITES
    for window in windows:
        window.close()
    assert (budget.writes, budget.bytes) == (0, 0)


def test_whoever_waits_is_told_once_when_bytes_are_given_back() -> None:
    budget = SharedWriteBudget()
    greedy, other = WriteWindow(budget), WriteWindow(budget)
    greedy.acquire(1, SHARED_BYTES)
    other.acquire(1, SHARED_BYTES)
    assert other.capacity == 0
    told: list[bool] = []
    for _ in range(2):
        other.wait(lambda: told.append(other.capacity > 0))
    greedy.release(1, SHARED_BYTES)
    assert told == [False]
    other.wait(lambda: told.append(other.capacity > 0))
    other.release(1, SHARED_BYTES)
    greedy.release(0, 0)
    assert told == [False, True]


def test_a_stream_that_ends_while_it_waits_is_told_nothing() -> None:
    budget = SharedWriteBudget()
    window = WriteWindow(budget)
    window.acquire(1, SHARED_BYTES)
    told: list[None] = []
    window.wait(lambda: told.append(None))
    window.close()
    assert not budget.windows
    assert told == []
    assert (budget.writes, budget.bytes) == (0, 0)
