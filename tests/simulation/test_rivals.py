"""A leader vanishes from a quorum whose voters all miss it at one moment: one election must do.

The seeds of the swarm seldom bring that moment about, so worlds are built for it here: equal logs,
equal fetch deadlines, and messages that overtake each other.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest

from quorate.raft.elections import Elections
from quorate.sim.faults import Options
from quorate.sim.healing import is_caught_up
from quorate.sim.network import NetworkOptions
from quorate.sim.quorum import build
from quorate.sim.world import World

WORLDS = 60
LIMIT_MS = 60_000


def finds_a_successor(seed: int, voters: int) -> bool:
    """Whether the voters that are left have a leader before another election could have begun."""
    network = NetworkOptions(delay_us=100, jitter_us=1000)
    options = Options(voters=voters, network=network, fsync_us=100)
    world = World(seed, options)
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world))
    leader = world.leader()
    assert leader is not None
    assert leader.application.propose((1,), 40)
    assert world.run(LIMIT_MS, stop=lambda: 1 in world.oracle.acknowledged)
    world.run(world.now_ms + 5)
    world.network.isolate(leader.node_id, list(world.nodes))
    patience_ms = options.fetch_timeout_ms + options.election_timeout_ms

    def is_replaced() -> bool:
        successor = world.leader()
        return successor is not leader and successor is not None and successor.application.is_active

    return world.run(world.now_ms + patience_ms, stop=is_replaced)


@pytest.mark.parametrize("voters", [3, 5, 7])
def test_rivals_hold_one_election(voters: int) -> None:
    failed = [seed for seed in range(WORLDS) if not finds_a_successor(seed, voters)]
    assert not failed, f"seeds {failed} took another election"


def test_these_worlds_see_pre_votes_for_all() -> None:
    """Without its promise a voter lets several win the pre-vote, and then they split the votes."""
    with patch.object(Elections, "_is_promised", lambda *_: False):
        assert not all(finds_a_successor(seed, 5) for seed in range(WORLDS))
