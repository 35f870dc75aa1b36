"""What the controller answers: one reply for a request, one error code and message per item.

A message is empty exactly where the code is NONE; otherwise it names the field and the remedy. The
replies themselves belong to the subjects (messages.py of each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorate.records.ids import Offset


class WriteReply:
    """What became of a change."""

    __slots__ = ()


class ReadReply(Protocol):
    """An answer to a question.

    `offset` is the end of the committed log that it reflects: it includes everything below.
    """

    @property
    def offset(self) -> Offset: ...
