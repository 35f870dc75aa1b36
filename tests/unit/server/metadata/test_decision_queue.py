"""Requests of several clients that wait for decisions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.topics.messages import DeleteTopics
from quorate.server.metadata import decision_queue as module
from quorate.server.metadata.decision_queue import DecisionQueue, QueuedRequest

if TYPE_CHECKING:
    import pytest

    from quorate.controller.request_types import Sender


class Waiting:
    """A queue, and requests by their names."""

    def __init__(self) -> None:
        self.queue = DecisionQueue()
        self.by_name: dict[str, QueuedRequest] = {}

    def add(self, name: str, *, sender: Sender | None = None) -> bool:
        """A request of the client that the first letter names."""
        asked = QueuedRequest(
            DeleteTopics((name,)),
            Caller("User:a", client=name[0]),
            asyncio.get_running_loop().create_future(),
            sender=sender,
        )
        self.by_name[name] = asked
        return self.queue.add(asked)

    def take(self) -> str | None:
        asked = self.queue.take()
        return None if asked is None else _name(asked)

    def take_all(self, cost_s: float = 0.01) -> list[str]:
        """Everything, each decision at the same cost."""
        names = []
        while (asked := self.queue.take()) is not None:
            self.queue.charge(asked, cost_s)
            names.append(_name(asked))
        return names


def _name(asked: QueuedRequest) -> str:
    assert isinstance(asked.request, DeleteTopics)
    return asked.request.names[0]


async def test_clients_take_turns_and_each_keeps_its_order() -> None:
    waiting = Waiting()
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        assert waiting.add(name)
    assert waiting.take_all() == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert len(waiting.queue) == 0


async def test_a_client_that_used_much_is_behind_one_that_comes_later() -> None:
    waiting = Waiting()
    for name in ("a1", "a2", "a3"):
        waiting.add(name)
    assert waiting.take() == "a1"
    waiting.queue.charge(waiting.by_name["a1"], 0.05)
    waiting.add("b1")
    waiting.add("b2")
    assert waiting.take_all() == ["b1", "b2", "a2", "a3"]


async def test_what_a_client_used_is_remembered_while_nothing_of_it_waits() -> None:
    waiting = Waiting()
    waiting.add("a1")
    waiting.take_all(cost_s=0.05)
    waiting.add("a2")
    waiting.add("b1")
    assert waiting.take_all() == ["b1", "a2"]


async def test_heartbeats_of_an_address_do_not_wait_for_what_else_it_asks() -> None:
    waiting = Waiting()
    waiting.add("a1")
    waiting.add("a2")
    waiting.take()
    waiting.queue.charge(waiting.by_name["a1"], 0.05)
    waiting.add("a3", sender=(1, 5))
    assert waiting.take_all() == ["a3", "a2"]


async def test_the_queue_knows_whose_heartbeats_wait() -> None:
    waiting, one, other = Waiting(), (1, 5), (2, 5)
    for name, sender in (("a1", one), ("a2", one), ("b1", other)):
        waiting.add(name, sender=sender)
    senders = waiting.queue.senders
    waiting.by_name["b1"].future.cancel()
    await asyncio.sleep(0)
    assert (one in senders, other in senders, (1, 6) in senders) == (True, False, False)
    assert waiting.take() == "a1"
    assert one in senders
    assert waiting.take() == "a2"
    assert one not in senders
    waiting.add("a3", sender=one)
    waiting.queue.clear()
    assert one not in senders


async def test_a_caller_that_gives_up_takes_its_request_along() -> None:
    waiting = Waiting()
    for name in ("a1", "a2", "b1"):
        waiting.add(name)
    for name in ("a1", "b1"):
        waiting.by_name[name].future.cancel()
    await asyncio.sleep(0)
    assert len(waiting.queue) == 1
    assert waiting.take_all() == ["a2"]


async def test_a_caller_that_gives_up_in_this_turn_of_the_loop_is_passed_over() -> None:
    waiting = Waiting()
    waiting.add("a1")
    waiting.add("a2")
    waiting.by_name["a1"].future.cancel()
    assert waiting.take() == "a2"
    await asyncio.sleep(0)
    assert len(waiting.queue) == 0


async def test_places_are_bounded_for_each_client_and_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 3)
    monkeypatch.setattr(module, "CLIENT_WAITING_MAX", 2)
    waiting = Waiting()
    assert [waiting.add(name) for name in ("a1", "a2", "a3")] == [True, True, False]
    assert [waiting.add(name) for name in ("b1", "b2")] == [True, False]
    assert waiting.take_all() == ["a1", "b1", "a2"]
    assert waiting.add("a4")


async def test_clients_with_nothing_that_waits_are_forgotten_when_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_MAX", 2)
    waiting = Waiting()
    for name in ("a1", "b1", "c1", "d1"):
        waiting.add(name)
    waiting.take_all()
    assert len(waiting.queue._resting) == 2


async def test_clients_are_forgotten_while_one_always_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_MAX", 2)
    waiting = Waiting()
    for number in range(100):
        waiting.add(f"a{number}")
    for name in "bcdefghij":
        waiting.add(name)
        while waiting.take() != name:
            pass
        waiting.queue.charge(waiting.by_name[name], 0.05)
    assert len(waiting.queue._lanes) == 1
    assert len(waiting.queue._resting) <= 2


async def test_clients_that_gave_up_are_forgotten_though_nothing_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_EMPTY_MAX", 3)
    waiting = Waiting()
    waiting.add("a1")
    for name in "bcdefghij":
        waiting.add(name)
        waiting.by_name[name].future.cancel()
        await asyncio.sleep(0)
    assert len(waiting.queue._lanes) <= 4
    assert len(waiting.queue._start_time_fair_queue) <= 4
    waiting.add("j2")
    assert waiting.take_all() == ["a1", "j2"]


async def test_what_waits_when_leadership_ends_is_given_back() -> None:
    waiting = Waiting()
    for name in ("a1", "b1", "a2"):
        waiting.add(name)
    waiting.take()
    assert {_name(asked) for asked in waiting.queue.clear()} == {"a2", "b1"}
    assert waiting.take() is None
    waiting.add("a3")
    assert waiting.take() == "a3"
