"""gRPC statuses of the admin API, with a google.rpc.ErrorInfo.

One table gives the status: by the one-word reason, and by Kafka's error if a leader of another
release sends no reason. The codes give the caller's options: for UNAVAILABLE repeat the call; for
FAILED_PRECONDITION change something else first; after DEADLINE_EXCEEDED a change may or may not be
done.
"""

from __future__ import annotations

from typing import Any, Final

import grpc
import grpc.aio

from quorate.api.admin_api import (
    AMBIGUOUS_OBSERVER,
    FEATURE_UNSUPPORTED,
    INVALID_REQUEST,
    NO_LEADER,
    OBSERVER_NOT_FOUND,
    OUTCOME_UNKNOWN,
    AdminError,
)
from quorate.api.permissions import FORWARDING_NOT_ALLOWED, NOT_AUTHORIZED, SUBJECT_UNREADABLE
from quorate.raft.messages import Reason
from quorate.rpc import error_status
from quorate.rpc.convert.raft import error_of

_Code = grpc.StatusCode
STATUS_BY_REASON: Final[dict[str, grpc.StatusCode]] = {
    NO_LEADER: _Code.UNAVAILABLE,
    OUTCOME_UNKNOWN: _Code.DEADLINE_EXCEEDED,
    INVALID_REQUEST: _Code.INVALID_ARGUMENT,
    AMBIGUOUS_OBSERVER: _Code.FAILED_PRECONDITION,
    OBSERVER_NOT_FOUND: _Code.NOT_FOUND,
    FEATURE_UNSUPPORTED: _Code.UNIMPLEMENTED,
    NOT_AUTHORIZED: _Code.PERMISSION_DENIED,
    FORWARDING_NOT_ALLOWED: _Code.PERMISSION_DENIED,
    SUBJECT_UNREADABLE: _Code.PERMISSION_DENIED,
    Reason.NOT_LEADER.value: _Code.UNAVAILABLE,
    Reason.INCONSISTENT_CLUSTER_ID.value: _Code.INVALID_ARGUMENT,
    Reason.INVALID_LISTENERS.value: _Code.INVALID_ARGUMENT,
    Reason.KRAFT_VERSION_TOO_OLD.value: _Code.FAILED_PRECONDITION,
    Reason.PENDING_VOTER_CHANGE.value: _Code.UNAVAILABLE,
    Reason.HIGH_WATERMARK_UNKNOWN.value: _Code.UNAVAILABLE,
    Reason.DUPLICATE_VOTER.value: _Code.ALREADY_EXISTS,
    Reason.VOTER_NOT_FOUND.value: _Code.NOT_FOUND,
    Reason.VOTER_LAGGING.value: _Code.FAILED_PRECONDITION,
    Reason.VOTER_UNREACHABLE.value: _Code.FAILED_PRECONDITION,
    Reason.VOTER_IS_SOMEBODY_ELSE.value: _Code.FAILED_PRECONDITION,
    Reason.VOTER_UNSUPPORTED.value: _Code.FAILED_PRECONDITION,
    Reason.VOTER_ALIVE.value: _Code.FAILED_PRECONDITION,
    Reason.VOTER_DECOMMISSIONED.value: _Code.FAILED_PRECONDITION,
    Reason.NO_LIVE_MAJORITY.value: _Code.FAILED_PRECONDITION,
    Reason.LAST_VOTER.value: _Code.FAILED_PRECONDITION,
    Reason.NOT_COMMITTED_IN_TIME.value: _Code.DEADLINE_EXCEEDED,
    Reason.LEADERSHIP_LOST.value: _Code.DEADLINE_EXCEEDED,
    Reason.STALE_EPOCH.value: _Code.ABORTED,
    Reason.DIRECTORY_ID_UNKNOWN.value: _Code.FAILED_PRECONDITION,
    Reason.INVALID_UPDATE_VERSION.value: _Code.FAILED_PRECONDITION,
    Reason.NO_HAND_OVER.value: _Code.FAILED_PRECONDITION,
    Reason.VOTERS_AWAY.value: _Code.FAILED_PRECONDITION,
    Reason.TOO_FEW_VOTERS.value: _Code.FAILED_PRECONDITION,
}


def status_of(error: AdminError) -> grpc.StatusCode:
    """Return the status of a gRPC call that ends with this error."""
    return STATUS_BY_REASON.get(error.reason, error_status.status_of(error.error))


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: AdminError) -> None:
    """End a call with the error's status. Raises grpc's own exception."""
    metadata = error.metadata | {
        "kafka_error": error.error.name,
        "kafka_error_code": str(int(error.error)),
    }
    refusal = error_status.ErrorStatus(status_of(error), error.reason, error.message, metadata)
    await error_status.abort(context, refusal)


def admin_error(error: grpc.aio.AioRpcError) -> AdminError | None:
    """Return the error in a response of the admin API; None if its server did not respond."""
    refusal = error_status.error_info_of(error)
    if refusal is None:
        return None
    metadata = dict(refusal.metadata)
    error_code = error_of(int(metadata.pop("kafka_error_code", "-1")))
    metadata.pop("kafka_error", None)
    return AdminError(refusal.reason, error_code, refusal.message, metadata.items())
