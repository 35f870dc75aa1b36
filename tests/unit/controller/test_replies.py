from __future__ import annotations

from dataclasses import fields
from typing import get_args

from quorate.controller.replies import ReadReply


def test_every_answer_to_a_question_says_what_it_reflects() -> None:
    for reply in get_args(ReadReply):
        assert "offset" in {field.name for field in fields(reply)}
