"""Reading properties files, and the errors for files that cannot be read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from quorate.settings.properties import ConfigError
from quorate.settings.property_files import read_properties
from quorate.settings.regular_files import read_regular

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_text("a=1\n", encoding="utf-8")
    assert read_properties(str(path)) == {"a": "1"}
    words = "missing.properties: No such file or directory: name a readable properties file"
    with pytest.raises(ConfigError, match=words):
        read_properties(str(tmp_path / "missing.properties"))
    with pytest.raises(ConfigError, match=r"^the path is empty: name a readable properties file"):
        read_properties("")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_bytes("node.id=1\n".encode("utf-8-sig"))
    assert read_properties(str(path)) == {"node.id": "1"}


def test_a_pipe_is_read_unless_it_is_needed_again() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a=1\n")
    os.close(writer)
    path = f"/dev/fd/{reader}"
    try:
        with pytest.raises(ConfigError, match="it is a pipe, not a regular file: name a readable"):
            read_properties(path, read_regular)
        assert read_properties(path) == {"a": "1"}
    finally:
        os.close(reader)
