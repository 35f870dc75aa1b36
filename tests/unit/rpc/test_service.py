"""The handlers of a service in a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.method_table import CONTROLLER, CONTROLLER_METHODS
from quorate.rpc.service import add_service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import grpc.aio
    from google.protobuf.descriptor import MethodDescriptor


class Named:
    """A service whose methods answer with their names."""

    descriptor = CONTROLLER
    methods = CONTROLLER_METHODS

    def handler_for(self, method: MethodDescriptor) -> Callable[[Any, Any], Any]:
        return lambda _request, _context: method.name


class ServerByHand:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.generic: list[Any] = []
        self.registered: dict[str, Mapping[str, Any]] = {}

    def add_generic_rpc_handlers(self, handlers: tuple[Any, ...]) -> None:
        self.generic.extend(handlers)

    def add_registered_method_handlers(self, name: str, handlers: Mapping[str, Any]) -> None:
        self.registered[name] = handlers


def test_every_method_of_a_service_has_its_handler() -> None:
    server = ServerByHand()
    add_service(Named(), cast("grpc.aio.Server", server))
    (handlers,) = server.registered.values()
    assert handlers.keys() == {method.name for method in CONTROLLER.methods}
    assert [handler.service_name() for handler in server.generic] == [CONTROLLER.full_name]
    stream, unary = handlers["WriteStream"], handlers["Write"]
    assert (stream.request_streaming, stream.response_streaming) == (True, True)
    assert (unary.request_streaming, unary.response_streaming) == (False, False)
    assert unary.unary_unary(None, None) == "Write"
    request = pb.WriteRequest(sequence=7)
    assert unary.request_deserializer(request.SerializeToString()) == request
    answer = pb.WriteResponse(last_sequence=7)
    assert unary.response_serializer(answer) == answer.SerializeToString()
