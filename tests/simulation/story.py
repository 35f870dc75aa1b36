"""Transcripts that tell a story: commands to a small quorum, and what its replicas then do and say.

A file is made of blocks: comment lines, command lines, `----`, the output, a blank line. Nothing is
drawn: messages take a millisecond, a flush takes one, and a replica's election timeout is longer
the higher its id, so that who campaigns first can be read off.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from quorate.raft import api, messages
from quorate.records.ids import DirectoryId, Millis, NodeId
from quorate.sim.cases.field_codec import with_fields
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.cluster import Cluster
from quorate.sim.engine.disk import Survival
from quorate.sim.engine.network import NetworkOptions
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.engine.quorum_setup import build, replace_disk
from quorate.sim.engine.storage import LOG_DIR
from quorate.sim.sim_options import ClientOptions, DiskOptions, WorldOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.trace_events import TraceEvent
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.transcript import Line

OPTIONS: Final = WorldOptions(
    network=NetworkOptions(delay_us=1000),
    disks=DiskOptions(fsync_us=1000, survivals=(Survival.NOTHING,)),
    clients=ClientOptions(record_bytes=40, records_max=1),
)
LIMIT_MS: Final = 60_000
LIMIT: Final = Millis(5000)
RULE: Final = "----"


class FixedDraw:
    """Jitter without chance: every draw of one replica is the same."""

    def __init__(self, draw: float) -> None:
        self.draw = draw

    def random(self) -> float:
        return self.draw


@dataclass(slots=True)
class Block:
    """Comments and commands as they stand in the file, and the output below the rule."""

    head: list[str]
    output: list[str] = field(default_factory=list)

    @property
    def commands(self) -> list[str]:
        return [line for line in self.head if line and not line.startswith("#")]

    def text(self) -> str:
        return "\n".join([*self.head, RULE, *self.output])


def parse(text: str) -> list[Block]:
    """The blocks of a transcript file; an output ends at the first blank line."""
    blocks: list[Block] = []
    lines = deque(text.splitlines())
    while lines:
        head: list[str] = []
        while lines and lines[0] != RULE:
            head.append(lines.popleft())
        if not lines:
            raise ValueError(f"commands without an output: {head}")
        lines.popleft()
        output: list[str] = []
        while lines and lines[0]:
            output.append(lines.popleft())
        while lines and not lines[0]:
            lines.popleft()
        blocks.append(Block(head, output))
    return blocks


def play(blocks: list[Block]) -> str:
    """Run the commands of all blocks in one world; the file as it should read."""
    story = Story()
    return (
        "\n\n".join(Block(block.head, story.tell(block.commands)).text() for block in blocks) + "\n"
    )


class Story:
    """One quorum and the commands that can be given to it."""

    def __init__(self) -> None:
        self.cluster = Cluster(0, OPTIONS, keep=1 << 20)
        self.operations = 0
        self.in_words = 0
        self.shows_all = False
        self.said: dict[NodeId | None, tuple[TraceEvent, ...]] = {}

    def tell(self, commands: list[str]) -> list[str]:
        """Carry out the commands; return what happens as lines."""
        said: list[str] = []
        for command in commands:
            name, *words = command.split()
            given = {word.partition("=")[0]: word.partition("=")[2] for word in words}
            self.cluster.transcript.lines.clear()
            answer = getattr(self, f"do_{name.replace('-', '_')}")(given)
            for line in self.cluster.transcript.lines:
                said.extend(self._shown(line))
            said.extend([answer] if isinstance(answer, str) else answer or [])
        return said or ["ok"]

    def _shown(self, line: Line) -> list[str]:
        """Steps in which a replica has something new to say; of their effects those that matter."""
        update = line.update
        if update is not None and not self.shows_all:
            if not update.trace:
                return []
            effects = tuple(effect for effect in update.effects if not _is_routine(effect))
            if not effects and self.said.get(line.node) == update.trace:
                return []
            self.said[line.node] = update.trace
            line = line._replace(update=replace(update, effects=effects))
        return str(line).splitlines()

    def node(self, given: dict[str, str]) -> SimulatedNode:
        """The node whose number is the command's first word."""
        return self.cluster.nodes[NodeId(int(next(iter(given))))]

    # --- a quorum ---------------------------------------------------------------------------------

    def do_start(self, given: dict[str, str]) -> None:
        """`start voters=3 [observers=1] [snapshot-every=10] [kraft-version=0] [auto-join]`.

        Nodes 1 to n with empty disks. `auto-join` lets observers join by themselves.
        """
        is_small = "snapshot-every" in given
        options = with_fields(
            OPTIONS,
            voters=int(given["voters"]),
            observers=int(given.get("observers", "0")),
            kraft_version=int(given.get("kraft-version", "1")),
            auto_join="auto-join" in given,
            snapshot_every_records=int(given.get("snapshot-every", "0")),
            segment_bytes=1024 if is_small else OPTIONS.log.segment_bytes,
            retention_bytes=1000 if is_small else OPTIONS.log.retention_bytes,
        )
        self.shows_all = False
        self.in_words = 0
        self.cluster = Cluster(0, options, keep=1 << 20)
        build(self.cluster, lambda number: FixedDraw(number / 10))

    def do_quorum(self, given: dict[str, str]) -> str:
        """`quorum ...` as `start`, and then until there is a leader that all voters follow."""
        self.do_start(given)
        self._until(lambda: is_caught_up(self.cluster))
        self.cluster.transcript.lines.clear()
        leader = self.cluster.leader()
        assert leader is not None
        return f"leader {leader.node_id} in epoch {leader.led_epoch}, log ends at {leader.log.end}"

    def do_show(self, given: dict[str, str]) -> None:
        """`show all` from here on: every step of every replica; `show notes`: as before."""
        self.shows_all = "all" in given

    def do_state(self, given: dict[str, str]) -> list[str]:
        """`state`: one line a node."""
        del given
        return [self._state(node) for node in self.cluster.nodes.values()]

    def _state(self, node: SimulatedNode) -> str:
        progress = node.progress
        if progress is None:
            return f"{node.node_id} {node.status.name.lower()}, log ends at {node.log.end}"
        voters = ",".join(str(voter.key.node_id) for voter in node.log.voters)
        healing = ", healing" if node.is_healing else ""
        return (
            f"{node.node_id} {progress.role} in epoch {progress.epoch}, log {node.log.start.offset}"
            f"..{node.log.end}, high watermark {progress.high_watermark}, voters {voters}{healing}"
        )

    # --- time -------------------------------------------------------------------------------------

    def do_run(self, given: dict[str, str]) -> None:
        """`run ms=500`, or `run until=...` one of the conditions below, `leads:2` for a node's."""
        if "ms" in given:
            self.cluster.run(self.cluster.now_ms + int(given["ms"]))
            return
        until, _, number = given["until"].partition(":")
        before, answers = self.cluster.leader(), len(self.cluster.answers)
        conditions: dict[str, Callable[[], bool]] = {
            "leader": self._has_active_leader,
            "leader-changed": lambda: self._has_active_leader() and self.cluster.leader() != before,
            "caught-up": lambda: is_caught_up(self.cluster),
            "answered": lambda: len(self.cluster.answers) > answers,
            "committed": lambda: self.operations - 1 in self.cluster.oracle.acknowledged,
            "no-leader": lambda: self.cluster.leader() is None,
        }
        if number:
            node = self.cluster.nodes[NodeId(int(number))]
            conditions |= {
                "voter": lambda: node.key in self._leader().log.voters,
                "whole": lambda: not node.is_healing,
                "stopped": lambda: node.progress is None,
                "prospective": lambda: (
                    node.progress is not None and node.progress.role == "prospective"
                ),
                "follows": lambda: node.progress is not None and node.progress.role == "follower",
                "leads": lambda: node.progress is not None and node.progress.is_leader,
            }
        self._until(conditions[until])

    def _until(self, condition: Callable[[], bool]) -> None:
        if not condition() and not self.cluster.run(self.cluster.now_ms + LIMIT_MS, stop=condition):
            raise AssertionError(f"it never comes: {self.do_state({})}")

    def _has_active_leader(self) -> bool:
        """True if a leader has replayed all before its epoch; its record commits soon after."""
        leader = self.cluster.leader()
        start = None if leader is None or leader.progress is None else leader.progress.epoch_start
        return leader is not None and start is not None and leader.application.applied >= start

    # --- clients ----------------------------------------------------------------------------------

    def do_propose(self, given: dict[str, str]) -> str:
        """`propose [count=1] [at=N]`: writes of one record, one after another."""
        leader = self.cluster.leader()
        node = self.cluster.nodes[NodeId(int(given["at"]))] if "at" in given else leader
        assert node is not None
        first = self.operations
        for _ in range(int(given.get("count", "1"))):
            if not node.application.propose((self.operations,), OPTIONS.clients.record_bytes):
                return f"{node.node_id} takes no writes"
            self.operations += 1
        return f"{node.node_id} takes operations {first}..{self.operations - 1}"

    def do_outcome(self, given: dict[str, str]) -> str:
        """`outcome N`: the outcome that the client of an operation received."""
        operation = int(next(iter(given)))
        oracle = self.cluster.oracle
        if operation in oracle.acknowledged:
            return f"operation {operation} is acknowledged"
        if operation in oracle.refused:
            return f"operation {operation} is refused"
        is_open = operation in oracle.unknown
        return f"operation {operation}: {'OUTCOME_UNKNOWN' if is_open else 'no answer yet'}"

    def do_read(self, given: dict[str, str]) -> str:
        """`read N`: a current read at a node."""
        reads = self.cluster.oracle.reads
        self.node(given).application.read_current()
        self.cluster.run(self.cluster.now_ms + 100)
        return "answered" if self.cluster.oracle.reads > reads else "no answer"

    # --- faults -----------------------------------------------------------------------------------

    def do_isolate(self, given: dict[str, str]) -> None:
        self.cluster.network.isolate(self.node(given).node_id, list(self.cluster.nodes))

    def do_cut(self, given: dict[str, str]) -> None:
        """`cut A B`: the link between two nodes."""
        one, other = (NodeId(int(word)) for word in given)
        self.cluster.network.isolate(one, [other])

    def do_heal(self, given: dict[str, str]) -> None:
        del given
        self.cluster.network.heal()

    def do_kill(self, given: dict[str, str]) -> None:
        self.node(given).kill()

    def do_power_off(self, given: dict[str, str]) -> None:
        self.node(given).power_off()

    def do_restart(self, given: dict[str, str]) -> None:
        self.node(given).start()

    def do_pause(self, given: dict[str, str]) -> None:
        self.node(given).pause()

    def do_resume(self, given: dict[str, str]) -> None:
        self.node(given).resume()

    def do_hang(self, given: dict[str, str]) -> None:
        """`hang N`: no flush of a node returns until `release N`."""
        self.node(given).host.stall()

    def do_release(self, given: dict[str, str]) -> None:
        self.node(given).host.release()

    def do_stop(self, given: dict[str, str]) -> None:
        """`stop N`: ask a process to transfer leadership and end."""
        self.node(given).process.shut_down(Millis(5000))

    def do_wipe(self, given: dict[str, str]) -> None:
        replace_disk(
            self.node(given),
            DirectoryId(self.cluster.random_streams.directory_id(self.node(given).node_id)),
        )

    def do_rot(self, given: dict[str, str]) -> None:
        """`rot N byte=100`: flip a bit of a stopped node's first segment."""
        node = self.node(given)
        segment = min(name for name in node.disk.files(LOG_DIR) if name.endswith(".log"))
        node.rot(segment, int(given["byte"]), 1)

    # --- changes ----------------------------------------------------------------------------------

    def do_add(self, given: dict[str, str]) -> None:
        """`add N [force]`: ask the leader to make a node a voter."""
        node = self.node(given)
        self._ask(
            messages.AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                voter=node.key,
                listeners=node.endpoints,
                timeout_ms=LIMIT,
                force="force" in given,
            )
        )

    def do_remove(self, given: dict[str, str]) -> None:
        """`remove N [force]`: ask the leader to remove the voter of that node id."""
        node = self.node(given)
        voter = self._leader().log.voters.by_id(node.node_id)
        key = node.key if voter is None else voter.key
        self._ask(
            messages.RemoveRaftVoterRequest(
                cluster_id=CLUSTER_ID, voter=key, timeout_ms=LIMIT, force="force" in given
            )
        )

    def do_move(self, given: dict[str, str]) -> str:
        """`move N`: kill a node's process and start it again at another address."""
        node = self.node(given)
        node.kill()
        self.cluster.addresses.move(node)
        node.start()
        return f"{node.node_id} is at {node.endpoints[0]}"

    def do_answers(self, given: dict[str, str]) -> list[str]:
        """`answers`: the answers so far to those who asked for changes.

        `answers words`: the answers that were not printed yet, in plain text.
        """
        answers = list(self.cluster.answers.values())
        lines = [
            f"{answer.error.name} {answer.reason.value if answer.reason else ''}".strip()
            for answer in answers
        ]
        if "words" not in given:
            return lines
        first, self.in_words = self.in_words, len(lines)
        return [f"{lines[i]}: {answers[i].message}".rstrip(": ") for i in range(first, len(lines))]

    def do_addresses(self, given: dict[str, str]) -> list[str]:
        """`addresses`: where each node takes the voters to be."""
        del given
        return [
            f"{node.node_id} knows " + ", ".join(str(v.endpoints[0]) for v in node.log.voters)
            for node in self.cluster.nodes.values()
        ]

    def do_hand_over(self, given: dict[str, str]) -> None:
        """`hand-over N`: ask the leader to transfer leadership to a node."""
        self._ask(messages.TransferLeadershipRequest(CLUSTER_ID, self.node(given).key))

    def do_upgrade(self, given: dict[str, str]) -> None:
        """`upgrade`: ask the leader for kraft.version 1."""
        del given
        self._ask(messages.UpdateFeaturesRequest(1, validate_only=False))

    def _leader(self) -> SimulatedNode:
        leader = self.cluster.leader()
        assert leader is not None
        return leader

    def _ask(self, request: messages.MembershipRequest) -> None:
        self._leader().ask(request)


def _is_routine(effect: api.Effect) -> bool:
    """True if an effect occurs in every step of every replica."""
    match effect:
        case api.PublishProgress():
            return True
        case api.SendRequest(request=messages.FetchRequest()):
            return True
        case api.SendReply(response=messages.FetchResponse(diverging=None, snapshot_id=None)):
            return True
    return False
