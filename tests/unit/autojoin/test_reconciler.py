"""One pass against a cluster and a quorum of values, which may fail at any line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.api.admin_api import AdminError
from quorate.autojoin.actions import AddVoter, HandOver, RemoveVoter, Wait, WaitReason
from quorate.autojoin.annotations import decode_state, encode_state, read_conditions
from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.autojoin.reconcile_spans import ReconcileSpans
from quorate.autojoin.reconciler import ClusterError, ConflictError, Reconciler, StatefulSet
from quorate.autojoin.wait_warnings import PATIENCE_MS
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId
from tests.unit.autojoin.looks import (
    CLUSTER,
    NOW_MS,
    RECORD,
    dead,
    desired,
    key,
    pod,
    pods,
    quorum,
    state,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.autojoin.state import Pod
    from quorate.raft import messages as m
    from quorate.records.ids import ReplicaKey


# In nanoseconds.
MS = 1_000_000
TALK = ("look", "tell", "event", "look for claims", "tell claims")


@dataclass
class Fake:
    """Kubernetes and the quorum in one, with a list of what was done to them."""

    found: StatefulSet | None
    view: m.DescribeQuorumResponse | None
    done: list[tuple[object, ...]] = field(default_factory=list)
    fails: dict[str, BaseException] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    now_ms: int = NOW_MS
    takes_ms: dict[str, int] = field(default_factory=dict)
    passed_ms: int = 0

    def take_time(self, name: str) -> None:
        """Have as much time pass as such a call takes, on the clock that is not the wall's."""
        self.passed_ms += self.takes_ms.get(name, 0)

    def _do(self, name: str, *what: object) -> None:
        self.take_time(name)
        if name in self.fails:
            raise self.fails[name]
        self.done.append((name, *what))

    def _patch(self, **annotations: Any) -> None:  # noqa: ANN401 - as of `replace`
        """As the API server does, with a new version each time."""
        assert self.found is not None
        version = str(int(self.found.version) + 1)
        self.found = replace(self.found, version=version, **annotations)

    async def observe(self) -> StatefulSet | None:
        self._do("look")
        return self.found

    async def save_state(self, memory: str, version: str) -> None:
        assert self.found is not None
        if version != self.found.version:
            raise ConflictError("409: the object has been modified")
        self._do("note", memory, version)
        self._patch(memory=memory)

    async def write_record(self, record: BootstrapRecord) -> None:
        self._do("record", record)

    async def delete_pod(self, name: str, uid: str, version: str) -> None:
        self._do("delete", name, uid, version)

    async def publish_conditions(self, conditions: str) -> None:
        self._do("tell")
        self._patch(conditions=conditions)

    async def left_claims(self) -> tuple[str, ...]:
        self._do("look for claims")
        return self.claims

    async def tell_claims(self, text: str) -> None:
        self._do("tell claims", text)
        self._patch(claims=text)

    async def post_event(self, reason: str, text: str, *, is_warning: bool) -> None:
        assert text
        self._do("event", reason, is_warning)

    async def identify_pods(self, pods: Sequence[Pod], service: str) -> tuple[Pod, ...]:
        assert service == "q-headless"
        self.take_time("ask")
        return tuple(pods)

    async def describe(
        self, pods: Sequence[Pod], service: str
    ) -> tuple[m.DescribeQuorumResponse | None, str]:
        self.take_time("describe")
        return self.view, "" if self.view else "nobody leads"

    async def add_voter(self, key: ReplicaKey) -> None:
        self._do("add", key)

    async def remove_voter(self, key: ReplicaKey) -> None:
        self._do("remove", key)

    async def transfer_leadership(self, to: ReplicaKey) -> None:
        self._do("hand over", to)

    @property
    def acts(self) -> list[tuple[object, ...]]:
        """Everything that was done except reads and reports."""
        return [each for each in self.done if each[0] not in TALK]

    @property
    def events(self) -> list[tuple[object, ...]]:
        return [each[1:] for each in self.done if each[0] == "event"]


def fake(
    *found: Pod,
    view: m.DescribeQuorumResponse | None,
    replicas: int = 3,
    record: BootstrapRecord | None = RECORD,
) -> Fake:
    return Fake(
        StatefulSet(
            desired=desired(replicas),
            version="41",
            service="q-headless",
            pods=pods(replicas, *found),
            record=record,
            memory="",
            conditions="",
        ),
        view,
    )


