"""Tracks how long a connection was silent, idle or blocked, and decides what is due."""

from __future__ import annotations

from enum import Enum, auto

from quorate.h2.protocol.limits import IDLE_S, PING_EVERY_S, PING_PATIENCE_S, PREFACE_S, UNREAD_S


class Due(Enum):
    """The result of a check of a connection."""

    NOTHING = auto()
    PING = auto()
    NO_PREFACE = auto()
    NOT_READING = auto()
    NOT_ANSWERING = auto()
    IDLE = auto()


class Liveness:
    """The times of one connection, in seconds of the monotonic clock."""

    __slots__ = ("_begun_s", "_busy_s", "_has_spoken", "_heard_s", "_pinged_s", "blocked_s")

    def __init__(self, now_s: float) -> None:
        self._begun_s = self._heard_s = self._busy_s = now_s
        self._has_spoken = False
        self._pinged_s: float | None = None
        # The time since which its socket has been full.
        self.blocked_s: float | None = None

    def on_bytes(self, now_s: float) -> None:
        """Note that the peer has sent bytes."""
        self._heard_s = now_s
        self._has_spoken = True

    def on_pong(self) -> None:
        """Note that the peer has answered a ping."""
        self._pinged_s = None

    def on_backlog(self, now_s: float) -> None:
        """Note that received bytes wait to be parsed, which is not the peer's silence."""
        self._heard_s = now_s
        self._pinged_s = None

    def on_last_call(self, now_s: float) -> None:
        """Note that the last call in progress has ended."""
        self._busy_s = now_s

    def check(self, now_s: float, *, has_calls: bool) -> Due:
        """Return the most urgent action that is due; a ping counts as sent."""
        if not self._has_spoken:
            return Due.NO_PREFACE if now_s - self._begun_s > PREFACE_S else Due.NOTHING
        if self.blocked_s is not None and now_s - self.blocked_s > UNREAD_S:
            return Due.NOT_READING
        if self._pinged_s is not None:
            is_late = now_s - self._pinged_s > PING_PATIENCE_S
            return Due.NOT_ANSWERING if is_late else Due.NOTHING
        if not has_calls and now_s - self._busy_s > IDLE_S:
            return Due.IDLE
        if now_s - self._heard_s > PING_EVERY_S:
            self._pinged_s = now_s
            return Due.PING
        return Due.NOTHING
