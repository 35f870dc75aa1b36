"""Snapshots are taken by size and loaded at the next start."""

from __future__ import annotations

import asyncio
import errno
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.controller.record_runs import batch_items
from quorate.controller.snapshot import SnapshotLoader
from quorate.raft.api import CheckSnapshot
from quorate.records.ids import Offset
from quorate.server.driver.raft_driver import ExitReason
from quorate.server.snapshots.snapshotter import RECHECK_MS, Snapshotter
from quorate.storage.snapshots.writer import SnapshotWriter
from tests.unit.server.conftest import WAIT_S, eventually, hanging_call, newest_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from quorate.controller.record_runs import Item
    from quorate.controller.slices import Slices
    from quorate.records.batch import BatchHeader
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_a_snapshot_is_taken_when_enough_was_committed(open_stack: Open) -> None:
    stack = await open_stack(snapshot_bytes=1)
    await eventually(lambda: stack.snapshotter.newest is not None)
    image = stack.application.controller.image
    stored = stack.driver.store.snapshots.stored()
    assert [info.snapshot_id for info in stored] == [stack.snapshotter.newest]
    assert await stack.snapshotter.load(stored[0].snapshot_id) == image


async def test_a_restart_begins_at_the_snapshot(open_stack: Open) -> None:
    stack = await open_stack(snapshot_bytes=1)
    await eventually(lambda: stack.snapshotter.newest is not None)
    newest, features = stack.snapshotter.newest, stack.application.controller.image.features
    await stack.close()
    again = await open_stack()
    assert again.snapshotter.newest == newest
    assert again.application.controller.image.features == features


async def test_nothing_is_taken_before_it_is_due(open_stack: Open) -> None:
    stack = await open_stack()
    stack.application.tick()
    await stack.snapshotter.abandon()
    assert stack.driver.store.snapshots.stored() == []


@pytest.mark.parametrize(("drawn", "due_bytes"), [(0.0, 1000), (0.5, 850)])
async def test_members_draw_how_far_below_the_bound_they_begin(
    open_stack: Open, drawn: float, due_bytes: int
) -> None:
    """All of them have replayed the same bytes, and would stop for their snapshots together."""
    stack = await open_stack()
    settings = replace(stack.settings, snapshot_bytes=1000)
    snapshotter = Snapshotter(stack.driver, settings, draw=lambda: drawn)
    snapshotter.on_committed(due_bytes - 1)
    snapshotter.maybe_snapshot(stack.application.controller.image)
    await snapshotter.abandon()
    assert snapshotter.newest is None
    snapshotter.on_committed(1)
    snapshotter.maybe_snapshot(stack.application.controller.image)
    await eventually(lambda: snapshotter.newest is not None)


async def test_an_image_that_the_own_disk_has_not_is_kept_until_it_has(open_stack: Open) -> None:
    """A majority is ahead of this disk at each look, as under steady writes."""
    stack = await open_stack()
    await stack.register()
    snapshotter, log = stack.snapshotter, stack.driver.store.log
    image = stack.application.controller.image
    snapshotter.on_committed(1 << 40)
    at_end, log.state.flushed = log.state.flushed, Offset(image.position.end_offset - 1)
    snapshotter.maybe_snapshot(image)
    await stack.create("later")
    log.state.flushed = image.position.end_offset
    later = stack.application.controller.image
    assert later.position.end_offset > image.position.end_offset
    snapshotter.maybe_snapshot(later)
    await eventually(lambda: snapshotter.newest is not None)
    assert snapshotter.newest is not None
    assert snapshotter.newest.offset == image.position.end_offset
    log.state.flushed = max(at_end, later.position.end_offset)


def rot(name: str) -> Path:
    path = Path(name)
    path.chmod(0o600)
    path.write_bytes(b"\0" * 70 + path.read_bytes()[70:])
    return path


def has_sound_snapshot(stack: Stack) -> bool:
    """True if the newest one is sound; a successor may have its id."""
    newest = stack.driver.store.log.state.newest_snapshot
    assert newest is not None
    *_, found = stack.driver.store.check_snapshot(CheckSnapshot(newest))
    return found is not None and found.damage is None


async def test_a_snapshot_found_damaged_has_a_successor_at_once(open_stack: Open) -> None:
    stack = await open_stack(snapshot_bytes=1)
    newest = await newest_of(stack)
    rot(stack.driver.store.snapshots.path(newest))
    stack.application.check_snapshot(CheckSnapshot(newest))
    await eventually(lambda: has_sound_snapshot(stack))
    assert not stack.ended.done()


