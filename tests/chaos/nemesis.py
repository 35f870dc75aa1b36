"""Faults drawn from a seed, each of which ends: of processes, links, disks and clocks.

Two lanes run in parallel, each doing one thing at a time to nodes that the other leaves
alone. Some of it takes the majority away, which costs commits and must not cost data. Only damage
is bounded: bytes are flipped on a node only while all damaged nodes together, from the flip until
they have healed, are a minority. With more, committed records could be on no whole disk (the same
bound as that of the simulator's chaos). A killed process keeps what it wrote, so kills need none.
"""

from __future__ import annotations

import asyncio
import time
from itertools import product
from typing import TYPE_CHECKING, Final

from tests.chaos.liveness import SECOND
from tests.chaos.scene import Scene
from tests.chaos.surroundings import Surroundings
from tests.integration.disks import flip, segments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from tests.chaos.cluster import Cluster
    from tests.chaos.monitor import Watch

WHOLE_S: Final = 60.0
# From the last commit of one leader to the first of the next a voter flushes five times in a row.
SLUGGISH_MS: Final = 100.0
# Rule `disk_call_deadline`: 1.5 fetch timeouts, which are two seconds where nothing else is set.
DISK_DEADLINE_S: Final = 3.0
NEARLY_FULL_BYTES: Final = 16 << 20
SKEWS_S: Final = (-86_400.0, -3600.0, -5.0, -0.2, 0.2, 5.0, 3600.0, 31_536_000.0)
# Each kind of fault, and the weight with which it is drawn.
WEIGHTS: Final = {
    "kill": 4,
    "move": 2,
    "pause": 3,
    "cut": 5,
    "slow": 2,
    "hang": 2,
    "fill": 2,
    "flip": 2,
    "skew": 1,
    "abuse": 2,
    "flood": 3,
    "names": 3,
    "stderr": 2,
}
KINDS: Final = tuple(WEIGHTS)
# They want a machine of their own: a flood alone takes a processor.
ALONE: Final = ("flood", "names", "stderr")
# Seconds between the end of one fault and the next, in each lane on average.
LANE_PAUSES_S: Final = (1.5, 6.0)


