"""tests/e2e/cluster_lock.py: what tests of several processes have of the cluster."""

from __future__ import annotations

import fcntl
import threading
from typing import TYPE_CHECKING

from tests.e2e.cluster_lock import ClusterLock

if TYPE_CHECKING:
    from pathlib import Path

JOINS_WITHIN_S = 60.0


def is_free(path: Path, kind: int) -> bool:
    """True if another process would get the lock immediately."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_tests_share_the_cluster_and_keep_others_from_having_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "cluster.lock"
    with ClusterLock(path), ClusterLock(path):
        assert is_free(path, fcntl.LOCK_SH)
        assert not is_free(path, fcntl.LOCK_EX)
    assert is_free(path, fcntl.LOCK_EX)


def test_a_test_that_has_the_cluster_alone_keeps_all_others_waiting(tmp_path: Path) -> None:
    path = tmp_path / "cluster.lock"
    with ClusterLock(path) as lock:
        lock.acquire_alone()
        assert not is_free(path, fcntl.LOCK_SH)
    assert is_free(path, fcntl.LOCK_EX)


def test_two_tests_that_ask_to_be_alone_have_it_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "cluster.lock"
    both_share = threading.Barrier(2)
    counts: list[int] = []
    inside: list[int] = []

    def be_alone(number: int) -> None:
        with ClusterLock(path) as lock:
            both_share.wait(JOINS_WITHIN_S)
            lock.acquire_alone()
            inside.append(number)
            counts.append(len(inside))
            inside.remove(number)

    threads = [threading.Thread(target=be_alone, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(JOINS_WITHIN_S)
    assert counts == [1, 1]
