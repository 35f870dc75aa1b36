"""Options of a generated log."""

from __future__ import annotations

from typing import Final

from quorate.records.value_types import keyword_value_type

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
# Monday, 5 January 2026, 00:00 UTC. Fixed, so that a seed always gives the same bytes.
START_MS: Final = 1_767_571_200_000

MIB: Final = 1024 * 1024
TOPICS_DEFAULT: Final = 1000
TOPICS_MAX: Final = 5000
# Creating topics and restarting their brokers twice takes about 170 records per topic, which is
# less than a third of this.
_RECORDS_PER_TOPIC: Final = 600
_TOPICS_MIN: Final = 5


@keyword_value_type
class WeekOptions:
    """Sizes of one week; bytes and counts have the meaning of Kafka's settings of these names.

    `records` is the approximate number of records; None for the usual number of such a cluster.
    `topics` None derives from that. `voters` is the number of directories that are written.
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
        """The number of topics at the beginning."""
        if self.topics is not None:
            return self.topics
        if self.records is None:
            return TOPICS_DEFAULT
        return min(max(self.records // _RECORDS_PER_TOPIC, _TOPICS_MIN), TOPICS_MAX)
