from __future__ import annotations

from quorate.sim.log_generator.options import TOPICS_MAX, WeekOptions


def test_topics_follow_from_the_records_that_are_wished_for() -> None:
    assert WeekOptions(seed=1, records=1_000_000_000).topic_count == TOPICS_MAX
    assert WeekOptions(seed=1, records=300_000).topic_count == 500
    assert WeekOptions(seed=1, records=1).topic_count == 5
    assert WeekOptions(seed=1, records=100_000, topics=7).topic_count == 7
