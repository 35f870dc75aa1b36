"""Exponential backoff with jitter and an upper bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.api import Random


def backoff_ms(count: int, *, first_ms: int, longest_ms: int, random: Random) -> Millis:
    """The delay after `count` consecutive failures; half of it is random."""
    delay = min(longest_ms, first_ms << min(count - 1, longest_ms.bit_length()))
    return Millis(delay // 2 + int(random.random() * (delay - delay // 2)) + 1)
