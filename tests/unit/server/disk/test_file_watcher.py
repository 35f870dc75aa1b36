"""Files that another program removes: the core stops, and what they held is saved."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.server.disk.file_watcher import FileWatch
from quorate.server.driver.raft_driver import ExitReason
from quorate.storage.log.files_in_use import FilesInUse
from quorate.storage.snapshots.writer import SnapshotWriter
from quorate.storage.storage_config import StorageConfig
from tests.unit.server.conftest import CALLER, NODE, WAIT_S, newest_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from quorate.raft.messages import SnapshotInfo
    from quorate.storage.log.files_in_use import LostFile
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


class Watched:
    """One controller and the watch over its files, connected as a node connects them."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.watch = FileWatch(stack.driver, stack.application)
        self.folder = stack.directory / "__cluster_metadata-0"
        stack.ended.add_done_callback(lambda _: self.watch.ended())

    async def look(self) -> None:
        self.watch.look()
        looking = self.watch._looking
        assert looking is not None
        await asyncio.wait([looking])
        await asyncio.sleep(0)

    async def fails(self) -> None:
        """Look, and wait until all is saved."""
        await self.look()
        assert await asyncio.wait_for(self.stack.ended, WAIT_S) is ExitReason.DISK_FAILED
        await asyncio.sleep(0)
        await asyncio.wait_for(self.watch.close(), WAIT_S)

    def remove(self, pattern: str) -> None:
        for path in sorted(self.folder.glob(pattern)):
            path.unlink()

    async def restart(self, open_stack: Open) -> Stack:
        await self.stack.close()
        return await open_stack()


async def cleaning_stack(open_stack: Open) -> Stack:
    """A leader that takes snapshots all the time and keeps little behind them."""
    stack = await open_stack(snapshot_bytes=1)
    config = StorageConfig(node_id=NODE, segment_bytes=4096, retention_bytes=4096)
    stack.driver.store._config = config
    await stack.register()
    return stack


@pytest.fixture
async def watched(open_stack: Open) -> Watched:
    """A leader with topics in several segments."""
    stack = await open_stack()
    await stack.register()
    for number in range(8):
        await stack.create(*(f"topic-{number}-{n}" for n in range(10)))
    watched = Watched(stack)
    assert len(list(watched.folder.glob("*.log"))) > 1
    return watched


async def test_files_in_their_places_change_nothing(watched: Watched) -> None:
    await watched.look()
    assert not watched.stack.driver.has_ended
    await watched.stack.create("one-more")


