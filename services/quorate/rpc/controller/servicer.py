"""Servicer of quorate.controller.v1.Controller."""

from __future__ import annotations

from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message_factory import GetMessageClass

from quorate.api.advertised_endpoints import listener_first
from quorate.api.handlers import ControllerApiError
from quorate.rpc.callback_adapter import iter_replies
from quorate.rpc.channels import write_spans
from quorate.rpc.controller.errors import refusal_for
from quorate.rpc.controller.write_stream import WriteStream, converted, read_message
from quorate.rpc.controller.write_window import SharedWriteBudget
from quorate.rpc.convert import controller as convert
from quorate.rpc.convert.raft import at_least_0
from quorate.rpc.deadlines import handler_timeout_s
from quorate.rpc.error_status import abort
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.limits.admission import AdmissionControl, AdmissionError, ByteBudget
from quorate.rpc.method_table import CONTROLLER, CONTROLLER_METHODS, is_write, takes_any
from quorate.rpc.security.authorization import CALLER
from quorate.rpc.time_slicer import serving_pace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from google.protobuf.descriptor import MethodDescriptor
    from google.protobuf.message import Message

    from quorate.api.handlers import ControllerHandler, PendingAnswer
    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.raft.messages import LeaderInfo
    from quorate.rpc.service import Behaviour

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
STREAMS_MAX: Final = 512


class WriteStreamLimits:
    """The limits shared by the write streams of all listeners."""

    def __init__(self) -> None:
        # The budget limits their bytes.
        self.places = AdmissionControl(
            "write streams", calls_max=STREAMS_MAX, byte_budget=ByteBudget(0)
        )
        self.budget = SharedWriteBudget()


class ControllerServicer:
    """quorate.controller.v1.Controller on top of a handler."""

    descriptor = CONTROLLER
    methods = CONTROLLER_METHODS

    def handler_for(self, method: MethodDescriptor) -> Behaviour:
        if takes_any(method):
            behaviour: Behaviour = getattr(self, method.name)
            return behaviour
        serve = self._write_one if is_write(method) else self._read_one
        return partial(serve, GetMessageClass(method.output_type))

    def __init__(
        self,
        handler: ControllerHandler,
        *,
        listener: str = "",
        streams: WriteStreamLimits | None = None,
    ) -> None:
        """Take the `streams` shared by all listeners; this one is called `listener`."""
        self._handler = handler
        self._listener = listener
        self._streams = streams or WriteStreamLimits()
        self._spans = write_spans()

    async def Write(self, request: pb.WriteRequest, context: Context) -> pb.WriteResponse:
        response = pb.WriteResponse(first_sequence=request.sequence, last_sequence=request.sequence)
        try:
            write = await converted(request, request.ByteSize())
            reply = self._handler.write(write, CALLER.get())
            with suppress(ControllerApiError):
                await reply
            self._put_result(response.results.add(), reply)
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return response

    def _begin_on_stream(
        self, writes: Sequence[WriteRequest], caller: Caller
    ) -> Iterable[PendingAnswer[WriteReply]]:
        """Begin writes, some of which have spans of their own."""
        spans, handler = self._spans, self._handler
        if spans is None:
            return handler.write_all(writes, caller)
        return [spans.around(partial(handler.write, write, caller)) for write in writes]

    async def WriteStream(
        self, request_iterator: AsyncIterator[Any], context: Context
    ) -> AsyncIterator[pb.WriteResponse]:
        """Serve a client's writes in order, except heartbeats (rpc/controller/write_stream.py)."""
        try:
            self._streams.places.acquire_for_call(context)
        except AdmissionError as error:
            await abort(context, error.refusal)
        caller = CALLER.get()
        stream = WriteStream(
            lambda writes: self._begin_on_stream(writes, caller),
            self._put_result,
            self._streams.budget,
        )
        try:
            # The decoder gives the size of each request (rpc/request_decoding.py).
            async with aclosing(iter_replies(stream, request_iterator)) as replies:
                async for response in replies:
                    yield response
            if stream.refused is not None:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, stream.refused)
        finally:
            stream.close()

    async def Read(self, request: pb.ReadRequest, context: Context) -> pb.ReadResponse:
        response = pb.ReadResponse()
        try:
            read = convert.read_request_in(request)
            min_offset = at_least_0(request.min_offset, "min_offset")
            timeout_ms = at_least_0(request.timeout_ms, "timeout_ms")
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        try:
            reply = await self._handler.read(
                read,
                CALLER.get(),
                min_offset=min_offset,
                current=request.current,
                timeout_ms=timeout_ms,
                even_if_behind=request.even_if_behind,
            )
            pace = serving_pace()
            for _ in convert.put_in_slices(response, reply):
                await pace.yield_if_due()
        except ControllerApiError as error:
            response.error = error.error
            response.message = error.message
            if error.leader is not None:
                response.leader.CopyFrom(self._leader(error.leader))
        return response

    # --- single requests --------------------------------------------------------------------------

    async def _write_one(
        self, reply_type: Callable[[], Message], request: Message, context: Context
    ) -> Message:
        """Serve one change, by the method of its own name."""
        response = reply_type()
        try:
            write = await read_message(request, request.ByteSize())
            convert.fill_message(response, await self._handler.write(write, CALLER.get()))
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except ControllerApiError as error:
            await abort(context, refusal_for(error, self._listener))
        return response

    async def _read_one(
        self,
        reply_type: Callable[[], Message],
        request: Any,  # noqa: ANN401 - a message of any read
        context: Context,
    ) -> Message:
        """Serve one read, by the method of its own name; the call's deadline limits its wait."""
        response = reply_type()
        left_s, options = handler_timeout_s(context), request.options
        try:
            reply = await self._handler.read(
                convert.from_message(request),
                CALLER.get(),
                min_offset=at_least_0(options.min_offset, "options.min_offset"),
                current=options.current,
                timeout_ms=0 if left_s is None else max(1, int(left_s * 1000)),
                even_if_behind=options.even_if_behind,
            )
            pace = serving_pace()
            for _ in convert.put_reply_in_slices(response, reply):
                await pace.yield_if_due()
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except ControllerApiError as error:
            await abort(context, refusal_for(error, self._listener))
        return response

    def _put_result(self, result: pb.WriteResult, reply: PendingAnswer[WriteReply]) -> None:
        """Put the result of a completed write into the response."""
        try:
            convert.put_write_reply(result, reply.result())
        except ControllerApiError as error:
            result.error = error.error
            result.message = error.message
            result.outcome_unknown = error.outcome_unknown
            if error.leader is not None:
                result.leader.CopyFrom(self._leader(error.leader))

    def _leader(self, info: LeaderInfo) -> pb.Leader:
        """Return the leader's address on this listener."""
        leader = pb.Leader(id=info.leader_id, epoch=info.epoch)
        for endpoint in listener_first(info.endpoints, self._listener)[:1]:
            leader.host, leader.port = endpoint.host, endpoint.port
        return leader
