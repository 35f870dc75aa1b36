"""Frames that carry nothing are counted, and time and work forgive them."""

from __future__ import annotations

from quorate.h2.limits import Limits, Patience

FEW = Limits(idle_frames_max=4, idle_frames_per_s=2)


def test_patience_ends() -> None:
    patience = Patience(FEW)
    assert [patience.spend(0.0) for _ in range(5)] == [True] * 4 + [False]


def test_time_gives_some_back() -> None:
    patience = Patience(FEW)
    assert not patience.spend(0.0, 5)
    assert patience.spend(1.0)
    assert patience.spend(1.0, 0)
    assert not patience.spend(1.0)


def test_what_moves_something_pays_for_what_does_not() -> None:
    patience = Patience(FEW)
    for _ in range(100):
        patience.earn()
        assert patience.spend(0.0)
        assert patience.spend(0.0)


def test_nothing_is_saved_up_beyond_the_bound() -> None:
    patience = Patience(FEW)
    for _ in range(100):
        patience.earn()
    assert not patience.spend(0.0, 5)
