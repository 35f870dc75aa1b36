"""Guarantees to a client beyond the interop cases, over each transport, and mixed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
import pytest

from quorate.rpc.channels import MESSAGE_BYTES_MAX
from tests.conformance.served import ANSWER_S, Served, ask
from tests.conformance.servicer import ECHOED_FIRST, ECHOED_LAST
from tests.conformance.stubs import messages, services
from tests.conformance.transports import TRANSPORTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# A message has some bytes around its body that say what it is.
LARGE: Final = 8 * 1024 * 1024
LONG: Final = 4000
PAUSE_US: Final = 1_000_000_000


@pytest.fixture(params=TRANSPORTS)
async def stub(
    transport: str, request: pytest.FixtureRequest, listeners: dict[str, Served]
) -> AsyncIterator[Any]:
    """Stubs on a channel of the transport, of a listener of each."""
    async with listeners[request.param].address.connect(transport) as channel:
        await ask(channel)
        yield services.TestServiceStub(channel)


def pausing() -> Any:  # noqa: ANN401 - made at run time
    """A request whose answer comes much later."""
    parameters = [messages.ResponseParameters(size=1, interval_us=PAUSE_US)]
    return messages.StreamingOutputCallRequest(response_parameters=parameters)


async def test_a_deadline_ends_a_call_that_is_not_answered(stub: Any) -> None:  # noqa: ANN401
    call = stub.StreamingOutputCall(pausing(), timeout=0.2)
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_call_that_is_cancelled_ends_and_others_go_on(stub: Any) -> None:  # noqa: ANN401
    waiting = stub.StreamingOutputCall(pausing(), timeout=ANSWER_S)
    other = stub.FullDuplexCall(timeout=ANSWER_S)
    await other.write(messages.StreamingOutputCallRequest())
    assert waiting.cancel()
    assert await waiting.code() is grpc.StatusCode.CANCELLED
    parameters = [messages.ResponseParameters(size=3)]
    await other.write(messages.StreamingOutputCallRequest(response_parameters=parameters))
    assert len((await other.read()).payload.body) == 3
    other.cancel()


async def test_a_task_that_is_cancelled_ends_its_call(stub: Any) -> None:  # noqa: ANN401
    call = stub.StreamingOutputCall(pausing(), timeout=ANSWER_S)
    reading = asyncio.ensure_future(call.read())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await call.code() is grpc.StatusCode.CANCELLED


async def test_metadata_keeps_its_bytes_and_its_order(stub: Any) -> None:  # noqa: ANN401
    metadata = (
        (ECHOED_FIRST, "one"),
        (ECHOED_FIRST, "x" * LONG),
        (ECHOED_FIRST, " ~!@#$%^&*()_+,;=".strip()),
        (ECHOED_LAST, bytes(range(256))),
        (ECHOED_LAST, b"\0"),
        (ECHOED_LAST, b"\xff" * 3),
    )
    call = stub.EmptyCall(messages.Empty(), metadata=metadata, timeout=ANSWER_S)
    await call
    echoed = [*(await call.initial_metadata()), *(await call.trailing_metadata())]
    kept = (ECHOED_FIRST, ECHOED_LAST)
    assert [(key, value) for key, value in echoed if key in kept] == list(metadata)


async def test_large_messages_go_both_ways(stub: Any) -> None:  # noqa: ANN401
    payload = messages.Payload(body=bytes(LARGE))
    request = messages.SimpleRequest(response_size=LARGE, payload=payload)
    response = await stub.UnaryCall(request, timeout=ANSWER_S)
    assert response.payload.body == payload.body


async def test_a_message_above_the_limit_does_not_leave(stub: Any) -> None:  # noqa: ANN401
    payload = messages.Payload(body=bytes(MESSAGE_BYTES_MAX + 1))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub.UnaryCall(messages.SimpleRequest(payload=payload), timeout=ANSWER_S)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_every_status_comes_as_it_was_meant(stub: Any) -> None:  # noqa: ANN401
    for code in grpc.StatusCode:
        if code is grpc.StatusCode.OK:
            continue
        wish = messages.EchoStatus(code=code.value[0], message=f"100 % {code.name}\n")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.UnaryCall(messages.SimpleRequest(response_status=wish), timeout=ANSWER_S)
        assert (raised.value.code(), raised.value.details()) == (code, wish.message)


async def test_compressed_requests_are_read_or_refused(served: Served) -> None:
    """By the ordinary client of grpcio: a listener need not know any compression."""
    async with served.address.connect() as channel:
        stub = services.TestServiceStub(channel)
        payload = messages.Payload(body=bytes(1000))
        request = messages.SimpleRequest(response_size=1000, payload=payload)
        request.response_compressed.value = True
        try:
            response = await stub.UnaryCall(
                request, compression=grpc.Compression.Gzip, timeout=ANSWER_S
            )
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNIMPLEMENTED  # noqa: PT017 - either will do
        else:
            assert response.payload.body == payload.body
