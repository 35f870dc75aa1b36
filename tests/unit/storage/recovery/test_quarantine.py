"""Damaged files are kept, and not for ever."""

from __future__ import annotations

from quorate.storage.recovery.quarantine import QUARANTINES_KEPT, Quarantine, quarantine
from tests.unit.storage.conftest import LOG_DIR, Replica


def write(replica: Replica, name: str) -> str:
    path = f"{LOG_DIR}/{name}"
    replica.disk.open(path, create=True)
    return path


def copies(replica: Replica) -> list[str]:
    return [name for name in replica.files() if name.endswith(".damaged")]


def test_what_is_set_aside_together_has_one_number() -> None:
    replica = Replica()
    for names in (("a", "b"), ("b", "c")):
        episode = Quarantine(replica.disk, LOG_DIR)
        for name in names:
            episode.move(write(replica, name))
    assert copies(replica) == ["a.damaged", "b.2.damaged", "b.damaged", "c.2.damaged"]


def test_only_the_newest_episodes_are_kept() -> None:
    replica = Replica()
    for number in range(12):
        quarantine(replica.disk, write(replica, f"{number}.log"))
    assert copies(replica) == ["10.log.11.damaged", "11.log.12.damaged", "9.log.10.damaged"]
    assert len(copies(replica)) == QUARANTINES_KEPT


def test_an_episode_is_kept_whole_however_many_files_it_has() -> None:
    replica = Replica()
    episode = Quarantine(replica.disk, LOG_DIR)
    for number in range(20):
        episode.move(write(replica, f"{number}.log"))
    episode.remove_old()
    assert len(copies(replica)) == 20


def test_a_copy_is_durable_under_its_name() -> None:
    replica = Replica()
    path = write(replica, "a")
    replica.disk.sync_dir(LOG_DIR)
    quarantine(replica.disk, path)
    replica.lose_all_unflushed()
    assert copies(replica) == ["a.damaged"]
