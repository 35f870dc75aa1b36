"""How much of a listener one client may hold: calls under way, and the bytes of their requests.

What is over a bound is refused at once with RESOURCE_EXHAUSTED and with what to do, so that memory
stays bounded whatever is asked. Votes and the Fetches of voters never come by here.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import grpc

from quorate.rpc.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

TOO_MANY_CALLS: Final = "TOO_MANY_CALLS"
TOO_MANY_BYTES: Final = "TOO_MANY_BYTES"


class AdmissionError(Exception):
    """A call that may not begin; `refusal` says why, and what to do."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Admission:
    """The places for one kind of call on a listener."""

    def __init__(self, what: str, *, calls_max: int, bytes_max: int) -> None:
        """One client may hold half of the calls; the bytes are everybody's."""
        self._what = what
        self._calls_max = calls_max
        self._bytes_max = bytes_max
        self._calls: Counter[str] = Counter()
        self.calls = 0
        self.bytes = 0

    @contextmanager
    def place(self, peer: str, size: int = 0) -> Iterator[None]:
        """A place for one call of `size` bytes. Raises AdmissionError."""
        client = client_of(peer)
        self._check(client, size)
        self.calls += 1
        self.bytes += size
        self._calls[client] += 1
        try:
            yield
        finally:
            self.calls -= 1
            self.bytes -= size
            self._calls[client] -= 1
            if not self._calls[client]:
                del self._calls[client]

    def _check(self, client: str, size: int) -> None:
        held = self._calls[client]
        if self.calls >= self._calls_max or held >= self._calls_max // 2:
            raise _refused(
                TOO_MANY_CALLS,
                f"{held} {self._what} of {client} are under way, {self.calls} of all clients: have "
                f"fewer than {self._calls_max // 2} at once, wait for answers before asking again, "
                "or ask another controller",
            )
        # One that is alone may be as large as a message can be.
        if self.calls and self.bytes + size > self._bytes_max:
            raise _refused(
                TOO_MANY_BYTES,
                f"{self._what} under way hold {self.bytes} bytes already, {self._bytes_max} is the "
                "most: ask for less at once, or try again later",
            )


def client_of(peer: str) -> str:
    """The address behind gRPC's name of a peer, without the port."""
    return peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer


def _refused(reason: str, message: str) -> AdmissionError:
    return AdmissionError(Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, reason, message, {}))
