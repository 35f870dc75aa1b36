"""A controller that records the CPU time of each turn of its loop (tests.bench.loop_latency).

    python -m tests.bench.profiled_controller --config FILE

SIGUSR1 writes what was noted since the last one to the file that QUORATE_TURNS names, as JSON;
SIGUSR2 does, too, and the next one writes it again. A turn is one callback of the loop, in CPU time
of its thread: that others keep the machine busy does not count, but what the machine does in the
thread's name does, so its noise is noted with it. asyncio's own loop runs it, since uvloop's
callbacks cannot be got at.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from quorate.controller.controller import Controller
from quorate.server.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_NS: Final = 4_000_000
LONGEST_MAX: Final = 20
_NOISE_ITEMS: Final = 40_000
_NOISE_EVERY_S: Final = 0.05


class Turns:
    """The notes since `write`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.sum_ns = 0
        self.millis: Counter[int] = Counter()
        self.longest: list[tuple[int, int, str]] = []
        self.passes: Counter[int] = Counter()
        self.passes_ns = 0
        self.longest_pass_ns = self.longest_pass_objects = self.most_objects = 0
        # To count objects is not what the controller does.
        self.counting_ns = 0
        self.in_turn_ns = 0
        self.expired_s = 0.0
        self.noise: list[int] = []

    def turned(self, took_ns: int, name: Callable[[], str]) -> None:
        self.count += 1
        self.sum_ns += took_ns
        self.millis[took_ns // 1_000_000] += 1
        if took_ns >= LONG_NS:
            self.longest.append((took_ns, self.in_turn_ns, name()))
            self.longest.sort(reverse=True)
            del self.longest[LONGEST_MAX:]

    def write(self) -> None:
        path = Path(os.environ["QUORATE_TURNS"])
        part = path.with_suffix(".part")
        noted = {
            "count": self.count,
            "sum_ms": self.sum_ns / 1e6,
            "millis": sorted(self.millis.items()),
            "longest": [(took / 1e6, passes / 1e6, name) for took, passes, name in self.longest],
            "passes": sorted(self.passes.items()),
            "passes_ms": self.passes_ns / 1e6,
            "longest_pass_ms": self.longest_pass_ns / 1e6,
            "longest_pass_objects": self.longest_pass_objects,
            "most_objects": self.most_objects,
            "idle_s": time.monotonic() - self.expired_s if self.expired_s else None,
            "noise_ms": [took / 1e6 for took in self.noise],
        }
        part.write_text(json.dumps(noted), encoding="ascii")
        part.rename(path)


_turns = Turns()
_passes_began_ns: dict[int, int] = {}
_looked_at: dict[int, int] = {}
_run: Final = asyncio.Handle._run


def _noting_run(handle: Any) -> None:  # noqa: ANN401 - asyncio's own
    """In place of `Handle._run`."""
    callback = handle._callback
    _turns.in_turn_ns = _turns.counting_ns = 0
    begun_ns = time.thread_time_ns()
    _run(handle)
    took_ns = time.thread_time_ns() - begun_ns - _turns.counting_ns
    _turns.turned(took_ns, lambda: _name(callback))


def _name(callback: Any) -> str:  # noqa: ANN401 - whatever the loop calls
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        coroutine: Any = task.get_coro()
        return f"task {getattr(coroutine, '__qualname__', coroutine)}"
    return str(getattr(callback, "__qualname__", callback))


def _on_pass(phase: str, info: dict[str, int]) -> None:
    thread = threading.get_ident()
    if phase == "start":
        begun_ns = time.thread_time_ns()
        _looked_at[thread] = sum(len(gc.get_objects(g)) for g in range(info["generation"] + 1))
        _passes_began_ns[thread] = time.thread_time_ns()
        if thread == threading.main_thread().ident:
            _turns.counting_ns += _passes_began_ns[thread] - begun_ns
        return
    took_ns = time.thread_time_ns() - _passes_began_ns.pop(thread)
    _turns.passes[info["generation"]] += 1
    _turns.passes_ns += took_ns
    objects = _looked_at.pop(thread)
    _turns.most_objects = max(_turns.most_objects, objects)
    if took_ns > _turns.longest_pass_ns:
        _turns.longest_pass_ns, _turns.longest_pass_objects = took_ns, objects
    if thread == threading.main_thread().ident:
        _turns.in_turn_ns += took_ns


def _noting_expire(expire: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:  # noqa: ANN401 - whatever it wraps
        decision = expire(*arguments)
        if decision is not None:
            _turns.expired_s = time.monotonic()
        return decision

    return noted


def _make_noise() -> None:
    """The same few milliseconds of work again and again: what one takes longer is the machine's."""
    while True:
        time.sleep(_NOISE_EVERY_S)
        begun_ns = time.thread_time_ns()
        for _ in range(_NOISE_ITEMS):
            pass
        _turns.noise.append(time.thread_time_ns() - begun_ns)


def _write(number: int, *_: object) -> None:
    _turns.write()
    if number == signal.SIGUSR1:
        _turns.clear()


if __name__ == "__main__":
    asyncio.Handle._run = _noting_run  # type: ignore[assignment, method-assign]
    uvloop.run = asyncio.run  # type: ignore[assignment]
    Controller.expire = _noting_expire(Controller.expire)  # type: ignore[method-assign]
    gc.callbacks.append(_on_pass)
    signal.signal(signal.SIGUSR1, _write)
    signal.signal(signal.SIGUSR2, _write)
    threading.Thread(target=_make_noise, daemon=True).start()
    sys.exit(main())
