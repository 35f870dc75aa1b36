"""Record batches: golden bytes, round trips, and every way to be damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.batch import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    BatchHeader,
    CorruptBatchError,
    Record,
    check_batch,
    encode_batch,
    iter_batches,
    read_header,
    read_records,
    restamp,
)
from quorate.records.codec.varint import encode_varint
from quorate.records.crc import crc32c

DATA = Path(__file__).parent / "data"
CRC_AT = 17
ATTRIBUTES_AT = 21


def resealed(batch: bytes, position: int, replacement: bytes) -> bytes:
    """The batch with some bytes replaced and a CRC that fits again."""
    changed = batch[:position] + replacement + batch[position + len(replacement) :]
    guarded = changed[ATTRIBUTES_AT:]
    return changed[:CRC_AT] + crc32c(guarded).to_bytes(4, "big") + guarded


def batch_of(body: bytes, count: int) -> bytes:
    """A batch with a hand-made body, which claims to hold `count` records."""
    frame = encode_batch([b"x"] * count, timestamp_ms=5)
    whole = frame[:HEADER_BYTES] + body
    return resealed(whole, 8, (len(whole) - 12).to_bytes(4, "big"))


NOOP = bytes.fromhex("01140000")


def test_a_batch_of_one_record_has_the_bytes_that_kraft_writes() -> None:
    batch = encode_batch([NOOP], timestamp_ms=7, base_offset=3, epoch=2)

    assert len(batch) == 72
    assert check_batch(batch) == BatchHeader(
        base_offset=3,
        batch_length=60,
        epoch=2,
        magic=2,
        crc=int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT], "big"),
        attributes=0,
        last_offset_delta=0,
        base_timestamp_ms=7,
        max_timestamp_ms=7,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    assert batch[HEADER_BYTES:].hex() == "14" + "0000" + "00" + "01" + "08" + NOOP.hex() + "00"


@pytest.mark.parametrize("name", ["kafka.log", "kafka.checkpoint"])
def test_kafkas_own_batches_are_read_and_built_again_byte_for_byte(name: str) -> None:
    data = (DATA / name).read_bytes()
    rebuilt = b""
    for position, header in iter_batches(data):
        records = read_records(data, position, header)
        rebuilt += encode_batch(
            [record.value or b"" for record in records],
            timestamp_ms=header.base_timestamp_ms,
            base_offset=header.base_offset,
            epoch=header.epoch,
            keys=[record.key or b"" for record in records] if header.is_control else None,
            is_control=header.is_control,
        )
    assert rebuilt == data


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=200), st.integers(0, 2**50))
def test_values_come_back(values: list[bytes], base_offset: int) -> None:
    batch = encode_batch(values, timestamp_ms=9, base_offset=base_offset, epoch=4)
    header = check_batch(batch)
    assert header.last_offset == base_offset + len(values) - 1
    assert read_records(batch, 0, header) == [
        Record(base_offset + delta, 9, None, value) for delta, value in enumerate(values)
    ]


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193, 16385, 40000])
def test_values_come_back_at_the_borders_where_deltas_grow_longer(count: int) -> None:
    values = [b"%d" % number for number in range(count)]
    batch = encode_batch(values, timestamp_ms=9)
    records = read_records(batch, 0, check_batch(batch))
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(count))


@pytest.mark.parametrize("size", [0, 55, 56, 57, 58, 62, 63, 64, 8180, 8191, 8192, 1 << 20])
def test_values_come_back_at_the_borders_where_lengths_grow_longer(size: int) -> None:
    batch = encode_batch([bytes(size)] * 2, timestamp_ms=9)
    expected = [Record(0, 9, None, bytes(size)), Record(1, 9, None, bytes(size))]
    assert read_records(batch, 0, check_batch(batch)) == expected


@given(st.lists(st.tuples(st.binary(max_size=80), st.binary(max_size=80)), min_size=1, max_size=80))
def test_keys_come_back_with_their_values(pairs: list[tuple[bytes, bytes]]) -> None:
    keys, values = zip(*pairs, strict=True)
    batch = encode_batch(values, timestamp_ms=1, keys=keys, is_control=True)
    header = check_batch(batch)
    assert header.is_control
    assert read_records(batch, 0, header) == [
        Record(delta, 1, key, value) for delta, (key, value) in enumerate(pairs)
    ]


def test_shapes_that_kraft_does_not_write_are_read_field_by_field() -> None:
    null = encode_varint(-1)
    plain = b"\0" + encode_varint(3) + encode_varint(0) + null + encode_varint(2) + b"ab" + b"\0"
    headers = encode_varint(1) + encode_varint(1) + b"h" + null
    keyed = b"\0" + encode_varint(-2) + encode_varint(1) + encode_varint(0) + null + headers
    body = b"".join(encode_varint(len(record)) + record for record in (plain, keyed))
    batch = batch_of(body, 2)
    assert read_records(batch, 0, check_batch(batch)) == [
        Record(0, 8, None, b"ab"),
        Record(1, 3, b"", None, (("h", None),)),
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "record 0"),
        (encode_varint(-1), "record 0: a length of -1"),
        (encode_varint(-9) + b"\0\0\0\1\4xy\0", "record 0: a length of -9"),
        (encode_varint(50) + b"\0" * 5, "record 0: a length of 50"),
        (encode_varint(7) + b"\0\0\2\1\2x\0", "record 0: offset 1 instead of 0"),
        (encode_varint(7) + b"\0\0\0\1\6x\0", "record 0: 3 bytes at 67 reach past"),
        (encode_varint(7) + b"\0\0\0\1\2x\0\0", "1 bytes behind the last record"),
        (encode_varint(8) + b"\0\0\0\1\2x\0\0", "its fields end at 69, its length says 70"),
    ],
)
def test_records_that_do_not_fill_their_batch_are_corrupt(body: bytes, reason: str) -> None:
    batch = batch_of(body, 1)
    with pytest.raises(CorruptBatchError, match=reason) as caught:
        read_records(b"12345" + batch, 5, check_batch(batch))
    assert caught.value.position == 5


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.data())
def test_any_flipped_bit_under_the_crc_is_caught(values: list[bytes], data: st.DataObject) -> None:
    batch = bytearray(encode_batch(values, timestamp_ms=3, base_offset=17, epoch=2))
    bit = data.draw(st.integers(CRC_AT * 8, len(batch) * 8 - 1))
    batch[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptBatchError, match="CRC is"):
        check_batch(batch)


def test_any_flipped_bit_of_length_or_magic_is_caught() -> None:
    """Both lie before the CRC, but a wrong length moves the CRC's end and a magic is known."""
    batch = encode_batch([b"value"], timestamp_ms=3, base_offset=17, epoch=2)
    for bit in (*range(8 * 8, 12 * 8), *range(16 * 8, 17 * 8)):
        damaged = bytearray(batch + batch)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptBatchError):
            check_batch(damaged)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.data())
