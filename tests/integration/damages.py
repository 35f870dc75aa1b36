"""The folders of `damaged/` among the fixtures, damaged again, and what our storage makes of them.

A case is a name and a note, `what.txt`, of what was done to the folder that stock Kafka left.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import LogRange
from quorate.records.ids import NodeId, ReplicaKey
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.flushed_end import FlushedEndFile
from quorate.storage.layout import BOOTSTRAP_CHECKPOINT, FLUSHED_END, LOG_DIR, META_PROPERTIES
from quorate.storage.log_store import LogStore
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from quorate.storage.recovery.recovery import Recovered

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "storage.md"
CONFIG: Final = StorageConfig(node_id=NodeId(1))
FS: Final = OsFileSystem()
NOTES: Final = ("dump-log.txt", "outcome.txt", "server.log.txt", "what.txt")
BESIDE_THE_LOG: Final = (META_PROPERTIES, BOOTSTRAP_CHECKPOINT)

# Damage, then what happens to: stock Kafka's folder, the same in our use, a voter of three.
OUTCOMES: Final = {
    "none": ("runs", "runs", "runs"),
    "cut-20-bytes": ("cuts", "refuses", "heals"),
    "cut-to-half-header": ("cuts", "refuses", "heals"),
    "flip-in-last-batch": ("cuts", "refuses", "heals"),
    "zeros-appended": ("cuts", "cuts", "cuts"),
    "garbage-appended": ("cuts", "cuts", "cuts"),
    "flip-in-middle": ("refuses", "refuses", "heals"),
    "flip-before-snapshot-end": ("refuses", "refuses", "heals"),
    "flip-in-first-batch": ("refuses", "refuses", "heals"),
    "empty-log": ("restarts", "refuses", "heals"),
    "flip-in-snapshot": ("sets aside", "sets aside", "sets aside"),
    "snapshot-cut": ("sets aside", "sets aside", "sets aside"),
    "flip-in-snapshot-records-only-log-gone": ("refuses", "refuses", "heals"),
    "no-quorum-state": ("refuses", "refuses", "refuses"),
    "bad-quorum-state": ("refuses", "refuses", "refuses"),
    "no-leader-epoch-checkpoint": ("rebuilds", "rebuilds", "rebuilds"),
    "bad-leader-epoch-checkpoint": ("refuses", "refuses", "refuses"),
    "no-partition-metadata": ("rebuilds", "rebuilds", "rebuilds"),
    "no-bootstrap-checkpoint": ("runs", "runs", "runs"),
    "no-meta-properties": ("refuses", "refuses", "refuses"),
    "other-cluster-id": ("runs", "refuses", "refuses"),
    "other-directory-id": ("refuses", "refuses", "refuses"),
}
FULL_END: Final = 90
SNAPSHOT_END: Final = 79


def copy_good(damaged: Path, folder: Path) -> None:
    good = damaged / "good"
    for source in good.rglob("*"):
        if source.is_file() and source.suffix not in (".txt", ".gz"):
            target = folder / source.relative_to(good)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def have_in_use(folder: Path) -> None:
    store, _ = LogStore.open(FS, str(folder), CONFIG)
    store.close()


def give_two_others(folder: Path) -> None:
    """As if the voters had become three: the flushed-end file names the set in effect."""
    file = FlushedEndFile(FS, str(folder / FLUSHED_END))
    entry = file.load()
    assert entry is not None
    voters = tuple(ReplicaKey(NodeId(node_id)) for node_id in (1, 2, 3))
    file.store(replace(entry, voters=voters, voter_count=3))
    file.close()


def damage(case: Path, folder: Path) -> None:
    """Do again what the case's note says was done."""

    def locate(name: str) -> Path:
        return folder / name if name in BESIDE_THE_LOG else folder / LOG_DIR / name

    for line in (case / "what.txt").read_text().splitlines():
        name, _, what = line.partition(": ")
        if line.endswith(" removed"):
            locate(line.removesuffix(" removed")).unlink()
        elif flip := re.match(r"byte (\d+) 0x.. -> 0x(..)", what):
            content = bytearray(locate(name).read_bytes())
            content[int(flip[1])] = int(flip[2], 16)
            locate(name).write_bytes(content)
        elif cut := re.fullmatch(r"\d+ -> (\d+) bytes", what):
            os.truncate(locate(name), int(cut[1]))
        elif what.startswith("now "):
            locate(name).write_text(ast.literal_eval(what.removeprefix("now ")))
        elif " bytes appended at " in what:
            shutil.copyfile(case / name, locate(name))
        elif " -> " in what:
            old, new = what.split(" -> ")
            locate(name).write_text(locate(name).read_text().replace(old, new))
        else:
            assert name == "nothing", line


def outcome(folder: Path) -> tuple[str, Recovered | None, bytes]:
    try:
        store, recovered = LogStore.open(FS, str(folder), CONFIG)
    except StorageError:
        return "refuses", None, b""
    state = recovered.state
    content = store.read_range(
        LogRange(start=state.log_start, end=state.end.offset, bytes_max=1 << 30)
    )
    store.close()
    said = " ".join(recovered.findings)
    words = {
        "tail: ": "cuts",
        "superseded: ": "restarts",
        "set aside": "sets aside",
        "built anew": "rebuilds",
        "written anew": "rebuilds",
    }
    if state.remembered_end is not None:
        return "heals", recovered, content
    return next((words[sign] for sign in words if sign in said), "runs"), recovered, content


def documented() -> dict[str, tuple[str, ...]]:
    """The table of docs/storage.md: by damage what stock Kafka does, then our three columns."""
    table = DOCUMENT.read_text(encoding="utf-8").partition("| damage |")[2]
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|(.*)\|$", table, re.MULTILINE)
    return {name: tuple(cell.strip() for cell in cells.split("|")[1:]) for name, cells in rows}
