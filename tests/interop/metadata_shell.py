"""The metadata as stock Kafka reads it from a file: every leaf of kafka-metadata-shell.

The shell answers while it still loads, so it is asked how far it is before it is asked for more.

It may also wait for ever before that. It waits for the first image that its loader publishes on a
commit (`MetadataShell.waitUntilCaughtUp`, 4.3.1), and the loader publishes none as long as the
reader of the file, another thread, has not told where the file ends. If the loader is done with the
last batch of records before the reader comes to the footer, no commit follows that would publish
it. A shell to which that happened is killed, and another one is asked.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from quorate.records.batch import iter_batches
from tests.interop.stock_kafka import DEADLINE_S, METADATA_SHELL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.stock_kafka import StockKafka

Image: TypeAlias = dict[str, str]
"""The output of `cat` for every leaf, by path."""

POLL_S: Final = 0.02
# A shell that reads a small file starts within two seconds on a machine that is not busy.
STARTS_S: Final = 60.0
STARTS_MAX: Final = 6
_STARTS: Final = "Starting..."
# So many commands fit into a pipe that is not read yet.
TOGETHER: Final = 100
_PROMPT: Final = ">> "
_PROVENANCE: Final = "/image/provenance"


@dataclass(frozen=True)
class Shown:
    """An image, and what the shell said on stderr."""

    image: Image
    messages: str


def show(kafka: StockKafka, path: Path) -> Shown:
    """The image at the end of a file, without where it came from and without empty directories.

    The file has to hold a metadata record: the shell waits for one.
    """
    data_ends = [h.last_offset for _, h in iter_batches(path.read_bytes()) if not h.is_control]
    with tempfile.TemporaryFile("w+") as messages:
        command = kafka.command(METADATA_SHELL, "--snapshot", str(path))
        shell = _started(command, messages)
        try:
            while data_ends and shell.loaded_to() < data_ends[-1]:
                time.sleep(POLL_S)
            found = sorted(shell.ask("find /image")[0])
            leaves = [
                path
                for path, after in zip(found, [*found[1:], ""], strict=True)
                if not after.startswith(f"{path}/")
            ]
            image: Image = {}
            for start in range(0, len(leaves), TOGETHER):
                some = leaves[start : start + TOGETHER]
                answers = shell.ask(*(f"cat {leaf}" for leaf in some))
                image |= {leaf: "\n".join(lines) for leaf, lines in zip(some, answers, strict=True)}
        except AssertionError as error:
            messages.seek(0)
            error.add_note(f"{path}: {messages.read()}")
            raise
        finally:
            shell.close()
        messages.seek(0)
        leafless = [path for path, text in image.items() if text.endswith(": Is a directory")]
        for path_of_nothing in (_PROVENANCE, *leafless):
            image.pop(path_of_nothing, None)
        return Shown(image, messages.read())


def _started(command: list[str], messages: IO[str]) -> _Shell:
    """A shell that has begun to answer; what those said that never did is forgotten."""
    for _ in range(STARTS_MAX):
        shell = _Shell(command, messages.fileno())
        if shell.starts():
            return shell
        shell.close()
        messages.seek(0)
        said = messages.read()
        messages.seek(0)
        messages.truncate()
    raise AssertionError(f"{STARTS_MAX} shells ended or did not start in {STARTS_S} s: {said}")


class _Shell:
    """One interactive shell; it is killed when it takes too long."""

    def __init__(self, command: list[str], stderr: int) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
        self._alarm = threading.Timer(DEADLINE_S, self._process.kill)
        self._alarm.start()
        self._asked = 0

    def starts(self) -> bool:
        """Wait until it is about to answer; False where it waits for what does not come."""
        alarm = threading.Timer(STARTS_S, self._process.kill)
        alarm.start()
        try:
            assert self._process.stdout is not None
            return any(line.rstrip("\n") == _STARTS for line in self._process.stdout)
        finally:
            alarm.cancel()

    def ask(self, *commands: str) -> list[list[str]]:
        """The lines that each command prints. What ends them is an error that names a marker."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        first = self._asked + 1
        self._asked += len(commands)
        for number, command in enumerate(commands, first):
            process.stdin.write(f"{command}\ncat /marker-{number}.\n")
        process.stdin.flush()
        answers: list[list[str]] = [[]]
        for line in process.stdout:
            text = line.rstrip("\n")
            while text.startswith(_PROMPT):
                text = text.removeprefix(_PROMPT)
            if f"/marker-{first + len(answers) - 1}." not in text:
                answers[-1].append(text)
            elif len(answers) == len(commands):
                return answers
            else:
                answers.append([])
        status = process.wait(DEADLINE_S)
        raise AssertionError(f"the shell ended with status {status} after {answers[-1]}")

    def loaded_to(self) -> int:
        """The offset up to which the image goes now."""
        said = " ".join(self.ask(f"cat {_PROVENANCE}")[0])
        found = re.search(r"offset (-?\d+)", said)
        return int(found[1]) if found else -1

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._alarm.cancel()
