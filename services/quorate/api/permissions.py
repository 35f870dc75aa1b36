"""The permissions that each request type requires, for every transport.

A request needs one of several operations on a resource, in some cases depending on its contents. A
replica may request for itself what requires more of any other caller. A Fetch of an observer
requires less than one of a voter, and a Fetch of a caller that is not a replica still less.

The items of some requests are authorized one by one
(controller/authorization/request_authorization.py). Here, such a request requires a permission that
could allow one of its items, so that a server may reject it before it reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.api.admin_api import PrepareStopRequest
from quorate.controller.authorization.authorizer import CLUSTER, LOG, Operation, Resource
from quorate.controller.message_registry import REQUESTS
from quorate.raft import messages as m
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.controller.authorization.authorizer import Authorizer, Caller

# The reasons for a rejection, for programs.
NOT_AUTHORIZED: Final = "NOT_AUTHORIZED"
FORWARDING_NOT_ALLOWED: Final = "FORWARDING_NOT_ALLOWED"
SUBJECT_UNREADABLE: Final = "SUBJECT_UNREADABLE"


@value_type
class RequiredOperation:
    """Any one of these operations on a resource; the name `*` stands for any of its type."""

    operations: tuple[Operation, ...]
    resource: Resource = CLUSTER


# Alternatives: any one is enough.
Needs: TypeAlias = tuple[RequiredOperation, ...]


@value_type
class Access:
    """The authorizer, and the identities that may call for others."""

    authorizer: Authorizer
    forwarders: frozenset[str] = frozenset()

    def allows(self, caller: Caller, needs: Iterable[RequiredOperation]) -> bool:
        """True if the caller has one of these permissions regardless of the metadata.

        Servers do not have the metadata.
        """
        rights = self.authorizer.rights(None, caller)
        return any(
            rights.may(operation, need.resource) for need in needs for operation in need.operations
        )


@value_type
class RequestPermission:
    """The permissions that a type of request requires.

    `for_itself` applies if a replica sends a request about itself. `for_observers` applies if the
    replica's node id is not that of a voter, and `for_readers` if no replica is named.
    """

    needs: Needs
    for_itself: Needs | None = None
    for_observers: Needs | None = None
    for_readers: Needs | None = None

    @property
    def any_of(self) -> Needs:
        """All alternatives: a caller with none of them may not send such a request at all."""
        less = (self.for_itself, self.for_readers, self.for_observers)
        return (*(need for needs in less for need in needs or ()), *self.needs)


# Controllers only: these requests elect leaders, and acknowledged records are committed.
PEER: Final[Needs] = (RequiredOperation((Operation.QUORUM_ACTION,)),)
ALTER: Final[Needs] = (RequiredOperation((Operation.ALTER,)),)
DESCRIBE: Final[Needs] = (RequiredOperation((Operation.DESCRIBE,)),)
# Requests that both peers and operators send.
PEER_OR_ALTER: Final[Needs] = (RequiredOperation((Operation.QUORUM_ACTION, Operation.ALTER)),)
# Brokers, and controllers that are not voters yet. No commit depends on their acknowledgements.
OBSERVER: Final[Needs] = (RequiredOperation((Operation.CLUSTER_ACTION, Operation.QUORUM_ACTION)),)
# The log has more than any description shows, including credentials, so Describe is not enough. The
# quorum keeps no state about a reader, so a reader needs less trust than a broker.
OBSERVER_OR_READ: Final[Needs] = (*OBSERVER, RequiredOperation((Operation.READ,), LOG))
# A caller that may fetch the log may know the leader: `storage recover` has a controller's
# certificate.
PEER_READER_OR_DESCRIBE: Final[Needs] = (
    RequiredOperation((Operation.CLUSTER_ACTION, Operation.QUORUM_ACTION, Operation.DESCRIBE)),
    RequiredOperation((Operation.READ,), LOG),
)

RAFT: Final[Mapping[type, RequestPermission]] = {
    m.VoteRequest: RequestPermission(PEER),
    m.BeginQuorumEpochRequest: RequestPermission(PEER),
    m.EndQuorumEpochRequest: RequestPermission(PEER),
    m.FetchRequest: RequestPermission(PEER, for_observers=OBSERVER, for_readers=OBSERVER_OR_READ),
    m.FetchSnapshotRequest: RequestPermission(
        PEER, for_observers=OBSERVER, for_readers=OBSERVER_OR_READ
    ),
    m.ApiVersionsRequest: RequestPermission(PEER_READER_OR_DESCRIBE),
    m.DescribeQuorumRequest: RequestPermission(PEER_READER_OR_DESCRIBE),
    m.AddRaftVoterRequest: RequestPermission(ALTER, for_itself=PEER_OR_ALTER),
    m.RemoveRaftVoterRequest: RequestPermission(ALTER, for_itself=PEER_OR_ALTER),
    m.UpdateRaftVoterRequest: RequestPermission(PEER_OR_ALTER),
    m.UpdateFeaturesRequest: RequestPermission(ALTER),
    m.TransferLeadershipRequest: RequestPermission(ALTER),
    m.TakeLeaveRequest: RequestPermission(ALTER),
}

# Requests to the sidecar, which replicas do not send.
ADMIN: Final[Mapping[type, RequestPermission]] = {
    m.AddRaftVoterRequest: RequestPermission(ALTER),
    m.RemoveRaftVoterRequest: RequestPermission(ALTER),
    m.UpdateRaftVoterRequest: RequestPermission(ALTER),
    m.UpdateFeaturesRequest: RequestPermission(ALTER),
    m.TransferLeadershipRequest: RequestPermission(ALTER),
    PrepareStopRequest: RequestPermission(ALTER),
    m.DescribeQuorumRequest: RequestPermission(DESCRIBE),
}

CONTROLLER: Final[Mapping[type, RequestPermission]] = {
    request: RequestPermission(
        tuple(
            RequiredOperation((request.permission.operation,), on) for on in request.permission.on
        )
    )
    for request in REQUESTS
}
