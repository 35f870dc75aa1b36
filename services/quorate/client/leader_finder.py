"""Finding the leader, for every client: the last leader is asked first, then everybody else.

The nearest controller comes first in `servers`. It need not run: the others' addresses are
remembered from what leaders said. A leader that stands still is left once somebody else leads
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
from quorate.client.fan_out import ask_everybody
from quorate.client.unresponsive_servers import ReplacedError, SilenceWatch, SilentServers
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId
from quorate.records.value_types import value
from quorate.rpc.channels import target

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from quorate.client.controller_calls import Address, ControllerCalls
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.records.ids import Epoch

T = TypeVar("T")
ASK_TIMEOUT_S: Final = 1.0


@value
class FoundLeader:
    """The leader's address, and how it describes the quorum."""

    server: Address
    quorum: DescribeQuorumResponse


class LeaderFinder:
    """Remembers who led, who else there is, and who did not answer."""

    def __init__(self, calls: ControllerCalls, servers: Sequence[Address]) -> None:
        self._calls = calls
        self._servers = list(servers)
        self._turn = 0
        self._voters: list[Address] = []
        self._leader: Address | None = None
        # Of `_leader`, as far as it is known.
        self._epoch: Epoch | None = None
        self._silent = SilentServers()
        self._cluster_id: ClusterId | None = None

    # --- by asking for something else -------------------------------------------------------------

    def next_server(self) -> Address:
        """Whom to ask for what only a leader does: the one that leads, else the next in turn."""
        if self._leader is not None:
            return self._leader
        count = len(self._servers)
        turns = [self._servers[(self._turn + i) % count] for i in range(count)]
        server = next((one for one in turns if not self._silent.has(one)), turns[0])
        self._turn += turns.index(server) + 1
        return server

    def named(self, by: Address, redirect: RedirectError) -> None:
        """Somebody does not lead, and may have said who does."""
        leader, epoch = redirect.leader, redirect.epoch
        if leader is None or leader == by or self._silent.leads_no_more(leader, epoch):
            self.forget()
        else:
            self._leader, self._epoch = leader, epoch

    def leads(self, server: Address) -> None:
        """That one has done what only a leader does."""
        if server != self._leader:
            self._leader, self._epoch = server, None

    def forget(self) -> None:
        """The last leader leads no more."""
        self._leader = self._epoch = None

    async def call(
        self, server: Address, calling: Coroutine[Any, Any, T], *, is_repeatable: bool
    ) -> T:
        """The outcome of a call, unless another leader is found while it has no answer.

        Then that one is the leader from now on. Raises ReplacedError, and whatever the call does.
        """
        epoch = self._epoch if server == self._leader else None
        others = [one for one in dict.fromkeys((*self._servers, *self._voters)) if one != server]
        watch = SilenceWatch(self._calls, server, others, epoch, is_repeatable=is_repeatable)
        try:
            answer = await watch.over(calling)
        except ReplacedError as replaced:
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
        """The leader, by `deadline` of the loop's clock.

        Raises AdminError: NO_LEADER, or that the caller may not ask.
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
            self.forget()
            for server, answer in said.items():
                # If its name led to a controller of another quorum, it may be right by now. A
                # server that does not answer is resolved again when it is connected to again.
                if not isinstance(answer, str):
                    self._calls.renew(server, keeps_address=True)
            if timeout_s < ASK_TIMEOUT_S:
                # A server without an answer in what was left of the time may have answered before.
                said |= {k: v for k, v in answers.items() if isinstance(said.get(k, ""), str)}
            answers = said
            if not await backoff.wait():
                raise no_leader({target(*server): said for server, said in answers.items()})

    async def cluster_id(self, found: FoundLeader, deadline: float) -> ClusterId:
        """The cluster's id, asked of the leader once."""
        if self._cluster_id is None:
            left_s = min(ASK_TIMEOUT_S, Backoff(deadline).left_s)
            answer = await self._calls.try_api_versions_at(found.server, max(0.001, left_s))
            if not isinstance(answer, ApiVersions):
                raise no_leader({target(*found.server): answer})
            self._cluster_id = ClusterId(answer.cluster_id)
        return self._cluster_id

    async def _round(
        self, timeout_s: float
    ) -> tuple[FoundLeader | None, dict[Address, DescribeQuorumResponse | str]]:
        """Ask the last leader, and if that is over everybody at once; the first leader counts.

        With what everybody said, the nearest first.
        """
        # Another request may forget the leader, or find a new one, while this one waits.
        leader = self._leader
        if leader is not None:
            answer = await self._calls.try_describe_at(leader, timeout_s)
            if not isinstance(answer, str) and answer.error is ErrorCode.NONE:
                return FoundLeader(leader, answer), {}
        said = await ask_everybody(
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


def no_leader(answers: Mapping[str, DescribeQuorumResponse | str]) -> AdminError:
    """Nobody leads: who led last, and whom the first that answers heard when.

    `answers` are by server, the controller beside the sidecar first.
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
