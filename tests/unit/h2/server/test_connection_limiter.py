"""Slots by address, those that are reserved, and handshakes that make room for newer ones."""

from __future__ import annotations

import asyncio

from quorate.h2.server.connection_limiter import PATIENCE_S, AddressSlots, PendingHandshakes

A, B, C = "ipv4:10.0.0.1", "ipv4:10.0.0.2", "ipv4:10.0.0.3"


def taken(slots: AddressSlots, address: str, wanted: int = 100) -> int:
    """The number of the wanted slots that an address gets."""
    for number in range(wanted):
        if not slots.has_room(address):
            return number
        slots.take(address)
    return wanted


def test_one_address_has_half() -> None:
    slots = AddressSlots(10)
    assert (taken(slots, A), taken(slots, B), taken(slots, C)) == (5, 5, 0)
    slots.give_back(A)
    assert (slots.count, slots.held_by(A), taken(slots, C)) == (9, 4, 1)


def test_some_are_reserved_for_addresses_that_are_preferred() -> None:
    preferred: set[str] = set()
    slots = AddressSlots(10, reserved=2, preferred=preferred)
    assert (taken(slots, A), taken(slots, B), taken(slots, C)) == (5, 3, 0)
    preferred.add(C)
    assert taken(slots, C) == 2


def test_an_address_that_is_preferred_has_them_beside_its_half() -> None:
    slots = AddressSlots(10, reserved=2, preferred={A})
    assert (taken(slots, A), taken(slots, B)) == (7, 1)


async def test_a_handshake_that_is_slow_makes_room_for_a_newer_one_of_its_address() -> None:
    handshakes = begun(A, 2)
    assert not handshakes.make_room(A, PATIENCE_S / 2)
    assert handshakes.make_room(B, PATIENCE_S / 2)
    assert handshakes.make_room(A, PATIENCE_S + 1)
    await asyncio.sleep(0)
    assert [task.cancelled() for task in begun_tasks] == [True, False]
    await end(handshakes)


async def test_where_all_have_handshakes_the_oldest_one_makes_room() -> None:
    handshakes = begun(A, 2)
    begin(handshakes, B, 2, now_s=1.0)
    assert not handshakes.make_room(C, PATIENCE_S / 2)
    assert handshakes.make_room(C, PATIENCE_S + 1)
    await asyncio.sleep(0)
    assert [task.cancelled() for task in begun_tasks] == [True, False, False, False]
    await end(handshakes)


async def test_a_handshake_that_has_ended_gives_its_slot_back() -> None:
    handshakes = begun(A, 2)
    begun_tasks[0].cancel()
    await asyncio.wait([begun_tasks[0]])
    await asyncio.sleep(0)
    assert handshakes.make_room(A, 0.0)
    assert handshakes.tasks == begun_tasks[1:]
    await end(handshakes)


begun_tasks: list[asyncio.Task[None]] = []


async def _forever() -> None:
    await asyncio.Event().wait()


def begun(address: str, count: int) -> PendingHandshakes:
    """So many handshakes in progress, of the four that are allowed."""
    begun_tasks.clear()
    handshakes = PendingHandshakes(AddressSlots(4))
    begin(handshakes, address, count)
    return handshakes


def begin(handshakes: PendingHandshakes, address: str, count: int, now_s: float = 0.0) -> None:
    for _ in range(count):
        task = asyncio.get_running_loop().create_task(_forever())
        begun_tasks.append(task)
        handshakes.begin(task, address, now_s)


async def end(handshakes: PendingHandshakes) -> None:
    for task in handshakes.tasks:
        task.cancel()
    await asyncio.gather(*begun_tasks, return_exceptions=True)
