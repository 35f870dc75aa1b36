"""meta.properties and partition.metadata."""

from __future__ import annotations

import pytest

from quorate.records.ids import ClusterId, DirectoryId, NodeId, parse_uuid
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.meta_properties import (
    MetaProperties,
    add_directory_id,
    decode_meta,
    encode_meta,
    ensure_partition_metadata,
    lacks_directory_id,
    read_meta,
)
from tests.unit.storage.conftest import Replica

META = MetaProperties(
    NodeId(1),
    ClusterId("94ziiJQcTmOjHDOb_ewFAQ"),
    DirectoryId(parse_uuid("a4BOI_ZsQFa_DLfdNUGhaQ")),
)
STOCK = (
    b"#\n#Fri Nov 20 23:00:59 UTC 2026\nnode.id=1\ndirectory.id=a4BOI_ZsQFa_DLfdNUGhaQ\nversion=1\n"
    b"cluster.id=94ziiJQcTmOjHDOb_ewFAQ\n"
)


def test_stock_kafkas_file_is_read() -> None:
    assert decode_meta(STOCK) == META
    assert decode_meta(encode_meta(META)) == META


def test_a_byte_order_mark_before_the_first_key_is_skipped() -> None:
    assert decode_meta(b"\xef\xbb\xbf" + STOCK.partition(b"UTC 2026\n")[2]) == META


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"node.id=1\n", b"", "node.id is missing"),
        (b"node.id=1", b"node.id=one", "node.id: 'one'"),
        (b"node.id=1", "node.id=\u0663".encode(), "node.id: '\u0663'"),
        (b"node.id=1", b"node.id=2147483648", "node.id: 2147483648: it must be 0 to 2147483647"),
        (b"version=1", b"version=2", "version is 2"),
        (b"cluster.id=94ziiJQcTmOjHDOb_ewFAQ", b"cluster.id=", "cluster.id is missing"),
        (b"a4BOI_ZsQFa_DLfdNUGhaQ", b"a4BOI", "directory.id: .*not a uuid"),
        # Sixteen zero bytes.
        (
            b"a4BOI_ZsQFa_DLfdNUGhaQ",
            b"AAAAAAAAAAAAAAAAAAAAAA",
            "directory.id: AAAAAAAAAAAAAAAAAAAAAA is no directory id",
        ),
        (b"version=1", b"what is this", "no property"),
    ],
)
def test_a_malformed_file_is_refused_by_its_property(old: bytes, new: bytes, reason: str) -> None:
    disk = Replica().disk
    write_atomically(disk, "/data/x", STOCK.replace(old, new))
    with pytest.raises(StorageError, match=f"/data/x: .*{reason}.*Restore the file"):
        read_meta(disk, "/data/x")


NAMELESS = STOCK.replace(b"directory.id=a4BOI_ZsQFa_DLfdNUGhaQ\n", b"")


def test_a_file_of_kafka_before_3_7_takes_the_directory_id_that_it_is_given() -> None:
    assert decode_meta(NAMELESS, new_directory_id=META.directory_id) == META
    other = DirectoryId(b"\x07" * 16)
    assert decode_meta(STOCK, new_directory_id=other) == META
    disk = Replica().disk
    write_atomically(disk, "/data/x", NAMELESS)
    assert lacks_directory_id(disk, "/data/x")
    with pytest.raises(StorageError, match=r"/data/x: directory.id is missing, .*start the contr"):
        read_meta(disk, "/data/x")


def test_a_directory_id_is_added_below_all_that_the_file_says() -> None:
    disk = Replica().disk
    for data in (NAMELESS, NAMELESS.rstrip(b"\n"), NAMELESS + b"\n\n"):
        write_atomically(disk, "/data/x", data)
        add_directory_id(disk, "/data/x", META.directory_id)
        assert disk.read("/data/x") == NAMELESS + b"directory.id=a4BOI_ZsQFa_DLfdNUGhaQ\n"
        assert not lacks_directory_id(disk, "/data/x")


@pytest.mark.parametrize("line", [b"directory.id=\n", b"directory.id=a4BOI\n"])
def test_a_directory_id_that_is_there_is_not_replaced(line: bytes) -> None:
    disk = Replica().disk
    write_atomically(disk, "/data/x", NAMELESS + line)
    assert not lacks_directory_id(disk, "/data/x")
    with pytest.raises(StorageError, match=r"directory\.id.*Restore the file"):
        read_meta(disk, "/data/x", new_directory_id=META.directory_id)


def test_a_missing_file_is_none() -> None:
    assert read_meta(Replica().disk, "/data/x") is None


def test_partition_metadata_is_written_as_kafka_writes_it() -> None:
    disk = Replica().disk
    assert ensure_partition_metadata(disk, "/data/x")
    assert disk.read("/data/x") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert not ensure_partition_metadata(disk, "/data/x")


def test_the_partition_metadata_of_another_topic_is_refused() -> None:
    disk = Replica().disk
    write_atomically(disk, "/data/x", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    with pytest.raises(StorageError, match=r"/data/x: .*Remove the file"):
        ensure_partition_metadata(disk, "/data/x")
