"""What goes wrong, drawn from a seed: processes, links, disks, clocks; and that all of it ends.

Two lanes run beside each other, each doing one thing at a time to nodes that the other leaves
alone. Some of it takes the majority away, which costs commits and must not cost data. Only damage
is bounded: bytes are flipped on a node only while all damaged nodes together, from the flip until
they have healed, are a minority. With more, committed records could be on no whole disk (the same
bound as that of the simulator's chaos). A killed process keeps what it wrote, so kills need none.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Final

from tests.chaos.liveness import SECOND, Health
from tests.integration.disks import flip, segments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from random import Random

    from tests.chaos.cluster import Cluster
    from tests.chaos.watch import Watch

WHOLE_S: Final = 60.0
# From the last commit of one leader to the first of the next a voter flushes five times in a row.
SLUGGISH_MS: Final = 100.0
# Rule 24: 1.5 fetch timeouts, which are two seconds where nothing else is set.
DISK_DEADLINE_S: Final = 3.0
NEARLY_FULL_BYTES: Final = 16 << 20
SKEWS_S: Final = (-86_400.0, -3600.0, -5.0, -0.2, 0.2, 5.0, 3600.0, 31_536_000.0)
# Seconds between the end of one fault and the next, in each lane on average.
LANE_PAUSES_S: Final = (1.5, 6.0)


class Nemesis:
    """The faults of one run. `violations` are nodes that did not come back."""

    def __init__(self, cluster: Cluster, watch: Watch, random: Random) -> None:
        self.health = Health(len(cluster.nodes), set(cluster.nodes))
        self.violations: list[str] = []
        self.counts: dict[str, int] = {}
        self._cluster = cluster
        self._watch = watch
        self._random = random
        self._busy: set[int] = set()
        self._stopped: set[int] = set()
        self._damaged: set[int] = set()
        self._healing: set[asyncio.Task[None]] = set()
        self._is_cut = False
        self._until = 0
        self._faults: dict[Callable[[], Awaitable[None]], int] = {
            self.kill: 4,
            self.move: 2,
            self.pause: 3,
            self.cut: 5,
            self.slow_disk: 2,
            self.hang_disk: 2,
            self.fill_disk: 2,
            self.flip_byte: 2,
            self.skew_clock: 1,
            self.abuse: 2,
        }

    async def run(self, seconds: float) -> None:
        """Do harm for so long, then wait until all of it is taken back."""
        self._until = time.monotonic_ns() + int(seconds * SECOND)
        self._note_health()
        self._watch.led = self._note_health
        await asyncio.gather(*(self._lane(pause_s) for pause_s in LANE_PAUSES_S))
        await asyncio.gather(*self._healing)

    async def _lane(self, pause_s: float) -> None:
        while True:
            await self._hold(self._random.expovariate(1 / pause_s))
            if time.monotonic_ns() >= self._until:
                return
            faults = list(self._faults)
            (fault,) = self._random.choices(faults, [self._faults[f] for f in faults])
            await fault()

    async def _hold(self, seconds: float) -> None:
        left = (self._until - time.monotonic_ns()) / SECOND
        await asyncio.sleep(max(0.0, min(seconds, left)))

    @contextmanager
    def _claimed(self, *, how_many: int = 1, but: int | None = None) -> Iterator[list[int]]:
        """Nodes that the other lane leaves alone; half of the time the leader is among them."""
        free = [i for i in self._cluster.nodes if i not in self._busy and i != but]
        chosen = self._random.sample(free, min(how_many, len(free)))
        leader = self._watch.leader
        if leader in free and leader not in chosen and self._random.random() < 0.4:
            chosen[0] = leader
        self._busy.update(chosen)
        try:
            yield sorted(chosen)
        finally:
            self._busy.difference_update(chosen)

    def _tell(self, kind: str, text: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self._watch.note(text)

    def _named(self, nodes: Sequence[int]) -> str:
        names = [f"{i} (leader)" if i == self._watch.leader else str(i) for i in nodes]
        return ", ".join(names)

    # --- health -----------------------------------------------------------------------------------

    def _note_health(self) -> None:
        """Up is who was not stopped and is not damaged."""
        self.health.up = set(self._cluster.nodes) - self._stopped - self._damaged
        self.health.leader = self._watch.leader
        self.health.note(time.monotonic_ns())

    def _down(self, *nodes: int) -> None:
        self._stopped.update(nodes)
        self._note_health()

    def _up(self, *nodes: int) -> None:
        self._stopped.difference_update(nodes)
        self._note_health()

    # --- processes --------------------------------------------------------------------------------

    async def _start(self, node_id: int) -> None:
        """Up means that it answers, and that its log is whole."""
        await self._cluster.start(node_id)
        try:
            await self._cluster.answers(node_id)
        except (TimeoutError, ProcessLookupError) as error:
            self._watch.note(f"{node_id} did not come back: {error!r}")
            self.violations.append(f"controller {node_id} did not come back: {error!r}")
        else:
            self._up(node_id)
            self._watch.note(f"{node_id} is up")

    async def kill(self) -> None:
        """kill -9 of one, some or all, and a restart."""
        size = len(self._cluster.nodes)
        how_many = self._random.choices((1, size // 2, size // 2 + 1, size), (8, 2, 1, 1))[0]
        with self._claimed(how_many=how_many) as victims:
            self._tell("kill", f"kill -9: {self._named(victims)}")
            self._down(*victims)
            await self._cluster.kill(*victims)
            await self._hold(self._random.uniform(0.0, 3.0))
            await asyncio.gather(*(self._start(node_id) for node_id in victims))

    async def move(self) -> None:
        """One comes back at another address, which nobody was told before."""
        with self._claimed() as victims:
            for node_id in victims:
                self._down(node_id)
                await self._cluster.kill(node_id)
                self._tell("move", f"moves to another address: {self._named(victims)}")
                await asyncio.to_thread(self._cluster.network.move, node_id)
                await self._hold(self._random.uniform(0.0, 2.0))
                await self._start(node_id)

    async def abuse(self) -> None:
        """A client asks for too much, says nothing, or lies, in every way that it can."""
        node = self._cluster.nodes[self._random.choice(list(self._cluster.nodes))]
        seconds, seed = self._random.uniform(1.0, 5.0), self._random.randrange(1 << 30)
        self._tell("abuse", f"an abusive client: {self._named([node.node_id])}")
        abuser = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.chaos.abuse", node.host, str(node.port)),
            *(str(seconds), str(seed)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, stderr = await abuser.communicate()
        if abuser.returncode != 0:
            self.violations.append(f"the abusive client failed: {stderr.decode()[-500:]}")
        self._watch.note("the abusive client is gone")

    async def pause(self) -> None:
        """SIGSTOP, and SIGCONT later."""
        with self._claimed() as victims:
            self._tell("pause", f"SIGSTOP: {self._named(victims)}")
            self._down(*victims)
            for node_id in victims:
                self._cluster.pause(node_id)
            await self._hold(self._random.uniform(0.3, 6.0))
            self._watch.note(f"SIGCONT: {self._named(victims)}")
            for node_id in victims:
                self._cluster.go_on(node_id)
            self._up(*victims)

    # --- links ------------------------------------------------------------------------------------

    async def cut(self) -> None:
        """Links are cut in a drawn shape, one way or both, and mended together."""
        if self._is_cut:
            return
        self._is_cut = True
        shape, pairs = self._draw_cut()
        self._tell("cut", f"cut: {shape}")
        self.health.blocked = set(pairs)
        self._note_health()
        await asyncio.to_thread(self._cluster.network.cut, pairs)
        await self._hold(self._random.uniform(1.0, 8.0))
        await asyncio.to_thread(self._cluster.network.heal)
        self.health.blocked = set()
        self._note_health()
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
        who = self._named([one])
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
        with self._claimed() as victims:
            for node_id in victims:
                delay_ms = self._random.uniform(20.0, 300.0)
                if delay_ms > SLUGGISH_MS:
                    self._down(node_id)
                self._tell("slow", f"flushes take {delay_ms:.0f} ms more: {self._named(victims)}")
                self._cluster.disks[node_id].slow_down(delay_ms)
                await self._hold(self._random.uniform(2.0, 6.0))
                self._cluster.disks[node_id].slow_down(0.0)
                self._up(node_id)
                self._watch.note(f"flushes are fast again: {node_id}")

    async def hang_disk(self) -> None:
        """No flush of one node returns for a while; the process has to come back by itself."""
        with self._claimed() as victims:
            for node_id in victims:
                if node_id == self._watch.leader:
                    until = time.monotonic_ns() + int(DISK_DEADLINE_S * SECOND)
                    self.health.hanging = node_id, until
                self._down(node_id)
                self._tell("hang", f"flushes do not return: {self._named(victims)}")
                self._cluster.disks[node_id].hang()
                seconds = self._random.uniform(2.0, 8.0)
                await self._hold(min(seconds, DISK_DEADLINE_S))
                self._note_health()
                await self._hold(max(0.0, seconds - DISK_DEADLINE_S))
                self._cluster.disks[node_id].release()
                self.health.hanging = None
                self._up(node_id)
                self._watch.note(f"flushes return again: {node_id}")

    async def fill_disk(self) -> None:
        """No space at all until it is given back and the process restarted; or only a little."""
        is_full = self._random.random() < 0.7
        with self._claimed() as victims:
            for node_id in victims:
                disk = self._cluster.disks[node_id]
                word = "full" if is_full else "nearly full"
                self._tell("fill", f"the disk is {word}: {self._named(victims)}")
                if is_full:
                    self._down(node_id)
                    await asyncio.to_thread(disk.fill)
                else:
                    await asyncio.to_thread(disk.fill, leave_bytes=NEARLY_FULL_BYTES)
                await self._hold(self._random.uniform(2.0, 8.0))
                disk.drain()
                self._watch.note(f"the disk has space again: {node_id}")
                if is_full:
                    await self._cluster.kill(node_id)
                    await self._start(node_id)

    async def flip_byte(self) -> None:
        """A bit of a stopped follower's log flips."""
        if len(self._damaged) >= (len(self._cluster.nodes) - 1) // 2:
            return
        with self._claimed(but=self._watch.leader) as victims:
            for node_id in victims:
                if node_id in self._damaged:
                    continue
                self._damaged.add(node_id)
                self._down(node_id)
                self._watch.archive()
                await self._cluster.kill(node_id)
                files = [p for p in segments(self._cluster.nodes[node_id]) if p.stat().st_size]
                path = self._random.choice(files)
                position = self._random.randrange(path.stat().st_size)
                self._tell("flip", f"byte {position} of {path.name} flips: {node_id}")
                flip(path, position)
                await self._hold(self._random.uniform(0.0, 2.0))
                await self._start(node_id)
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
        self._damaged.discard(node_id)
        self._note_health()
        self._watch.note(f"{node_id} is whole")

    async def skew_clock(self) -> None:
        """The wall clock of one node is wrong for a while."""
        with self._claimed() as victims:
            for node_id in victims:
                seconds = self._random.choice(SKEWS_S)
                self._tell("skew", f"clock {seconds:+} s: {self._named(victims)}")
                self._cluster.disks[node_id].skew(seconds)
                await self._hold(self._random.uniform(1.0, 8.0))
                self._cluster.disks[node_id].skew(0.0)
                self._watch.note(f"clock is right: {node_id}")


def _both(sides: tuple[list[int], list[int]]) -> list[tuple[int, int]]:
    """All pairs with one node on each side, in both directions."""
    left, right = sides
    return [*product(left, right), *product(right, left)]
