"""Decodes requests of bounded size; malformed ones become INVALID_ARGUMENT.

gRPC would decode a message before any of our code runs, and log a traceback for an undecodable one.
So it gets a decoder that raises ValueError, or none at all if the caller has to be authorized first
(rpc/security/authorization.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.rpc.method_table import MethodPolicy


class MalformedRequestError(ValueError):
    """A message that is not a request of its method; the text gives the reason."""


def decoder(
    method: str, row: MethodPolicy, decode: Callable[[bytes], Any]
) -> Callable[[bytes], Any]:
    """Create the decoder of this method's requests; it raises MalformedRequestError.

    With `is_sized` it also returns the number of bytes, which protobuf takes long to compute again.
    """
    limit = row.request_bytes_max

    def decode_checked(data: bytes) -> Any:  # noqa: ANN401 - messages of several services
        if len(data) > limit:
            raise MalformedRequestError(
                f"the request has {len(data)} bytes, and {method[1:]} takes {limit} at most: send "
                "it in parts"
            )
        try:
            return decode(data)
        except DecodeError:
            problem = f"these {len(data)} bytes are not a request of {method[1:]}"
            raise MalformedRequestError(problem) from None

    if not row.is_sized:
        return decode_checked
    return lambda data: (decode_checked(data), len(data))
