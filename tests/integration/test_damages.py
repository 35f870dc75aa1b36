"""What becomes of the folders that were damaged and shown to stock Kafka (docs/storage.md).

Each damage is done three times: to the folder as stock Kafka left it, to the same folder after this
storage has had it in use, and to that of a voter that has two others to fetch from.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from quorate.raft.messages import LogRange
from quorate.records.control import KRaftVoters
from quorate.records.ids import NodeId, Offset, ReplicaKey
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem
from quorate.storage.flushed_end import FlushedEndFile
from quorate.storage.layout import BOOTSTRAP_CHECKPOINT, FLUSHED_END, LOG_DIR, META_PROPERTIES
from quorate.storage.recovery import StorageConfig
from quorate.storage.store import LogStore

if TYPE_CHECKING:
    from quorate.storage.recovery import Recovered

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


@pytest.fixture(scope="session")
def damaged(kafka_fixtures: Path) -> Path:
    return kafka_fixtures / "damaged"


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
    """As if the voters had become three: the flushed-end file names the set in force."""
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
    content = store.read_range(LogRange(state.log_start, state.end.offset, 1 << 30))
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


@pytest.mark.parametrize("column", range(3), ids=["stock folder", "in our use", "one of three"])
@pytest.mark.parametrize("name", OUTCOMES)
def test_a_damaged_folder(name: str, column: int, damaged: Path, tmp_path: Path) -> None:
    copy_good(damaged, tmp_path)
    if column > 0:
        have_in_use(tmp_path)
    if column > 1:
        give_two_others(tmp_path)
    log = tmp_path / LOG_DIR / f"{0:020d}.log"
    good = log.read_bytes()
    damage(damaged / name, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found, recovered, content = outcome(tmp_path)
    assert found == OUTCOMES[name][column]
    if recovered is None:
        after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert after == before
        return
    end = recovered.state.end.offset
    if found == "heals":
        assert recovered.is_damaged
        assert recovered.state.remembered_end is not None
        assert (recovered.state.remembered_end.offset, end < FULL_END) == (FULL_END, True)
    elif found == "restarts":
        assert (recovered.state.log_start, end) == (SNAPSHOT_END, SNAPSHOT_END)
    else:
        lost = 1 if name in ("cut-20-bytes", "cut-to-half-header", "flip-in-last-batch") else 0
        assert end == FULL_END - lost
    if recovered.state.log_start == 0:
        assert good.startswith(content)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("flip-in-middle", ["00000000000000000000.log: byte 5923", "offset 84 to 90@1", "backup"]),
        ("flip-in-middle", ["cut ", "00000000000000000000.log to 5923 bytes"]),
        ("flip-before-snapshot-end", ["byte 5275", "offset 79 to 90@1", "remove "]),
        ("flip-in-snapshot-records-only-log-gone", ["checkpoint: damaged at byte 166", "backup"]),
        ("no-quorum-state", ["quorum-state is missing", "twice in one epoch", "Restore it"]),
        ("bad-quorum-state", ["quorum-state: not JSON", "restore it"]),
        ("bad-leader-epoch-checkpoint", ["leader-epoch-checkpoint: the count is '3'", "Remove"]),
        ("no-meta-properties", ["meta.properties is missing", "restore the file"]),
        ("other-directory-id", ["directory.id is AAAAAAAAAAAAAAAAAAABcQ", "put the right value"]),
    ],
)
def test_a_refusal_names_the_file_and_the_way_out(
    name: str, words: list[str], damaged: Path, tmp_path: Path
) -> None:
    copy_good(damaged, tmp_path)
    damage(damaged / name, tmp_path)
    with pytest.raises(StorageError) as refusal:
        LogStore.open(FS, str(tmp_path), CONFIG)
    assert [word for word in words if word not in str(refusal.value)] == []


def test_the_way_out_of_a_refusal_leads_out(damaged: Path, tmp_path: Path) -> None:
    copy_good(damaged, tmp_path)
    damage(damaged / "flip-before-snapshot-end", tmp_path)
    with pytest.raises(StorageError) as refusal:
        LogStore.open(FS, str(tmp_path), CONFIG)
    doomed = str(refusal.value).rpartition(" remove ")[2].split()
    for path in doomed:
        Path(path).unlink()
    store, recovered = LogStore.open(FS, str(tmp_path), CONFIG)
    store.close()
    assert recovered.state.end.offset == SNAPSHOT_END


def test_a_stock_folder_is_read_whole(damaged: Path, tmp_path: Path) -> None:
    copy_good(damaged, tmp_path)
    store, recovered = LogStore.open(FS, str(tmp_path), CONFIG)
    state = recovered.state
    assert (state.log_start, state.end.offset, len(state.snapshots)) == (0, FULL_END, 1)
    assert [entry.offset for entry in state.voters] == [Offset(SNAPSHOT_END - 1)]
    assert store.read_snapshot(state.snapshots[0].snapshot_id).voters == state.voters[0].voters
    assert KRaftVoters(state.voters[0].voters).voters.by_id(NodeId(1)) is not None
    store.close()


def test_every_damage_of_the_fixtures_is_in_the_table(damaged: Path) -> None:
    assert {path.name for path in damaged.iterdir()} == {"good", *OUTCOMES}


def test_the_document_says_the_same() -> None:
    table = DOCUMENT.read_text().partition("| damage |")[2]
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|(.*)\|$", table, re.MULTILINE)
    told = {name: tuple(cell.strip() for cell in cells.split("|")[-3:]) for name, cells in rows}
    assert told == OUTCOMES
