"""One stream of a connection: what may be sent on it, what waits to be, and which ends are open."""

from __future__ import annotations

from collections import deque


class Stream:
    """Windows count down. The connection holds those that are open in one direction or both."""

    __slots__ = (
        "body_left",
        "can_receive",
        "can_send",
        "had_headers",
        "id",
        "in_window",
        "is_last_queued",
        "moved",
        "out_window",
        "queue",
        "queued",
        "read",
        "taken",
        "trailers",
        "unread",
    )

    def __init__(self, stream_id: int, *, in_window: int, out_window: int) -> None:
        self.id = stream_id
        self.in_window = in_window
        self.out_window = out_window
        self.can_receive = True
        self.can_send = True
        self.had_headers = False
        # Frames that moved something forward, in both directions.
        self.moved = 0
        # Of a content-length, where there is one.
        self.body_left: int | None = None
        # Received, and given to nobody yet; given to somebody, and not yet granted anew.
        self.unread = 0
        self.read = 0
        self.queue: deque[bytes] | None = None
        self.queued = 0
        # Of the first in the queue, how much has left.
        self.taken = 0
        self.is_last_queued = False
        self.trailers: bytes | None = None

    def put_back(self, data: bytes) -> None:
        """These bytes have to wait, behind those that wait already."""
        if self.queue is None:
            self.queue = deque()
        self.queue.append(data)
        self.queued += len(data)

    def take(self, size: int) -> bytes:
        """The next bytes of those that wait, at most so many."""
        assert self.queue, "nothing waits"
        first, begin = self.queue[0], self.taken
        # The rest of a large message is not copied for each frame of it.
        data = first[begin : begin + size]
        self.taken += len(data)
        if self.taken == len(first):
            self.queue.popleft()
            self.taken = 0
        self.queued -= len(data)
        return data
