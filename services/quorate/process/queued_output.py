"""Standard streams behind a bounded queue: a stalled reader delays no thread of the process.

A write to a pipe or a terminal waits until its reader has read: a container runtime on a full disk,
a journal that hangs, `| less`. On the event loop that wait would stop the process. Here a daemon
thread waits, and the writers never do. Lines that find no space in the queue are dropped and
counted; one line states their number as soon as the reader reads again. Order is kept.

The last lines of a process are written at its exit, within `EXIT_WAIT_S`.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import sys
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from _typeshed import ReadableBuffer

# Bytes of one stream that wait for its reader.
QUEUED_BYTES_MAX: Final = 1024 * 1024
# Bytes that a queued line takes in addition to its text.
_LINE_OVERHEAD_BYTES: Final = 100
# Seconds that the end of the process waits for a reader.
EXIT_WAIT_S: Final = 1.0
# In the queue behind the last line before a loss: the thread states the loss there.
_LOSS: Final = b""


def _loss_in_words(lines: int) -> str:
    return f"{lines} lines dropped: the reader of this output stood still"


class QueuedOutput(io.RawIOBase):
    """A binary stream whose writes are queued for the thread that performs them.

    It has no lock that the thread takes: the interpreter may end while the thread is anywhere.
    """

    def __init__(self, descriptor: int, bytes_max: int = QUEUED_BYTES_MAX) -> None:
        """The descriptor stays the caller's: closing this stream does not close it."""
        super().__init__()
        self._descriptor = descriptor
        self._bytes_max = bytes_max
        self.word_loss: Callable[[int], str] = _loss_in_words
        self.begin()

    def begin(self) -> None:
        """Start with an empty queue: also in a forked child, where the parent has the lines."""
        # Reentrant, because the garbage collector may write in the middle of a write.
        self._lock = threading.RLock()
        self._queue: SimpleQueue[bytes | threading.Event] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_loss_queued = False
        # The writers count the first three, the thread the others.
        self._accepted_bytes = self._losses = self._lost_lines = 0
        self._written_bytes = self._stated_losses = self._stated_lines = self._failed_lines = 0

    # --- the stream -------------------------------------------------------------------------------

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Queue the bytes, or drop them all; returns their number without waiting."""
        line = bytes(data)
        if not line:
            return 0
        with self._lock:
            size = len(line) + _LINE_OVERHEAD_BYTES
            if not self._has_thread():
                self._put_out(line)
            elif self._is_losing or self.queued_bytes + size > self._bytes_max:
                self._lost_lines += line.count(b"\n")
                self._losses += 1
                # In this order: the thread takes the flag back before it looks at the counts.
                if not self._is_loss_queued:
                    self._is_loss_queued = True
                    self._queue.put(_LOSS)
            else:
                self._accepted_bytes += size
                self._queue.put(line)
        return len(line)

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait for the reader, with those that are being written."""
        return self._accepted_bytes - self._written_bytes

    @property
    def lines_dropped(self) -> int:
        """Lines that were dropped or not read."""
        return self._lost_lines + self._failed_lines

    @property
    def _is_losing(self) -> bool:
        """Once something is lost, all is until that is stated: no line overtakes a lost one."""
        return self._losses != self._stated_losses

    def drain(self, limit_s: float) -> bool:
        """Wait until all that was written before has left, or is lost; False after the limit."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                return True
            reached = threading.Event()
            self._queue.put(reached)
        return reached.wait(limit_s)

    # --- the thread -------------------------------------------------------------------------------

    def _has_thread(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="output", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # The machine has no more threads, or the interpreter ends.
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        queue = self._queue
        while True:
            line = queue.get()
            if isinstance(line, threading.Event):
                line.set()
            elif line == _LOSS:
                self._is_loss_queued = False
                self._state_losses()
            else:
                if not self._put_out(line):
                    self._failed_lines += line.count(b"\n")
                self._written_bytes += len(line) + _LINE_OVERHEAD_BYTES

    def _state_losses(self) -> None:
        while self._is_losing:
            losses, lines = self._losses, self._lost_lines
            words = self.word_loss(lines - self._stated_lines)
            self._put_out(f"{words}\n".encode(errors="backslashreplace"))
            # In this order: with the second, writers queue again.
            self._stated_lines = lines
            self._stated_losses = losses

    def _put_out(self, line: bytes) -> bool:
        """Write all of it, however long that takes; False if the reader is gone."""
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # Another program that has the same pipe or terminal made it non-blocking.
                ready = select.poll()
                ready.register(self._descriptor, select.POLLOUT)
                ready.poll()
            except OSError:
                return False
        return True


_queued: Final[dict[str, QueuedOutput]] = {}


def queue_standard_streams() -> None:
    """Put stdout and stderr of this process behind queues, for as long as it lasts."""
    if _queued:
        return
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        # A program that closed a stream before it started this one leaves none.
        if stream is None:
            continue
        stream.flush()
        output = QueuedOutput(stream.fileno())
        wrapper = io.TextIOWrapper(
            output,  # type: ignore[type-var]
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            write_through=True,
        )
        setattr(sys, name, wrapper)
        _queued[name] = output
        os.register_at_fork(after_in_child=output.begin)
    atexit.register(drain_standard_streams)


def drain_standard_streams(limit_s: float = EXIT_WAIT_S) -> None:
    """Wait for the readers of what was written, together no longer than the limit."""
    end_s = time.monotonic() + limit_s
    for output in _queued.values():
        output.drain(max(0.0, end_s - time.monotonic()))


def queued_stderr() -> QueuedOutput | None:
    """The queue behind stderr; None where writers wait for the reader."""
    return _queued.get("stderr")


def lines_dropped() -> int:
    """Lines that no reader of stdout or stderr got since the process started."""
    return sum(output.lines_dropped for output in _queued.values())
