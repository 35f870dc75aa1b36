"""Mutants of proposer, replies, reads and images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.controller import Controller
from quorate.records.ids import Offset
from quorate.server.metadata.activation import Activation
from quorate.server.metadata.batch_accumulator import Accumulator
from quorate.server.metadata.deferred_replies import DeferredReplies
from quorate.server.metadata.log_replay import LogReplay
from quorate.server.metadata.proposer import Proposer
from quorate.server.metadata.read_handler import ReadHandler
from quorate.sim.mutants.mutant import SHORT_TIMEOUTS, Mutant, Patch, constant

if TYPE_CHECKING:
    import asyncio

    from quorate.controller.request_types import WriteReply
    from quorate.raft.api import PublishProgress
    from quorate.server.metadata.deferred_replies import Refused

_commit = Activation.commit
_release = DeferredReplies.release
_stop = Proposer.stop
_go_on = LogReplay.replay_slice


def _answer_at_once(
    self: DeferredReplies, end_offset: Offset, reply: WriteReply, future: asyncio.Future[WriteReply]
) -> None:
    del self, end_offset
    future.set_result(reply)


def _succeed(
    self: DeferredReplies, *, unsent_from: Offset | None
) -> tuple[list[Refused], list[Refused]]:
    del unsent_from
    self.release(Offset(1 << 62))
    return [], []


def _commit_all(self: Activation, high_watermark: Offset) -> None:
    del high_watermark
    _commit(self, self._driver.store.log.end.offset)


async def _unconfirmed(self: ReadHandler) -> Offset:
    return self._driver.high_watermark or Offset(0)


def _release_one_more(self: DeferredReplies, high_watermark: Offset) -> None:
    _release(self, Offset(high_watermark + 1))


def _stop_with_what_gathered(self: Proposer) -> None:
    gathered, self._accumulator = self._accumulator, Accumulator()
    _stop(self)
    self._accumulator = gathered


def _replay_all(self: LogReplay, high_watermark: Offset) -> None:
    del high_watermark
    _go_on(self, self._driver.store.log.end.offset)


def _is_due_behind(self: Activation, progress: PublishProgress) -> bool:
    """True as soon as the start of the leader's epoch is replayed."""
    start = progress.epoch_start
    return progress.is_leader and start is not None and start < self._controller.end_offset


# A single voter continues to lead after its disk has stalled for too long during log cleaning. With
# the mutant it is active again before it has replayed its last records.
_HANGS_WHILE_CLEANING: Final = {
    **SHORT_TIMEOUTS,
    "voters": 1,
    "observers": 0,
    "duration_ms": 20_000,
    "write_every_ms": 20,
    "hang_every_ms": 1500,
    "hang_ms": 1500,
    "segment_bytes": 1024,
    "snapshot_every_records": 10,
    "retention_bytes": 500,
}

BUGS: Final = (
    Mutant(
        "answers-before-commit",
        "a write is acknowledged when it is decided",
        (1, 2),
        (Patch(DeferredReplies, "defer", _answer_at_once),),
    ),
    Mutant(
        "deposed-controller-acknowledges",
        "a controller that stops leading acknowledges what it still holds back",
        (1,),
        (Patch(DeferredReplies, "clear", _succeed),),
    ),
    Mutant(
        "sent-counts-as-unsent",
        "a controller that stops leading refuses what it has proposed, too (rule stream_responses)",
        (9,),
        (Patch(Proposer, "base_offset", property(constant(answer=Offset(0)))),),
    ),
    Mutant(
        "image-beyond-commit",
        "a leader's reads show what is in its log, committed or not",
        (3,),
        (Patch(Activation, "commit", _commit_all),),
    ),
    Mutant(
        "controller-reads-unconfirmed",
        "the controller answers current reads without asking the core (rule linearizable_reads)",
        (4,),
        (Patch(ReadHandler, "_current_offset", _unconfirmed),),
    ),
    Mutant(
        "reply-one-record-early",
        "a write is acknowledged when all but its last record is committed",
        (1795522677153,),
        (Patch(DeferredReplies, "release", _release_one_more),),
    ),
    Mutant(
        "deposed-controller-decides-on",
        "a controller that stops leading keeps the image that it decided on",
        (1795522677154,),
        (Patch(Controller, "deactivate", constant(answer=None)),),
    ),
    Mutant(
        "gathered-outlives-leadership",
        "what had gathered when leadership was lost is proposed in the next one",
        (1,),
        (Patch(Proposer, "stop", _stop_with_what_gathered),),
    ),
    Mutant(
        "active-before-replayed",
        "a controller decides before it has replayed all of its log",
        (1, 4),
        (Patch(Activation, "is_due", _is_due_behind),),
        world=_HANGS_WHILE_CLEANING,
    ),
    Mutant(
        "standby-ahead-of-commit",
        "a standby replays what is in its log, committed or not",
        (1795522677153,),
        (Patch(LogReplay, "replay_slice", _replay_all),),
    ),
)
