"""Watches a run: who leads, which processes ended, what happened when, and its own lack of time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from quorate.records.errors import ErrorCode
from tests.chaos.liveness import SECOND
from tests.integration.disks import committed_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.messages import DescribeQuorumResponse
    from tests.chaos.cluster import Cluster

TICK_S: Final = 0.05
# A tick that comes so late had no processor; less is what a busy loop takes.
STOLEN_NS: Final = SECOND // 10
ASK_EVERY_S: Final = 0.25
ASK_TIMEOUT_S: Final = 0.3


class Watch:
    """Notes with their times. `is_over` ends it."""

    def __init__(self, cluster: Cluster) -> None:
        self.leader: int | None = None
        self.epoch = 0
        self.high_watermark = 0
        self.elections = 0
        self.stolen: list[tuple[int, int]] = []
        self.notes: list[tuple[int, str]] = []
        self.violations: list[str] = []
        self.archived: dict[int, bytes] = {}
        self.is_over = False
        # Called when another node leads.
        self.led: Callable[[], None] = lambda: None
        self.begin = time.monotonic_ns()
        self._cluster = cluster

    def note(self, text: str) -> None:
        """Something happened now."""
        self.notes.append((time.monotonic_ns(), text))

    def lines(self, begin: int = 0, end: int = 1 << 63) -> list[str]:
        """The events between two times, each with seconds since the begin."""
        return [
            f"{(at - self.begin) / SECOND:8.2f} {text}"
            for at, text in self.notes
            if begin <= at <= end
        ]

    def archive(self) -> None:
        """Keep what the leader has committed, before damage takes a part of some log.

        A voter that heals may begin its log at a snapshot; after some time all of them do.
        """
        if self.leader is not None:
            node = self._cluster.nodes[self.leader]
            self.archived |= committed_batches(node, 0, self.high_watermark)

    async def run(self) -> None:
        """Until `is_over`."""
        await asyncio.gather(self._feel_delays(), self._look())

    async def _feel_delays(self) -> None:
        while not self.is_over:
            due = time.monotonic_ns() + int(TICK_S * SECOND)
            await asyncio.sleep(TICK_S)
            now = time.monotonic_ns()
            if now - due > STOLEN_NS:
                self.stolen.append((due, now))

    async def _look(self) -> None:
        ended: set[int] = set()
        while not self.is_over:
            await asyncio.sleep(ASK_EVERY_S)
            for node_id, status in self._cluster.ended().items():
                if node_id not in ended:
                    ended.add(node_id)
                    self.note(f"{node_id} ended by itself with status {status}")
                    self.violations.append(f"controller {node_id} ended with status {status}")
            nodes = list(self._cluster.nodes.values())
            client = self._cluster.client
            answers = await asyncio.gather(
                *(client.try_describe_at(node.address, ASK_TIMEOUT_S) for node in nodes)
            )
            self._take([answer for answer in answers if not isinstance(answer, str)])

    def _take(self, answers: list[DescribeQuorumResponse]) -> None:
        leading = [a for a in answers if a.error is ErrorCode.NONE]
        if not leading:
            return
        answer = max(leading, key=lambda answer: answer.leader.epoch)
        newest = answer.leader
        if newest.leader_id == self.leader and newest.epoch == self.epoch:
            self.high_watermark = answer.high_watermark or self.high_watermark
        if newest.epoch > self.epoch and newest.leader_id is not None:
            self.leader, self.epoch = newest.leader_id, newest.epoch
            self.high_watermark = answer.high_watermark or 0
            self.elections += 1
            self.note(f"{self.leader} leads epoch {self.epoch}")
            self.led()
