"""DeleteTopics by name."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quorate.controller.authorization.authorizer import Operation, topic_resource
from quorate.controller.decision import Context, Outcome, Proposal, too_large
from quorate.controller.features.levels import metadata_version
from quorate.controller.topics.messages import (
    DeletedTopic,
    DeleteTopicsReply,
)
from quorate.records.errors import ErrorCode
from quorate.records.metadata import RemoveTopicRecord

if TYPE_CHECKING:
    from quorate.controller.errors import RefusedError
    from quorate.controller.slices import Slices
    from quorate.controller.topics.messages import DeleteTopics


def refused_deletion(context: Context, name: str, refusal: RefusedError) -> DeletedTopic:
    """An unknown topic is reported as missing to a caller that may describe it, as in Kafka."""
    is_missing = name not in context.view.topics.ids
    if is_missing and context.rights.may(Operation.DESCRIBE, topic_resource(name)):
        return _missing(name)
    return DeletedTopic(name, refusal.error, refusal.message)


def _missing(name: str) -> DeletedTopic:
    message = f"There is no topic {name!r}; check its name."
    return DeletedTopic(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


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
            deleted.append(_missing(name))
        elif not proposal.add((RemoveTopicRecord(topic_id=topic_id),)):
            message = too_large(f"The deletion of {name!r}")
            deleted.append(DeletedTopic(name, ErrorCode.POLICY_VIOLATION, message))
        else:
            deleted.append(DeletedTopic(name, topic_id=topic_id))
        yield
    return Outcome(proposal, DeleteTopicsReply(tuple(deleted)))
