"""The controller survives anything that a client sends, and what it wrote can be read.

See rule `input_bounds`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Never

import pytest

from quorate.api.admin_api import AdminError, ChangeResult, PrepareStopRequest, PrepareStopResult
from quorate.controller.topics.messages import CreateTopicsReply
from quorate.raft import messages as m
from quorate.records.batch import iter_batches, read_records
from quorate.records.errors import ErrorCode
from quorate.records.field_limits import record_problem
from quorate.records.metadata import decode_record
from quorate.rpc.admin.servicer import AdminServicer, CallRecord
from quorate.rpc.controller.servicer import ControllerServicer
from quorate.rpc.convert.membership import message_of
from quorate.rpc.method_table import RAFT
from quorate.rpc.raft.servicer import RaftServicer
from tests.unit.raft import cores
from tests.unit.rpc import extremes
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from google.protobuf.message import Message

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]

METHODS: Final = list(extremes.methods())
STREAMS: Final = {"Fetch", "WriteStream"}
NODE: Final = 1
WHO: Final = m.ApiVersionsResponse(
    error=ErrorCode.NONE,
    cluster_id=cores.CLUSTER,
    key=cores.key(NODE),
    kraft_version_min=0,
    kraft_version_max=1,
)


class _Aborted(Exception):
    """The end of a call that was refused."""


class _Context:
    """As much of a call as the services look at."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    def time_remaining(self) -> float | None:
        return None

    def add_done_callback(self, callback: object) -> None:
        del callback

    async def abort(self, _code: object, details: str) -> Never:
        assert details
        raise _Aborted

    async def abort_with_status(self, _status: object) -> Never:
        raise _Aborted


class _Sidecar:
    """A sidecar whose quorum takes no change, asked as the real one asks it."""

    async def change(self, request: m.MembershipRequest, timeout_s: float | None) -> ChangeResult:
        assert timeout_s is None or timeout_s >= 0
        message_of(request, RAFT)
        raise AdminError("NO_LEADER", ErrorCode.NOT_LEADER_OR_FOLLOWER, "nobody leads")

    async def describe(self, timeout_s: float | None) -> m.DescribeQuorumResponse:
        raise AdminError("NO_LEADER", ErrorCode.NOT_LEADER_OR_FOLLOWER, "nobody leads")

    async def prepare_stop(
        self, request: PrepareStopRequest, timeout_s: float | None
    ) -> PrepareStopResult:
        del request, timeout_s
        raise AdminError("NO_LEADER", ErrorCode.NOT_LEADER_OR_FOLLOWER, "nobody leads")


async def _one(message: object) -> AsyncIterator[object]:
    yield message


async def _call(service: Any, method: str, message: Message) -> None:  # noqa: ANN401
    """Make one call: answered, refused, or given up because it waits for another one."""
    handler = service.handler_for(service.descriptor.methods_by_name[method])

    async def run() -> None:
        with contextlib.suppress(_Aborted):
            if method in STREAMS:
                # As the guard's decoder gives it: writes with their size.
                sized = method == "WriteStream"
                given = (message, message.ByteSize()) if sized else message
                async for _ in handler(_one(given), _Context()):
                    pass
            else:
                await handler(message, _Context())

    task = asyncio.get_running_loop().create_task(run())
    for _ in range(30):
        await asyncio.sleep(0)
        if task.done():
            break
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _written(stack: Stack) -> None:
    """All that is in the log can be read, by stock tools too."""
    log = stack.driver.store.log
    span = m.LogRange(start=log.log_start, end=log.end.offset, bytes_max=1 << 30)
    data = stack.driver.store.read_range(span)
    for position, header in iter_batches(data):
        if header.is_control:
            continue
        for record in read_records(data, position, header):
            assert record_problem(decode_record(record.value or b"")[0]) is None


async def _try_all(stack: Stack, service: Any, method: str, descriptor: Any) -> None:  # noqa: ANN401
    for message in extremes.sound(descriptor, NODE):
        for path, changed in extremes.single(message):
            try:
                await _call(service, method, changed)
            except Exception as error:
                raise AssertionError(f"{method} with {path}") from error
            assert stack.driver.exit_reason is None, f"{method} with {path} ended the controller"


def _of(name: str) -> list[Any]:
    return [
        pytest.param(method, descriptor, id=method)
        for service, method, descriptor in METHODS
        if service == name
    ]


@pytest.mark.parametrize(("method", "descriptor"), _of("Controller"))
async def test_no_request_for_metadata_ends_the_controller(
    open_stack: Open,
    caplog: pytest.LogCaptureFixture,
    method: str,
    descriptor: Any,  # noqa: ANN401
) -> None:
    stack = await open_stack()
    await stack.register()
    await stack.create("t")
    await _try_all(stack, ControllerServicer(stack.application), method, descriptor)
    # The doors are so tight that no decision has to be given up.
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    reply = await stack.create("afterwards")
    assert isinstance(reply, CreateTopicsReply)
    _written(stack)
    end = stack.application.controller.end_offset
    await stack.close()
    again = await open_stack()
    await eventually(lambda: again.application.controller.end_offset >= end)


@pytest.mark.parametrize(("method", "descriptor"), _of("Raft"))
async def test_no_request_of_a_peer_ends_the_leader(
    open_stack: Open,
    method: str,
    descriptor: Any,  # noqa: ANN401
) -> None:
    stack = await open_stack()
    raft = RaftServicer(stack.driver, WHO, software_version="1")
    await _try_all(stack, raft, method, descriptor)
    await stack.close()
    await open_stack()


@pytest.mark.parametrize(("method", "descriptor"), _of("Admin"))
async def test_the_sidecar_tells_of_every_call_in_few_words(
    open_stack: Open,
    method: str,
    descriptor: Any,  # noqa: ANN401
) -> None:
    records: list[CallRecord] = []
    service = AdminServicer(_Sidecar(), records.append)
    await _try_all(await open_stack(), service, method, descriptor)
    assert {record.method for record in records} == {method}
    assert all(len(record.request) <= 10_000 for record in records)
