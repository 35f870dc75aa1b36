"""Validates encoded record batches and extracts the information that the core needs."""

from __future__ import annotations

from quorate.raft.messages import BatchInfo, FetchedBatches
from quorate.records.batch import iter_batches
from quorate.records.control import control_records
from quorate.records.ids import Epoch, Offset


def batch_infos(data: bytes) -> FetchedBatches:
    """Check every batch in `data` (length, magic, CRC) and list them with their control records.

    Raises CorruptBatchError, a ValueError, at the first batch that fails verification
    (rule `disk_fail_stop`).
    """
    infos = []
    for position, header in iter_batches(data):
        control = control_records(data, position, header) if header.is_control else ()
        infos.append(
            BatchInfo(
                base_offset=Offset(header.base_offset),
                last_offset=Offset(header.last_offset),
                epoch=Epoch(header.epoch),
                control=control,
            )
        )
    return FetchedBatches(data, tuple(infos))
