"""A driver between a scripted core, and a disk whose calls return when a test lets them.

Nothing here waits: a call to the disk is in flight until `Disk.finish`, and what the loop has to do
is over after `settle`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from quorate.raft import api
from quorate.raft.messages import ElectionState, FetchResponse, LeaderInfo, LogRange
from quorate.records.batch import encode_batch
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplyToken,
)
from quorate.records.voters import VoterSet
from quorate.server.driver.raft_driver import ExitReason, RaftDriver
from quorate.server.host import Host
from quorate.sim.engine.disk import SimulatedDisk
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.core import RaftCore
    from quorate.raft.messages import Request, Response
    from quorate.server.disk.executor import DiskCallTracker

T = TypeVar("T")
DIRECTORY = "/data"
SAVING = "saving quorum-state"
FLUSH = "the flush of the log"
CUTTING = "cutting the log"
CLEANING = "cleaning the log"
INSTALLING = "installing a snapshot"
READING = "a read for a Fetch"
# Turns of the loop after which nothing is left to do: each thing that is done wakes few others.
TURNS = 20


@dataclass(slots=True)
class Call:
    """A call to the disk that has not returned."""

    what: str
    work: Callable[[], Any]
    future: asyncio.Future[Any]


class Disk(Host):
    """A disk each thread of which is blocked until a test lets one call be made."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, deque[Call]] = {}

    def monotonic_ms(self) -> Millis:
        return Millis(0)

    def wall_ms(self) -> int:
        return 0

    def disk_queue(self, name: str, calls: DiskCallTracker) -> Thread:
        del calls
        self.calls[name] = waiting = deque[Call]()
        return Thread(waiting)

    @property
    def under_way(self) -> list[str]:
        """The current call of each thread."""
        return [waiting[0].what for waiting in self.calls.values() if waiting]

    def finish(self, what: str, error: Exception | None = None) -> None:
        """Have the call that a thread is at made now, or let it fail."""
        waiting = next(calls for calls in self.calls.values() if calls and calls[0].what == what)
        call = waiting.popleft()
        if error is not None:
            call.future.set_exception(error)
        else:
            call.future.set_result(call.work())


class Thread:
    """One of them; its calls are made one after the other."""

    def __init__(self, waiting: deque[Call]) -> None:
        self._waiting = waiting

    def run(self, what: str, work: Callable[[], T], *, wait_s: float = 0.0) -> asyncio.Future[T]:
        del wait_s
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(Call(what, work, future))
        return future

    def close(self) -> None:
        """Its calls are never made."""


class Core:
    """Answers each event with the effects that a test has for it, and remembers the event."""

    def __init__(self) -> None:
        config = SimpleNamespace(check_quorum_timeout_ms=3000)
        self.replica = SimpleNamespace(config=config)
        self.heard: list[api.Event] = []
        self.says: dict[api.Event, tuple[api.Effect, ...]] = {}

    def start(self, now_ms: Millis) -> api.Update:
        del now_ms
        return api.Update((), None)

    def step(self, event: api.Event, now_ms: Millis) -> api.Update:
        del now_ms
        self.heard.append(event)
        return api.Update(self.says.pop(event, ()), None)


class Sides:
    """The way to the peers and the state machine, as a list of what was done to them."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def send(self, effect: api.SendRequest) -> None:
        self.done.append(f"sent {type(effect.request).__name__}")

    def __getattr__(self, name: str) -> Callable[..., None]:
        def note(*_: object) -> None:
            self.done.append(name)

        return note

    async def suspend_storage_access(self) -> None:
        self.done.append("suspend_storage_access")


class DrivenByHand:
    """One driver on the log of a voter, with the real code for storage below it."""

    def __init__(self) -> None:
        fs = SimulatedDisk()
        meta = MetaProperties(NodeId(1), ClusterId("cluster"), DirectoryId(b"d" * 16))
        format_directory(fs, DIRECTORY, Formatting(meta=meta, records=()), timestamp_ms=0)
        # Nothing is in memory, so that a Fetch has its records from the disk.
        config = StorageConfig(node_id=NodeId(1), segment_bytes=4096, cache_bytes=0)
        self.store, _ = LogStore.open(fs, DIRECTORY, config)
        self.core, self.disk, self.sides = Core(), Disk(), Sides()
        self.ended: list[ExitReason] = []
        self._tokens = 0
        self.driver = RaftDriver(
            cast("RaftCore", self.core), self.store, self._end, None, self.disk
        )
        self.driver.start(cast("Any", self.sides), cast("Any", self.sides))

    def _end(self, exit_reason: ExitReason, _message: str) -> None:
        self.ended.append(exit_reason)

    async def tell(self, event: api.Event, *effects: api.Effect) -> None:
        """Something happens, and the core wants this done."""
        self.core.says[event] = effects
        self.driver.deliver(event)
        await settle()

    async def ask(
        self, request: Request, *effects: api.Effect, response: Response
    ) -> asyncio.Future[Response]:
        """A request comes, on which the core wants this done before it is answered."""
        self._tokens += 1
        token = ReplyToken(self._tokens)
        event = api.RequestReceived(token, request)
        self.core.says[event] = (*effects, api.SendReply(token, response))
        given, answer = self.driver.submit(request)
        assert given == token
        await settle()
        return answer

    async def finish(self, what: str, error: Exception | None = None) -> None:
        self.disk.finish(what, error)
        await settle()

    async def append(self, count: int = 1) -> None:
        """Records are written, and their flush begins."""
        await self.tell(named(f"append at {self.end}"), append(self.end, count))

    @property
    def end(self) -> int:
        return self.store.log.end.offset

    def heard(self, kind: type[api.Event]) -> int:
        return sum(isinstance(event, kind) for event in self.core.heard)


async def settle() -> None:
    """Let the loop do all that can be done."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def named(reason: str) -> api.ResignRequested:
    """An event that a test can tell from others; what it is does not matter to the driver."""
    return api.ResignRequested(reason)


def end_at(offset: int, epoch: int = 1) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset))


def append(base: int, count: int = 1) -> api.AppendToLog:
    batch = encode_batch([b"value"] * count, timestamp_ms=0)
    return api.AppendToLog(Offset(base), end_at(base + count), api.ProposedBatch(batch, count))


def save(epoch: int = 5) -> api.SaveElection:
    return api.SaveElection(ElectionState(Epoch(epoch)), 1, VoterSet())


def records_of(start: int, end: int) -> FetchResponse:
    """An answer whose records the driver has to read."""
    span = LogRange(start=Offset(start), end=Offset(end), bytes_max=1 << 20)
    return FetchResponse(
        error=ErrorCode.NONE,
        leader=LeaderInfo(NodeId(1), Epoch(1)),
        high_watermark=Offset(end),
        records=span,
    )
