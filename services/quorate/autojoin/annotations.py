"""What the operator keeps on the StatefulSet, as text: its memory, and what it tells people.

A memory that cannot be read stops the operator, because it may name disks that must not come back;
conditions that cannot be read are written anew.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.autojoin.actions import AddVoter, DeletePod, HandOver, RemoveVoter, Wait, Waiting
from quorate.autojoin.state import Memory
from quorate.records.ids import NodeId, ReplicaKey, parse_directory_id
from quorate.records.value_types import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quorate.autojoin.actions import Action, NextStep

HEALTHY = "QuorumHealthy"
IN_STEP = "MembersInStep"
CLAIMS_NAMED_MAX: Final = 10
CLAIMS_RUNBOOK: Final = "docs/runbooks/claims-of-scaled-down-pods.md"
# The line that `claims_text` writes, and the ordinal at the end of each name in it.
_CLAIMS_LINE: Final = re.compile(r"([^:]+?)(?: and (\d+) more)?: .*")
_ORDINAL: Final = re.compile(r".*-(\d+)")
_STATUSES: Final = {"True": True, "False": False, "Unknown": None}


def memory_text(memory: Memory) -> str:
    """One line of JSON, the same for the same memory."""
    ghosts = {str(key): since for key, since in memory.ghosts.items()}
    lost = [str(key) for key in memory.lost]
    return json.dumps({"ghosts": dict(sorted(ghosts.items())), "lost": lost})


def read_memory(text: str) -> Memory:
    """What `memory_text` wrote. Raises ValueError."""
    if not text:
        return Memory()
    try:
        value = json.loads(text)
        ghosts = {_key(key): int(since) for key, since in value["ghosts"].items()}
        return Memory(ghosts, tuple(map(_key, value["lost"])))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a memory of the operator: {text!r}") from error


def _key(text: str) -> ReplicaKey:
    node_id, _, directory_id = text.partition(":")
    return ReplicaKey(NodeId(int(node_id)), parse_directory_id(directory_id))


@value
class Condition:
    """Kubernetes' shape of a statement about an object; `since` is when `status` last changed.

    A status of None is Unknown.
    """

    kind: str
    status: bool | None
    reason: str
    message: str
    since: str

    def as_json(self) -> dict[str, str]:
        """As kubectl users know it."""
        return {
            "type": self.kind,
            "status": "Unknown" if self.status is None else str(self.status),
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": self.since,
        }


def conditions_text(conditions: Sequence[Condition]) -> str:
    """One line of JSON."""
    return json.dumps([each.as_json() for each in conditions])


def read_conditions(text: str) -> dict[str, Condition]:
    """By type; what cannot be read is left out, and then written anew."""
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
    decision: NextStep, before: dict[str, Condition], *, has_leader: bool, now: str
) -> tuple[Condition, ...]:
    """What to say after this decision; a status that stays keeps its time."""

    def condition(kind: str, reason: str, message: str, *, status: bool) -> Condition:
        return _dated(Condition(kind, status, reason, message, now), before)

    step = decision.step
    no_leader = next((each for each in decision.waits if each.why is Waiting.NO_LEADER), None)
    healthy = condition(
        HEALTHY,
        "LeaderKnown" if has_leader else Waiting.NO_LEADER.value,
        "the leader answers" if has_leader else (no_leader.text if no_leader else "no leader"),
        status=has_leader,
    )
    if isinstance(step, Wait):
        texts = "; ".join(each.text for each in decision.waits)
        in_step = condition(IN_STEP, step.why.value, texts, status=decision.is_in_step)
    else:
        in_step = condition(IN_STEP, step.cause.value, words(step), status=False)
    return healthy, in_step


def unknown(
    before: Mapping[str, Condition], reason: str, message: str, now: str
) -> tuple[Condition, ...]:
    """The same conditions while no operator knows how things stand."""
    return tuple(
        _dated(Condition(kind, None, reason, message, now), before) for kind in (HEALTHY, IN_STEP)
    )


def _dated(new: Condition, before: Mapping[str, Condition]) -> Condition:
    """With the time of the one before where the status stays."""
    old = before.get(new.kind)
    return new if old is None or old.status != new.status else replace(new, since=old.since)


def claims_text(names: Sequence[str]) -> str:
    """The claims that pods which were scaled away have left, and what to do about them."""
    return _claims_text(names[:CLAIMS_NAMED_MAX], len(names) - CLAIMS_NAMED_MAX)


def claims_beyond(text: str, replicas: int) -> str:
    """The same text without the claims of pods that are wanted again: their disks may vote."""
    line = _CLAIMS_LINE.fullmatch(text)
    if line is None:
        return text
    names = line[1].split(", ")
    left = [name for name in names if not _is_wanted(name, replicas)]
    # Those that are not named have higher ordinals, or are as unknown as how many are left.
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


def words(step: Action) -> str:
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