def reconciler(world: Fake, *, holds: bool = True) -> Reconciler:
    return Reconciler(
        world,
        world,
        now_ms=lambda: world.now_ms,
        timestamp=lambda: "now",
        reconcile_spans=ReconcileSpans(lambda: world.now_ms * MS, lambda: world.passed_ms * MS),
        may_act=lambda: holds,
    )


async def test_an_action_is_done_and_told() -> None:
    world = fake(view=quorum(0, 1, observers=(2,)))
    done = await reconciler(world).run()
    assert done.has_acted
    assert world.acts == [("add", key(2))]
    assert world.events == [("ScaleUp", False)]


async def test_every_kind_of_action() -> None:
    world = fake(view=quorum(0), record=None)
    await reconciler(world).run()
    assert world.acts == [("record", BootstrapRecord(CLUSTER, key(0)))]
    world = fake(pod(0, revision="old"), view=quorum(0, 1, 2))
    await reconciler(world).run()
    assert world.acts == [("hand over", key(1))]
    world = fake(pod(2, revision="old"), view=quorum(0, 1, 2))
    await reconciler(world).run()
    assert world.acts == [("delete", "q-2", "uid-2", "1")]
    world = fake(pod(3), view=quorum(0, 1, 2, 3))
    await reconciler(world).run()
    assert world.acts == [("remove", key(3))]


async def test_what_has_to_be_remembered_is_noted_first() -> None:
    world = fake(pod(2, disk=1), view=quorum(0, 1, dead(2), observers=(state(2, 1),)))
    await reconciler(world).run()
    assert [each[0] for each in world.acts] == ["note", "remove"]
    assert decode_state(str(world.acts[0][1])).lost == (key(2),)
    assert world.acts[0][2] == "41"


