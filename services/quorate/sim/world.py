"""The world of one seed: a heap of (time, sequence, action), the nodes, the network between them.

Time is counted in whole microseconds. Everything that happens is an action on the heap, and all
that is left to chance is drawn from streams that the seed stands for (`sim/fates.py`); so the same
seed makes the same world, whatever the process.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.raft.api import (
    CallFailure,
    ProbeAnswered,
    ResponseReceived,
)
from quorate.raft.messages import AddRaftVoterRequest
from quorate.records.ids import UUID_BYTES, NodeId, ReplyToken, TopicId
from quorate.records.voters import VoterSet
from quorate.sim.another_cluster import answer_of_another_cluster
from quorate.sim.configuring import bootstrap_name, endpoint
from quorate.sim.fates import Fates
from quorate.sim.network import Caller, Network
from quorate.sim.node import SimulatedNode, Status
from quorate.sim.oracle import Oracle, Violation
from quorate.sim.storage import LOG_DIR
from quorate.sim.transcript import Transcript
from quorate.sim.watch import Watch
from quorate.storage.layout import PART_SUFFIX, checkpoint_name

if TYPE_CHECKING:
    from quorate.raft.api import Peer, SendRequest
    from quorate.raft.messages import MembershipResponse, PeerResponse, Request
    from quorate.records.ids import CallId, OffsetAndEpoch
    from quorate.records.voters import Endpoint
    from quorate.sim.faults import Options
    from quorate.sim.seen import Node
    from quorate.sim.sides import MachineBelow

Action: TypeAlias = Callable[[], None]
CONNECT_TIMEOUT_US: Final = 1_000_000
STEPS_AT_ONE_INSTANT: Final = 5000
# Forty times what the longest worlds take.
STEPS_MAX: Final = 2_000_000
# How often the invariants look, in parts of the shorter timeout, and in which bounds.
LOOKS: Final = 4
LOOK_MIN_MS: Final = 25
LOOK_MAX_MS: Final = 500


@dataclass(slots=True)
class Doom:
    """When a process is to die: before its so many-th step, an effect or a call to its disk.

    `counted` are those of the instant `at_us`, of now when it strikes.
    """

    steps: int
    counted: int = 0
    at_us: int = -1

    def strikes(self, now_us: int) -> bool:
        """Count one step; whether it is the one before which the process dies."""
        if now_us != self.at_us:
            self.at_us, self.counted = now_us, 0
        self.counted += 1
        self.steps -= 1
        return self.steps <= 0


class World:
    """Nodes, network and time; faults and clients act on it from outside."""

    def __init__(
        self, seed: int, options: Options, *, keep: int = 40, digest: bool = False
    ) -> None:
        self.seed = seed
        self.options = options
        self.fates = Fates(seed)
        self.now_us = 0
        self.network = Network(options.network, self.fates)
        self.transcript = Transcript(keep, digest)
        self.oracle = Oracle()
        self.watch = Watch(self)
        self.nodes: dict[NodeId, SimulatedNode] = {}
        self.addresses: dict[tuple[str, int], NodeId] = {}
        self.free: list[tuple[Endpoint, ...]] = []
        self.answers: dict[ReplyToken, MembershipResponse] = {}
        self.steps = 0
        self._dooms: dict[NodeId, Doom] = {}
        self._struck: dict[NodeId, Doom] = {}
        self.when_process_dies: Callable[[SimulatedNode, Doom], None] = _die
        self.when_process_stops: Callable[[SimulatedNode], None] = SimulatedNode.kill
        self.when_process_runs_short: Callable[[SimulatedNode], None] = SimulatedNode.kill
        self.when_process_is_refused: Callable[[SimulatedNode, Exception], None] = _nobody_mends
        self.is_calm = False
        # Until when the address of a node answers as a controller of another cluster.
        self.taken_over: dict[NodeId, int] = {}
        self.static_voters = VoterSet()
        self._heap: list[tuple[int, int, Action]] = []
        self._sequence = 0
        self._stuck = 0
        self._tokens = 0

    def end(self) -> None:
        """Nothing happens any more in any process."""
        for node in self.running():
            node.process.end()

    def __del__(self) -> None:
        # Their coroutines are thrown away next, and may not act any more.
        if not sys.is_finalizing():
            self.end()

    # --- time -------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        return self.now_us // 1000

    def schedule(self, delay_us: int, action: Action) -> None:
        """Have `action` done after that many microseconds."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_us + max(0, delay_us), self._sequence, action))

    def run(self, until_ms: int, *, stop: Callable[[], bool] | None = None) -> bool:
        """Let time pass; True when `stop` became true before `until_ms`."""
        limit = until_ms * 1000
        while self._heap and self._heap[0][0] <= limit:
            at, _, action = heapq.heappop(self._heap)
            self._stuck = self._stuck + 1 if at == self.now_us else 0
            if self._stuck > STEPS_AT_ONE_INSTANT:
                raise Violation("time stands still: a core asks for wake-ups without end")
            self.now_us = at
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise Violation("this world never ends: something goes on and on")
            action()
            if stop is not None and stop():
                return True
        self.now_us = max(self.now_us, limit)
        return False

    def remark(self, text: str) -> None:
        """A line of the world's own in the transcript."""
        self.transcript.add(self.now_us, None, text)

    # --- nodes ------------------------------------------------------------------------------------

    def add_node(self, node: SimulatedNode) -> None:
        self.nodes[node.node_id] = node
        self.addresses[bootstrap_name(node)] = node.node_id
        for listener in node.endpoints:
            self.addresses[listener.host, listener.port] = node.node_id

    def move(self, node: SimulatedNode) -> None:
        """A node whose process is down gets another address; nobody answers at the old one.

        Until somebody else is given it, as addresses of a pool are.
        """
        for listener in node.endpoints:
            del self.addresses[listener.host, listener.port]
        node.moves += 1
        free = node.endpoints
        node.endpoints = (endpoint(node.node_id, node.moves),)
        if self.free and self.fates.happens(0.3, "addresses"):
            at = int(self.fates.of("addresses").random() * len(self.free))
            node.endpoints = self.free.pop(at)
        self.free.append(free)
        for listener in node.endpoints:
            self.addresses[listener.host, listener.port] = node.node_id

    def is_taken_over(self, node: Node) -> bool:
        """Whether somebody else answers at the address of a node."""
        return self.taken_over.get(node.node_id, 0) > self.now_us

    def take_cut_links(self) -> dict[tuple[NodeId, NodeId], None]:
        """The ways that were cut at any time since this was asked last."""
        return self.network.take_cut()

    def look(self) -> None:
        """Have the invariants look now, and again and again."""
        self.watch.looked()
        options = self.options
        part_ms = min(options.election_timeout_ms, options.fetch_timeout_ms) // LOOKS
        self.schedule(1000 * min(LOOK_MAX_MS, max(LOOK_MIN_MS, part_ms)), self.look)

    def running(self) -> list[SimulatedNode]:
        """The nodes whose process runs, paused ones included."""
        return [node for node in self.nodes.values() if node.status is Status.RUNNING]

    def leader(self) -> SimulatedNode | None:
        """The running leader of the highest epoch."""
        best: SimulatedNode | None = None
        for node in self.running():
            progress = node.progress
            if progress is None or not progress.is_leader:
                continue
            if best is None or best.progress is None or progress.epoch > best.progress.epoch:
                best = node
        return best

    # --- the end of a process ---------------------------------------------------------------------

    def doom(self, node: Node, steps: int) -> Doom:
        """Have a process of that node die before its so many-th step from now on."""
        doom = self._dooms[node.node_id] = Doom(steps)
        return doom

    def is_time_to_die(self, node: Node) -> bool:
        """Count one effect or one call to a disk; True for the one that a process dies before."""
        doom = self._dooms.get(node.node_id)
        if doom is None or not doom.strikes(self.now_us):
            return False
        self._struck[node.node_id] = self._dooms.pop(node.node_id)
        return True

    def process_died(self, node: Node) -> None:
        self.when_process_dies(self.nodes[node.node_id], self._struck.pop(node.node_id))

    def process_stopped(self, node: Node) -> None:
        self.when_process_stops(self.nodes[node.node_id])

    def process_ran_short(self, node: Node) -> None:
        self.when_process_runs_short(self.nodes[node.node_id])

    def process_refused(self, node: Node, error: Exception) -> None:
        self.when_process_is_refused(self.nodes[node.node_id], error)

    def calm_down(self) -> None:
        """No more faults of network, disks or processes."""
        self.is_calm = True
        self._dooms.clear()
        self.taken_over.clear()
        self.network.calm_down()

    # --- what is left to chance -------------------------------------------------------------------

    def draw_fsync_us(self, node: Node) -> int:
        options = self.options
        delay = options.fsync_us
        if not self.is_calm and self.fates.happens(options.slow_fsync_rate, "disk", node.node_id):
            delay += int(self.fates.of("disk", node.node_id).random() * options.slow_fsync_us)
        return delay

    def tempt_fate(self, node: Node) -> None:
        """A process votes, is elected, changes the voters: now and then it dies right then."""
        rate = self.options.crash_at_vote_rate
        if not self.is_calm and self.fates.happens(rate, "votes", node.node_id):
            self.doom(node, 1 + int(self.fates.of("votes", node.node_id).random() * 16))

    def spoil(self, node: MachineBelow, snapshot_id: OffsetAndEpoch) -> None:
        """A snapshot has been fetched: now and then a bit of it flips before it is checked."""
        rate = self.options.spoiled_snapshot_rate
        if not self.is_calm and self.fates.happens(rate, "spoiling", node.node_id):
            name = checkpoint_name(snapshot_id) + PART_SUFFIX
            draw = self.fates.of("spoiling", node.node_id).random()
            at = int(draw * node.disk.files(LOG_DIR)[name])
            node.disk.rot(f"{LOG_DIR}/{name}", at, 1)
            self.remark(f"node {node.node_id}: the snapshot that it fetched is spoiled")

    def is_aimed_at(self, node: Node, rate: float) -> bool:
        """Whether what would be bad just now happens; no more once faults have stopped."""
        return not self.is_calm and self.fates.happens(rate, "aims", node.node_id)

    def new_topic_id(self) -> TopicId:
        return TopicId(self.fates.of("topic ids").randbytes(UUID_BYTES))

    # --- messages ---------------------------------------------------------------------------------

    def next_token(self) -> ReplyToken:
        self._tokens += 1
        return ReplyToken(self._tokens)

    def send_request(self, source: Node, effect: SendRequest) -> None:
        """Carry a request; a lost one stays without an answer, as behind a silent firewall."""
        if isinstance(effect.request, AddRaftVoterRequest):
            self.watch.joining(source, effect.request)
        target = self._target(effect.to)
        if target is None:
            return
        caller = Caller(source.node_id, source.incarnation, effect.call)
        for delay in self.network.deliveries(source.node_id, target.node_id):
            self.schedule(delay, lambda: self._arrive(caller, target, effect.request))

    def _target(self, peer: Peer) -> SimulatedNode | None:
        node_id = self.addresses.get((peer.host, peer.port))
        return None if node_id is None else self.nodes[node_id]

    def _arrive(self, caller: Caller, target: SimulatedNode, request: Request) -> None:
        if self.is_taken_over(target):
            answer = answer_of_another_cluster(target, request)
            self.send_response(target, caller, answer or CallFailure.DISCONNECTED)
        elif target.is_listening:
            token = self.next_token()
            target.callers[token] = caller
            target.receive(token, request)
        elif target.refuses_connections:
            self.send_response(target, caller, CallFailure.DISCONNECTED)

    def send_response(
        self, source: Node, caller: Caller, response: PeerResponse | CallFailure
    ) -> None:
        """Carry an answer, or the news that a connection broke, back to the caller."""
        for delay in self.network.deliveries(source.node_id, caller.node_id):
            self.schedule(delay, lambda: self._answer(caller, response))

    def _answer(self, caller: Caller, response: PeerResponse | CallFailure) -> None:
        node = self.nodes[caller.node_id]
        if node.incarnation == caller.incarnation and node.status is Status.RUNNING:
            node.deliver(ResponseReceived(caller.call, response))

    def send_probe(self, source: Node, call: CallId, peer: Peer) -> None:
        """A plain connect: refused at once by a machine without the process, else accepted or lost.

        Whether packets of a split network come through is decided when the connect begins.
        """
        target = self._target(peer)
        caller = Caller(source.node_id, source.incarnation, call)
        if target is None or not self.network.is_open(source.node_id, target.node_id):
            self.schedule(CONNECT_TIMEOUT_US, lambda: self._probed(caller, refused=False))
            return
        there, back = (source.node_id, target.node_id), (target.node_id, source.node_id)
        delay = self.network.delay(*there) + self.network.delay(*back)
        self.schedule(delay, lambda: self._connect(caller, target))

    def _connect(self, caller: Caller, target: SimulatedNode) -> None:
        if target.is_listening or target.refuses_connections:
            self._probed(caller, refused=target.refuses_connections)
        else:
            self.schedule(CONNECT_TIMEOUT_US, lambda: self._probed(caller, refused=False))

    def _probed(self, caller: Caller, *, refused: bool) -> None:
        node = self.nodes[caller.node_id]
        if node.incarnation == caller.incarnation and node.status is Status.RUNNING:
            node.deliver(ProbeAnswered(caller.call, refused))

    def process_ended(self, node: Node, callers: dict[ReplyToken, Caller]) -> None:
        """A process is gone, its machine lives: connections break, on both ends."""
        for caller in callers.values():
            self.send_response(node, caller, CallFailure.DISCONNECTED)
        for other in self.nodes.values():
            for token, caller in list(other.callers.items()):
                if caller.node_id == node.node_id and caller.incarnation <= node.incarnation:
                    self._hang_up(node, other, token)

    def _hang_up(self, source: Node, target: SimulatedNode, token: ReplyToken) -> None:
        for delay in self.network.deliveries(source.node_id, target.node_id):
            self.schedule(delay, lambda: self._hung_up(target, token))

    def _hung_up(self, target: SimulatedNode, token: ReplyToken) -> None:
        target.hung_up(token)


def _die(node: SimulatedNode, doom: Doom) -> None:
    """Nobody starts it again."""
    del doom
    node.kill()


def _nobody_mends(node: SimulatedNode, error: Exception) -> None:
    """A directory that is refused stays as it is."""
    del node, error
