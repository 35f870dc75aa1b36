from __future__ import annotations

import itertools

import pytest

from quorate.sim.log_generator.background_load import share_of
from quorate.sim.log_generator.options import DAY_MS, HOUR_MS


def test_all_is_done_in_the_end_and_nothing_at_the_beginning() -> None:
    assert share_of(0, 7 * DAY_MS) == 0
    assert share_of(7 * DAY_MS, 7 * DAY_MS) == pytest.approx(1)


def test_noon_is_busier_than_midnight_and_never_is_anything_undone() -> None:
    done = [share_of(hour * HOUR_MS, DAY_MS) for hour in range(25)]
    rates = [after - before for before, after in itertools.pairwise(done)]
    assert min(rates) > 0
    assert rates[11] > 3 * rates[0]
