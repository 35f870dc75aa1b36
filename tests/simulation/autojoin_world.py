"""A cluster of values: StatefulSet controller, pods, disks, a quorum, and faults drawn from a seed.

Nothing waits here: a tick moves everything by one step. The operator's actions are applied as the
leader and the API server would, including their own refusals; an action may be lost, or be done
without the operator hearing of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.autojoin.actions import (
    Action,
    AddVoter,
    Decision,
    DeletePod,
    HandOver,
    RemoveVoter,
    Wait,
    WriteRecord,
)
from quorate.autojoin.decision import decide
from quorate.autojoin.quorum_view import majority
from quorate.autojoin.state import Desired, Observation, PersistedState
from quorate.raft import messages as m
from quorate.records.voters import Voter
from tests.unit.autojoin.looks import CLUSTER, LATELY, LONG_AGO, RECORD, key, pod, quorum, state

if TYPE_CHECKING:
    import random

    from quorate.autojoin.bootstrap_record import BootstrapRecord
    from quorate.autojoin.state import Pod
    from quorate.records.ids import Millis, ReplicaKey

TICK_MS = 5_000
# After the last fault: a ghost's minute, and several steps for each of seven pods.
CALM_TICKS = 120


@dataclass(slots=True)
class Machine:
    """One pod's place: what runs there, on which disk, and since when."""

    disk: int
    revision: str
    runs: bool = True
    deleting: bool = False
    # Ticks since it started: ready after two, caught up after three.
    age: int = 0

    @property
    def is_ready(self) -> bool:
        return self.runs and self.age >= 2

    @property
    def is_caught_up(self) -> bool:
        return self.runs and self.age >= 3


