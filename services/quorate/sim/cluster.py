"""The simulated cluster of one seed: nodes, network, time and event queue.

Every event is a callback in one heap (`sim/engine/event_queue.py`), and all randomness comes from
streams of the seed (`sim/randomness.py`). So the same seed makes the same run in any process.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from quorate.raft.api import (
    ProbeCompleted,
    RequestFailure,
    ResponseReceived,
)
from quorate.raft.messages import AddRaftVoterRequest
from quorate.records.ids import UUID_BYTES, NodeId, ReplyToken, TopicId
from quorate.records.voters import VoterSet
from quorate.sim.checkers.invariant_dispatch import Watch
from quorate.sim.checkers.oracle import Oracle
from quorate.sim.engine.address_pool import AddressPool
from quorate.sim.engine.event_queue import EventQueue
from quorate.sim.engine.network import Network, PeerCaller
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.engine.process_exits import ProcessExits
from quorate.sim.engine.storage import LOG_DIR
from quorate.sim.fuzz.foreign_cluster import answer_of_another_cluster
from quorate.sim.randomness import RandomStreams
from quorate.sim.transcript import Transcript
from quorate.storage.layout import PART_SUFFIX, checkpoint_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import Peer, SendRequest
    from quorate.raft.messages import MembershipResponse, PeerResponse, Request
    from quorate.records.ids import CallId, OffsetAndEpoch
    from quorate.sim.engine.event_queue import Callback
    from quorate.sim.interfaces import MachineInterface
    from quorate.sim.sim_options import WorldOptions
    from quorate.sim.views import NodeView

CONNECT_TIMEOUT_US: Final = 1_000_000
# Periodic checks per election or fetch timeout, the shorter one, and the bounds of their interval.
LOOKS: Final = 4
LOOK_MIN_MS: Final = 25
LOOK_MAX_MS: Final = 500


class Cluster:
    """Nodes, network and time; faults and clients act on it from outside."""

    def __init__(
        self, seed: int, options: WorldOptions, *, keep: int = 40, digest: bool = False
    ) -> None:
        self.seed = seed
        self.options = options
        self.random_streams = RandomStreams(seed)
        self.event_queue = EventQueue()
        self.network = Network(options.network, self.random_streams)
        self.transcript = Transcript(keep, digest)
        self.oracle = Oracle()
        self.watch = Watch(self)
        self.nodes: dict[NodeId, SimulatedNode] = {}
        self.addresses = AddressPool(self.random_streams)
        self.answers: dict[ReplyToken, MembershipResponse] = {}
        self.process_exits = ProcessExits(self.event_queue, self.nodes)
        self.is_calm = False
        # Per node: the time in us until which a foreign cluster answers at its address.
        self.taken_over: dict[NodeId, int] = {}
        self.static_voters = VoterSet()
        self._tokens = 0

    def end(self) -> None:
        """End all processes."""
        for node in self.running():
            node.process.end()

    def __del__(self) -> None:
        # The coroutines of these processes are discarded next and must not act any more.
        if not sys.is_finalizing():
            self.end()

    # --- time -------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        return self.event_queue.now_us

    @property
    def now_ms(self) -> int:
        return self.event_queue.now_us // 1000

    def schedule(self, delay_us: int, action: Callback) -> None:
        """Schedule `action` after `delay_us` microseconds."""
        self.event_queue.schedule(delay_us, action)

    def run(self, until_ms: int, *, stop: Callable[[], bool] | None = None) -> bool:
        """Advance simulated time; True if `stop` became true before `until_ms`."""
        return self.event_queue.run(until_ms, stop=stop)

    def log(self, text: str) -> None:
        """Add a line about the cluster to the transcript."""
        self.transcript.add(self.now_us, None, text)

    # --- nodes ------------------------------------------------------------------------------------

    def add_node(self, node: SimulatedNode) -> None:
        self.nodes[node.node_id] = node
        self.addresses.add(node)

    def is_hijacked(self, node: NodeView) -> bool:
        """True if a foreign cluster answers at the address of a node."""
        return self.taken_over.get(node.node_id, 0) > self.now_us

    def take_cut_links(self) -> dict[tuple[NodeId, NodeId], None]:
        """The links that were cut at any time since the last call."""
        return self.network.take_cut()

    def run_checks(self) -> None:
        """Run the invariants' periodic checks now and at intervals."""
        self.watch.on_tick()
        timeouts = self.options.timeouts
        part_ms = min(timeouts.election_timeout_ms, timeouts.fetch_timeout_ms) // LOOKS
        self.schedule(1000 * min(LOOK_MAX_MS, max(LOOK_MIN_MS, part_ms)), self.run_checks)

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

    def stop_faults(self) -> None:
        """Stop faults of network, disks and processes."""
        self.is_calm = True
        self.process_exits.calm_down()
        self.taken_over.clear()
        self.network.calm_down()

    # --- randomness -------------------------------------------------------------------------------

    def draw_fsync_us(self, node: NodeView) -> int:
        disks = self.options.disks
        delay = disks.fsync_us
        if not self.is_calm and self.random_streams.chance(
            disks.slow_fsync_rate, "disk", node.node_id
        ):
            delay += int(
                self.random_streams.stream("disk", node.node_id).random() * disks.slow_fsync_us
            )
        return delay

    def maybe_crash(self, node: NodeView) -> None:
        """Let a process that votes, is elected or changes the voters crash at random."""
        rate = self.options.processes.crash_at_vote_rate
        if not self.is_calm and self.random_streams.chance(rate, "votes", node.node_id):
            self.process_exits.schedule_crash(
                node, 1 + int(self.random_streams.stream("votes", node.node_id).random() * 16)
            )

    def maybe_corrupt_snapshot(self, node: MachineInterface, snapshot_id: OffsetAndEpoch) -> None:
        """Flip a bit of a fetched snapshot at random, before it is verified."""
        rate = self.options.log.spoiled_snapshot_rate
        if not self.is_calm and self.random_streams.chance(rate, "spoiling", node.node_id):
            name = checkpoint_name(snapshot_id) + PART_SUFFIX
            draw = self.random_streams.stream("spoiling", node.node_id).random()
            at = int(draw * node.disk.files(LOG_DIR)[name])
            node.disk.rot(f"{LOG_DIR}/{name}", at, 1)
            self.log(f"node {node.node_id}: the snapshot that it fetched is spoiled")

    def is_targeted(self, node: NodeView, rate: float) -> bool:
        """True if a targeted fault happens now; never once faults have stopped."""
        return not self.is_calm and self.random_streams.chance(rate, "aims", node.node_id)

    def new_topic_id(self) -> TopicId:
        return TopicId(self.random_streams.stream("topic ids").randbytes(UUID_BYTES))

    # --- messages ---------------------------------------------------------------------------------

    def next_token(self) -> ReplyToken:
        self._tokens += 1
        return ReplyToken(self._tokens)

    def send_request(self, source: NodeView, effect: SendRequest) -> None:
        """Carry a request; a lost one gets no response, as with a firewall that drops packets."""
        if isinstance(effect.request, AddRaftVoterRequest):
            self.watch.joining(source, effect.request)
        target = self._target(effect.to)
        if target is None:
            return
        caller = PeerCaller(source.node_id, source.incarnation, effect.call)
        self._carry(
            source.node_id,
            target.node_id,
            effect.request,
            lambda: self._arrive(caller, target, effect.request),
        )

    def _carry(self, source: NodeId, target: NodeId, message: object, arrive: Callback) -> None:
        """Deliver the copies of a message that are not lost."""
        network = self.network
        for delay in network.deliveries(source, target):
            if not network.holds or not network.holds_back(source, target, message, arrive):
                self.schedule(delay, arrive)

    def _target(self, peer: Peer) -> SimulatedNode | None:
        node_id = self.addresses.of(peer)
        return None if node_id is None else self.nodes[node_id]

    def _arrive(self, caller: PeerCaller, target: SimulatedNode, request: Request) -> None:
        if self.is_hijacked(target):
            answer = answer_of_another_cluster(target, request)
            self.send_response(target, caller, answer or RequestFailure.DISCONNECTED)
        elif target.is_listening:
            token = self.next_token()
            target.callers[token] = caller
            target.receive(token, request)
        elif target.refuses_connections:
            self.send_response(target, caller, RequestFailure.DISCONNECTED)

    def send_response(
        self, source: NodeView, caller: PeerCaller, response: PeerResponse | RequestFailure
    ) -> None:
        """Carry a response, or the report of a broken connection, back to the caller."""
        self._carry(
            source.node_id, caller.node_id, response, lambda: self._answer(caller, response)
        )

    def _answer(self, caller: PeerCaller, response: PeerResponse | RequestFailure) -> None:
        node = self.nodes[caller.node_id]
        if node.incarnation == caller.incarnation and node.status is Status.RUNNING:
            node.deliver(ResponseReceived(caller.call, response))

    def send_probe(self, source: NodeView, call: CallId, peer: Peer) -> None:
        """Connect to a peer, for the failure detector.

        A machine whose process does not run refuses the connection immediately. A running process
        accepts it. Otherwise the attempt times out.

        A partition is checked when the connect begins.
        """
        target = self._target(peer)
        caller = PeerCaller(source.node_id, source.incarnation, call)
        if target is None or not self.network.is_open(source.node_id, target.node_id):
            self.schedule(CONNECT_TIMEOUT_US, lambda: self._probed(caller, refused=False))
            return
        there, back = (source.node_id, target.node_id), (target.node_id, source.node_id)
        delay = self.network.delay(*there) + self.network.delay(*back)
        self.schedule(delay, lambda: self._connect(caller, target))

    def _connect(self, caller: PeerCaller, target: SimulatedNode) -> None:
        if target.is_listening or target.refuses_connections:
            self._probed(caller, refused=target.refuses_connections)
        else:
            self.schedule(CONNECT_TIMEOUT_US, lambda: self._probed(caller, refused=False))

    def _probed(self, caller: PeerCaller, *, refused: bool) -> None:
        node = self.nodes[caller.node_id]
        if node.incarnation == caller.incarnation and node.status is Status.RUNNING:
            node.deliver(ProbeCompleted(caller.call, refused))

    def process_ended(self, node: NodeView, callers: dict[ReplyToken, PeerCaller]) -> None:
        """A process has exited and its machine runs: break its connections on both ends."""
        for caller in callers.values():
            self.send_response(node, caller, RequestFailure.DISCONNECTED)
        for other in self.nodes.values():
            for token, caller in list(other.callers.items()):
                if caller.node_id == node.node_id and caller.incarnation <= node.incarnation:
                    self._hang_up(node, other, token)

    def _hang_up(self, source: NodeView, target: SimulatedNode, token: ReplyToken) -> None:
        for delay in self.network.deliveries(source.node_id, target.node_id):
            self.schedule(delay, lambda: self._hung_up(target, token))

    def _hung_up(self, target: SimulatedNode, token: ReplyToken) -> None:
        target.hung_up(token)
