"""Metadata, status and completion callbacks of a client call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from quorate.h2 import grpc_framing
from quorate.h2.protocol.frames import H2ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.h2.protocol.header_codec import Fields

_Code = grpc.StatusCode
_OF_RESETS: Final = {
    H2ErrorCode.REFUSED_STREAM: (_Code.UNAVAILABLE, "the server refused the stream"),
    H2ErrorCode.CANCEL: (_Code.CANCELLED, "the server cancelled the call"),
    H2ErrorCode.ENHANCE_YOUR_CALM: (_Code.RESOURCE_EXHAUSTED, "the server wants fewer calls"),
    H2ErrorCode.INADEQUATE_SECURITY: (_Code.PERMISSION_DENIED, "the server wants better security"),
}
_OF_HTTP: Final = {
    b"400": _Code.INTERNAL,
    b"401": _Code.UNAUTHENTICATED,
    b"403": _Code.PERMISSION_DENIED,
    b"404": _Code.UNIMPLEMENTED,
    b"429": _Code.UNAVAILABLE,
    b"502": _Code.UNAVAILABLE,
    b"503": _Code.UNAVAILABLE,
    b"504": _Code.UNAVAILABLE,
}
# Digits of a status: 16 is the highest.
_DIGITS_MAX: Final = 3
NO_STATUS: Final = "the server sent no status"


class CallResult:
    """The result of one client call; `code` is None until it has ended."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self.initial: grpc_framing.Metadata = ()
        self.trailing: grpc_framing.Metadata = ()
        self.code: grpc.StatusCode | None = None
        self.details = ""
        self.is_cancelled = False
        self._callbacks: list[Callable[[Any], None]] = []

    # --- received from the server -----------------------------------------------------------------

    def begin(self, fields: Fields, *, is_last: bool) -> tuple[grpc.StatusCode, str] | None:
        """Take the first headers; return the fault if they are not gRPC."""
        status = fields.pseudo.get(b":status", b"")
        if status != b"200":
            code = _OF_HTTP.get(status, _Code.UNKNOWN)
            return code, f"the server answered with HTTP status {status.decode()}"
        if not is_last:
            self.initial = _read_metadata(fields)
        self.begun.set_result(None)
        return None

    def read_status(self, fields: Fields) -> tuple[grpc.StatusCode, str]:
        """Take the last headers; keep their metadata, return code and message."""
        self.trailing = _read_metadata(fields)
        values = dict(fields.pairs)
        number = values.get(b"grpc-status", b"")
        code = _Code.UNKNOWN
        # Python raises an error for numbers of thousands of digits.
        if number.isdigit() and len(number) <= _DIGITS_MAX:
            code = grpc_framing.OF_NUMBERS.get(int(number), _Code.UNKNOWN)
        words = grpc_framing.words_of(values.get(b"grpc-message", b""))
        return code, words if number else NO_STATUS

    # --- the end ----------------------------------------------------------------------------------

    def end(self, code: grpc.StatusCode, words: str) -> None:
        """Set the result: the call has ended."""
        self.code, self.details = code, words
        for one in (self.begun, self.done):
            if not one.done():
                one.set_result(None)

    def override_status(self, code: grpc.StatusCode, words: str) -> None:
        """Replace an OK by an error that was found later."""
        if self.code is _Code.OK:
            self.code, self.details = code, words

    def check(self) -> None:
        """Raise the error with which the call has ended, unless it is OK."""
        if self.is_cancelled:
            raise asyncio.CancelledError
        if self.code is not _Code.OK:
            assert self.code is not None
            raise grpc.aio.AioRpcError(
                self.code,
                grpc.aio.Metadata(*self.initial),
                grpc.aio.Metadata(*self.trailing),
                details=self.details,
            )

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback` with the call at its end."""
        self._callbacks.append(callback)

    def run_callbacks(self, call: object) -> None:
        """Call the callbacks that wait for the end."""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(call)


def status_of_reset(code: int, words: str) -> tuple[grpc.StatusCode, str]:
    """Return the status of a call whose stream was reset with this code."""
    status, said = _OF_RESETS.get(code, (_Code.INTERNAL, f"the stream was reset with {code}"))  # type: ignore[call-overload]
    return status, words or said


def _read_metadata(fields: Fields) -> grpc_framing.Metadata:
    try:
        return grpc_framing.metadata_of(fields.pairs)
    except ValueError:
        return ()
