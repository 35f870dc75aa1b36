"""RaftDriver: steps the core with events and performs its effects in order.

Everything runs on one event loop; what may wait for the disk runs in threads. Appends are the
exception and are written on the loop: handing each to a thread would cost every commit two thread
switches. A write into the page cache waits only when the kernel has no room for it; `LoopWatchdog`
reports that. Effects behind a barrier wait until it has completed (`barriers`). The flush runs
concurrently with everything else, so that replies to parked fetches are sent before it ends.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from contextvars import copy_context
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.ids import Millis, ReplyToken
from quorate.server.disk.log_access import LogAccess
from quorate.server.driver.barriers import Barriers
from quorate.server.driver.observers import Observers
from quorate.server.driver.pending_responses import PendingResponses
from quorate.server.driver.wakeup_timer import WakeupTimer
from quorate.server.host import Host
from quorate.storage.errors import StorageError
from quorate.storage.reserved_descriptors import is_resource_shortage

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.core import RaftCore
    from quorate.records.ids import Offset
    from quorate.server.driver.interfaces import PeerTransport, StateMachineCallbacks
    from quorate.storage.log_store import LogStore

log = logging.getLogger(__name__)

WorkItem: TypeAlias = "api.Event | Callable[[], api.Event | None]"
# Time for a leader that read damaged data to resign and for its last responses to be sent.
RESIGNATION_S: Final = 0.2

_CHANGES: Final = get_args(m.MembershipRequest)
_STATE_MACHINE_RESPONSES: Final = (m.ProposalResponse, m.ReadResponse)


class ExitReason(Enum):
    """Reasons after which the core is never stepped again."""

    STOPPED = "handed over"
    LATE = "stopped before somebody else led"
    DAMAGED = "the log is damaged"
    DISK_FAILED = "the disk failed"
    SHORT = "the machine is short of descriptors, memory or threads"
    UNHEARD = "the listener ended without having been told to"
    CRASHED = "a defect of this program, or a log that contradicts it"


class RaftDriver:
    """Owner of one core and one store for the lifetime of the process, or until the disk fails."""

    def __init__(
        self,
        core: RaftCore,
        store: LogStore,
        on_end: Callable[[ExitReason, str], None],
        observers: Observers | None = None,
        host: Host | None = None,
    ) -> None:
        """Take time and threads from `host`: from this machine if None."""
        self.core = core
        self.store = store
        self.progress: api.PublishProgress | None = None
        self.exit_reason: ExitReason | None = None
        self.host = host or Host()
        self._on_end = on_end
        self.observers = Observers() if observers is None else observers
        self._transport: PeerTransport
        self._application: StateMachineCallbacks
        self._loop = asyncio.get_running_loop()
        self._tokens = itertools.count(1)
        self._inbox: deque[WorkItem] = deque()
        self._effects: deque[api.Effect] = deque()
        self._is_pumping = self._is_damaged = self.is_stopping = False
        # Later work must not run in the context of the caller that happens to wake the loop.
        context = copy_context()
        self.access = LogAccess(self, store.log, self.host)
        self._pending_responses = PendingResponses(store, self.access)
        self._barriers = Barriers(self, store, self.access, self.observers, context)
        self._wakeup_timer = WakeupTimer(self.host, self._fire, context)

    def start(self, transport: PeerTransport, application: StateMachineCallbacks) -> None:
        """Assume the role that the recovered state gives."""
        self._transport, self._application = transport, application
        self._take(None, self.core.start(self.host.monotonic_ms()))
        self.pump()

    @property
    def high_watermark(self) -> Offset | None:
        """The high watermark that the core last reported; None before that."""
        return None if self.progress is None else self.progress.high_watermark

    @property
    def has_ended(self) -> bool:
        return self.exit_reason is not None

    @property
    def is_disk_stalled(self) -> bool:
        """True if a disk call has exceeded its deadline, so that the core cannot be stepped."""
        return self._barriers.is_standing

    @property
    def has_exclusive_log(self) -> bool:
        return self.access.is_exclusive

    @property
    def deadline_ms(self) -> int:
        return self.core.replica.config.check_quorum_timeout_ms

    # --- events -----------------------------------------------------------------------------------

    def next_token(self) -> ReplyToken:
        """A token for a proposal or a read, unique within the process."""
        return ReplyToken(next(self._tokens))

    def submit(self, request: m.Request) -> tuple[ReplyToken, asyncio.Future[m.Response]]:
        """Pass a request of a peer or a client to the core; the future is its response."""
        token = self.next_token()
        if self.exit_reason is not None or self.is_disk_stalled:
            refused: asyncio.Future[m.Response] = self._loop.create_future()
            refused.cancel()
            return token, refused
        answer = self._pending_responses.register(token)
        self.observers.submitted(token, request)
        self.deliver(api.RequestReceived(token, request))
        return token, answer

    def caller_disconnected(self, token: ReplyToken) -> None:
        """Drop a pending response: its caller is gone."""
        if self._pending_responses.discard(token):
            self.deliver(api.CallerDisconnected(token))

    def deliver(self, work: WorkItem) -> None:
        """Queue an event, or a function that runs in its turn and may return an event."""
        if self.exit_reason is None:
            self._inbox.append(work)
            self.pump()

    def pump(self) -> None:
        """Perform effects, then take events, until none is left or a barrier is in progress."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while self.exit_reason is None and not self._barriers.is_active:
                if self._effects:
                    self._perform(self._effects.popleft())
                elif self._inbox:
                    self._turn(self._inbox.popleft())
                elif not self.access.flushing.begin(leads=self._leads):
                    break
        except Exception as error:
            self.fail(error)
        finally:
            self._is_pumping = False
        if self.exit_reason is None and not self._barriers.is_active:
            self._wakeup_timer.set()

    def deliver_first(self, event: api.Event) -> None:
        self._inbox.appendleft(event)

    def shut_down(self, timeout_ms: Millis) -> None:
        """Take no new requests, finish what is decided, transfer leadership, end.

        See rule `stopping_replica`.
        """
        self.is_stopping = True
        self.deliver(api.ShutdownRequested(timeout_ms))

    @property
    def _leads(self) -> bool:
        return self.progress is not None and self.progress.is_leader

    def flushed(self, event: api.LogFlushed) -> None:
        """Queue the event of a completed flush for the pump."""
        self._inbox.append(event)
        self._application.flushed()

    def _turn(self, work: WorkItem) -> None:
        if callable(work):
            self._barriers.clean(work)
            return
        event = work
        if self._comes_after_decisions(event) and not self._is_first(event):
            return
        self._take(event, self.core.step(event, self.host.monotonic_ms()))

    def _comes_after_decisions(self, event: api.Event) -> bool:
        """True if the event may append a voter set, or is the last before records are refused."""
        match event:
            case api.ShutdownRequested():
                return True
            case api.TimerFired():
                return self.core.may_append_voters
            case api.RequestReceived(request=request):
                return isinstance(request, _CHANGES)
            case api.ResponseReceived(response=response):
                return isinstance(response, m.ApiVersionsResponse)
        return False

    def _is_first(self, event: api.Event) -> bool:
        """True if all earlier decisions have been proposed; otherwise queue them before the event.

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
        self._wakeup_timer.deadline_ms = update.wake_at_ms
        self.observers.stepped(event, update)

    def _fire(self) -> None:
        self.deliver(api.TimerFired())

    # --- effects ----------------------------------------------------------------------------------

    def _perform(self, effect: api.Effect) -> None:
        match effect:
            case api.SendReply(token=token, response=response):
                self._reply(token, response)
            case api.AppendToLog():
                timestamp_ms = self.host.wall_ms()
                self.store.append(effect, timestamp_ms=timestamp_ms)
                self._application.on_appended(effect, timestamp_ms)
            case api.SendRequest():
                self._transport.send(effect)
            case api.PublishProgress():
                self.progress = effect
                self._application.on_progress(effect)
            case api.SaveElection():
                self._barriers.save(effect)
            case api.TruncateLog():
                self._barriers.truncate(effect)
            case api.InstallSnapshot():
                self._barriers.install(effect, self._application)
            case api.WriteSnapshotChunk():
                self._barriers.write_chunk(effect)
            case api.CheckSnapshot():
                self._application.check_snapshot(effect)
            case api.EndHealing():
                self._barriers.end_healing()
            case api.EndAbstention():
                self._barriers.end_abstention()
            case api.SaveRival():
                self._barriers.save_rival(effect)
            case api.ProbeLeader():
                self._transport.probe(effect)
            case api.ShutdownComplete(in_time=True):
                self._end(ExitReason.STOPPED, "handed over")
            case api.ShutdownComplete():
                self._end(ExitReason.LATE, "the time to stop is over, and nobody else leads")

    def _reply(self, token: ReplyToken, response: m.Response) -> None:
        if isinstance(response, _STATE_MACHINE_RESPONSES):
            self._application.on_response(token, response)
        else:
            self._pending_responses.complete(token, response)

    # --- disk stalls ------------------------------------------------------------------------------

    def on_disk_stalled(self) -> None:
        self._pending_responses.cancel()
        kept = [work for work in self._inbox if not isinstance(work, api.RequestReceived)]
        self._inbox = deque(kept)
        self._application.on_disk_stalled()

    def on_disk_resumed(self) -> None:
        self._application.on_log_changed()

    # --- the end ----------------------------------------------------------------------------------

    def on_damage(self, message: str) -> None:
        """A read found the log damaged (rule `disk_fail_stop`): resign, then restart."""
        if not self._is_damaged:
            self._is_damaged = True
            log.error(message)
            self._loop.call_later(RESIGNATION_S, self._end, ExitReason.DAMAGED, message)
            self.deliver(api.ResignRequested("the log is damaged"))

    def fail(self, error: Exception) -> None:
        """Never step the core again: the disk failed, or a defect of this program was hit."""
        if is_resource_shortage(error):
            self._end(ExitReason.SHORT, f"{ExitReason.SHORT.value}, the disk is healthy: {error}")
        elif isinstance(error, OSError):
            self.store.log.fail(error)
            self._end(ExitReason.DISK_FAILED, f"the disk failed: {error}")
        elif isinstance(error, StorageError):
            self._end(ExitReason.DAMAGED, str(error))
        else:
            log.critical("the controller cannot go on", exc_info=error)
            self._end(ExitReason.CRASHED, f"{type(error).__name__}: {error}")

    def stop_unreachable(self) -> None:
        """Never step the core again: peers and clients can no longer call it."""
        self._end(ExitReason.UNHEARD, ExitReason.UNHEARD.value)

    def _end(self, exit_reason: ExitReason, message: str) -> None:
        if self.exit_reason is not None:
            return
        self.exit_reason = exit_reason
        self._effects.clear()
        self._inbox.clear()
        self._wakeup_timer.cancel()
        self._pending_responses.cancel()
        self.access.cancel()
        self.observers.ended()
        self._on_end(exit_reason, message)

    async def close(self, limit_s: float | None = None) -> bool:
        """Wait for the disk, then close the files; False if the limit ran out first.

        Files on a stalled disk stay open: a thread that waits for one still uses it.
        """
        self._end(ExitReason.STOPPED, "closed")
        try:
            async with asyncio.timeout(limit_s):
                await self.quiesce()
        except TimeoutError:
            return False
        finally:
            self.access.close()
        self.store.close()
        return True

    async def quiesce(self) -> None:
        """Wait until the disk has completed all outstanding calls."""
        await self._barriers.wait_completed()
        await self.access.wait_idle()
