"""The moment of a step, and what is counted and drawn from it."""

from __future__ import annotations

from quorate.raft.timers import Timers
from quorate.records.ids import Millis
from tests.unit.raft import cores


class Drawing:
    """These draws, one after the other."""

    def __init__(self, *draws: float) -> None:
        self._draws = iter(draws)

    def random(self) -> float:
        return next(self._draws)


def timers(*draws: float) -> Timers:
    timers = Timers(cores.config(), Drawing(*draws))
    timers.now = Millis(500)
    return timers


def test_delays_are_counted_from_the_step_under_way() -> None:
    assert timers().after(20) == 520
    assert timers().after(-20) == 480


def test_a_draw_is_never_what_it_is_below() -> None:
    assert [timers(draw).draw(100) for draw in (0.0, 0.5, 0.9999)] == [0, 50, 99]


def test_an_election_timeout_is_drawn_between_one_and_two() -> None:
    timeout_ms = cores.config().election_timeout_ms
    drawn = [timers(draw).draw_election_timeout() for draw in (0.0, 0.9999)]
    assert drawn == [timeout_ms, 2 * timeout_ms - 1]


def test_a_quorum_is_checked_after_one_and_a_half_fetch_timeouts() -> None:
    assert timers().check_quorum_deadline() == 500 + cores.config().fetch_timeout_ms * 3 // 2
