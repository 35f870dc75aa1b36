"""The only voter of a quorum finds another quorum of its cluster (rule 34).

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
from quorate.raft.messages import FetchRequest, FetchResponse, LeaderInfo
from quorate.raft.rivalry import Rivalry
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis
from quorate.sim.healing import is_caught_up
from quorate.sim.options import DiskOptions, WorldOptions
from quorate.sim.quorum import build
from quorate.sim.world import World

if TYPE_CHECKING:
    from quorate.raft.api import CallFailure, SendRequest
    from quorate.raft.messages import PeerResponse
    from quorate.sim.network import PeerCaller
    from quorate.sim.node import SimulatedNode
    from quorate.sim.seen import SeenNode

LIMIT_MS = 60_000


class TwoQuorums(World):
    """A world in which node 2 leads another quorum, when it is asked who leads."""

    epochs_ahead: int | None = None
    asked = 0

    def send_response(
        self, source: SeenNode, caller: PeerCaller, response: PeerResponse | CallFailure
    ) -> None:
        is_played = self.epochs_ahead is not None and source.node_id == 2
        if is_played and isinstance(response, FetchResponse):
            assert self.epochs_ahead is not None
            progress = self.nodes[caller.node_id].progress
            epoch = 0 if progress is None else progress.epoch
            leader = LeaderInfo(source.node_id, Epoch(epoch + self.epochs_ahead), source.endpoints)
            response = replace(response, error=ErrorCode.FENCED_LEADER_EPOCH, leader=leader)
        super().send_response(source, caller, response)

    def send_request(self, source: SeenNode, effect: SendRequest) -> None:
        self.asked += isinstance(effect.request, FetchRequest) and source.node_id == 1
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
    told = any("leads another quorum" in line for line in node.core.remarks())
    return told and not node.core.hears_leader and not node.core.is_new


@pytest.mark.parametrize("epochs_ahead", [0, 1, 9])
def test_an_only_voter_stands_down_and_a_restart_keeps_it_so(epochs_ahead: int) -> None:
    world, only = make()
    world.epochs_ahead = epochs_ahead
    assert world.run(world.now_ms + 15_000, stop=lambda: stands_down(only)), world.seed
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


def test_an_only_voter_of_a_later_epoch_leads_on() -> None:
    world, only = make()
    world.epochs_ahead = -1
    world.run(world.now_ms + 25_000)
    assert world.leader() is only, world.seed
    assert not stands_down(only), world.seed


def test_a_process_that_dies_at_that_moment_stands_down_before_or_after() -> None:
    """Whatever is on the disk then: it finds the rival again, or knows it still."""
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
    with patch.object(Rivalry, "_is_strange", lambda *_: False):
        world, only = make()
        world.epochs_ahead = 1
        world.run(world.now_ms + 15_000)
        assert not stands_down(only), world.seed
