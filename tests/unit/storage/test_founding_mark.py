"""The id under which a disk is about to found a quorum outlives the process that drew it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.records.ids import DirectoryId
from quorate.storage.file_system import OsFileSystem
from quorate.storage.founding_mark import end_founding, read_founding, write_founding

if TYPE_CHECKING:
    from pathlib import Path

ID = DirectoryId(bytes(range(16)))


def test_the_id_is_there_until_the_founding_ends(tmp_path: Path) -> None:
    fs, directory = OsFileSystem(), str(tmp_path)
    assert read_founding(fs, directory) is None
    write_founding(fs, directory, ID)
    assert read_founding(fs, directory) == ID
    end_founding(fs, directory)
    assert read_founding(fs, directory) is None
    end_founding(fs, directory)


@pytest.mark.parametrize("data", [b"", b"no id", b"\xff\xfe"])
def test_what_is_no_id_counts_as_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "founding").write_bytes(data)
    assert read_founding(OsFileSystem(), str(tmp_path)) is None
