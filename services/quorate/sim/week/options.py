"""What a generated week is to be like, and the streams of numbers that its seed stands for."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, Self
from zlib import crc32

from quorate.records.ids import UUID_BYTES, ClusterId, TopicId, format_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
# Monday, 5 January 2026, 00:00 UTC. Not today: the same seed gives the same bytes next year, too.
START_MS: Final = 1_767_571_200_000

MIB: Final = 1024 * 1024
TOPICS_DEFAULT: Final = 1000
TOPICS_MAX: Final = 5000
# Creating topics and restarting their brokers twice takes about 170 records a topic: no more than
# a third of all.
_RECORDS_PER_TOPIC: Final = 600
_TOPICS_MIN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekOptions:
    """Sizes of one week; bytes and counts have the meaning of Kafka's settings of these names.

    `records` is about how many are to come out; None lets the cluster do what it would. `topics`
    None follows from that. `voters` are the directories that are written.
    """

    seed: int
    days: int = 7
    brokers: int = 100
    topics: int | None = None
    records: int | None = None
    voters: int = 1
    segment_bytes: int = 16 * MIB
    snapshot_bytes: int = 8 * MIB
    retention_bytes: int = -1

    @property
    def duration_ms(self) -> int:
        return self.days * DAY_MS

    @property
    def topic_count(self) -> int:
        """How many topics there are at the beginning."""
        if self.topics is not None:
            return self.topics
        if self.records is None:
            return TOPICS_DEFAULT
        return min(max(self.records // _RECORDS_PER_TOPIC, _TOPICS_MIN), TOPICS_MAX)


class StableTopicId(bytes):
    """A topic id whose hash is the same in every process.

    The controller goes through its topics in the order of a hash map. Python salts the hashes of
    bytes, so that with ordinary ids one seed would give another log in each process.
    """

    stable: int

    def __new__(cls, value: bytes) -> Self:
        made = super().__new__(cls, value)
        made.stable = int.from_bytes(value[:7])
        return made

    def __hash__(self) -> int:
        return self.stable


class StableTopicName(str):
    """A topic's name whose hash is the same in every process, for the same reason."""

    stable: int

    def __new__(cls, value: str) -> Self:
        made = super().__new__(cls, value)
        made.stable = crc32(value.encode())
        return made

    def __hash__(self) -> int:
        return self.stable


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

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def uuid(self) -> bytes:
        """Sixteen bytes that no command line takes for an option."""
        while True:
            value = self.random.randbytes(UUID_BYTES)
            if not format_uuid(value).startswith("-"):
                return value

    def topic_id(self) -> TopicId:
        return TopicId(StableTopicId(self.uuid()))

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
