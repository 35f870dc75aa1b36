from __future__ import annotations

import pytest

from quorate.controller.errors import ReplayError
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.controller.topics.records import replay_remove_topic, replay_topic
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    RemoveTopicRecord,
    TopicRecord,
)
from tests.unit.controller.conftest import uuid


def test_names_of_one_form_in_an_old_log_are_all_remembered() -> None:
    delta = MetadataDelta(MetadataImage())
    for number, name in enumerate(("a.b", "a_b", "plain")):
        replay_topic(delta, TopicRecord(name=name, topic_id=TopicId(uuid(number))))
    replay_remove_topic(delta, RemoveTopicRecord(topic_id=TopicId(uuid(1))))
    assert dict(delta.apply(LOG_BEGIN).topics.similar_names) == {"a_b": ("a.b",)}


@pytest.mark.parametrize(("name", "number"), [("a", 2), ("b", 1)])
def test_a_log_that_creates_a_topic_twice_is_refused(name: str, number: int) -> None:
    delta = MetadataDelta(MetadataImage())
    replay_topic(delta, TopicRecord(name="a", topic_id=TopicId(uuid(1))))
    with pytest.raises(ReplayError, match="exists already"):
        replay_topic(delta, TopicRecord(name=name, topic_id=TopicId(uuid(number))))
