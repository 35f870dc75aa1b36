"""The only voter of a quorum finds another quorum of its cluster (rule `sole_voter_conflict`).

A world has one history, so the other quorum is played: node 2 joins as an observer, and from some
moment on it answers who leads as the leader of another quorum would, as if a directory that was
formatted as a quorum of its own had been put in its place.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from quorate.raft import api
from quorate.raft.identity.single_voter_guard import SingleVoterGuard
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    LeaderInfo,
    RemoveRaftVoterRequest,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.cluster import Cluster
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.engine.quorum_setup import build
from quorate.sim.sim_options import DiskOptions, WorldOptions

if TYPE_CHECKING:
    from quorate.raft.api import RequestFailure, SendRequest
    from quorate.raft.messages import PeerResponse
    from quorate.sim.engine.network import PeerCaller
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.views import NodeView

LIMIT_MS = 60_000


class TwoQuorums(Cluster):
    """A world in which node 2 leads another quorum, when it is asked who leads.

    If it no longer `leads`, it still names itself, as a leader does that has resigned.
    """

    epochs_ahead: int | None = None
    leads = True
    asked = 0
    asked_in: Epoch | None = None

    def send_response(
        self, source: NodeView, caller: PeerCaller, response: PeerResponse | RequestFailure
    ) -> None:
        is_played = self.epochs_ahead is not None and source.node_id == 2
        if is_played and isinstance(response, FetchResponse):
            assert self.epochs_ahead is not None
            progress = self.nodes[caller.node_id].progress
            epoch = 0 if progress is None else progress.epoch
            leader = LeaderInfo(source.node_id, Epoch(epoch + self.epochs_ahead), source.endpoints)
            is_its_epoch = self.leads and self.asked_in == leader.epoch
            error = ErrorCode.NONE if is_its_epoch else ErrorCode.FENCED_LEADER_EPOCH
            response = replace(response, error=error, leader=leader)
        super().send_response(source, caller, response)

    def send_request(self, source: NodeView, effect: SendRequest) -> None:
        if isinstance(effect.request, FetchRequest) and source.node_id == 1:
            self.asked += 1
            self.asked_in = effect.request.current_leader_epoch
        super().send_request(source, effect)


def make() -> tuple[TwoQuorums, SimulatedNode]:
    """An only voter that leads and has committed a write, and an observer."""
    world = TwoQuorums(
        time.time_ns(), WorldOptions(voters=1, observers=1, disks=DiskOptions(fsync_us=100))
    )
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world)), world.seed
    only = world.nodes[world.leader().node_id]  # type: ignore[union-attr]
    assert only.application.propose((1,), 40)
    assert world.run(LIMIT_MS, stop=lambda: 1 in world.oracle.acknowledged), world.seed
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world)), world.seed
    return world, only


def stands_down(node: SimulatedNode) -> bool:
    told = any("leads another quorum" in line for line in node.core.status_warnings())
    return told and not node.core.has_live_leader


@pytest.mark.parametrize("epochs_ahead", [-1, 0, 1, 9])
def test_an_only_voter_stands_down_and_a_restart_keeps_it_so(epochs_ahead: int) -> None:
    world, only = make()
    world.epochs_ahead = epochs_ahead
    assert world.run(world.now_ms + 30_000, stop=lambda: stands_down(only)), world.seed
    end, asked = only.log.end, world.asked
    world.run(world.now_ms + 10_000)
    assert (only.log.end, world.asked) == (end, asked), f"{world.seed}: it does nothing any more"
    only.kill()
    only.start()
    # Nothing of the other quorum is to be heard now.
    world.epochs_ahead = None
    world.run(world.now_ms + 15_000)
    assert stands_down(only), world.seed
    assert only.log.end == end, world.seed


def test_an_only_voter_leads_on_beside_one_that_has_led_an_earlier_epoch() -> None:
    world, only = make()
    world.epochs_ahead, world.leads = -1, False
    world.run(world.now_ms + 25_000)
    assert world.leader() is only, world.seed
    assert not stands_down(only), world.seed


class OneWay(Cluster):
    """A world in which one node answers and is not heard otherwise."""

    mute: SimulatedNode | None = None
    answered = 0

    def send_request(self, source: NodeView, effect: SendRequest) -> None:
        if source is not self.mute:
            super().send_request(source, effect)

    def send_response(
        self, source: NodeView, caller: PeerCaller, response: PeerResponse | RequestFailure
    ) -> None:
        self.answered += source is self.mute and isinstance(response, FetchResponse)
        super().send_response(source, caller, response)


def is_leader(node: SimulatedNode) -> bool:
    return node.progress is not None and node.progress.role == "leader"


@pytest.mark.parametrize("is_frozen", [False, True])
def test_an_only_voter_leads_on_beside_the_leader_that_it_removed(is_frozen: bool) -> None:  # noqa: FBT001
    """The removed leader gets no message of it, and can be asked: cut off, or stopped as long."""
    world = OneWay(time.time_ns(), WorldOptions(voters=3, disks=DiskOptions(fsync_us=100)))
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world)), world.seed
    old = world.leader()
    assert old is not None
    world.mute = old
    others = [node.node_id for node in world.running() if node is not old]
    world.network.isolate(old.node_id, others)
    if is_frozen:
        old.pause()

    def successor() -> SimulatedNode | None:
        found = [n for n in world.running() if n is not old and is_leader(n)]
        return found[0] if found else None

    assert world.run(LIMIT_MS, stop=lambda: successor() is not None), world.seed
    node = successor()
    assert node is not None
    # A leader changes its voters when it has led for a fetch timeout.
    world.run(world.now_ms + 2 * world.options.timeouts.fetch_timeout_ms)
    third = next(n for n in world.running() if n not in (old, node))
    for away in (old, third):
        remove = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter=away.key, timeout_ms=Millis(10_000)
        )
        token = node.ask(remove)
        assert world.run(world.now_ms + 10_000, stop=lambda: token in world.answers)  # noqa: B023
        assert world.answers[token].error is ErrorCode.NONE, world.seed
    if is_frozen:
        old.resume()
    for way in ((old.node_id, node.node_id), (node.node_id, old.node_id)):
        del world.network.blocked[way]
    before = world.answered
    world.run(world.now_ms + 60_000)
    assert world.answered > before, f"{world.seed}: it was asked"
    assert world.leader() is node, world.seed
    assert not stands_down(node), world.seed


def test_a_process_that_dies_at_that_moment_stands_down_before_or_after() -> None:
    """With any state of the disk: it finds the rival again, or knows it still."""
    for effects in range(4):
        world, only = make()
        world.epochs_ahead = 1
        seen: list[int] = []
        step = only.core.step

        def watched(event: api.Event, now_ms: Millis) -> api.Update:
            update = step(event, now_ms)  # noqa: B023 - of this world
            if any(isinstance(e, api.SaveRival) for e in update.effects) and not seen:  # noqa: B023
                seen.append(1)  # noqa: B023
                return replace(update, effects=update.effects[:effects])  # noqa: B023
            return update

        with patch.object(only.core, "step", watched):
            assert world.run(world.now_ms + 15_000, stop=lambda: bool(seen)), world.seed  # noqa: B023
        only.kill()
        only.start()
        found = world.run(world.now_ms + 15_000, stop=lambda: stands_down(only))  # noqa: B023
        assert found, f"{world.seed} after {effects} effects"


def test_these_worlds_see_an_only_voter_that_follows_everybody() -> None:
    with patch.object(SingleVoterGuard, "_is_strange", lambda *_: False):
        world, only = make()
        world.epochs_ahead = 1
        world.run(world.now_ms + 15_000)
        assert not stands_down(only), world.seed
