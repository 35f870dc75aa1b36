"""A client that finds the leader and follows it, within a deadline, and can say what it tried.

Reads may be pinned to one controller. A change whose outcome is unknown raises OutcomeUnknownError:
only the caller can know whether it may be sent again.
"""

# ruff: noqa: ANN401 - one loop serves every call, whatever its answer
from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import grpc
import grpc.aio

from quorate.raft import messages as m
from quorate.raft.backoff import backoff_ms
from quorate.records.errors import ErrorCode
from quorate.rpc import convert_admin, convert_controller, pages
from quorate.rpc.authorization import CALLER, forwarding
from quorate.rpc.channels import ChannelPool
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.rpc.refusals import never_sent, refusal_of, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.controller.replies import ReadReply, WriteReply
    from quorate.controller.requests import ReadRequest, WriteRequest
    from quorate.raft.messages import (
        DescribeQuorumResponse,
        MembershipRequest,
        MembershipResponse,
    )
    from quorate.rpc.tls import TlsFiles

Address = tuple[str, int]
# Between two rounds of all servers.
RETRY_FIRST_MS: Final = 50
RETRY_LONGEST_MS: Final = 500
_RANDOM: Final = random.SystemRandom()
ATTEMPT_TIMEOUT_S: Final = 5.0
SERVER_SHARE: Final = 0.8
_REFUSALS: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: ErrorCode.INVALID_REQUEST,
    grpc.StatusCode.UNIMPLEMENTED: ErrorCode.INVALID_REQUEST,
    grpc.StatusCode.UNAUTHENTICATED: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    grpc.StatusCode.PERMISSION_DENIED: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
_CHANGES: Final[dict[type[MembershipRequest], tuple[str, Callable[[Any], Any]]]] = {
    m.AddRaftVoterRequest: ("AddRaftVoter", convert_admin.pb_add_voter),
    m.RemoveRaftVoterRequest: ("RemoveRaftVoter", convert_admin.pb_remove_voter),
    m.UpdateRaftVoterRequest: ("UpdateRaftVoter", convert_admin.pb_update_voter),
    m.UpdateFeaturesRequest: ("UpdateFeatures", convert_admin.pb_update_features),
    m.TransferLeadershipRequest: ("TransferLeadership", convert_admin.pb_transfer_leadership),
}


class QuorumUnavailableError(Exception):
    """No server gave an answer in time; the message says which were tried and what each said."""


class OutcomeUnknownError(Exception):
    """The change may have been committed, or may still be."""


class RequestRefusedError(Exception):
    """A server refused the request as a whole, or the caller; `reason` is why, in one word."""

    def __init__(self, error: ErrorCode, message: str, *, reason: str = "") -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message
        self.reason = reason or error.name


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """Who a server is; `features` are (name, lowest level, highest level)."""

    cluster_id: str
    node_id: int
    software_version: str
    features: tuple[tuple[str, int, int], ...] = ()


class _Redirect(Exception):
    def __init__(self, said: str, leader: Address | None) -> None:
        super().__init__(said)
        self.leader = leader


