"""The metadata API on top of a handler that the consensus service offers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import grpc
import grpc.aio

from quorate.controller.requests import Caller
from quorate.rpc import convert_controller as convert
from quorate.rpc.admission import Admission, AdmissionError, Pool
from quorate.rpc.authorization import CALLER
from quorate.rpc.channels import write_spans
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.rpc.pace import SERVING_SHARE, Pace
from quorate.rpc.refusals import abort
from quorate.rpc.write_window import WriteBudget, WriteWindow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.controller.replies import ReadReply, WriteReply
    from quorate.controller.requests import ReadRequest, WriteRequest
    from quorate.records.errors import ErrorCode

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
ACKNOWLEDGED_TOGETHER_MAX = 1024
STREAMS_MAX: Final = 512
# A few milliseconds, where it holds as many items as it can.
CONVERTED_AT_ONCE_BYTES: Final = 16 * 1024
# The write's sequence, its reply, and the bytes of its request.
_Waiting: TypeAlias = "tuple[int, asyncio.Future[WriteReply], int]"


@dataclass(frozen=True, slots=True)
class LeaderHint:
    """The leader that this controller knows, and where its clients reach it."""

    node_id: int | None
    epoch: int
    host: str = ""
    port: int = 0


class ControllerApiError(Exception):
    """A request that has no reply of its own kind.

    `outcome_unknown` says that the change may have been committed or may still be.
    """

    def __init__(
        self,
        error: ErrorCode,
        message: str,
        *,
        leader: LeaderHint | None = None,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
        self.leader = leader
        self.outcome_unknown = outcome_unknown


class ControllerHandler(Protocol):
    """What the consensus service offers; both raise ControllerApiError."""

    def write(self, request: WriteRequest, caller: Caller) -> asyncio.Future[WriteReply]: ...

    async def read(
        self,
        request: ReadRequest,
        *,
        min_offset: int,
        current: bool,
        timeout_ms: int,
        even_if_behind: bool,
    ) -> ReadReply: ...


class ControllerService(controller_pb2_grpc.ControllerServicer):
    """quorate.controller.v1.Controller."""

    def __init__(self, handler: ControllerHandler) -> None:
        self._handler = handler
        # Their bytes are those of the budget.
        self._streams = Admission("write streams", calls_max=STREAMS_MAX, pool=Pool(0))
        self._budget = WriteBudget()
        self._spans = write_spans()

    async def Write(self, request: pb.WriteRequest, context: Context) -> pb.WriteResponse:
        response = pb.WriteResponse(first_sequence=request.sequence, last_sequence=request.sequence)
        try:
            write = await _converted(request, request.ByteSize())
            reply = self._handler.write(write, _caller(context))
            await self._put_result(response.results.add(), reply)
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return response

    def _begin_on_stream(self, write: WriteRequest, caller: Caller) -> asyncio.Future[WriteReply]:
        """Hand over one write of many, some of which have spans of their own."""
        if self._spans is None:
            return self._handler.write(write, caller)
        return self._spans.around(lambda: self._handler.write(write, caller))

    async def _put_result(self, result: pb.WriteResult, reply: asyncio.Future[WriteReply]) -> None:
        try:
            convert.put_write_reply(result, await reply)
        except ControllerApiError as error:
            result.error = error.error
            result.message = error.message
            result.outcome_unknown = error.outcome_unknown
            if error.leader is not None:
                result.leader.CopyFrom(_leader(error.leader))

    async def WriteStream(
        self, request_iterator: AsyncIterator[Any], context: Context
    ) -> AsyncIterator[pb.WriteResponse]:
        """Decide in the order of arrival; acknowledge what is done together (rule 20)."""
        try:
            self._streams.enter_call(context)
        except AdmissionError as error:
            await abort(context, error.refusal)
        queue: asyncio.Queue[_Waiting | ValueError | EOFError] = asyncio.Queue()
        window = WriteWindow(self._budget)
        caller = _caller(context)

        async def read() -> None:
            try:
                request: pb.WriteRequest
                size: int
                # The guard's decoder tells the size (rpc/decoding.py).
                async for request, size in request_iterator:
                    if window.is_full:
                        await window.room()
                    window.take(size)
                    write = await _converted(request, size)
                    reply = self._begin_on_stream(write, caller)
                    queue.put_nowait((request.sequence, reply, size))
            except ValueError as error:
                queue.put_nowait(error)
            finally:
                queue.put_nowait(EOFError())

        reader = asyncio.get_running_loop().create_task(read())
        following: _Waiting | ValueError | EOFError | None = None
        try:
            while not isinstance(item := following or await queue.get(), EOFError):
                following = None
                if isinstance(item, ValueError):
                    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(item))
                response = pb.WriteResponse(first_sequence=item[0], last_sequence=item[0])
                await self._put_result(response.results.add(), item[1])
                size = item[2]
                while len(response.results) < ACKNOWLEDGED_TOGETHER_MAX and not queue.empty():
                    following = queue.get_nowait()
                    if not isinstance(following, tuple) or not following[1].done():
                        break
                    await self._put_result(response.results.add(), following[1])
                    response.last_sequence = following[0]
                    size += following[2]
                    following = None
                yield response
                window.give_back(len(response.results), size)
        finally:
            reader.cancel()
            window.close()
            # Nobody will ask for these replies; a refusal among them is no error of ours.
            for left in (following, *(queue.get_nowait() for _ in range(queue.qsize()))):
                if isinstance(left, tuple):
                    left[1].cancel()

    async def Read(self, request: pb.ReadRequest, context: Context) -> pb.ReadResponse:
        response = pb.ReadResponse()
        try:
            read = convert.chosen(request, "request")
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        try:
            reply = await self._handler.read(
                read,
                min_offset=request.min_offset,
                current=request.current,
                timeout_ms=request.timeout_ms,
                even_if_behind=request.even_if_behind,
            )
            pace = Pace(SERVING_SHARE)
            for _ in convert.put_in_slices(response, reply):
                await pace.breathe()
        except ControllerApiError as error:
            response.error = error.error
            response.message = error.message
            if error.leader is not None:
                response.leader.CopyFrom(_leader(error.leader))
        return response


async def _converted(request: pb.WriteRequest, size: int) -> WriteRequest:
    """The write in a request of so many bytes. Raises ValueError that names the field."""
    if size <= CONVERTED_AT_ONCE_BYTES:
        at_once: WriteRequest = convert.chosen(request, "request")
        return at_once
    write: WriteRequest = await Pace(SERVING_SHARE).finish(
        convert.chosen_in_slices(request, "request")
    )
    return write


def _leader(hint: LeaderHint) -> pb.Leader:
    return pb.Leader(id=hint.node_id, epoch=hint.epoch, host=hint.host, port=hint.port)


def _caller(context: Context) -> Caller:
    return Caller(CALLER.get(), context.peer())
