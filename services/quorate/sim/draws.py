"""Random numbers, ids and names derived from a seed, the same in every process."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.records.ids import UUID_BYTES, ClusterId, TopicId, format_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

# So many streams a deed may name by its salt.
SALTS: Final = 1 << 32


class Draws:
    """Numbers and ids of one purpose.

    Each purpose has a stream of its own, so that more of one kind of event leaves the others where
    they were.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self.random = Random(f"{seed} {purpose}")

    def between(self, low: int, high: int) -> int:
        """A whole number within both bounds."""
        return low + int(self.random.random() * (high - low + 1))

    def wide(self, low: int, high: int) -> int:
        """A whole number within both bounds, of any order of magnitude as likely as of another."""
        return low if high <= low else int(low * (high / low) ** self.random.random())

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, choices: Sequence[T]) -> T:
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