@pytest.mark.parametrize("pattern", ["*.log", "quorum-state", "0*0.log", "*"])
async def test_what_is_removed_ends_the_core_and_is_there_at_the_next_start(
    watched: Watched, open_stack: Open, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    watched.remove(pattern)
    await watched.stack.create("into-the-void")
    count = await watched.stack.topic_count()
    with caplog.at_level(logging.ERROR):
        await watched.fails()
    (line,) = [message for message in caplog.messages if "Put back" in message]
    assert "is gone" in line
    assert "and not by this process. Put back from memory and open files: all of it" in line
    assert "of what is committed was written from memory" in line
    assert line.endswith("such as a cleaner, then start this controller again")
    again = await watched.restart(open_stack)
    assert await again.topic_count() == count == 81


async def test_a_removed_folder_with_its_snapshots_is_there_at_the_next_start(
    open_stack: Open,
) -> None:
    """The log does not begin at 0: only a snapshot of the image makes its rest worth anything."""
    stack = await cleaning_stack(open_stack)
    number = 0
    while stack.driver.store.log.log_start == 0:
        await stack.create(*(f"topic-{number}-{n}" for n in range(20)))
        number += 1
    watched, count = Watched(stack), await stack.topic_count()
    # At one moment: a snapshot may be on its way.
    doomed = watched.folder.rename(watched.folder.with_suffix(".doomed"))
    shutil.rmtree(doomed)
    await watched.fails()
    again = await watched.restart(open_stack)
    assert await again.topic_count() == count > 0


async def test_a_call_that_misses_a_name_before_the_look_saves_as_well(
    watched: Watched, open_stack: Open
) -> None:
    count = await watched.stack.topic_count()
    shutil.rmtree(watched.folder)
    watched.stack.driver.fail(FileNotFoundError(errno.ENOENT, "no such file", "quorum-state.tmp"))
    await asyncio.sleep(0)
    await asyncio.wait_for(watched.watch.close(), WAIT_S)
    assert await (await watched.restart(open_stack)).topic_count() == count


async def test_a_snapshot_under_way_when_the_folder_goes_hides_nothing(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack(snapshot_bytes=1)
    await stack.register()
    await newest_of(stack)
    watched, folder = Watched(stack), stack.directory / "__cluster_metadata-0"
    freeze = SnapshotWriter.freeze

    def lose_the_folder_first(writer: SnapshotWriter) -> SnapshotInfo:
        shutil.rmtree(folder.rename(folder.with_suffix(".doomed")))
        monkeypatch.undo()
        return freeze(writer)

    monkeypatch.setattr(SnapshotWriter, "freeze", lose_the_folder_first)
    stack.application.write(CreateTopics((NewTopic("last"),)), CALLER).cancel()
    assert await asyncio.wait_for(stack.ended, WAIT_S) is ExitReason.DISK_FAILED
    await asyncio.sleep(0)
    await asyncio.wait_for(watched.watch.close(), WAIT_S)
    assert stack.driver.store.files.lost() == ()
    assert await (await watched.restart(open_stack)).topic_count() == 1


async def test_a_stop_soon_after_the_removal_saves_as_well(
    watched: Watched, open_stack: Open
) -> None:
    count = await watched.stack.topic_count()
    watched.remove("*.log")
    watched.stack.driver._end(ExitReason.STOPPED, "handed over")
    await asyncio.wait_for(watched.watch.close(), WAIT_S)
    assert await (await watched.restart(open_stack)).topic_count() == count


async def test_a_stop_of_a_healthy_controller_writes_nothing(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    before = sorted(os.listdir(watched.folder))
    watched.stack.driver._end(ExitReason.STOPPED, "handed over")
    with caplog.at_level(logging.ERROR):
        await asyncio.wait_for(watched.watch.close(), WAIT_S)
    assert (sorted(os.listdir(watched.folder)), caplog.messages) == (before, [])


async def test_nothing_is_written_after_another_failure_of_the_disk(watched: Watched) -> None:
    watched.remove("*.log")
    watched.stack.driver.fail(OSError(errno.EIO, "bad sector"))
    await asyncio.sleep(0)
    await asyncio.wait_for(watched.watch.close(), WAIT_S)
    assert list(watched.folder.glob("*.log")) == []


async def test_a_directory_that_is_gone_is_told_with_the_ways_out(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(watched.stack.directory)
    with caplog.at_level(logging.ERROR):
        await watched.fails()
    (line,) = [message for message in caplog.messages if "Nothing was put back" in message]
    assert "removed or moved, or its disk unmounted" in line
    assert f"/proc/{os.getpid()}/fd" in line
    assert "quorate storage recover" in line
    assert not watched.stack.directory.exists()


async def test_a_snapshot_holds_what_cannot_be_put_back(
    watched: Watched,
    open_stack: Open,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    count = await watched.stack.topic_count()

    def refuse(*_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("quorate.storage.log.files_in_use.copy_durably", refuse)
    watched.remove("*.log")
    with caplog.at_level(logging.ERROR):
        await watched.fails()
    assert "Stale file handle; snapshot" in caplog.text.replace("[Errno 116] ", "")
    monkeypatch.undo()
    monkeypatch.setattr("quorate.server.metadata.decision_executor.INLINE_BUDGET_S", WAIT_S)
    assert await (await watched.restart(open_stack)).topic_count() == count


async def test_many_lost_files_are_named_in_part(watched: Watched) -> None:
    for _ in range(8):
        await watched.stack.create(*(f"{_}-more-{n}" for n in range(20)))
    count = len(list(watched.folder.glob("*.log")))
    watched.remove("*.log")
    lost = watched.stack.driver.store.files.lost()
    assert len(lost) == count > 5
    await watched.fails()
    assert watched.stack.driver.store.files.lost() == ()


@pytest.fixture
def hanging_look(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Looks do not return before it is set."""
    answers = threading.Event()
    lost = FilesInUse.lost

    def wait(files: FilesInUse) -> tuple[LostFile, ...]:
        answers.wait()
        return lost(files)

    monkeypatch.setattr(FilesInUse, "lost", wait)
    yield answers
    answers.set()


async def test_a_look_that_hangs_is_not_repeated_and_holds_up_no_write(
    watched: Watched, hanging_look: threading.Event
) -> None:
    watched.watch.look()
    looking = watched.watch._looking
    watched.watch.look()
    assert watched.watch._looking is looking
    await watched.stack.create("meanwhile")
    hanging_look.set()
    assert looking is not None
    await asyncio.wait_for(looking, WAIT_S)
    await asyncio.sleep(0)
    watched.watch.look()
    assert watched.watch._looking is not None


async def test_looks_beside_saves_rolls_and_cleaning_find_no_loss(open_stack: Open) -> None:
    """Each step that renames or removes a file of its own comes before a look or after it."""
    stack = await cleaning_stack(open_stack)
    store, access = stack.driver.store, stack.driver.access
    watch = FileWatch(stack.driver, stack.application)
    looks: list[asyncio.Future[tuple[LostFile, ...]]] = []
    number = 0
    while store.log.log_start == 0 or number < 20:
        looks += [access.disk.run("a look", store.files.lost) for _ in range(5)]
        watch.look()
        await stack.create(*(f"topic-{number}-{n}" for n in range(20)))
        number += 1
    assert {lost for look in looks for lost in await look} == set()
    assert not stack.driver.has_ended


async def test_an_error_of_the_look_itself_ends_the_core(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.ESTALE, "Stale file handle")
    monkeypatch.setattr(FilesInUse, "lost", partial(_raise, error))
    await watched.look()
    assert await asyncio.wait_for(watched.stack.ended, WAIT_S) is ExitReason.DISK_FAILED


def _raise(error: OSError) -> tuple[LostFile, ...]:
    raise error
