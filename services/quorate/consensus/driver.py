"""Drives the consensus core: events in, effects performed strictly in order, one timer.

Everything runs on one event loop, and what may wait for the disk in threads. Appends alone are
written in place: to hand each to a thread would cost every commit two changes of threads, and a
write into the page cache waits only where the kernel has no room for it; `LoopWatch` tells of that.
Effects behind a barrier wait until it is over; the flush runs beside everything else, so replies to
parked fetches are on their way before it ends. A barrier that lasts too long leaves the core
standing: then nothing new is taken, and what waits is given up, until the disk is back (rule 24).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from contextvars import copy_context
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, get_args

from quorate.consensus.disk_calls import DiskCalls
from quorate.consensus.flushing import LogFlushing
from quorate.consensus.host import Host
from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.ids import Millis, ReplyToken
from quorate.storage.descriptors import is_shortage
from quorate.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.consensus.flush_times import FlushTimes
    from quorate.consensus.observing import Observers
    from quorate.consensus.sides import Application, Transport
    from quorate.raft.core import RaftCore
    from quorate.records.ids import Offset
    from quorate.storage.store import LogStore

log = logging.getLogger(__name__)

T = TypeVar("T")
Work: TypeAlias = "api.Event | Callable[[], api.Event | None]"
# What is left to do for a leader that read damage: resign, and let the answers go out.
RESIGNATION_S: Final = 0.2
_FOR_FETCH: Final = "a read for a Fetch"
# The one call of its thread that flushes nothing.
WRITING_CHUNK: Final = "writing a fetched snapshot"

_CHANGES: Final = get_args(m.MembershipRequest)
_OF_THE_APPLICATION: Final = (m.ProposalResponse, m.ReadResponse)


class Ending(Enum):
    """Why the core is never stepped again."""

    STOPPED = "handed over"
    LATE = "stopped before somebody else led"
    DAMAGED = "the log is damaged"
    DISK_FAILED = "the disk failed"
    SHORT = "the machine is short of descriptors, memory or threads"
    UNHEARD = "the listener ended without having been told to"
    CRASHED = "a defect of this program, or a log that contradicts it"


class RaftDriver:
    """Owner of one core and one store for the life of a process, or until the disk fails."""

    def __init__(
        self,
        core: RaftCore,
        store: LogStore,
        on_end: Callable[[Ending, str], None],
        observers: Observers | None = None,
        host: Host | None = None,
    ) -> None:
        """`host` is the machine that it takes its time and its threads from: this one if None."""
        self.core = core
        self.store = store
        self.progress: api.PublishProgress | None = None
        self.ending: Ending | None = None
        self.host = host or Host()
        self._on_end = on_end
        self._observers = observers
        self._transport: Transport
        self._application: Application
        self._loop = asyncio.get_running_loop()
        self._tokens = itertools.count(1)
        self._answers: dict[ReplyToken, asyncio.Future[m.Response]] = {}
        self._inbox: deque[Work] = deque()
        self._effects: deque[api.Effect] = deque()
        self._is_pumping = False
        self._barrier: asyncio.Task[None] | None = None
        self.disk_calls = DiskCalls(self._loop.time)
        self.is_standing = self.is_stopping = False
        self.has_log_alone = False
        self._standing: asyncio.TimerHandle | None = None
        self._disk = self.host.disk_queue("disk", self.disk_calls)
        self._reader = self.host.disk_queue("read", self.disk_calls)
        self._reads: dict[asyncio.Future[Any], asyncio.Future[Any]] = {}
        self._flushing = LogFlushing(self, self._disk)
        # The caller that wakes the loop has a context of its own, of which later work is no part.
        self._context = copy_context()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = Millis(0)
        self._wake_ms: Millis | None = None
        self._is_damaged = False

    def start(self, transport: Transport, application: Application) -> None:
        """Take up the role that the disk tells."""
        self._transport, self._application = transport, application
        self._take(None, self.core.start(self.host.monotonic_ms()))
        self.pump()

    @property
    def high_watermark(self) -> Offset | None:
        """Where the committed log ends, as far as the core has told."""
        return None if self.progress is None else self.progress.high_watermark

    @property
    def flush_patience_s(self) -> float:
        """For how long the next batch should wait for the flush of the last one, if at all."""
        return self._flushing.patience_s

    @property
    def is_flushing(self) -> bool:
        return self._flushing.is_under_way

    @property
    def flush_times(self) -> FlushTimes:
        return self._flushing.times

    # --- events -----------------------------------------------------------------------------------

    def next_token(self) -> ReplyToken:
        """A token for a proposal or a read; never used twice in a process."""
        return ReplyToken(next(self._tokens))

    def submit(self, request: m.Request) -> tuple[ReplyToken, asyncio.Future[m.Response]]:
        """Hand a request of a peer or a client to the core; the future is its answer."""
        token = self.next_token()
        answer: asyncio.Future[m.Response] = self._loop.create_future()
        if self.ending is not None or self.is_standing:
            answer.cancel()
            return token, answer
        self._answers[token] = answer
        if self._observers is not None:
            self._observers.submitted(token, request)
        self.deliver(api.RequestReceived(token, request))
        return token, answer

    def gone(self, token: ReplyToken) -> None:
        """Nobody waits for that answer any more."""
        if self._answers.pop(token, None) is not None:
            self.deliver(api.CallerGone(token))

    def deliver(self, work: Work) -> None:
        """An event, or something to do in an event's place which may give one."""
        if self.ending is None:
            self._inbox.append(work)
            self.pump()

    def pump(self) -> None:
        """Effects, then events, until nothing is left or a barrier is under way."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while self.ending is None and self._barrier is None:
                if self._effects:
                    self._perform(self._effects.popleft())
                elif self._inbox:
                    self._turn(self._inbox.popleft())
                elif not self._flushing.begin(leads=self._leads):
                    break
        except Exception as error:
            self.fail(error)
        finally:
            self._is_pumping = False
        self._arm()

    def shut_down(self, timeout_ms: Millis) -> None:
        """Take nothing new, finish what is decided, hand over, end (rule 25)."""
        self.is_stopping = True
        self.deliver(api.ShutdownRequested(timeout_ms))

    @property
    def _leads(self) -> bool:
        return self.progress is not None and self.progress.is_leader

    def flushed(self, event: api.LogFlushed) -> None:
        """A flush is over; the pump comes to its event."""
        self._inbox.append(event)
        self._application.flushed()

    def _turn(self, work: Work) -> None:
        if callable(work):
            self._begin_barrier(self._clean(work))
            return
        event = work
        if _comes_after_decisions(event) and not self._is_first(event):
            return
        self._take(event, self.core.step(event, self.host.monotonic_ms()))

    def _is_first(self, event: api.Event) -> bool:
        """Whether nothing that was decided before is still to be proposed; else it goes first.

        Decisions know the offsets of their records, and control records take offsets too.
        """
        self._application.drain()
        proposals = [work for work in self._inbox if isinstance(work, api.RecordsProposed)]
        if not proposals:
            return True
        others = [work for work in self._inbox if not isinstance(work, api.RecordsProposed)]
        self._inbox = deque([*proposals, event, *others])
        return False

    def _take(self, event: api.Event | None, update: api.Update) -> None:
        self._effects.extend(update.effects)
        self._wake_ms = update.wake_at_ms
        if self._observers is not None:
            self._observers.stepped(event, update)

    def _arm(self) -> None:
        """One timer is enough as long as it is not later than the wake-up."""
        wake = self._wake_ms
        if self.ending is not None or self._barrier is not None or wake is None:
            return
        if self._timer is not None:
            if self._timer_ms <= wake:
                return
            self._timer.cancel()
        self._timer_ms = wake
        delay_s = max(0, wake - self.host.monotonic_ms()) / 1000
        self._timer = self._loop.call_later(delay_s, self._fire, context=self._context)

    def _fire(self) -> None:
        self._timer = None
        self.deliver(api.TimerFired())

    def look(self, what: str, work: Callable[[], T]) -> asyncio.Future[T]:
        """Read something from the disk, beside everything else."""
        return self._reader.run(what, work)

    # --- effects ----------------------------------------------------------------------------------

    def _perform(self, effect: api.Effect) -> None:
        match effect:
            case api.SendReply(token=token, response=response):
                self._reply(token, response)
            case api.AppendToLog():
                timestamp_ms = self.host.wall_ms()
                self.store.append(effect, timestamp_ms=timestamp_ms)
                self._application.appended(effect, timestamp_ms)
            case api.SendRequest():
                self._transport.send(effect)
            case api.PublishProgress():
                self.progress = effect
                self._application.progressed(effect)
            case api.SaveElection():
                self._begin_barrier(self._save(effect))
            case api.TruncateLog():
                self._begin_barrier(self._truncate(effect))
            case api.InstallSnapshot():
                self._begin_barrier(self._install(effect))
            case api.WriteSnapshotChunk():
                write = partial(self.store.write_chunk, effect)
                self._begin_barrier(self._disk.run(WRITING_CHUNK, write))
            case api.CheckSnapshot():
                self._application.check_snapshot(effect)
            case api.ForgetRememberedEnd():
                forget = self.store.forget_remembered_end
                self._begin_barrier(self._disk.run("forgetting the remembered end", forget))
            case api.ProbeLeader():
                self._transport.probe(effect)
            case api.ShutdownComplete(in_time=True):
                self._end(Ending.STOPPED, "handed over")
            case api.ShutdownComplete():
                self._end(Ending.LATE, "the time to stop is over, and nobody else leads")

    def _reply(self, token: ReplyToken, response: m.Response) -> None:
        if isinstance(response, _OF_THE_APPLICATION):
            self._application.answered(token, response)
            return
        answer = self._answers.pop(token, None)
        if answer is None or answer.done():
            return
        match response:
            case m.FetchResponse(records=m.LogRange() as span):
                cached = self.store.cached_range(span)
                if cached is None:
                    fill = partial(self._with_records, response, span)
                    self.read_log(_FOR_FETCH, fill, answer)
                else:
                    answer.set_result(response.with_records(cached))
            case m.FetchSnapshotResponse(chunk=m.SnapshotRange() as part):
                self.read_log(_FOR_FETCH, partial(self._with_chunk, response, part), answer)
            case _:
                answer.set_result(response)

    def _with_records(self, response: m.FetchResponse, span: m.LogRange) -> m.Response:
        return response.with_records(self.store.read_range(span))

    def _with_chunk(self, response: m.FetchSnapshotResponse, part: m.SnapshotRange) -> m.Response:
        return replace(response, chunk=self.store.read_chunk(part))

    def read_log(
        self, what: str, work: Callable[[], T], answer: asyncio.Future[T] | None = None
    ) -> asyncio.Future[T]:
        """Read what lies in the log's directory; whatever changes the log waits for it.

        The answer is cancelled where the disk does not give it: then this node ends.
        """
        answer = self._loop.create_future() if answer is None else answer
        read = self._reader.run(what, work)
        self._reads[read] = answer
        read.add_done_callback(self._was_read)
        return answer

    def _was_read(self, read: asyncio.Future[Any]) -> None:
        answer = self._reads.pop(read)
        error = read.exception()
        if error is None:
            if not answer.done():
                answer.set_result(read.result())
            return
        answer.cancel()
        if isinstance(error, StorageError):
            self.damaged(str(error))
        elif isinstance(error, Exception):
            self.fail(error)

    # --- barriers ---------------------------------------------------------------------------------

    def _begin_barrier(self, work: Awaitable[None]) -> None:
        async def wait() -> None:
            await work

        self._standing = self._loop.call_later(self.deadline_ms / 1000, self._stand)
        self._barrier = self._loop.create_task(wait(), context=self._context)
        self._barrier.add_done_callback(self._barrier_over, context=self._context)

    @property
    def deadline_ms(self) -> int:
        """How long a call to the disk may take (rule 24)."""
        return self.core.replica.config.fetch_timeout_ms * 3 // 2

    def _save(self, effect: api.SaveElection) -> asyncio.Future[None]:
        saving = self._disk.run("saving quorum-state", partial(self.store.save_election, effect))
        if self._observers is not None:
            self._observers.saving(effect)
            saving.add_done_callback(self._observers.saved)
        return saving

    def _stand(self) -> None:
        """The disk has not answered in time: nobody who waits for the core gets an answer."""
        if self.ending is not None:
            return
        self.is_standing = True
        for answer in self._answers.values():
            answer.cancel()
        self._answers.clear()
        kept = [work for work in self._inbox if not isinstance(work, api.RequestReceived)]
        self._inbox = deque(kept)
        self._application.disk_hangs()

    def _barrier_over(self, task: asyncio.Task[None]) -> None:
        self._barrier = None
        if self._standing is not None:
            self._standing.cancel()
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            self.fail(error)
            return
        self.is_standing = False
        self.pump()
        if self.ending is None and self._barrier is None:
            self._application.advance()

    async def _alone(self, what: str, work: Callable[[], T]) -> T:
        """Change the log while nobody flushes or reads it."""
        self.has_log_alone = True
        try:
            await self._flushing.over()
            if self._reads:
                await asyncio.wait(self._reads)
            return await self._disk.run(what, work)
        finally:
            self.has_log_alone = False

    async def _truncate(self, effect: api.TruncateLog) -> None:
        event = await self._alone("cutting the log", partial(self.store.truncate, effect))
        # The core has to hear of it before anything else.
        self._inbox.appendleft(event)

    async def _clean(self, work: Callable[[], api.Event | None]) -> None:
        event = await self._alone("cleaning the log", work)
        if event is not None:
            self._inbox.appendleft(event)

    async def _install(self, effect: api.InstallSnapshot) -> None:
        await self._application.pause()
        install = partial(self.store.install, effect)
        event = await self._alone("installing a snapshot", install)
        # The core has to hear of it before anything else.
        self._inbox.appendleft(event)
        self._application.resume(event)

    # --- the end ----------------------------------------------------------------------------------

    def damaged(self, message: str) -> None:
        """The log was found damaged while it was read (rule 17): resign, then start over."""
        if not self._is_damaged:
            self._is_damaged = True
            log.error(message)
            self._loop.call_later(RESIGNATION_S, self._end, Ending.DAMAGED, message)
            self.deliver(api.ResignRequested("the log is damaged"))

    def fail(self, error: Exception) -> None:
        """Never step the core again: the disk failed, or this program did."""
        if is_shortage(error):
            self._end(Ending.SHORT, f"{Ending.SHORT.value}, the disk is healthy: {error}")
        elif isinstance(error, OSError):
            self._end(Ending.DISK_FAILED, f"the disk failed: {error}")
        elif isinstance(error, StorageError):
            self._end(Ending.DAMAGED, str(error))
        else:
            log.critical("the controller cannot go on", exc_info=error)
            self._end(Ending.CRASHED, f"{type(error).__name__}: {error}")

    def fall_silent(self) -> None:
        """Never step the core again: no peer and no client can call it."""
        self._end(Ending.UNHEARD, Ending.UNHEARD.value)

    def _end(self, ending: Ending, message: str) -> None:
        if self.ending is not None:
            return
        self.ending = ending
        self._effects.clear()
        self._inbox.clear()
        if self._timer is not None:
            self._timer.cancel()
        for answer in (*self._answers.values(), *self._reads.values()):
            answer.cancel()
        self._answers.clear()
        if self._observers is not None:
            self._observers.ended()
        self._on_end(ending, message)

    async def close(self, limit_s: float | None = None) -> bool:
        """Wait for the disk, then close the files; False where it did not answer within the limit.

        Files of a disk that hangs stay open: a thread that waits for one still uses it.
        """
        self._end(Ending.STOPPED, "closed")
        try:
            async with asyncio.timeout(limit_s):
                await self._quiesce()
        except TimeoutError:
            return False
        finally:
            for thread in (self._flushing, self._disk, self._reader):
                thread.close()
        self.store.close()
        return True

    async def _quiesce(self) -> None:
        if self._barrier is not None:
            await asyncio.wait([self._barrier])
        await self._flushing.over()
        if self._reads:
            await asyncio.wait(self._reads)
        await self._disk.run("the last call", lambda: None)


def _comes_after_decisions(event: api.Event) -> bool:
    """Whether a leader may append a voter set because of it, or takes no more records after it."""
    match event:
        case api.ShutdownRequested():
            return True
        case api.RequestReceived(request=request):
            return isinstance(request, _CHANGES)
        case api.ResponseReceived(response=response):
            return isinstance(response, m.ApiVersionsResponse)
    return False
