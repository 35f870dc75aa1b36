"""Draws when each kind of fault, operator action or attack happens, and to which node.

Each kind has a random stream of its own. The action itself decides if it is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.action_runner import LEADER
from quorate.sim.actions.delayed_messages import HELD_MAX, HoldBack, Of
from quorate.sim.actions.disks import BreakDisk, Fail, Hang, Rot, Wipe
from quorate.sim.actions.files import PutBack, RotSmall
from quorate.sim.actions.invalid_requests import (
    AskGarbled,
    AskPeerInVain,
    WriteGarbled,
    WriteInVain,
)
from quorate.sim.actions.network import Claim, Lie, Move, SplitNetwork, TakeOver
from quorate.sim.actions.processes import FallBehind, Kill, LosePower, Pause, Stop
from quorate.sim.engine.event_loop import MILLION
from quorate.sim.engine.machine import SHORT, UNREADABLE
from quorate.sim.engine.network import PartitionShape
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.engine.process_supervisor import exponential
from quorate.sim.faults.concurrent_stops import Turns
from quorate.sim.faults.membership_churn import Churn
from quorate.sim.faults.stale_files import FILES, SMALL_FILES
from quorate.sim.randomness import SALTS, Draws
from quorate.storage.layout import HEALING

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.action_runner import Deed, Stage

TAKEN_OVER_US: Final = 3_000_000
BEHIND_US: Final = 3_000_000
BROKEN_US: Final = 4_000_000
AGE_US: Final = 2_000_000
AFTER_WIPE_US: Final = 400_000


class Chaos:
    """The faults of one cluster."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world
        self.churn = Churn(stage)
        self.turns = Turns(stage)
        self._power = Draws(stage.world.seed, "power beside rot")

    def begin(self) -> None:
        options = self.world.options
        self._repeat("partition", options.reach.partition_every_ms, self.partition)
        self._repeat("kill", options.processes.kill_every_ms, self.kill)
        self._repeat("power", options.processes.power_every_ms, self.power_off)
        self._repeat("blackout", options.processes.blackout_every_ms, self.black_out)
        self._repeat("pause", options.processes.pause_every_ms, self.pause)
        self._repeat("rot", options.disks.rot_every_ms, self.rot)
        self._repeat("small rot", options.disks.small_rot_every_ms, self.rot_small)
        self._repeat("put back", options.disks.put_back_every_ms, self.put_back)
        self._repeat("unreadable", options.disks.unreadable_every_ms, self.fail_reads)
        self._repeat("short", options.disks.short_every_ms, self.run_short)
        self._repeat("broken disk", options.disks.disk_fault_every_ms, self.break_disk)
        self._repeat("hang", options.disks.hang_every_ms, self.hang_disk)
        self._repeat("wipe", options.disks.wipe_every_ms, self.wipe)
        self._repeat("voters", options.membership.voters_every_ms, self.churn.change_voters)
        bold_every_ms = options.membership.bold_voters_every_ms
        self._repeat("bold changes", bold_every_ms, self.churn.change_boldly)
        self._repeat("shutdown", options.processes.shutdown_every_ms, self.shut_down)
        self._repeat("unready", options.processes.unready_every_ms, self.fall_behind)
        self._repeat("move", options.reach.move_every_ms, self.move)
        self._repeat("hand-over", options.membership.hand_over_every_ms, self.churn.hand_over)
        self._repeat("strangers", options.reach.strangers_every_ms, self.meet_strangers)
        self._repeat("late messages", options.reach.late_every_ms, self.hold_back)
        self._repeat("vain requests", options.peers.in_vain_every_ms, self.ask_in_vain)
        self._repeat("turns", options.processes.turns_every_ms, self.turns.begin)
        if options.auto_join:
            self._repeat("scaling", options.membership.scale_every_ms, self.churn.scale_away)
        if not options.kraft_version:
            self._repeat("upgrade", options.membership.upgrade_every_ms, self.churn.upgrade)

    # --- randomness -------------------------------------------------------------------------------

    def _repeat(self, purpose: str, every_ms: int, action: Callable[[Draws], None]) -> None:
        if not every_ms:
            return
        draws = Draws(self.world.seed, purpose)

        def again() -> None:
            if not self.stage.is_over:
                action(draws)
                self.world.schedule(exponential(draws.random, every_ms * 1000), again)

        self.world.schedule(exponential(draws.random, every_ms * 1000), again)

    def _pick(self, draws: Draws) -> SimulatedNode:
        return draws.one(list(self.world.nodes.values()))

    def _pick_running(self, draws: Draws) -> SimulatedNode | None:
        """Pick the leader half of the time, because faults have the most effect there."""
        leader = self.world.leader()
        if leader is not None and draws.chance(0.5):
            return leader
        running = self.world.running()
        return draws.one(running) if running else None

    def _down_us(self, draws: Draws) -> int:
        return exponential(draws.random, self.world.options.processes.restart_ms * 1000)

    # --- network ----------------------------------------------------------------------------------

    def partition(self, draws: Draws) -> None:
        shape = draws.one(self.world.options.reach.partition_shapes)
        order = sorted(self.world.nodes)
        draws.random.shuffle(order)
        match shape:
            case PartitionShape.HALVES:
                those = order[: draws.between(1, max(1, len(order) - 1))]
            case PartitionShape.LINK | PartitionShape.ONE_WAY_LINK:
                those = order[:2]
            case _:
                those = order[:1]
        for_us = exponential(draws.random, self.world.options.reach.partition_ms * 1000)
        self.stage.do(SplitNetwork(shape=shape, those=tuple(those), for_us=for_us))

    def meet_strangers(self, draws: Draws) -> None:
        """Forge an epoch, or let a foreign cluster answer at an address for a while."""
        who = self._pick(draws).node_id
        if draws.chance(0.5):
            self.stage.do(TakeOver(who=who, for_us=draws.between(0, TAKEN_OVER_US)))
            return
        liar, claim = self._pick(draws).node_id, draws.one(tuple(Claim))
        self.stage.do(Lie(who=who, liar=liar, claim=claim, is_last=draws.chance(0.5)))

    def hold_back(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            deed = HoldBack(
                who=node.node_id,
                of=draws.one(tuple(Of)),
                count=draws.between(1, HELD_MAX),
                for_us=exponential(draws.random, self.world.options.reach.late_ms * 1000),
            )
            self.stage.do(deed)

    def ask_in_vain(self, draws: Draws) -> None:
        """Send an invalid or undecodable request as a peer, a client or a broker."""
        node = self._pick_running(draws)
        if node is None:
            return
        who, salt = node.node_id, draws.between(0, SALTS)
        asked: tuple[Deed, ...] = (
            AskPeerInVain(who=who, salt=salt),
            WriteInVain(who=who, salt=salt),
            WriteGarbled(who=who, salt=salt),
            AskGarbled(who=who, salt=salt),
        )
        self.stage.do(draws.one(asked))

    # --- processes --------------------------------------------------------------------------------

    def kill(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            self.stage.do(Kill(who=node.node_id, down_us=self._down_us(draws)))

    def power_off(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            self._lose_power(node, draws)

    def black_out(self, draws: Draws) -> None:
        """Cut the power of all machines at the same time."""
        for node in self.world.nodes.values():
            self._lose_power(node, draws)

    def _lose_power(self, node: SimulatedNode, draws: Draws) -> None:
        deed = LosePower(
            who=node.node_id,
            down_us=self._down_us(draws),
            survival=draws.one(self.world.options.disks.survivals),
            salt=draws.between(0, SALTS),
        )
        self.stage.do(deed)

    def pause(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            for_us = exponential(draws.random, self.world.options.processes.pause_ms * 1000)
            self.stage.do(Pause(who=node.node_id, for_us=for_us))

    def shut_down(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            self.stage.do(Stop(who=node.node_id))

    def fall_behind(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            for_us = exponential(draws.random, BEHIND_US)
            self.stage.do(FallBehind(who=node.node_id, for_us=for_us))

    # --- disks ------------------------------------------------------------------------------------

    def break_disk(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            deed = BreakDisk(
                who=node.node_id,
                fault=draws.one(("full", "failing")),
                for_us=exponential(draws.random, BROKEN_US),
                survival=draws.one(self.world.options.disks.survivals),
                salt=draws.between(0, SALTS),
            )
            self.stage.do(deed)

    def fail_reads(self, draws: Draws) -> None:
        self._fail(draws, UNREADABLE)

    def run_short(self, draws: Draws) -> None:
        self._fail(draws, SHORT)

    def _fail(self, draws: Draws, fault: str) -> None:
        """Let disk calls fail; half of the time for a process that restarts and reads all files."""
        node = self._pick_running(draws)
        if node is not None:
            for_us = exponential(draws.random, BROKEN_US)
            is_anew = draws.chance(0.5)
            self.stage.do(Fail(who=node.node_id, fault=fault, for_us=for_us))
            if is_anew:
                self.stage.do(Kill(who=node.node_id, down_us=draws.between(0, BROKEN_US)))

    def hang_disk(self, draws: Draws) -> None:
        node = self._pick_running(draws)
        if node is not None:
            for_us = exponential(draws.random, self.world.options.disks.hang_ms * 1000)
            self.stage.do(Hang(who=node.node_id, for_us=for_us))

    def rot(self, draws: Draws) -> None:
        """Flip bits, mostly late in the log, where few other replicas hold the same records.

        Half of the time the leader loses power as well, so that these records are needed. The
        process of the node ends in most cases, half of these by a power loss, with which a flushed
        end that is not yet durable is lost.
        """
        leader = self.world.leader()
        others = [n for n in self.world.nodes.values() if n is not leader]
        node = draws.one(others) if others else None
        if node is None or node.status is Status.OFF or not self.stage.sparing.can_spare(node):
            return
        if draws.chance(0.7):
            down_us = self._down_us(draws)
            is_dark = self._power.chance(0.5)
            end = LosePower if is_dark else Kill
            self.stage.do(end(who=node.node_id, down_us=down_us))
        draw = draws.random.random()
        at_ppm = int((1 - draw * draw) * MILLION)
        self.stage.do(Rot(who=node.node_id, at_ppm=at_ppm, bit=draws.between(0, 7)))
        if leader is not None and draws.chance(0.5):
            self._lose_power(leader, draws)

    def rot_small(self, draws: Draws) -> None:
        """Corrupt a small file; mostly another process reads it soon."""
        node, file = self._pick(draws), draws.one(tuple(SMALL_FILES))
        healing = [other for other in self.world.nodes.values() if other.is_healing]
        if healing and draws.chance(0.5):
            # Few nodes are healing at any time, and not for long.
            node, file = draws.one(healing), HEALING
        rot = RotSmall(
            who=node.node_id,
            file=file,
            at_ppm=int(draws.random.random() * MILLION),
            bit=draws.between(0, 7),
        )
        self.stage.do(rot)
        if draws.chance(0.7):
            self.stage.do(Kill(who=node.node_id, down_us=self._down_us(draws)))

    def put_back(self, draws: Draws) -> None:
        """Restore a stale copy, mostly a recent one, which is the hardest to notice."""
        deed = PutBack(
            who=self._pick(draws).node_id,
            file=draws.one(FILES),
            after_us=exponential(draws.random, AGE_US),
            down_us=self._down_us(draws),
        )
        self.stage.do(deed)

    def wipe(self, draws: Draws) -> None:
        """Replace a disk; half of the time restart immediately, while the old disk is a voter.

        Without directory ids the node is a voter again, and its lost votes matter at its next start
        and at the next election: both are scheduled soon.
        """
        node = self._pick(draws)
        down_us = 0 if draws.chance(0.5) else self._down_us(draws)
        self.stage.do(Wipe(who=node.node_id, down_us=down_us))
        if not self.world.options.kraft_version:
            start_us = down_us + exponential(draws.random, AFTER_WIPE_US)
            again = Kill(who=node.node_id, down_us=draws.between(0, AFTER_WIPE_US))
            self._do_later(start_us, again)
            election_us = start_us + exponential(draws.random, AFTER_WIPE_US)
            if draws.chance(0.5):
                self._do_later(election_us, Kill(who=LEADER, down_us=self._down_us(draws)))

    def _do_later(self, delay_us: int, deed: Deed) -> None:
        def do() -> None:
            self.stage.do(deed)

        self.world.schedule(delay_us, do)

    # --- addresses --------------------------------------------------------------------------------

    def move(self, draws: Draws) -> None:
        """Move one node, or several at the same time if bootstrap names can find them all."""
        options = self.world.options
        movers = [n for n in self.world.nodes.values() if self.stage.sparing.may_move(n)]
        if options.reach.has_bootstrap_names and draws.chance(options.reach.moves_together):
            movers = [node for node in movers if draws.chance(0.6)]
        elif movers:
            movers = [draws.one(movers)]
        for node in movers:
            self.stage.do(Move(who=node.node_id, down_us=self._down_us(draws)))
