"""A quorum of real processes whose voters are added and removed.

Node 1 is formatted as the only voter; nodes that come later have empty directories of their own and
join. Clients write all the time, and the responses that they got are kept.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

from quorate.cli.local_quorum import LISTENER, NodePlan, format_node
from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
)
from quorate.controller.topics.messages import (
    CreateTopics,
    CreateTopicsReply,
    ListTopics,
    ListTopicsReply,
    NewTopic,
)
from quorate.raft import messages as m
from quorate.records.batch import read_header
from quorate.records.control import KRaftVoters, control_records
from quorate.records.errors import ErrorCode
from quorate.records.ids import DirectoryId, Millis, NodeId, ReplicaKey, parse_uuid
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.storage.meta_properties import MetaProperties
from tests.integration.disks import committed_batches
from tests.integration.quorum import DEADLINE_S, FAST, POLL_S, Controllers, free_quorum

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

CHANGE_MS: Final = Millis(5000)
CALL_S: Final = 10.0
# A change is refused with these while something has to happen first.
PASSING: Final = (
    m.Reason.NOT_LEADER,
    m.Reason.LEADERSHIP_LOST,
    m.Reason.HIGH_WATERMARK_UNKNOWN,
    m.Reason.PENDING_VOTER_CHANGE,
    m.Reason.VOTER_LAGGING,
    m.Reason.VOTER_UNREACHABLE,
    m.Reason.NO_LIVE_MAJORITY,
    m.Reason.NOT_COMMITTED_IN_TIME,
)


class Members(Controllers):
    """Up to five controllers; the first is the quorum, the others join by the tests' hand."""

    def __init__(
        self, root: Path, overrides: Mapping[str, str] | None = None, *, voters: int = 1
    ) -> None:
        self.plan = free_quorum(root, 5)
        self.overrides = FAST | dict(overrides or {})
        self.plan.root.mkdir(parents=True, exist_ok=True)
        first = VoterSet.of(list(self.plan.voters)[:voters])
        for node, directory_id in zip(self.plan.nodes, self.plan.directory_ids, strict=True):
            node.directory.mkdir()
            properties = node.properties(self.plan.bootstrap_servers) | self.overrides
            lines = "".join(f"{key}={value}\n" for key, value in properties.items())
            node.properties_path.write_text(lines, encoding="utf-8")
            is_voter = node.node_id <= voters
            meta = MetaProperties(NodeId(node.node_id), self.plan.cluster_id, directory_id)
            format_node(node.metadata_dir, meta, first if is_voter else None)
        super().__init__(self.plan.nodes[:voters])
        self.all_nodes = {node.node_id: node for node in self.plan.nodes}

    def _addresses(self) -> list[tuple[str, int]]:
        return [node.address for node in self.plan.nodes]

    # --- nodes ------------------------------------------------------------------------------------

    async def bring_up(self, node_id: int) -> None:
        """Start a node, a new one too."""
        self.nodes[node_id] = self.all_nodes[node_id]
        await self.start(node_id)

    async def follower_id(self) -> int:
        """A voter that does not lead."""
        quorum = await self.leader()
        ids = [int(voter.key.node_id) for voter in quorum.voters]
        return next(node_id for node_id in ids if node_id != quorum.leader.leader_id)

    async def wipe(self, node_id: int) -> None:
        """Lose a stopped node's disk, and format the new one as an init container would."""
        node = self.all_nodes[node_id]
        shutil.rmtree(node.metadata_dir)
        await self.cli_offline(
            "storage",
            "format",
            "--cluster-id",
            self.plan.cluster_id,
            "--config",
            str(node.properties_path),
            "--no-initial-controllers",
            "--ignore-formatted",
        )

    def key(self, node_id: int) -> ReplicaKey:
        """A node's key as its meta.properties has it now."""
        return ReplicaKey(NodeId(node_id), directory_of(self.all_nodes[node_id]))

    def voter(self, node_id: int) -> Voter:
        node = self.all_nodes[node_id]
        return Voter(self.key(node_id), (Endpoint(LISTENER, node.host, node.port),))

    # --- changes ----------------------------------------------------------------------------------

    async def change(self, request: m.MembershipRequest) -> m.MembershipResponse:
        """Ask the leader until it neither asks to wait nor has gone; its last answer."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            leader_id = await self.leader_id()
            try:
                answer = await self.client.change_on(
                    self.all_nodes[leader_id].address, request, CALL_S
                )
            except (QuorumUnavailableError, OutcomeUnknownError, RequestRefusedError):
                answer = None
            if answer is not None and answer.reason not in PASSING:
                return answer
            assert time.monotonic() < deadline, f"{request} is not done: {answer}"
            await asyncio.sleep(POLL_S)

    async def add(self, node_id: int) -> None:
        """Make a running observer a voter; it is fine if it has become one before."""
        voter = self.voter(node_id)
        request = m.AddRaftVoterRequest(
            cluster_id=self.plan.cluster_id,
            voter=voter.key,
            listeners=voter.endpoints,
            timeout_ms=CHANGE_MS,
        )
        answer = await self.change(request)
        assert answer.error in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER), answer

    async def remove(self, node_id: int) -> None:
        """Take a voter out; one that is out already is fine."""
        request = m.RemoveRaftVoterRequest(
            cluster_id=self.plan.cluster_id, voter=self.key(node_id), timeout_ms=CHANGE_MS
        )
        answer = await self.change(request)
        assert answer.error in (ErrorCode.NONE, ErrorCode.VOTER_NOT_FOUND), answer

    async def voters_become(self, *node_ids: int) -> None:
        """Wait until the leader's committed set is of these nodes, under their present keys."""
        expected = [self.key(node_id) for node_id in node_ids]

        async def check() -> bool:
            quorum = await self.leader()
            keys = [voter.key for voter in quorum.voters]
            return keys == expected and quorum.uncommitted_voter_change is None

        await self.eventually(f"the voters are {node_ids}", check)

    async def ready_to_change(self, node_id: int, *, is_voter: bool) -> None:
        """Wait until nothing but a kill could keep the leader from adding or removing a node."""

        async def check() -> bool:
            quorum = await self.leader()
            states = quorum.voters if is_voter else quorum.observers
            return any(
                state.key == self.key(node_id)
                and state.obstacle is None
                and state.last_fetch_ms is not None
                for state in states
            )

        await self.eventually(f"node {node_id} may be changed", check)

    async def settled(self) -> m.DescribeQuorumResponse:
        """The quorum once a leader has committed in its epoch and no change is pending."""
        found: list[m.DescribeQuorumResponse] = []

        async def check() -> bool:
            quorum = await self.leader()
            found.append(quorum)
            return quorum.uncommitted_voter_change is None

        await self.eventually("no change is pending", check)
        return found[-1]

    def sets_in_log(self, node_id: int) -> list[list[int]]:
        """The node ids of every voter set in a node's log, oldest first."""
        node = self.all_nodes[node_id]
        return [
            [int(voter.key.node_id) for voter in record.voters]
            for _, data in sorted(committed_batches(node, 0, 1 << 60).items())
            for record in control_records(data, 0, read_header(data))
            if isinstance(record, KRaftVoters)
        ]


