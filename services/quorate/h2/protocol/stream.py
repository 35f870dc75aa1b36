"""State of one stream: send window, pending data, open or half-closed."""

from __future__ import annotations

from collections import deque


class Stream:
    """Windows count down. The connection holds streams that are open in one or both directions."""

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
        # Frames that carried something, in both directions.
        self.moved = 0
        # Bytes left of a content-length, None without one.
        self.body_left: int | None = None
        # Bytes received and not consumed yet; bytes consumed and not granted again yet.
        self.unread = 0
        self.read = 0
        self.queue: deque[bytes] | None = None
        self.queued = 0
        # Bytes of the first message in the queue that were sent.
        self.taken = 0
        self.is_last_queued = False
        self.trailers: bytes | None = None

    def widen(self, size: int) -> int:
        """Change the send window by `size` bytes; returns its new size."""
        self.out_window += size
        return self.out_window

    def consume(self, size: int) -> None:
        """Record that the application has consumed `size` of the bytes received."""
        self.unread -= size
        self.read += size

    def grant(self) -> int:
        """Let the peer send as much as was consumed since the last time; returns that size."""
        size, self.read = self.read, 0
        self.in_window += size
        return size

    def put_back(self, data: bytes) -> None:
        """Queue bytes behind those that already wait."""
        if self.queue is None:
            self.queue = deque()
        self.queue.append(data)
        self.queued += len(data)

    def take(self, size: int) -> bytes:
        """Remove and return at most `size` bytes of those that wait."""
        assert self.queue, "nothing waits"
        first, begin = self.queue[0], self.taken
        # Slicing avoids copying the rest of a large message for each frame.
        data = first[begin : begin + size]
        self.taken += len(data)
        if self.taken == len(first):
            self.queue.popleft()
            self.taken = 0
        self.queued -= len(data)
        return data
