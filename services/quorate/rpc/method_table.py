"""Per-method policy: required permissions, size limits, concurrency limits, tracing.

One row per method, derived from its request: the permissions of a request are the same on every
transport (api/permissions.py), and all metadata requests are treated alike.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quorate.api import admin_api, permissions
from quorate.api.permissions import ALTER, DESCRIBE, RequestPermission
from quorate.raft import messages as m
from quorate.records.ids import NodeId
from quorate.records.value_types import keyword_value_type
from quorate.rpc.convert.codegen import dataclass_named
from quorate.rpc.gen.admin.v1 import admin_pb2
from quorate.rpc.gen.controller.v1 import controller_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

    from quorate.api.permissions import Needs

# Requests of replicas and operators have a few numbers and names; records are in responses only.
SMALL_BYTES_MAX: Final = 64 * 1024
# A metadata request. It may hold thousands of items, and is decoded without yielding.
REQUEST_BYTES_MAX: Final = 1024 * 1024

RAFT: Final[ServiceDescriptor] = raft_pb2.DESCRIPTOR.services_by_name["Raft"]
CONTROLLER: Final[ServiceDescriptor] = controller_pb2.DESCRIPTOR.services_by_name["Controller"]
ADMIN: Final[ServiceDescriptor] = admin_pb2.DESCRIPTOR.services_by_name["Admin"]


class LimitGroup(Enum):
    """Groups of calls with a common concurrency limit (rpc/limits/call_limits.py)."""

    PEERS = auto()
    FETCHES = auto()
    SNAPSHOTS = auto()
    READS = auto()
    WRITES = auto()
    OTHERS = auto()


class Sampling(Enum):
    """The share of a method's calls that get spans without a parent trace (rpc/call_spans.py)."""

    ALWAYS = auto()
    AS_FETCHES = auto()
    AS_WRITES = auto()
    NEVER = auto()


_FOR_ITSELF: Final = "auto_join"
_BY_OBSERVER: Final = "replica_id of no voter"
_BY_READER: Final = "no replica_id"
# Returns whether a voter has this node id. The voters change while calls are served.
IsVoter: TypeAlias = "Callable[[NodeId], bool]"


def every_id(_: NodeId) -> bool:
    """Treat any node id as a voter's: the strictest choice, for a server that knows no voters."""
    return True


def _only_kind(_request: Any, _is_voter: IsVoter) -> str:  # noqa: ANN401 - of several services
    return ""


def _fetching(request: Any, is_voter: IsVoter) -> str:  # noqa: ANN401 - of two types
    if not request.HasField("replica_id"):
        return _BY_READER
    return "" if is_voter(NodeId(request.replica_id)) else _BY_OBSERVER


@keyword_value_type
class MethodPolicy:
    """The policy of one method.

    Requests of one method may be of several kinds that need different permissions; `needs` has
    those of each kind, and a caller that has none of these may not call the method at all. With
    `is_sized` the handler gets each request with the number of its bytes. A response that
    `only_tells` may be rejected after it was built, if it exceeds the byte budget; the result of a
    change has to be sent.
    """

    needs: Mapping[str, Needs]
    kind_of: Callable[[Any, IsVoter], str] = _only_kind
    request_bytes_max: int = SMALL_BYTES_MAX
    places: LimitGroup = LimitGroup.OTHERS
    has_own_places: bool = False
    is_sized: bool = False
    only_tells: bool = False
    sampling: Sampling = Sampling.NEVER

    @property
    def is_peer_method(self) -> bool:
        """True if partially received calls of others must not delay a call of this method."""
        return self.places in (LimitGroup.PEERS, LimitGroup.FETCHES)

    @property
    def needs_request_authorization(self) -> bool:
        """True if the permissions depend on the content of the request."""
        return self.kind_of is not _only_kind

    @property
    def can_reject_before_request(self) -> bool:
        """True if a caller without any of the permissions is rejected before its request arrives.

        For other methods the rejection names the permissions of its own request.
        """
        return self.kind_of in (_only_kind, _fetching)

    def required_permissions(self, request: Any, is_voter: IsVoter) -> Needs:  # noqa: ANN401 - of any service
        """Return the permissions for this request; any one of them is enough."""
        return self.needs.get(self.kind_of(request, is_voter), ALTER)


# The policy of methods without a row.
UNKNOWN: Final = MethodPolicy(needs={"": ALTER})


def path(method: MethodDescriptor) -> str:
    """Return the path of a method as calls name it: `/quorate.raft.v1.Raft/Vote`."""
    return f"/{method.containing_service.full_name}/{method.name}"


# --- replicas -------------------------------------------------------------------------------------

_PLACES_OF_RAFT: Final = {
    # Calls that keep the quorum together. They always have capacity, whatever clients use.
    "Vote": LimitGroup.PEERS,
    "BeginQuorumEpoch": LimitGroup.PEERS,
    "EndQuorumEpoch": LimitGroup.PEERS,
    "FetchOnce": LimitGroup.FETCHES,
    "FetchSnapshot": LimitGroup.SNAPSHOTS,
}
_SAMPLED_AS_FETCHES: Final = ("Fetch", "FetchOnce", "FetchSnapshot")
# Queries are never sampled, nor is a call that a leader repeats while a voter is unavailable.
_NEVER_SAMPLED: Final = ("ApiVersions", "BeginQuorumEpoch", "DescribeQuorum")
_ONLY_TELLING: Final = ("DescribeQuorum", "FetchSnapshot")


