"""Single calls to one controller, and the errors they end with.

A change that may have been made without an answer is an OutcomeUnknownError: only the caller can
know if it may be repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import grpc
import grpc.aio

from quorate.client.backoff import told_ms
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import DirectoryId, Epoch
from quorate.records.value_types import value_type
from quorate.rpc.channels import ChannelPool
from quorate.rpc.convert import controller as convert_controller
from quorate.rpc.convert import raft as convert_raft
from quorate.rpc.convert.describe import describe_response
from quorate.rpc.error_status import error_info_of, explain_error, was_never_sent
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.rpc.raft.unary_calls import RAFT_CALLS
from quorate.rpc.security.authorization import CALLER, forwarding
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.request_types import (
        ReadReply,
        ReadRequestOf,
        WriteReply,
        WriteRequestOf,
    )
    from quorate.records.voters import Endpoint
    from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
    from quorate.rpc.security.tls_files import TlsFiles

W = TypeVar("W", bound="WriteReply")
R = TypeVar("R", bound="ReadReply")
Address = tuple[str, int]
ATTEMPT_TIMEOUT_S: Final = 5.0
# Fraction of a call's time: the server gives up first, so that it can say what it waited for.
SERVER_SHARE: Final = 0.8
_REFUSALS: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: ErrorCode.INVALID_REQUEST,
    grpc.StatusCode.UNIMPLEMENTED: ErrorCode.INVALID_REQUEST,
    grpc.StatusCode.UNAUTHENTICATED: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    grpc.StatusCode.PERMISSION_DENIED: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


class QuorumUnavailableError(Exception):
    """No server answered in time; the message lists the servers tried and their errors."""


class OutcomeUnknownError(Exception):
    """The change may have been committed, or may still be.

    `is_silence`: the server sent nothing until the timeout.
    """

    def __init__(self, said: str, *, is_silence: bool = False) -> None:
        super().__init__(said)
        self.is_silence = is_silence


class RequestRefusedError(Exception):
    """A server rejected the request or the caller; `reason` is a keyword."""

    def __init__(self, error: ErrorCode, message: str, *, reason: str = "") -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message
        self.reason = reason or error.name


@value_type
class ApiVersions:
    """A server's identity and directory; `features` are (name, lowest level, highest level)."""

    cluster_id: str
    node_id: int
    software_version: str
    features: tuple[tuple[str, int, int], ...] = ()
    directory_id: DirectoryId | None = None


class RedirectError(Exception):
    """Another server may lead; `leader` is its address, as far as the queried server knows."""

    def __init__(self, said: str, leader: Address | None, epoch: Epoch) -> None:
        super().__init__(said)
        self.leader = leader
        self.epoch = epoch


class NoAnswerError(Exception):
    """A repeatable call had no answer; `refusal` is set if the caller is not authorized.

    `is_silence`: the server sent nothing until the timeout.
    """

    def __init__(self, said: str, refusal: RequestRefusedError | None, *, is_silence: bool) -> None:
        super().__init__(said)
        self.refusal = refusal
        self.is_silence = is_silence