@dataclass(slots=True)
class World:
    """The truth. `machines` are the pods that exist, `disks` the latest disk of each place."""

    random: random.Random
    replicas: int
    revision: str = "r0"
    now_ms: int = 1_000_000
    machines: dict[int, Machine] = field(default_factory=dict)
    disks: dict[int, int] = field(default_factory=dict)
    voters: set[ReplicaKey] = field(default_factory=set)
    leader: int | None = None
    pending: m.VoterChange | None = None
    persisted_state: PersistedState = field(default_factory=PersistedState)
    record: BootstrapRecord | None = None
    hooks_work: bool = True
    # While faults come, the leader's last contact may be out of date, and no replica can know.
    is_stormy: bool = False
    last_fetch_ms: dict[ReplicaKey, int] = field(default_factory=dict)
    last_caught_up_ms: dict[ReplicaKey, int] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def live(self, who: ReplicaKey) -> bool:
        """True if this replica runs on this disk."""
        machine = self.machines.get(who.node_id)
        return machine is not None and machine.runs and key(who.node_id, machine.disk) == who

    def seems_live(self, who: ReplicaKey) -> bool:
        """True if that replica is alive, as far as the leader knows."""
        return self._heard(self.last_fetch_ms.get(who)) == LATELY or who.node_id == self.leader

    def count_live(self, voters: set[ReplicaKey]) -> int:
        return sum(self.live(each) for each in voters)

    def elect(self) -> None:
        """Elect a leader if a majority lives; one that has everything is preferred."""
        leader = next((each for each in self.voters if each.node_id == self.leader), None)
        has_majority = self.count_live(self.voters) >= majority(len(self.voters))
        if leader is not None and self.live(leader) and has_majority:
            return
        able = sorted(each.node_id for each in self.voters if self.live(each))
        self.leader = self.random.choice(able) if has_majority and able else None

    def tick(self) -> None:
        """Time passes, and Kubernetes and the quorum do their part."""
        self.now_ms += TICK_MS
        if self.random.random() < 0.7:
            self.pending = None
        for ordinal, machine in list(self.machines.items()):
            machine.age += 1
            if ordinal >= self.replicas:
                machine.deleting = True
            if machine.deleting and self.random.random() < 0.5:
                self._end(ordinal)
        for ordinal in range(self.replicas):
            if ordinal not in self.machines:
                disk = self.disks.setdefault(ordinal, 0)
                self.machines[ordinal] = Machine(disk, self.revision)
        for ordinal, machine in self.machines.items():
            who = key(ordinal, machine.disk)
            if machine.runs:
                self.last_fetch_ms[who] = self.now_ms
            if machine.is_caught_up:
                self.last_caught_up_ms[who] = self.now_ms
        self.elect()

    def _end(self, ordinal: int) -> None:
        """End a pod, after its hook has tried; its disk goes when it was scaled down."""
        machine = self.machines[ordinal]
        who = key(ordinal, machine.disk)
        beyond = ordinal >= self.replicas
        if beyond and who in self.voters and self.hooks_work and self.leader is not None:
            left = self.voters - {who}
            if left and self.count_live(left) >= majority(len(left)):
                self.voters = left
                self.history.append(f"hook removes {who}")
        del self.machines[ordinal]
        if beyond:
            self.disks[ordinal] = self.disks.get(ordinal, 0) + 1
        self.elect()

    def look(self) -> Observation:
        """The state of the quorum that the operator observes."""
        pods = tuple(self._pod(ordinal, each) for ordinal, each in sorted(self.machines.items()))
        return Observation(
            now_ms=self.now_ms,
            pods=pods,
            quorum=None if self.leader is None else self._describe(self.leader),
            record=self.record,
            persisted_state=self.persisted_state,
        )

    def _pod(self, ordinal: int, machine: Machine) -> Pod:
        return pod(
            ordinal,
            disk=machine.disk,
            revision=machine.revision,
            runs=machine.runs,
            ready=machine.is_ready,
            deleting=machine.deleting,
            cluster_id=CLUSTER,
        )

    def _describe(self, leader: int) -> m.DescribeQuorumResponse:
        voters = [self._state(each) for each in sorted(self.voters, key=lambda k: k.node_id)]
        running = {key(o, each.disk) for o, each in self.machines.items() if each.runs}
        observers = sorted(running - self.voters, key=lambda each: each.node_id)
        return quorum(
            *voters,
            leader=leader,
            observers=tuple(self._state(each) for each in observers),
            pending=self.pending,
        )

    def _state(self, who: ReplicaKey) -> m.ReplicaState:
        assert who.directory_id is not None
        return state(
            who.node_id,
            who.directory_id[1],
            fetched=self._heard(self.last_fetch_ms.get(who)),
            caught_up=self._heard(self.last_caught_up_ms.get(who)),
        )

    def _heard(self, at_ms: int | None) -> Millis:
        """The leader takes a replica for what it was a moment ago."""
        is_late = at_ms is None or self.now_ms - at_ms > TICK_MS
        return LONG_AGO if is_late else LATELY

    def desired(self) -> Desired:
        return Desired(stateful_set="q", replicas=self.replicas, revision=self.revision)

    def operate(self, *, forgets: bool = False, loses: bool = False) -> Decision:
        """One reconcile: it may die before the action (`loses`), or before its note (`forgets`)."""
        decision = decide(self.desired(), self.look())
        if forgets:
            return decision
        self.persisted_state = decision.persisted_state
        if not loses and not isinstance(decision.step, Wait):
            self.perform(decision.step)
        return decision

    def perform(self, action: Action) -> None:
        """Do it, having asserted that it may be done."""
        self.history.append(f"{self.now_ms // 1000} {action}")
        match action:
            case WriteRecord(record):
                assert self.record is None, "a record is written once"
                self.record = record
            case AddVoter(who):
                self._change(self.voters | {who}, m.VoterChange(m.ChangeKind.ADD, Voter(who)))
                assert who not in self.persisted_state.lost, "a lost disk never votes again"
                assert sum(each.node_id == who.node_id for each in self.voters) == 1
            case RemoveVoter(who):
                assert who in self.voters
                self._change(self.voters - {who}, m.VoterChange(m.ChangeKind.REMOVE, Voter(who)))
            case HandOver(to):
                assert to in self.voters
                assert self.live(to)
                self.leader = to.node_id
            case DeletePod(name):
                self._delete(int(name.rpartition("-")[2]))
        self.elect()

    def _change(self, voters: set[ReplicaKey], change: m.VoterChange) -> None:
        assert self.record is not None, "membership changes only after the bootstrap is recorded"
        assert self.pending is None, "two changes in flight"
        assert self.leader is not None
        live, needed = sum(map(self.seems_live, voters)), majority(len(voters))
        assert live >= needed, f"{live} of {len(voters)} live after {change}"
        self.voters, self.pending = voters, change

    def _delete(self, ordinal: int) -> None:
        machine = self.machines[ordinal]
        others = [
            each
            for each in self.voters
            if each.node_id != ordinal
            and self.live(each)
            and (self.machines[each.node_id].is_caught_up or each.node_id == self.leader)
        ]
        is_voter = key(ordinal, machine.disk) in self.voters
        if machine.runs and is_voter and len(self.voters) > 2 and not self.is_stormy:
            assert len(others) >= majority(len(self.voters)), "a roll broke the majority"
        if machine.runs and len(self.voters) > 1:
            assert ordinal != self.leader, "a leader was rolled without a hand-over"
        machine.deleting = True

    def hurt(self) -> None:
        """One fault, or one wish of the user."""
        draw = self.random
        ordinal = draw.choice(sorted(self.machines)) if self.machines else 0
        machine = self.machines.get(ordinal)
        match draw.randrange(8):
            case 0:
                self.replicas = draw.randint(1, 6)
            case 1:
                self.revision = f"r{draw.randint(0, 3)}"
            case 2 if machine is not None:
                machine.runs, machine.age = not machine.runs, 0
            case 3 if machine is not None:
                machine.deleting = True
            case 4 if machine is not None and self._can_lose(ordinal):
                self.disks[ordinal] = machine.disk + 1
                del self.machines[ordinal]
            case 5:
                self.hooks_work = draw.random() < 0.8
            case 6 if self.leader is not None:
                self.leader = None
            case _:
                pass
        self.elect()

    def _can_lose(self, ordinal: int) -> bool:
        """Disks are lost as long as a majority of the voters keeps theirs."""
        kept = {
            each
            for each in self.voters
            if each.node_id != ordinal
            and key(each.node_id, self.disks.get(each.node_id, 0)) == each
        }
        return len(kept) >= majority(len(self.voters))

    def heal(self) -> None:
        """Faults end, hooks do their work again, and what stands starts again."""
        self.is_stormy, self.hooks_work = False, True
        for machine in self.machines.values():
            machine.runs = True


def drawn(random: random.Random) -> World:
    """Any state: some pods, some voters with or without a pod, on these disks or others."""
    world = World(random, replicas=random.randint(1, 6))
    for ordinal in range(random.randint(0, 7)):
        world.disks[ordinal] = random.randint(0, 2)
        if random.random() < 0.9:
            machine = Machine(world.disks[ordinal], f"r{random.randint(0, 1)}")
            machine.runs = random.random() < 0.9
            machine.age = random.randint(0, 5)
            world.machines[ordinal] = machine
    for node in range(7):
        if random.random() < 0.6:
            is_own = random.random() < 0.9
            world.voters.add(key(node, world.disks.get(node, 0) if is_own else 9))
    if not world.voters:
        world.voters.add(key(0, world.disks.setdefault(0, 0)))
    if random.random() < 0.5:
        world.record = RECORD
        ghosts = {key(random.randrange(7)): random.randrange(2_000_000) for _ in range(3)}
        world.persisted_state = PersistedState(ghosts, (key(random.randrange(7), 200),))
    world.tick()
    return world
