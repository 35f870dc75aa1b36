"""Faults around controllers: abusive clients, wrong names, a log that is not read."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from tests.bench.attacker import HEALTH_LOADS, LOADS

if TYPE_CHECKING:
    from tests.chaos.scene import Scene

CONNECTIONS: Final = (1, 10, 100)


class Surroundings:
    """The faults of one run that lie outside of processes, disks and links."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._watch = scene.watch
        self._random = scene.random
        # Each load once before any comes again.
        self._loads: list[str] = []
        self._is_misled = False

    def _target(self) -> int:
        """Any node; half of the time the leader."""
        node_id = self._random.choice(list(self._cluster.nodes))
        leads = self._random.random() < 0.5
        return self._watch.leader if leads and self._watch.leader is not None else node_id

    async def abuse(self) -> None:
        """A client asks for too much, says nothing, or lies, in every way that it can."""
        node = self._cluster.nodes[self._random.choice(list(self._cluster.nodes))]
        seconds, seed = self._random.uniform(1.0, 5.0), self._random.randrange(1 << 30)
        text = f"an abusive client: {self._scene.named([node.node_id])}"
        self._scene.tell("abuse", text)
        await self._run("tests.chaos.abusive_client", node.host, node.port, seconds, seed)

    async def flood(self) -> None:
        """A client with an address of its own runs one of the loads of the bench for fairness."""
        if not self._loads:
            self._loads = list(LOADS)
            self._random.shuffle(self._loads)
        load = self._loads.pop()
        connections = self._random.choice(CONNECTIONS)
        seconds = self._random.uniform(1.0, 5.0)
        node = self._cluster.nodes[self._target()]
        port = node.health_port if load in HEALTH_LOADS else node.port
        text = f"{load} on {connections} connections: {self._scene.named([node.node_id])}"
        self._scene.tell("flood", text)
        options = ("--connections", connections, "--seconds", seconds)
        source = ("--source", self._cluster.network.guest)
        await self._run("tests.bench.attacker", load, node.host, port, *options, *source)

    async def _run(self, module: str, *arguments: object) -> None:
        """Run a client to its end, which it comes to by itself."""
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *map(str, arguments)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, stderr = await client.communicate()
        if client.returncode != 0:
            words = f"the client {module} failed with {client.returncode}"
            self._scene.violations.append(f"{words}: {stderr.decode()[-500:]}")
        self._watch.note("the abusive client is gone")

    async def mislead(self) -> None:
        """Let names resolve to other members for a while: one node's for all others, or all names.

        One node's process ends and comes back in that time, as it does when its pod has a new
        address that DNS does not know yet. Connections that were there before stay.
        """
        if self._is_misled:
            return
        self._is_misled = True
        with self._scene.claimed() as victims:
            for node_id in victims:
                if self._random.random() < 0.5:
                    await self._mislead_about(node_id)
                else:
                    await self._turn_names(node_id)
        self._is_misled = False

    async def _mislead_about(self, node_id: int) -> None:
        """Let one node's name resolve to another member, so that no peer finds it."""
        others = [i for i in self._cluster.nodes if i != node_id]
        to = self._random.choice(others)
        text = f"the name of {self._scene.named([node_id])} leads to {to}"
        await self._restart_with(
            node_id, {i: {node_id: to} for i in others}, text, {(i, node_id) for i in others}
        )

    async def _turn_names(self, node_id: int) -> None:
        """Each name leads all nodes to the next member."""
        nodes = list(self._cluster.nodes)
        turned = dict(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
        text = f"each name leads to the next member: {self._scene.named([node_id])} restarts"
        links = {(a, b) for a in nodes for b in nodes if a != b}
        await self._restart_with(node_id, dict.fromkeys(nodes, turned), text, links)

    async def _restart_with(
        self,
        node_id: int,
        wrong: dict[int, dict[int, int]],
        text: str,
        links: set[tuple[int, int]],
    ) -> None:
        """Restart a node while names are wrong, hold that, and have them right again."""
        self._scene.tell("names", text)
        self._scene.down(node_id)
        self._scene.block("names", links)
        self._cluster.mislead(wrong)
        await self._cluster.kill(node_id)
        await self._scene.start(node_id)
        await self._scene.hold(self._random.uniform(1.0, 8.0))
        self._cluster.set_names_right()
        self._scene.block("names", ())
        self._watch.note("names are right again")

    async def stop_reading(self) -> None:
        """Suspend the reader of one node's stderr for a while, with the pipe full."""
        with self._scene.claimed() as victims:
            for node_id in victims:
                text = f"stderr is not read: {self._scene.named(victims)}"
                self._scene.tell("stderr", text)
                self._cluster.stop_reading(node_id)
                await self._scene.hold(self._random.uniform(1.0, 8.0))
                self._cluster.read_again(node_id)
                self._watch.note(f"stderr is read again: {node_id}")
