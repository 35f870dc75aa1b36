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
    """The random streams of one cluster, each created at its first use."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[Purpose, Random] = {}

    def stream(self, *purpose: str | int) -> Random:
        """The stream of one purpose: a word and the nodes it belongs to, as in `("way", 1, 2)`."""
        stream = self._streams.get(purpose)
        if stream is None:
            words = " ".join(map(str, (self._seed, *purpose)))
            stream = self._streams[purpose] = Random(words)
        return stream

    def chance(self, rate: float, *purpose: str | int) -> bool:
        """True with probability `rate`."""
        return rate > 0 and self.stream(*purpose).random() < rate

    def directory_id(self, node_id: int) -> bytes:
        """Generate the directory id of the next disk of a node."""
        return self.stream("directory", node_id).randbytes(DIRECTORY_ID_BYTES)


class RandomSource:
    """A source of random numbers and ids for one purpose.

    Each purpose has its own stream, so that more events of one kind leave the others unchanged.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self.random = Random(f"{seed} {purpose}")

    def between(self, low: int, high: int) -> int:
        """A random integer from `low` to `high`, both included."""
        return low + int(self.random.random() * (high - low + 1))

    def log_uniform(self, low: int, high: int) -> int:
        """A random integer from `low` to `high`, uniform on a logarithmic scale."""
        return low if high <= low else int(low * (high / low) ** self.random.random())

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def choice(self, choices: Sequence[T]) -> T:
        return choices[self.between(0, len(choices) - 1)]

    def uuid(self) -> bytes:
        """Sixteen random bytes; their text does not start with "-", as an option would."""
        while True:
            value = self.random.randbytes(UUID_BYTES)
            if not format_uuid(value).startswith("-"):
                return value

    def topic_id(self) -> TopicId:
        return TopicId(self.uuid())

    def cluster_id(self) -> ClusterId:
        return ClusterId(format_uuid(self.uuid()))

    def weighted(self, weights: Sequence[tuple[str, float]]) -> str:
        """One of the names, with its weight as the probability; the weights add up to one."""
        at = self.random.random()
        for name, weight in weights:
            at -= weight
            if at < 0:
                return name
        return weights[-1][0]
