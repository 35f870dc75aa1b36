"""Annotations on the StatefulSet: persisted memory and conditions.

A memory that cannot be read stops the operator, because it may name disks that must not return.
Conditions that cannot be read are rewritten.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.autojoin.actions import AddVoter, DeletePod, HandOver, RemoveVoter, Wait, WaitReason
from quorate.autojoin.state import PersistedState
from quorate.records.ids import NodeId, ReplicaKey, parse_directory_id
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quorate.autojoin.actions import Action, Decision

HEALTHY = "QuorumHealthy"
IN_STEP = "MembersInStep"
CLAIMS_NAMED_MAX: Final = 10
CLAIMS_RUNBOOK: Final = "docs/runbooks/claims-of-scaled-down-pods.md"
# The line that `claims_text` writes, and the ordinal at the end of each name in it.
_CLAIMS_LINE: Final = re.compile(r"([^:]+?)(?: and (\d+) more)?: .*")
_ORDINAL: Final = re.compile(r".*-(\d+)")
_STATUSES: Final = {"True": True, "False": False, "Unknown": None}


def encode_state(persisted_state: PersistedState) -> str:
    """Encode the memory as one line of JSON; equal memories give equal text."""
    ghosts = {str(key): since for key, since in persisted_state.orphans.items()}
    lost = [str(key) for key in persisted_state.lost]
    return json.dumps({"ghosts": dict(sorted(ghosts.items())), "lost": lost})


def decode_state(text: str) -> PersistedState:
    """Decode the text of `memory_text`. Raises ValueError."""
    if not text:
        return PersistedState()
    try:
        value = json.loads(text)
        ghosts = {_key(key): int(since) for key, since in value["ghosts"].items()}
        return PersistedState(ghosts, tuple(map(_key, value["lost"])))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a memory of the operator: {text!r}") from error


def _key(text: str) -> ReplicaKey:
    node_id, _, directory_id = text.partition(":")
    return ReplicaKey(NodeId(int(node_id)), parse_directory_id(directory_id))


@value_type
class Condition:
    """A condition of an object, as in Kubernetes; `since` is when `status` last changed.

    A status of None is Unknown.
    """

    kind: str
    status: bool | None
    reason: str
    message: str
    since: str

    def as_json(self) -> dict[str, str]:
        """The JSON object with Kubernetes' field names."""
        return {
            "type": self.kind,
            "status": "Unknown" if self.status is None else str(self.status),
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": self.since,
        }


def conditions_text(conditions: Sequence[Condition]) -> str:
    """Encode the conditions as one line of JSON."""
    return json.dumps([each.as_json() for each in conditions])


def read_conditions(text: str) -> dict[str, Condition]:
    """Decode conditions, by type; those that cannot be read are left out and rewritten later."""
    try:
        items: list[dict[str, Any]] = json.loads(text) if text else []
        return {
            each["type"]: Condition(
                each["type"],
                _STATUSES[each["status"]],
                each["reason"],
                each["message"],
                each["lastTransitionTime"],
            )
            for each in items
        }
    except (ValueError, KeyError, TypeError):
        return {}


def conditions_of(
    decision: Decision, before: dict[str, Condition], *, has_leader: bool, now: str
) -> tuple[Condition, ...]:
    """Build the conditions after this decision; an unchanged status keeps its time."""

    def condition(kind: str, reason: str, message: str, *, status: bool) -> Condition:
        return _dated(Condition(kind, status, reason, message, now), before)

    step = decision.step
    no_leader = next((each for each in decision.waits if each.why is WaitReason.NO_LEADER), None)
    healthy = condition(
        HEALTHY,
        "LeaderKnown" if has_leader else WaitReason.NO_LEADER.value,
        "the leader answers" if has_leader else (no_leader.text if no_leader else "no leader"),
        status=has_leader,
    )
    if isinstance(step, Wait):
        texts = "; ".join(each.text for each in decision.waits)
        in_step = condition(IN_STEP, step.why.value, texts, status=decision.is_in_step)
    else:
        in_step = condition(IN_STEP, step.cause.value, describe_action(step), status=False)
    return healthy, in_step


def unknown(
    before: Mapping[str, Condition], reason: str, message: str, now: str
) -> tuple[Condition, ...]:
    """The same conditions with status Unknown, while no operator observes the cluster."""
    return tuple(
        _dated(Condition(kind, None, reason, message, now), before) for kind in (HEALTHY, IN_STEP)
    )


def _dated(new: Condition, before: Mapping[str, Condition]) -> Condition:
    """Keep the time of the previous condition if the status has not changed."""
    old = before.get(new.kind)
    return new if old is None or old.status != new.status else replace(new, since=old.since)


def claims_text(names: Sequence[str]) -> str:
    """Name the claims left by pods that were scaled down, and what to do about them."""
    return _claims_text(names[:CLAIMS_NAMED_MAX], len(names) - CLAIMS_NAMED_MAX)


def claims_beyond(text: str, replicas: int) -> str:
    """Drop the claims of pods that are wanted again from the text: their disks may vote."""
    line = _CLAIMS_LINE.fullmatch(text)
    if line is None:
        return text
    names = line[1].split(", ")
    left = [name for name in names if not _is_wanted(name, replicas)]
    # Claims that are not named have higher ordinals; how many of them are left is not known.
    return text if left == names else _claims_text(left, int(line[2] or 0))


def _is_wanted(claim: str, replicas: int) -> bool:
    match = _ORDINAL.fullmatch(claim)
    return match is not None and int(match[1]) < replicas


def _claims_text(names: Sequence[str], more: int) -> str:
    if not names:
        return ""
    others = f" and {more} more" if more > 0 else ""
    listed = ", ".join(names)
    return f"{listed}{others}: claims of pods that were scaled away are kept ({CLAIMS_RUNBOOK})"


def describe_action(step: Action) -> str:
    """An action as one sentence, for events and logs."""
    match step:
        case AddVoter(key, _, text):
            return f"adds voter {key}: {text}"
        case RemoveVoter(key, _, text):
            return f"removes voter {key}: {text}"
        case HandOver(to, _, text):
            return f"has {to} lead: {text}"
        case DeletePod(name, _, _, _, text):
            return f"deletes pod {name}: {text}"
        case _:
            return f"writes the bootstrap record: {step.text}"
