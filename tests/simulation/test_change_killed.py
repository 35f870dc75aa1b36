"""A process dies at every step of a change: the old voters are left or the new ones, nothing else.

A step is an effect of the core or a call to the disk. Each world is rebuilt and runs to the n-th
step of its victim, which is killed or loses power right before it, for every n from the request on
until nothing of the change is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pytest

from quorate.raft.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis, NodeId, ReplicaKey
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.cluster import Cluster
from quorate.sim.engine.disk import Survival
from quorate.sim.engine.network import NetworkOptions
from quorate.sim.engine.node import SimulatedNode
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.engine.quorum_setup import build
from quorate.sim.sim_options import DiskOptions, TimeoutOptions, WorldOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.messages import MembershipRequest
    from quorate.records.ids import ReplyToken
    from quorate.records.voters import VoterSet
    from quorate.sim.engine.process_exits import ScheduledCrash

OPTIONS: Final = WorldOptions(
    network=NetworkOptions(delay_us=1000),
    disks=DiskOptions(fsync_us=1000, survivals=(Survival.NOTHING,)),
    timeouts=TimeoutOptions(election_timeout_ms=300, fetch_timeout_ms=600),
)
OBSERVER: Final = NodeId(4)
LIMIT_MS: Final = 60_000
ANSWER_MS: Final = Millis(1000)
RECORD_BYTES: Final = 40
NEVER: Final = 1 << 30
# A victim comes back while the others still miss it, or after they have a leader again.
PAUSES_MS: Final = (20, 1500)
STEPS_MIN: Final = {"leader": 20, "other": 10}


@dataclass(slots=True)
class Change:
    """One world, right before the request for a change."""

    cluster: Cluster
    leader: SimulatedNode
    other: SimulatedNode
    request: MembershipRequest
    old: VoterSet
    new: frozenset[ReplicaKey]


def keys(voters: VoterSet) -> frozenset[ReplicaKey]:
    return frozenset(voter.key for voter in voters)


def prepared(what: str) -> Change:
    """Three voters, and for `add` an observer; the leader is old enough for changes."""
    world = Cluster(0, replace(OPTIONS, observers=1 if what == "add" else 0))
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world))
    world.run(world.now_ms + 3 * OPTIONS.timeouts.fetch_timeout_ms)
    leader = world.leader()
    assert leader is not None
    old = leader.log.voters
    follower = next(node for node in world.nodes.values() if node is not leader)
    match what:
        case "add":
            other = world.nodes[OBSERVER]
            add = AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                voter=other.key,
                listeners=other.endpoints,
                timeout_ms=ANSWER_MS,
            )
            return Change(world, leader, other, add, old, keys(old) | {other.key})
        case "remove a follower":
            gone = follower
        case _:
            gone = leader
    remove = RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter=gone.key, timeout_ms=ANSWER_MS)
    return Change(world, leader, follower, remove, old, keys(old) - {gone.key})


def begin(change: Change, victim: SimulatedNode, steps: int) -> tuple[ReplyToken, ScheduledCrash]:
    """Ask for the change between two writes; `victim` dies before that step from here on."""
    doom = change.cluster.process_exits.schedule_crash(victim, steps)
    change.leader.application.propose((0,), RECORD_BYTES)
    token = change.leader.ask(change.request)
    change.leader.application.propose((1,), RECORD_BYTES)
    return token, doom


def is_over(change: Change) -> bool:
    return is_caught_up(change.cluster) and keys(change.leader.log.voters) == change.new


def count_steps(what: str, whose: str) -> int:
    """The number of steps that the victim of an undisturbed change has until shortly after it."""
    change = prepared(what)
    token, doom = begin(change, victim_of(change, whose), NEVER)
    world = change.cluster
    assert world.run(world.now_ms + LIMIT_MS, stop=lambda: is_over(change))
    world.run(world.now_ms + OPTIONS.timeouts.fetch_timeout_ms)
    assert world.answers[token].error is ErrorCode.NONE
    return NEVER - doom.steps


def victim_of(change: Change, whose: str) -> SimulatedNode:
    return change.leader if whose == "leader" else change.other


def die_and_go_on(
    what: str, whose: str, die: Callable[[SimulatedNode], None], step: int, pause_ms: int
) -> frozenset[ReplicaKey]:
    """The voters after the victim died before that step, came back, and all replicas settled."""
    change = prepared(what)
    world = change.cluster
    deaths: list[SimulatedNode] = []

    def died(node: SimulatedNode, doom: ScheduledCrash) -> None:
        del doom
        deaths.append(node)
        die(node)
        world.schedule(pause_ms * 1000, node.start)

    world.process_exits.when_dies = died
    token, _ = begin(change, victim_of(change, whose), step)
    world.run(world.now_ms + max(PAUSES_MS) + ANSWER_MS)
    assert deaths == [victim_of(change, whose)], f"step {step}"
    assert world.run(world.now_ms + LIMIT_MS, stop=lambda: is_caught_up(world)), f"step {step}"
    leader = world.leader()
    assert leader is not None
    assert leader.application.propose((2,), RECORD_BYTES)
    limit_ms = world.now_ms + LIMIT_MS
    assert world.run(limit_ms, stop=lambda: 2 in world.oracle.acknowledged), f"step {step}"
    sets = [entry.voters for node in world.nodes.values() for entry in node.log.entries]
    seen = {keys(voters) for voters in sets if voters is not None}
    assert seen <= {keys(change.old), change.new}, f"step {step}"
    left = keys(world.oracle.voters_at(world.oracle.end))
    answer = world.answers.get(token)
    if answer is not None and answer.error is ErrorCode.NONE:
        assert left == change.new, f"step {step}"
    assert left in (keys(change.old), change.new), f"step {step}"
    return left


@pytest.mark.parametrize("die", [SimulatedNode.kill, SimulatedNode.power_off])
@pytest.mark.parametrize("whose", ["leader", "other"])
@pytest.mark.parametrize("what", ["add", "remove a follower", "remove the leader"])
def test_the_old_voters_are_left_or_the_new_ones(
    what: str, whose: str, die: Callable[[SimulatedNode], None]
) -> None:
    steps = count_steps(what, whose)
    assert steps >= STEPS_MIN[whose]
    outcomes = {
        len(die_and_go_on(what, whose, die, step, pause_ms))
        for step in range(1, steps + 1)
        for pause_ms in PAUSES_MS
    }
    sizes = {3, 4} if what == "add" else {3, 2}
    # Only the leader's death early in a change can undo it.
    assert outcomes == sizes if whose == "leader" else outcomes <= sizes
