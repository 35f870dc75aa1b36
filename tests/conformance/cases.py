"""The cases of gRPC's public specification of interop tests that a client without credentials has.

Each is a function of a channel, fails by an assertion, and works on whatever server offers
grpc.testing.TestService. The sizes are those of the specification.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import grpc.aio
import pytest

from tests.conformance.served import ANSWER_S, ask
from tests.conformance.servicer import ECHOED_FIRST, ECHOED_LAST
from tests.conformance.stubs import messages, services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

Channel: TypeAlias = Any
LARGE_REQUEST: Final = 271_828
LARGE_RESPONSE: Final = 314_159
REQUEST_SIZES: Final = (27_182, 8, 1_828, 45_904)
RESPONSE_SIZES: Final = (31_415, 9, 2_653, 58_979)
METADATA: Final = (
    (ECHOED_FIRST, "test_initial_metadata_value"),
    (ECHOED_LAST, b"\xab\xab\xab"),
)
WORDS: Final = "test status message"
SPECIAL_WORDS: Final = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
SOAK_CALLS: Final = 10


def _asking_for(*sizes: int, payload: int = 0) -> Any:  # noqa: ANN401 - made at run time
    parameters = [messages.ResponseParameters(size=size) for size in sizes]
    body = messages.Payload(body=bytes(payload))
    return messages.StreamingOutputCallRequest(response_parameters=parameters, payload=body)


def _stub(channel: Channel) -> Any:  # noqa: ANN401 - made at run time
    return services.TestServiceStub(channel)


def _large() -> Any:  # noqa: ANN401 - made at run time
    body = messages.Payload(body=bytes(LARGE_REQUEST))
    return messages.SimpleRequest(response_size=LARGE_RESPONSE, payload=body)


async def empty_unary(channel: Channel) -> None:
    assert await _stub(channel).EmptyCall(messages.Empty(), timeout=ANSWER_S) == messages.Empty()


async def large_unary(channel: Channel) -> None:
    response = await _stub(channel).UnaryCall(_large(), timeout=ANSWER_S)
    assert response.payload.body == bytes(LARGE_RESPONSE)


async def client_streaming(channel: Channel) -> None:
    async def requests() -> AsyncIterator[Any]:
        for size in REQUEST_SIZES:
            body = messages.Payload(body=bytes(size))
            yield messages.StreamingInputCallRequest(payload=body)

    response = await _stub(channel).StreamingInputCall(requests(), timeout=ANSWER_S)
    assert response.aggregated_payload_size == sum(REQUEST_SIZES)


async def server_streaming(channel: Channel) -> None:
    call = _stub(channel).StreamingOutputCall(_asking_for(*RESPONSE_SIZES), timeout=ANSWER_S)
    assert [len(response.payload.body) async for response in call] == list(RESPONSE_SIZES)


async def ping_pong(channel: Channel) -> None:
    call = _stub(channel).FullDuplexCall(timeout=ANSWER_S)
    for request, response in zip(REQUEST_SIZES, RESPONSE_SIZES, strict=True):
        await call.write(_asking_for(response, payload=request))
        assert len((await call.read()).payload.body) == response
    await _ends(call)


async def empty_stream(channel: Channel) -> None:
    await _ends(_stub(channel).FullDuplexCall(timeout=ANSWER_S))


async def _ends(call: Any) -> None:  # noqa: ANN401 - of any transport
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def half_duplex(channel: Channel) -> None:
    call = _stub(channel).HalfDuplexCall(timeout=ANSWER_S)
    for size in RESPONSE_SIZES:
        await call.write(_asking_for(size))
    await call.done_writing()
    assert [len(response.payload.body) async for response in call] == list(RESPONSE_SIZES)


async def timeout_on_sleeping_server(channel: Channel) -> None:
    # The connection is there before the time begins to run.
    await empty_unary(channel)
    call = _stub(channel).FullDuplexCall(timeout=0.001)
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def cancel_after_begin(channel: Channel) -> None:
    call = _stub(channel).StreamingInputCall(metadata=METADATA, timeout=ANSWER_S)
    call.cancel()
    assert await call.code() is grpc.StatusCode.CANCELLED


async def cancel_after_first_response(channel: Channel) -> None:
    call = _stub(channel).FullDuplexCall(timeout=ANSWER_S)
    await call.write(_asking_for(31_415, payload=27_182))
    assert len((await call.read()).payload.body) == 31_415
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.read()
    assert await call.code() is grpc.StatusCode.CANCELLED


async def custom_metadata(channel: Channel) -> None:
    request = messages.SimpleRequest(response_size=1, payload=messages.Payload(body=b"\0"))
    unary = _stub(channel).UnaryCall(request, metadata=METADATA, timeout=ANSWER_S)
    await unary
    await _has_echoes(unary)
    duplex = _stub(channel).FullDuplexCall(metadata=METADATA, timeout=ANSWER_S)
    await duplex.write(_asking_for(1, payload=1))
    assert len((await duplex.read()).payload.body) == 1
    await _ends(duplex)
    await _has_echoes(duplex)


async def _has_echoes(call: Any) -> None:  # noqa: ANN401 - of any transport
    assert METADATA[0] in _pairs(await call.initial_metadata())
    assert METADATA[1] in _pairs(await call.trailing_metadata())


def _pairs(metadata: Any) -> Sequence[tuple[str, str | bytes]]:  # noqa: ANN401 - of any transport
    return [(key, value) for key, value in metadata]


async def status_code_and_message(channel: Channel) -> None:
    wish = messages.EchoStatus(code=2, message=WORDS)
    await _fails_with(channel, WORDS)
    call = _stub(channel).FullDuplexCall(timeout=ANSWER_S)
    await call.write(messages.StreamingOutputCallRequest(response_status=wish))
    await call.done_writing()
    assert await call.code() is grpc.StatusCode.UNKNOWN
    assert await call.details() == WORDS


async def special_status_message(channel: Channel) -> None:
    await _fails_with(channel, SPECIAL_WORDS)


async def _fails_with(channel: Channel, words: str) -> None:
    wish = messages.EchoStatus(code=2, message=words)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await _stub(channel).UnaryCall(
            messages.SimpleRequest(response_status=wish), timeout=ANSWER_S
        )
    assert raised.value.code() is grpc.StatusCode.UNKNOWN
    assert raised.value.details() == words


async def unimplemented_method(channel: Channel) -> None:
    await _is_unimplemented(_stub(channel))


async def unimplemented_service(channel: Channel) -> None:
    await _is_unimplemented(services.UnimplementedServiceStub(channel))


async def _is_unimplemented(stub: Any) -> None:  # noqa: ANN401 - made at run time
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub.UnimplementedCall(messages.Empty(), timeout=ANSWER_S)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def rpc_soak(channel: Channel) -> None:
    for _ in range(SOAK_CALLS):
        await large_unary(channel)


async def at_once(channel: Channel) -> None:
    """Not of the specification: calls that share the connection, each with its own answer."""
    await asyncio.gather(*(ask(channel, size) for size in range(100)))


CASES: Final[Mapping[str, Callable[[Channel], Awaitable[None]]]] = {
    case.__name__: case
    for case in (
        empty_unary,
        large_unary,
        client_streaming,
        server_streaming,
        ping_pong,
        empty_stream,
        half_duplex,
        timeout_on_sleeping_server,
        cancel_after_begin,
        cancel_after_first_response,
        custom_metadata,
        status_code_and_message,
        special_status_message,
        unimplemented_method,
        unimplemented_service,
        rpc_soak,
        at_once,
    )
}
