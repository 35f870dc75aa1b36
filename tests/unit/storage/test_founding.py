"""The id under which a disk is about to found a quorum outlives the process that drew it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.records.ids import DirectoryId
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem
from quorate.storage.founding import end_founding, read_founding, write_founding

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
def test_what_is_no_id_is_named_with_the_remedy(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "founding"
    path.write_bytes(data)
    with pytest.raises(StorageError, match=f"{path}: .* remove the file"):
        read_founding(OsFileSystem(), str(tmp_path))
