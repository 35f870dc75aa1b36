"""gRPC error statuses with google.rpc.ErrorInfo, and their explanations for people.

Codes are for programs, reasons distinguish errors of one code, messages are for people.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Never

import grpc
import grpc.aio
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.rpc.security.tls_files import TlsFiles

DOMAIN: Final = "quorate"
_VERIFICATION: Final = re.compile(r"CERTIFICATE_VERIFY_FAILED: ([^:]+)")
_OTHER_NAME: Final = re.compile(r"peer name \S+ is not in peer certificate|hostname verif", re.I)
_ALERT: Final = re.compile(r"ALERT_([A-Z_]+)")
# Alerts to a client without a certificate, with TLS 1.3 and 1.2.
_CERTIFICATE_MISSING: Final = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE")
_CLOSED: Final = ("socket closed", "connection reset", "broken pipe", "endpoint closing")
_Code = grpc.StatusCode
# The caller's options: for UNAVAILABLE repeat the call; for FAILED_PRECONDITION change something
# else first; after DEADLINE_EXCEEDED a change may or may not be done.
_STATUS_BY_ERROR: Final[dict[ErrorCode, grpc.StatusCode]] = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _Code.UNAVAILABLE,
    ErrorCode.NOT_CONTROLLER: _Code.UNAVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: _Code.DEADLINE_EXCEEDED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _Code.PERMISSION_DENIED,
    ErrorCode.UNSUPPORTED_VERSION: _Code.FAILED_PRECONDITION,
    ErrorCode.INVALID_REQUEST: _Code.INVALID_ARGUMENT,
    ErrorCode.POLICY_VIOLATION: _Code.FAILED_PRECONDITION,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: _Code.RESOURCE_EXHAUSTED,
    ErrorCode.FENCED_LEADER_EPOCH: _Code.ABORTED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: _Code.ABORTED,
    ErrorCode.INVALID_UPDATE_VERSION: _Code.FAILED_PRECONDITION,
    ErrorCode.INCONSISTENT_CLUSTER_ID: _Code.INVALID_ARGUMENT,
    ErrorCode.INVALID_VOTER_KEY: _Code.FAILED_PRECONDITION,
    ErrorCode.DUPLICATE_VOTER: _Code.ALREADY_EXISTS,
    ErrorCode.VOTER_NOT_FOUND: _Code.NOT_FOUND,
}


def status_of(error: ErrorCode) -> grpc.StatusCode:
    """Return the status of a call that ends with one of Kafka's errors."""
    return _STATUS_BY_ERROR.get(error, _Code.INTERNAL)


@value_type
class ErrorStatus:
    """The status of a rejected call: `reason` is one word in capitals, metadata is for programs."""

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: Mapping[str, str]


async def abort(context: grpc.aio.ServicerContext[Any, Any], refusal: ErrorStatus) -> Never:
    """End the call with the status; raises gRPC's own exception."""
    await context.abort_with_status(status_with(refusal))


def status_with(refusal: ErrorStatus) -> grpc.Status:
    """Convert a refusal to a gRPC status."""
    info = error_details_pb2.ErrorInfo(
        reason=refusal.reason, domain=DOMAIN, metadata=refusal.metadata
    )
    detail = any_pb2.Any()
    detail.Pack(info)
    number: int = refusal.code.value[0]
    status = status_pb2.Status(code=number, message=refusal.message, details=[detail])
    made: grpc.Status = rpc_status.to_status(status)
    return made


def error_info_of(error: grpc.aio.AioRpcError) -> ErrorStatus | None:
    """Return the refusal in the status of one of our servers; None for any other error."""
    try:
        status = rpc_status.from_call(error)
    except ValueError:
        return None
    for detail in () if status is None else status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            return ErrorStatus(
                error.code(), info.reason, error.details() or "", dict(info.metadata)
            )
    return None


def explain_error(error: grpc.aio.AioRpcError, tls: TlsFiles | None) -> str:
    """Explain an error to people, on a channel with these certificates."""
    details = error.details() or ""
    lowered = details.lower()
    refusal = error_info_of(error)
    if refusal is not None:
        facts = ", ".join(f"{key}={value}" for key, value in sorted(refusal.metadata.items()))
        return f"{error.code().name} ({refusal.reason}): {refusal.message} [{facts}]"
    if "connection refused" in lowered:
        return "connection refused"
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED or "timed out" in lowered:
        return "no answer in time"
    handshake = explain_handshake_failure(details, tls)
    return handshake or f"{error.code().name}: {details}"


def was_never_sent(error: grpc.aio.AioRpcError) -> bool:
    """True if the request cannot have reached a server, so that it may be sent again."""
    details = (error.details() or "").lower()
    is_closed = "failed to connect" in details or "refused" in details
    return error.code() is grpc.StatusCode.UNAVAILABLE and is_closed


def explain_handshake_failure(details: str, tls: TlsFiles | None) -> str | None:
    """Explain a failed connection if TLS, or the lack of it, is the reason; otherwise None."""
    lowered = details.lower()
    if not lowered.startswith("failed to connect"):
        return None
    is_closed = any(words in lowered for words in _CLOSED)
    if tls is None:
        words = "the server closed the connection: it may want TLS, or have too many connections"
        return words if is_closed else None
    failure = _VERIFICATION.search(details)
    if failure is not None:
        return (
            f"the server's certificate is not trusted ({failure[1].strip()}): "
            "ssl.truststore.location has to name the CA that issued it"
        )
    if _OTHER_NAME.search(details):
        return "the server's certificate is for another host: use a name that it contains"
    if "WRONG_VERSION_NUMBER" in details:
        return "the server does not speak TLS"
    alert = _ALERT.search(details)
    if not is_closed and alert is None:
        return None
    return _refused_words(None if alert is None else alert[1], tls)


def _refused_words(alert: str | None, tls: TlsFiles) -> str:
    """Explain why a server has ended a handshake, by its alert or by a guess."""
    pair = tls.current().pair
    if pair is None and alert not in (None, *_CERTIFICATE_MISSING):
        return f"the server refused the TLS handshake ({_alert_words(alert)})"
    if alert is None:
        said, rest = "closed the TLS handshake", ", or it has too many connections"
    else:
        said, rest = f"refused the TLS handshake ({_alert_words(alert)})", ""
    if pair is None:
        return f"the server {said}: it wants a client certificate, set ssl.keystore.location{rest}"
    return (
        f"the server {said}: it may not trust the certificate of {pair.principal} in "
        f"{tls.settings.named_chain}{rest}"
    )


def _alert_words(alert: str | None) -> str:
    return (alert or "").lower().replace("_", " ")
