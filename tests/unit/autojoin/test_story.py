"""Which passes have a trace, and what it tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.api.admin import AdminError
from quorate.autojoin.story import SPAN
from quorate.records.errors import ErrorCode
from quorate.records.ids import format_uuid
from tests.recorded_spans import Recorded, attributes_of, recorded
from tests.unit.autojoin.looks import NOW_MS, key, pod, quorum
from tests.unit.autojoin.test_reconcile import fake, reconciler

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def found() -> Iterator[Recorded]:
    """What was recorded."""
    with recorded() as spans:
        yield spans


async def test_an_action_is_a_trace_from_the_first_look_on(found: Recorded) -> None:
    await reconciler(fake(view=quorum(0, 1, observers=(2,)))).run()
    span = found.one(SPAN)
    added, directory_id = key(2), key(2).directory_id
    assert directory_id is not None
    assert attributes_of(span) == {
        "k8s.statefulset.name": "q",
        "kraft.operator.replicas": 3,
        "kraft.operator.action": "AddVoter",
        "kraft.operator.reason": "ScaleUp",
        "kraft.operator.text": attributes_of(span)["kraft.operator.text"],
        "kraft.node.id": added.node_id,
        "kraft.directory.id": format_uuid(directory_id),
    }
    assert str(attributes_of(span)["kraft.operator.text"]).startswith("adds voter 2")
    assert span.start_time == NOW_MS * 1_000_000
    assert span.parent is None
    assert span.status.is_unset


async def test_a_pod_that_is_deleted_is_named(found: Recorded) -> None:
    await reconciler(fake(pod(2, revision="old"), view=quorum(0, 1, 2))).run()
    assert attributes_of(found.one(SPAN))["k8s.pod.name"] == "q-2"


async def test_what_is_not_done_is_an_error_with_the_reason(found: Recorded) -> None:
    world = fake(view=quorum(0, 1, observers=(2,)))
    world.fails["add"] = AdminError("VOTER_LAGGING", ErrorCode.REQUEST_TIMED_OUT, "it lags")
    await reconciler(world).run()
    assert found.one(SPAN).status.description == "VOTER_LAGGING: it lags"


async def test_waiting_is_told_once_for_each_reason(found: Recorded) -> None:
    world = fake(view=None)
    operator = reconciler(world)
    await operator.run()
    await operator.run()
    span = found.one(SPAN)
    assert attributes_of(span)["kraft.operator.action"] == "Wait"
    assert attributes_of(span)["kraft.operator.reason"] == "NoLeader"
    assert [dict(event.attributes or {})["reason"] for event in span.events] == ["NoLeader"]
    world.view = quorum(0, 1, 2)
    await operator.run()
    await operator.run()
    assert len(found.named(SPAN)) == 2
