"""Stand-ins register, beat and shut down as brokers do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.cli import simulated_brokers
from quorate.cli.output import CommandError
from quorate.cli.simulated_brokers import StandIns, StopRequests, run_stand_ins
from quorate.client.controller_calls import OutcomeUnknownError, QuorumUnavailableError
from quorate.controller.brokers.messages import BrokerHeartbeat, RegisterBroker, UnregisterBroker
from quorate.records.errors import ErrorCode
from tests.unit.cli.quorum_of_one import QuorumOfOne

if TYPE_CHECKING:
    from quorate.cli.isr_requests import IsrRequests

SECONDS = 20


@pytest.fixture
def quorum() -> QuorumOfOne:
    return QuorumOfOne()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_brokers, "wait_s", lambda _: 0.001)
    monkeypatch.setattr(simulated_brokers, "HEARTBEAT_INTERVAL_S", 0.01)


def stand_ins_of(quorum: QuorumOfOne, *ids: int, follows: bool = True) -> StandIns:
    requests = [quorum.cluster.registration(broker_id) for broker_id in ids]
    follower = quorum.follower if follows else None
    return StandIns(quorum.client, requests, lambda _: None, follower)


async def registered(quorum: QuorumOfOne, *ids: int, follows: bool = True) -> StandIns:
    each = stand_ins_of(quorum, *ids, follows=follows)
    await each.register(lambda: None)
    return each


def is_active(quorum: QuorumOfOne, broker_id: int) -> bool:
    return broker_id in quorum.image.brokers.active


async def test_heartbeats_carry_what_was_replayed(quorum: QuorumOfOne) -> None:
    each = await registered(quorum, 1, 2)
    end = quorum.end_offset
    await each.beat()
    beats = [request for request in quorum.asked if isinstance(request, BrokerHeartbeat)]
    assert [beat.current_metadata_offset for beat in beats] == [end - 1, end]
    assert each.epochs() == {
        broker_id: quorum.image.brokers.by_id[broker_id].registration.broker_epoch
        for broker_id in (1, 2)
    }
    assert [one.is_caught_up for one in each.all] == [True, True]
    assert quorum.image.brokers.active == {1, 2}


@pytest.mark.parametrize("follows", [False, True])
async def test_who_cannot_follow_the_log_is_caught_up_with_its_own_registration(
    quorum: QuorumOfOne, *, follows: bool
) -> None:
    quorum.is_refused = True
    each = await registered(quorum, 1, follows=follows)
    await each.beat()
    beat = quorum.asked[-1]
    assert isinstance(beat, BrokerHeartbeat)
    assert beat.current_metadata_offset == each.all[0].epoch
    assert is_active(quorum, 1)


async def test_a_registration_that_is_lost_is_made_anew(quorum: QuorumOfOne) -> None:
    each = await registered(quorum, 1)
    await each.beat()
    before = each.epochs()
    quorum.cluster.ask(UnregisterBroker(1))
    await each.beat()
    await each.beat()
    assert each.epochs()[1] > before[1]
    assert is_active(quorum, 1)


@pytest.mark.parametrize("failure", [OutcomeUnknownError("lost"), QuorumUnavailableError("away")])
async def test_a_heartbeat_outlives_an_election(quorum: QuorumOfOne, failure: Exception) -> None:
    each = await registered(quorum, 1, 2)
    quorum.failures.append(failure)
    await each.beat()
    assert is_active(quorum, 1)


async def test_one_heartbeat_that_is_answered_is_enough(quorum: QuorumOfOne) -> None:
    each = await registered(quorum, 1, follows=False)
    quorum.cluster.ask(UnregisterBroker(1))
    # The first one finds the registration gone.
    await each.beat_until_caught_up()
    assert is_active(quorum, 1)


async def test_a_registration_without_an_answer_is_asked_for_again(quorum: QuorumOfOne) -> None:
    quorum.failures.append(OutcomeUnknownError("lost"))
    each = await registered(quorum, 1)
    assert each.epochs()[1] == quorum.image.brokers.by_id[1].registration.broker_epoch
    assert len(quorum.asked) == 2


async def test_an_id_is_free_when_the_session_of_its_last_process_is_over(
    quorum: QuorumOfOne,
) -> None:
    quorum.cluster.start_brokers(1)
    request = quorum.cluster.registration(1, incarnation_id=b"\x11" * 16)
    said: list[str] = []
    each = StandIns(quorum.client, [request], said.append)
    with pytest.raises(CommandError, match="broker 1: DUPLICATE_BROKER_REGISTRATION: "):
        await each.register(lambda: None)
    waiting = asyncio.create_task(each.register(lambda: None, patience_s=SECONDS))
    while not said:
        await quorum.moved()
    quorum.cluster.ask(quorum.cluster.heartbeat(1, want_fence=True, want_shut_down=True))
    await waiting
    assert each.epochs()[1] == quorum.image.brokers.by_id[1].registration.broker_epoch
    assert [line.endswith("; waiting until that session is over") for line in said] == [True]


async def test_what_is_wrong_with_a_broker_ends_it(quorum: QuorumOfOne) -> None:
    request = quorum.cluster.registration(1, cluster_id="another")
    with pytest.raises(CommandError, match="broker 1: INCONSISTENT_CLUSTER_ID: "):
        await StandIns(quorum.client, [request], lambda _: None).register(lambda: None)


async def test_all_ids_shut_down_once_others_lead_their_partitions(quorum: QuorumOfOne) -> None:
    each = await registered(quorum, 1, 2)
    await each.beat()
    quorum.cluster.start_brokers(3)
    quorum.cluster.create("a", (1, 3), (2, 3))
    stopping = asyncio.create_task(each.shut_down())
    # The third has to know who leads now.
    while not any("others" in one.obstacle for one in each.all):
        await quorum.moved()
    assert not any(one.may_stop for one in each.all)
    while not stopping.done():
        quorum.cluster.ask(quorum.cluster.heartbeat(3))
        await asyncio.sleep(0)
    await stopping
    assert quorum.cluster.leading("a") == [(3, (3,)), (3, (3,))]
    assert quorum.image.brokers.active == {3}


async def test_a_broker_that_is_no_longer_registered_may_stop(quorum: QuorumOfOne) -> None:
    each = await registered(quorum, 1)
    quorum.cluster.ask(UnregisterBroker(1))
    await each.shut_down()
    await stand_ins_of(quorum, 4).shut_down()
    assert not any(isinstance(request, RegisterBroker) for request in quorum.asked[1:])


class Endless:
    """Runs for ever, as a follower and requests do."""

    async def run(self) -> None:
        await asyncio.Event().wait()


class Unavailable(QuorumOfOne):
    """A quorum that says nothing once it `is_away`."""

    is_away = False

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def write(self, request: object) -> object:
        if self.is_away:
            await asyncio.Event().wait()
        return await super().write(request)  # type: ignore[arg-type]


async def running(quorum: Unavailable, each: StandIns, stop: StopRequests) -> asyncio.Task[None]:
    """Stand-ins that have been announced."""
    announced = asyncio.Event()
    requests: IsrRequests = Endless()  # type: ignore[assignment]
    follower = quorum.follower
    run = run_stand_ins(each, follower, requests, stop, announced.set, patience_s=SECONDS)
    task = asyncio.create_task(run)
    async with asyncio.timeout(SECONDS):
        await announced.wait()
    return task


async def test_a_stop_signal_ends_it_in_order() -> None:
    quorum, stop = Unavailable(), StopRequests()
    each = stand_ins_of(quorum, 1, 2)
    task = await running(quorum, each, stop)
    assert {1, 2} == quorum.image.brokers.active
    stop.on_signal()
    async with asyncio.timeout(SECONDS):
        await task
    assert [one.may_stop for one in each.all] == [True, True]
    assert quorum.image.brokers.active == frozenset()


@pytest.mark.parametrize("is_twice", [False, True])
async def test_a_quorum_that_is_away_does_not_keep_it(
    monkeypatch: pytest.MonkeyPatch, *, is_twice: bool
) -> None:
    monkeypatch.setattr(simulated_brokers, "SHUTDOWN_S", 600.0 if is_twice else 0.01)
    quorum, stop = Unavailable(), StopRequests()
    each = stand_ins_of(quorum, 1)
    task = await running(quorum, each, stop)
    quorum.is_away = True
    stop.on_signal()
    if is_twice:
        stop.on_signal()
    async with asyncio.timeout(SECONDS):
        await task
    assert not each.all[0].may_stop


async def test_what_ends_a_stand_in_ends_the_process() -> None:
    quorum = Unavailable()
    each = stand_ins_of(quorum, 1)
    task = await running(quorum, each, StopRequests())
    quorum.cluster.ask(UnregisterBroker(1))
    other = quorum.cluster.registration(1, incarnation_id=b"\x11" * 16)
    assert quorum.cluster.ask(other).error is ErrorCode.NONE
    with pytest.raises(CommandError, match="broker 1: DUPLICATE_BROKER_REGISTRATION: "):
        async with asyncio.timeout(SECONDS):
            await task
