"""Collects the effects and trace events of one step, in the required order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import PublishProgress, SaveElection, SendReply
from quorate.raft.roles import Leader, role_name
from quorate.raft.trace_events import TraceBuffer

if TYPE_CHECKING:
    from quorate.raft.api import Effect
    from quorate.raft.messages import ElectionState, Response
    from quorate.raft.roles import Role
    from quorate.raft.trace_events import TraceEvent
    from quorate.records.ids import Epoch, NodeId, Offset, ReplyToken


class Outbox:
    """The effects and notes of the current step, and the state published last."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._published: tuple[type, Epoch, NodeId | None, Offset] | None = None
        self._notes = TraceBuffer()
        self.note, self.tell, self.forget = (
            self._notes.emit,
            self._notes.emit_once,
            self._notes.reset_once,
        )

    def emit(self, effect: Effect) -> None:
        """Add an effect after all earlier ones of this step."""
        self._effects.append(effect)

    def reply(self, token: ReplyToken, response: Response) -> None:
        """Answer a request, a proposal or a read."""
        self._effects.append(SendReply(token, response))

    def save(self, effect: SaveElection) -> None:
        """Make it durable before any effect that follows.

        If no effect depends on the previous save, one write is enough: each takes two flushes.
        """
        if self._effects and isinstance(self._effects[-1], SaveElection):
            self._effects.pop()
        self._effects.append(effect)

    def publish(self, role: Role, election: ElectionState, high_watermark: Offset) -> None:
        """Report changes to the state machine and the status."""
        # Few steps change anything. A leader's epoch start is constant within its epoch.
        published = (type(role), election.epoch, election.leader_id, high_watermark)
        if published == self._published:
            return
        self._published = published
        start = role.epoch_start if isinstance(role, Leader) else None
        self._effects.append(
            PublishProgress(
                role=role_name(role),
                epoch=election.epoch,
                leader_id=election.leader_id,
                is_leader=start is not None,
                epoch_start=start,
                high_watermark=high_watermark,
            )
        )

    def take(self) -> tuple[tuple[Effect, ...], tuple[TraceEvent, ...]]:
        """The effects and notes of this step; the next one begins with none."""
        effects = tuple(self._effects)
        self._effects.clear()
        return effects, self._notes.drain()
