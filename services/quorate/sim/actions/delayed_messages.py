"""Delays messages of one kind until they are obsolete: an election, a transfer, a read.

They are held until a later epoch has begun, which a leader with a waiting read may not have
observed. Then all arrive at the same time.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.records.value_types import keyword_value_type
from quorate.sim.engine.network import Hold

if TYPE_CHECKING:
    from quorate.sim.action_runner import Action, ActionRunner

# The interval of the checks for the time to release them, at least 5 ms and at most 100 checks.
LOOK_US: Final = 5000
LOOKS: Final = 100
# Few enough that a receiver that counts a peer's messages does not take them for new ones.
HELD_MAX: Final = 3


class MessageTopic(Enum):
    """The kind of messages that are delayed."""

    ELECTION = "an election"
    HAND_OVER = "a hand-over"
    FETCHING = "fetches and reads"


_KINDS: Final = {
    MessageTopic.ELECTION: (VoteRequest, VoteResponse),
    MessageTopic.HAND_OVER: (
        EndQuorumEpochRequest,
        EndQuorumEpochResponse,
        BeginQuorumEpochRequest,
        BeginQuorumEpochResponse,
    ),
    MessageTopic.FETCHING: (FetchRequest, FetchResponse),
}


@keyword_value_type
class DelayMessages:
    """Delay the next messages of a kind that a node sends, by `for_us` at most.

    Messages of an election or a leadership transfer arrive when a later epoch has begun. Fetches
    arrive when a read waits at a leader that has been superseded.
    """

    who: int
    of: MessageTopic
    count: int
    for_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node, world = action_runner.find_running(self.who), action_runner.cluster
        if node is None:
            return
        count = min(self.count, HELD_MAX)
        world.log(f"messages of node {node.node_id} about {self.of.value} are held back")
        hold = Hold(node.node_id, _KINDS[self.of], count)
        world.network.holds.append(hold)
        until_us, epoch = world.now_us + self.for_us, _epoch(action_runner)
        look_us = max(LOOK_US, self.for_us // LOOKS)

        def look() -> None:
            is_time = world.now_us >= until_us or action_runner.is_over
            if is_time or (hold.held and self._is_worst(action_runner, epoch)):
                world.log(f"{len(hold.held)} messages of node {node.node_id} arrive late")
                world.network.release(hold)
            else:
                world.schedule(look_us, look)

        world.schedule(look_us, look)

    def _is_worst(self, action_runner: ActionRunner, epoch: int) -> bool:
        if self.of is MessageTopic.FETCHING:
            newest = _epoch(action_runner)
            return any(
                node.oldest_read_ms is not None
                and node.progress is not None
                and node.progress.is_leader
                and node.progress.epoch < newest
                for node in action_runner.cluster.running()
            )
        return _epoch(action_runner) > epoch


def _epoch(action_runner: ActionRunner) -> int:
    """The highest epoch that a running process has reported."""
    told = [
        node.progress.epoch for node in action_runner.cluster.running() if node.progress is not None
    ]
    return max(told, default=0)


KINDS: Final[dict[str, type[Action]]] = {"hold-back": DelayMessages}
