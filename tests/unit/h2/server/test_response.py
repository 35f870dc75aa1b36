"""Messages of a server in a call, and its status at the end."""

from __future__ import annotations

from typing import Any

import grpc

from tests.unit.h2.by_hand import Wire, unary


async def served(handler: Any, *messages: bytes, is_whole: bool = True) -> Wire:  # noqa: ANN401
    wire = Wire(handler)
    wire.greet()
    wire.call(*messages, is_whole=is_whole)
    await wire.settle()
    return wire


async def _echo(request: bytes, _: Any) -> bytes:  # noqa: ANN401
    return request


async def test_what_a_handler_aborts_with_arrives() -> None:
    async def refuse(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        await context.abort(grpc.StatusCode.NOT_FOUND, "no\nsuch", (("why-bin", b"\1"),))
        return b""

    status = (await served(unary(refuse), b"")).status()
    assert (status[b"grpc-status"], status[b"grpc-message"]) == (b"5", b"no%0Asuch")
    assert status[b"why-bin"] == b"AQ"


async def test_what_a_handler_sets_arrives() -> None:
    async def partly(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        await context.send_initial_metadata((("first", "1"),))
        context.set_code(grpc.StatusCode.DATA_LOSS)
        context.set_details("lost")
        context.set_trailing_metadata((("last", "2"),))
        assert (context.code(), context.details()) == (grpc.StatusCode.DATA_LOSS, "lost")
        return b"half"

    status = (await served(unary(partly), b"")).status()
    assert (status[b"grpc-status"], status[b"last"]) == (b"15", b"2")
