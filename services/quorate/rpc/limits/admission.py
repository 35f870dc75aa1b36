"""How much of a listener callers may hold: calls under way, and the bytes of requests and answers.

A call over a bound is refused at once with RESOURCE_EXHAUSTED and with what to do, so that memory
stays bounded whatever is asked. A place is taken when a call's headers have come, and given back
when the last byte of its answer has left: a client that stops halfway, or reads nothing, holds it.
Votes and the Fetches of voters need no place; rpc/limits/inbound_limiter.py bounds those that are
half-sent.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import grpc.aio

from quorate.h2.peer_name import client_of
from quorate.rpc.error_status import CallRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
TOO_MANY_CALLS: Final = "TOO_MANY_CALLS"
TOO_MANY_BYTES: Final = "TOO_MANY_BYTES"


class AdmissionError(Exception):
    """A call that may not begin, or not go on; `refusal` says why, and what to do."""

    def __init__(self, refusal: CallRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Pool:
    """Bytes of requests that are not answered, and of answers that are not read."""

    def __init__(self, bytes_max: int) -> None:
        """One client may hold half of it."""
        self.bytes_max = bytes_max
        self.bytes = 0
        self._held: Counter[str] = Counter()

    def take(self, client: str, size: int) -> None:
        """Count bytes of a client. Raises AdmissionError where there is no room for them."""
        held = self._held[client]
        # A call that is alone may be as large as a message can be.
        is_over = self.bytes > 0 and self.bytes + size > self.bytes_max
        if is_over or (held and held + size > self.bytes_max // 2):
            self.give_back(client, 0)
            raise refused(
                TOO_MANY_BYTES,
                f"requests and answers under way of {client} hold {held} bytes, {self.bytes} of "
                f"all clients; {self.bytes_max // 2} and {self.bytes_max} are the most: ask for "
                "less at once, read the answers, or try again later",
            )
        self.owe(client, size)

    def owe(self, client: str, size: int) -> None:
        """Count them whether there is room or not."""
        self.bytes += size
        self._held[client] += size

    def give_back(self, client: str, size: int) -> None:
        """They have left."""
        self.bytes -= size
        self._held[client] -= size
        if not self._held[client]:
            del self._held[client]


class Admission:
    """The places for one kind of call on a listener, and the pool for its bytes."""

    def __init__(self, what: str, *, calls_max: int, pool: Pool) -> None:
        """One client may hold half of the calls."""
        self._what = what
        self._calls_max = calls_max
        self.pool = pool
        self._calls: Counter[str] = Counter()
        self.calls = 0
        # Made once, since a client may be refused a hundred thousand times a second.
        self.refusal = CallRefusal(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            TOO_MANY_CALLS,
            f"too many {what} are in progress: {calls_max // 2} of one client and {calls_max} of "
            "all clients are the most; wait for answers before asking again, or ask another "
            "controller",
            {},
        )

    def try_enter(self, peer: str) -> Place | None:
        """A place for one call, until it is given back; None if there is none."""
        client = client_of(peer)
        held = self._calls.get(client, 0)
        if self.calls >= self._calls_max or held >= self._calls_max // 2:
            return None
        self.calls += 1
        self._calls[client] = held + 1
        return Place(self, client)

    def enter(self, peer: str) -> Place:
        """A place for one call, until it is given back. Raises AdmissionError."""
        place = self.try_enter(peer)
        if place is None:
            raise AdmissionError(self.refusal)
        return place

    def enter_call(self, context: Context) -> Place:
        """A place for this call until its answer has left. Raises AdmissionError.

        The caller's is the task in which gRPC runs the call: it ends with the last byte. A
        callback of the context would hold the context, which holds it: such a circle is freed by
        the garbage collector only, and never where it was set aside meanwhile.
        """
        task = asyncio.current_task()
        assert task is not None, "calls are served in tasks"
        place = self.enter(context.peer())
        task.add_done_callback(place.give_back)
        return place

    @contextmanager
    def place(self, peer: str, size: int = 0) -> Iterator[Place]:
        """A place for one call of `size` bytes. Raises AdmissionError."""
        place = self.enter(peer)
        try:
            place.hold(size)
            yield place
        finally:
            place.give_back()

    def leave(self, client: str, size: int) -> None:
        """Count neither a call nor its bytes any longer."""
        self.calls -= 1
        self.pool.give_back(client, size)
        self._calls[client] -= 1
        if not self._calls[client]:
            del self._calls[client]


class Place:
    """One call that is counted, and what it holds."""

    __slots__ = ("_admission", "_client", "_size")

    def __init__(self, admission: Admission, client: str) -> None:
        self._admission: Admission | None = admission
        self._client = client
        self._size = 0

    def hold(self, size: int) -> None:
        """So many bytes more. Raises AdmissionError where there is no room for them."""
        if self._admission is not None:
            self._admission.pool.take(self._client, size)
            self._size += size

    def owe(self, size: int) -> None:
        """Bytes of an answer that has to leave, since what it tells is done: never refused."""
        if self._admission is not None:
            self._admission.pool.owe(self._client, size)
            self._size += size

    def give_back(self, _: Any = None) -> None:  # noqa: ANN401 - the task, as a callback
        """The call has ended; once is enough."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.leave(self._client, self._size)


def refused(reason: str, message: str) -> AdmissionError:
    """What somebody is told who is over a bound."""
    return AdmissionError(CallRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, reason, message, {}))
