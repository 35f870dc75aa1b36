"""Signals that stop a process in order: SIGTERM, SIGINT, and SIGHUP unless it was ignored.

`keep` records them from the first moment of a process on: loading a service takes a second or two.
Without a handler a signal would end the process immediately, and the first process of a container
(PID 1) would never receive it: the kernel drops signals without a handler there. The service then
takes over with `on_stop`, which delivers the recorded signals.

A command without a loop has them `raised`, and `deferred` while it must not be interrupted.

SIGUSR1 and SIGUSR2 have no meaning here. Log rotation sends them by habit, and without a handler
they would end a leader before it transfers leadership: `keep` has them ignored.

A process that was started with SIGHUP ignored, as by `nohup`, continues when its terminal closes.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

_ALWAYS: Final = (signal.SIGTERM, signal.SIGINT)
_MEANINGLESS: Final = (signal.SIGUSR1, signal.SIGUSR2)
# The exit status of a process ended by a signal is the signal's number plus this, as in shells.
_BY_SIGNAL: Final = 128


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that stop this process."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return _ALWAYS
    return (*_ALWAYS, signal.SIGHUP)


def _handlers() -> dict[signal.Signals, Any]:
    """The handlers of the stop signals, without those that this process was started to ignore.

    A shell has its background processes ignore SIGINT.
    """
    found = {number: signal.getsignal(number) for number in stop_signals()}
    return {number: each for number, each in found.items() if each is not signal.SIG_IGN}


class StopSignal(KeyboardInterrupt):
    """A stop signal that ends what the main thread is doing."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = status_of(number)


def status_of(number: int) -> int:
    """The exit status of a process that a signal ended."""
    return _BY_SIGNAL + number


class StopSignals:
    """Records stop signals while no event loop takes them."""

    def __init__(self) -> None:
        self._is_keeping = False
        self._numbers: tuple[signal.Signals, ...] = ()
        self._received: list[int] = []

    def keep(self) -> None:
        """Record stop signals from now on. On the main thread."""
        self._is_keeping = True
        self._numbers = stop_signals()
        self._record()
        for number in _MEANINGLESS:
            # A measurement that hosts a controller may have taken it.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.SIG_IGN)

    def keep_on(self) -> None:
        """Record them again after the loop: a second signal must not change the exit status.

        Without effect in a process that did not call `keep`.
        """
        if self._is_keeping:
            self._record()

    def _record(self) -> None:
        for number in self._numbers:
            signal.signal(number, self._receive)

    def _receive(self, number: int, _: Any) -> None:  # noqa: ANN401 - a frame
        if number == signal.SIGINT and number in self._received:
            # A person who presses Ctrl-C twice does not wait for a start that hangs.
            raise KeyboardInterrupt
        if number not in self._received:
            self._received.append(number)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record stop signals while the block runs, without a loop. On the main thread."""
        before = _handlers()
        self._numbers = tuple(before)
        self._record()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @property
    def received(self) -> int | None:
        """The first stop signal that came, if any."""
        return self._received[0] if self._received else None

    def on_stop(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], object]) -> None:
        """Call `stop` on the loop for each stop signal, and now if one came before."""
        for number in self._numbers or stop_signals():
            loop.add_signal_handler(number, stop)
        if self._received:
            stop()


# A process has one set of handlers.
STOP_SIGNALS: Final = StopSignals()


@contextmanager
def raised() -> Iterator[None]:
    """Have each stop signal raise StopSignal in the main thread while the block runs.

    Without effect on another thread, which gets no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _handlers()
    try:
        for number in before:
            signal.signal(number, _raise)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Deliver the first stop signal of the block at its end; a second Ctrl-C interrupts it.

    Without effect on another thread than the main one, which gets no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = StopSignals()
    try:
        with signals.recording():
            yield
    finally:
        if signals.received is not None:
            signal.raise_signal(signals.received)


def _raise(number: int, _: Any) -> NoReturn:  # noqa: ANN401 - a frame
    raise StopSignal(number)
