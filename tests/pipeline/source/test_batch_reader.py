"""The batch reader: what its tasks are, and that they travel."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from quorate.pipeline.source.batch_reader import DamagePartition, KraftReader, SplitPartition
from quorate.pipeline.source.options import parse_options
from tests.pipeline.source.logs import small_log

if TYPE_CHECKING:
    from pathlib import Path


def test_partitions_are_pickled_and_read_in_another_process(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    (log.directory / "00000000000000000099-0000000001.checkpoint.part").write_bytes(b"x")
    reader = KraftReader(parse_options({"path": str(log.root), "splitBytes": "4096"}))
    parts = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 - our own bytes
    assert [type(part) for part in parts] == [SplitPartition, DamagePartition]
    reader = pickle.loads(pickle.dumps(reader))  # noqa: S301
    counts = [sum(batch.num_rows for batch in reader.read(part)) for part in parts]
    assert counts == [21, 1]