class Nemesis:
    """The faults of one run. `violations` are nodes that did not come back."""

    def __init__(
        self, cluster: Cluster, watch: Watch, random: Random, kinds: Sequence[str] = KINDS
    ) -> None:
        """Only faults of these kinds are drawn."""
        self._scene = Scene(cluster, watch, random)
        self.health = self._scene.health
        self.violations = self._scene.violations
        self.counts = self._scene.counts
        self._cluster = cluster
        self._watch = watch
        self._random = random
        self._healing: set[asyncio.Task[None]] = set()
        self._is_cut = False
        surroundings = Surroundings(self._scene)
        faults: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self.kill,
            "move": self.move,
            "pause": self.pause,
            "cut": self.cut,
            "slow": self.slow_disk,
            "hang": self.hang_disk,
            "fill": self.fill_disk,
            "flip": self.flip_byte,
            "skew": self.skew_clock,
            "abuse": surroundings.abuse,
            "flood": surroundings.flood,
            "names": surroundings.mislead,
            "stderr": surroundings.stop_reading,
        }
        self._faults = {faults[kind]: WEIGHTS[kind] for kind in kinds}

    async def run(self, seconds: float) -> None:
        """Do harm for so long, then wait until all of it is taken back."""
        self._scene.until = time.monotonic_ns() + int(seconds * SECOND)
        self._scene.note_health()
        self._watch.led = self._scene.note_health
        await asyncio.gather(*(self._lane(pause_s) for pause_s in LANE_PAUSES_S))
        await asyncio.gather(*self._healing)

    async def _lane(self, pause_s: float) -> None:
        while True:
            await self._scene.hold(self._random.expovariate(1 / pause_s))
            if time.monotonic_ns() >= self._scene.until:
                return
            faults = list(self._faults)
            (fault,) = self._random.choices(faults, [self._faults[f] for f in faults])
            await fault()

    # --- processes --------------------------------------------------------------------------------

    async def kill(self) -> None:
        """kill -9 of one, some or all, and a restart."""
        size = len(self._cluster.nodes)
        how_many = self._random.choices((1, size // 2, size // 2 + 1, size), (8, 2, 1, 1))[0]
        with self._scene.claimed(how_many=how_many) as victims:
            self._scene.tell("kill", f"kill -9: {self._scene.named(victims)}")
            self._scene.down(*victims)
            await self._cluster.kill(*victims)
            await self._scene.hold(self._random.uniform(0.0, 3.0))
            await asyncio.gather(*(self._scene.start(node_id) for node_id in victims))

    async def move(self) -> None:
        """Restart one at another address, which no peer knew before."""
        with self._scene.claimed() as victims:
            for node_id in victims:
                self._scene.down(node_id)
                await self._cluster.kill(node_id)
                self._scene.tell("move", f"moves to another address: {self._scene.named(victims)}")
                await asyncio.to_thread(self._cluster.network.move, node_id)
                await self._scene.hold(self._random.uniform(0.0, 2.0))
                await self._scene.start(node_id)

    async def pause(self) -> None:
        """SIGSTOP, and SIGCONT later."""
        with self._scene.claimed() as victims:
            self._scene.tell("pause", f"SIGSTOP: {self._scene.named(victims)}")
            self._scene.down(*victims)
            for node_id in victims:
                self._cluster.pause(node_id)
            await self._scene.hold(self._random.uniform(0.3, 6.0))
            self._watch.note(f"SIGCONT: {self._scene.named(victims)}")
            for node_id in victims:
                self._cluster.go_on(node_id)
            self._scene.up(*victims)

    # --- links ------------------------------------------------------------------------------------

    async def cut(self) -> None:
        """Cut links in a drawn shape, one way or both, and restore them together."""
        if self._is_cut:
            return
        self._is_cut = True
        shape, pairs = self._draw_cut()
        self._scene.tell("cut", f"cut: {shape}")
        self._scene.block("cut", pairs)
        await asyncio.to_thread(self._cluster.network.cut, pairs)
        await self._scene.hold(self._random.uniform(1.0, 8.0))
        await asyncio.to_thread(self._cluster.network.heal)
        self._scene.block("cut", ())
        self._watch.note("links are mended")
        self._is_cut = False

    def _draw_cut(self) -> tuple[str, list[tuple[int, int]]]:
        nodes = list(self._cluster.nodes)
        self._random.shuffle(nodes)
        leader = self._watch.leader
        if leader is not None and self._random.random() < 0.5:
            nodes.remove(leader)
            nodes.insert(0, leader)
        one, others = nodes[0], nodes[1:]
        who = self._scene.named([one])
        half = len(nodes) // 2
        left, right = nodes[:half], nodes[half:]
        match self._random.choice(("alone", "mute", "deaf", "pair", "one way", "halves", "bridge")):
            case "alone":
                return f"{who} alone", _both(([one], others))
            case "mute":
                return f"{who} is not heard", [(one, other) for other in others]
            case "deaf":
                return f"{who} hears nobody", [(other, one) for other in others]
            case "pair":
                return f"{who} and {others[0]}", _both(([one], others[:1]))
            case "one way":
                return f"{who} to {others[0]}", [(one, others[0])]
            case "halves":
                return f"{sorted(left)} from {sorted(right)}", _both((left, right))
        bridge = right.pop()
        return f"{sorted(left)} from {sorted(right)}, {bridge} hears both", _both((left, right))

    # --- disks and clocks -------------------------------------------------------------------------

    async def slow_disk(self) -> None:
        """Every flush of one node takes long; if it is very long, no fast election is promised."""
        with self._scene.claimed() as victims:
            for node_id in victims:
                delay_ms = self._random.uniform(20.0, 300.0)
                if delay_ms > SLUGGISH_MS:
                    self._scene.down(node_id)
                self._scene.tell(
                    "slow", f"flushes take {delay_ms:.0f} ms more: {self._scene.named(victims)}"
                )
                self._cluster.disks[node_id].slow_down(delay_ms)
                await self._scene.hold(self._random.uniform(2.0, 6.0))
                self._cluster.disks[node_id].slow_down(0.0)
                self._scene.up(node_id)
                self._watch.note(f"flushes are fast again: {node_id}")

    async def hang_disk(self) -> None:
        """No flush of one node returns for a while; the process has to come back by itself."""
        with self._scene.claimed() as victims:
            for node_id in victims:
                if node_id == self._watch.leader:
                    until = time.monotonic_ns() + int(DISK_DEADLINE_S * SECOND)
                    self.health.hanging = node_id, until
                self._scene.down(node_id)
                self._scene.tell("hang", f"flushes do not return: {self._scene.named(victims)}")
                self._cluster.disks[node_id].hang()
                seconds = self._random.uniform(2.0, 8.0)
                await self._scene.hold(min(seconds, DISK_DEADLINE_S))
                self._scene.note_health()
                await self._scene.hold(max(0.0, seconds - DISK_DEADLINE_S))
                self._cluster.disks[node_id].release()
                self.health.hanging = None
                self._scene.up(node_id)
                self._watch.note(f"flushes return again: {node_id}")

    async def fill_disk(self) -> None:
        """No space at all until it is given back and the process restarted; or only a little."""
        is_full = self._random.random() < 0.7
        with self._scene.claimed() as victims:
            for node_id in victims:
                disk = self._cluster.disks[node_id]
                word = "full" if is_full else "nearly full"
                self._scene.tell("fill", f"the disk is {word}: {self._scene.named(victims)}")
                if is_full:
                    self._scene.down(node_id)
                    await asyncio.to_thread(disk.fill)
                else:
                    await asyncio.to_thread(disk.fill, leave_bytes=NEARLY_FULL_BYTES)
                await self._scene.hold(self._random.uniform(2.0, 8.0))
                disk.drain()
                self._watch.note(f"the disk has space again: {node_id}")
                if is_full:
                    await self._cluster.kill(node_id)
                    await self._scene.start(node_id)

    async def flip_byte(self) -> None:
        """A bit of a stopped follower's log flips."""
        if len(self._scene.damaged) >= (len(self._cluster.nodes) - 1) // 2:
            return
        with self._scene.claimed(but=self._watch.leader) as victims:
            for node_id in victims:
                if node_id in self._scene.damaged:
                    continue
                self._scene.damaged.add(node_id)
                self._scene.down(node_id)
                self._watch.archive()
                await self._cluster.kill(node_id)
                files = [p for p in segments(self._cluster.nodes[node_id]) if p.stat().st_size]
                path = self._random.choice(files)
                position = self._random.randrange(path.stat().st_size)
                self._scene.tell("flip", f"byte {position} of {path.name} flips: {node_id}")
                flip(path, position)
                await self._scene.hold(self._random.uniform(0.0, 2.0))
                await self._scene.start(node_id)
                healing = asyncio.create_task(self._heal(node_id))
                self._healing.add(healing)
                healing.add_done_callback(self._healing.discard)

    async def _heal(self, node_id: int) -> None:
        try:
            async with asyncio.timeout(WHOLE_S):
                await self._cluster.is_whole(node_id)
        except TimeoutError:
            self.violations.append(f"controller {node_id} has not healed within {WHOLE_S:.0f} s")
            return
        self._scene.damaged.discard(node_id)
        self._scene.note_health()
        self._watch.note(f"{node_id} is whole")

    async def skew_clock(self) -> None:
        """The wall clock of one node is wrong for a while."""
        with self._scene.claimed() as victims:
            for node_id in victims:
                seconds = self._random.choice(SKEWS_S)
                self._scene.tell("skew", f"clock {seconds:+} s: {self._scene.named(victims)}")
                self._cluster.disks[node_id].skew(seconds)
                await self._scene.hold(self._random.uniform(1.0, 8.0))
                self._cluster.disks[node_id].skew(0.0)
                self._watch.note(f"clock is right: {node_id}")


def _both(sides: tuple[list[int], list[int]]) -> list[tuple[int, int]]:
    """All pairs with one node on each side, in both directions."""
    left, right = sides
    return [*product(left, right), *product(right, left)]
