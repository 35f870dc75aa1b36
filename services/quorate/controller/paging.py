"""Answers in pages: how long one is, and what becomes of a client that knows of none."""

from __future__ import annotations

from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode


def page_limit(asked: int, limit: int, *, field: str) -> int:
    """How many items a page has at most. Raises RefusedError for what is no number of items."""
    if asked < 0:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"{field} is {asked}; give 1 or more.")
    return min(asked or limit, limit)


def refuse_more(asked: int, limit: int, *, field: str) -> None:
    """There is more than a page, and the caller may not know of pages. Raises RefusedError."""
    if not asked:
        message = f"The answer has more than one page of {limit}; set {field} and ask for each."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
