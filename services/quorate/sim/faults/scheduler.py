"""Draws when each kind of fault, operator action or attack happens, and to which node.

Each kind has a random stream of its own. The action itself decides if it is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.action_runner import LEADER
from quorate.sim.actions.delayed_messages import HELD_MAX, DelayMessages, MessageTopic
from quorate.sim.actions.disks import BreakDisk, FailDiskCalls, FlipLogBit, ReplaceDisk, StallDisk
from quorate.sim.actions.files import CorruptSmallFile, RestoreStaleFile
from quorate.sim.actions.invalid_requests import (
    SendInvalidClientRequest,
    SendInvalidPeerRequest,
    SendMutatedClientRequest,
    SendMutatedPeerRequest,
)
from quorate.sim.actions.network import ForgedClaim, ForgeEpoch, HijackAddress, Move, SplitNetwork
from quorate.sim.actions.processes import FallBehind, Kill, Pause, PowerOff, Stop
from quorate.sim.engine.event_loop import MILLION
from quorate.sim.engine.machine import SHORT, UNREADABLE
from quorate.sim.engine.network import PartitionShape
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.engine.process_supervisor import exponential
from quorate.sim.faults.concurrent_stops import ConcurrentStops
from quorate.sim.faults.membership_churn import MembershipChurn
from quorate.sim.faults.stale_files import FILES, SMALL_FILES
from quorate.sim.randomness import SALTS, RandomSource
from quorate.storage.layout import HEALING

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.action_runner import Action, ActionRunner

TAKEN_OVER_US: Final = 3_000_000
BEHIND_US: Final = 3_000_000
BROKEN_US: Final = 4_000_000
AGE_US: Final = 2_000_000
AFTER_WIPE_US: Final = 400_000


class FaultScheduler:
    """The faults of one cluster."""

    def __init__(self, action_runner: ActionRunner) -> None:
        self.action_runner = action_runner
        self.cluster = action_runner.cluster
        self.membership_churn = MembershipChurn(action_runner)
        self.concurrent_stops = ConcurrentStops(action_runner)
        self._power = RandomSource(action_runner.cluster.seed, "power beside rot")

    def begin(self) -> None:
        options = self.cluster.options
        self._repeat("partition", options.reach.partition_every_ms, self.partition)
        self._repeat("kill", options.processes.kill_every_ms, self.kill)
        self._repeat("power", options.processes.power_every_ms, self.power_off)
        self._repeat("blackout", options.processes.blackout_every_ms, self.power_off_all)
        self._repeat("pause", options.processes.pause_every_ms, self.pause)
        self._repeat("rot", options.disks.rot_every_ms, self.flip_log_bit)
        self._repeat("small rot", options.disks.small_rot_every_ms, self.rot_small)
        self._repeat("put back", options.disks.put_back_every_ms, self.restore_stale_file)
        self._repeat("unreadable", options.disks.unreadable_every_ms, self.fail_reads)
        self._repeat("short", options.disks.short_every_ms, self.exhaust_descriptors)
        self._repeat("broken disk", options.disks.disk_fault_every_ms, self.break_disk)
        self._repeat("hang", options.disks.hang_every_ms, self.hang_disk)
        self._repeat("wipe", options.disks.wipe_every_ms, self.wipe)
        self._repeat(
            "voters", options.membership.voters_every_ms, self.membership_churn.change_voters
        )
        bold_every_ms = options.membership.bold_voters_every_ms
        self._repeat("bold changes", bold_every_ms, self.membership_churn.change_boldly)
        self._repeat("shutdown", options.processes.shutdown_every_ms, self.shut_down)
        self._repeat("unready", options.processes.unready_every_ms, self.fall_behind)
        self._repeat("move", options.reach.move_every_ms, self.move)
        self._repeat(
            "hand-over",
            options.membership.hand_over_every_ms,
            self.membership_churn.transfer_leadership,
        )
        self._repeat("strangers", options.reach.strangers_every_ms, self.inject_foreign_peers)
        self._repeat("late messages", options.reach.late_every_ms, self.hold_back)
        self._repeat("vain requests", options.peers.in_vain_every_ms, self.send_invalid_requests)
        self._repeat("turns", options.processes.turns_every_ms, self.concurrent_stops.begin)
        if options.auto_join:
            self._repeat(
                "scaling", options.membership.scale_every_ms, self.membership_churn.scale_down
            )
        if not options.kraft_version:
            self._repeat(
                "upgrade", options.membership.upgrade_every_ms, self.membership_churn.upgrade
            )

    # --- randomness -------------------------------------------------------------------------------

    def _repeat(self, purpose: str, every_ms: int, action: Callable[[RandomSource], None]) -> None:
        if not every_ms:
            return
        draws = RandomSource(self.cluster.seed, purpose)

        def again() -> None:
            if not self.action_runner.is_over:
                action(draws)
                self.cluster.schedule(exponential(draws.random, every_ms * 1000), again)

        self.cluster.schedule(exponential(draws.random, every_ms * 1000), again)

    def _pick(self, random_source: RandomSource) -> SimulatedNode:
        return random_source.choice(list(self.cluster.nodes.values()))

    def _pick_running(self, random_source: RandomSource) -> SimulatedNode | None:
        """Pick the leader half of the time, because faults have the most effect there."""
        leader = self.cluster.leader()
        if leader is not None and random_source.chance(0.5):
            return leader
        running = self.cluster.running()
        return random_source.choice(running) if running else None

    def _down_us(self, random_source: RandomSource) -> int:
        return exponential(random_source.random, self.cluster.options.processes.restart_ms * 1000)

    # --- network ----------------------------------------------------------------------------------

    def partition(self, random_source: RandomSource) -> None:
        shape = random_source.choice(self.cluster.options.reach.partition_shapes)
        order = sorted(self.cluster.nodes)
        random_source.random.shuffle(order)
        match shape:
            case PartitionShape.HALVES:
                those = order[: random_source.between(1, max(1, len(order) - 1))]
            case PartitionShape.LINK | PartitionShape.ONE_WAY_LINK:
                those = order[:2]
            case _:
                those = order[:1]
        for_us = exponential(random_source.random, self.cluster.options.reach.partition_ms * 1000)
        self.action_runner.run(SplitNetwork(shape=shape, those=tuple(those), for_us=for_us))

    def inject_foreign_peers(self, random_source: RandomSource) -> None:
        """Forge an epoch, or let a foreign cluster answer at an address for a while."""
        who = self._pick(random_source).node_id
        if random_source.chance(0.5):
            self.action_runner.run(
                HijackAddress(who=who, for_us=random_source.between(0, TAKEN_OVER_US))
            )
            return
        liar, claim = self._pick(random_source).node_id, random_source.choice(tuple(ForgedClaim))
        self.action_runner.run(
            ForgeEpoch(who=who, liar=liar, claim=claim, is_last=random_source.chance(0.5))
        )

    def hold_back(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            deed = DelayMessages(
                who=node.node_id,
                of=random_source.choice(tuple(MessageTopic)),
                count=random_source.between(1, HELD_MAX),
                for_us=exponential(random_source.random, self.cluster.options.reach.late_ms * 1000),
            )
            self.action_runner.run(deed)

    def send_invalid_requests(self, random_source: RandomSource) -> None:
        """Send an invalid or undecodable request as a peer, a client or a broker."""
        node = self._pick_running(random_source)
        if node is None:
            return
        who, salt = node.node_id, random_source.between(0, SALTS)
        asked: tuple[Action, ...] = (
            SendInvalidPeerRequest(who=who, salt=salt),
            SendInvalidClientRequest(who=who, salt=salt),
            SendMutatedClientRequest(who=who, salt=salt),
            SendMutatedPeerRequest(who=who, salt=salt),
        )
        self.action_runner.run(random_source.choice(asked))

    # --- processes --------------------------------------------------------------------------------

    def kill(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            self.action_runner.run(Kill(who=node.node_id, down_us=self._down_us(random_source)))

    def power_off(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            self._lose_power(node, random_source)

    def power_off_all(self, random_source: RandomSource) -> None:
        """Cut the power of all machines at the same time."""
        for node in self.cluster.nodes.values():
            self._lose_power(node, random_source)

    def _lose_power(self, node: SimulatedNode, random_source: RandomSource) -> None:
        deed = PowerOff(
            who=node.node_id,
            down_us=self._down_us(random_source),
            survival=random_source.choice(self.cluster.options.disks.survivals),
            salt=random_source.between(0, SALTS),
        )
        self.action_runner.run(deed)

    def pause(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            for_us = exponential(
                random_source.random, self.cluster.options.processes.pause_ms * 1000
            )
            self.action_runner.run(Pause(who=node.node_id, for_us=for_us))

    def shut_down(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            self.action_runner.run(Stop(who=node.node_id))

    def fall_behind(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            for_us = exponential(random_source.random, BEHIND_US)
            self.action_runner.run(FallBehind(who=node.node_id, for_us=for_us))

    # --- disks ------------------------------------------------------------------------------------

    def break_disk(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            deed = BreakDisk(
                who=node.node_id,
                fault=random_source.choice(("full", "failing")),
                for_us=exponential(random_source.random, BROKEN_US),
                survival=random_source.choice(self.cluster.options.disks.survivals),
                salt=random_source.between(0, SALTS),
            )
            self.action_runner.run(deed)

    def fail_reads(self, random_source: RandomSource) -> None:
        self._fail(random_source, UNREADABLE)

    def exhaust_descriptors(self, random_source: RandomSource) -> None:
        self._fail(random_source, SHORT)

    def _fail(self, random_source: RandomSource, fault: str) -> None:
        """Let disk calls fail; half of the time for a process that restarts and reads all files."""
        node = self._pick_running(random_source)
        if node is not None:
            for_us = exponential(random_source.random, BROKEN_US)
            is_anew = random_source.chance(0.5)
            self.action_runner.run(FailDiskCalls(who=node.node_id, fault=fault, for_us=for_us))
            if is_anew:
                self.action_runner.run(
                    Kill(who=node.node_id, down_us=random_source.between(0, BROKEN_US))
                )

    def hang_disk(self, random_source: RandomSource) -> None:
        node = self._pick_running(random_source)
        if node is not None:
            for_us = exponential(random_source.random, self.cluster.options.disks.hang_ms * 1000)
            self.action_runner.run(StallDisk(who=node.node_id, for_us=for_us))

    def flip_log_bit(self, random_source: RandomSource) -> None:
        """Flip bits, mostly late in the log, where few other replicas hold the same records.

        Half of the time the leader loses power as well, so that these records are needed. The
        process of the node ends in most cases, half of these by a power loss, with which a flushed
        end that is not yet durable is lost.
        """
        leader = self.cluster.leader()
        others = [n for n in self.cluster.nodes.values() if n is not leader]
        node = random_source.choice(others) if others else None
        if (
            node is None
            or node.status is Status.OFF
            or not self.action_runner.survivability.can_lose_disk(node)
        ):
            return
        if random_source.chance(0.7):
            down_us = self._down_us(random_source)
            is_dark = self._power.chance(0.5)
            end = PowerOff if is_dark else Kill
            self.action_runner.run(end(who=node.node_id, down_us=down_us))
        draw = random_source.random.random()
        at_ppm = int((1 - draw * draw) * MILLION)
        self.action_runner.run(
            FlipLogBit(who=node.node_id, at_ppm=at_ppm, bit=random_source.between(0, 7))
        )
        if leader is not None and random_source.chance(0.5):
            self._lose_power(leader, random_source)

    def rot_small(self, random_source: RandomSource) -> None:
        """Corrupt a small file; mostly another process reads it soon."""
        node, file = self._pick(random_source), random_source.choice(tuple(SMALL_FILES))
        healing = [other for other in self.cluster.nodes.values() if other.is_healing]
        if healing and random_source.chance(0.5):
            # Few nodes are healing at any time, and not for long.
            node, file = random_source.choice(healing), HEALING
        rot = CorruptSmallFile(
            who=node.node_id,
            file=file,
            at_ppm=int(random_source.random.random() * MILLION),
            bit=random_source.between(0, 7),
        )
        self.action_runner.run(rot)
        if random_source.chance(0.7):
            self.action_runner.run(Kill(who=node.node_id, down_us=self._down_us(random_source)))

    def restore_stale_file(self, random_source: RandomSource) -> None:
        """Restore a stale copy, mostly a recent one, which is the hardest to notice."""
        deed = RestoreStaleFile(
            who=self._pick(random_source).node_id,
            file=random_source.choice(FILES),
            after_us=exponential(random_source.random, AGE_US),
            down_us=self._down_us(random_source),
        )
        self.action_runner.run(deed)

    def wipe(self, random_source: RandomSource) -> None:
        """Replace a disk; half of the time restart immediately, while the old disk is a voter.

        Without directory ids the node is a voter again, and its lost votes matter at its next start
        and at the next election: both are scheduled soon.
        """
        node = self._pick(random_source)
        down_us = 0 if random_source.chance(0.5) else self._down_us(random_source)
        self.action_runner.run(ReplaceDisk(who=node.node_id, down_us=down_us))
        if not self.cluster.options.kraft_version:
            start_us = down_us + exponential(random_source.random, AFTER_WIPE_US)
            again = Kill(who=node.node_id, down_us=random_source.between(0, AFTER_WIPE_US))
            self._do_later(start_us, again)
            election_us = start_us + exponential(random_source.random, AFTER_WIPE_US)
            if random_source.chance(0.5):
                self._do_later(election_us, Kill(who=LEADER, down_us=self._down_us(random_source)))

    def _do_later(self, delay_us: int, action: Action) -> None:
        def do() -> None:
            self.action_runner.run(action)

        self.cluster.schedule(delay_us, do)

    # --- addresses --------------------------------------------------------------------------------

    def move(self, random_source: RandomSource) -> None:
        """Move one node, or several at the same time if bootstrap names can find them all."""
        options = self.cluster.options
        movers = [
            n for n in self.cluster.nodes.values() if self.action_runner.survivability.may_move(n)
        ]
        if options.reach.has_bootstrap_names and random_source.chance(options.reach.moves_together):
            movers = [node for node in movers if random_source.chance(0.6)]
        elif movers:
            movers = [random_source.choice(movers)]
        for node in movers:
            self.action_runner.run(Move(who=node.node_id, down_us=self._down_us(random_source)))
