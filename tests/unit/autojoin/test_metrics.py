"""Metrics of a scrape after a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.autojoin.actions import WaitReason
from quorate.autojoin.decision import decide
from quorate.autojoin.metrics import OUTCOMES, Meters
from quorate.autojoin.reconciler import Reconciliation
from tests.unit.autojoin.looks import desired, look, pod, pods, quorum

if TYPE_CHECKING:
    from quorate.autojoin.state import Observation


def passed(meters: Meters, seen: Observation, error: str | None = None) -> None:
    meters.passed(Reconciliation(decide(desired(3), seen), seen, desired(3), error), 12.0)


def value(meters: Meters, name: str, **labels: str) -> float | None:
    return meters.registry.get_sample_value(
        f"quorate_autojoin_{name}", {"statefulset": "q", **labels}
    )


def test_reasons_to_wait_are_those_of_the_last_pass() -> None:
    meters = Meters("q", 5.0)
    assert value(meters, "waiting", reason="NoLeader") == 0
    passed(meters, look(pods(3), None))
    assert value(meters, "waiting", reason="NoLeader") == 1
    passed(meters, look(pods(3), quorum(0, 1, 2)))
    assert value(meters, "waiting", reason="NoLeader") == 0
    assert value(meters, "waiting", reason="InStep") == 1
    assert value(meters, "voters") == 3
    assert value(meters, "desired_replicas") == 3
    assert value(meters, "last_pass_timestamp_seconds") == 12.0


def test_actions_are_counted_by_their_end() -> None:
    meters, seen = Meters("q", 5.0), look(pods(3), quorum(0, observers=(1,)))
    passed(meters, seen)
    passed(meters, seen, "refused")
    labels = {"action": "AddVoter", "cause": "ScaleUp"}
    assert value(meters, "actions_total", outcome="done", **labels) == 1
    assert value(meters, "actions_total", outcome="failed", **labels) == 1
    meters.failed()
    assert value(meters, "passes_total", outcome="failed") == 1


def test_the_lease_is_shown() -> None:
    meters = Meters("q", 5.0)
    meters.lease(held=True)
    assert value(meters, "lease_held") == 1


def test_what_did_not_happen_yet_is_shown() -> None:
    meters = Meters("q", 5.0)
    assert value(meters, "last_pass_timestamp_seconds") == 5.0
    assert value(meters, "lease_held") == 0
    assert [value(meters, "passes_total", outcome=outcome) for outcome in OUTCOMES] == [0, 0, 0]
    assert value(meters, "pass_duration_seconds_count") == 0


def test_a_pass_is_timed_however_it_ends() -> None:
    meters = Meters("q", 5.0)
    with meters.time_pass():
        pass
    with pytest.raises(ValueError, match="broken"), meters.time_pass():
        raise ValueError("broken")
    assert value(meters, "pass_duration_seconds_count") == 2


def test_one_that_stands_by_shows_nothing_of_what_it_saw_before() -> None:
    meters = Meters("q", 5.0)
    meters.lease(held=True)
    passed(meters, look(pods(3), None))
    passed(meters, look(pods(3, pod(2, ready=False)), quorum(0, 1, 2)))
    meters.lease(held=False)
    assert {value(meters, "waiting", reason=each.value) for each in WaitReason} == {0}
    assert value(meters, "voters") is None
    assert value(meters, "desired_replicas") is None
    meters.lease(held=True)
    passed(meters, look(pods(3), quorum(0, 1, 2)))
    assert value(meters, "voters") == 3
