"""Orders the endpoints of nodes for callers that came through one listener (KIP-853).

A node may have several listeners, and advertises all of them. A client uses the first one: it does
not know the name of the listener that it has reached, and another listener may have a different
protocol.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from quorate.raft import messages as m

if TYPE_CHECKING:
    from quorate.records.voters import Endpoint

AnyResponse = TypeVar("AnyResponse", bound=m.Response)


def listener_first(endpoints: tuple[Endpoint, ...], name: str) -> tuple[Endpoint, ...]:
    """The same endpoints in another order: the endpoint of this listener is first."""
    if len(endpoints) < 2 or endpoints[0].name == name:
        return endpoints
    return tuple(sorted(endpoints, key=lambda endpoint: endpoint.name != name))


def endpoints_for_listener(name: str, answer: AnyResponse) -> AnyResponse:
    """The response for callers of this listener; for "" the response is unchanged."""
    if not name:
        return answer
    seen = answer
    if not isinstance(seen, m.ApiVersionsResponse):
        seen = replace(seen, leader=_leader(seen.leader, name))
    if isinstance(seen, m.DescribeQuorumResponse):
        last = seen.last_leader
        seen = replace(
            seen,
            voters=tuple(_state(state, name) for state in seen.voters),
            observers=tuple(_state(state, name) for state in seen.observers),
            last_leader=None if last is None else _leader(last, name),
        )
    return seen


def _leader(info: m.LeaderInfo, name: str) -> m.LeaderInfo:
    return replace(info, endpoints=listener_first(info.endpoints, name))


def _state(state: m.ReplicaState, name: str) -> m.ReplicaState:
    return replace(state, endpoints=listener_first(state.endpoints, name))
