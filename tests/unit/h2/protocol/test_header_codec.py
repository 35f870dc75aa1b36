"""Blocks are read once where they are equal, and written without a table."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder

from quorate.h2.protocol import header_codec as h
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.limits import Limits, ListenerMemory
from tests.unit.h2.peers import BLOCK, REQUEST


def test_what_is_written_can_be_read_and_leaves_the_table_alone() -> None:
    decoder = Decoder()
    assert list(decoder.decode(BLOCK, raw=True)) == list(REQUEST)
    assert not decoder.header_table.dynamic_entries


def test_equal_blocks_are_read_once() -> None:
    reader = h.BlockReader(Limits())
    assert reader.read(BLOCK) is reader.read(BLOCK)


def test_a_block_means_something_else_when_the_table_has_changed() -> None:
    reader, encoder = h.BlockReader(Limits()), Encoder()
    first = encoder.encode([("a", "1")])
    assert reader.read(first).pairs == [(b"a", b"1")]
    newest = b"\xbe"
    assert reader.read(newest).pairs == [(b"a", b"1")]
    reader.read(encoder.encode([("b", "2")]))
    assert reader.read(newest).pairs == [(b"b", b"2")]


def test_a_block_that_empties_the_table_is_noticed() -> None:
    reader = h.BlockReader(Limits())
    reader.read(b"\x40\x01a\x011")
    assert reader.read(b"\xbe").pairs == [(b"a", b"1")]
    # The table's size becomes 0, again for each block that says so.
    reader.read(b"\x20\x82")
    with pytest.raises(h.BlockError):
        reader.read(b"\xbe")
    reader.read(b"\x3f\xe1\x1f\x40\x01a\x011")
    reader.read(b"\x20\x82")
    with pytest.raises(h.BlockError) as raised:
        reader.read(b"\xbe")
    assert raised.value.code is H2ErrorCode.COMPRESSION_ERROR


def test_a_block_changes_the_size_of_the_table_twice_at_most() -> None:
    reader = h.BlockReader(Limits())
    assert reader.read(b"\x20\x3f\xe1\x1f\x40\x01a\x011").pairs == [(b"a", b"1")]
    for updates in (b"\x20" * 3, b"\x3f\xe1\x1f" * 3, b"\x20\x3f\xe1\x1f\x3e", b"\x20" * 60_000):
        with pytest.raises(h.BlockError) as raised:
            reader.read(updates + b"\x82")
        assert raised.value.code is H2ErrorCode.COMPRESSION_ERROR


def test_a_block_that_was_read_while_the_table_had_no_room_is_read_again() -> None:
    reader, indexed = h.BlockReader(Limits()), b"\x40\x01a\x011"
    # The entry does not fit into the table of size 0, so that the table stays empty.
    reader.read(b"\x20\x82")
    assert reader.read(indexed).pairs == [(b"a", b"1")]
    reader.read(b"\x3f\xe1\x1f\x82")
    assert reader.read(indexed).pairs == [(b"a", b"1")]
    assert reader.read(b"\xbe").pairs == [(b"a", b"1")]


def test_a_closed_reader_gives_the_memory_of_its_blocks_back() -> None:
    memory = ListenerMemory()
    reader = h.BlockReader(Limits(), memory)
    reader.read(BLOCK)
    assert memory.cached_headers_bytes > 0
    reader.close()
    assert memory.cached_headers_bytes == 0


def test_a_request_keeps_what_is_made_of_it() -> None:
    reader = h.BlockReader(Limits())
    reader.read(BLOCK).meaning = "something"
    assert reader.read(BLOCK).meaning == "something"


@pytest.mark.parametrize(
    ("pairs", "fault"),
    [
        ([(b":status", b"200")], None),
        ([], "a response needs :status and no other pseudo-header"),
        ([(b":status", b"20")], "a response needs :status and no other pseudo-header"),
        ([(b":status", b"200"), (b":path", b"/")], "a response needs"),
    ],
)
def test_a_response_has_a_status(pairs: list[tuple[bytes, bytes]], fault: str | None) -> None:
    said = h.response_error(h.validate(pairs, Limits()))
    assert said == fault or (fault is not None and (said or "").startswith(fault))


def test_trailers_have_no_pseudo_headers() -> None:
    assert h.trailers_error(h.validate([(b"a", b"1")], Limits())) is None
    assert h.trailers_error(h.validate([(b":status", b"200")], Limits())) is not None


@pytest.mark.parametrize(
    ("pairs", "fault"),
    [
        ([(b"a", b""), (b":path", b"/")], "a pseudo-header behind headers"),
        ([(b":path", b"/"), (b":path", b"/")], '":path" twice'),
        ([(b":other", b"")], '":other" is unknown'),
        ([(b":path", b"/\n")], '":path" has a value that no header may have'),
        ([(b"content-length", b"1"), (b"content-length", b"1")], "content-length is no number"),
    ],
)
def test_header_lists_that_may_not_be(pairs: list[tuple[bytes, bytes]], fault: str) -> None:
    assert (h.validate(pairs, Limits()).wrong or "").startswith(fault)


@pytest.mark.parametrize(
    "block",
    [
        # An integer that never ends, a string that is cut off, an index without an entry.
        b"\x7f" + b"\xff" * 16_000,
        b"\x00\x7f" + b"\x80" * 16_000,
        b"\x00\x05abc",
        b"\xff\xff\x7f",
        # More than a header list may have.
        h.block_of([(b"a", b"")]) * 4000,
    ],
)
def test_a_block_that_cannot_be_decoded_is_named_in_few_words(block: bytes) -> None:
    with pytest.raises(h.BlockError) as raised:
        h.BlockReader(Limits()).read(block)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 100


@pytest.mark.parametrize(
    "pair",
    [
        (b":" + b"n" * 15_000, b""),
        (b"n\xff" * 15_000, b""),
        (b"n" * 15_000, b"\n"),
        (b"connection", b"v" * 15_000),
        (b"content-length", b"1" * 15_000),
    ],
)
def test_what_is_wrong_with_a_header_is_said_in_few_words(pair: tuple[bytes, bytes]) -> None:
    wrong = h.validate([pair], Limits(header_bytes_max=1 << 20)).wrong
    assert wrong is not None
    assert wrong.isprintable()
    assert len(wrong) < 200
