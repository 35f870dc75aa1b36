"""What a server takes in: messages of a bounded size that are what they should be.

gRPC would decode a message before anything of ours runs, and answer what it cannot decode with a
traceback in the log. Here it gets a decoder that raises ValueError, or none at all where the caller
is to be judged before (rpc/authorization.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError

from quorate.rpc.channels import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

# What replicas and operators ask is a few numbers and names; records travel in answers only.
SMALL_BYTES_MAX: Final = 64 * 1024
# A change or a read of the metadata. It may hold thousands of items, and decoding is done in one
# turn of the loop.
REQUEST_BYTES_MAX: Final = 1024 * 1024

_CONTROLLER: Final = "/quorate.controller.v1.Controller/"
_RAW: Final = "/quorate.raw.v1.RawLog/"
# A stream of these counts the bytes that it has not answered.
SIZED: Final = _CONTROLLER + "WriteStream"


def bytes_max(method: str) -> int:
    """The size of a method's requests, at most."""
    if method.startswith(_CONTROLLER):
        return REQUEST_BYTES_MAX
    return MESSAGE_BYTES_MAX if method.startswith(_RAW) else SMALL_BYTES_MAX


def decoder(method: str, decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """How this method's requests are read; ValueError says what is wrong with one.

    Those of SIZED come with the number of their bytes, which protobuf takes long to tell again.
    """
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

    if method != SIZED:
        return decode_checked
    return lambda data: (decode_checked(data), len(data))
