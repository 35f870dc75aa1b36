"""Real processes whose files are removed while they run: on one, on two and on all controllers.

A cleaner (cron, tmpfiles, logrotate) mostly runs on all machines together. What was acknowledged,
into files without a name as well, is there after the next start.
"""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from quorate.client.controller_calls import OutcomeUnknownError, QuorumUnavailableError
from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.storage import layout
from tests.integration.disks import log_start, segments, snapshots
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan
    from tests.integration.quorum import Quorum

SAVED = "Put back from memory and open files: all of it, nothing is lost"


def topic(name: str) -> NewTopic:
    return NewTopic(name, partitions=2, replication_factor=3)


def remove_segments(node: NodePlan) -> None:
    for path in segments(node):
        path.unlink()


def remove_folder(node: NodePlan) -> None:
    remove_tree(node.metadata_dir / layout.LOG_DIR)


def remove_tree(folder: Path) -> None:
    """Remove a folder at one moment, even if the process is about to write there."""
    doomed = folder.with_suffix(".doomed")
    folder.rename(doomed)
    shutil.rmtree(doomed)


async def is_acknowledged(quorum: Quorum, name: str) -> bool:
    """Create a topic, unless the loss is noticed before."""
    try:
        await quorum.create(topic(name))
    except QuorumUnavailableError:
        return False
    return True


async def victims_of(quorum: Quorum, count: int) -> list[int]:
    """So many controllers, the leader first."""
    leader_id = await quorum.leader_id()
    return [leader_id, *(i for i in quorum.nodes if i != leader_id)][:count]


async def until_saved(quorum: Quorum, victims: Sequence[int]) -> None:
    async def is_saved() -> bool:
        outputs = [quorum.nodes[i].output_path.read_text(errors="replace") for i in victims]
        return all(SAVED in output for output in outputs)

    await quorum.eventually("what was lost is put back", is_saved)


async def restart(quorum: Quorum, victims: Sequence[int], *, status: int) -> None:
    for node_id in victims:
        quorum.signal(node_id, signal.SIGTERM)
    for node_id in victims:
        assert await quorum.processes.pop(node_id).wait() == status
    for node_id in victims:
        await quorum.start(node_id)


async def names_everywhere(quorum: Quorum) -> list[str]:
    """The topics that every controller describes, once all logs agree."""
    high_watermark = await quorum.assert_logs_agree()
    described = [await quorum.topics_at(i, high_watermark) for i in quorum.processes]
    assert all(topics == described[0] for topics in described)
    return [topic.name for topic in described[0]]


async def assert_nothing_is_acknowledged(quorum: Quorum) -> None:
    addresses = [node.address for node in quorum.nodes.values()]
    async with ControllerClient(addresses, timeout_ms=1000, transport=chosen()) as client:
        with pytest.raises((OutcomeUnknownError, QuorumUnavailableError)):
            await client.write(CreateTopics((topic("refused"),)))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("remove", [remove_segments, remove_folder])
async def test_what_is_acknowledged_outlives_files_that_are_removed(
    quorum: Quorum, count: int, remove: Callable[[NodePlan], None]
) -> None:
    await quorum.create(topic("a-before"))
    victims = await victims_of(quorum, count)
    names = {"a-before"}
    for node_id in victims:
        remove(quorum.nodes[node_id])
    if await is_acknowledged(quorum, "b-unseen"):
        names.add("b-unseen")
    await until_saved(quorum, victims)
    if count == 1:
        await quorum.create(topic("c-by-the-others"))
        names.add("c-by-the-others")
    else:
        await assert_nothing_is_acknowledged(quorum)
    await restart(quorum, victims, status=1)
    assert names.issubset(await names_everywhere(quorum))
    await quorum.create(topic("d-after"))
    assert "d-after" in await names_everywhere(quorum)


async def test_a_stop_before_anybody_looks_loses_nothing(quorum: Quorum) -> None:
    await quorum.create(topic("before"))
    for node in quorum.nodes.values():
        remove_segments(node)
    names = {"before"}
    if await is_acknowledged(quorum, "unseen"):
        names.add("unseen")
    for node_id in list(quorum.processes):
        quorum.signal(node_id, signal.SIGTERM)
    for node_id in list(quorum.processes):
        # 1 if the check came first, or if no voter was left to lead.
        assert await quorum.processes.pop(node_id).wait() in (0, 1)
    for node_id in quorum.nodes:
        await quorum.start(node_id)
    assert names.issubset(await names_everywhere(quorum))


async def test_logs_behind_snapshots_outlive_the_removal_of_all_folders(
    small_log_quorum: Quorum,
) -> None:
    """A log that does not begin at 0 is worth nothing without a snapshot, and those are gone."""
    quorum = small_log_quorum
    names: list[str] = []

    async def is_cleaned() -> bool:
        batch = [topic(f"t-{len(names) + i:05d}") for i in range(20)]
        await quorum.create(*batch)
        names.extend(new.name for new in batch)
        return all(log_start(node) > 0 for node in quorum.nodes.values())

    await quorum.eventually("all logs begin behind a snapshot", is_cleaned)
    for node in quorum.nodes.values():
        remove_folder(node)
    await until_saved(quorum, list(quorum.nodes))
    assert all(snapshots(node) for node in quorum.nodes.values())
    await restart(quorum, list(quorum.nodes), status=1)
    assert await names_everywhere(quorum) == names


async def test_a_directory_that_is_removed_whole_is_refused_before_anything_is_acknowledged(
    quorum: Quorum,
) -> None:
    await quorum.create(topic("before"))
    for node in quorum.nodes.values():
        remove_tree(node.metadata_dir)

    async def is_told() -> bool:
        outputs = [n.output_path.read_text(errors="replace") for n in quorum.nodes.values()]
        return all("Nothing was put back" in output for output in outputs)

    await quorum.eventually("all say that their directory is gone", is_told)
    await assert_nothing_is_acknowledged(quorum)
    for node in quorum.nodes.values():
        output = node.output_path.read_text(errors="replace")
        assert "metadata.log.dir was removed or moved, or its disk unmounted" in output
        assert not node.metadata_dir.exists()
