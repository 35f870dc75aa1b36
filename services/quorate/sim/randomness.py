"""Independent random streams per purpose, so that one more fault leaves the others unchanged.

There is a stream for each route, disk, core and clock. Actions on a cluster
(`sim/action_runner.py`) use none of these.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from quorate.records.ids import UUID_BYTES, ClusterId, TopicId, format_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

Purpose: TypeAlias = "tuple[str | int, ...]"
T = TypeVar("T")

# The number of streams that an action may name by its salt.
SALTS: Final = 1 << 32

DIRECTORY_ID_BYTES: Final = 16


class RandomStreams:
    """The streams of one world, each begun when it is first asked for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[Purpose, Random] = {}

    def stream(self, *purpose: str | int) -> Random:
        """The stream of one purpose: a word and whose it is, `("way", 1, 2)`."""
        stream = self._streams.get(purpose)
        if stream is None:
            words = " ".join(map(str, (self._seed, *purpose)))
            stream = self._streams[purpose] = Random(words)
        return stream

    def chance(self, rate: float, *purpose: str | int) -> bool:
        """True if something that happens so often happens now."""
        return rate > 0 and self.stream(*purpose).random() < rate

    def directory_id(self, node_id: int) -> bytes:
        """The id of the next disk that a node is given."""
        return self.stream("directory", node_id).randbytes(DIRECTORY_ID_BYTES)


class RandomSource:
    """Numbers and ids of one purpose.

    Each purpose has a stream of its own, so that more of one kind of event leaves the others where
    they were.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self.random = Random(f"{seed} {purpose}")

    def between(self, low: int, high: int) -> int:
        """A whole number within both bounds."""
        return low + int(self.random.random() * (high - low + 1))

    def log_uniform(self, low: int, high: int) -> int:
        """A whole number within both bounds, of any order of magnitude as likely as of another."""
        return low if high <= low else int(low * (high / low) ** self.random.random())

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def choice(self, choices: Sequence[T]) -> T:
        return choices[self.between(0, len(choices) - 1)]

    def uuid(self) -> bytes:
        """Sixteen bytes that no command line takes for an option."""
        while True:
            value = self.random.randbytes(UUID_BYTES)
            if not format_uuid(value).startswith("-"):
                return value

    def topic_id(self) -> TopicId:
        return TopicId(self.uuid())

    def cluster_id(self) -> ClusterId:
        return ClusterId(format_uuid(self.uuid()))

    def weighted(self, weights: Sequence[tuple[str, float]]) -> str:
        """One of the names, each as often as its weight says; the weights add up to one."""
        at = self.random.random()
        for name, weight in weights:
            at -= weight
            if at < 0:
                return name
        return weights[-1][0]
