"""Planted bugs between clients and the core: of the proposer, of replies, reads and images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.consensus.activation import Activation
from quorate.consensus.proposing import Proposer
from quorate.consensus.reading import Reading
from quorate.consensus.replies import HeldReplies
from quorate.records.ids import Offset
from quorate.sim.planted.bug import Bug, Patch, always

if TYPE_CHECKING:
    import asyncio

    from quorate.controller.replies import WriteReply
    from quorate.raft.messages import LeaderInfo

_commit = Activation.commit


def _answer_at_once(
    self: HeldReplies, end_offset: Offset, reply: WriteReply, future: asyncio.Future[WriteReply]
) -> None:
    del self, end_offset
    future.set_result(reply)


def _succeed(self: HeldReplies, info: LeaderInfo, *, unsent_from: Offset | None) -> None:
    del info, unsent_from
    self.release(Offset(1 << 62))


def _commit_all(self: Activation, high_watermark: Offset) -> None:
    del high_watermark
    _commit(self, self._driver.store.log.end.offset)


async def _unconfirmed(self: Reading) -> Offset:
    return self._driver.high_watermark or Offset(0)


BUGS: Final = (
    Bug(
        "answers-before-commit",
        "a write is acknowledged when it is decided",
        (1, 2),
        (Patch(HeldReplies, "hold", _answer_at_once),),
    ),
    Bug(
        "deposed-controller-acknowledges",
        "a controller that stops leading acknowledges what it still holds back",
        (1,),
        (Patch(HeldReplies, "fail", _succeed),),
    ),
    Bug(
        "sent-counts-as-unsent",
        "a controller that stops leading refuses what it has proposed, too (rule 20)",
        (1,),
        (Patch(Proposer, "base_offset", property(always(answer=Offset(0)))),),
    ),
    Bug(
        "image-beyond-commit",
        "a leader's reads show what is in its log, committed or not",
        (1,),
        (Patch(Activation, "commit", _commit_all),),
    ),
    Bug(
        "controller-reads-unconfirmed",
        "the controller answers current reads without asking the core (rule 19)",
        (1, 2),
        (Patch(Reading, "_current_offset", _unconfirmed),),
    ),
)
