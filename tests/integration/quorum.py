"""A quorum of real processes on free loopback ports, to be killed, paused, wiped and looked into.

Every process is started here and ended here, by its pid. Events are awaited by asking the quorum
again until they have happened or a deadline has passed; the error then shows the last answers.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from quorate.cli.local_quorum import (
    METRICS_PORT_STEP,
    NodePlan,
    check_ports,
    format_node,
    open_quorum,
    prepare,
)
from quorate.cli.output import CommandError
from quorate.client.controller_calls import OutcomeUnknownError
from quorate.client.controller_client import ControllerClient
from quorate.client.fan_out import ask_all
from quorate.controller.topics.messages import (
    CreateTopics,
    CreateTopicsReply,
    DescribeTopics,
    DescribeTopicsReply,
    ListTopics,
    ListTopicsReply,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import DirectoryId, NodeId
from quorate.rpc.health import READINESS
from quorate.settings.transport import TRANSPORT
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.random_ids import draw_uuid
from tests.integration.disks import committed_batches, log_end, log_start
from tests.integration.transports import chosen
from tests.ports import OF_QUORUMS

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from quorate.cli.local_quorum import LocalQuorum
    from quorate.controller.topics.messages import DescribedTopic
    from quorate.raft.messages import DescribeQuorumResponse

DEADLINE_S: Final = 120.0
SERVING: Final = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
POLL_S: Final = 0.05
# A suspended controller is passed over after this; a slow one has answered.
DESCRIBE_S: Final = 2.0
BROKER_IDS: Final = "1-6"
OBSERVER_ID: Final = 50

# Elections in well under a second; snapshots and segments small only where a test asks for them.
FAST: Final = {
    "controller.quorum.election.timeout.ms": "400",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.election.backoff.max.ms": "300",
    # For who ends in order the machine may be busy with others who do.
    "shutdown.timeout.ms": "5000",
}
# For all that say who leads: a machine that hangs for seconds makes no election. A leader
# that dies is replaced as fast, because its port refuses connections.
STEADY: Final = FAST | {"controller.quorum.fetch.timeout.ms": "6000"}
SMALL_LOG: Final = {
    "metadata.log.segment.bytes": "16384",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.retention.bytes": "16384",
}


class Controllers:
    """Processes of formatted nodes. An async context manager."""

    def __init__(self, nodes: Sequence[NodePlan]) -> None:
        self.nodes: dict[int, NodePlan] = {node.node_id: node for node in nodes}
        self.bootstrap_servers = ",".join(f"{host}:{port}" for host, port in self._addresses())
        self.processes: dict[int, Process] = {}
        self.client = ControllerClient(self._addresses(), transport=chosen())
        self._brokers: Process | None = None

    def _addresses(self) -> list[tuple[str, int]]:
        return [node.address for node in self.nodes.values()]

    async def __aenter__(self) -> Self:
        try:
            await asyncio.gather(*(self.start(node_id) for node_id in self.nodes))
            await self.everybody_fetches()
        except BaseException as error:
            # What was not entered is not left either.
            await self.__aexit__(type(error), error, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self._outputs())
        await self.client.close()
        if self._brokers is not None:
            await _end(self._brokers)
        for process in list(self.processes.values()):
            await _end(process)

    # --- processes --------------------------------------------------------------------------------

    async def start(self, node_id: int) -> None:
        """Start one node's process; returns before it answers."""
        node = self.nodes[node_id]
        with node.output_path.open("ab") as output:
            self.processes[node_id] = await self.spawn(node, output.fileno())

    async def spawn(self, node: NodePlan, output: int) -> Process:
        """A node's process, which writes to that descriptor."""
        return await asyncio.create_subprocess_exec(
            *self.command(node), stdout=output, stderr=output, env=self.environment(node)
        )

    def command(self, node: NodePlan) -> list[str]:
        """The command that runs a node."""
        module = ["-m", "quorate.server"]
        return [sys.executable, *module, "--config", str(node.properties_path)]

    def environment(self, node: NodePlan) -> dict[str, str]:
        """The environment of a node; a crash of the interpreter says where it was."""
        del node
        return {**os.environ, "PYTHONFAULTHANDLER": "1"}

    def signal(self, node_id: int, number: signal.Signals) -> None:
        """Send a signal to one node's process, which stays one of ours."""
        self.processes[node_id].send_signal(number)

    async def is_ready(self, node_id: int) -> bool | None:
        """True when a node says that it is ready, None when it does not answer."""
        node = self.nodes[node_id]
        async with grpc.aio.insecure_channel(f"{node.host}:{node.health_port}") as channel:
            request = health_pb2.HealthCheckRequest(service=READINESS)
            try:
                answer = await health_pb2_grpc.HealthStub(channel).Check(
                    request, timeout=DEADLINE_S
                )
            except grpc.aio.AioRpcError:
                return None
        assert answer.status in (SERVING, NOT_SERVING)
        return bool(answer.status == SERVING)

    async def kill(self, *node_ids: int) -> None:
        """kill -9, and wait until they are gone."""
        # Out of the list first: watchers of it see no process that ended by itself.
        victims = [self.processes.pop(node_id) for node_id in node_ids]
        for process in victims:
            process.kill()
        for process in victims:
            await process.wait()

    async def stop(self, *node_ids: int) -> None:
        """SIGTERM; every process has to end with status 0."""
        for node_id in node_ids:
            self.signal(node_id, signal.SIGTERM)
        for node_id in node_ids:
            process = self.processes.pop(node_id)
            async with asyncio.timeout(DEADLINE_S):
                assert await process.wait() == 0, self._outputs()

    async def register_brokers(self) -> None:
        """Stand-ins for brokers, alive for the rest of the test."""
        self._brokers = await self.spawn_cli("brokers", "register", "--ids", BROKER_IDS)
        assert self._brokers.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            line = await self._brokers.stdout.readline()
        assert line.startswith(b"Registered broker"), self._outputs()

    def client_command(self) -> list[str]:
        """The command line without its arguments."""
        return [sys.executable, "-m", "quorate.cli.main"]

    async def spawn_cli(self, *arguments: str) -> Process:
        """The command line against this quorum, stdout and stderr in pipes."""
        command, *rest = arguments
        return await asyncio.create_subprocess_exec(
            *self.client_command(),
            command,
            "--bootstrap-controller",
            self.bootstrap_servers,
            "--command-config",
            str(self._client_properties()),
            *rest,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    def _client_properties(self) -> Path:
        """The file that says who speaks for a command."""
        path = next(iter(self.nodes.values())).directory.parent / "client.properties"
        path.write_text(f"{TRANSPORT}={chosen()}\n", encoding="utf-8")
        return path

    async def cli(self, *arguments: str) -> str:
        """Run a command against the quorum to its end; stdout. It has to succeed."""
        return await self._finish(await self.spawn_cli(*arguments), arguments)

    async def try_cli(self, *arguments: str) -> tuple[int | None, str, str]:
        """The same for one that may fail: exit status, stdout and stderr."""
        return await self._ended(await self.spawn_cli(*arguments))

    async def cli_offline(self, *arguments: str) -> str:
        """The same for a command that asks no controller."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "quorate.cli.main",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        return await self._finish(process, arguments)

    async def _finish(self, process: Process, arguments: tuple[str, ...]) -> str:
        status, stdout, stderr = await self._ended(process)
        assert status == 0, f"{arguments}: {stderr}"
        return stdout

    async def _ended(self, process: Process) -> tuple[int | None, str, str]:
        async with asyncio.timeout(DEADLINE_S):
            stdout, stderr = await process.communicate()
        return process.returncode, stdout.decode(), stderr.decode()

    # --- what the quorum says ---------------------------------------------------------------------

    async def eventually(self, what: str, check: Callable[[], Awaitable[bool]]) -> None:
        """Wait until `check` holds; AssertionError names it after the deadline."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not await check():  # noqa: ASYNC110 - it happens in other processes
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            answers = {
                i: await self.client.try_describe_at(n.address, 1.0) for i, n in self.nodes.items()
            }
            raise AssertionError(f"never happened: {what}; {answers}\n{self._outputs()}") from None

    async def leader(self, *, above_epoch: int = 0) -> DescribeQuorumResponse:
        """The leader's description, once one of the running nodes leads an epoch above that."""
        found: list[DescribeQuorumResponse] = []

        def leads(answer: DescribeQuorumResponse | str) -> bool:
            return (
                not isinstance(answer, str)
                and answer.error is ErrorCode.NONE
                and answer.high_watermark is not None
                and answer.leader.epoch > above_epoch
            )

        async def check() -> bool:
            answers = await ask_all(
                [self.nodes[node_id].address for node_id in self.processes],
                lambda address: self.client.try_describe_at(address, DESCRIBE_S),
                is_enough=leads,
            )
            found.extend(x for x in answers.values() if not isinstance(x, str) and leads(x))
            return bool(found)

        await self.eventually(f"a leader above epoch {above_epoch}", check)
        return max(found, key=lambda answer: answer.leader.epoch)

    async def everybody_fetches(self) -> None:
        """Wait until all that run have asked the leader for its log.

        Who has only begun cannot be handed leadership, nor be counted on when a voter goes.
        """

        async def check() -> bool:
            leader = await self.leader()
            states = (*leader.voters, *leader.observers)
            fetching = {state.key.node_id for state in states if state.last_fetch_ms is not None}
            return fetching.issuperset(self.processes)

        await self.eventually("all that run fetch from the leader", check)

    async def leader_id(self) -> int:
        leader_id = (await self.leader()).leader.leader_id
        assert leader_id is not None
        return leader_id

    async def create(self, *topics: NewTopic) -> None:
        """Create topics; a retry that finds them there has succeeded."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    reply = await self.client.write(CreateTopics(topics))
                    break
                except OutcomeUnknownError:
                    await asyncio.sleep(POLL_S)
        assert isinstance(reply, CreateTopicsReply)
        fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        assert [topic for topic in reply.topics if topic.error not in fine] == []

    async def topics_at(self, node_id: int, min_offset: int) -> tuple[DescribedTopic, ...]:
        """Every topic as that node describes it, at that offset or later."""
        reply = await self.client.read(
            DescribeTopics(), min_offset=min_offset, controller=self.nodes[node_id].address
        )
        assert isinstance(reply, DescribeTopicsReply)
        return reply.topics

    # --- what is on disk --------------------------------------------------------------------------

    async def assert_logs_agree(self) -> int:
        """Every running node's log comes to equal the others' byte for byte, as far as committed.

        All of them have to follow the leader first. Returns the high watermark from before, at
        least: everything that was acknowledged lies below.
        """
        # A leader that was just elected knows no high watermark of its epoch: a current read waits.
        reply = await self.client.read(ListTopics(), current=True)
        assert isinstance(reply, ListTopicsReply)
        high_watermark = reply.offset

        async def all_follow() -> bool:
            leader = (await self.leader()).leader
            for node_id in self.processes:
                answer = await self.client.try_describe_at(self.nodes[node_id].address, DESCRIBE_S)
                if isinstance(answer, str) or answer.leader.leader_id != leader.leader_id:
                    return False
            return True

        async def logs_agree() -> bool:
            nodes = [self.nodes[node_id] for node_id in self.processes]
            if min(log_end(node) for node in nodes) < high_watermark:
                return False
            start = max(log_start(node) for node in nodes)
            logs = [committed_batches(node, start, high_watermark) for node in nodes]
            return all(log == logs[0] for log in logs)

        await self.eventually("every running node follows the leader", all_follow)
        await self.eventually(f"all logs agree below {high_watermark}", logs_agree)
        return high_watermark

    def _outputs(self) -> str:
        """The last lines that each process wrote."""
        texts = []
        for node in self.nodes.values():
            with suppress(FileNotFoundError):
                lines = node.output_path.read_text(errors="replace").splitlines()[-12:]
                texts.append(f"--- node {node.node_id}\n" + "\n".join(lines))
        return "\n".join(texts)


class Quorum(Controllers):
    """Controllers 1 to 3 on loopback ports, and an observer where a test wants one."""

    def __init__(
        self, root: Path, overrides: Mapping[str, str] | None = None, *, controllers: int = 3
    ) -> None:
        self.overrides = FAST | dict(overrides or {})
        self.plan = free_quorum(root, controllers)
        prepare(self.plan, self.overrides)
        super().__init__(self.plan.nodes)

    async def add_observer(self) -> None:
        """Format and start a node that fetches and does not vote; a wiped one gets a new id."""
        node = NodePlan(OBSERVER_ID, self.plan.base_port + OBSERVER_ID, self.plan.root / "observer")
        self.nodes[OBSERVER_ID] = node
        shutil.rmtree(node.directory, ignore_errors=True)
        node.directory.mkdir()
        properties = node.properties(self.plan.bootstrap_servers) | self.overrides
        lines = "".join(f"{key}={value}\n" for key, value in properties.items())
        node.properties_path.write_text(lines, encoding="utf-8")
        directory_id = DirectoryId(draw_uuid())
        meta = MetaProperties(NodeId(OBSERVER_ID), self.plan.cluster_id, directory_id)
        format_node(node.metadata_dir, meta, None)
        await self.start(OBSERVER_ID)


def free_quorum(root: Path, controllers: int = 3) -> LocalQuorum:
    """Controllers in `root`, on free ports."""
    choose = random.Random(os.getpid() ^ hash(str(root)))
    # Those of an observer's metrics are the highest.
    firsts = OF_QUORUMS[: -(METRICS_PORT_STEP + OBSERVER_ID + 1)]
    while True:
        quorum = open_quorum(root, controllers=controllers, base_port=choose.choice(firsts))
        with suppress(CommandError):
            check_ports(quorum)
            return quorum


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.communicate()
