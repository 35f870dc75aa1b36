"""Controllers as real processes, each in a namespace and on a disk of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from quorate.cli.local_quorum import LISTENER, NodePlan, format_node
from quorate.client.controller_client import ControllerClient
from quorate.records.ids import ClusterId, DirectoryId, NodeId, ReplicaKey, format_uuid
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.settings.transport import Transport
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.random_ids import draw_uuid
from tests.chaos import disks
from tests.chaos.disks import Disk, compile_shim
from tests.chaos.log_reader import LogReader
from tests.chaos.names import CLIENTS, Names, name_of
from tests.chaos.network import Network
from tests.integration.disks import is_healing
from tests.integration.quorum import DEADLINE_S, Controllers
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

PORT: Final = 9094
ANSWER_S: Final = 0.5
POLL_S: Final = 0.02
# Timeouts are those of `quorate up`. Segments and snapshots are small, so that both are made, read
# and cleaned up; the log itself is kept whole, so that what reads showed can be compared with it.
SETTINGS: Final = {
    "metrics.port": "-1",
    "metadata.log.segment.bytes": str(1 << 20),
    "metadata.log.max.record.bytes.between.snapshots": str(1 << 20),
}


class Cluster(Controllers):
    """`size` controllers below `root`. An async context manager that leaves nothing behind."""

    def __init__(
        self,
        root: Path,
        size: int,
        overrides: Mapping[str, str] | None = None,
        *,
        has_names: bool = False,
        has_log_readers: bool = False,
    ) -> None:
        """With names peers find each other by them; with readers output goes through pipes."""
        disks.sweep()
        root.mkdir(parents=True)
        self.root = root
        self.network = Network(range(1, size + 1))
        self.lives: dict[int, int] = dict.fromkeys(range(1, size + 1), 0)
        self.disks: dict[int, Disk] = {}
        self.client_transport = chosen()
        self._names: Names | None = None
        self._has_log_readers = has_log_readers
        self._log_readers: dict[int, LogReader] = {}
        try:
            if has_names:
                self._names = Names(root, self.network.nodes, self.network.told_addresses())
            plans = [
                NodePlan(i, PORT, root / str(i), self.network.address(i))
                for i in self.network.nodes
            ]
            super().__init__(plans)
            if has_names:
                # grpcio resolves names by itself, so that clients cannot have the right ones.
                self.client_transport = Transport.H2
                self.client = ControllerClient(self._addresses(), transport=Transport.H2)
            shim = compile_shim(root)
            for plan in plans:
                plan.directory.mkdir()
                self.disks[plan.node_id] = Disk(plan, shim)
            self._format(SETTINGS | dict(overrides or {}))
        except BaseException:
            self._take_down(is_failed=True)
            raise

    def _format(self, overrides: Mapping[str, str]) -> None:
        cluster_id = ClusterId(format_uuid(draw_uuid()))
        directory_ids = {i: DirectoryId(draw_uuid()) for i in self.nodes}
        voters = VoterSet.of(
            Voter(
                ReplicaKey(NodeId(i), directory_ids[i]),
                (Endpoint(LISTENER, self._told_host(i), PORT),),
            )
            for i in self.nodes
        )
        self._overrides = dict(overrides)
        for i, node in self.nodes.items():
            format_node(
                node.metadata_dir, MetaProperties(NodeId(i), cluster_id, directory_ids[i]), voters
            )

    def _told_host(self, node_id: int) -> str:
        """The address or the name that a node's peers use."""
        address = self.network.told_address(node_id)
        return address if self._names is None else name_of(address)

    def _configure(self, node: NodePlan) -> None:
        """A process that starts gets the present addresses of all; a running one keeps its own."""
        told = {i: f"{self._told_host(i)}:{PORT}" for i in self.nodes}
        properties = node.properties(",".join(told.values())) | {
            "listeners": f"{LISTENER}://:{PORT}",
            "advertised.listeners": f"{LISTENER}://{told[node.node_id]}",
            **self._overrides,
        }
        lines = "".join(f"{key}={value}\n" for key, value in properties.items())
        node.properties_path.write_text(lines, encoding="utf-8")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, _)
        finally:
            for reader in self._log_readers.values():
                await reader.end()
            self._take_down(is_failed=error is not None)

    def _take_down(self, *, is_failed: bool) -> None:
        for node_id, disk in self.disks.items():
            disk.close(keep=self.root / f"{node_id}-metadata" if is_failed else None)
        if self._names is not None:
            self._names.close()
        self.network.close()

    # --- processes --------------------------------------------------------------------------------

    def command(self, node: NodePlan) -> list[str]:
        """In its namespace; it dies with this process, whatever that dies of."""
        dying = ["setpriv", "--pdeathsig", "KILL"]
        names = [] if self._names is None else self._names.enter(node.node_id)
        return [*dying, *self.network.enter(node.node_id), *names, *super().command(node)]

    def client_command(self) -> list[str]:
        """With the right names."""
        names = [] if self._names is None else self._names.enter(CLIENTS)
        return [*names, *super().client_command()]

    def environment(self, node: NodePlan) -> dict[str, str]:
        """With the shim of its disk and clock."""
        return os.environ | self.disks[node.node_id].environment()

    async def start(self, node_id: int) -> None:
        """Start a node; its next life begins."""
        self.lives[node_id] += 1
        self._configure(self.nodes[node_id])
        await super().start(node_id)

    async def spawn(self, node: NodePlan, output: int) -> Process:
        """With a reader between the process and its file, where that is asked for."""
        if not self._has_log_readers:
            return await super().spawn(node, output)
        last = self._log_readers.pop(node.node_id, None)
        if last is not None:
            await last.end()
        reader = self._log_readers[node.node_id] = await LogReader.start(node.output_path)
        try:
            return await super().spawn(node, reader.output)
        finally:
            reader.handed_on()

    # --- surroundings -----------------------------------------------------------------------------

    def mislead(self, wrong: Mapping[int, Mapping[int, int]]) -> None:
        """From now on names lead these nodes elsewhere: for each node, others by whose name."""
        assert self._names is not None, "this cluster has no names"
        told = self.network.told_address
        for node_id, nodes in wrong.items():
            self._names.mislead(node_id, {told(right): told(to) for right, to in nodes.items()})

    def set_names_right(self) -> None:
        """From now on all names lead where they should."""
        assert self._names is not None, "this cluster has no names"
        for node_id in self.nodes:
            self._names.set_right(node_id)

    def stop_reading(self, node_id: int) -> None:
        """Stop the reader of a node's log until `read_again`."""
        self._log_readers[node_id].stand_still(self.processes[node_id].pid)

    def read_again(self, node_id: int) -> None:
        """Read the log that a node has written, and all that follows."""
        self._log_readers[node_id].go_on()

    # --- what happens to processes ----------------------------------------------------------------

    def pause(self, node_id: int) -> None:
        self.signal(node_id, signal.SIGSTOP)

    def go_on(self, node_id: int) -> None:
        if node_id in self.processes:
            self.signal(node_id, signal.SIGCONT)

    def ended(self) -> dict[int, int]:
        """Processes that ended by themselves, with their exit status."""
        return {
            node_id: process.returncode
            for node_id, process in self.processes.items()
            if process.returncode is not None
        }

    async def answers(self, node_id: int) -> None:
        """Wait until the node's listener answers. Raises TimeoutError, ProcessLookupError."""
        address = self.nodes[node_id].address
        async with asyncio.timeout(DEADLINE_S):
            while isinstance(await self.client.try_describe_at(address, ANSWER_S), str):
                process: Process | None = self.processes.get(node_id)
                if process is None or process.returncode is not None:
                    raise ProcessLookupError(f"controller {node_id} has ended")
                await asyncio.sleep(POLL_S)

    async def is_whole(self, node_id: int) -> None:
        """Wait until the node has fetched everything that damage took."""
        while is_healing(self.nodes[node_id]):  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(POLL_S)

    def tails(self) -> str:
        """The last lines of every node's output."""
        with suppress(OSError):
            return self._outputs()
        return ""
