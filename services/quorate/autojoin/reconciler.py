"""One reconciliation: observe, decide, record, act, report.

Between two passes the process keeps only the order in which voters are asked, so it may exit at any
point. Anything that must persist is saved in the cluster before the action that needs it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from quorate.api.admin_api import AdminError
from quorate.autojoin.actions import (
    Action,
    AddVoter,
    DeletePod,
    HandOver,
    RemoveVoter,
    Wait,
    WaitReason,
    WriteRecord,
)
from quorate.autojoin.annotations import (
    HEALTHY,
    IN_STEP,
    claims_beyond,
    claims_text,
    conditions_of,
    conditions_text,
    decode_state,
    describe_action,
    encode_state,
    read_conditions,
    unknown,
)
from quorate.autojoin.decision import decide
from quorate.autojoin.state import Observation
from quorate.autojoin.wait_warnings import Patience
from quorate.records.value_types import keyword_value_type, value_type
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.autojoin.actions import Decision
    from quorate.autojoin.annotations import Condition
    from quorate.autojoin.bootstrap_record import BootstrapRecord
    from quorate.autojoin.reconcile_spans import ReconcileSpans
    from quorate.autojoin.state import Desired, Pod
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.records.ids import ReplicaKey

log = logging.getLogger(__name__)


class ClusterError(Exception):
    """The API server is unreachable or rejects; `is_missing` if the object does not exist."""

    is_missing = False


class ConflictError(ClusterError):
    """The object has changed since it was observed: observe again."""


@keyword_value_type
class StatefulSet:
    """The StatefulSet according to the API server. `pods` are not identified yet."""

    desired: Desired
    version: str
    service: str
    pods: tuple[Pod, ...]
    record: BootstrapRecord | None
    memory: str
    conditions: str
    # The line about claims of pods that were scaled down; empty if there are none.
    claims: str = ""


class Cluster(Protocol):
    """The operator's interface to Kubernetes. Every method raises ClusterError."""

    async def observe(self) -> StatefulSet | None:
        """The StatefulSet with its pods; None if it does not exist."""

    async def save_state(self, memory: str, version: str) -> None:
        """Save the memory if the StatefulSet still has that version. Raises ConflictError."""

    async def write_record(self, record: BootstrapRecord) -> None:
        """Create the bootstrap record permanently. Raises ConflictError if it exists."""

    async def delete_pod(self, name: str, uid: str, version: str) -> None:
        """Delete exactly that pod. Raises ConflictError."""

    async def publish_conditions(self, conditions: str) -> None:
        """Publish the conditions on the StatefulSet."""

    async def left_claims(self) -> tuple[str, ...]:
        """The claims that pods beyond the replicas have left, by ordinal."""

    async def tell_claims(self, text: str) -> None:
        """Publish the claims that were left."""

    async def post_event(self, reason: str, text: str, *, is_warning: bool) -> None:
        """Post an Event about the StatefulSet."""


class Quorum(Protocol):
    """The operator's interface to the quorum; changes raise AdminError."""

    async def identify_pods(self, pods: Sequence[Pod], service: str) -> tuple[Pod, ...]:
        """The same pods, with the identity that each reports."""

    async def describe(
        self, pods: Sequence[Pod], service: str
    ) -> tuple[DescribeQuorumResponse | None, str]:
        """The leader's description, or None and the reason."""

    async def add_voter(self, key: ReplicaKey) -> None: ...

    async def remove_voter(self, key: ReplicaKey) -> None: ...

    async def transfer_leadership(self, to: ReplicaKey) -> None: ...


@value_type
class Reconciliation:
    """The result of one pass. `error` is the reason for which the action failed."""

    decision: Decision | None
    seen: Observation | None = None
    desired: Desired | None = None
    error: str | None = None

    @property
    def has_acted(self) -> bool:
        """True if something was changed, so that another pass is due."""
        acted = self.decision is not None and not isinstance(self.decision.step, Wait)
        return acted and self.error is None

    @property
    def is_in_step(self) -> bool:
        """True if the pass found the voters and their pods in step."""
        return self.decision is not None and self.decision.is_in_step and self.error is None


