"""Servicer of quorate.admin.v1.Admin.

A response means that the change is done; everything else is a status of rpc/admin/errors.py.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from google.protobuf.message_factory import GetMessageClass

from quorate.api.admin_api import (
    FEATURE_UNSUPPORTED,
    INVALID_REQUEST,
    AdminError,
    PrepareStopRequest,
)
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type
from quorate.rpc.admin import errors
from quorate.rpc.convert.describe import pb_describe_response
from quorate.rpc.convert.membership import UnsupportedFeatureError, pb_key, request_of
from quorate.rpc.convert.raft import at_least_0, pb_leader
from quorate.rpc.deadlines import handler_timeout_s
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.method_table import ADMIN, ADMIN_METHODS
from quorate.rpc.security.authorization import CALLER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import grpc.aio
    from google.protobuf.descriptor import MethodDescriptor

    from quorate.api.admin_api import AdminHandler, ChangeResult, PrepareStopResult
    from quorate.rpc.gen.raft.v1 import raft_pb2
    from quorate.rpc.service import Behaviour

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
P = TypeVar("P")
T = TypeVar("T")
R = TypeVar("R")
METHODS: Final = tuple(method.name for method in ADMIN.methods)
OK: Final = "OK"
CANCELLED: Final = "CANCELLED"
INTERNAL: Final = "INTERNAL"
WORDS_BYTES_MAX: Final = 512


@value_type
class CallRecord:
    """One completed call: the caller, the request, and the outcome in one word."""

    method: str
    principal: str
    host: str
    request: str
    outcome: str
    message: str
    duration_s: float


class AdminServicer:
    """quorate.admin.v1.Admin; `record` is called with every completed call."""

    descriptor = ADMIN
    methods = ADMIN_METHODS

    def handler_for(self, method: MethodDescriptor) -> Behaviour:
        own: Behaviour | None = getattr(self, method.name, None)
        return own or partial(self._change, method)

    def __init__(self, handler: AdminHandler, record: Callable[[CallRecord], None]) -> None:
        self._handler = handler
        self._record = record

    async def DescribeQuorum(
        self, request: raft_pb2.DescribeQuorumRequest, context: Context
    ) -> raft_pb2.DescribeQuorumResponse:
        async def perform(timeout_s: float | None) -> m.DescribeQuorumResponse:
            return await self._handler.describe(timeout_s)

        answer = await self._perform("DescribeQuorum", lambda: _time(context, 0), perform, context)
        return pb_describe_response(answer)

    async def PrepareStop(
        self, request: pb.PrepareStopRequest, context: Context
    ) -> pb.PrepareStopResponse:
        async def perform(timeout_s: float | None) -> PrepareStopResult:
            return await self._handler.prepare_stop(PrepareStopRequest(request.leave), timeout_s)

        def parse() -> float | None:
            return _time(context, request.timeout_ms)

        what = _in_words(request)
        prepared = await self._perform("PrepareStop", parse, perform, context, what=what)
        return pb.PrepareStopResponse(
            handed_over=prepared.handed_over,
            removed=prepared.removed,
            is_voter=prepared.is_voter,
            current_leader=pb_leader(prepared.leader),
            has_leave=prepared.has_leave,
            without_leave=prepared.without_leave,
        )

    async def _change(self, method: MethodDescriptor, message: Any, context: Context) -> Any:  # noqa: ANN401
        """Change the quorum; the response names the current leader and the changed voter."""

        def parse() -> tuple[m.MembershipRequest, float | None]:
            return request_of(message), _time(context, message.timeout_ms)

        async def perform(parsed: tuple[m.MembershipRequest, float | None]) -> ChangeResult:
            return await self._handler.change(*parsed)

        what = _in_words(message)
        done = await self._perform(method.name, parse, perform, context, what=what)
        answer: dict[str, Any] = {"current_leader": pb_leader(done.leader)}
        if "voter" in method.output_type.fields_by_name:
            assert not isinstance(done.request, m.UpdateFeaturesRequest)
            answer["voter"] = pb_key(done.request.voter)
        return GetMessageClass(method.output_type)(**answer)

    async def _perform(
        self,
        method: str,
        parse: Callable[[], T],
        perform: Callable[[T], Awaitable[R]],
        context: Context,
        *,
        what: str = "",
    ) -> R:
        """Run one call from its request to its record. Raises gRPC's own exception to end it."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        outcome, message = INTERNAL, "a defect of the program"
        try:
            answer = await perform(_parsed(parse))
            outcome, message = OK, ""
        except asyncio.CancelledError:
            outcome, message = CANCELLED, "the caller has gone, or its time is up"
            raise
        except AdminError as error:
            outcome, message = error.reason, error.message
            await errors.abort(context, error)
            raise
        else:
            return answer
        finally:
            took_s = loop.time() - start
            principal, host = CALLER.get().principal, context.peer()
            self._record(CallRecord(method, principal, host, what, outcome, message, took_s))


def _parsed(parse: Callable[[], T]) -> T:
    try:
        return parse()
    except UnsupportedFeatureError as error:
        unsupported = ErrorCode.UNSUPPORTED_VERSION
        raise AdminError(FEATURE_UNSUPPORTED, unsupported, str(error)) from error
    except ValueError as error:
        raise AdminError(INVALID_REQUEST, ErrorCode.INVALID_REQUEST, str(error)) from error


def _time(context: Context, timeout_ms: int) -> float | None:
    """Return the caller's time limit in seconds; the response must precede the call's deadline.

    Raises ValueError for a time below 0.
    """
    times = [timeout_ms / 1000] if at_least_0(timeout_ms, "timeout_ms") else []
    left_s = handler_timeout_s(context)
    if left_s is not None:
        times.append(left_s)
    return min(times, default=None)


def _in_words(request: Any) -> str:  # noqa: ANN401
    """Format a request for the log on one short line: its caller chooses its size."""
    size: int = request.ByteSize()
    if size > WORDS_BYTES_MAX:
        return f"{size} bytes"
    return " ".join(str(request).split())
