from __future__ import annotations

from quorate.server.metadata.session_clock import LAST_CALL_MS, TICK_MS, SilenceClock

PAUSE_MS = 3000


class Looked:
    """A clock, and a host's that advances between the looks at the loop."""

    def __init__(self) -> None:
        self.now_ms = 10_000
        self.clock = SilenceClock(self.now_ms, pause_ms=PAUSE_MS)

    def after(self, stood_ms: int) -> bool:
        """Let the loop stand for so long beyond the time between two looks; whether it paused."""
        self.now_ms += TICK_MS + stood_ms
        return self.clock.look(self.now_ms)

    @property
    def behind_ms(self) -> int:
        """The lag of the clock behind the host's, without the last call."""
        return self.now_ms - self.clock.time_ms(self.now_ms) - LAST_CALL_MS


def test_silence_is_judged_by_the_time_before_a_last_call() -> None:
    looked = Looked()
    for _ in range(3):
        assert not looked.after(0)
        assert looked.behind_ms == 0
    assert looked.clock.reaches_ms(20_000) == 20_000 + LAST_CALL_MS


def test_the_clock_stands_while_the_loop_does_and_as_long_again() -> None:
    looked = Looked()
    looked.after(0)
    before_ms = looked.now_ms
    assert not looked.after(700)
    while looked.now_ms < before_ms + TICK_MS + 2 * 700:
        assert looked.now_ms - looked.behind_ms == before_ms
        assert looked.clock.reaches_ms(0) == before_ms + TICK_MS + 2 * 700
        looked.after(0)
    assert looked.behind_ms == 0


def test_a_loop_that_stands_again_and_again_is_judged_from_when_it_first_stood() -> None:
    looked = Looked()
    before_ms = looked.now_ms
    for _ in range(3):
        looked.after(700)
        assert looked.now_ms - looked.behind_ms == before_ms


def test_the_clock_is_behind_by_two_pauses_at_most_however_often_the_loop_stands() -> None:
    looked = Looked()
    behind_ms = []
    for _ in range(9):
        assert not looked.after(PAUSE_MS)
        behind_ms.append(looked.behind_ms)
    assert behind_ms[:2] == [PAUSE_MS + TICK_MS, 2 * PAUSE_MS]
    assert set(behind_ms[1:]) == {2 * PAUSE_MS}


def test_after_a_pause_there_is_nothing_to_wait_for() -> None:
    looked = Looked()
    looked.after(700)
    assert looked.after(PAUSE_MS + 1)
    assert looked.behind_ms == 0


def test_looks_between_ticks_are_looks() -> None:
    looked = Looked()
    for _ in range(40):
        looked.now_ms += TICK_MS // 2
        assert not looked.clock.look(looked.now_ms)
        assert looked.behind_ms == 0


def test_timers_that_are_a_little_late_make_no_stall() -> None:
    """As those of an idle loop are: a stall after many of them begins where the loop stood."""
    looked = Looked()
    for _ in range(200):
        looked.after(1)
        assert looked.behind_ms == 0
    before_ms = looked.now_ms
    looked.after(700)
    assert looked.now_ms - looked.behind_ms == before_ms
