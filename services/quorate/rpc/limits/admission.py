"""Admission control: limits on calls and bytes in flight, per client and in total.

A call over a limit is rejected immediately with RESOURCE_EXHAUSTED and the remedy, so that memory
stays bounded under any load. A slot is acquired when a call's headers have arrived, and released
when the last byte of its response has been sent: a client that stops halfway, or does not read,
keeps it. Votes and the Fetches of voters need no slot; rpc/limits/inbound_limiter.py limits those
that are partially received.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import grpc.aio

from quorate.h2.peer_name import client_of
from quorate.rpc.error_status import ErrorStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
TOO_MANY_CALLS: Final = "TOO_MANY_CALLS"
TOO_MANY_BYTES: Final = "TOO_MANY_BYTES"


class AdmissionError(Exception):
    """A call that may not begin or continue; `refusal` gives the reason and the remedy."""

    def __init__(self, refusal: ErrorStatus) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class ByteBudget:
    """Byte budget of unanswered requests and unread responses."""

    def __init__(self, bytes_max: int) -> None:
        """Limit the budget to `bytes_max`; one client may hold half of it."""
        self.bytes_max = bytes_max
        self.bytes = 0
        self._held: Counter[str] = Counter()

    def reserve(self, client: str, size: int) -> None:
        """Charge bytes to a client. Raises AdmissionError if they exceed the budget."""
        held = self._held[client]
        # A single call may be as large as a message can be.
        is_over = self.bytes > 0 and self.bytes + size > self.bytes_max
        if is_over or (held and held + size > self.bytes_max // 2):
            self.release(client, 0)
            raise resource_exhausted(
                TOO_MANY_BYTES,
                f"requests and answers under way of {client} hold {held} bytes, {self.bytes} of "
                f"all clients; {self.bytes_max // 2} and {self.bytes_max} are the most: ask for "
                "less at once, read the answers, or try again later",
            )
        self.charge(client, size)

    def charge(self, client: str, size: int) -> None:
        """Charge bytes unconditionally."""
        self.bytes += size
        self._held[client] += size

    def release(self, client: str, size: int) -> None:
        """Release bytes that were sent."""
        self.bytes -= size
        self._held[client] -= size
        if not self._held[client]:
            del self._held[client]


class AdmissionControl:
    """The slots for one kind of call on a listener, and the budget for its bytes."""

    def __init__(self, what: str, *, calls_max: int, byte_budget: ByteBudget) -> None:
        """Limit the calls to `calls_max`; one client may hold half of them."""
        self._what = what
        self._calls_max = calls_max
        self.byte_budget = byte_budget
        self._calls: Counter[str] = Counter()
        self.calls = 0
        # Created once, because a client may be rejected a hundred thousand times a second.
        self.refusal = ErrorStatus(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            TOO_MANY_CALLS,
            f"too many {what} are in progress: {calls_max // 2} of one client and {calls_max} of "
            "all clients are the most; wait for answers before asking again, or ask another "
            "controller",
            {},
        )

    def try_enter(self, peer: str) -> CallSlot | None:
        """Acquire a slot for one call; None if all are in use."""
        client = client_of(peer)
        held = self._calls.get(client, 0)
        if self.calls >= self._calls_max or held >= self._calls_max // 2:
            return None
        self.calls += 1
        self._calls[client] = held + 1
        return CallSlot(self, client)

    def acquire(self, peer: str) -> CallSlot:
        """Acquire a slot for one call. Raises AdmissionError."""
        place = self.try_enter(peer)
        if place is None:
            raise AdmissionError(self.refusal)
        return place

    def acquire_for_call(self, context: Context) -> CallSlot:
        """Acquire a slot for this call until its response is sent. Raises AdmissionError.

        It is bound to the task in which gRPC runs the call, which ends with the last byte. A
        callback of the context would hold the context, which holds the callback: only the garbage
        collector frees such a cycle, and never if it was frozen in the meantime.
        """
        task = asyncio.current_task()
        assert task is not None, "calls are served in tasks"
        place = self.acquire(context.peer())
        task.add_done_callback(place.release)
        return place

    @contextmanager
    def slot(self, peer: str, size: int = 0) -> Iterator[CallSlot]:
        """Acquire a slot for one call of `size` bytes. Raises AdmissionError."""
        place = self.acquire(peer)
        try:
            place.hold(size)
            yield place
        finally:
            place.release()

    def leave(self, client: str, size: int) -> None:
        """Release the slot of a call and its bytes."""
        self.calls -= 1
        self.byte_budget.release(client, size)
        self._calls[client] -= 1
        if not self._calls[client]:
            del self._calls[client]


class CallSlot:
    """One admitted call, and the bytes that it holds."""

    __slots__ = ("_admission_control", "_client", "_size")

    def __init__(self, admission_control: AdmissionControl, client: str) -> None:
        self._admission_control: AdmissionControl | None = admission_control
        self._client = client
        self._size = 0

    def hold(self, size: int) -> None:
        """Charge `size` more bytes. Raises AdmissionError if they exceed the budget."""
        if self._admission_control is not None:
            self._admission_control.byte_budget.reserve(self._client, size)
            self._size += size

    def charge(self, size: int) -> None:
        """Charge bytes of a response that must be sent, as the change is done: never rejected."""
        if self._admission_control is not None:
            self._admission_control.byte_budget.charge(self._client, size)
            self._size += size

    def release(self, _: Any = None) -> None:  # noqa: ANN401 - the task, as a callback
        """Release the slot when the call has ended; further calls do nothing."""
        admission, self._admission_control = self._admission_control, None
        if admission is not None:
            admission.leave(self._client, self._size)


def resource_exhausted(reason: str, message: str) -> AdmissionError:
    """Create the error of a client that exceeds a limit."""
    return AdmissionError(ErrorStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, reason, message, {}))
