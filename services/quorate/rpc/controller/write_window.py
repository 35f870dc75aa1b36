"""How many writes a stream has under way, and how many bytes of them all streams together.

Writes wait rather than fail: a stream whose window is full is not read any further until some of
its writes are acknowledged and the acknowledgements are on their way. Each stream has a few of its
own, so that streams whose answers nobody reads cannot stop the others.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES_MAX: Final = 1024
# Of one stream, whatever the others hold.
OWN_WRITES: Final = 32
OWN_BYTES: Final = 64 * 1024
# Of all streams. A write under way costs about 4 KiB, what its request holds some times its size.
SHARED_WRITES: Final = 32 * WRITES_MAX
SHARED_BYTES: Final = 32 * 1024 * 1024


class WriteBudget:
    """What all streams of a listener hold beyond their own."""

    def __init__(self) -> None:
        self.writes = 0
        self.bytes = 0
        self.windows: deque[WriteWindow] = deque()

    @property
    def room(self) -> int:
        """How many writes more they may have."""
        return SHARED_WRITES - self.writes if self.bytes < SHARED_BYTES else 0

    def wake(self) -> None:
        """Streams wait in the order in which they came; one that finds no room waits again."""
        for _ in range(len(self.windows)):
            self.windows.popleft().wake()


class WriteWindow:
    """The writes of one stream that have not been acknowledged to it."""

    def __init__(self, budget: WriteBudget) -> None:
        self._budget = budget
        self._look_again: Callable[[], None] | None = None
        self.writes = 0
        self.bytes = 0

    @property
    def room(self) -> int:
        """How many writes more there may be now, whatever the bytes of the last of them."""
        own = OWN_WRITES - self.writes if self.bytes < OWN_BYTES else 0
        return max(own, min(WRITES_MAX - self.writes, self._budget.room), 0)

    def take(self, writes: int, size: int) -> None:
        """So many more writes, of `size` bytes together."""
        self.writes += writes
        self.bytes += size
        self._budget.writes += writes
        self._budget.bytes += size

    def wait(self, look_again: Callable[[], None]) -> None:
        """Have this called once, when others or this stream have given something back."""
        if self._look_again is None:
            self._budget.windows.append(self)
        self._look_again = look_again

    def give_back(self, writes: int, size: int) -> None:
        """So many are acknowledged."""
        self.writes -= writes
        self.bytes -= size
        self._budget.writes -= writes
        self._budget.bytes -= size
        if self._budget.windows:
            self._budget.wake()

    def wake(self) -> None:
        """Something was given back."""
        look_again, self._look_again = self._look_again, None
        if look_again is not None:
            look_again()

    def close(self) -> None:
        """The stream has ended."""
        self._look_again = None
        self.give_back(self.writes, self.bytes)
