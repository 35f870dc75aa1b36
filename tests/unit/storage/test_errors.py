"""All errors of storage have one base, so that a caller can stop on all of them."""

from __future__ import annotations

import errno

import pytest

from quorate.storage.errors import (
    DamagedLogError,
    DamagedSnapshotError,
    StorageError,
    named,
    naming,
    problem_of,
)


def test_damage_is_a_storage_error() -> None:
    assert issubclass(DamagedLogError, StorageError)
    assert issubclass(DamagedSnapshotError, StorageError)


def test_a_named_error_is_of_the_same_kind_and_keeps_a_name_that_it_has() -> None:
    full = named(OSError(errno.ENOSPC, "No space left on device"), "/d/log", "unused")
    assert (full.errno, str(full)) == (errno.ENOSPC, "[Errno 28] No space left on device: '/d/log'")
    with pytest.raises(PermissionError) as raised, naming("/d/log"):
        raise PermissionError(errno.EACCES, "Permission denied", "/d/other")
    assert raised.value.filename == "/d/other"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EACCES, "Permission denied", "/d/a"), "/d/a: Permission denied: give it to"),
        (OSError(errno.EROFS, "Read-only file system"), "/d: Read-only file system: mount the"),
        (OSError(errno.EXDEV, "Invalid cross-device link", "/d/a"), "/d/a: Invalid cross-device"),
        (OSError("words alone"), "/d: words alone"),
    ],
)
def test_a_problem_names_the_file_and_what_to_do(error: OSError, words: str) -> None:
    assert problem_of(error, "/d").startswith(words)