class ControllerClient:
    """Use as an async context manager. `timeout_ms` bounds every call."""

    def __init__(
        self,
        servers: Sequence[Address],
        *,
        timeout_ms: int = 30_000,
        tls: TlsFiles | None = None,
        forwards: bool = False,
    ) -> None:
        """Plaintext without `tls`. One that forwards calls for whoever calls this process."""
        if not servers:
            raise ValueError("no server to ask: give at least one HOST:PORT")
        self._servers = list(servers)
        self._timeout_s = timeout_ms / 1000
        self._tls = tls
        self._forwards = forwards
        self._channels = ChannelPool(tls, drain_s=self._timeout_s)
        self._leader: Address | None = None
        self._turn = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._channels.close()

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return forwarding(CALLER.get()) if self._forwards else ()

    # --- calls ------------------------------------------------------------------------------------

    async def write(self, request: WriteRequest) -> WriteReply:
        """Change something through the leader; the reply comes after the commit.

        Raises OutcomeUnknownError, RequestRefusedError, QuorumUnavailableError.
        """
        message = convert_controller.write_request(request)
        return await self._through_leader(self._write_at, message)  # type: ignore[no-any-return]

    async def _write_at(self, server: Address, message: pb.WriteRequest, timeout_s: float) -> Any:
        stub = controller_pb2_grpc.ControllerStub(self._channels.get(*server))
        try:
            response = await stub.Write(message, timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            if never_sent(error):
                raise
            raise self._outcome(server, error) from error
        result = response.results[0]
        if result.outcome_unknown:
            raise OutcomeUnknownError(f"{_name(server)}: {result.message}")
        _check(result)
        return convert_controller.chosen(result, "reply")

    async def read(
        self,
        request: ReadRequest,
        *,
        min_offset: int = 0,
        current: bool = False,
        controller: Address | None = None,
        even_if_behind: bool = False,
    ) -> ReadReply:
        """Ask any server, or only `controller`; a current read goes to the leader.

        `even_if_behind` asks those that have not caught up since their start, too. A long answer
        comes in pages, which are joined here (rpc/pages.py).
        """

        whole: ReadReply | None = None
        for page in pages.first_pages(request):
            asked: ReadRequest | None = page
            while asked is not None:
                reply = await self._read_page(
                    asked,
                    min_offset=min_offset,
                    current=current,
                    controller=controller,
                    even_if_behind=even_if_behind,
                )
                whole = reply if whole is None else pages.joined(whole, reply)
                min_offset = max(min_offset, whole.offset)
                asked = pages.next_page(page, whole)
        assert whole is not None
        return whole

    async def _read_page(
        self,
        request: ReadRequest,
        *,
        min_offset: int,
        current: bool,
        controller: Address | None,
        even_if_behind: bool,
    ) -> ReadReply:
        attempt_s = self._timeout_s if controller is not None else self._attempt_s()
        message = convert_controller.read_request(
            request,
            min_offset=min_offset,
            current=current,
            # The server gives up first, so that it can say what it waited for.
            timeout_ms=int(attempt_s * 1000 * SERVER_SHARE),
            even_if_behind=even_if_behind,
        )
        if controller is not None:
            return await self._only_at(controller, message)
        return await self._through_leader(self._read_at, message)  # type: ignore[no-any-return]

    async def _only_at(self, server: Address, message: pb.ReadRequest) -> ReadReply:
        try:
            return await self._read_at(server, message, self._timeout_s)  # type: ignore[no-any-return]
        except (grpc.aio.AioRpcError, _Redirect) as error:
            raise QuorumUnavailableError(f"tried {_name(server)}: {self._said(error)}") from error

    async def _read_at(self, server: Address, message: pb.ReadRequest, timeout_s: float) -> Any:
        stub = controller_pb2_grpc.ControllerStub(self._channels.get(*server))
        response = await stub.Read(message, timeout=timeout_s, metadata=self._metadata())
        if response.error == ErrorCode.REQUEST_TIMED_OUT:
            raise _Redirect(response.message, None)
        _check(response)
        return convert_controller.chosen(response, "reply")

    async def describe_quorum(self) -> DescribeQuorumResponse:
        """The leader's view of all replicas."""
        return await self._through_leader(self._describe_leader, None)  # type: ignore[no-any-return]

    async def _describe_leader(self, server: Address, _: None, timeout_s: float) -> Any:
        answer = await self.describe_at(server, timeout_s)
        if answer.error is ErrorCode.NONE:
            return answer
        endpoints = answer.leader.endpoints
        leader = (endpoints[0].host, endpoints[0].port) if endpoints else None
        raise _Redirect(_leader_words(answer.leader.leader_id, answer.leader.epoch), leader)

    async def describe_at(
        self, server: Address, timeout_s: float = ATTEMPT_TIMEOUT_S
    ) -> DescribeQuorumResponse:
        """What one server says, leader or not. Raises grpc.aio.AioRpcError."""
        stub = raft_pb2_grpc.RaftStub(self._channels.get(*server))
        response = await stub.DescribeQuorum(
            raft_pb2.DescribeQuorumRequest(), timeout=timeout_s, metadata=self._metadata()
        )
        return convert_admin.describe_response(response)

    async def try_describe_at(
        self, server: Address, timeout_s: float = ATTEMPT_TIMEOUT_S
    ) -> DescribeQuorumResponse | str:
        """The same, with what went wrong as words. Raises RequestRefusedError."""
        try:
            return await self.describe_at(server, timeout_s)
        except grpc.aio.AioRpcError as error:
            if _is_denied(error):
                raise self._outcome(server, error) from error
            return self._said(error)

    async def change_at(
        self, server: Address, request: MembershipRequest, timeout_s: float
    ) -> MembershipResponse:
        """Ask one server to change the voters, kraft.version or the leader.

        Raises QuorumUnavailableError when it cannot have been asked, RequestRefusedError,
        OutcomeUnknownError.
        """
        name, convert = _CHANGES[type(request)]
        call = getattr(raft_pb2_grpc.RaftStub(self._channels.get(*server)), name)
        try:
            response = await call(convert(request), timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            if never_sent(error):
                raise QuorumUnavailableError(
                    f"tried {_name(server)}: {self._said(error)}"
                ) from error
            raise self._outcome(server, error) from error
        return convert_admin.membership_response(response)

    async def api_versions(self) -> ApiVersions:
        """Who the first server is that answers."""
        return await self._through_leader(self._api_versions_at, None)  # type: ignore[no-any-return]

    async def try_api_versions_at(self, server: Address, timeout_s: float) -> ApiVersions | str:
        """Who one server is, or what went wrong as words."""
        try:
            return await self._api_versions_at(server, None, timeout_s)  # type: ignore[no-any-return]
        except grpc.aio.AioRpcError as error:
            return self._said(error)

    async def _api_versions_at(self, server: Address, _: None, timeout_s: float) -> Any:
        stub = raft_pb2_grpc.RaftStub(self._channels.get(*server))
        answer = await stub.ApiVersions(
            raft_pb2.ApiVersionsRequest(), timeout=timeout_s, metadata=self._metadata()
        )
        features = tuple(
            (feature.name, feature.min_version, feature.max_version)
            for feature in answer.supported_features
        )
        return ApiVersions(answer.cluster_id, answer.node.id, answer.software_version, features)

    # --- finding the leader -----------------------------------------------------------------------

    async def _through_leader(self, attempt: Any, message: Any) -> Any:
        """Try the servers in turn and every leader that they name, until the deadline."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s
        said: dict[Address, str] = {}
        rounds = moves = 0
        while (left := deadline - loop.time()) > 0:
            server = self._leader
            if server is None:
                server = self._servers[self._turn % len(self._servers)]
                self._turn += 1
            try:
                answer = await attempt(server, message, min(left, self._attempt_s()))
            except _Redirect as redirect:
                said[server] = str(redirect)
                moved = redirect.leader is not None and redirect.leader != server
                self._leader = redirect.leader if moved else None
                moves += moved
                # Two that name each other would be asked in turn without a pause.
                if moved and moves % (len(self._servers) + 1):
                    continue
            except OutcomeUnknownError:
                # It may stand still: whoever asks again begins with the next server.
                self._leader = None
                raise
            except grpc.aio.AioRpcError as error:
                if _is_denied(error):
                    # What the caller may not do no other server lets it do.
                    raise self._outcome(server, error) from error
                said[server] = self._said(error)
                self._leader = None
            else:
                return answer
            if self._leader is not None or self._turn % len(self._servers) == 0:
                rounds += 1
                await asyncio.sleep(_wait_s(rounds))
        tried = "; ".join(f"{_name(server)}: {words}" for server, words in said.items())
        raise QuorumUnavailableError(
            f"no answer within {self._timeout_s:g} s; tried {tried or 'nobody'}"
        )

    def _outcome(self, server: Address, error: grpc.aio.AioRpcError) -> Exception:
        """What is known of a change whose call failed after it was sent."""
        words = f"{_name(server)}: {self._said(error)}"
        refusal = _REFUSALS.get(error.code())
        if refusal is None:
            return OutcomeUnknownError(words)
        if not _is_denied(error):
            return RequestRefusedError(refusal, error.details() or "")
        said = refusal_of(error)
        return RequestRefusedError(refusal, words, reason="" if said is None else said.reason)

    def _said(self, error: grpc.aio.AioRpcError | _Redirect) -> str:
        return str(error) if isinstance(error, _Redirect) else words_of(error, self._tls)

    def _attempt_s(self) -> float:
        return min(ATTEMPT_TIMEOUT_S, self._timeout_s)


def _check(result: pb.WriteResult | pb.ReadResponse) -> None:
    if result.error == ErrorCode.NONE:
        return
    if result.error == ErrorCode.NOT_CONTROLLER:
        leader = result.leader
        address = (leader.host, leader.port) if leader.host else None
        known = leader.id if leader.HasField("id") else None
        words = _leader_words(known, leader.epoch)
        raise _Redirect(f"{result.message}; it {words}" if result.message else words, address)
    raise RequestRefusedError(ErrorCode(result.error), result.message)


def _leader_words(leader_id: int | None, epoch: int) -> str:
    known = "knows no leader" if leader_id is None else f"says that node {leader_id} leads"
    return f"{known} (epoch {epoch})"


def _is_denied(error: grpc.aio.AioRpcError) -> bool:
    """Whether it was the caller that was refused, and not the request."""
    return _REFUSALS.get(error.code()) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _wait_s(rounds: int) -> float:
    wait_ms = backoff_ms(
        rounds, first_ms=RETRY_FIRST_MS, longest_ms=RETRY_LONGEST_MS, random=_RANDOM
    )
    return wait_ms / 1000


def _name(server: Address) -> str:
    return f"{server[0]}:{server[1]}"
