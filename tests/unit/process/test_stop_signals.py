"""Stop signals before there is a loop, while there is one, and after it."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from quorate.process.stop_signals import (
    StopSignal,
    StopSignals,
    deferred,
    raised,
    status_of,
    stop_signals,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MEANINGLESS = (signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of the process, put back as they were."""
    numbers = (*NUMBERS, *MEANINGLESS)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


async def stopped_by(signals: StopSignals, *numbers: signal.Signals) -> asyncio.Event:
    stop = asyncio.Event()
    signals.on_stop(asyncio.get_running_loop(), stop.set)
    for number in numbers:
        send(number)
    return stop


@pytest.mark.parametrize("number", NUMBERS)
async def test_each_signal_stops_a_service(number: signal.Signals) -> None:
    stop = await stopped_by(StopSignals(), number)
    await asyncio.wait_for(stop.wait(), 10)


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_signal_before_the_loop_stops_it_at_once(number: signal.Signals) -> None:
    signals = StopSignals()
    signals.keep()
    send(number)
    stop = await stopped_by(signals)
    assert stop.is_set()


async def test_no_signal_stops_nothing() -> None:
    signals = StopSignals()
    signals.keep()
    stop = await stopped_by(signals)
    assert not stop.is_set()


def test_signals_after_the_loop_change_nothing() -> None:
    signals = StopSignals()
    signals.keep()
    asyncio.run(stopped_by(signals))
    signals.keep_on()
    send(signal.SIGTERM)
    send(signal.SIGHUP)
    send(signal.SIGTERM)


def test_a_process_that_does_not_keep_signals_has_its_own_handlers_after_the_loop() -> None:
    signals = StopSignals()
    asyncio.run(stopped_by(signals))
    signals.keep_on()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_ctrl_c_ends_a_start_that_hangs() -> None:
    signals = StopSignals()
    signals.keep()
    send(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


async def test_sighup_stays_ignored_where_nohup_ignores_it() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert signal.SIGHUP not in stop_signals()
    signals = StopSignals()
    signals.keep()
    stop = await stopped_by(signals, signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert not stop.is_set()


@pytest.mark.parametrize("number", MEANINGLESS)
def test_a_signal_without_a_meaning_is_ignored(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_DFL)
    StopSignals().keep()
    assert signal.getsignal(number) is signal.SIG_IGN


def test_a_signal_with_a_handler_keeps_it() -> None:
    received: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: received.append(number))
    StopSignals().keep()
    send(signal.SIGUSR1)
    assert received == [signal.SIGUSR1]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_loop_of_another_kind_asks_which_signal_came_first(number: signal.Signals) -> None:
    signals = StopSignals()
    before = signal.getsignal(number)
    with signals.recording():
        assert signals.received is None
        send(number)
        send(signal.SIGTERM)
        assert signals.received == number
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_ends_what_records_the_first() -> None:
    signals = StopSignals()
    with signals.recording():
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_is_raised_with_its_name_and_status(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(StopSignal) as caught, raised():
        send(number)
    assert str(caught.value) == number.name
    assert caught.value.status == status_of(number) == 128 + number
    assert signal.getsignal(number) is before


def test_a_signal_is_deferred_to_the_end_of_a_block() -> None:
    done = []

    def work(*numbers: signal.Signals) -> None:
        with raised(), deferred():
            for number in numbers:
                send(number)
            done.append(len(numbers))

    with pytest.raises(StopSignal, match="SIGTERM"):
        work(signal.SIGTERM, signal.SIGHUP)
    work()
    assert done == [2, 0]


def test_a_second_ctrl_c_interrupts_what_defers_the_first() -> None:
    def work() -> None:
        with raised(), deferred():
            send(signal.SIGINT)
            send(signal.SIGINT)
            pytest.fail("it went on")

    with pytest.raises(KeyboardInterrupt):
        work()


def test_a_signal_is_delivered_though_its_block_fails() -> None:
    def work() -> None:
        with raised(), deferred():
            send(signal.SIGTERM)
            raise OSError("the block's own failure")

    with pytest.raises(StopSignal):
        work()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_that_was_ignored_at_the_start_stays_so(number: signal.Signals) -> None:
    """A shell has what runs in its background ignore SIGINT."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with raised(), deferred():
            send(number)
        signals = StopSignals()
        with signals.recording():
            send(number)
        assert signals.received is None
    finally:
        signal.signal(number, before)


def test_another_thread_has_no_signals_to_raise_or_defer() -> None:
    def enter() -> str:
        with raised(), deferred():
            return "entered"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(enter).result() == "entered"
