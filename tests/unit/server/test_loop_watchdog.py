from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from quorate.server.loop_watchdog import STALL_THRESHOLD_S, LoopWatchdog

if TYPE_CHECKING:
    import pytest


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_a_loop_that_turns_is_nothing_to_tell_of(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watch = LoopWatchdog(asyncio.get_running_loop(), clock)
    for _ in range(5):
        watch.poll()
        await asyncio.sleep(0)
        clock.now_s += STALL_THRESHOLD_S
    assert (watch.stalled_s, watch.stalls, caplog.messages) == (0.0, 0, [])


async def test_a_loop_that_stands_is_told_of_once_with_the_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    watch = LoopWatchdog(asyncio.get_running_loop(), clock)

    def looks_from_another_thread() -> None:
        watch.poll()
        for _ in range(3):
            clock.now_s += STALL_THRESHOLD_S
            watch.poll()

    def stand() -> None:
        thread = threading.Thread(target=looks_from_another_thread)
        thread.start()
        thread.join()

    stand()
    assert watch.stalled_s == 3 * STALL_THRESHOLD_S
    assert watch.stalls == 1
    (said,) = caplog.messages
    assert said.startswith("the event loop stands, and nobody is answered")
    assert "< stand (" in said
    await asyncio.sleep(0)
    assert caplog.messages[1:] == [f"the event loop stood for {3 * STALL_THRESHOLD_S:.1f} s"]
    assert watch.stalled_s == 0.0


async def test_a_watch_that_is_stopped_ends_its_thread() -> None:
    others = set(threading.enumerate())
    watch = LoopWatchdog(asyncio.get_running_loop())
    watch.start()
    (thread,) = (t for t in threading.enumerate() if t.name == "loop watch" and t not in others)
    watch.stop()
    await asyncio.to_thread(thread.join)
