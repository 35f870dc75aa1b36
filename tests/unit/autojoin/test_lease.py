"""One acts, the others wait until it has been silent for its time."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.aio.client.exceptions import ApiException

from quorate.autojoin.lease import HOLDER, STANDBY, Lease
from quorate.autojoin.reconciler import ClusterError, ConflictError
from tests.unit.autojoin.lease_store import Clock, Store, leases


async def test_the_first_has_it_while_it_renews(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    assert await one.renew()
    assert one.is_held()
    for _ in range(10):
        clock.now_s += 8
        assert not await other.renew()
        assert await one.renew()
    assert not other.is_held()


async def test_a_silent_holder_loses_it_after_it_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    await one.renew()
    assert not await other.renew()
    clock.now_s += 14
    assert not one.is_held()
    assert not await other.renew()
    clock.now_s += 2
    assert await other.renew()
    assert not await one.renew()


async def test_a_restarted_holder_goes_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, _ = leases(monkeypatch, store, clock)
    await one.renew()
    again, other = leases(monkeypatch, store, clock)
    assert await again.renew()
    assert not await other.renew()


async def test_who_stops_lets_the_next_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    await one.renew()
    await one.release()
    assert not one.is_held()
    assert await other.renew()
    await one.release()
    assert other.is_held()


async def test_of_two_that_take_it_at_once_one_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    await one.renew()
    await one.release()
    read = store.read_namespaced_lease
    stale = await read()

    async def late(*_: object, **__: object) -> Any:  # noqa: ANN401
        return stale

    assert await other.renew()
    monkeypatch.setattr(store, "read_namespaced_lease", late)
    assert not await one.renew()
    assert not one.is_held()


async def test_a_standby_looks_again_when_the_others_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    for _ in range(2):
        await one.renew()
        await other.renew()
    lost_s = clock.now_s
    while not await other.renew():
        clock.now_s += other.wait_s
    assert 15 <= clock.now_s - lost_s < 15.1


async def test_no_call_takes_as_long_as_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, _ = leases(monkeypatch, store, clock)
    asked = []
    read = store.read_namespaced_lease

    async def noted(*words: object, _request_timeout: float) -> Any:  # noqa: ANN401
        asked.append(_request_timeout)
        return await read(*words)

    monkeypatch.setattr(store, "read_namespaced_lease", noted)
    await one.renew()
    await one.release()
    assert asked == [5.0, 5.0]
    assert one.wait_s < 15 / 3


async def test_a_call_that_hangs_does_not_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, _ = leases(monkeypatch, store, clock)
    await one.renew()
    clock.now_s += one.wait_s
    usual_s = one.wait_s

    async def hung(*_: object, _request_timeout: float) -> None:
        clock.now_s += _request_timeout
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(store, "read_namespaced_lease", hung)
        # Two in a row leave time for a third one.
        for _ in range(2):
            with pytest.raises(ClusterError):
                await one.renew()
            assert one.wait_s < usual_s
            clock.now_s += one.wait_s
            assert one.is_held()
    await one.renew()
    assert one.is_held()
    assert one.wait_s == usual_s


async def test_refusals_are_not_answered_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, _ = leases(monkeypatch, store, clock)
    await one.renew()

    async def refused(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(store, "read_namespaced_lease", refused)
    tries = 0
    while one.is_held():
        with pytest.raises(ClusterError):
            await one.renew()
        tries += 1
        clock.now_s += one.wait_s
    assert 5 < tries < 50


async def test_a_turn_begins_after_another_holder_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    await one.renew()
    assert one.turn == 1
    clock.now_s += 11
    assert not one.is_held()
    await one.renew()
    assert one.turn == 1
    await one.release()
    await other.renew()
    await other.release()
    await one.renew()
    assert (one.turn, other.turn) == (2, 1)
    again, _ = leases(monkeypatch, store, clock)
    await again.renew()
    assert again.turn == 1


async def test_a_turn_begins_after_another_holder_also_where_the_answer_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    await one.renew()
    clock.now_s += 11
    await other.renew()
    clock.now_s += 16
    await other.renew()
    await other.release()
    replace = store.replace_namespaced_lease

    async def unheard(*words: Any, **__: object) -> None:  # noqa: ANN401
        await replace(*words)
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(store, "replace_namespaced_lease", unheard)
        with pytest.raises(ClusterError):
            await one.renew()
    assert await one.renew()
    assert one.turn == 2


async def test_a_change_while_it_could_not_look_is_no_renewal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock)
    one.note(is_in_step=True)
    await one.renew()
    await other.renew()
    clock.now_s += 60
    await one.renew()
    # The holder is dead for long by now.
    clock.now_s += 3_540
    await other.renew()
    assert not other.is_in_step_by_another()
    await one.renew()
    await other.renew()
    assert other.is_in_step_by_another()


async def test_a_holder_gives_way_to_a_standby_of_the_new_template(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    old, alike, new = leases(monkeypatch, store, clock, templates=("1", "1", "2"))
    await old.renew()
    for standby in (alike, new):
        await standby.renew()
    assert old.standby_template() == ""
    await old.renew()
    assert old.standby_template() == "2"

    old.give_way("2")
    assert not old.is_held()
    assert not await new.renew()
    for _ in range(3):
        assert not await old.renew()
        # The Lease is free, and not for this one.
        assert not await alike.renew()
        clock.now_s += 1
    assert await new.renew()
    assert new.standby_template() == ""
    assert not await old.renew()


async def test_a_standby_that_has_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    await old.renew()
    await new.renew()
    for _ in range(6):
        await old.renew()
        clock.now_s += 3
    assert old.standby_template() == ""


async def test_a_standby_is_there_as_long_as_it_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    await old.renew()
    for _ in range(20):
        await new.renew()
        await old.renew()
        assert old.standby_template() == "2"
        clock.now_s += 3


async def test_a_standby_hears_from_its_holder_that_all_is_in_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    old, alike, new = leases(monkeypatch, store, clock, templates=("1", "1", "2"))

    async def turn() -> tuple[bool, bool]:
        for each in (old, alike, new):
            await each.renew()
        return alike.is_in_step_by_another(), new.is_in_step_by_another()

    await turn()
    assert await turn() == (False, False)
    assert old.note(is_in_step=True)
    assert not old.note(is_in_step=True)
    # Of another release it is the word about another form of the pods.
    assert await turn() == (True, False)
    assert old.note(is_in_step=False)
    assert await turn() == (False, False)


@pytest.mark.parametrize("templates", [("1", ""), ("", "1")])
async def test_without_a_template_an_operator_is_of_any_release(
    monkeypatch: pytest.MonkeyPatch, templates: tuple[str, str]
) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock, templates=templates)
    one.note(is_in_step=True)
    for _ in range(3):
        await one.renew()
        await other.renew()
    assert other.is_in_step_by_another()
    assert one.standby_template() == ""


async def test_one_that_gave_way_goes_on_where_none_takes_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    for _ in range(2):
        await old.renew()
        await new.renew()
    # The one that stands by has ended before it is given the Lease.
    await old.renew()
    old.give_way("2")
    gave_s = clock.now_s
    while not await old.renew():
        clock.now_s += old.wait_s
    assert 15 <= clock.now_s - gave_s < 20
    await old.renew()
    assert old.standby_template() == ""
    assert old.turn == 2


async def test_standbys_that_write_do_not_keep_a_dead_holder_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    dead, two, three = leases(monkeypatch, store, clock, templates=("1", "2", "3"))
    await dead.renew()
    lost_s, version = clock.now_s, store.version
    while not (await two.renew() or await three.renew()):
        clock.now_s += 1
    assert 15 <= clock.now_s - lost_s <= 16
    # One has written its template down, and one has taken the Lease.
    assert store.version == version + 2


async def test_a_renewal_on_its_way_takes_nothing_back_that_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    await old.renew()
    replace = store.replace_namespaced_lease

    async def slow(*words: Any, **__: object) -> None:  # noqa: ANN401
        await replace(*words)
        old.give_way("2")

    with monkeypatch.context() as patched:
        patched.setattr(store, "replace_namespaced_lease", slow)
        assert not await old.renew()
    assert not old.is_held()
    assert not await old.renew()
    assert await new.renew()


async def test_a_lease_that_was_given_but_not_freed_is_released_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    await old.renew()
    old.give_way("2")
    await old.release()
    assert await new.renew()


async def overtaken(monkeypatch: pytest.MonkeyPatch, store: Store, standby: Lease) -> None:
    """With the next read by one a standby writes its template down, before that one replaces."""
    read = store.read_namespaced_lease

    async def early(*_: object, **__: object) -> Any:  # noqa: ANN401
        seen = await read()
        monkeypatch.setattr(store, "read_namespaced_lease", read)
        await standby.renew()
        return seen

    monkeypatch.setattr(store, "read_namespaced_lease", early)


async def test_a_standby_that_writes_at_that_moment_does_not_keep_it_from_giving_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    await old.renew()
    old.give_way("2")
    await overtaken(monkeypatch, store, new)
    assert not await old.renew()
    assert not await new.renew()
    assert not await old.renew()
    assert await new.renew()


async def test_a_standby_that_writes_at_that_moment_does_not_keep_it_from_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    await old.renew()
    await overtaken(monkeypatch, store, new)
    await old.release()
    assert await new.renew()


async def test_a_release_that_always_comes_too_late_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), Clock()
    (one,) = leases(monkeypatch, store, clock, templates=("1",))
    await one.renew()
    tries = []

    async def conflict(*_: object, **__: object) -> None:
        tries.append(clock.now_s)
        raise ApiException(status=409, reason="Conflict")

    monkeypatch.setattr(store, "replace_namespaced_lease", conflict)
    with pytest.raises(ConflictError):
        await one.release()
    assert len(tries) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"identity": "c", "template": "1"}'])
async def test_a_standby_beside_a_holder_that_says_nothing_of_itself_counts(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A release from before gives way to none: its pods end when the new ones are ready.

    It leaves in the Lease what another one has written there.
    """
    store, clock = Store(), Clock()
    old, new = leases(monkeypatch, store, clock, templates=("1", "2"))
    for _ in range(2):
        await old.renew()
        assert store.lease is not None
        store.lease.metadata.annotations = {HOLDER: text} if text else None
        await new.renew()
        assert STANDBY not in (store.lease.metadata.annotations or {})
    assert new.is_in_step_by_another()


async def test_a_lease_that_was_freed_for_another_release_says_nothing_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    one, alike, old = leases(monkeypatch, store, clock, templates=("2", "2", "1"))
    one.note(is_in_step=True)
    for _ in range(3):
        await one.renew()
        await alike.renew()
        await old.renew()
    assert alike.is_in_step_by_another()
    one.give_way("1")
    await one.renew()
    await alike.renew()
    assert not alike.is_held()
    assert not alike.is_in_step_by_another()


async def test_a_part_of_a_second_counts_as_a_whole_one_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = Store(), Clock()
    one, other = leases(monkeypatch, store, clock, durations_ms=(1_990, 1_000))
    await one.renew()
    await other.renew()
    clock.now_s += 0.1
    await one.renew()
    while not await other.renew():
        clock.now_s += 0.05
    assert not one.is_held()


async def test_a_lease_that_is_released_is_free_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that stood by may have ended since it wrote its template down."""
    store, clock = Store(), Clock()
    one, alike, other = leases(monkeypatch, store, clock, templates=("2", "2", "1"))
    await one.renew()
    await other.renew()
    await one.release()
    assert await alike.renew()