async def test_it_dies_between_the_note_and_the_action_and_goes_on() -> None:
    world = fake(pod(2, disk=1), view=quorum(0, 1, dead(2), observers=(state(2, 1),)))
    world.fails["remove"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        await reconciler(world).run()
    world.fails.clear()
    assert isinstance((await reconciler(world).run()).decision.step, RemoveVoter)  # type: ignore[union-attr]
    world.view = quorum(0, 1, observers=(state(2, 1),))
    assert isinstance((await reconciler(world).run()).decision.step, AddVoter)  # type: ignore[union-attr]


async def test_a_note_on_what_has_changed_ends_the_pass() -> None:
    world = fake(view=quorum(0, 1, 2, dead(3)))
    world.fails["note"] = ConflictError("409 Conflict")
    with pytest.raises(ConflictError):
        await reconciler(world).run()
    assert world.acts == []


async def test_without_the_lease_nothing_is_touched() -> None:
    world = fake(view=quorum(0, 1, observers=(2,)))
    done = await reconciler(world, holds=False).run()
    assert not done.has_acted
    assert world.done == [("look",)]


async def test_a_refusal_is_told_and_tried_by_the_next_pass() -> None:
    world = fake(view=quorum(0, 1, observers=(2,)))
    world.fails["add"] = AdminError("VOTER_LAGGING", ErrorCode.REQUEST_TIMED_OUT, "too far behind")
    done = await reconciler(world).run()
    assert done.error == "VOTER_LAGGING: too far behind"
    assert not done.has_acted
    assert world.events == [("NotDone", True)]
    world.fails.clear()
    assert (await reconciler(world).run()).has_acted


async def test_a_voter_that_does_not_take_over_is_asked_after_the_others() -> None:
    world = fake(pod(0, revision="old"), view=quorum(0, 1, 2))
    asking = reconciler(world)
    world.fails["hand over"] = AdminError("NO_HAND_OVER", ErrorCode.REQUEST_TIMED_OUT, "no answer")
    asked = []
    for _ in range(4):
        done = await asking.run()
        assert done.decision is not None
        assert isinstance(done.decision.step, HandOver)
        asked.append(done.decision.step.to.node_id)
    assert asked == [1, 2, 1, 2]
    world.fails.clear()
    assert (await asking.run()).has_acted
    again = await asking.run()
    assert again.decision is not None
    assert isinstance(again.decision.step, HandOver)
    assert again.decision.step.to.node_id == 1


async def test_a_pod_that_has_changed_is_not_deleted() -> None:
    world = fake(pod(2, revision="old"), view=quorum(0, 1, 2))
    world.fails["delete"] = ConflictError("409 Conflict")
    assert not (await reconciler(world).run()).has_acted


async def test_changes_of_what_is_waited_for_are_told_once() -> None:
    world = fake(view=None)
    operator = reconciler(world)
    for _ in range(3):
        done = await operator.run()
        assert done.decision is not None
        assert done.decision.step == Wait(WaitReason.NO_LEADER, "nobody leads")
    assert world.events == [("NoLeader", False)]
    assert [each for each in world.done if each[0] == "tell"] == [("tell",)]
    assert world.found is not None
    assert set(read_conditions(world.found.conditions)) == {"QuorumHealthy", "MembersInStep"}
    world.view = quorum(0, 1, 2)
    await operator.run()
    assert world.events[1:] == [("LeaderKnown", False), ("InStep", False)]


async def test_no_stateful_set_is_nothing_to_do() -> None:
    world = Fake(None, None)
    assert (await reconciler(world).run()).decision is None


async def test_a_silent_api_server_ends_the_pass() -> None:
    world = fake(view=quorum(0))
    world.fails["look"] = ClusterError("no answer")
    with pytest.raises(ClusterError):
        await reconciler(world).run()


async def test_a_memory_that_makes_no_sense_stops_it() -> None:
    world = fake(view=quorum(0, 1, observers=(2,)))
    assert world.found is not None
    world.found = replace(world.found, memory=encode_state(decode_state("")) + "}")
    with pytest.raises(ValueError, match="Extra data"):
        await reconciler(world).run()
    assert world.acts == []


async def test_a_wait_that_lasts_becomes_a_warning_once() -> None:
    world = fake(view=quorum(0, 1))
    operator = reconciler(world)
    for after_ms in (0, PATIENCE_MS - 1, PATIENCE_MS, 2 * PATIENCE_MS):
        world.now_ms = NOW_MS + after_ms
        await operator.run()
    waits = [each for each in world.events if each[0] == "ObserverNotSeen"]
    assert waits == [("ObserverNotSeen", False), ("ObserverNotSeen", True)]


async def test_a_leader_that_stays_away_is_a_warning_once() -> None:
    world = fake(view=None)
    operator = reconciler(world)
    for after_ms in (0, PATIENCE_MS, 2 * PATIENCE_MS):
        world.now_ms = NOW_MS + after_ms
        await operator.run()
    assert world.events == [("NoLeader", False), ("NoLeader", True)]


@pytest.mark.parametrize("period", [2, 3, 100])
async def test_a_leader_that_stays_away_beside_actions_is_a_warning_once(period: int) -> None:
    world = fake(view=None)
    operator = reconciler(world)
    for turn in range(60):
        world.now_ms = NOW_MS + turn * PATIENCE_MS // 2
        broken = pod(2, runs=False, revision="old") if turn % period else pod(2)
        assert world.found is not None
        world.found = replace(world.found, pods=pods(3, broken))
        await operator.run()
    assert [each for each in world.events if each[1]] == [("NoLeader", True)]


async def test_a_warning_that_could_not_be_posted_is_due_in_the_next_pass() -> None:
    world = fake(view=quorum(0, 1))
    operator = reconciler(world)
    await operator.run()
    world.now_ms += PATIENCE_MS
    world.fails["event"] = ClusterError("no answer")
    with pytest.raises(ClusterError):
        await operator.run()
    world.fails.clear()
    for _ in range(2):
        await operator.run()
    assert [each for each in world.events if each[1]] == [("ObserverNotSeen", True)]


async def test_what_only_a_person_ends_is_a_warning_at_once() -> None:
    world = fake(view=quorum(0, 1, 2), record=BootstrapRecord(ClusterId("before"), key(0)))
    await reconciler(world).run()
    assert ("OtherCluster", True) in world.events


async def test_a_look_that_is_out_of_date_is_no_warning() -> None:
    world = fake(pod(2, revision="old"), view=quorum(0, 1, 2))
    world.fails["delete"] = ConflictError("409: it has changed")
    await reconciler(world).run()
    assert world.events == [("NotDone", False)]


def statuses(world: Fake) -> dict[str, tuple[bool | None, str]]:
    assert world.found is not None
    told = read_conditions(world.found.conditions)
    return {kind: (each.status, each.reason) for kind, each in told.items()}


async def test_one_that_stops_takes_back_what_it_told() -> None:
    world = fake(view=quorum(0, 1, 2))
    operator = reconciler(world)
    await operator.run()
    assert statuses(world)["MembersInStep"] == (True, "InStep")
    await operator.withdraw()
    assert statuses(world) == {
        "QuorumHealthy": (None, "OperatorStopped"),
        "MembersInStep": (None, "OperatorStopped"),
    }


async def test_one_that_has_not_looked_has_nothing_to_take_back() -> None:
    world = fake(view=quorum(0, 1, 2))
    await reconciler(world).withdraw()
    assert world.done == []


async def test_one_that_begins_trusts_nothing_that_was_told_before() -> None:
    """Its predecessor may have been killed, and could withdraw nothing."""
    world = fake(view=quorum(0, 1, 2))
    await reconciler(world).run()
    told = []
    look_on = world.identify_pods

    async def ask(pods: Sequence[Pod], service: str) -> tuple[Pod, ...]:
        told.append(statuses(world)["MembersInStep"])
        return await look_on(pods, service)

    world.identify_pods = ask  # type: ignore[method-assign]
    operator = reconciler(world)
    await operator.run()
    await operator.run()
    assert told == [(None, "OperatorStarted"), (True, "InStep")]


async def test_one_that_takes_over_notes_in_its_first_pass() -> None:
    """Taking something back changes the version that the note has to name."""
    world = fake(view=quorum(0, 1, 2))
    await reconciler(world).run()
    assert world.found is not None
    world.found = replace(world.found, pods=pods(3, pod(2, disk=1)))
    world.view = quorum(0, 1, dead(2), observers=(state(2, 1),))
    assert (await reconciler(world).run()).has_acted
    assert [each[0] for each in world.acts] == ["note", "remove"]


async def test_without_the_lease_nothing_is_taken_back() -> None:
    world = fake(view=quorum(0, 1, 2))
    await reconciler(world).run()
    await reconciler(world, holds=False).run()
    assert statuses(world)["MembersInStep"] == (True, "InStep")


async def test_claims_that_are_left_are_told_once_for_each_change() -> None:
    world = fake(view=quorum(0, 1, 2))
    operator = reconciler(world)
    await operator.run()
    assert "ClaimsKept" not in [each[0] for each in world.events]
    world.claims = ("data-q-3",)
    for _ in range(2):
        await operator.run()
    assert [each for each in world.events if each[0] == "ClaimsKept"] == [("ClaimsKept", False)]
    assert world.found is not None
    assert world.found.claims.startswith("data-q-3: ")
    world.claims = ()
    await operator.run()
    assert world.found.claims == ""
    assert len([each for each in world.events if each[0] == "ClaimsKept"]) == 1


@pytest.mark.parametrize("is_paused", [True, False])
async def test_claims_of_pods_that_are_wanted_again_are_named_no_more(
    is_paused: bool,  # noqa: FBT001
) -> None:
    world = fake(view=quorum(0, 1, 2))
    operator = reconciler(world)
    world.claims = ("data-q-3", "data-q-4")
    await operator.run()
    assert world.found is not None
    wants = replace(desired(4), is_paused=is_paused)
    # The new pod does not run yet, so that not all is in step.
    world.found = replace(world.found, desired=wants, pods=pods(3, pod(3, runs=False)))
    world.claims = ("a claim that is not looked for",)
    await operator.run()
    assert world.found.claims.startswith("data-q-4: ")
    assert len([each for each in world.events if each[0] == "ClaimsKept"]) == 1


@pytest.mark.parametrize("call", ["look for claims", "tell claims"])
async def test_claims_that_may_not_be_read_disturb_nothing(call: str) -> None:
    world = fake(view=quorum(0, 1, 2))
    world.claims = ("data-q-3",)
    world.fails[call] = ClusterError("403: forbidden")
    done = await reconciler(world).run()
    assert done.is_in_step
    assert statuses(world)["MembersInStep"] == (True, "InStep")


async def test_claims_are_looked_for_when_all_is_in_step() -> None:
    world = fake(view=quorum(0, 1, observers=(2,)))
    await reconciler(world).run()
    assert ("look for claims",) not in world.done


async def test_a_pass_that_was_refused_is_not_in_step() -> None:
    world = fake(view=quorum(0, 1, 2))
    assert not (await reconciler(world, holds=False).run()).is_in_step
    assert (await reconciler(world).run()).is_in_step
    world.found = None
    assert not (await reconciler(world).run()).is_in_step
