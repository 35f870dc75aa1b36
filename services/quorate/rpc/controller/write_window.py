"""Flow-control window of write streams: requests and bytes in flight.

Writes wait rather than fail: the server stops reading from a stream whose window is full until some
of its writes are acknowledged and the acknowledgements are sent. Each stream has a small window of
its own, so that streams whose clients do not read cannot stop the others.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES_MAX: Final = 1024
# Guaranteed per stream, however much the others use.
OWN_WRITES: Final = 32
OWN_BYTES: Final = 64 * 1024
# Of all streams. A write in flight costs about 4 KiB, plus some times the size of its request.
SHARED_WRITES: Final = 32 * WRITES_MAX
SHARED_BYTES: Final = 32 * 1024 * 1024


class SharedWriteBudget:
    """The writes and bytes that all streams of a listener hold in total."""

    def __init__(self) -> None:
        self.writes = 0
        self.bytes = 0
        self.windows: deque[WriteWindow] = deque()

    @property
    def capacity(self) -> int:
        """The number of writes that may still be added."""
        return SHARED_WRITES - self.writes if self.bytes < SHARED_BYTES else 0

    def wake(self) -> None:
        """Wake the waiting streams in order of arrival; one without capacity waits again."""
        for _ in range(len(self.windows)):
            self.windows.popleft().wake()


class WriteWindow:
    """The writes of one stream that are not acknowledged to it."""

    def __init__(self, budget: SharedWriteBudget) -> None:
        self._budget = budget
        self._look_again: Callable[[], None] | None = None
        self.writes = 0
        self.bytes = 0

    @property
    def capacity(self) -> int:
        """The number of writes that may be added now, whatever the size of the last of them."""
        own = OWN_WRITES - self.writes if self.bytes < OWN_BYTES else 0
        return max(own, min(WRITES_MAX - self.writes, self._budget.capacity), 0)

    def acquire(self, writes: int, size: int) -> None:
        """Add that many writes, of `size` bytes in total."""
        self.writes += writes
        self.bytes += size
        self._budget.writes += writes
        self._budget.bytes += size

    def wait(self, look_again: Callable[[], None]) -> None:
        """Call `look_again` once, when this or another stream has released capacity."""
        if self._look_again is None:
            self._budget.windows.append(self)
        self._look_again = look_again

    def release(self, writes: int, size: int) -> None:
        """Release the capacity of acknowledged writes."""
        self.writes -= writes
        self.bytes -= size
        self._budget.writes -= writes
        self._budget.bytes -= size
        if self._budget.windows:
            self._budget.wake()

    def wake(self) -> None:
        """Call the waiting callback: capacity was released."""
        look_again, self._look_again = self._look_again, None
        if look_again is not None:
            look_again()

    def close(self) -> None:
        """Release everything: the stream has ended."""
        self._look_again = None
        self.release(self.writes, self.bytes)
