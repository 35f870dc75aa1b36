"""Contents of a directory, and refused ones."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.directories import (
    covered_until_ms,
    find_directories,
    find_directory,
)
from quorate.pipeline.source.options import OptionError
from quorate.storage.file_system import OsFileSystem
from tests.pipeline.source.logs import START_MS, STEP_MS, LogWriter, small_log, topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_directory_above_the_log_will_do(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    for path in (str(log.root), str(log.directory), f"{log.directory}/"):
        found = find_directory(path)
        assert [segment.base_offset for segment in found.segments] == [0, 10]
        assert found.node_id == 1


def test_a_snapshot_counts_with_its_footer_only(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    whole = log.snapshot(10, [topic(1)])
    cut = log.snapshot(12, [topic(1)])
    cut.write_bytes(cut.read_bytes()[:-20])
    part = cut.with_name(whole.name + ".part")
    part.write_bytes(b"x" * 10)
    found = find_directory(str(log.root))
    assert [snapshot.path for snapshot in found.snapshots] == [str(whole)]
    told = {(damage.file, damage.position, damage.error.split(":")[0]) for damage in found.damages}
    assert told == {
        (str(cut), cut.stat().st_size, "half-written"),
        (str(part), 0, "half-downloaded"),
    }


def test_the_directory_of_another_partition_is_refused(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    (log.directory / "partition.metadata").write_text(
        "version: 0\ntopic_id: abcdefghijklmnopqrstuv"
    )
    with pytest.raises(OptionError, match=r"^path: .* another partition"):
        find_directory(str(log.root))


def test_no_log_and_no_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^path: .* no segment and no snapshot"):
        find_directory(str(tmp_path))
    with pytest.raises(OptionError, match=r"^path: .* cannot be listed"):
        find_directory(str(tmp_path / "absent"))
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match=r"^path: .*/file is a file; give the directory that"):
        find_directory(str(tmp_path / "file"))


def test_a_file_that_cannot_be_opened_is_damage_beside_the_others(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.file.unlink()
    log.file.mkdir()
    found = find_directory(str(log.root))
    assert [segment.base_offset for segment in found.segments] == [0]
    assert [(damage.file, damage.offset) for damage in found.damages] == [(str(log.file), 10)]


def test_a_file_that_is_deleted_between_the_listing_and_its_opening_was_never_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As retention deletes them; a link to nothing stays where it is."""
    log = small_log(tmp_path / "c")
    base = log.segment
    lists = OsFileSystem.list_dir

    def listed(fs: OsFileSystem, path: str) -> list[str]:
        names = lists(fs, path)
        log.file.unlink(missing_ok=True)
        return names

    monkeypatch.setattr(OsFileSystem, "list_dir", listed)
    found = find_directory(str(log.directory))
    assert ([segment.base_offset for segment in found.segments], found.damages) == ([0], [])
    monkeypatch.undo()
    log.file.symlink_to(tmp_path / "nothing")
    (damage,) = find_directory(str(log.root)).damages
    assert (damage.file, damage.offset, damage.is_unread) == (str(log.file), base, True)


