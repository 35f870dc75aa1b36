"""The same arguments give the same bytes in every process, however Python salts its hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = ("--days", "1", "--brokers", "4", "--topics", "9", "--records", "2500", "--voters", "2")


def generate(folder: Path, hash_seed: int) -> dict[str, bytes]:
    words = [sys.executable, "-m", "quorate.cli.main", "generate-log", *FLAGS, str(folder)]
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_processes_agree_on_every_byte(tmp_path: Path) -> None:
    one = generate(tmp_path / "one", 1)
    assert len(one) > 10
    assert generate(tmp_path / "two", 2) == one