def _of_raft(method: MethodDescriptor) -> MethodPolicy:
    name = method.name
    right = permissions.RAFT[getattr(m, method.input_type.name)]
    return MethodPolicy(
        needs=_needs(right),
        kind_of=_kind_of(right),
        places=_PLACES_OF_RAFT.get(name, LimitGroup.OTHERS),
        # Only the service knows the fetching replica.
        has_own_places=name == "Fetch",
        only_tells=name in _ONLY_TELLING,
        sampling=_sampling(name),
    )


def _sampling(name: str) -> Sampling:
    if name in _SAMPLED_AS_FETCHES:
        return Sampling.AS_FETCHES
    return Sampling.NEVER if name in _NEVER_SAMPLED else Sampling.ALWAYS


def _needs(request_permission: RequestPermission) -> Mapping[str, Needs]:
    by_kind = {
        _FOR_ITSELF: request_permission.for_itself,
        _BY_READER: request_permission.for_readers,
        _BY_OBSERVER: request_permission.for_observers,
        "": request_permission.needs,
    }
    return {kind: needs for kind, needs in by_kind.items() if needs is not None}


def _kind_of(request_permission: RequestPermission) -> Callable[[Any, IsVoter], str]:
    if request_permission.for_itself is not None:
        return _for_itself
    return _only_kind if request_permission.for_readers is None else _fetching


def _for_itself(request: Any, _is_voter: IsVoter) -> str:  # noqa: ANN401 - of two types
    return _FOR_ITSELF if request.auto_join else ""


# --- the sidecar ----------------------------------------------------------------------------------


def _of_admin(method: MethodDescriptor) -> MethodPolicy:
    name = method.input_type.name
    shape = getattr(admin_api, name, None) or getattr(m, name)
    return MethodPolicy(
        needs=_needs(permissions.ADMIN[shape]),
        only_tells=method.name in _ONLY_TELLING,
        sampling=_sampling(method.name),
    )


# --- metadata -------------------------------------------------------------------------------------


def _alternatives(method: MethodDescriptor) -> dict[str, str]:
    """Return the messages that its envelope may hold, by the names of their fields."""
    # `Any`: the fields of this oneof are all messages.
    fields: Any = method.input_type.oneofs_by_name["request"].fields
    return {field.name: field.message_type.name for field in fields}


_WRITES: Final = frozenset(_alternatives(CONTROLLER.methods_by_name["Write"]).values())


def takes_any(method: MethodDescriptor) -> bool:
    """True if a method of the metadata API accepts any request, in an envelope."""
    return method.input_type.name in ("WriteRequest", "ReadRequest")


def is_write(method: MethodDescriptor) -> bool:
    """True if a method of the metadata API changes something."""
    return method.input_type.name in ("WriteRequest", *_WRITES)


def _of_controller(method: MethodDescriptor) -> MethodPolicy:
    writes = is_write(method)
    kinds = _alternatives(method) if takes_any(method) else {"": method.input_type.name}
    return MethodPolicy(
        needs={
            kind: permissions.CONTROLLER[dataclass_named(name)].needs
            for kind, name in kinds.items()
        },
        kind_of=_alternative if takes_any(method) else _only_kind,
        request_bytes_max=REQUEST_BYTES_MAX,
        places=LimitGroup.WRITES if writes else LimitGroup.READS,
        # Only the service knows which writes of a stream are not acknowledged.
        has_own_places=method.client_streaming,
        is_sized=method.client_streaming,
        only_tells=not writes,
        sampling=Sampling.AS_WRITES if writes else Sampling.NEVER,
    )


def _alternative(request: Any, _is_voter: IsVoter) -> str:  # noqa: ANN401 - of two types
    return request.WhichOneof("request") or ""


# --- all of them ----------------------------------------------------------------------------------


def _rows_of(
    service: ServiceDescriptor, row_of: Callable[[MethodDescriptor], MethodPolicy]
) -> dict[str, MethodPolicy]:
    return {path(method): row_of(method) for method in service.methods}


# By path.
RAFT_METHODS: Final[Mapping[str, MethodPolicy]] = _rows_of(RAFT, _of_raft)
CONTROLLER_METHODS: Final[Mapping[str, MethodPolicy]] = _rows_of(CONTROLLER, _of_controller)
ADMIN_METHODS: Final[Mapping[str, MethodPolicy]] = _rows_of(ADMIN, _of_admin)
REFLECTION_METHODS: Final[Mapping[str, MethodPolicy]] = {
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": MethodPolicy(
        needs={"": DESCRIBE}
    )
}
METHODS: Final[Mapping[str, MethodPolicy]] = {
    **RAFT_METHODS,
    **CONTROLLER_METHODS,
    **ADMIN_METHODS,
    **REFLECTION_METHODS,
}
