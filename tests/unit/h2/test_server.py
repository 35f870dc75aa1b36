"""What a server has registered, and the interceptors before it."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.h2.requests import CallDetails
from quorate.h2.server import Server
from tests.unit.h2.by_hand import TransportByHand

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.h2.server_link import ServerLink


def make(*interceptors: grpc.aio.ServerInterceptor) -> Server:
    return Server(interceptors, received_bytes_max=1000, connections_max=2)


async def test_credentials_of_grpcio_are_refused_with_what_to_do() -> None:
    with pytest.raises(TypeError, match="add_port"):
        make().add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(b"", b"")]))


async def test_who_waits_for_the_end_is_told_of_it() -> None:
    server = make()
    assert await server.wait_for_termination(0)
    await server.stop(None)
    assert not await server.wait_for_termination()


async def test_a_port_that_is_not_started_is_given_back() -> None:
    server = make()
    port = server.add_insecure_port("[::]:0")
    await server.stop(None)
    again = make()
    assert again.add_insecure_port(f"127.0.0.1:{port}") == port
    await again.stop(0)


async def test_a_connection_that_the_stop_finds_at_its_beginning_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of its end nobody tells where its beginning was cut short."""
    transport, has_begun = TransportByHand(), asyncio.Event()

    async def connect(make: Callable[[], ServerLink], *_: Any, **__: Any) -> None:  # noqa: ANN401
        make().connection_made(transport)
        has_begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", connect)
    server = make()
    with socket.socket() as accepted:
        arriving = asyncio.ensure_future(server._arrive(accepted, None))
        await has_begun.wait()
        assert len(server._links) == 1
        arriving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await arriving
    assert transport.is_aborted
    assert not server._links
    await server.stop(None)


async def test_interceptors_stand_before_handlers_in_order() -> None:
    seen: list[str] = []

    class Named(grpc.aio.ServerInterceptor):
        def __init__(self, name: str) -> None:
            self._name = name

        async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:  # noqa: ANN401
            seen.append(self._name)
            return await continuation(handler_call_details)

    server = make(Named("a"), Named("b"))
    server.add_registered_method_handlers("some.Service", {"Call": "handler"})
    link: Any = server._make_link()

    def named(method: str) -> CallDetails:
        return CallDetails(method, ())

    assert await link.find(named("/some.Service/Call")) == "handler"
    assert seen == ["a", "b"]
    assert await link.find(named("/some.Service/Other")) is None
