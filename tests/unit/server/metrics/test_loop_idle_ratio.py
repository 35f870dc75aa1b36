"""The idle share of the loop, by two clocks."""

from __future__ import annotations

from quorate.server.metrics.loop_idle_ratio import LoopIdleRatio


def test_a_loop_is_idle_for_what_it_did_not_compute() -> None:
    wall_s, busy_s = 0.0, 0.0
    idleness = LoopIdleRatio(lambda: wall_s, lambda: busy_s)
    assert idleness.ratio == 1.0
    idleness.sample()
    assert idleness.ratio == 1.0
    wall_s, busy_s = 1.0, 0.25
    idleness.sample()
    assert idleness.ratio == 0.75


def test_only_the_last_half_minute_counts() -> None:
    wall_s, busy_s = 0.0, 0.0
    idleness = LoopIdleRatio(lambda: wall_s, lambda: busy_s)
    for second in range(100):
        wall_s = float(second)
        busy_s = float(min(second, 69))
        idleness.sample()
    assert idleness.ratio == 1.0


def test_clocks_that_disagree_do_not_make_it_negative() -> None:
    looks = iter([0.0, 1.0])
    idleness = LoopIdleRatio(lambda: next(looks), iter([0.0, 1.01]).__next__)
    idleness.sample()
    idleness.sample()
    assert idleness.ratio == 0.0
