"""Reads and damages the files of stopped and running nodes.

Reads are of files that a process may be appending to, or removing: a torn tail is left out, and so
is what has gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.batch import HEADER_BYTES, read_header
from quorate.storage import layout

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan


def log_end(node: NodePlan) -> int:
    """The end of a node's log as its files have it; that of its snapshot while the log is empty."""
    ends = [end for end, _ in _batches(node).values()]
    return max([*ends, *_snapshot_ends(node)], default=0)


def log_start(node: NodePlan) -> int:
    """The lowest offset in a node's log; the end of its snapshot while the log is empty."""
    return min(_batches(node), default=max(_snapshot_ends(node), default=0))


def committed_batches(node: NodePlan, start: int, high_watermark: int) -> dict[int, bytes]:
    """The bytes of every batch from `start` up to the high watermark, by base offset."""
    found = _batches(node).items()
    return {at: data for at, (end, data) in found if start <= at and end <= high_watermark}


def snapshots(node: NodePlan) -> list[str]:
    """The snapshots a node has, the bootstrap checkpoint aside."""
    return [name for name, end in _checkpoints(node) if end > 0]


def _snapshot_ends(node: NodePlan) -> list[int]:
    return [end for _, end in _checkpoints(node)]


def _checkpoints(node: NodePlan) -> list[tuple[str, int]]:
    names = sorted(path.name for path in (node.metadata_dir / layout.LOG_DIR).iterdir())
    found = [(name, layout.parse_checkpoint(name)) for name in names]
    return [(name, at.offset) for name, at in found if at is not None]


def _batches(node: NodePlan) -> dict[int, tuple[int, bytes]]:
    """End offset and bytes of every whole batch, by base offset, without a torn tail."""
    batches = {}
    for path in sorted((node.metadata_dir / layout.LOG_DIR).glob("*.log")):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            # Cleaned behind a snapshot since the folder was listed.
            continue
        position = 0
        while position + HEADER_BYTES <= len(data):
            header = read_header(data, position)
            end = position + header.size_bytes
            if end > len(data):
                break
            batches[header.base_offset] = (header.last_offset + 1, data[position:end])
            position = end
    return batches


def segments(node: NodePlan) -> list[Path]:
    return sorted((node.metadata_dir / layout.LOG_DIR).glob(f"*{layout.LOG_SUFFIX}"))


def newest_snapshot(node: NodePlan) -> Path:
    found = (node.metadata_dir / layout.LOG_DIR).glob(f"*{layout.CHECKPOINT_SUFFIX}")
    return max(found)


def batch_positions(segment: Path) -> list[int]:
    """The positions at which the batches of a segment begin."""
    data = segment.read_bytes()
    positions, position = [], 0
    while position + HEADER_BYTES <= len(data):
        positions.append(position)
        position += read_header(data, position).size_bytes
    return positions


def flip(path: Path, position: int) -> None:
    """Change one bit of a file, as bit rot does."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def is_healing(node: NodePlan) -> bool:
    return (node.metadata_dir / layout.HEALING).exists()
