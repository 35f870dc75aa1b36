"""Observers of a driver: they receive everything in order, and cannot harm it."""

from __future__ import annotations

import asyncio
import errno
import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft.messages import DescribeQuorumRequest
from quorate.raft.trace_events import TraceEvent, TraceEventKind
from quorate.records.ids import Epoch
from quorate.server.driver.observers import Observer, Observers, TraceEventLogger
from quorate.server.driver.raft_driver import ExitReason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import pytest

    from quorate.raft import messages as m
    from quorate.records.ids import ReplyToken
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]

RESIGNED = TraceEvent(
    TraceEventKind.LEADER_RESIGNED, "leader 1 resigned: may campaign after 0 ms", {}
)


class Memory(Observer):
    """Remembers what it received."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.steps: list[tuple[api.Event | None, api.Update]] = []
        self.tokens: list[ReplyToken] = []

    def submitted(self, token: ReplyToken, request: m.Request) -> None:
        self.told.append(f"submitted {type(request).__name__}")
        self.tokens.append(token)

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        self.told.append(f"stepped {type(event).__name__}")
        self.steps.append((event, update))

    def saving(self, effect: api.SaveElection) -> None:
        self.told.append(f"saving {effect.state.epoch}")

    def saved(self) -> None:
        self.told.append("saved")

    def ended(self) -> None:
        self.told.append("ended")


class Broken(Observer):
    """Raises at everything."""

    def submitted(self, token: ReplyToken, request: m.Request) -> None:
        raise ValueError("submitted")

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        raise ValueError("stepped")

    def saving(self, effect: api.SaveElection) -> None:
        raise ValueError("saving")

    def saved(self) -> None:
        raise ValueError("saved")

    def ended(self) -> None:
        raise ValueError("ended")


async def test_a_step_is_told_before_its_effects_and_a_barrier_at_both_ends(
    open_stack: Open,
) -> None:
    memory = Memory()
    stack = await open_stack(observers=Observers(memory))
    assert memory.told[:3] == ["stepped NoneType", "saving 1", "saved"]
    (first, start), *_ = memory.steps
    assert first is None
    assert [note.values["to_role"] for note in start.trace] == [
        "prospective",
        "candidate",
        "leader",
    ]
    await stack.close()
    assert memory.told[-1] == "ended"
    assert memory.told.count("ended") == 1


async def test_a_request_is_told_by_its_token_before_the_step_that_it_causes(
    open_stack: Open,
) -> None:
    memory = Memory()
    stack = await open_stack(observers=Observers(memory))
    memory.told.clear()
    token, answer = stack.driver.submit(DescribeQuorumRequest())
    await answer
    asked = memory.told.index("submitted DescribeQuorumRequest")
    assert memory.told[asked + 1] == "stepped RequestReceived"
    assert memory.tokens == [token]
    received = [event for event, _ in memory.steps if isinstance(event, api.RequestReceived)]
    assert [event.token for event in received] == [token]


async def test_an_observer_that_raises_ends_neither_the_controller_nor_the_others(
    open_stack: Open, caplog: pytest.LogCaptureFixture
) -> None:
    memory = Memory()
    stack = await open_stack(observers=Observers(Broken(), memory))
    _, answer = stack.driver.submit(DescribeQuorumRequest())
    await answer
    await stack.create("a")
    await stack.close()
    assert stack.ended.result() is ExitReason.STOPPED
    assert memory.told[:3] == ["stepped NoneType", "saving 1", "saved"]
    complaints = [line for line in caplog.records if line.getMessage() == "an observer failed"]
    assert {str(line.exc_info[1]) for line in complaints if line.exc_info} == {
        "submitted",
        "stepped",
        "saving",
        "saved",
        "ended",
    }
    assert len({line.__dict__["repeats"] for line in complaints}) == 1


async def test_what_did_not_come_to_the_disk_is_not_told_as_saved(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr("quorate.storage.log_store.LogStore.save_election", fail)
    stack = await open_stack(observers=Observers(memory), is_active=False)
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.DISK_FAILED
    assert "saving 1" in memory.told
    assert "saved" not in memory.told
    assert memory.told[-1] == "ended"


def test_notes_are_logged_as_they_read_with_the_epoch_of_the_step(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    TraceEventLogger(lambda: Epoch(4)).stepped(None, api.Update((), None, (RESIGNED,)))
    (line,) = caplog.records
    assert (line.name, line.getMessage()) == ("quorate.server.driver.raft_driver", RESIGNED.text)
    assert (line.__dict__["epoch"], line.__dict__["repeats"]) == (4, (4, RESIGNED.text))


def test_a_note_with_a_peers_text_is_bounded_and_repeats_by_its_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    note = TraceEvent(TraceEventKind.REFUSED_BY_PEER, "refused: " + "\x9b" * 100_000, {})
    TraceEventLogger(lambda: Epoch(4)).stepped(None, api.Update((), None, (note,)))
    (line,) = caplog.records
    assert line.getMessage().isprintable()
    assert len(line.getMessage()) < 1100
    assert line.__dict__["topic"] is TraceEventKind.REFUSED_BY_PEER


def test_notes_are_logged_in_the_context_of_their_step_and_nothing_else_is_in_it() -> None:
    entered: list[str] = []

    @contextmanager
    def context() -> Iterator[None]:
        entered.append("in")
        yield
        entered.append("out")

    note_log = TraceEventLogger(lambda: Epoch(4), context)
    note_log.stepped(None, api.Update((), None))
    assert entered == []
    note_log.stepped(None, api.Update((), None, (RESIGNED,)))
    assert entered == ["in", "out"]


async def test_what_comes_after_a_barrier_is_no_part_of_the_call_that_began_it(
    open_stack: Open,
) -> None:
    caller: ContextVar[str] = ContextVar("caller", default="nobody")
    seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    class Seeing(Observer):
        def stepped(self, event: api.Event | None, update: api.Update) -> None:
            if isinstance(event, api.ResignRequested):
                seen.set_result(caller.get())

    stack = await open_stack(observers=Observers(Seeing()))
    caller.set("a call")
    stack.driver.deliver(lambda: api.ResignRequested("a test"))
    assert await asyncio.wait_for(seen, 60) == "nobody"
