"""A failed stop becomes an Event of the StatefulSet, and the command in it is not cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.admin.events import MESSAGE_MAX, Events
from quorate.api.admin_api import AdminError
from quorate.records.errors import ErrorCode
from quorate.records.ids import NodeId
from tests.unit.admin.api_servers import StandIn, api

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

__all__ = ["api"]
REMOVAL = (
    "kubectl exec -n ns q-0 -c controller -- quorate metadata-quorum"
    " --bootstrap-controller q:9094 remove-controller --controller-id 3"
)


def refusal(message: str) -> AdminError:
    return AdminError("NO_LIVE_MAJORITY", ErrorCode.REQUEST_TIMED_OUT, message)


async def test_a_voter_that_stays_behind_is_named_with_the_command_that_removes_it(
    api: StandIn, tmp_path: Path
) -> None:
    events = Events(api.at(tmp_path), NodeId(3), has_tls=False)
    await events.tell_not_removed(refusal("two of four are away"))

    ((path, event),) = api.posted
    assert path == "/api/v1/namespaces/ns/events"
    assert (event["type"], event["reason"]) == ("Warning", "VoterNotRemoved")
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "q",
        "namespace": "ns",
    }
    assert event["metadata"] == {"generateName": "q-", "namespace": "ns"}
    assert event["message"] == (
        "pod q-3 is scaled away and stops, and stays a voter: two of four are away; when a "
        f"majority of the voters runs: {REMOVAL}"
    )


async def test_a_long_reason_does_not_cut_the_command_off(api: StandIn, tmp_path: Path) -> None:
    events = Events(api.at(tmp_path), NodeId(3), has_tls=False)
    await events.tell_not_removed(refusal("x" * 5000))

    ((_, event),) = api.posted
    assert len(event["message"]) == MESSAGE_MAX
    assert event["message"].endswith(REMOVAL)


async def test_with_tls_the_command_has_its_properties(api: StandIn, tmp_path: Path) -> None:
    events = Events(api.at(tmp_path), NodeId(2), has_tls=True)
    await events.tell_not_spared("its time is up: voter 0 is away")

    ((_, event),) = api.posted
    assert event["reason"] == "VoterNotSpared"
    assert "its time is up: voter 0 is away" in event["message"]
    assert event["message"].endswith(
        "--command-config /etc/quorate/config/client.properties describe --status"
    )


async def test_an_api_server_that_refuses_stops_nothing(
    api: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api.status = 403
    events = Events(api.at(tmp_path), NodeId(3), has_tls=False)
    await events.tell_not_removed(refusal("two of four are away"))

    assert "no Event could be written (HTTP Error 403: Forbidden)" in caplog.text
    assert REMOVAL in caplog.text
