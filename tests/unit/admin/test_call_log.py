"""A line and a count for each call."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from quorate.admin.call_log import CallLog
from quorate.rpc.admin.servicer import METHODS, CallRecord
from quorate.telemetry.logs import RepeatFilter

if TYPE_CHECKING:
    import pytest


def test_a_call_is_told_with_who_asked_and_counted_by_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = CallLog(2)
    caplog.set_level(logging.INFO, "quorate.admin.call_log")
    done = CallRecord("AddRaftVoter", "User:a", "ipv4:1", "voter_id: 4", "OK", "", 0.5)
    refused = CallRecord("AddRaftVoter", "User:b", "ipv4:1", "", "VOTER_LAGGING", "behind", 0.25)
    for call in (done, done, refused):
        calls.record(call)
    first, _, last = caplog.records
    assert (first.getMessage(), first.levelno) == ("AddRaftVoter: done", logging.INFO)
    assert (last.getMessage(), last.levelno) == ("AddRaftVoter: behind", logging.WARNING)
    fields = vars(first).items()
    assert fields >= {
        ("method", "AddRaftVoter"),
        ("principal", "User:a"),
        ("host", "ipv4:1"),
        ("request", "voter_id: 4"),
        ("outcome", "OK"),
        ("duration_ms", 500),
    }
    labels = {"node_id": "2", "method": "AddRaftVoter"}
    counts = {
        outcome: calls.registry.get_sample_value(
            "quorate_admin_calls_total", labels | {"outcome": outcome}
        )
        for outcome in ("OK", "VOTER_LAGGING")
    }
    assert counts == {"OK": 2.0, "VOTER_LAGGING": 1.0}
    durations = "quorate_admin_call_duration_seconds"
    assert calls.registry.get_sample_value(f"{durations}_count", labels) == 3
    assert calls.registry.get_sample_value(f"{durations}_sum", labels) == 1.25


def test_changes_are_a_line_each_and_what_may_be_repeated_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "quorate.admin.call_log")
    calls = CallLog(2)
    change = CallRecord("AddRaftVoter", "User:a", "ipv4:1", "", "OK", "", 0.5)
    description = CallRecord("DescribeQuorum", "User:a", "ipv4:1", "", "OK", "", 0.5)
    refused = CallRecord("AddRaftVoter", "User:b", "ipv4:1", "", "VOTER_LAGGING", "behind", 0.5)
    for call in (change, description, refused) * 3:
        calls.record(call)
    is_new = RepeatFilter().filter
    written = [line.__dict__["method"] for line in caplog.records if is_new(line)]
    assert sorted(written) == [*["AddRaftVoter"] * 4, "DescribeQuorum"]


def test_a_call_that_nobody_made_yet_is_counted_as_none() -> None:
    calls = CallLog(2)
    for method in METHODS:
        labels = {"node_id": "2", "method": method, "outcome": "OK"}
        assert calls.registry.get_sample_value("quorate_admin_calls_total", labels) == 0
    assert "PrepareStop" in METHODS


def test_the_end_of_the_certificate_is_the_one_of_now() -> None:
    name, ends_s = "quorate_admin_certificate_expiry_timestamp_seconds", 7.0
    calls = CallLog(2, lambda: ends_s)
    ends_s = 8.0
    assert calls.registry.get_sample_value(name, {"node_id": "2"}) == 8.0
    assert CallLog(2).registry.get_sample_value(name, {"node_id": "2"}) is None


def test_for_how_long_the_statefulset_could_not_be_read_is_told() -> None:
    name, labels = "quorate_admin_statefulset_unread_seconds", {"node_id": "2"}
    assert CallLog(2).registry.get_sample_value(name, labels) == 0.0
    calls = CallLog(2, unread_s=lambda: 7.0)
    assert calls.registry.get_sample_value(name, labels) == 7.0
