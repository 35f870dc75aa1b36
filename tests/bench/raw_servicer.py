"""Appends of opaque records over gRPC, for measurements: the shortest way from a socket to the log.

Answers are cumulative: one message acknowledges all appends of a stream that a commit covers.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import grpc
import grpc.aio

from quorate.api.permissions import PEER
from quorate.rpc.channels import MESSAGE_BYTES_MAX
from quorate.rpc.method_table import LimitGroup, MethodPolicy, path
from tests.bench.gen.raw.v1 import raw_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.protobuf.descriptor import MethodDescriptor

    from quorate.rpc.service import Behaviour

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
APPENDS_IN_FLIGHT_MAX: Final = 4096
# Of each stream; one append alone may be larger.
BYTES_IN_FLIGHT_MAX: Final = 16 * 1024 * 1024
LATENCIES_MAX: Final = 1000
RECORDS_MAX: Final = 10_000
RECORD_BYTES_MAX: Final = 1024 * 1024
DURATION_MS_MAX: Final = 3_600_000
LOST: Final = "this replica lost its leadership: what was not acknowledged may be committed or not"


class RawLogError(Exception):
    """An append that was not taken. `is_here` is False where another replica may take it."""

    def __init__(self, message: str, *, is_here: bool = True) -> None:
        super().__init__(message)
        self.is_here = is_here

    @property
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.INVALID_ARGUMENT if self.is_here else grpc.StatusCode.UNAVAILABLE


class Waiter(Protocol):
    """A receiver of commit notifications; all calls come from the loop."""

    def committed(self, high_watermark: int) -> None: ...

    def lost(self) -> None: ...


class RawLogHandler(Protocol):
    """The interface of the consensus service; `append` raises RawLogError."""

    def append(self, values: tuple[bytes, ...]) -> int: ...

    def watch(self, waiter: Waiter) -> None: ...

    def unwatch(self, waiter: Waiter) -> None: ...


class _Stream:
    """The appends of one stream that are not acknowledged yet, in the order of their offsets."""

    def __init__(self, handler: RawLogHandler) -> None:
        self._handler = handler
        self._open: deque[tuple[int, int, int]] = deque()
        self._bytes = 0
        self.news = asyncio.Event()
        self.room = asyncio.Event()
        self.refused: RawLogError | None = None
        self.has_ended = False
        self.last_sequence: int | None = None
        self.high_watermark = 0

    @property
    def is_done(self) -> bool:
        return self.has_ended and not self._open

    async def read(self, requests: AsyncIterator[pb.AppendRequest]) -> None:
        """Pass on what arrives, until the client has no more; no further than there is room."""
        try:
            async for request in requests:
                records = _records_of(request)
                size = sum(map(len, records))
                self._open.append((self._handler.append(records), request.sequence, size))
                self._bytes += size
                while (
                    len(self._open) >= APPENDS_IN_FLIGHT_MAX or self._bytes >= BYTES_IN_FLIGHT_MAX
                ):
                    self.room.clear()
                    await self.room.wait()
        except RawLogError as error:
            self.refused = error
        except ValueError as error:
            # What could not be decoded.
            self.refused = RawLogError(str(error))
        finally:
            self.has_ended = True
            self.news.set()

    def committed(self, high_watermark: int) -> None:
        acknowledged = None
        while self._open and self._open[0][0] <= high_watermark:
            _, acknowledged, size = self._open.popleft()
            self._bytes -= size
        if acknowledged is not None:
            self.last_sequence, self.high_watermark = acknowledged, high_watermark
            self.news.set()
            self.room.set()

    def lost(self) -> None:
        self.refused = RawLogError(LOST, is_here=False)
        self.news.set()


class _Load:
    """Appends made here: as many as are in flight, each followed by the next when it commits."""

    def __init__(self, handler: RawLogHandler, request: pb.RunLoadRequest) -> None:
        self._handler = handler
        self._values = (bytes(request.record_bytes),)
        self._open: deque[tuple[int, int]] = deque()
        self._deadline_ns = time.perf_counter_ns() + request.duration_ms * 1_000_000
        self.latencies_us: list[int] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def append(self) -> None:
        began_ns = time.perf_counter_ns()
        self._open.append((self._handler.append(self._values), began_ns))

    def committed(self, high_watermark: int) -> None:
        now_ns = time.perf_counter_ns()
        count = 0
        while self._open and self._open[0][0] <= high_watermark:
            self.latencies_us.append((now_ns - self._open.popleft()[1]) // 1000)
            count += 1
        if now_ns < self._deadline_ns:
            for _ in range(count):
                self.append()
        elif not self._open and not self.done.done():
            self.done.set_result(None)

    def lost(self) -> None:
        if not self.done.done():
            self.done.set_exception(RawLogError(LOST, is_here=False))


def _records_of(request: pb.AppendRequest) -> tuple[bytes, ...]:
    if len(request.records) > RECORDS_MAX:
        raise RawLogError(f"records: {len(request.records)}, and {RECORDS_MAX} are taken at once")
    # By way of a list: a walk over the field itself ends with an exception, which takes longer.
    return tuple(request.records[:])


_SERVICE: Final = pb.DESCRIPTOR.services_by_name["RawLog"]


class RawService:
    """quorate.raw.v1.RawLog, as a listener of ours serves it."""

    descriptor = _SERVICE
    methods: Final = {
        path(method): MethodPolicy(
            needs={"": PEER},
            request_bytes_max=MESSAGE_BYTES_MAX,
            places=LimitGroup.WRITES,
            has_own_places=method.client_streaming,
        )
        for method in _SERVICE.methods
    }

    def handler_for(self, method: MethodDescriptor) -> Behaviour:
        behaviour: Behaviour = getattr(self, method.name)
        return behaviour

    def __init__(self, handler: RawLogHandler) -> None:
        self._handler = handler

    async def Append(
        self, request_iterator: AsyncIterator[pb.AppendRequest], context: Context
    ) -> AsyncIterator[pb.AppendResponse]:
        stream = _Stream(self._handler)
        self._handler.watch(stream)
        reader = asyncio.get_running_loop().create_task(stream.read(request_iterator))
        told = None
        try:
            while True:
                await stream.news.wait()
                stream.news.clear()
                # Looked at together: while an answer is on its way all three may change.
                sequence, refused, is_done = stream.last_sequence, stream.refused, stream.is_done
                if sequence is not None and sequence != told:
                    told = sequence
                    yield pb.AppendResponse(
                        last_sequence=told, high_watermark=stream.high_watermark
                    )
                if refused is not None:
                    await context.abort(refused.code, str(refused))
                if is_done:
                    return
        finally:
            self._handler.unwatch(stream)
            reader.cancel()

    async def AppendOnce(self, request: pb.AppendRequest, context: Context) -> pb.AppendResponse:
        waiter = _Once()
        self._handler.watch(waiter)
        try:
            waiter.end_offset = self._handler.append(_records_of(request))
            high_watermark = await waiter.done
        except RawLogError as error:
            await context.abort(error.code, str(error))
        finally:
            self._handler.unwatch(waiter)
        return pb.AppendResponse(last_sequence=request.sequence, high_watermark=high_watermark)

    async def RunLoad(self, request: pb.RunLoadRequest, context: Context) -> pb.RunLoadResponse:
        for name, limit in (
            ("in_flight", APPENDS_IN_FLIGHT_MAX),
            ("record_bytes", RECORD_BYTES_MAX),
            ("duration_ms", DURATION_MS_MAX),
        ):
            value: int = getattr(request, name)
            if not 0 < value <= limit:
                words = f"{name}: {value} is not from 1 to {limit}"
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)
        load = _Load(self._handler, request)
        self._handler.watch(load)
        began_ns = time.perf_counter_ns()
        try:
            for _ in range(request.in_flight):
                load.append()
            await load.done
        except RawLogError as error:
            await context.abort(error.code, str(error))
        finally:
            self._handler.unwatch(load)
        elapsed_us = (time.perf_counter_ns() - began_ns) // 1000
        latencies = sorted(load.latencies_us)
        step = max(1, len(latencies) // LATENCIES_MAX)
        return pb.RunLoadResponse(
            appends=len(latencies), elapsed_us=elapsed_us, latencies_us=latencies[::step]
        )


class _Once:
    """One append that is waited for."""

    def __init__(self) -> None:
        self.end_offset: int | None = None
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def committed(self, high_watermark: int) -> None:
        is_committed = self.end_offset is not None and self.end_offset <= high_watermark
        if is_committed and not self.done.done():
            self.done.set_result(high_watermark)

    def lost(self) -> None:
        if not self.done.done():
            self.done.set_exception(RawLogError(LOST, is_here=False))
