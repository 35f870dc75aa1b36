"""What a server takes in: messages of a bounded size, and so many of them at once.

gRPC would decode a message before anything of ours runs, and answer what it cannot decode with a
traceback in the log. Here it gets a decoder that raises ValueError, or none at all where the caller
is to be judged before (rpc/authorization.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import grpc
from google.protobuf.message import DecodeError

from quorate.rpc.channels import MESSAGE_BYTES_MAX
from quorate.rpc.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

# What replicas and operators ask is a few numbers and names; records travel in answers only.
SMALL_BYTES_MAX: Final = 64 * 1024
# A change or a read of the metadata. It may hold thousands of items, and decoding is done in one
# turn of the loop.
REQUEST_BYTES_MAX: Final = 1024 * 1024
# Of all requests for metadata that have not been answered yet.
UNANSWERED_BYTES_MAX: Final = 32 * 1024 * 1024
TOO_MANY_REQUESTS: Final = "TOO_MANY_REQUESTS"

_CONTROLLER: Final = "/quorate.controller.v1.Controller/"
_RAW: Final = "/quorate.raw.v1.RawLog/"
_RAFT: Final = "/quorate.raft.v1.Raft/"


def bytes_max(method: str) -> int:
    """The size of a method's requests, at most."""
    if method.startswith(_CONTROLLER):
        return REQUEST_BYTES_MAX
    return MESSAGE_BYTES_MAX if method.startswith(_RAW) else SMALL_BYTES_MAX


def decoder(method: str, decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """How this method's requests are read; ValueError says what is wrong with one."""
    limit = bytes_max(method)

    def decode_checked(data: bytes) -> Any:  # noqa: ANN401 - messages of several services
        if len(data) > limit:
            raise ValueError(
                f"the request has {len(data)} bytes, and {method[1:]} takes {limit} at most: send "
                "it in parts"
            )
        try:
            return decode(data)
        except DecodeError:
            raise ValueError(f"these {len(data)} bytes are no request of {method[1:]}") from None

    return decode_checked


class Room:
    """The bytes of requests that are being answered; what peers say of the quorum has no part."""

    def __init__(self) -> None:
        self._used = 0

    def take(self, method: str, size: int) -> Refusal | None:
        """Make room for a request, to be given back; the refusal says why not."""
        if method.startswith(_RAFT):
            return None
        if self._used + size > UNANSWERED_BYTES_MAX:
            message = (
                f"requests of {self._used} bytes are being answered already: try again later, with"
                " fewer at once"
            )
            metadata = {"limit": str(UNANSWERED_BYTES_MAX)}
            code = grpc.StatusCode.RESOURCE_EXHAUSTED
            return Refusal(code, TOO_MANY_REQUESTS, message, metadata)
        self._used += size
        return None

    def give_back(self, method: str, size: int) -> None:
        """A request whose room was taken is answered."""
        if not method.startswith(_RAFT):
            self._used -= size
