"""An operator's pod is ready where all is in step, by its own word or by that of the holder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.autojoin.readiness import Readiness
from tests.unit.autojoin.lease_store import Clock, Store, leases

if TYPE_CHECKING:
    import pytest

    from quorate.autojoin.lease import Lease

FRESH_S = 50.0


def readiness(lease: Lease, clock: Clock) -> Readiness:
    return Readiness(lease, fresh_s=FRESH_S, clock_s=clock)


async def test_one_that_acts_is_ready_while_all_is_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    one, _ = leases(monkeypatch, Store(), clock)
    ready = readiness(one, clock)
    assert not ready.is_ready()
    await one.renew()
    assert not ready.is_ready()
    ready.judge(is_in_step=True)
    assert ready.is_ready()
    ready.judge(is_in_step=False)
    assert not ready.is_ready()


async def test_a_verdict_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    one, _ = leases(monkeypatch, Store(), clock)
    ready = readiness(one, clock)
    await one.renew()
    ready.judge(is_in_step=True)
    clock.now_s += FRESH_S - 1
    await one.renew()
    assert ready.is_ready()
    clock.now_s += 1
    await one.renew()
    assert not ready.is_ready()


async def test_one_that_lost_the_lease_is_not_ready_by_its_old_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    one, _ = leases(monkeypatch, Store(), clock)
    ready = readiness(one, clock)
    await one.renew()
    ready.judge(is_in_step=True)
    clock.now_s += 11
    assert not ready.is_ready()


async def test_a_standby_is_ready_while_the_one_that_acts_says_that_all_is_in_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    one, other = leases(monkeypatch, Store(), clock)
    ready = readiness(other, clock)
    one.note(is_in_step=True)
    await one.renew()
    await other.renew()
    # It may be the Lease of one that died long ago.
    assert not ready.is_ready()
    await one.renew()
    await other.renew()
    assert ready.is_ready()
    clock.now_s += 15
    assert not ready.is_ready()


async def test_a_standby_is_not_ready_beside_a_dead_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    one, other = leases(monkeypatch, Store(), clock)
    ready = readiness(other, clock)
    one.note(is_in_step=True)
    await one.renew()
    for _ in range(5):
        await other.renew()
        assert not ready.is_ready()
        clock.now_s += 2.5


async def test_a_standby_that_takes_over_has_no_verdict_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    one, other = leases(monkeypatch, Store(), clock)
    ready = readiness(other, clock)
    one.note(is_in_step=True)
    for _ in range(2):
        await one.renew()
        await other.renew()
    await one.release()
    assert await other.renew()
    assert not ready.is_ready()


async def test_a_standby_is_not_ready_beside_a_holder_of_another_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Helm would take the end of the roll for reached while the old operator has it to do."""
    clock = Clock()
    old, new = leases(monkeypatch, Store(), clock, templates=("1", "2"))
    ready = readiness(new, clock)
    old.note(is_in_step=True)
    for _ in range(3):
        await old.renew()
        await new.renew()
        assert not ready.is_ready()