def test_a_file_without_permission_is_damage_with_its_offset_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a user that is not root, whom nothing is forbidden."""
    log = small_log(tmp_path / "c")
    meta = log.root / "meta.properties"
    closed = {str(log.file), str(meta)}

    def refusing(of_file: Callable[..., object]) -> Callable[..., object]:
        def opened(fs: OsFileSystem, path: str) -> object:
            if path in closed:
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return of_file(fs, path)

        return opened

    monkeypatch.setattr(OsFileSystem, "open", refusing(OsFileSystem.open))
    monkeypatch.setattr(OsFileSystem, "read", refusing(OsFileSystem.read))
    found = find_directory(str(log.root))
    assert [segment.base_offset for segment in found.segments] == [0]
    told = {damage.file: (damage.offset, damage.error) for damage in found.damages}
    denied = "Permission denied; let this user read it, or run as its owner"
    assert all(damage.is_unread for damage in found.damages)
    assert told == {
        str(log.file): (10, f"cannot be opened: {denied}"),
        str(meta): (None, f"whose directory this is cannot be read: {denied}"),
    }


def test_several_directories_are_those_of_different_voters_of_one_cluster(tmp_path: Path) -> None:
    small_log(tmp_path / "a")
    LogWriter(tmp_path / "b", node_id=2).lead(1)
    found = find_directories([str(tmp_path / "a"), str(tmp_path / "b")])
    assert [directory.node_id for directory in found] == [1, 2]


def test_a_directory_without_an_id_is_that_of_its_node(tmp_path: Path) -> None:
    """Kafka before 3.7 wrote none."""
    log = small_log(tmp_path)
    path = log.root / "meta.properties"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("directory.id")))
    assert find_directory(str(log.root)).node_id == 1


def test_a_directory_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """Its records would count twice."""
    log = small_log(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for other in (log.root, log.directory, tmp_path / "link"):
        with pytest.raises(OptionError, match=r"^path: .* the same directory; name it once$"):
            find_directories([str(log.root), str(other)])


def test_a_snapshot_says_when_the_last_record_was_that_it_covers(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    path = log.snapshot(11, [topic(1)])
    (snapshot,) = find_directory(str(log.root)).snapshots
    assert covered_until_ms(snapshot) == START_MS + 10 * STEP_MS
    path.write_bytes(bytes(snapshot.size_bytes))
    assert covered_until_ms(snapshot) is None
    path.unlink()
    assert covered_until_ms(snapshot) is None


def test_two_directories_of_one_node_are_refused(tmp_path: Path) -> None:
    small_log(tmp_path / "a")
    small_log(tmp_path / "copy")
    with pytest.raises(OptionError, match=r"^path: .* both of node 1, .* one directory of each"):
        find_directories([str(tmp_path / "a"), str(tmp_path / "copy")])


def test_of_several_directories_one_at_most_may_be_nobodys(tmp_path: Path) -> None:
    for name in "abc":
        LogWriter(tmp_path / name, node_id=ord(name)).lead(1)
    (tmp_path / "a" / "meta.properties").unlink()
    paths = [str(tmp_path / name) for name in "abc"]
    assert [directory.node_id for directory in find_directories(paths)] == [None, 98, 99]
    (tmp_path / "c" / "meta.properties").unlink()
    with pytest.raises(
        OptionError, match=r"^path: neither .* says which voter's it is; put its meta"
    ):
        find_directories(paths)


def test_directories_of_different_clusters_are_refused(tmp_path: Path) -> None:
    small_log(tmp_path / "a")
    LogWriter(tmp_path / "b", node_id=2, cluster_id="d").lead(1)
    with pytest.raises(OptionError, match=r"^path: .* of different clusters, c and d, "):
        find_directories([str(tmp_path / "a"), str(tmp_path / "b")])


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("node-*", "; no pattern is filled in: name each directory, separated by commas"),
        ("node-[12]", "; no pattern is filled in: name each directory, separated by commas"),
        ("a%20b", "; a path is taken as it is written: write the character itself for %.."),
        ("absent", ""),
    ],
)
def test_a_path_that_is_filled_in_elsewhere_has_a_hint(
    tmp_path: Path, path: str, hint: str
) -> None:
    with pytest.raises(OptionError) as caught:
        find_directory(f"{tmp_path}/{path}")
    said = f"path: {tmp_path}/{path} cannot be listed: No such file or directory{hint}"
    assert str(caught.value) == said
    small_log(tmp_path / path)
    assert find_directory(f"{tmp_path}/{path}").segments


def settle(log: LogWriter) -> None:
    """Have the names in a directory be the same for a while."""
    os.utime(log.directory, (1, 1))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened."""
    names: list[str] = []
    opens = OsFileSystem.open

    def noting(fs: OsFileSystem, path: str) -> object:
        names.append(path.rpartition("/")[2])
        return opens(fs, path)

    monkeypatch.setattr(OsFileSystem, "open", noting)
    return names


def test_a_second_look_opens_the_file_that_grows(tmp_path: Path, opened: list[str]) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(10, [topic(1)])
    settle(log)
    found = find_directories([str(log.root)])
    assert len(opened) == 3
    log.write([topic(2)])
    again = find_directories([str(log.root)], found)
    assert opened[3:] == [log.file.name]
    assert again == find_directories([str(log.root)]) != found
    assert find_directories([str(log.directory)], found) == again


def test_a_second_look_finds_what_came_and_went(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    settle(log)
    found = find_directories([str(log.root)])
    first = log.directory / f"{0:020}.log"
    for change in (lambda: log.snapshot(10, [topic(1)]), first.unlink, log.file.unlink):
        change()
        again = find_directories([str(log.root)], found)
        assert again == find_directories([str(log.root)]) != found
        settle(log)
        found = find_directories([str(log.root)])


def test_a_second_look_tells_whose_directory_it_is_by_now(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    settle(log)
    found = find_directories([str(log.root)])
    (log.root / "meta.properties").unlink()
    (again,) = find_directories([str(log.root)], found)
    assert (found[0].node_id, again.node_id) == (1, None)


def test_a_directory_that_has_just_changed_or_has_damage_is_looked_at_as_a_whole(
    tmp_path: Path, opened: list[str]
) -> None:
    log = small_log(tmp_path / "c")
    found = find_directories([str(log.root)])
    assert found[0].listing is None
    find_directories([str(log.root)], found)
    assert len(opened) == 4
    log.snapshot(10, [topic(1)]).write_bytes(b"")
    settle(log)
    found = find_directories([str(log.root)])
    assert found[0].damages
    assert find_directories([str(log.root)], found) == found
    assert len(opened) == 10