class ControllerCalls:
    """Calls to any controller by its address, on cached channels."""

    def __init__(
        self,
        *,
        drain_s: float,
        tls: TlsFiles | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
        forwards: bool = False,
    ) -> None:
        """Plaintext without `tls`. With `forwards`, calls are made for callers of this process."""
        self._tls = tls
        self._forwards = forwards
        self._channels = ChannelPool(tls, drain_s=drain_s, transport=transport)

    async def close(self) -> None:
        await self._channels.close()

    # --- metadata ---------------------------------------------------------------------------------

    async def write_to(self, server: Address, request: WriteRequestOf[W], timeout_s: float) -> W:
        """Write through this server, if it leads.

        Raises RedirectError, RequestRefusedError, OutcomeUnknownError, and NoAnswerError if the
        request was certainly not sent.
        """
        stub = controller_pb2_grpc.ControllerStub(self._channels.get(*server))
        message = convert_controller.write_request(request)
        try:
            response = await stub.Write(message, timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            raise self._change_failed(server, error) from error
        result = response.results[0]
        if result.outcome_unknown:
            raise OutcomeUnknownError(f"{name_of(server)}: {result.message}")
        self._check(server, result)
        return convert_controller.request_in(result, "reply")  # type: ignore[no-any-return]

    async def read_from(
        self,
        server: Address,
        request: ReadRequestOf[R],
        timeout_s: float,
        *,
        min_offset: int,
        current: bool,
        even_if_behind: bool,
    ) -> R:
        """Read there. Raises RedirectError, RequestRefusedError, NoAnswerError."""
        stub = controller_pb2_grpc.ControllerStub(self._channels.get(*server))
        message = convert_controller.read_request(
            request,
            min_offset=min_offset,
            current=current,
            timeout_ms=told_ms(timeout_s * SERVER_SHARE),
            even_if_behind=even_if_behind,
        )
        try:
            response = await stub.Read(message, timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                # Every other controller would answer the same.
                raise self._outcome(server, error) from error
            raise self._no_answer(server, error) from error
        if response.error == ErrorCode.REQUEST_TIMED_OUT:
            raise RedirectError(response.message, None, Epoch(0))
        self._check(server, response)
        return convert_controller.request_in(response, "reply")  # type: ignore[no-any-return]

    # --- the quorum -------------------------------------------------------------------------------

    async def describe_from(
        self, server: Address, timeout_s: float = ATTEMPT_TIMEOUT_S
    ) -> m.DescribeQuorumResponse:
        """The description by one server, leader or not. Raises NoAnswerError."""
        stub = raft_pb2_grpc.RaftStub(self._channels.get(*server))
        request = raft_pb2.DescribeQuorumRequest()
        try:
            answer = await stub.DescribeQuorum(
                request, timeout=timeout_s, metadata=self._metadata()
            )
        except grpc.aio.AioRpcError as error:
            raise self._no_answer(server, error) from error
        return describe_response(answer)

    async def try_describe_at(
        self, server: Address, timeout_s: float = ATTEMPT_TIMEOUT_S
    ) -> m.DescribeQuorumResponse | str:
        """The same, with errors as text. Raises RequestRefusedError."""
        try:
            return await self.describe_from(server, timeout_s)
        except NoAnswerError as error:
            if error.refusal is not None:
                raise error.refusal from error
            return str(error)

    def renew(self, server: Address, *, keeps_address: bool) -> None:
        """Let the next call resolve the server's name again (`ChannelPool.renew`)."""
        self._channels.renew(*server, keeps_address=keeps_address)

    async def describe_leader_at(
        self, server: Address, timeout_s: float
    ) -> m.DescribeQuorumResponse:
        """The leader's view. Raises RedirectError if this server does not lead, NoAnswerError."""
        answer = await self.describe_from(server, timeout_s)
        if answer.error is ErrorCode.NONE:
            return answer
        leader = answer.leader
        words = _leader_words(leader.leader_id, leader.epoch)
        self._channels.renew(*server)
        raise RedirectError(words, address_of(leader.endpoints), leader.epoch)

    async def change_on(
        self, server: Address, request: m.MembershipRequest, timeout_s: float
    ) -> m.MembershipResponse:
        """Ask one server to change the voters, kraft.version or the leader.

        Raises QuorumUnavailableError if the request was certainly not sent, RequestRefusedError,
        OutcomeUnknownError.
        """
        call = RAFT_CALLS[type(request)]
        ask = getattr(raft_pb2_grpc.RaftStub(self._channels.get(*server)), call.method)
        try:
            response = await ask(call.write(request), timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            failed = self._change_failed(server, error)
            if isinstance(failed, NoAnswerError):
                raise QuorumUnavailableError(f"tried {name_of(server)}: {failed}") from error
            raise failed from error
        answer: m.MembershipResponse = call.read_answer(response)
        return answer

    async def api_versions_at(self, server: Address, timeout_s: float) -> ApiVersions:
        """The identity and features of one server. Raises NoAnswerError."""
        stub = raft_pb2_grpc.RaftStub(self._channels.get(*server))
        request = raft_pb2.ApiVersionsRequest()
        try:
            answer = await stub.ApiVersions(request, timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            raise self._no_answer(server, error) from error
        features = tuple(
            (feature.name, feature.min_version, feature.max_version)
            for feature in answer.supported_features
        )
        return ApiVersions(
            answer.cluster_id,
            answer.node.id,
            answer.software_version,
            features,
            DirectoryId(answer.node.directory_id) if answer.node.directory_id else None,
        )

    async def try_api_versions_at(self, server: Address, timeout_s: float) -> ApiVersions | str:
        """The same, with errors as text."""
        try:
            return await self.api_versions_at(server, timeout_s)
        except NoAnswerError as error:
            return str(error)

    # --- the log ----------------------------------------------------------------------------------

    async def fetch_at(
        self, server: Address, request: m.FetchRequest, timeout_s: float
    ) -> m.FetchResponse:
        """Batches of the leader's log. Raises NoAnswerError."""
        stub = raft_pb2_grpc.RaftStub(self._channels.get(*server))
        message = convert_raft.pb_fetch_request(request)
        try:
            answer = await stub.FetchOnce(message, timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            raise self._no_answer(server, error) from error
        return convert_raft.fetch_response(answer, _unread)

    async def fetch_snapshot_at(
        self, server: Address, request: m.FetchSnapshotRequest, timeout_s: float
    ) -> m.FetchSnapshotResponse:
        """A chunk of one of the leader's snapshots. Raises NoAnswerError."""
        stub = raft_pb2_grpc.RaftStub(self._channels.get(*server))
        message = convert_raft.pb_fetch_snapshot_request(request)
        try:
            answer = await stub.FetchSnapshot(message, timeout=timeout_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            raise self._no_answer(server, error) from error
        return convert_raft.fetch_snapshot_response(answer)

    # --- what went wrong --------------------------------------------------------------------------

    def _check(self, server: Address, result: pb.WriteResult | pb.ReadResponse) -> None:
        try:
            _check(result)
        except RedirectError:
            # If the name resolved to the wrong controller, it may be correct by now.
            self._channels.renew(*server)
            raise

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return forwarding(CALLER.get().principal) if self._forwards else ()

    def _no_answer(self, server: Address, error: grpc.aio.AioRpcError) -> NoAnswerError:
        """The error of a repeatable call."""
        refusal = self._outcome(server, error) if _is_denied(error) else None
        assert not isinstance(refusal, OutcomeUnknownError)
        return NoAnswerError(
            explain_error(error, self._tls), refusal, is_silence=_is_silence(error)
        )

    def _change_failed(self, server: Address, error: grpc.aio.AioRpcError) -> Exception:
        return (
            self._no_answer(server, error)
            if was_never_sent(error)
            else self._outcome(server, error)
        )

    def _outcome(
        self, server: Address, error: grpc.aio.AioRpcError
    ) -> OutcomeUnknownError | RequestRefusedError:
        """The error of a change whose call failed after it was sent."""
        words = f"{name_of(server)}: {explain_error(error, self._tls)}"
        refusal = _REFUSALS.get(error.code())
        if refusal is None:
            return OutcomeUnknownError(words, is_silence=_is_silence(error))
        if not _is_denied(error):
            return RequestRefusedError(refusal, error.details() or "")
        said = error_info_of(error)
        return RequestRefusedError(refusal, words, reason="" if said is None else said.reason)


def _unread(data: bytes) -> m.FetchedBatches:
    """The batches undecoded: their reader checks them."""
    return m.FetchedBatches(data, ())


def address_of(endpoints: Sequence[Endpoint]) -> Address | None:
    """The address of a node, None if unknown."""
    return (endpoints[0].host, endpoints[0].port) if endpoints else None


def name_of(server: Address) -> str:
    """A server's address in messages."""
    return f"{server[0]}:{server[1]}"


def _check(result: pb.WriteResult | pb.ReadResponse) -> None:
    if result.error == ErrorCode.NONE:
        return
    if result.error == ErrorCode.NOT_CONTROLLER:
        leader = result.leader
        address = (leader.host, leader.port) if leader.host else None
        known = leader.id if leader.HasField("id") else None
        words = _leader_words(known, leader.epoch)
        said = f"{result.message}; it {words}" if result.message else words
        raise RedirectError(said, address, Epoch(leader.epoch))
    raise RequestRefusedError(ErrorCode(result.error), result.message)


def _leader_words(leader_id: int | None, epoch: int) -> str:
    known = "knows no leader" if leader_id is None else f"says that node {leader_id} leads"
    return f"{known} (epoch {epoch})"


def _is_silence(error: grpc.aio.AioRpcError) -> bool:
    return error.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def _is_denied(error: grpc.aio.AioRpcError) -> bool:
    """True if the caller was rejected, and not the request."""
    return _REFUSALS.get(error.code()) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
