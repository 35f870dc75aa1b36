"""Results of the damages that were done to folders and shown to stock Kafka (docs/storage.md).

Each damage is done three times: to the folder as stock Kafka left it, to the same folder after this
storage has had it in use, and to that of a voter that has two others to fetch from.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.records.control import KRaftVoters
from quorate.records.ids import NodeId, Offset
from quorate.storage.errors import StorageError
from quorate.storage.layout import LOG_DIR
from quorate.storage.log_store import LogStore
from tests.integration.damages import (
    CONFIG,
    FS,
    FULL_END,
    OUTCOMES,
    SNAPSHOT_END,
    copy_good,
    damage,
    documented,
    give_two_others,
    have_in_use,
    outcome,
)


@pytest.fixture(scope="session")
def damaged(kafka_fixtures: Path) -> Path:
    return kafka_fixtures / "damaged"


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
    assert {name: columns[-3:] for name, columns in documented().items()} == OUTCOMES
