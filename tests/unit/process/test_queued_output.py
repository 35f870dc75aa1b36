"""Standard streams whose reader is suspended, is slow, or has exited."""

from __future__ import annotations

import fcntl
import io
import os
import threading
from typing import TYPE_CHECKING

import pytest

from quorate.process.queued_output import QueuedOutput

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 30


class Pipe:
    """A pipe with the stream of a process before it, and a reader that reads on command."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 4096)
        self.output = QueuedOutput(self.writer, bytes_max=100_000)
        self.stream = io.TextIOWrapper(
            self.output,  # type: ignore[type-var]
            encoding="utf-8",
            write_through=True,
        )

    def print(self, *lines: str) -> None:
        for line in lines:
            self.stream.write(f"{line}\n")
            self.stream.flush()

    def read_until(self, last: str) -> list[str]:
        """The lines up to this one."""
        lines: list[str] = []
        with os.fdopen(os.dup(self.reader), buffering=1, encoding="utf-8") as file:
            while not lines or lines[-1] != last:
                lines.append(file.readline().removesuffix("\n"))
        return lines

    def close(self) -> None:
        for descriptor in (self.reader, self.writer):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def numbered(count: int, width: int = 1000) -> list[str]:
    return [f"{number:06}".ljust(width, ".") for number in range(count)]


def test_lines_arrive_in_their_order(pipe: Pipe) -> None:
    lines = numbered(50)
    pipe.print(*lines)
    assert pipe.read_until(lines[-1]) == lines


def test_a_reader_that_stands_still_delays_no_writer_and_takes_no_memory(pipe: Pipe) -> None:
    pipe.print(*numbered(10_000))
    assert pipe.output.queued_bytes <= 100_000
    assert not pipe.output.drain(0.01)
    assert pipe.output.lines_dropped > 9_000
    # So that the thread ends its write before the descriptors are closed.
    pipe.read_until(loss(pipe))


def loss(pipe: Pipe) -> str:
    return f"{pipe.output.lines_dropped} lines dropped: the reader of this output stood still"


def test_what_was_dropped_is_one_line_in_its_place(pipe: Pipe) -> None:
    lines = numbered(1000)
    pipe.print(*lines)
    said = loss(pipe)
    kept = 1000 - pipe.output.lines_dropped
    assert pipe.read_until(said) == [*lines[:kept], said]
    assert pipe.output.drain(WAIT_S)
    pipe.print("after")
    assert pipe.read_until("after") == ["after"]


def test_a_line_larger_than_the_queue_is_dropped_and_others_are_not(pipe: Pipe) -> None:
    pipe.print("x" * 200_000)
    said = loss(pipe)
    assert pipe.read_until(said) == [said]
    assert pipe.output.drain(WAIT_S)
    pipe.print("after")
    assert pipe.read_until("after") == ["after"]


def test_the_process_says_how_a_loss_is_worded(pipe: Pipe) -> None:
    pipe.output.word_loss = lambda lines: f"lost={lines}"
    pipe.print(*numbered(1000))
    said = f"lost={pipe.output.lines_dropped}"
    assert pipe.read_until(said)[-1] == said


def test_a_drained_stream_has_written_all(pipe: Pipe) -> None:
    assert pipe.output.drain(WAIT_S)
    pipe.print("one", "two")
    assert pipe.output.drain(WAIT_S)
    assert os.read(pipe.reader, 100) == b"one\ntwo\n"
    assert pipe.output.queued_bytes == 0


def test_a_reader_that_is_gone_is_no_error(pipe: Pipe) -> None:
    os.close(pipe.reader)
    pipe.reader = -1
    pipe.print("one", "two")
    assert pipe.output.drain(WAIT_S)
    assert pipe.output.lines_dropped == 2
    assert pipe.output.queued_bytes == 0


def test_a_descriptor_that_others_made_non_blocking_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer, False)
    lines = numbered(50)
    pipe.print(*lines)
    assert pipe.read_until(lines[-1]) == lines


def test_without_a_thread_the_writer_waits_itself(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        pipe.print("one")
    pipe.print("two")
    assert pipe.read_until("two") == ["one", "two"]


def test_many_threads_write_whole_lines(pipe: Pipe) -> None:
    def write(name: str) -> None:
        pipe.print(*(f"{name}{number}" for number in range(100)))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.print("end")
    lines = pipe.read_until("end")
    assert len(lines) == 401
    for name in "abcd":
        mine = [line for line in lines if line.startswith(name)]
        assert mine == [f"{name}{number}" for number in range(100)]