class Load:
    """A client that creates topics, one after another, and remembers the responses."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self.acknowledged: list[str] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        number = 0
        while True:
            number += 1
            name = f"topic-{number}"
            try:
                reply = await self.members.client.write(CreateTopics((NewTopic(name),)))
            except (OutcomeUnknownError, QuorumUnavailableError, RequestRefusedError):
                continue
            assert isinstance(reply, CreateTopicsReply)
            if reply.topics[0].error is ErrorCode.NONE:
                self.acknowledged.append(name)

    async def goes_on(self, count: int = 5) -> None:
        """Wait until that many more writes were acknowledged."""
        goal = len(self.acknowledged) + count

        async def check() -> bool:
            assert self._task is not None
            if self._task.done():
                self._task.result()
            return len(self.acknowledged) >= goal

        await self.members.eventually(f"{count} more writes", check)

    async def nothing_is_lost(self) -> None:
        """Everything that was acknowledged is there, by a current read."""
        reply = await self.members.client.read(ListTopics(), current=True)
        assert isinstance(reply, ListTopicsReply)
        assert set(self.acknowledged) <= {topic.name for topic in reply.topics}
        assert self.acknowledged


@asynccontextmanager
async def under_load(root: Path) -> AsyncIterator[tuple[Members, Load]]:
    """Three voters that take writes; at the end all that was acknowledged is there."""
    async with Members(root, voters=3) as members:
        await members.register_brokers()
        async with Load(members) as load:
            await load.goes_on()
            yield members, load
        await load.nothing_is_lost()


def directory_of(node: NodePlan) -> DirectoryId:
    """The directory id in a node's meta.properties."""
    text = (node.metadata_dir / "meta.properties").read_text(encoding="utf-8")
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return DirectoryId(parse_uuid(fields["directory.id"]))
