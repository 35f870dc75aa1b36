"""grpc.testing.TestService, as the public specification of the interop tests has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import grpc.aio

from tests.conformance.stubs import messages, services

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Message: TypeAlias = Any
ECHOED_FIRST: Final = "x-grpc-test-echo-initial"
ECHOED_LAST: Final = "x-grpc-test-echo-trailing-bin"
SERVICE: Final = "grpc.testing.TestService"
# A request for more than a listener may send can only be an error.
RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


class TestService(services.TestServiceServicer):  # type: ignore[misc]
    """Does what a request asks for; nothing is kept from one call to the next."""

    # It is not a class of tests.
    __test__ = False

    def __init__(self, response_bytes_max: int = RESPONSE_BYTES_MAX) -> None:
        self._response_bytes_max = response_bytes_max

    async def EmptyCall(self, _request: Message, context: Context) -> Message:
        await _echo_metadata(context)
        return messages.Empty()

    async def UnaryCall(self, request: Message, context: Context) -> Message:
        await _echo_metadata(context)
        if request.response_compressed.value:
            context.set_compression(grpc.Compression.Gzip)
        await _end_as_asked(request, context)
        response = messages.SimpleResponse(server_id=SERVICE if request.fill_server_id else "")
        # In place: a payload that is made first would be copied.
        response.payload.body = await self._body(request.response_size, context)
        return response

    async def StreamingOutputCall(
        self, request: Message, context: Context
    ) -> AsyncGenerator[Message]:
        await _echo_metadata(context)
        async for response in self._responses(request, context):
            yield response
        await _end_as_asked(request, context)

    async def StreamingInputCall(
        self, requests: AsyncIterator[Message], context: Context
    ) -> Message:
        await _echo_metadata(context)
        size = 0
        async for request in requests:
            size += len(request.payload.body)
        return messages.StreamingInputCallResponse(aggregated_payload_size=size)

    async def FullDuplexCall(
        self, requests: AsyncIterator[Message], context: Context
    ) -> AsyncGenerator[Message]:
        await _echo_metadata(context)
        async for request in requests:
            await _end_as_asked(request, context)
            async for response in self._responses(request, context):
                yield response

    async def HalfDuplexCall(
        self, requests: AsyncIterator[Message], context: Context
    ) -> AsyncGenerator[Message]:
        await _echo_metadata(context)
        # The sizes that are asked for are kept, not what came with them.
        asked = [
            messages.StreamingOutputCallRequest(response_parameters=request.response_parameters)
            async for request in requests
        ]
        for request in asked:
            async for response in self._responses(request, context):
                yield response

    async def _responses(self, request: Message, context: Context) -> AsyncGenerator[Message]:
        for parameters in request.response_parameters:
            if parameters.interval_us > 0:
                await asyncio.sleep(parameters.interval_us / 1_000_000)
            if parameters.compressed.value:
                context.set_compression(grpc.Compression.Gzip)
            response = messages.StreamingOutputCallResponse()
            response.payload.body = await self._body(parameters.size, context)
            yield response

    async def _body(self, size: int, context: Context) -> bytes:
        if not 0 <= size <= self._response_bytes_max:
            words = f"a payload has 0 to {self._response_bytes_max} bytes, not {size}"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)
        return bytes(size)


async def _echo_metadata(context: Context) -> None:
    metadata = tuple(context.invocation_metadata() or ())
    first = [(key, value) for key, value in metadata if key == ECHOED_FIRST]
    last = [(key, value) for key, value in metadata if key == ECHOED_LAST]
    if last:
        context.set_trailing_metadata(tuple(last))
    if first:
        await context.send_initial_metadata(tuple(first))


async def _end_as_asked(request: Message, context: Context) -> None:
    status = request.response_status
    if status.code:
        code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
        await context.abort(code, status.message)
