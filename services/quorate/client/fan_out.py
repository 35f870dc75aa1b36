"""Asks many servers in parallel, and the servers that they name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from quorate.client.controller_calls import Address

T = TypeVar("T")


async def ask_all(
    servers: Iterable[Address],
    ask: Callable[[Address], Coroutine[Any, Any, T]],
    *,
    named_in: Callable[[T], Iterable[Address | None]] = lambda _: (),
    is_enough: Callable[[T], bool] = lambda _: False,
) -> dict[Address, T]:
    """Ask each server once; the answers are in the order of the calls.

    An answer that `is_enough` ends it: it is in the result, and no other answer is awaited. Raises
    the errors of `ask`.
    """
    tasks: dict[Address, asyncio.Task[T]] = {}

    def begin(more: Iterable[Address | None]) -> set[asyncio.Task[T]]:
        begun: set[asyncio.Task[T]] = set()
        for server in more:
            if server is not None and server not in tasks:
                tasks[server] = asyncio.create_task(ask(server))
                begun.add(tasks[server])
        return begun

    answered: set[asyncio.Task[T]] = set()
    try:
        waiting = begin(servers)
        while waiting and not any(is_enough(task.result()) for task in answered):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            answered |= done
            for task in done:
                waiting |= begin(named_in(task.result()))
    finally:
        for task in tasks.values():
            task.cancel()
        # The other answers are not needed any more, and neither are their errors.
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {server: task.result() for server, task in tasks.items() if task in answered}
