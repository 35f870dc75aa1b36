"""The states of each partition, by walking through its records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.pipeline.walks.past import Bound, Cells, Event, Past, ids, ordered

if TYPE_CHECKING:
    from collections.abc import Callable

Ids = tuple[int, ...]
UNCHANGED = -2
NOBODY = -1


@dataclass(frozen=True)
class State:
    """A partition from one record to the next."""

    start: Bound
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: Ids
    isr: Ids
    adding: Ids
    removing: Ids
    eligible: Ids
    last_known: Ids
    recovery: int
    is_unclean: bool
    is_marked: bool
    end: Bound | None = None

    @property
    def is_moving(self) -> bool:
        """True if replicas are on their way."""
        return bool(self.adding or self.removing)


@dataclass
class Partition:
    """One of them, from its record to its topic's end."""

    topic: str | None
    topic_id: str
    number: int
    states: list[State]

    @property
    def key(self) -> Cells:
        """As every table begins."""
        return self.topic, self.topic_id, self.number

    def ends(self, at: Bound) -> None:
        """The last state is over."""
        self.states[-1] = replace(self.states[-1], end=at)


def created(event: Event) -> State:
    """The state that a PartitionRecord tells."""
    data = event.data
    return State(
        event.bound,
        data["leader"],
        data["leaderEpoch"],
        data["partitionEpoch"],
        ids(data["replicas"]),
        ids(data["isr"]),
        ids(data["addingReplicas"]),
        ids(data["removingReplicas"]),
        ids(data.get("eligibleLeaderReplicas")),
        ids(data.get("lastKnownElr")),
        data.get("leaderRecoveryState", 0),
        is_unclean=False,
        is_marked=False,
    )


def changed(old: State, event: Event) -> State:
    """The state after a PartitionChangeRecord, which leaves out what stays."""
    data = event.data
    leader = data.get("leader", UNCHANGED)
    recovery = data.get("leaderRecoveryState", -1)

    def new(name: str, before: Ids) -> Ids:
        told = data.get(name)
        return before if told is None else ids(told)

    replicas, isr = new("replicas", old.replicas), new("isr", old.isr)
    is_seen = (
        leader not in (UNCHANGED, NOBODY, old.leader, *old.isr, *old.eligible)
        and set(isr) == {leader}
        and set(replicas) == set(old.replicas)
    )
    return State(
        event.bound,
        old.leader if leader == UNCHANGED else leader,
        old.leader_epoch + (leader != UNCHANGED),
        old.partition_epoch + 1,
        replicas,
        isr,
        new("addingReplicas", old.adding),
        new("removingReplicas", old.removing),
        new("eligibleLeaderReplicas", old.eligible),
        new("lastKnownElr", old.last_known),
        old.recovery if recovery == -1 else recovery,
        is_unclean=recovery == 1 or is_seen,
        is_marked=recovery == 1,
    )


class Partitions:
    """Goes through a log once."""

    def __init__(self, past: Past) -> None:
        self.past = past
        self.names: dict[str, str] = {}
        self.removed: set[str] = set()
        self.found: dict[tuple[str, int], Partition] = {}
        for event in past.effective:
            data = event.data
            match event.kind:
                case "TopicRecord":
                    self.names[data["topicId"]] = data["name"]
                case "RemoveTopicRecord":
                    self.removed.add(data["topicId"])
                    for partition in self._of(data["topicId"]):
                        partition.ends(event.bound)
                case "PartitionRecord":
                    key = data["topicId"], data["partitionId"]
                    self.found[key] = Partition(self.names[key[0]], *key, [created(event)])
                case "PartitionChangeRecord":
                    partition = self.found[data["topicId"], data["partitionId"]]
                    partition.ends(event.bound)
                    partition.states.append(changed(partition.states[-1], event))

    def _of(self, topic_id: str) -> list[Partition]:
        return [each for each in self.found.values() if each.topic_id == topic_id]

    def tables(self) -> dict[str, list[Cells]]:
        """All five."""
        history: list[Cells] = []
        missing: list[Cells] = []
        offline: list[Cells] = []
        unclean: list[Cells] = []
        for each in self.found.values():
            for before, state in zip([None, *each.states], each.states, strict=False):
                history.append(self._history(each, before, state))
            missing += [
                self._missing(each, run)
                for run in runs(each.states, lambda state: len(state.isr) < len(state.replicas))
            ]
            offline += [
                self._offline(each, run)
                for run in runs(each.states, lambda state: state.leader == NOBODY)
            ]
            unclean += [
                self._unclean(each, before, state)
                for before, state in pairwise(each.states)
                if state.is_unclean
            ]
        return {
            "history": ordered(history),
            "under_replicated": ordered(missing),
            "offline": ordered(offline),
            "unclean": ordered(unclean),
            "churn": ordered(
                self._churn(topic_id)
                for topic_id in {each.topic_id for each in self.found.values()}
            ),
        }

    def _history(self, partition: Partition, before: State | None, state: State) -> Cells:
        words: list[str] = []
        if before is not None:
            words += ["leader"] * (before.leader != state.leader)
            words += ["isr"] * (set(before.isr) != set(state.isr))
            words += ["replicas"] * (set(before.replicas) != set(state.replicas))
            words += ["reassignment"] * (
                (set(before.adding), set(before.removing))
                != (set(state.adding), set(state.removing))
            )
        return (
            *partition.key,
            *self.past.interval(state.start, state.end),
            state.leader,
            state.leader_epoch,
            state.replicas,
            state.isr,
            state.adding,
            state.removing,
            tuple(words),
        )

    def _missing(self, partition: Partition, run: list[State]) -> Cells:
        return (
            *partition.key,
            *self.past.interval(run[0].start, run[-1].end),
            min(len(state.isr) for state in run),
            tuple(sorted({id_ for state in run for id_ in state.replicas if id_ not in state.isr})),
            any(state.is_moving for state in run),
        )

    def _offline(self, partition: Partition, run: list[State]) -> Cells:
        states = partition.states
        first, last = states.index(run[0]), states.index(run[-1])
        return (
            *partition.key,
            *self.past.interval(run[0].start, run[-1].end),
            states[first - 1].leader if first > 0 else None,
            states[last + 1].leader if last + 1 < len(states) else None,
        )

    def _unclean(self, partition: Partition, before: State, state: State) -> Cells:
        return (
            *partition.key,
            *state.start[:2],
            state.leader_epoch,
            state.leader,
            before.isr,
            state.isr,
            state.is_marked,
        )

    def _churn(self, topic_id: str) -> Cells:
        partitions = self._of(topic_id)
        pairs = [pair for each in partitions for pair in pairwise(each.states)]
        return (
            self.names[topic_id],
            topic_id,
            topic_id in self.removed,
            len(partitions),
            sum(a.leader != b.leader for a, b in pairs),
            sum(b.is_unclean for _, b in pairs),
            sum(not set(a.isr) <= set(b.isr) for a, b in pairs),
            sum(not set(b.isr) <= set(a.isr) for a, b in pairs),
            sum(
                not a.is_moving and (b.is_moving or set(a.replicas) != set(b.replicas))
                for a, b in pairs
            ),
        )


def runs(states: list[State], holds: Callable[[State], bool]) -> list[list[State]]:
    """States one after the other in which something holds."""
    found: list[list[State]] = []
    for before, state in zip([None, *states], states, strict=False):
        if holds(state):
            if before is None or not holds(before):
                found.append([])
            found[-1].append(state)
    return found
