"""Servers that a client asks, and the time limit of each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.client.fan_out import ask_all

if TYPE_CHECKING:
    from quorate.client.controller_calls import Address

A, B, C = ("a", 1), ("b", 2), ("c", 3)


async def test_answers_are_in_the_order_of_the_questions_and_each_is_asked_once() -> None:
    asked: list[Address] = []
    last = asyncio.Event()

    async def ask(server: Address) -> str:
        asked.append(server)
        # The first that is asked is the last that answers.
        if server == A:
            await last.wait()
        elif server == C:
            last.set()
        return server[0]

    def named_in(said: str) -> tuple[Address | None, ...]:
        return (None, A, C) if said == "b" else ()

    answers = await ask_all([A, B, A], ask, named_in=named_in)
    assert list(answers.items()) == [(A, "a"), (B, "b"), (C, "c")]
    assert asked == [A, B, C]


async def test_what_is_enough_ends_it() -> None:
    ended: list[Address] = []

    async def ask(server: Address) -> str:
        if server == B:
            return "enough"
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(server)
        return "never"

    answers = await ask_all([A, B], ask, is_enough=lambda said: said == "enough")
    assert answers == {B: "enough"}
    assert ended == [A]


async def test_what_goes_wrong_at_one_ends_all() -> None:
    async def ask(server: Address) -> str:
        if server == B:
            raise ValueError("why")
        await asyncio.Event().wait()
        return ""

    with pytest.raises(ValueError, match="why"):
        await ask_all([A, B], ask)


async def test_nobody_has_nothing_to_say() -> None:
    async def ask(_: Address) -> str:
        return ""

    assert await ask_all([], ask) == {}
