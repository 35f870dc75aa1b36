"""Base of the takers in tests: keeps its stream, and records how its messages ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.h2.callback_stream import StreamWriter


class Telling:
    """`told` has what is wrong with a message, or "all" behind the last one."""

    def __init__(self) -> None:
        self.stream_writer: StreamWriter
        self.told: list[str] = []

    def begin(self, stream_writer: StreamWriter) -> None:
        self.stream_writer = stream_writer

    def on_invalid_message(self, error: ValueError) -> None:
        self.told.append(str(error))
        self.stream_writer.finish()

    def on_half_close(self) -> None:
        self.told.append("all")
        self.stream_writer.finish()
