"""The beginning and the end of a call's response."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from quorate.h2.client.call_result import CallResult, status_of_reset
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.header_codec import BlockReader, Fields, block_of
from quorate.h2.protocol.limits import Limits

OK, INTERNAL = grpc.StatusCode.OK, grpc.StatusCode.INTERNAL


def fields(*pairs: tuple[bytes, bytes]) -> Fields:
    return BlockReader(Limits()).read(block_of(pairs))


async def test_an_answer_begins_with_its_metadata_and_once() -> None:
    outcome = CallResult()
    begun = fields((b":status", b"200"), (b"key", b"v"))
    assert outcome.begin(begun, is_last=False) is None
    assert outcome.begun.done()
    assert outcome.initial == (("key", "v"),)


@pytest.mark.parametrize(
    ("status", "code"),
    [(b"503", grpc.StatusCode.UNAVAILABLE), (b"418", grpc.StatusCode.UNKNOWN)],
)
async def test_what_is_no_grpc_does_not_begin(status: bytes, code: grpc.StatusCode) -> None:
    outcome = CallResult()
    wrong = outcome.begin(fields((b":status", status)), is_last=False)
    assert wrong == (code, f"the server answered with HTTP status {status.decode()}")
    assert not outcome.begun.done()


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        (((b"grpc-status", b"0"),), (OK, "")),
        (((b"grpc-status", b"13"), (b"grpc-message", b"a%20defect")), (INTERNAL, "a defect")),
        (((b"grpc-status", b"99"),), (grpc.StatusCode.UNKNOWN, "")),
        (((b"grpc-status", b"1" * 5000),), (grpc.StatusCode.UNKNOWN, "")),
        ((), (grpc.StatusCode.UNKNOWN, "the server sent no status")),
    ],
)
async def test_the_status_is_what_the_trailers_say(
    pairs: tuple[tuple[bytes, bytes], ...], status: tuple[grpc.StatusCode, str]
) -> None:
    assert CallResult().read_status(fields(*pairs)) == status


async def test_the_end_is_told_to_all_who_wait_and_raised_unless_it_is_well() -> None:
    outcome = CallResult()
    told: list[object] = []
    outcome.add_done_callback(told.append)
    outcome.end(INTERNAL, "a defect")
    outcome.run_callbacks("the call")
    outcome.run_callbacks("again")
    assert (told, outcome.begun.done(), outcome.done.done()) == (["the call"], True, True)
    with pytest.raises(grpc.aio.AioRpcError, match="a defect"):
        outcome.check()


async def test_only_what_was_well_can_be_spoilt() -> None:
    outcome = CallResult()
    outcome.end(OK, "")
    outcome.check()
    outcome.override_status(INTERNAL, "it cannot be read")
    outcome.override_status(grpc.StatusCode.UNAVAILABLE, "later")
    assert (outcome.code, outcome.details) == (INTERNAL, "it cannot be read")


async def test_who_cancelled_the_call_is_told_that() -> None:
    outcome = CallResult()
    outcome.is_cancelled = True
    outcome.end(grpc.StatusCode.CANCELLED, "")
    with pytest.raises(asyncio.CancelledError):
        outcome.check()


def test_a_reset_says_more_in_its_own_words() -> None:
    assert status_of_reset(H2ErrorCode.REFUSED_STREAM, "it goes away") == (
        grpc.StatusCode.UNAVAILABLE,
        "it goes away",
    )
    assert status_of_reset(77, "") == (INTERNAL, "the stream was reset with 77")
