"""Conclusions from the durations of flushes."""

from __future__ import annotations

from quorate.server.disk.flush_latency import FlushLatency


def test_quantiles_of_no_flushes_are_nothing() -> None:
    times = FlushLatency()
    assert (times.quantile_s(0.99), times.is_fast, times.warning(2000)) == (0.0, False, None)


def test_a_fast_disk_is_recognised_after_some_flushes() -> None:
    times = FlushLatency()
    for _ in range(16):
        times.add(0.0001)
    assert times.is_fast
    for _ in range(64):
        times.add(0.002)
    assert not times.is_fast


def test_slow_flushes_are_told_with_the_remedy() -> None:
    times = FlushLatency()
    for _ in range(20):
        times.add(0.6)
    warning = times.warning(2000)
    assert warning is not None
    assert "take up to 600 ms" in warning
    assert times.warning(4000) is None


def test_a_measured_flush_is_run_and_counted() -> None:
    times, ran = FlushLatency(), []
    times.measure(lambda: ran.append(1))
    assert (ran, times.count) == ([1], 1)
