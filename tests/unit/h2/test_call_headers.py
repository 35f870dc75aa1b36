"""Headers of a call."""

from __future__ import annotations

import grpc
import pytest

from quorate.h2.call_headers import Request, request_of
from quorate.h2.protocol.header_codec import validate
from quorate.h2.protocol.limits import Limits
from tests.unit.h2.peers import REQUEST


def read(*more: tuple[bytes, bytes], without: bytes = b"") -> Request:
    pairs = [pair for pair in REQUEST if pair[0] != without]
    in_order = sorted([*pairs, *more], key=lambda pair: not pair[0].startswith(b":"))
    return request_of(validate(in_order, Limits()))


def test_a_call_has_a_method_a_timeout_and_metadata() -> None:
    request = read((b"grpc-timeout", b"2S"), (b"key", b"value"))
    assert request.details.method == "/some.Service/Call"
    assert request.details.invocation_metadata == (("key", "value"),)
    assert request.timeout_s == 2.0
    assert request.http_status is None
    assert request.fault is None


def test_equal_headers_are_read_once() -> None:
    fields = validate(list(REQUEST), Limits())
    assert request_of(fields) is request_of(fields)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (read((b":method", b"GET"), without=b":method"), b"405"),
        (read((b"content-type", b"text/html"), without=b"content-type"), b"415"),
        (read((b"content-type", b"application/grpcx"), without=b"content-type"), b"415"),
    ],
)
def test_what_is_no_grpc_has_a_status_of_http(request_: Request, status: bytes) -> None:
    assert request_.http_status == status


def test_messages_may_be_named_by_their_format() -> None:
    assert read((b"content-type", b"application/grpc+proto"), without=b"content-type").fault is None


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ((b"grpc-encoding", b"gzip"), grpc.StatusCode.UNIMPLEMENTED),
        ((b"grpc-timeout", b"soon"), grpc.StatusCode.INTERNAL),
        ((b"key-bin", b"!"), grpc.StatusCode.INTERNAL),
    ],
)
def test_what_cannot_be_read_ends_the_call(
    header: tuple[bytes, bytes], code: grpc.StatusCode
) -> None:
    fault = read(header).fault
    assert fault is not None
    assert fault[0] is code


def test_who_compresses_learns_what_is_taken() -> None:
    assert read((b"grpc-encoding", b"gzip")).hints == ((b"grpc-accept-encoding", b"identity"),)
    assert read((b"grpc-encoding", b"identity")).hints == ()
