"""The response of a server call: headers, messages, trailers with the status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import grpc

from quorate.h2 import grpc_framing
from quorate.h2.protocol.header_codec import block_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from quorate.h2.protocol.connection import Connection

_BEGINNING: Final = ((b":status", b"200"), (b"content-type", b"application/grpc"))
_BEGINNING_BLOCK: Final = block_of(_BEGINNING)
_OK_BLOCK: Final = block_of([(b"grpc-status", b"0")])
OK: Final = grpc.StatusCode.OK


class ServerResponse:
    """The response to one call; its handler sets `code`, `details` and `trailing`."""

    def __init__(
        self, connection: Connection, stream_id: int, flush_soon: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._stream_id = stream_id
        self._flush_soon = flush_soon
        self._has_begun = False
        self.is_over = False
        self.encode: Callable[[Any], bytes] | None = None
        self.code: grpc.StatusCode | int = OK
        self.details = ""
        self.trailing: tuple[tuple[str, str | bytes], ...] = ()

    def begin(self, metadata: Iterable[tuple[str, str | bytes]] = ()) -> None:
        """Send the headers, once."""
        if not self._has_begun:
            self._has_begun = True
            block = _BEGINNING_BLOCK + block_of(grpc_framing.metadata_pairs(metadata))
            self._connection.send_headers(self._stream_id, block)
            self._flush_soon()

    def send(self, response: Any) -> bool:  # noqa: ANN401 - a message of any service
        """Send a message, unless the call has ended; False if it has to wait for space."""
        data: bytes = response if self.encode is None else self.encode(response)
        if self.is_over:
            return True
        self.begin()
        self._flush_soon()
        return self._connection.send_data(self._stream_id, grpc_framing.frame_message(data))

    def finish(
        self,
        code: grpc.StatusCode | int,
        details: str,
        hints: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        """Send the status, once; `hints` are headers for the client's library."""
        if self.is_over:
            return
        self.is_over = True
        number = code if isinstance(code, int) else code.value[0]
        if number == 0 and self._has_begun and not details and not self.trailing:
            block = _OK_BLOCK
        else:
            block = _status_block(number, details, self.trailing, hints)
            if not self._has_begun:
                block = _BEGINNING_BLOCK + block
        self._has_begun = True
        self._connection.send_headers(self._stream_id, block, is_last=True)
        self._flush_soon()


def refusal_block(status: grpc.Status) -> bytes:
    """Encode the only headers of a call that ends with this status before it is served."""
    number: int = status.code.value[0]
    return _BEGINNING_BLOCK + _status_block(number, status.details, status.trailing_metadata or ())


def _status_block(
    number: int,
    details: str,
    trailing: Iterable[tuple[str, str | bytes]],
    hints: tuple[tuple[bytes, bytes], ...] = (),
) -> bytes:
    pairs = [(b"grpc-status", b"%d" % number)]
    if details:
        pairs.append((b"grpc-message", grpc_framing.status_words(details)))
    return block_of([*pairs, *hints, *grpc_framing.metadata_pairs(trailing)])
