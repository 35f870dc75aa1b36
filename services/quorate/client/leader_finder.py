"""Finds the leader and remembers it: last leader first, then every known server.

The nearest controller comes first in `servers`. It need not run: leaders report the addresses of
the others, which are remembered. An unresponsive leader is abandoned once another one leads
(client/unresponsive_servers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from quorate.api.admin_api import NO_LEADER, AdminError
from quorate.client.backoff import Backoff
from quorate.client.controller_calls import (
    ApiVersions,
    NoAnswerError,
    OutcomeUnknownError,
    RedirectError,
    RequestRefusedError,
    address_of,
)
from quorate.client.fan_out import ask_all
from quorate.client.unresponsive_servers import (
    FailoverWatch,
    LeaderReplacedError,
    UnresponsiveServers,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId
from quorate.records.value_types import value_type
from quorate.rpc.channels import target

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from quorate.client.controller_calls import Address, ControllerCalls
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.records.ids import Epoch

T = TypeVar("T")
ASK_TIMEOUT_S: Final = 1.0


@value_type
class FoundLeader:
    """The leader's address, and how it describes the quorum."""

    server: Address
    quorum: DescribeQuorumResponse


class LeaderFinder:
    """Remembers the last leader, the other voters, and the servers that did not answer."""

    def __init__(self, calls: ControllerCalls, servers: Sequence[Address]) -> None:
        self._calls = calls
        self._servers = list(servers)
        self._turn = 0
        self._voters: list[Address] = []
        self._leader: Address | None = None
        # The epoch of `_leader`, if known.
        self._epoch: Epoch | None = None
        self._silent = UnresponsiveServers()
        self._cluster_id: ClusterId | None = None

    # --- by asking for something else -------------------------------------------------------------

    def next_server(self) -> Address:
        """The server to ask for a leader's action: the last leader, else the next in turn."""
        if self._leader is not None:
            return self._leader
        count = len(self._servers)
        turns = [self._servers[(self._turn + i) % count] for i in range(count)]
        server = next((one for one in turns if not self._silent.has(one)), turns[0])
        self._turn += turns.index(server) + 1
        return server

    def on_redirect(self, by: Address, redirect: RedirectError) -> None:
        """Record a redirect: `by` does not lead, and may have named the leader."""
        leader, epoch = redirect.leader, redirect.epoch
        if leader is None or leader == by or self._silent.is_known_stale(leader, epoch):
            self.on_leader_lost()
        else:
            self._leader, self._epoch = leader, epoch

    def on_leader(self, server: Address) -> None:
        """Record that this server has performed a leader's action."""
        if server != self._leader:
            self._leader, self._epoch = server, None

    def on_leader_lost(self) -> None:
        """The last leader does not lead any more."""
        self._leader = self._epoch = None

    async def call(
        self, server: Address, calling: Coroutine[Any, Any, T], *, is_repeatable: bool
    ) -> T:
        """The outcome of a call, unless another leader is found while it has no answer.

        The new leader is used from then on. Raises LeaderReplacedError, and the errors of the call.
        """
        epoch = self._epoch if server == self._leader else None
        others = [one for one in dict.fromkeys((*self._servers, *self._voters)) if one != server]
        watch = FailoverWatch(self._calls, server, others, epoch, is_repeatable=is_repeatable)
        try:
            answer = await watch.run(calling)
        except LeaderReplacedError as replaced:
            self._silent.add(server, watch.epoch)
            self._leader, self._epoch = replaced.leader, replaced.epoch
            raise
        except (NoAnswerError, OutcomeUnknownError) as error:
            if error.is_silence:
                self._silent.add(server, watch.epoch)
            raise
        except RedirectError:
            self._silent.discard(server)
            raise
        self._silent.discard(server)
        return answer

    # --- by asking who leads ----------------------------------------------------------------------

    async def find(self, deadline: float) -> FoundLeader:
        """Find the leader by `deadline` of the loop's clock.

        Raises AdminError: NO_LEADER, or the caller is not authorized.
        """
        backoff = Backoff(deadline)
        answers: dict[Address, DescribeQuorumResponse | str] = {}
        while True:
            timeout_s = max(0.001, min(ASK_TIMEOUT_S, backoff.left_s))
            try:
                found, said = await self._round(timeout_s)
            except RequestRefusedError as error:
                raise AdminError(error.reason, error.error, error.message) from error
            if found is not None:
                self._leader, self._epoch = found.server, found.quorum.leader.epoch
                ways = (address_of(state.endpoints) for state in found.quorum.voters)
                self._voters = [way for way in ways if way is not None]
                return found
            self.on_leader_lost()
            for server, answer in said.items():
                # If the name resolved to a controller of another quorum, it may be correct by now.
                # The name of a server that does not answer is resolved again when it is
                # reconnected.
                if not isinstance(answer, str):
                    self._calls.renew(server, keeps_address=True)
            if timeout_s < ASK_TIMEOUT_S:
                # A server that did not answer in the remaining time may have answered before.
                said |= {k: v for k, v in answers.items() if isinstance(said.get(k, ""), str)}
            answers = said
            if not await backoff.wait():
                raise no_leader_error({target(*server): said for server, said in answers.items()})

    async def cluster_id(self, found: FoundLeader, deadline: float) -> ClusterId:
        """The cluster's id, requested from the leader once."""
        if self._cluster_id is None:
            left_s = min(ASK_TIMEOUT_S, Backoff(deadline).left_s)
            answer = await self._calls.try_api_versions_at(found.server, max(0.001, left_s))
            if not isinstance(answer, ApiVersions):
                raise no_leader_error({target(*found.server): answer})
            self._cluster_id = ClusterId(answer.cluster_id)
        return self._cluster_id

    async def _round(
        self, timeout_s: float
    ) -> tuple[FoundLeader | None, dict[Address, DescribeQuorumResponse | str]]:
        """Ask the last leader, and if it does not lead, all servers in parallel.

        Returns the first leader found, and all answers, the nearest server first.
        """
        # Another request may forget the leader, or find a new one, while this one waits.
        leader = self._leader
        if leader is not None:
            answer = await self._calls.try_describe_at(leader, timeout_s)
            if not isinstance(answer, str) and answer.error is ErrorCode.NONE:
                return FoundLeader(leader, answer), {}
        said = await ask_all(
            (*self._servers, *self._voters),
            lambda server: self._calls.try_describe_at(server, timeout_s),
            named_in=lambda answer: () if isinstance(answer, str) else (_named_in(answer),),
            is_enough=_is_of_leader,
        )
        for server, answer in said.items():
            if not isinstance(answer, str) and answer.error is ErrorCode.NONE:
                return FoundLeader(server, answer), said
        return None, said


