from __future__ import annotations

from typing import get_args

from quorate.controller.replies import ReadReply, WriteReply
from quorate.controller.requests import ReadRequest, WriteRequest


def test_a_request_is_a_change_or_a_question() -> None:
    assert not {*get_args(WriteRequest)} & {*get_args(ReadRequest)}


def test_each_request_has_a_reply() -> None:
    for requests, replies in ((WriteRequest, WriteReply), (ReadRequest, ReadReply)):
        asked = [request.__name__ + "Reply" for request in get_args(requests)]
        assert asked == [reply.__name__ for reply in get_args(replies)]
