"""Independent random streams per purpose, so that one more fault leaves the others unchanged.

There is a stream for each route, disk, core and clock. Actions on a cluster
(`sim/action_runner.py`) use none of these.
"""

from __future__ import annotations

from random import Random
from typing import Final, TypeAlias

Purpose: TypeAlias = "tuple[str | int, ...]"

DIRECTORY_ID_BYTES: Final = 16


class Fates:
    """The streams of one world, each begun when it is first asked for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[Purpose, Random] = {}

    def of(self, *purpose: str | int) -> Random:
        """The stream of one purpose: a word and whose it is, `("way", 1, 2)`."""
        stream = self._streams.get(purpose)
        if stream is None:
            words = " ".join(map(str, (self._seed, *purpose)))
            stream = self._streams[purpose] = Random(words)
        return stream

    def happens(self, rate: float, *purpose: str | int) -> bool:
        """Whether something that happens so often happens now."""
        return rate > 0 and self.of(*purpose).random() < rate

    def directory_id(self, node_id: int) -> bytes:
        """The id of the next disk that a node is given."""
        return self.of("directory", node_id).randbytes(DIRECTORY_ID_BYTES)
