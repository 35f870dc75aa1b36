"""A change of the voters is one trace from its caller through the sidecar to the leader."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from opentelemetry.trace import SpanKind

from quorate.client.admin_client import AdminClient
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import NodeId, ReplicaKey
from quorate.telemetry import tracing
from tests.integration.client.scripted import observer, refusal
from tests.integration.transports import chosen
from tests.recorded_spans import Recorded, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from tests.integration.client.conftest import Beside
    from tests.integration.client.scripted import ScriptedQuorum

WAIT_S = 60.0
TO_SIDECAR = "quorate.admin.v1.Admin/AddRaftVoter"
TO_LEADER = "quorate.raft.v1.Raft/AddRaftVoter"


@pytest.fixture(autouse=True)
def found() -> Iterator[Recorded]:
    """The recorded spans; tracing is on before the sidecar is made."""
    with recorded() as spans:
        yield spans


async def test_a_change_is_one_trace_from_its_caller_to_the_leader(
    quorum: ScriptedQuorum, beside: Beside, found: Recorded
) -> None:
    quorum.observers = (observer(4),)
    # The first answer passes by itself, and the sidecar asks again.
    pending = m.Reason.PENDING_VOTER_CHANGE
    quorum.answers.append(refusal(ErrorCode.REQUEST_TIMED_OUT, pending))
    async with AdminClient([beside.address], transport=chosen()) as client:
        with tracing.root("caller", {}):
            await client.add_voter(ReplicaKey(NodeId(4)))

    def of(name: str, kind: SpanKind) -> list[ReadableSpan]:
        return [span for span in found.named(name) if span.kind is kind]

    async with asyncio.timeout(WAIT_S):
        while not of(TO_SIDECAR, SpanKind.SERVER):  # noqa: ASYNC110 - its end has no event
            await asyncio.sleep(0.001)
    (asked,), (served,) = of(TO_SIDECAR, SpanKind.CLIENT), of(TO_SIDECAR, SpanKind.SERVER)
    first, second = of(TO_LEADER, SpanKind.CLIENT)
    chain = [found.one("caller"), asked, served, first]
    for parent, child in pairwise(chain):
        assert child.parent is not None
        assert child.parent.span_id == parent.context.span_id
    assert second.parent == first.parent
    assert {span.context.trace_id for span in found.spans} == {asked.context.trace_id}
    assert dict(first.attributes or {})["kraft.refusal"] == pending.value
    (again,) = [event for event in served.events if event.name == "kraft.voter_change.asks_again"]
    assert dict(again.attributes or {})["reason"] == pending.value
    at_leader = {span.parent.span_id for span in of(TO_LEADER, SpanKind.SERVER) if span.parent}
    assert at_leader == {first.context.span_id, second.context.span_id}
