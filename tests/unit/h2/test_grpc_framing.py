"""Messages in pieces, metadata, deadlines and words as gRPC has them on the wire."""

from __future__ import annotations

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.h2 import grpc_framing


@given(st.lists(st.binary(max_size=300), max_size=10), st.integers(1, 50))
def test_messages_are_found_in_whatever_pieces_they_come(messages: list[bytes], step: int) -> None:
    data = b"".join(map(grpc_framing.frame_message, messages))
    reader, found = grpc_framing.MessageReader(1000), []
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])
        while reader.is_whole:
            found.append(reader.take())
        assert reader.take() is None
    assert found == messages
    assert len(reader) == 0


def test_messages_that_come_together_are_taken_one_by_one() -> None:
    reader = grpc_framing.MessageReader(10)
    reader.feed(grpc_framing.frame_message(b"a") + grpc_framing.frame_message(b"b") + b"\0\0")
    assert [reader.take(), reader.take(), reader.take(), len(reader)] == [b"a", b"b", None, 2]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\0\0\0\0\x0b", grpc.StatusCode.RESOURCE_EXHAUSTED),
        (b"\x01\0\0\0\0", grpc.StatusCode.INTERNAL),
    ],
)
def test_a_message_is_judged_by_its_first_bytes(data: bytes, code: grpc.StatusCode) -> None:
    reader = grpc_framing.MessageReader(10)
    reader.feed(data)
    with pytest.raises(grpc_framing.OversizedError) as raised:
        reader.take()
    assert raised.value.code is code


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"1H", 3600), (b"2M", 120), (b"3S", 3), (b"4m", 4e-3), (b"5u", 5e-6), (b"6n", 6e-9)],
)
def test_a_timeout_has_a_unit(value: bytes, seconds: float) -> None:
    assert grpc_framing.timeout_s(value) == pytest.approx(seconds)


@pytest.mark.parametrize("value", [b"", b"1", b"S", b"-1S", b"1.5S", b"123456789S", b"1h"])
def test_another_timeout_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="grpc-timeout"):
        grpc_framing.timeout_s(value)


@given(st.floats(1e-6, 1e9))
def test_a_timeout_is_written_with_eight_digits_at_most(seconds: float) -> None:
    value = grpc_framing.timeout_value(seconds)
    assert len(value) <= 9
    assert grpc_framing.timeout_s(value) == pytest.approx(seconds, rel=1e-5, abs=1e-9)


def test_a_timeout_that_is_over_is_zero() -> None:
    assert grpc_framing.timeout_value(-1.0) == b"0n"


@given(st.text(max_size=100))
def test_words_survive_the_way(words: str) -> None:
    value = grpc_framing.status_words(words)
    assert all(0x20 <= byte < 0x7F for byte in value)
    assert grpc_framing.words_of(value) == words.encode(errors="replace").decode()


def test_only_what_has_to_be_is_escaped() -> None:
    assert grpc_framing.status_words("100% sure: ü\n") == b"100%25 sure: %C3%BC%0A"


def test_metadata_survives_the_way() -> None:
    metadata = (("key", "value"), ("key", "again"), ("data-bin", b"\x00\xff"))
    assert grpc_framing.metadata_of(grpc_framing.metadata_pairs(metadata)) == metadata


def test_what_grpc_keeps_for_itself_is_no_metadata() -> None:
    pairs = [(b"te", b"trailers"), (b"grpc-timeout", b"1S"), (b"user-agent", b"x")]
    assert grpc_framing.metadata_of(pairs) == (("user-agent", "x"),)


def test_several_binary_values_may_share_a_header() -> None:
    assert grpc_framing.metadata_of([(b"a-bin", b"AQ,Ag==")]) == (
        ("a-bin", b"\1"),
        ("a-bin", b"\2"),
    )


def test_what_is_no_base64_is_refused() -> None:
    with pytest.raises(ValueError, match="a-bin is no base64"):
        grpc_framing.metadata_of([(b"a-bin", b"!")])
