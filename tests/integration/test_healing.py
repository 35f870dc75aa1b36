"""Real processes with damaged disks: a follower heals by fetching again, a single voter refuses.

Until it is whole again the follower neither campaigns nor votes for a log behind what it once had
(rule `damaged_voter_heals`). Every byte is damaged in the simulator; here it is every kind of
place.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from quorate.cli.main import main
from quorate.controller.topics.messages import NewTopic
from quorate.records.batch import HEADER_BYTES
from tests.integration.disks import (
    batch_positions,
    flip,
    is_healing,
    log_end,
    log_start,
    newest_snapshot,
    segments,
)
from tests.integration.quorum import DEADLINE_S, Quorum

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from quorate.cli.local_quorum import NodePlan

# The byte of each header field of a record batch that is flipped: its last, the one that counts.
FIELDS = {
    "baseOffset": 7,
    "batchLength": 11,
    "partitionLeaderEpoch": 15,
    "magic": 16,
    "crc": 20,
    "attributes": 22,
    "lastOffsetDelta": 26,
    "baseTimestamp": 34,
    "maxTimestamp": 42,
    "producerId": 50,
    "producerEpoch": 52,
    "baseSequence": 56,
    "recordsCount": 60,
}
IN_RECORDS = HEADER_BYTES + 2


def topic(name: str) -> NewTopic:
    return NewTopic(name, partitions=2, replication_factor=3)


async def heals(quorum: Quorum, follower: int, damage: Callable[[NodePlan], None]) -> None:
    """Damage the follower while it is down; it comes back whole, in the epoch that there was."""
    before = await quorum.leader()
    end = log_end(quorum.nodes[follower])
    await quorum.kill(follower)
    damage(quorum.nodes[follower])
    await quorum.start(follower)

    async def is_whole() -> bool:
        node = quorum.nodes[follower]
        return not is_healing(node) and log_end(node) >= end

    await quorum.assert_logs_agree()
    await quorum.eventually("the follower is whole", is_whole)
    assert (await quorum.leader()).leader == before.leader


async def a_follower(quorum: Quorum) -> int:
    leader_id = await quorum.leader_id()
    return next(i for i in quorum.nodes if i != leader_id)


async def test_a_follower_heals_from_each_header_field_and_batch(quorum: Quorum) -> None:
    for number in range(6):
        await quorum.create(topic(f"t-{number}"))
    await quorum.assert_logs_agree()
    follower = await a_follower(quorum)
    (segment,) = segments(quorum.nodes[follower])
    positions = batch_positions(segment)
    middle = positions[len(positions) // 2]
    places = {name: middle + at for name, at in FIELDS.items()}
    places["records of the first batch"] = positions[0] + IN_RECORDS
    places["records of a middle batch"] = middle + IN_RECORDS
    places["records of the last batch"] = positions[-1] + IN_RECORDS
    for place, position in places.items():
        was = segment.read_bytes()[: positions[-1]]
        try:
            await heals(quorum, follower, lambda _, at=position: flip(segment, at))  # type: ignore[misc]
            assert segment.read_bytes()[: positions[-1]] == was
        except AssertionError as error:
            error.add_note(f"damaged: {place}")
            raise


async def test_a_follower_heals_each_segment_and_its_snapshot(small_log_quorum: Quorum) -> None:
    quorum = small_log_quorum
    names: list[str] = []
    follower = await a_follower(quorum)

    async def has_segments_and_a_snapshot() -> bool:
        batch = [topic(f"t-{len(names) + i:05d}") for i in range(20)]
        await quorum.create(*batch)
        names.extend(new.name for new in batch)
        node = quorum.nodes[follower]
        return log_start(node) > 0 and len(segments(node)) > 1

    await quorum.eventually("segments above a snapshot", has_segments_and_a_snapshot)
    await quorum.assert_logs_agree()
    count = len(segments(quorum.nodes[follower]))
    for index in range(count):

        def damage_segment(node: NodePlan, index: int = index) -> None:
            # The log has moved on since they were counted: segments are cleaned behind snapshots,
            # and one that begins at a fetched snapshot is empty at first.
            present = [segment for segment in segments(node) if batch_positions(segment)]
            segment = present[min(index, len(present) - 1)]
            flip(segment, batch_positions(segment)[0] + IN_RECORDS)

        # A follower that fetched a snapshot has nothing above it until the next write.
        names.append(f"u-{index:05d}")
        await quorum.create(topic(names[-1]))
        await quorum.assert_logs_agree()
        await heals(quorum, follower, damage_segment)
    await heals(quorum, follower, lambda node: flip(newest_snapshot(node), IN_RECORDS))
    await heals(quorum, follower, lambda node: newest_snapshot(node).unlink())
    high_watermark = await quorum.assert_logs_agree()
    described = [await quorum.topics_at(i, high_watermark) for i in quorum.nodes]
    assert all(topics == described[0] for topics in described)
    assert [described_topic.name for described_topic in described[0]] == names


async def test_a_healing_follower_elects_nobody_behind_what_it_had(quorum: Quorum) -> None:
    await quorum.create(topic("before"))
    await quorum.assert_logs_agree()
    leader = await quorum.leader()
    leader_id = await quorum.leader_id()
    behind, damaged = (i for i in quorum.nodes if i != leader_id)
    await quorum.kill(behind)
    await quorum.create(topic("acknowledged-by-two"))
    await quorum.assert_logs_agree()
    await quorum.kill(leader_id, damaged)
    (segment,) = segments(quorum.nodes[damaged])
    flip(segment, batch_positions(segment)[1] + IN_RECORDS)
    await quorum.start(damaged)
    await quorum.start(behind)

    async def was_asked_and_refused() -> bool:
        answer = await quorum.client.try_describe_at(quorum.nodes[damaged].address, 0.5)
        if isinstance(answer, str):
            return False
        assert answer.leader.leader_id in (None, leader_id), "one without an acknowledged record"
        says = " ".join(answer.remarks)
        return "healing: " in says and f"to {behind}: " in says

    await quorum.eventually("the damaged follower refuses its vote", was_asked_and_refused)
    assert is_healing(quorum.nodes[damaged])
    await quorum.start(leader_id)
    after = await quorum.leader(above_epoch=leader.leader.epoch)
    assert after.leader.leader_id == leader_id
    high_watermark = await quorum.assert_logs_agree()
    for node_id in quorum.nodes:
        topics = await quorum.topics_at(node_id, high_watermark)
        assert [topic.name for topic in topics] == ["acknowledged-by-two", "before"]

    async def is_whole() -> bool:
        return not is_healing(quorum.nodes[damaged])

    await quorum.eventually("the damaged follower is whole", is_whole)


async def test_a_single_voter_refuses_to_start_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Quorum(tmp_path / "quorum", controllers=1) as quorum:
        await quorum.register_brokers()
        await quorum.create(NewTopic("a", partitions=1, replication_factor=1))
        await quorum.create(NewTopic("b", partitions=1, replication_factor=1))
        await quorum.kill(1)
        node = quorum.nodes[1]
    (segment,) = segments(node)
    position = batch_positions(segment)[1]
    flip(segment, position + IN_RECORDS)
    damaged = segment.read_bytes()
    assert main(["dump-log", "--files", str(segment)]) == 1
    said = capsys.readouterr().err
    assert str(segment) in said
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.cli.main", "controller", "-c", str(node.properties_path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        _, stderr = await process.communicate()
    assert process.returncode == 1
    last = stderr.decode().splitlines()[-1]
    assert f"{segment}" in last
    assert "this is the only voter" in last
    assert f"restore {node.metadata_dir} from a backup" in last
    assert "or, to lose those records for good, " in last
    assert segment.read_bytes() == damaged