def test_a_cut_yields_the_whole_batches_before_it(values: list[bytes], data: st.DataObject) -> None:
    log = b"".join(encode_batch([v], timestamp_ms=1, base_offset=n) for n, v in enumerate(values))
    cut = data.draw(st.integers(0, len(log)))
    found: list[int] = []
    try:
        found.extend(position for position, _ in iter_batches(log[:cut]))
        end = cut
    except CorruptBatchError as error:
        end = error.position
    starts = [position for position, _ in iter_batches(log)]
    assert found == [start for start in starts if start < end]
    assert end in {*starts, len(log)}


def test_batches_are_iterated_between_two_positions() -> None:
    one, two, three = (encode_batch([NOOP], timestamp_ms=1, base_offset=n) for n in range(3))
    found = list(iter_batches(one + two + three, len(one), len(one) + len(two)))
    assert found == [(len(one), read_header(two))]


def test_a_stamped_batch_differs_in_base_offset_and_epoch_alone() -> None:
    batch = encode_batch([NOOP, b"x"], timestamp_ms=1)
    stamped = restamp(batch, 77, 5)
    assert stamped == encode_batch([NOOP, b"x"], timestamp_ms=1, base_offset=77, epoch=5)
    assert check_batch(stamped) == check_batch(batch)._replace(base_offset=77, epoch=5)
    assert restamp(bytearray(batch), 77, 5) == stamped


@pytest.mark.parametrize(
    ("position", "replacement", "reason"),
    [
        (0, b"\xff" * 8, "base offset -1 is negative"),
        (8, b"\0" * 4, "length 0 is below a header's"),
        (8, b"\x00\x80\x00\x00", "length 8388608 is above the limit of 8388608 bytes"),
        (12, b"\xff" * 4, "leader epoch -1 is negative"),
        (16, b"\1", "magic 1 instead of 2"),
        (21, b"\0\1", "compressed batches"),
        (21, b"\0\x10", "unknown attributes 0x10"),
        (23, b"\0\0\0\1", "1 records, but a last offset delta of 1"),
        (57, b"\0\0\0\0", "0 records, but a last offset delta of 0"),
    ],
)
def test_a_header_that_says_nonsense_is_corrupt(
    position: int, replacement: bytes, reason: str
) -> None:
    batch = resealed(encode_batch([NOOP], timestamp_ms=1), position, replacement)
    with pytest.raises(CorruptBatchError, match=reason):
        check_batch(batch)


def test_a_short_buffer_says_what_is_missing() -> None:
    batch = encode_batch([NOOP], timestamp_ms=1)
    with pytest.raises(
        CorruptBatchError, match="batch at byte 0: 60 bytes left, a header takes 61"
    ):
        check_batch(batch[:60])
    with pytest.raises(CorruptBatchError, match="batch at byte 0: 71 of 72 bytes are there"):
        check_batch(batch[:71])


def test_a_batch_without_records_is_refused() -> None:
    with pytest.raises(ValueError, match="one record at least"):
        encode_batch([], timestamp_ms=1)


def test_a_batch_above_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="write them as several batches"):
        encode_batch([bytes(BATCH_BYTES_MAX)], timestamp_ms=1)
