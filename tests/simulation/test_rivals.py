"""A leader vanishes from a quorum whose voters all miss it at one moment: one election must do.

The seeds of the swarm seldom bring that moment about, so worlds are built for it here: three to
nine voters, fetch deadlines that are equal, almost so, or a part of a turn apart, quick and slow
networks and disks, a last record that not all have, and now and then a voter that would rather not
lead.
"""

from __future__ import annotations

import time
from random import Random
from unittest.mock import patch

import pytest

from quorate.raft.api import StateMachineProgress
from quorate.raft.election.pre_vote_leases import RENEWAL_SHARE, PreVoteLeases
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.cluster import Cluster
from quorate.sim.engine.network import NetworkOptions
from quorate.sim.engine.quorum_setup import build
from quorate.sim.sim_options import DiskOptions, ProcessOptions, TimeoutOptions, WorldOptions

WORLDS = 20
WORLDS_WITH_THE_BUG = 60
# Where a way there and back takes a tenth of the election timeout turns may pass each other: one of
# 4200 such worlds needed a second election, so that two of twenty are a fault.
UNLUCKY_MAX = 1
LIMIT_MS = 60_000
# The plain worlds: all detect the leader's failure together, and messages overtake each other.
PLAIN = WorldOptions(
    network=NetworkOptions(delay_us=100, jitter_us=1000), disks=DiskOptions(fsync_us=100)
)


def options_of(seed: int, voters: int) -> WorldOptions:
    draw = Random(seed)
    if draw.random() < 0.3:
        return WorldOptions(voters=voters, network=PLAIN.network, disks=PLAIN.disks)
    is_quick = draw.random() < 0.5
    return WorldOptions(
        voters=voters,
        network=NetworkOptions(
            delay_us=draw.choice((200, 1000, 10_000)), jitter_us=draw.choice((0, 500, 5000))
        ),
        disks=DiskOptions(fsync_us=draw.choice((100, 1000, 5000, 20_000))),
        timeouts=TimeoutOptions(
            election_timeout_ms=300 if is_quick else 1000,
            fetch_timeout_ms=600 if is_quick else 2000,
        ),
        processes=ProcessOptions(drift_ppm=draw.choice((0, 0, 1000))),
    )


def is_far(options: WorldOptions) -> bool:
    """True if an answer may come later than a nominee would ask again."""
    there_and_back_us = 2 * (options.network.delay_us + options.network.jitter_us)
    return there_and_back_us * RENEWAL_SHARE > options.timeouts.election_timeout_ms * 1000


def finds_a_successor(seed: int, options: WorldOptions) -> bool:
    """True if the voters that are left have a leader before another election could have begun."""
    draw = Random(~seed)
    world = Cluster(seed, options)
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world))
    leader = world.leader()
    assert leader is not None
    assert leader.application.propose((1,), 40)
    assert world.run(LIMIT_MS, stop=lambda: 1 in world.oracle.acknowledged)
    world.run(world.now_ms + draw.choice((5, 50, 300, 450)))
    leader = world.leader()
    assert leader is not None
    idle = None
    if draw.random() < 0.3:
        idle = draw.choice([node for node in world.nodes.values() if node is not leader])
        idle.deliver(StateMachineProgress(ready=False))
    if draw.random() < 0.3 and leader.application.is_active:
        leader.application.propose((2,), 40)
        world.run(world.now_ms + draw.choice((0, 1, 2, 5, 10)))
    others = [node_id for node_id in world.nodes if node_id != leader.node_id]
    if draw.random() < 0.3:
        # They lose it one after the other, so that some have given a turn before others want one.
        draw.shuffle(others)
        for node_id in others[:-1]:
            world.network.isolate(leader.node_id, [node_id])
            world.run(world.now_ms + draw.randrange(options.timeouts.election_timeout_ms // 8))
    world.network.isolate(leader.node_id, list(world.nodes))
    patience_ms = options.timeouts.fetch_timeout_ms + options.timeouts.election_timeout_ms

    def is_replaced() -> bool:
        successor = world.leader()
        return successor is not leader and successor is not None and successor.application.is_active

    if world.run(world.now_ms + patience_ms, stop=is_replaced):
        return True
    # Only a replica that defers campaigning has the last record, so no other may lead
    # (rule `unready_voter_waits`): it waits for an election timeout, and then it does.
    ends = {
        node.node_id: node.log.end.offset for node in world.nodes.values() if node is not leader
    }
    furthest = [node_id for node_id, end in ends.items() if end == max(ends.values())]
    if idle is None or furthest != [idle.node_id]:
        return False
    return world.run(world.now_ms + options.timeouts.election_timeout_ms, stop=is_replaced)


@pytest.mark.parametrize("voters", range(3, 10))
def test_rivals_hold_one_election(voters: int) -> None:
    first = time.time_ns() // 1_000_000
    seeds = range(first, first + WORLDS)
    failed = [seed for seed in seeds if not finds_a_successor(seed, options_of(seed, voters))]
    text = f"finds_a_successor of seeds {failed} with {voters} voters is False"
    assert len(failed) <= UNLUCKY_MAX, text
    assert all(is_far(options_of(seed, voters)) for seed in failed), text


def test_these_worlds_see_pre_votes_for_all() -> None:
    """Without pre-vote leases several win the pre-vote, and then they split the votes."""
    options = WorldOptions(voters=7, network=PLAIN.network, disks=PLAIN.disks)
    with patch.object(PreVoteLeases, "_current", lambda _: None):
        assert not all(finds_a_successor(seed, options) for seed in range(WORLDS_WITH_THE_BUG))
