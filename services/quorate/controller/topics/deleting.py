"""Topics deleted, by their names."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quorate.controller.decision import Context, Outcome, Proposal, too_large
from quorate.controller.features.levels import metadata_version
from quorate.controller.topics.messages import (
    DeletedTopic,
    DeleteTopicsReply,
)
from quorate.records.errors import ErrorCode
from quorate.records.metadata import RemoveTopicRecord

if TYPE_CHECKING:
    from quorate.controller.slices import Slices
    from quorate.controller.topics.messages import DeleteTopics


def delete_topics_in_slices(context: Context, request: DeleteTopics) -> Slices[Outcome]:
    """Delete topics by name, each with a result of its own."""
    image = context.freeze()
    proposal = Proposal(metadata_version(image.features))
    asked = Counter(request.names)
    deleted: list[DeletedTopic] = []
    for name in request.names:
        topic_id = image.topics.ids.get(name)
        if asked[name] > 1:
            message = f"The topic {name!r} occurs twice in the request; name it once."
            deleted.append(DeletedTopic(name, ErrorCode.INVALID_REQUEST, message))
        elif topic_id is None:
            message = f"There is no topic {name!r}; check its name."
            deleted.append(DeletedTopic(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message))
        elif not proposal.add((RemoveTopicRecord(topic_id=topic_id),)):
            message = too_large(f"The deletion of {name!r}")
            deleted.append(DeletedTopic(name, ErrorCode.POLICY_VIOLATION, message))
        else:
            deleted.append(DeletedTopic(name, topic_id=topic_id))
        yield
    return Outcome(proposal, DeleteTopicsReply(tuple(deleted)))
