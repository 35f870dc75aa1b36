"""Answers from an image: what the metadata is, as far as that image goes (rule 19).

Any controller can give them, active or not, because they need the committed image only. An image
never changes, so a long answer is made in slices with others' turns between them, and in pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from quorate.controller.brokers.listing import list_brokers_in_slices
from quorate.controller.brokers.messages import ListBrokers
from quorate.controller.configs.describing import describe_configs_in_slices
from quorate.controller.configs.messages import DescribeConfigs
from quorate.controller.slices import finish
from quorate.controller.topics.describing import describe_topics_in_slices, list_topics_in_slices
from quorate.controller.topics.messages import DescribeTopics, ListTopics

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.controller.replies import ReadReply
    from quorate.controller.requests import ReadRequest
    from quorate.controller.slices import Slices


def answer(image: MetadataImage, request: ReadRequest) -> ReadReply:
    """The reply to a request that changes nothing, with the offset that it reflects.

    Raises RefusedError for a cursor that names nothing, and for an answer of several pages to
    somebody who asked for none.
    """
    return finish(answer_in_slices(image, request))


def answer_in_slices(image: MetadataImage, request: ReadRequest) -> Slices[ReadReply]:
    """The same, with pauses."""
    match request:
        case ListTopics():
            return (yield from list_topics_in_slices(image, request))
        case DescribeTopics():
            return (yield from describe_topics_in_slices(image, request))
        case DescribeConfigs():
            return (yield from describe_configs_in_slices(image, request))
        case ListBrokers():
            return (yield from list_brokers_in_slices(image, request))
        case _:
            assert_never(request)
