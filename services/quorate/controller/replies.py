"""Base types of controller replies: one reply for a request, one error and message per item.

A message is empty exactly if the code is NONE; otherwise it names the field and the remedy. The
replies themselves belong to the metadata kinds (messages.py of each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorate.records.ids import Offset


class WriteReply:
    """Result of a write request."""

    __slots__ = ()


class ReadReply(Protocol):
    """Result of a read request.

    `offset` is the end of the committed log that it reflects: it includes everything below.
    """

    @property
    def offset(self) -> Offset: ...