class Reconciler:
    """Brings a quorum one step closer to what its StatefulSet wants."""

    def __init__(
        self,
        cluster: Cluster,
        quorum: Quorum,
        *,
        now_ms: Callable[[], int],
        timestamp: Callable[[], str],
        reconcile_spans: ReconcileSpans,
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        """`now_ms` and `timestamp` return wall-clock time, `may_act` whether the Lease is held.

        `story` makes the spans.
        """
        self._cluster = cluster
        self._quorum = quorum
        self._now_ms = now_ms
        self._timestamp = timestamp
        self._may_act = may_act
        self._reconcile_spans = reconcile_spans
        # Lost with the process: it only changes the order in which voters are asked.
        self._passed_over: tuple[ReplicaKey, ...] = ()
        self.begin()

    def begin(self) -> None:
        """Drop cached state: another operator may have acted since."""
        self._reconcile_spans.forget()
        self._patience, self._leader_patience = Patience(), Patience()
        # None before the first observation.
        self._told: dict[str, Condition] | None = None

    async def withdraw(self) -> None:
        """Set the conditions to Unknown when the operator stops. Raises ClusterError."""
        if self._told:
            text = "the operator has stopped, and the next one has not looked yet"
            await self._show(unknown(self._told, "OperatorStopped", text, self._timestamp()))

    async def run(self) -> Reconciliation:
        """Run one pass. Raises ClusterError, and ValueError for annotations that cannot be read."""
        self._reconcile_spans.begin()
        found = await self._observe()
        if found is not None and self._told is None and await self._doubt(found):
            # The save changed the version of the StatefulSet, and the next one has to name it.
            found = await self._observe()
        if found is None:
            return Reconciliation(None)
        timed = self._reconcile_spans.timed
        pods = await timed("ask pods", self._quorum.identify_pods(found.pods, found.service))
        view, silence = await timed("describe quorum", self._quorum.describe(pods, found.service))
        seen = Observation(
            now_ms=self._now_ms(),
            pods=pods,
            quorum=view,
            describe_error=silence,
            record=found.record,
            persisted_state=decode_state(found.memory),
            passed_over=self._passed_over,
        )
        decision = decide(found.desired, seen)
        if not self._may_act():
            return Reconciliation(decision, seen, found.desired, "the lease is held by another")
        with self._reconcile_spans.span(found.desired, decision):
            if decision.persisted_state != seen.persisted_state:
                memory = encode_state(decision.persisted_state)
                await timed("write memory", self._cluster.save_state(memory, found.version))
            # A pass that waits or is paused names no disk either that may vote.
            kept = claims_beyond(found.claims, found.desired.replicas)
            found = await self._tell_claims(found, kept)
            await self._tell(found, decision, has_leader=view is not None)
            error = None
            if not isinstance(decision.step, Wait):
                error = await self._act(decision.step)
            self._pass_over(decision.step, error)
            if decision.is_in_step and error is None:
                await self._look_for_claims(found)
        return Reconciliation(decision, seen, found.desired, error)

    async def _observe(self) -> StatefulSet | None:
        return await self._reconcile_spans.timed("look at StatefulSet", self._cluster.observe())

    async def _show(self, conditions: Sequence[Condition]) -> None:
        await self._reconcile_spans.timed(
            "write conditions", self._cluster.publish_conditions(conditions_text(conditions))
        )

    async def _post(self, reason: str, text: str, *, is_warning: bool) -> None:
        posting = self._cluster.post_event(reason, text, is_warning=is_warning)
        await self._reconcile_spans.timed("post Event", posting)

    async def _doubt(self, found: StatefulSet) -> bool:
        """Withdraw the conditions of a predecessor that was killed before it could.

        True if there was something to withdraw.
        """
        before = read_conditions(found.conditions)
        is_told = self._may_act() and any(each.status is not None for each in before.values())
        if is_told:
            text = "the operator has begun and has not looked yet"
            await self._show(unknown(before, "OperatorStarted", text, self._timestamp()))
        self._told = before
        return is_told

    async def _look_for_claims(self, found: StatefulSet) -> None:
        try:
            left = await self._reconcile_spans.timed("list claims", self._cluster.left_claims())
        except ClusterError as error:
            log.warning(f"claims are not told: {error}", extra={"repeats": "claims"})
        else:
            text = claims_text(left)
            await self._tell_claims(found, text, is_news=bool(text))

    async def _tell_claims(
        self, found: StatefulSet, text: str, *, is_news: bool = False
    ) -> StatefulSet:
        """Report once for each change. The pass counts as done, whatever the outcome."""
        if text == found.claims:
            return found
        try:
            await self._reconcile_spans.timed("write claims", self._cluster.tell_claims(text))
            if is_news:
                await self._post("ClaimsKept", text, is_warning=False)
        except ClusterError as error:
            log.warning(f"claims are not told: {error}", extra={"repeats": "claims"})
            return found
        return replace(found, claims=text)

    async def _tell(self, found: StatefulSet, decision: Decision, *, has_leader: bool) -> None:
        """Publish changed conditions, and an Event for a reason that is new or too old."""
        before = read_conditions(found.conditions)
        conditions = conditions_of(decision, before, has_leader=has_leader, now=self._timestamp())
        old_ones = {kind: replace(each, since="") for kind, each in before.items()}
        if old_ones != {each.kind: replace(each, since="") for each in conditions}:
            await self._show(conditions)
        self._told = {each.kind: each for each in conditions}
        now_ms, step = self._now_ms(), decision.step
        no_leader = None if has_leader else Wait(WaitReason.NO_LEADER, "")
        is_late = {
            HEALTHY: self._leader_patience.has_run_out(no_leader, now_ms),
            IN_STEP: self._patience.has_run_out(step, now_ms),
        }
        # Without a leader both conditions say the same, unless an action is reported instead.
        is_same = isinstance(step, Wait) and step.why is WaitReason.NO_LEADER
        for each in conditions:
            kinds = (HEALTHY, IN_STEP) if is_same else (each.kind,)
            old, is_warning = before.get(each.kind), any(is_late[kind] for kind in kinds)
            is_news = isinstance(step, Wait) and (old is None or old.reason != each.reason)
            if (is_same and each.kind == HEALTHY) or not (is_news or is_warning):
                continue
            log.info(f"{each.kind} {each.status}: {each.message}", extra={"reason": each.reason})
            await self._post(each.reason, each.message, is_warning=is_warning)
            # An Event that could not be posted is due in the next pass.
            if is_warning:
                for patience in (self._leader_patience, self._patience):
                    patience.has_warned(WaitReason(each.reason))

    async def _act(self, action: Action) -> str | None:
        """Do the action. Returns None when done, else the reason; the next pass decides again."""
        reason, text = action.cause.value, describe_action(action)
        log.info(text, extra={"reason": reason})
        try:
            await self._perform(action)
        except AdminError as error:
            return await self._failed(action, f"{error.reason}: {error.message}")
        except ConflictError as error:
            # The object has changed since, so the next pass decides: this is not a failure.
            return await self._failed(action, str(error), is_warning=False)
        await self._post(reason, text, is_warning=False)
        return None

    def _pass_over(self, step: Action | Wait, error: str | None) -> None:
        """Ask a voter that does not take over after all others, until one has taken over."""
        if not isinstance(step, HandOver) or error is None:
            self._passed_over = ()
        else:
            others = tuple(key for key in self._passed_over if key != step.to)
            self._passed_over = (*others, step.to)

    async def _failed(self, action: Action, why: str, *, is_warning: bool = True) -> str:
        log.warning(
            f"not done: {describe_action(action)}: {why}", extra={"reason": action.cause.value}
        )
        tracing.failed(why)
        await self._post("NotDone", f"{describe_action(action)}: {why}", is_warning=is_warning)
        return why

    async def _perform(self, action: Action) -> None:
        match action:
            case WriteRecord(record):
                writing = self._cluster.write_record(record)
                await self._reconcile_spans.timed("write record", writing)
            case AddVoter(key):
                await self._quorum.add_voter(key)
            case RemoveVoter(key):
                await self._quorum.remove_voter(key)
            case HandOver(to):
                await self._quorum.transfer_leadership(to)
            case DeletePod(name, uid, version):
                deleting = self._cluster.delete_pod(name, uid, version)
                await self._reconcile_spans.timed("delete pod", deleting)