async def test_the_newest_snapshot_is_read_again_where_nobody_fetches_it(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack(snapshot_bytes=1)
    newest = await newest_of(stack)
    rot(stack.driver.store.snapshots.path(newest))
    stack.application.tick()
    assert not has_sound_snapshot(stack)
    under_way = stack.driver.access.calls.oldest()
    assert under_way is None or under_way.what != "the check of a snapshot"
    later_ms = stack.driver.host.monotonic_ms() + RECHECK_MS
    with monkeypatch.context() as patched:
        patched.setattr(stack.driver.host, "monotonic_ms", lambda: later_ms)
        stack.application.tick()
    await eventually(lambda: has_sound_snapshot(stack))
    assert not stack.ended.done()


async def test_a_rotten_header_ends_nobody(open_stack: Open) -> None:
    stack = await open_stack(snapshot_bytes=1)
    oldest = await newest_of(stack)
    path = rot(stack.driver.store.snapshots.path(oldest))
    stack.driver.store._config = replace(
        stack.driver.store._config, retention_ms=1, retention_bytes=-1
    )
    await stack.register()
    await eventually(lambda: stack.snapshotter.newest != oldest)
    await eventually(lambda: not path.exists())
    assert path.with_name(path.name + ".damaged").exists()
    assert not stack.ended.done()


async def test_a_fault_in_cleaning_is_logged_and_the_next_snapshot_cleans(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stack = await open_stack(snapshot_bytes=1)
    oldest = await newest_of(stack)
    store = stack.driver.store
    store._config = replace(store._config, retention_ms=1, retention_bytes=-1)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as patched:
        patched.setattr(store, "clean", fail)
        await stack.register()
        await eventually(lambda: "the log is not cleaned" in caplog.text)
    kept = Path(store.snapshots.path(oldest))
    await eventually(kept.exists)
    await stack.create("a")
    await eventually(lambda: not kept.exists())
    assert not stack.ended.done()


async def test_a_fault_half_way_through_cleaning_ends_the_process(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what the storage has dropped by then the core knows nothing."""
    stack = await open_stack(snapshot_bytes=1)
    await newest_of(stack)
    store = stack.driver.store
    store._config = replace(store._config, retention_ms=1, retention_bytes=-1)

    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(store.snapshots, "delete", fail)
    # A process that ends may answer neither of its two writes.
    registering = asyncio.create_task(stack.register())
    assert await asyncio.wait_for(stack.ended, WAIT_S) is ExitReason.CRASHED
    registering.cancel()
    await asyncio.gather(registering, return_exceptions=True)


async def test_a_load_that_hangs_holds_up_nothing_but_itself(
    open_stack: Open, gate: threading.Event
) -> None:
    gate.set()
    first = await open_stack(snapshot_bytes=1)
    await newest_of(first)
    await first.close()
    again = await open_stack(is_active=False)
    await eventually(lambda: again.application.is_loaded)
    gate.clear()
    assert again.snapshotter.newest is not None
    again.application._standby.load(again.snapshotter.newest)
    await hanging_call(again, "a read of a snapshot")
    assert not again.application.is_loaded
    gate.set()
    await eventually(lambda: again.application.is_loaded)


async def test_a_snapshot_whose_writing_hangs_holds_up_nothing(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    opens, begun = threading.Event(), threading.Event()
    append = SnapshotWriter.append

    def waiting(writer: SnapshotWriter, values: Iterable[bytes]) -> None:
        begun.set()
        opens.wait()
        append(writer, values)

    monkeypatch.setattr(SnapshotWriter, "append", waiting)
    stack.snapshotter.on_committed(1 << 40)
    await stack.register()
    await eventually(begun.is_set)
    await stack.create("meanwhile")
    given_up = asyncio.ensure_future(stack.snapshotter.abandon())
    await stack.create("still")
    opens.set()
    await given_up
    assert not list(stack.directory.rglob("*.part"))
    assert stack.snapshotter.newest is None


@pytest.mark.parametrize(
    ("number", "exit_reason"),
    [(errno.EMFILE, ExitReason.SHORT), (errno.EIO, ExitReason.DISK_FAILED)],
)
async def test_a_check_that_is_short_of_descriptors_tells_nothing_of_the_disk(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch, number: int, exit_reason: ExitReason
) -> None:
    stack = await open_stack(snapshot_bytes=1)
    newest = await newest_of(stack)

    def fail(_path: str) -> None:
        raise OSError(number, "opening the snapshot")

    monkeypatch.setattr(stack.driver.store._fs, "open", fail)
    stack.application.check_snapshot(CheckSnapshot(newest))
    assert await asyncio.wait_for(stack.ended, 60) is exit_reason
    assert stack.driver.store._unsound == set()


async def test_a_large_batch_is_not_read_at_once(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of others' snapshots one may hold a hundred thousand records, 0.3 s of work."""
    stack = await open_stack()
    await stack.register()
    await stack.create("a", "b", "c")
    stack.snapshotter.on_committed(1 << 40)
    stack.snapshotter.maybe_snapshot(stack.application.controller.image)
    newest = await newest_of(stack)
    done: list[str] = []

    def noting(buffer: bytes, position: int, header: BatchHeader) -> Iterator[Item]:
        for item in batch_items(buffer, position, header):
            done.append("read")
            yield item

    def add(loader: SnapshotLoader, items: Iterable[Item]) -> Slices[None]:
        for _ in added(loader, items):
            done.append("added")
            yield

    added = SnapshotLoader.add_in_slices
    monkeypatch.setattr(SnapshotLoader, "add_in_slices", add)
    monkeypatch.setattr("quorate.server.snapshots.snapshotter.batch_items", noting)
    image = await stack.snapshotter.load(newest)
    assert len(image.topics.by_id) == 3
    # At least the topics and their partitions.
    assert len(done) > 2 * 6
    assert done == ["read", "added"] * (len(done) // 2)
