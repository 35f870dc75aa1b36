"""Orders the endpoints of nodes for callers that came through one listener (KIP-853).

A node may have several listeners, and tells of all of them. A client takes the first: it cannot
know what the listener is called that it has found, and one of another name may speak something
else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from quorate.raft import messages as m

if TYPE_CHECKING:
    from quorate.records.voters import Endpoint

AnyResponse = TypeVar("AnyResponse", bound=m.Response)


def listener_first(endpoints: tuple[Endpoint, ...], name: str) -> tuple[Endpoint, ...]:
    """The same, that of this listener before the others."""
    if len(endpoints) < 2 or endpoints[0].name == name:
        return endpoints
    return tuple(sorted(endpoints, key=lambda endpoint: endpoint.name != name))


def endpoints_for_listener(name: str, answer: AnyResponse) -> AnyResponse:
    """An answer with what is told to callers of this listener; "" is told all as it is."""
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
