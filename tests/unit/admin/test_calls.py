"""A line and a count for each call."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from quorate.admin.calls import CallLog
from quorate.rpc.admin_server import CallRecord

if TYPE_CHECKING:
    import pytest


def test_a_call_is_told_with_who_asked_and_counted_by_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = CallLog(2)
    caplog.set_level(logging.INFO, "quorate.admin.calls")
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
        (name, outcome): calls.registry.get_sample_value(name, labels | {"outcome": outcome})
        for name in ("quorate_admin_calls_total", "quorate_admin_call_seconds_total")
        for outcome in ("OK", "VOTER_LAGGING")
    }
    assert counts == {
        ("quorate_admin_calls_total", "OK"): 2.0,
        ("quorate_admin_calls_total", "VOTER_LAGGING"): 1.0,
        ("quorate_admin_call_seconds_total", "OK"): 1.0,
        ("quorate_admin_call_seconds_total", "VOTER_LAGGING"): 0.25,
    }
