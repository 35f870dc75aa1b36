"""Runs work of a start so that a stop interrupts it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None if a stop comes first, which cancels it."""
    task = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    both = (task, stopping)
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for each in both:
            each.cancel()
        await asyncio.wait(both)
