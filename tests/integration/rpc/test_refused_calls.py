"""A refused call frees its resources when it has ended, not when the collector runs."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
import pytest

from quorate.rpc.channels import make_server, open_channel
from quorate.rpc.method_table import SMALL_BYTES_MAX
from quorate.rpc.security.authorization import CallerInterceptor, CallerPolicy
from tests.integration.rpc.conftest import HOST, WAIT_S
from tests.integration.transports import chosen
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

METHOD: Final = "/quorate.test.Test/Call"


class Held:
    """Something large."""


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
async def test_a_refused_call_keeps_nothing() -> None:
    references: list[weakref.ref[Held]] = []

    async def call(_request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        held = Held()
        references.append(weakref.ref(held))
        try:
            int("what it was")
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return b""

    handler = grpc.unary_unary_rpc_method_handler(call, bytes, bytes)
    service = grpc.method_handlers_generic_handler("quorate.test.Test", {"Call": handler})
    guard = CallerInterceptor(CallerPolicy(have_names=True), {})
    server = make_server((guard,), received_bytes_max=SMALL_BYTES_MAX, transport=chosen())
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    try:
        async with open_channel(HOST, port, transport=chosen()) as channel:
            asked: Any = channel.unary_unary(METHOD)
            for _ in range(3):
                with pytest.raises(grpc.aio.AioRpcError, match="what it was"):
                    await asked(b"", timeout=WAIT_S)
        await eventually(lambda: [r() for r in references] == [None] * 3)
    finally:
        await server.stop(None)
