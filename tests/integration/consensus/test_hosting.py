"""What a controller hosts, and the records that `format` left for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.consensus.hosting import read_bootstrap
from quorate.storage.errors import StorageError


def test_a_directory_without_bootstrap_records_has_none(properties: dict[str, str]) -> None:
    assert read_bootstrap(properties["metadata.log.dir"]) == ()
    assert read_bootstrap("/nowhere") == ()


def test_damaged_bootstrap_records_matter_only_while_the_log_has_none(
    properties: dict[str, str],
) -> None:
    path = Path(properties["metadata.log.dir"]) / "bootstrap.checkpoint"
    path.write_bytes(b"\0" * 100)
    with pytest.raises(StorageError, match="copy the file from another controller"):
        read_bootstrap(properties["metadata.log.dir"])
    assert read_bootstrap(properties["metadata.log.dir"], is_needed=False) == ()
