"""Routine activity per minute, higher by day than at night.

If a number of records is requested, each minute adds as many as the log has fallen short of the
share that is due by then. Otherwise it adds as many as a cluster of that size would.
"""

from __future__ import annotations

from math import pi, sin
from typing import TYPE_CHECKING, Final

from quorate.sim.log_generator.options import DAY_MS, MINUTE_MS, START_MS
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from quorate.sim.log_generator.leader import LogLeader
    from quorate.sim.log_generator.options import WeekOptions
    from quorate.sim.log_generator.schedule import Schedule
    from quorate.sim.log_generator.security import Security
    from quorate.sim.log_generator.topics import WeekTopics

# Records per minute and broker, if no number of records is requested.
_NATURAL: Final = 0.3
# The fraction by which the rate exceeds the average at noon, and falls below it at midnight.
_SWING: Final = 0.6
# The fraction of the requested records that is always left to routine activity.
_LEAST: Final = 0.1
_KINDS: Final = (
    ("burst", 0.4),
    ("job", 0.3),
    ("config", 0.16),
    ("security", 0.1),
    ("replace", 0.03),
    ("grow", 0.01),
)
_JOB_PARTITIONS: Final = (8, 16, 32, 64)


def share_of(elapsed_ms: int, duration_ms: int) -> float:
    """The fraction of the week's work done after `elapsed_ms`; the rate is lowest at midnight."""
    wave = _SWING * DAY_MS / (2 * pi) * sin(2 * pi * elapsed_ms / DAY_MS)
    return (elapsed_ms - wave) / duration_ms


class Background:
    """Draws the routine activity of each minute."""

    def __init__(
        self,
        options: WeekOptions,
        leading: LogLeader,
        schedule: Schedule,
        topics: WeekTopics,
        security: Security,
    ) -> None:
        self._options = options
        self._leading = leading
        self._schedule = schedule
        self._topics = topics
        self._security = security
        self._random_source = RandomSource(options.seed, "background")
        self._drawn = 0.0
        minutes = options.duration_ms / MINUTE_MS
        self._natural = _NATURAL * options.brokers * minutes

    def minute(self) -> None:
        """Schedule the activity of the minute that begins."""
        elapsed_ms = self._leading.now_ms - START_MS + MINUTE_MS
        share = share_of(elapsed_ms, self._options.duration_ms)
        if self._options.records is None:
            owed = self._natural * share - self._drawn
        else:
            # Incidents may make more records than expected: routine activity continues anyway.
            least = _LEAST * self._options.records * share - self._drawn
            owed = max(self._options.records * share - self._leading.record_count, least)
        while owed > 0:
            expected = self._note(
                self._random_source.weighted(_KINDS), self._random_source.between(0, MINUTE_MS)
            )
            self._drawn += expected
            owed -= expected

    def _note(self, kind: str, wait_ms: int) -> float:
        """Schedule one activity after `wait_ms`; returns the approximate number of its records."""
        match kind:
            case "burst":
                self._schedule.after(wait_ms, self._topics.burst)
                return 2 * self._partitions
            case "job":
                partitions = self._random_source.random.choice(_JOB_PARTITIONS)
                self._schedule.after(wait_ms, lambda: self._topics.pass_through(partitions))
                return partitions + 3
            case "config":
                self._schedule.after(wait_ms, self._topics.configure)
                return 1
            case "security":
                self._schedule.after(wait_ms, self._security.change)
                return 1
            case "replace":
                self._schedule.after(wait_ms, self._topics.replace)
                return 2 + self._partitions
            case _:
                self._schedule.after(wait_ms, self._topics.grow)
                return self._partitions / 2

    @property
    def _partitions(self) -> float:
        """The average number of partitions of a topic."""
        image = self._leading.image
        return image.topics.partition_count / max(1, len(image.topics.by_id))
