"""The order of repairs: a crash on the way of any recovery leaves a directory that recovers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from quorate.sim.engine.disk import Survival
from tests.unit.storage.conftest import DIRECTORY, LOG_DIR, Crashed, Replica, at

if TYPE_CHECKING:
    from collections.abc import Callable

END = at(18, 4)


def flip_first(replica: Replica) -> None:
    replica.flip(f"{LOG_DIR}/{replica.logs()[0]}", 100)


def flip_middle(replica: Replica) -> None:
    replica.flip(f"{LOG_DIR}/{replica.logs()[1]}", 100)


def flip_below_snapshot(replica: Replica) -> None:
    replica.snapshot(at(12, 2), b"state")
    flip_middle(replica)


def flip_snapshot(replica: Replica) -> None:
    replica.snapshot(at(12, 2), b"state")
    replica.flip(replica.store.snapshots.path(at(12, 2)), 100)
    flip_middle(replica)


@pytest.mark.parametrize("survival", [None, *Survival])
@pytest.mark.parametrize("damage", [flip_first, flip_middle, flip_below_snapshot, flip_snapshot])
def test_healing_is_remembered_whenever_recovery_dies(
    damage: Callable[[Replica], None], survival: Survival | None
) -> None:
    damaged = Replica()
    damaged.write_history()
    damage(damaged)
    damaged.disk.settle()
    whole = copy.deepcopy(damaged)
    end = whole.open().state.end
    for calls in range(500):
        replica = copy.deepcopy(damaged)
        replica.crash_after(calls)
        try:
            replica.open()
        except Crashed:
            replica.revive()
        else:
            break
        if survival is not None:
            replica.lose_power(survival, seed=calls)
        recovered = replica.open()
        assert recovered.state.remembered_end == END
        assert recovered.state.end <= end
        # The unflushed writes of the dead process must be durable before this one continues.
        replica.lose_power(Survival.NOTHING)
        assert replica.open().state == recovered.state
    assert calls > 30


def test_damaged_files_are_kept_under_names_of_their_own() -> None:
    replica = Replica()
    replica.write_history()
    for _ in range(3):
        flip_first(replica)
        replica.open()
        replica.begin_epoch(5)
        replica.flush()
    kept = [name for name in replica.files() if name.startswith("00000000000000000000.log.")]
    assert kept == [
        "00000000000000000000.log.2.damaged",
        "00000000000000000000.log.3.damaged",
        "00000000000000000000.log.damaged",
    ]


def test_what_is_remembered_is_durable_before_the_log_is_touched() -> None:
    replica = Replica()
    replica.write_history()
    flip_middle(replica)
    changes: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation in ("rename", "write_at", "truncate", "remove", "sync_dir"):
            changes.append(f"{operation} {path.removeprefix(DIRECTORY)}")

    replica.disk.hook = note
    replica.open()
    remembered = changes.index("rename /healing.tmp")
    assert changes[remembered + 1] == "sync_dir "
    touched = [i for i, change in enumerate(changes) if ".log" in change or "flushed" in change]
    assert remembered + 1 < min(touched)
