"""Interface of a gRPC service, and its registration with a server of either transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message_factory import GetMessageClass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

    from quorate.rpc.method_table import MethodPolicy

Behaviour: TypeAlias = "Callable[[Any, Any], Any]"
# Handler factories, by whether requests and responses are streams.
_MAKERS: Final[dict[tuple[bool, bool], Callable[..., Any]]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class Service(Protocol):
    """One service of a listener, and the policy of each of its methods."""

    @property
    def descriptor(self) -> ServiceDescriptor: ...

    @property
    def methods(self) -> Mapping[str, MethodPolicy]:
        """The rows of rpc/method_table.py, by path."""
        ...

    def handler_for(self, method: MethodDescriptor) -> Behaviour:
        """Return the implementation: a coroutine function, or an async generator function."""
        ...


def add_service(service: Service, server: grpc.aio.Server) -> None:
    """Register the service with the server."""
    name = service.descriptor.full_name
    handlers = {method.name: _handler(service, method) for method in service.descriptor.methods}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
    # Registered methods are found without a search.
    server.add_registered_method_handlers(name, handlers)


def _handler(service: Service, method: MethodDescriptor) -> Any:  # noqa: ANN401 - gRPC's own
    make = _MAKERS[method.client_streaming, method.server_streaming]
    return make(
        service.handler_for(method),
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )
