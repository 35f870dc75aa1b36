"""Verifies that the replica behind a connection is the expected one.

A response that a different replica could have given leads to one ApiVersions request on the same
connection, which every controller answers with its identity. A connection to the wrong replica is
closed, so that the next request resolves the name again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import grpc
import grpc.aio

from quorate.h2.name_resolver import RESOLVER
from quorate.raft.backoff import backoff_ms
from quorate.raft.identity.peer_identity import addressed, identity_problem, needs_check, outcome
from quorate.raft.messages import ApiVersionsResponse, EndQuorumEpochRequest
from quorate.raft.voter_addresses import WRONG_NODE_ERRORS
from quorate.records.errors import ErrorCode
from quorate.records.ids import ReplicaKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from quorate.raft.api import Peer, Random
    from quorate.raft.identity.peer_identity import ReplicaIdentity
    from quorate.raft.messages import FetchResponse, PeerRequest, PeerResponse
    from quorate.rpc.raft.peer_outcomes import PeerOutcomes

# Seconds for which a verified replica is trusted: its errors are its own.
TRUST_S: Final = 5.0
# The wait between two connections to an address where another replica listens.
RETRY_FIRST_MS: Final = 250
RETRY_LONGEST_MS: Final = 3_000
ADDRESSES_MAX: Final = 256
# A server that ends calls with these codes may be another service, or belong to another deployment.
# A denied identity has its own warning.
_FOREIGN: Final = {
    grpc.StatusCode.UNIMPLEMENTED: "no controller: it does not know the method",
    grpc.StatusCode.UNAUTHENTICATED: "",
    grpc.StatusCode.PERMISSION_DENIED: "",
}


class Connected(Protocol):
    """A connection to a peer."""

    @property
    def peer(self) -> Peer: ...


L = TypeVar("L", bound=Connected)


@dataclass(slots=True)
class _Address:
    """The checks of one address: failures in a row, and when the next check may begin."""

    failures: int = 0
    not_before_s: float = 0.0


class PeerCheck(Generic[L]):
    """The checks of one client's connections; each address has one at a time, with a backoff."""

    def __init__(
        self,
        own: ReplicaIdentity,
        outcomes: PeerOutcomes,
        *,
        ask: Callable[[L], Awaitable[ApiVersionsResponse | None]],
        leave: Callable[[L], None],
        start: Callable[[Coroutine[None, None, None]], None],
        limit_s: float,
        random: Random,
    ) -> None:
        """`ask` sends ApiVersions on a connection and takes `limit_s` at most."""
        self._own, self._outcomes = own, outcomes
        self._ask, self._leave, self._start = ask, leave, start
        self._limit_s = limit_s
        self._random = random
        self._addresses: OrderedDict[Peer, _Address] = OrderedDict()

    # --- reports of the client --------------------------------------------------------------------

    async def accepts(self, link: L, request: PeerRequest, answer: PeerResponse) -> bool:
        """True if a response counts; it does not if it would hide that its request is lost."""
        self._outcomes.answered(link.peer, outcome(request, answer))
        wanted = addressed(link.peer, request)
        if isinstance(answer, ApiVersionsResponse):
            self._judge(link, wanted, answer)
        elif isinstance(request, EndQuorumEpochRequest):
            return not self._may_begin(link.peer) or await self._is_right(link, wanted)
        elif needs_check(request, answer):
            self._suspect(link, wanted, answer.error)
        return True

    def fetched(self, link: L, answer: FetchResponse) -> None:
        """Take a response on the Fetch stream."""
        if answer.error is ErrorCode.NONE:
            self._outcomes.answered(link.peer, None)
            return
        self._outcomes.answered(link.peer, f"answers Fetch with {answer.error.name}")
        self._suspect(link, ReplicaKey(link.peer.node_id), answer.error)

    def failed(self, link: L, error: grpc.aio.AioRpcError, wanted: ReplicaKey) -> None:
        """Take the failure of a call."""
        self._outcomes.failed(link.peer, error)
        if error.code() in _FOREIGN:
            if self._may_begin(link.peer):
                self._start(self._check(link, wanted, _FOREIGN[error.code()]))
        elif (known := self._addresses.get(link.peer)) is not None and not known.failures:
            # The next connection may lead elsewhere.
            del self._addresses[link.peer]

    # --- checks -----------------------------------------------------------------------------------

    def _suspect(self, link: L, wanted: ReplicaKey, error: ErrorCode) -> None:
        evidence = None
        if error in WRONG_NODE_ERRORS:
            evidence = f"not node {wanted}: it answers with {error.name}, and not who it is"
        if self._may_begin(link.peer):
            self._start(self._check(link, wanted, evidence))

    def _may_begin(self, peer: Peer) -> bool:
        """True if a check may begin now; then the next one waits for its end."""
        now_s = asyncio.get_running_loop().time()
        known = self._addresses.setdefault(peer, _Address())
        self._addresses.move_to_end(peer)
        if len(self._addresses) > ADDRESSES_MAX:
            self._addresses.popitem(last=False)
        if now_s < known.not_before_s:
            return False
        known.not_before_s = now_s + self._limit_s
        return True

    async def _check(self, link: L, wanted: ReplicaKey, evidence: str | None) -> None:
        await self._is_right(link, wanted, evidence)

    async def _is_right(self, link: L, wanted: ReplicaKey, evidence: str | None = None) -> bool:
        """Ask for the identity; with evidence, a missing response means another replica."""
        found = await self._ask(link)
        if found is not None:
            return self._judge(link, wanted, found)
        if evidence is not None:
            self._is_another(link, evidence)
        else:
            self._addresses.pop(link.peer, None)
        return evidence is None

    def _judge(self, link: L, wanted: ReplicaKey, found: ApiVersionsResponse) -> bool:
        problem = identity_problem(wanted, found, self._own)
        if problem is None:
            not_before_s = asyncio.get_running_loop().time() + TRUST_S
            self._addresses[link.peer] = _Address(not_before_s=not_before_s)
        else:
            self._is_another(link, problem)
        return problem is None

    def _is_another(self, link: L, words: str) -> None:
        peer = link.peer
        known = self._addresses.setdefault(peer, _Address())
        known.failures += 1
        wait_ms = backoff_ms(
            known.failures,
            first_ms=RETRY_FIRST_MS,
            longest_ms=RETRY_LONGEST_MS,
            random=self._random,
        )
        known.not_before_s = asyncio.get_running_loop().time() + wait_ms / 1000
        RESOLVER.forget(peer.host)
        if words:
            self._outcomes.is_another(peer, words)
        self._leave(link)
