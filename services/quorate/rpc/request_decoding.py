"""What a server takes in: messages of a bounded size that are what they should be.

gRPC would decode a message before anything of ours runs, and answer what it cannot decode with a
traceback in the log. Here it gets a decoder that raises ValueError, or none at all where the caller
is to be judged before (rpc/security/authorization.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.rpc.method_table import MethodRow


class MalformedRequestError(ValueError):
    """A message that is none of its method's; the words say what is wrong with it."""


def decoder(method: str, row: MethodRow, decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """The reader of this method's requests; it raises MalformedRequestError.

    Those of a sized one come with the number of their bytes, which protobuf takes long to tell
    again.
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
