"""Annotations: written, read again, and refused where they make no sense."""

from __future__ import annotations

import pytest

from quorate.autojoin.actions import (
    AddVoter,
    DeletePod,
    HandOver,
    RemoveVoter,
    StepCause,
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
from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.autojoin.decision import decide
from quorate.autojoin.state import PersistedState
from tests.unit.autojoin.looks import CLUSTER, dead, desired, key, look, pods, quorum


def test_a_memory_is_read_as_it_was_written() -> None:
    memory = PersistedState({key(3): 5, key(4, 2): 7}, (key(2), key(2, 1)))
    assert decode_state(encode_state(memory)) == memory
    assert decode_state("") == PersistedState()


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"ghosts": {}}', '{"ghosts": {"3": 1}, "lost": []}', '{"ghosts": 1, "lost": []}'],
)
def test_a_memory_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_state(text)


def test_conditions_keep_the_time_of_their_status() -> None:
    waiting = decide(desired(3), look(pods(3), quorum(0, 1)))
    first = conditions_of(waiting, {}, has_leader=True, now="t1")
    assert [(each.kind, each.status, each.reason) for each in first] == [
        (HEALTHY, True, "LeaderKnown"),
        (IN_STEP, False, "ObserverNotSeen"),
    ]
    before = read_conditions(conditions_text(first))
    assert before == {each.kind: each for each in first}
    at_rest = decide(desired(3), look(pods(3), quorum(0, 1, 2)))
    second = conditions_of(at_rest, before, has_leader=True, now="t2")
    assert [(each.status, each.since) for each in second] == [(True, "t1"), (True, "t2")]


def test_conditions_name_all_that_is_waited_for() -> None:
    seen = look(pods(2), quorum(0, 1, dead(4)))
    in_step = conditions_of(decide(desired(3), seen), {}, has_leader=True, now="t")[1]
    assert "has no pod" in in_step.message
    assert "there is no pod q-2" in in_step.message


def test_no_leader_is_a_condition() -> None:
    healthy, in_step = conditions_of(
        decide(desired(3), look(pods(3), None)), {}, has_leader=False, now="t"
    )
    assert (healthy.status, healthy.reason) == (False, "NoLeader")
    assert (in_step.status, in_step.reason) == (False, "NoLeader")


def test_an_action_is_a_condition_too() -> None:
    acting = decide(desired(3), look(pods(3), quorum(0, observers=(1,))))
    in_step = conditions_of(acting, {}, has_leader=True, now="t")[1]
    assert (in_step.status, in_step.reason) == (False, "ScaleUp")


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"type": "A"}]'])
def test_conditions_that_make_no_sense_are_written_anew(text: str) -> None:
    assert read_conditions(text) == {}


def test_actions_are_sentences() -> None:
    why = StepCause.SCALE_UP
    assert describe_action(AddVoter(key(1), why, "because")) == f"adds voter {key(1)}: because"
    assert (
        describe_action(RemoveVoter(key(1), why, "because")) == f"removes voter {key(1)}: because"
    )
    assert describe_action(HandOver(key(1), why, "because")) == f"has {key(1)} lead: because"
    assert describe_action(DeletePod("q-1", "u", "v", why, "because")) == "deletes pod q-1: because"
    record = WriteRecord(BootstrapRecord(CLUSTER), why, "because")
    assert describe_action(record) == "writes the bootstrap record: because"


def test_what_nobody_knows_is_unknown() -> None:
    at_rest = decide(desired(3), look(pods(3), quorum(0, 1, 2)))
    known = {each.kind: each for each in conditions_of(at_rest, {}, has_leader=True, now="t1")}
    told = unknown(known, "OperatorStopped", "it has stopped", "t2")
    text = conditions_text(told)
    assert text.count('"status": "Unknown"') == 2
    before = read_conditions(text)
    assert [(each.kind, each.status, each.since) for each in before.values()] == [
        (HEALTHY, None, "t2"),
        (IN_STEP, None, "t2"),
    ]
    again = unknown(before, "OperatorStarted", "it has begun", "t3")
    assert {each.since for each in again} == {"t2"}
    assert unknown({}, "OperatorStarted", "it has begun", "t3")[0].since == "t3"


def test_claims_are_listed_within_bounds() -> None:
    assert claims_text(()) == ""
    runbook = "(docs/runbooks/claims-of-scaled-down-pods.md)"
    kept = f"claims of pods that were scaled away are kept {runbook}"
    assert claims_text(("data-q-3", "data-q-4")) == f"data-q-3, data-q-4: {kept}"
    many = claims_text([f"data-q-{each}" for each in range(3, 20)])
    assert "data-q-12 and 7 more: " in many
    assert "data-q-13" not in many


def test_claims_of_pods_that_are_wanted_are_taken_out() -> None:
    names = [f"data-q-{each}" for each in range(3, 20)]
    assert claims_beyond(claims_text(names[:3]), 3) == claims_text(names[:3])
    assert claims_beyond(claims_text(names[:3]), 5) == claims_text(("data-q-5",))
    assert claims_beyond(claims_text(names[:3]), 6) == ""
    told = claims_beyond(claims_text(names), 12)
    assert told.startswith("data-q-12 and 7 more: ")
    assert claims_beyond(told, 13) == ""
    assert claims_beyond("", 3) == ""
    assert claims_beyond("in other words", 3) == "in other words"


def test_a_scale_to_zero_that_has_ended_is_in_step() -> None:
    told = conditions_of(decide(desired(0), look((), None)), {}, has_leader=False, now="t")[1]
    assert (told.status, told.reason) == (True, "NoReplicas")
