"""gRPC statuses for metadata requests that have no reply.

Reasons are Kafka's error names, and OUTCOME_UNKNOWN, which is not one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from quorate.api.admin_api import OUTCOME_UNKNOWN
from quorate.api.advertised_endpoints import listener_first
from quorate.rpc.error_status import ErrorStatus, status_of

if TYPE_CHECKING:
    from quorate.api.handlers import ControllerApiError
    from quorate.raft.messages import LeaderInfo


def refusal_for(error: ControllerApiError, listener: str) -> ErrorStatus:
    """Convert the error of a call; the metadata contain the leader's address on this listener."""
    metadata = {"kafka_error": error.error.name, "kafka_error_code": str(int(error.error))}
    if error.leader is not None:
        metadata |= _leader(error.leader, listener)
    if error.outcome_unknown:
        code = grpc.StatusCode.DEADLINE_EXCEEDED
        return ErrorStatus(code, OUTCOME_UNKNOWN, error.message, metadata)
    return ErrorStatus(status_of(error.error), error.error.name, error.message, metadata)


def _leader(info: LeaderInfo, listener: str) -> dict[str, str]:
    told = {"leader_epoch": str(info.epoch)}
    if info.leader_id is not None:
        told["leader_id"] = str(info.leader_id)
    for endpoint in listener_first(info.endpoints, listener)[:1]:
        told |= {"leader_host": endpoint.host, "leader_port": str(endpoint.port)}
    return told
