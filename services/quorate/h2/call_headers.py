"""Parses the request headers of a call: method, deadline, metadata.

Headers that do not begin a gRPC call give the reason instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from quorate.h2 import grpc_framing
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.h2.grpc_framing import Metadata
    from quorate.h2.protocol.header_codec import Fields

_CONTENT_TYPE = b"application/grpc"
# A compressed message may expand a thousandfold, without yielding to other tasks.
_TAKEN = ((b"grpc-accept-encoding", b"identity"),)


class CallDetails(grpc.HandlerCallDetails):
    """The details of a call that interceptors see."""

    def __init__(self, method: str, invocation_metadata: Metadata) -> None:
        self.method = method
        self.invocation_metadata = invocation_metadata


@value_type
class Request:
    """One call as its client has begun it.

    `http_status` is set for a request that is not gRPC, `fault` for a gRPC call that cannot be
    read; `hints` are additional headers of its response.
    """

    details: CallDetails
    timeout_s: float | None = None
    http_status: bytes | None = None
    fault: tuple[grpc.StatusCode, str] | None = None
    hints: tuple[tuple[bytes, bytes], ...] = ()


def request_of(fields: Fields) -> Request:
    """Return the call that these fields begin; equal blocks of a connection are parsed once."""
    if fields.meaning is None:
        fields.meaning = _read(fields)
    request: Request = fields.meaning
    return request


def _read(fields: Fields) -> Request:
    path = fields.pseudo[b":path"].decode("utf-8", errors="replace")
    values = dict(fields.pairs)
    content_type = values.get(b"content-type", b"")
    if fields.pseudo[b":method"] != b"POST":
        return Request(CallDetails(path, ()), http_status=b"405")
    if not (
        content_type == _CONTENT_TYPE
        or content_type.startswith((_CONTENT_TYPE + b"+", _CONTENT_TYPE + b";"))
    ):
        return Request(CallDetails(path, ()), http_status=b"415")
    encoding = values.get(b"grpc-encoding", b"identity")
    if encoding != b"identity":
        words = f"the encoding {encoding.decode(errors='replace')} is not taken: send identity"
        fault = (grpc.StatusCode.UNIMPLEMENTED, words)
        return Request(CallDetails(path, ()), fault=fault, hints=_TAKEN)
    try:
        metadata = grpc_framing.metadata_of(fields.pairs)
        timeout = values.get(b"grpc-timeout")
        timeout_s = None if timeout is None else grpc_framing.timeout_s(timeout)
    except ValueError as error:
        return Request(CallDetails(path, ()), fault=(grpc.StatusCode.INTERNAL, str(error)))
    return Request(CallDetails(path, metadata), timeout_s)
