"""A unary call behind interceptors."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from quorate.h2.client.call import ClientCall
from quorate.h2.client.intercepted_call import InterceptedCall
from tests.unit.h2.servers_by_hand import METHOD, Server, settle


class Named(grpc.aio.UnaryUnaryClientInterceptor):
    """Adds its name to the request."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    async def intercept_unary_unary(
        self,
        continuation: Any,  # noqa: ANN401
        client_call_details: Any,  # noqa: ANN401
        request: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        return await continuation(client_call_details, request + self._name)


def intercepted(
    server: Server, begun: list[ClientCall], first: Named | None = None
) -> InterceptedCall:
    def begin(request: bytes, *, timeout: float | None, metadata: Any) -> ClientCall:  # noqa: ANN401
        call = ClientCall(METHOD, metadata, timeout, has_ended=lambda _: None)
        call.send_only(request)
        call.begin(server.link, bytes_max=1000)
        begun.append(call)
        return call

    names = (first or Named(b"a"), Named(b"b"))
    return InterceptedCall(names, begin, "/some.Service/Call", b"-", {"timeout": 9.0})


async def test_interceptors_see_a_call_in_order() -> None:
    server, begun = Server(), list[ClientCall]()
    server.greet()
    call = intercepted(server, begun)
    assert not call.done()
    assert call.time_remaining() is None
    await settle()
    assert server.received()[-1].payload[5:] == b"-ab"
    await call.wait_for_connection()
    assert 8 < (call.time_remaining() or 0) <= 9
    server.begin(begun[0])
    server.answer(begun[0], b"answer")
    server.end(begun[0])
    assert await call == b"answer"
    assert (call.done(), call.cancelled(), call.cancel()) == (True, False, False)
    assert (await call.code(), await call.details()) == (grpc.StatusCode.OK, "")
    assert dict(await call.initial_metadata()) == dict(await call.trailing_metadata()) == {}


async def test_an_interceptor_may_await_the_call_that_it_returns() -> None:
    class Waiting(Named):
        async def intercept_unary_unary(self, *how: Any) -> Any:  # noqa: ANN401
            call = await super().intercept_unary_unary(*how)
            assert await call == b"answer"
            return call

    server, begun = Server(), list[ClientCall]()
    server.greet()
    call = intercepted(server, begun, Waiting(b"a"))
    await settle()
    server.begin(begun[0])
    server.answer(begun[0], b"answer")
    server.end(begun[0])
    assert await call == b"answer"


async def test_a_call_can_be_cancelled_before_it_has_begun() -> None:
    server, begun = Server(), list[ClientCall]()
    told: list[Any] = []
    call = intercepted(server, begun)
    call.add_done_callback(told.append)
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await settle()
    assert (begun, told, call.cancelled()) == ([], [call], True)


async def test_who_stops_waiting_cancels_it() -> None:
    server, begun = Server(), list[ClientCall]()
    server.greet()
    call = intercepted(server, begun)
    waiting = asyncio.ensure_future(call._answer())
    await settle()
    waiting.cancel()
    await settle()
    assert begun[0].cancelled()
    assert call.cancelled()
