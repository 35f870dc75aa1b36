"""A request about a topic and the answers to it, for clients to carry."""

from __future__ import annotations

from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    CreateTopicsReply,
    ListedTopic,
    ListTopicsReply,
    NewTopic,
)
from quorate.records.ids import UUID_BYTES, Offset, TopicId
from tests.integration.rpc.conftest import WAIT_S

TOPIC_ID = TopicId(b"t" * UUID_BYTES)
REQUEST = CreateTopics((NewTopic("a"),))
CREATED = CreateTopicsReply((CreatedTopic("a", topic_id=TOPIC_ID, partitions=1),))
LISTED = ListTopicsReply(Offset(9), (ListedTopic("a", TOPIC_ID, 1),))
TIMEOUT_MS = int(WAIT_S * 1000)
