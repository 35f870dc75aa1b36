"""Frames that carry nothing are counted, and time and work forgive them."""

from __future__ import annotations

from quorate.h2.protocol.limits import FloodLimiter


def test_patience_ends() -> None:
    patience = few()
    assert [patience.spend(0.0) for _ in range(5)] == [True] * 4 + [False]


def test_time_gives_some_back() -> None:
    patience = few()
    assert not patience.spend(0.0, 5)
    assert patience.spend(1.0)
    assert patience.spend(1.0, 0)
    assert not patience.spend(1.0)


def test_what_moves_something_pays_for_what_does_not() -> None:
    patience = few()
    for _ in range(100):
        patience.earn()
        assert patience.spend(0.0)
        assert patience.spend(0.0)


def test_nothing_is_saved_up_beyond_the_bound() -> None:
    patience = few()
    for _ in range(100):
        patience.earn()
    assert not patience.spend(0.0, 5)


def test_a_connection_that_was_quiet_for_long_is_forgiven_as_much_as_one_that_was_not() -> None:
    patience = few()
    for second in range(100):
        assert patience.spend(float(second))


def test_what_is_charged_is_judged_later() -> None:
    patience = few()
    patience.charge(5)
    assert not patience.spend(0.0, 0)


def few() -> FloodLimiter:
    return FloodLimiter(at_once=4, per_s=2)
