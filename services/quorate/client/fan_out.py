"""Asking many servers the same thing at once, and the servers that they name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from quorate.client.controller_calls import Address

T = TypeVar("T")


async def ask_everybody(
    servers: Iterable[Address],
    ask: Callable[[Address], Coroutine[Any, Any, T]],
    *,
    named_in: Callable[[T], Iterable[Address | None]] = lambda _: (),
    is_enough: Callable[[T], bool] = lambda _: False,
) -> dict[Address, T]:
    """What each says, in the order in which they were asked, each once.

    An answer that is enough ends it: then it is among what is returned, and nobody else is waited
    for. Raises what `ask` does.
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
        # Nobody waits for the others any more, whatever they would have said.
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {server: task.result() for server, task in tasks.items() if task in answered}
