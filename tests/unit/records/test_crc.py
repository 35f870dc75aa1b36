"""The checksum, against published vectors and another implementation."""

from __future__ import annotations

import importlib
import sys

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate import records
from quorate.records import crc
from quorate.records.crc import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_the_checksum_is_castagnolis(data: bytes, checksum: int) -> None:
    """The vectors are those of RFC 3720, B.4, and the usual check value."""
    assert crc32c(data) == checksum


@given(st.binary(), st.binary())
def test_a_checksum_goes_on_where_another_ended(first: bytes, second: bytes) -> None:
    assert crc32c(second, crc32c(first)) == google_crc32c.value(first + second)


@given(st.binary())
def test_every_kind_of_buffer_has_the_same_checksum(data: bytes) -> None:
    assert crc32c(bytearray(data)) == crc32c(memoryview(data)) == google_crc32c.value(data)


def test_the_checksum_needs_no_optional_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crc32c", None)
    monkeypatch.delitem(sys.modules, "quorate.records.crc")
    # An import puts the module into its package, too, and only this puts the old one back.
    monkeypatch.setattr(records, "crc", crc)
    without = importlib.import_module("quorate.records.crc")
    for data in (b"123456789", bytearray(b"123456789"), memoryview(b"123456789")):
        assert without.crc32c(data) == 0xE3069283
        assert without.crc32c(data[4:], without.crc32c(data[:4])) == 0xE3069283
