"""Files of one directory that are of different ages: safe, or refused with the way out."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING

import pytest

from quorate.raft.messages import ElectionState
from quorate.records.batch import iter_batches
from quorate.records.ids import Epoch
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem, write_atomically
from quorate.storage.log_store import LogStore
from tests.unit.storage.conftest import ALONE, DIRECTORY, LOG_DIR, THREE, Crashed, Replica, at

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.records.voters import VoterSet

END = at(18, 4)
QUORUM_STATE = f"{LOG_DIR}/quorum-state"
FLUSHED_END = f"{DIRECTORY}/flushed-end"
EPOCHS = f"{LOG_DIR}/leader-epoch-checkpoint"


def with_history(voters: VoterSet = THREE) -> Replica:
    replica = Replica(voters)
    replica.write_history()
    replica.disk.settle()
    return replica


def refusal(replica: Replica) -> str:
    with pytest.raises(StorageError) as error:
        replica.open()
    return str(error.value)


def quorum_state_of(epoch: int) -> bytes:
    return (
        b'{"leaderId":-1,"leaderEpoch":%d,"votedId":-1,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}' % epoch
    )


@pytest.mark.parametrize("voters", [THREE, ALONE])
@pytest.mark.parametrize("has_history", [True, False])
@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_a_stock_log_wins_over_an_older_quorum_state(
    voters: VoterSet, epoch: int, *, has_history: bool
) -> None:
    replica = with_history(voters)
    content = replica.content()
    replica.disk.remove(FLUSHED_END)
    if not has_history:
        replica.disk.remove(EPOCHS)
    write_atomically(replica.disk, QUORUM_STATE, quorum_state_of(epoch))
    recovered = replica.open()
    assert (recovered.state.end, replica.content()) == (END, content)
    assert recovered.state.election == ElectionState(Epoch(4))
    assert not recovered.is_damaged
    assert f"{QUORUM_STATE}: epoch {epoch}, and the log ends at 18@4: the log wins" in " ".join(
        recovered.findings
    )
    # It is durable before flushed-end is there, with which an older one is refused.
    assert replica.open().state.election == ElectionState(Epoch(4))


def test_every_crash_while_the_log_wins_can_be_recovered_from() -> None:
    replica = with_history()
    replica.disk.remove(FLUSHED_END)
    write_atomically(replica.disk, QUORUM_STATE, quorum_state_of(1))
    replica.disk.settle()
    calls = 0
    while True:
        dying = copy.copy(replica)
        dying.disk = copy.deepcopy(replica.disk)
        dying.crash_after(calls)
        try:
            dying.open()
        except Crashed:
            dying.revive()
            dying.lose_all_unflushed()
            state = dying.open().state
            assert (state.end, state.election) == (END, ElectionState(Epoch(4))), calls
            calls += 1
        else:
            break
    assert calls > 10


@pytest.mark.parametrize("has_history", [True, False])
def test_an_older_quorum_state_makes_a_damaged_stock_log_forget_nothing(
    *, has_history: bool
) -> None:
    replica = with_history()
    replica.disk.remove(FLUSHED_END)
    if not has_history:
        replica.disk.remove(EPOCHS)
    write_atomically(replica.disk, QUORUM_STATE, quorum_state_of(1))
    replica.flip(f"{LOG_DIR}/{replica.logs()[0]}", 100)
    recovered = replica.open()
    assert recovered.is_damaged
    assert recovered.state.remembered_end == END


def test_an_epoch_that_nothing_else_tells_is_remembered_and_not_claimed() -> None:
    """A flipped epoch of the last LeaderChange looks the same: it must not win an election."""
    replica = with_history()
    replica.begin_epoch(7)
    replica.flush()
    replica.disk.remove(FLUSHED_END)
    replica.disk.remove(EPOCHS)
    write_atomically(replica.disk, QUORUM_STATE, quorum_state_of(4))
    state = replica.open().state
    assert (state.end, state.remembered_end) == (END, at(19, 7))


def test_a_stock_log_of_an_epoch_that_no_election_came_to_does_not_win() -> None:
    """Its epoch would be written into quorum-state, which could not be read again."""
    replica = with_history()
    replica.begin_epoch(2**31 - 1)
    replica.append(b"tells it a second time")
    replica.flush()
    replica.disk.remove(FLUSHED_END)
    write_atomically(replica.disk, QUORUM_STATE, quorum_state_of(4))
    before = replica.files()
    assert "no quorum comes near by elections" in refusal(replica)
    assert replica.files() == before


def test_no_epoch_that_cannot_be_is_remembered() -> None:
    replica = with_history()
    replica.begin_epoch(7)
    replica.flush()
    replica.disk.remove(FLUSHED_END)
    replica.disk.remove(EPOCHS)
    write_atomically(replica.disk, QUORUM_STATE, quorum_state_of(4))
    path = f"{LOG_DIR}/{replica.logs()[-1]}"
    last = max(position for position, _ in iter_batches(replica.disk.read(path)))
    replica.flip(path, last + 12, 0x40)
    state = replica.open().state
    assert (state.end, state.remembered_end) == (END, at(19, 4))


@pytest.mark.parametrize("is_flushed", [True, False])
def test_what_is_in_our_use_refuses_a_quorum_state_from_before_its_log(*, is_flushed: bool) -> None:
    replica = with_history()
    older = replica.disk.read(FLUSHED_END)
    replica.begin_epoch(7)
    replica.flush()
    if not is_flushed:
        # After a power cut an older flushed end may have come back.
        replica.disk.open(FLUSHED_END).write_at(0, older)
    write_atomically(replica.disk, QUORUM_STATE, quorum_state_of(4))
    assert "quorum-state: epoch 4, but this log" in refusal(replica)


SMALL_FILES = [
    QUORUM_STATE,
    EPOCHS,
    FLUSHED_END,
    f"{DIRECTORY}/meta.properties",
    f"{DIRECTORY}/healing",
    f"{DIRECTORY}/rescue",
    f"{LOG_DIR}/partition.metadata",
]


@pytest.mark.parametrize("kind", ["pipe", "directory", "too large"])
@pytest.mark.parametrize("name", [path.removeprefix(DIRECTORY) for path in SMALL_FILES])
def test_what_is_no_small_file_is_refused_by_name(name: str, kind: str, tmp_path: Path) -> None:
    """On a real disk, where opening a pipe would wait for a writer for ever."""
    replica = with_history()
    for directory in (DIRECTORY, LOG_DIR):
        target = tmp_path / directory.removeprefix(DIRECTORY).strip("/")
        target.mkdir(exist_ok=True)
        for file in replica.disk.files(directory):
            (target / file).write_bytes(replica.disk.read(f"{directory}/{file}"))
    path = tmp_path / name.strip("/")
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    if (name, kind) == ("/flushed-end", "too large"):
        # Only its two slots are read; where they say nothing, nothing was said.
        LogStore.open(OsFileSystem(), str(tmp_path), replica.config)[0].close()
        return
    with pytest.raises(StorageError) as error:
        LogStore.open(OsFileSystem(), str(tmp_path), replica.config)
    assert str(error.value).startswith(f"{path}: it is ")
    assert "restore what belongs there" in str(error.value)


# Each file of the directory as it was after so many steps of a life, the others from its end.
AGING = [
    QUORUM_STATE,
    EPOCHS,
    FLUSHED_END,
    f"{DIRECTORY}/healing",
    f"{DIRECTORY}/bootstrap.checkpoint",
    f"{LOG_DIR}/partition.metadata",
    *(f"{LOG_DIR}/{offset:020d}-{epoch:010d}.checkpoint" for offset, epoch in ((12, 2), (18, 4))),
]


def ages() -> list[dict[str, bytes]]:
    """The files' contents at four moments: after the history, two snapshots, damage, healing."""
    replica = with_history()
    moments = []

    def keep() -> None:
        files = [path for path in AGING if replica.disk.exists(path)]
        moments.append({path: replica.disk.read(path) for path in files})

    keep()
    replica.snapshot(at(12, 2), b"older")
    keep()
    replica.snapshot(END)
    replica.begin_epoch(7)
    replica.append(b"seven")
    replica.flush()
    keep()
    return [*moments, {path: replica.disk.read(path) for path in everything(replica)}]


