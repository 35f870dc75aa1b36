"""Registered methods of a server, and the interceptors before them."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from quorate.h2.call_headers import CallDetails
from quorate.h2.server.server import Server


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
