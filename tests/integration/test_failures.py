"""Three real processes lose leaders, followers, time and disks; the logs agree after each."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from quorate.client.controller_calls import OutcomeUnknownError, QuorumUnavailableError
from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.records.ids import NodeId
from tests.integration.disks import committed_batches, log_end, log_start, snapshots
from tests.integration.quorum import FAST, OBSERVER_ID, Quorum
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.raft.messages import DescribeQuorumResponse

# One and a half times the fetch timeout of these quorums: a leader without contact then resigns.
CHECK_QUORUM_S = 1.5 * int(FAST["controller.quorum.fetch.timeout.ms"]) / 1000


def topic(name: str) -> NewTopic:
    return NewTopic(name, partitions=2, replication_factor=3, configs=(("retention.ms", "60000"),))


def leader_of(described: DescribeQuorumResponse) -> int:
    assert described.leader.leader_id is not None
    return described.leader.leader_id


async def names_everywhere(quorum: Quorum) -> list[str]:
    """The topics, once the logs agree; every running node describes them alike."""
    high_watermark = await quorum.assert_logs_agree()
    described = [await quorum.topics_at(i, high_watermark) for i in quorum.processes]
    assert all(topics == described[0] for topics in described)
    return [described_topic.name for described_topic in described[0]]


async def test_a_killed_leader_is_replaced_and_comes_back(quorum: Quorum) -> None:
    await quorum.create(topic("before"))
    before = await quorum.leader()
    old = leader_of(before)
    await quorum.kill(old)
    await quorum.leader(above_epoch=before.leader.epoch)
    await quorum.create(topic("while-it-is-down"))
    await quorum.start(old)
    assert await names_everywhere(quorum) == ["before", "while-it-is-down"]


async def test_a_killed_follower_catches_up(quorum: Quorum) -> None:
    before = await quorum.leader()
    follower = next(i for i in quorum.processes if i != before.leader.leader_id)
    await quorum.kill(follower)
    await quorum.create(topic("while-it-is-down"))
    await quorum.start(follower)
    assert await names_everywhere(quorum) == ["while-it-is-down"]
    assert (await quorum.leader()).leader == before.leader


async def test_a_leader_that_stood_still_steps_down_when_it_goes_on(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum", FAST) as quorum:
        await quorum.register_brokers()
        await quorum.create(topic("before"))
        before = await quorum.leader()
        old = leader_of(before)
        quorum.signal(old, signal.SIGSTOP)
        stopped_s = asyncio.get_running_loop().time()
        after = await quorum.leader(above_epoch=before.leader.epoch)
        names: list[str] = []
        while not names or asyncio.get_running_loop().time() < stopped_s + CHECK_QUORUM_S:
            names.append(f"while-it-stands-{len(names):05d}")
            await quorum.create(topic(names[-1]))
        quorum.signal(old, signal.SIGCONT)
        assert await names_everywhere(quorum) == ["before", *names]
        assert after.leader.leader_id != old


async def test_all_restart_with_everything_that_was_acknowledged(quorum: Quorum) -> None:
    await quorum.create(topic("before"))
    before = await quorum.leader()
    await quorum.kill(*quorum.nodes)
    for node_id in quorum.nodes:
        await quorum.start(node_id)
    await quorum.leader(above_epoch=before.leader.epoch)
    await quorum.create(topic("after"))
    assert await names_everywhere(quorum) == ["after", "before"]


async def test_sigterm_hands_over_and_ends_with_status_0(quorum: Quorum) -> None:
    await quorum.create(topic("before"))
    before = await quorum.leader()
    old = leader_of(before)
    await quorum.stop(old)
    await quorum.leader(above_epoch=before.leader.epoch)
    await quorum.start(old)
    assert await names_everywhere(quorum) == ["before"]


async def test_a_follower_behind_the_log_start_fetches_a_snapshot(small_log_quorum: Quorum) -> None:
    quorum = small_log_quorum
    leader_id = await quorum.leader_id()
    follower = next(i for i in quorum.processes if i != leader_id)
    await quorum.kill(follower)
    end = log_end(quorum.nodes[follower])
    names: list[str] = []

    async def has_moved_on() -> bool:
        batch = [topic(f"t-{len(names) + i:05d}") for i in range(20)]
        await quorum.create(*batch)
        names.extend(new.name for new in batch)
        return all(log_start(quorum.nodes[i]) > end for i in quorum.processes)

    await quorum.eventually("the logs start above the follower's end", has_moved_on)
    await quorum.start(follower)
    assert await names_everywhere(quorum) == names
    await quorum.create(topic("u-after"))
    assert await names_everywhere(quorum) == [*names, "u-after"]
    assert snapshots(quorum.nodes[follower])
    assert log_start(quorum.nodes[follower]) > end


async def test_a_diverged_old_leader_cuts_off_what_nobody_committed(quorum: Quorum) -> None:
    await quorum.create(topic("before"))
    before = await quorum.leader()
    old = leader_of(before)
    others = [i for i in quorum.nodes if i != old]
    await quorum.assert_logs_agree()
    # Killed, not paused: a paused process finds what the leader sent in its socket.
    await quorum.kill(*others)
    end = log_end(quorum.nodes[old])
    async with ControllerClient(
        [quorum.nodes[old].address], timeout_ms=10_000, transport=chosen()
    ) as client:
        writing = asyncio.ensure_future(client.write(CreateTopics((topic("lost"),))))

        async def is_appended() -> bool:
            return log_end(quorum.nodes[old]) > end

        await quorum.eventually("the old leader has appended alone", is_appended)
        diverged = committed_batches(quorum.nodes[old], end, log_end(quorum.nodes[old]))
        await quorum.kill(old)
        with pytest.raises((OutcomeUnknownError, QuorumUnavailableError)):
            await writing
    for node_id in others:
        await quorum.start(node_id)
    await quorum.leader(above_epoch=before.leader.epoch)
    await quorum.create(topic("after"))
    await quorum.start(old)
    assert await names_everywhere(quorum) == ["after", "before"]
    now = committed_batches(quorum.nodes[old], end, log_end(quorum.nodes[old]))
    assert now[end] != diverged[end]


async def test_a_wiped_observer_fetches_everything_again(quorum: Quorum) -> None:
    await quorum.create(topic("before"))
    await quorum.add_observer()
    assert await names_everywhere(quorum) == ["before"]
    await quorum.kill(OBSERVER_ID)
    await quorum.create(topic("while-it-is-down"))
    await quorum.add_observer()
    assert await names_everywhere(quorum) == ["before", "while-it-is-down"]
    voters = (await quorum.leader()).voters
    assert NodeId(OBSERVER_ID) not in [state.key.node_id for state in voters]