def everything(replica: Replica) -> list[str]:
    return [f"{d}/{name}" for d in (DIRECTORY, LOG_DIR) for name in replica.disk.files(d)]


@pytest.mark.parametrize("moment", range(3))
@pytest.mark.parametrize("path", AGING)
def test_any_single_file_may_be_older_than_the_others(path: str, moment: int) -> None:
    *older, newest = ages()
    replica = Replica()
    for name, data in newest.items():
        write_atomically(replica.disk, name, data)
    if path in older[moment]:
        write_atomically(replica.disk, path, older[moment][path])
    elif replica.disk.exists(path):
        replica.disk.remove(path)
    said, state = "", None
    try:
        state = replica.open().state
    except StorageError as error:
        said = str(error)
    if state is None:
        assert path in (QUORUM_STATE, EPOCHS)
        assert path in said
        assert any(word in said for word in ("Restore", "remove", "Remove"))
        return
    # Nothing that was flushed is forgotten, and no vote.
    assert max(state.end, state.remembered_end or state.end) == at(20, 7)
    assert state.election is not None
    assert state.election.voted is not None
    assert state.election.epoch == 7


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_an_older_healing_file_forgets_nothing(moment: str) -> None:
    """It may say that this voter is whole, or that it heals, and be wrong in both."""
    replica = with_history()
    path = f"{DIRECTORY}/healing"
    damaged = copy.deepcopy(replica)
    damaged.flip(f"{LOG_DIR}/{replica.logs()[0]}", 100)
    assert damaged.open().state.remembered_end == END
    if moment == "before":
        damaged.disk.remove(path)
        assert "healing is missing or an old one" in refusal(damaged)
    elif moment == "during":
        assert damaged.open().state.remembered_end == END
        damaged.store.end_healing()
        assert damaged.open().state.remembered_end is None
    else:
        # Whole, and an old file says that it heals: that end is reached already.
        write_atomically(replica.disk, path, damaged.disk.read(path))
        assert replica.open().state.remembered_end is None
        assert not replica.disk.exists(path)
