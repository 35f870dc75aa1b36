"""One file, read by kafka-dump-log and by our dump-log: whatever one shows must the other show."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
from typing import TYPE_CHECKING, Final

from quorate.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.stock_kafka import Said, StockKafka

# How lines begin that show what is in a file; the other ones are remarks.
_CONTENT: Final = ("Dumping ", "Snapshot end", "Log starting", "KRaft bootstrap", "base", "|")
_SKIP: Final = ("--skip-record-metadata",)


def healthy_files(kafka_fixtures: Path) -> list[Path]:
    """Logs and checkpoints of healthy stock controllers."""
    return [
        path
        for folder in ("dynamic", "segments", "upgraded")
        for path in sorted((kafka_fixtures / folder).rglob("*"))
        if path.suffix in (".log", ".checkpoint")
    ]


def ours(*files: Path, flags: tuple[str, ...] = ()) -> list[str]:
    """The output of our dump-log for files, which has no complaint."""
    out, err = io.StringIO(), io.StringIO()
    names = ",".join(map(str, files))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["dump-log", "--cluster-metadata-decoder", *flags, "--files", names])
    assert (status, err.getvalue()) == (0, "")
    return content(out.getvalue())


def content(text: str) -> list[str]:
    """The lines of a dump that show what is in the file."""
    return [_in_one_notation(line) for line in text.splitlines() if line.startswith(_CONTENT)]


def _in_one_notation(line: str) -> str:
    """A quota's number is 53477376.0 to Python and 5.3477376E7 to Java."""
    return re.sub(r'(?<="value":)-?[0-9][0-9.eE+-]*', lambda found: str(float(found[0])), line)


def messages(said: str) -> set[str]:
    """The other lines, without numbers and paths: what a tool has to say about a file."""
    remarks = (line for line in said.splitlines() if not line.startswith(_CONTENT))
    return {
        re.sub(r"-?\d+", "N", re.sub(r"/\S*", "PATH", line)) for line in remarks if line.strip()
    }


def differences(stock: StockKafka, *files: Path) -> list[str]:
    """The differences of the two dumps, with and without the batches; empty when they agree."""
    found: list[str] = []
    for flags in ((), _SKIP):
        said = stock.dump_log(*files, flags=flags)
        assert said.status == 0, said
        found += difflib.unified_diff(ours(*files, flags=flags), content(said.stdout), n=0)
    return found


def said_of(said: Said) -> set[str]:
    """All messages of a tool, wherever it printed them."""
    return messages(said.stdout) | messages(said.stderr)
