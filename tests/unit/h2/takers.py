"""What every taker of a test does: it keeps its door, and tells how its messages ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.h2.callback_stream import Door


class Telling:
    """`told` has what is wrong with a message, or "all" behind the last one."""

    def __init__(self) -> None:
        self.door: Door
        self.told: list[str] = []

    def begin(self, door: Door) -> None:
        self.door = door

    def broken(self, error: ValueError) -> None:
        self.told.append(str(error))
        self.door.finish()

    def half_closed(self) -> None:
        self.told.append("all")
        self.door.finish()