def _named_in(answer: DescribeQuorumResponse) -> Address | None:
    return address_of(answer.leader.endpoints)


def _is_of_leader(answer: DescribeQuorumResponse | str) -> bool:
    return not isinstance(answer, str) and answer.error is ErrorCode.NONE


def no_leader_error(answers: Mapping[str, DescribeQuorumResponse | str]) -> AdminError:
    """The error for a missing leader: the last leader, and the first answer's last contact.

    `answers` are by server, the controller of the same pod first.
    """
    for server, answer in answers.items():
        if not isinstance(answer, str):
            return _said_by(server, answer)
    words = "; ".join(f"{server}: {said}" for server, said in answers.items())
    return AdminError(
        NO_LEADER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        f"no controller answers: {words}: see that they run and can be reached",
    )


def _said_by(server: str, answer: DescribeQuorumResponse) -> AdminError:
    metadata = {"asked": server, "epoch": str(answer.leader.epoch)}
    last = answer.last_leader
    if answer.leader.leader_id is not None:
        last = answer.leader
        was = f"takes node {last.leader_id} for the leader of epoch {last.epoch}, which is not one"
    elif last is not None and last.leader_id is not None:
        was = (
            f"knows no leader in epoch {answer.leader.epoch}; the last one that it knew is node "
            f"{last.leader_id} of epoch {last.epoch}"
        )
    else:
        was = f"knows no leader in epoch {answer.leader.epoch}, and none since it began"
    if last is not None and last.leader_id is not None:
        metadata["last_leader_id"] = str(last.leader_id)
        metadata["last_leader_epoch"] = str(last.epoch)
    heard = []
    for one in answer.heard:
        ago_ms = answer.now_ms - one.at_ms
        heard.append(f"node {one.node_id} {ago_ms} ms ago")
        metadata[f"heard_{one.node_id}_ms_ago"] = str(ago_ms)
    return AdminError(
        NO_LEADER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        f"{server} {was}; it heard {', '.join(heard) or 'nobody'}: see that a majority of the "
        "voters runs",
        metadata.items(),
    )
