"""One gRPC server with the services of a controller, its listener opened and closed as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.rpc.authorization import CallerInterceptor
from quorate.rpc.channels import MESSAGE_BYTES_MAX, make_server, server_spans
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2_grpc
from quorate.rpc.gen.raw.v1 import raw_pb2_grpc
from quorate.rpc.health import enable_reflection
from quorate.rpc.listener import Listener
from quorate.rpc.methods import REQUEST_BYTES_MAX
from quorate.rpc.raw_server import RawService
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from quorate.rpc.controller_server import ControllerService
    from quorate.rpc.raft_server import RaftService

RAFT: Final = "quorate.raft.v1.Raft"
CONTROLLER: Final = "quorate.controller.v1.Controller"
RAW_LOG: Final = "quorate.raw.v1.RawLog"


class ControllerServer(Listener):
    """The listener that peers and clients share."""

    def __init__(
        self,
        raft: RaftService,
        service: ControllerService | RawService,
        *,
        has_reflection: bool,
        guard: CallerInterceptor | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        guard = guard or CallerInterceptor(None, has_names=False)
        size = MESSAGE_BYTES_MAX if isinstance(service, RawService) else REQUEST_BYTES_MAX
        server = make_server((guard, *server_spans()), received_bytes_max=size, transport=transport)
        super().__init__(server, guard)
        raft_pb2_grpc.add_RaftServicer_to_server(raft, server)
        if isinstance(service, RawService):
            raw_pb2_grpc.add_RawLogServicer_to_server(service, server)
            name = RAW_LOG
        else:
            controller_pb2_grpc.add_ControllerServicer_to_server(service, server)
            name = CONTROLLER
        if has_reflection:
            enable_reflection(server, RAFT, name)
