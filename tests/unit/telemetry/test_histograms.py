"""Observations fall below the bounds that they do not exceed."""

from __future__ import annotations

import random

from quorate.telemetry.histograms import Histogram


def test_a_bound_belongs_to_what_is_below_it() -> None:
    durations = Histogram((0.001, 0.5))
    for value in (0.0, 0.001, 0.0011, 0.5, 0.7):
        durations.observe(value)
    assert [*durations.buckets()] == [("0.001", 2), ("0.5", 4), ("+Inf", 5)]
    assert durations.count == 5
    assert durations.sum == 0.0 + 0.001 + 0.0011 + 0.5 + 0.7


def test_every_observation_is_in_the_last_bucket() -> None:
    seed = random.SystemRandom().randrange(2**32)
    draw = random.Random(seed)
    bounds = tuple(sorted({draw.expovariate(1.0) for _ in range(draw.randint(1, 20))}))
    values = [draw.choice((draw.expovariate(1.0), draw.choice(bounds))) for _ in range(200)]
    durations = Histogram(bounds)
    for value in values:
        durations.observe(value)
    expected = [sum(value <= bound for value in values) for bound in bounds]
    assert [count for _, count in durations.buckets()] == [*expected, 200], f"seed {seed}"
