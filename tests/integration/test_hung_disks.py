"""Disks of real controllers that do not answer, and stops that such a disk holds up.

See rule `disk_call_deadline`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from quorate.controller.topics.messages import NewTopic
from tests.integration.hanging_controller import HANG
from tests.integration.quorum import DEADLINE_S, Quorum
from tests.integration.scraping import scraped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan

FLUSHES = "fdatasync sync_dir"
EVERYTHING = "fdatasync sync_dir open read read_at truncate rename remove list_dir"


class HangingQuorum(Quorum):
    """Three controllers whose disks hang on command."""

    def gate(self, node_id: int) -> Path:
        return self.nodes[node_id].directory / "hangs"

    def hang(self, node_id: int, calls: str) -> None:
        part = self.gate(node_id).with_suffix(".part")
        part.write_text(calls, encoding="ascii")
        part.rename(self.gate(node_id))

    def release(self, node_id: int) -> None:
        self.gate(node_id).unlink()

    def command(self, node: NodePlan) -> list[str]:
        module = ["-m", "tests.integration.hanging_controller"]
        return [sys.executable, *module, "--config", str(node.properties_path)]

    def environment(self, node: NodePlan) -> dict[str, str]:
        return super().environment(node) | {HANG: str(self.gate(node.node_id))}

    async def hears_signals(self, node_id: int) -> None:
        """Wait until the process answers a probe."""

        async def check() -> bool:
            return await self.is_ready(node_id) is False

        await self.eventually(f"node {node_id} answers a probe", check)

    async def said(self, node_id: int, text: str) -> None:
        """Wait until the process has logged it."""

        async def check() -> bool:
            output = self.nodes[node_id].output_path
            return text in await asyncio.to_thread(output.read_text, encoding="utf-8")

        await self.eventually(f"node {node_id} says {text!r}", check)

    async def status(self, node_id: int) -> int:
        """The exit status of a process that was asked to end."""
        async with asyncio.timeout(DEADLINE_S):
            return await self.processes.pop(node_id).wait()


@pytest.fixture
async def hanging(tmp_path: Path) -> AsyncIterator[HangingQuorum]:
    async with HangingQuorum(tmp_path / "quorum", {"shutdown.timeout.ms": "500"}) as running:
        await running.register_brokers()
        yield running


@pytest.mark.parametrize("calls", [FLUSHES, EVERYTHING])
async def test_a_leader_whose_disk_hangs_makes_room_and_comes_back(
    hanging: HangingQuorum, calls: str
) -> None:
    await hanging.create(NewTopic("before"))
    # One answer names the leader and its epoch: between two another may be elected.
    before = (await hanging.leader()).leader
    old = before.leader_id
    assert old is not None
    hanging.hang(old, calls)
    # Each of them commits without this leader's own flush, or at its successor.
    names = [f"while-it-hangs-{number}" for number in range(5)]
    for name in names:
        await hanging.create(NewTopic(name))
    after = await hanging.leader(above_epoch=before.epoch)
    assert after.leader.leader_id != old
    await hanging.said(old, "the disk hangs, this controller is not ready")
    assert await hanging.is_ready(old) is False
    assert await scraped(hanging.nodes[old], "disk_call_age_seconds") > 1.0
    await hanging.create(NewTopic("after"))
    hanging.release(old)
    await hanging.said(old, "the disk answers again")

    async def is_ready_again() -> bool:
        return await hanging.is_ready(old) is True

    await hanging.eventually("it is ready again", is_ready_again)
    await hanging.assert_logs_agree()


async def test_a_stop_that_the_disk_holds_up_ends_in_time_with_another_status(
    hanging: HangingQuorum,
) -> None:
    await hanging.create(NewTopic("before"))
    leader = await hanging.leader_id()
    follower = next(node_id for node_id in hanging.nodes if node_id != leader)
    hanging.hang(follower, EVERYTHING)
    await hanging.create(NewTopic("not-everywhere"))
    await hanging.said(follower, "the disk hangs")
    hanging.signal(follower, signal.SIGTERM)
    hanging.signal(follower, signal.SIGTERM)
    assert await hanging.status(follower) == 1
    await hanging.said(follower, "has not returned for")


async def test_a_stop_during_recovery_ends_before_anything_is_asked(tmp_path: Path) -> None:
    # The disk is released within the time that a stop may take, however long that takes here.
    patient = {"shutdown.timeout.ms": "60000"}
    async with HangingQuorum(tmp_path / "quorum", patient) as hanging:
        leader = await hanging.leader_id()
        follower = next(node_id for node_id in hanging.nodes if node_id != leader)
        await hanging.kill(follower)
        said = hanging.nodes[follower].output_path
        said.unlink()
        hanging.hang(follower, "read_at")
        await hanging.start(follower)
        await hanging.hears_signals(follower)
        hanging.signal(follower, signal.SIGTERM)
        await hanging.said(follower, "stopping as soon as the directory is recovered")
        hanging.release(follower)
        assert await hanging.status(follower) == 0
        text = said.read_text(encoding="utf-8")
    assert "ending=STOPPED" in text
    assert "becomes" not in text
    assert "serving" not in text


async def test_a_recovery_that_does_not_end_does_not_hold_up_a_stop(hanging: HangingQuorum) -> None:
    leader = await hanging.leader_id()
    follower = next(node_id for node_id in hanging.nodes if node_id != leader)
    await hanging.kill(follower)
    hanging.nodes[follower].output_path.unlink()
    hanging.hang(follower, "read_at")
    await hanging.start(follower)
    await hanging.hears_signals(follower)
    hanging.signal(follower, signal.SIGTERM)
    assert await hanging.status(follower) == 1
