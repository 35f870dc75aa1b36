"""Turns Spark exceptions into one-line errors with a remedy.

Spark's errors quote the traceback of the process that read the log, or a Java stack, with the
relevant message somewhere in the middle.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from typing import Final

# The last line of a worker's Python traceback: the error's class and message.
_OF_PYTHON: Final = re.compile(r"^(?:[\w.]*\.)?\w*(?:Error|Exception): (.+)$", re.MULTILINE)
# The lines of a Java error and of its causes; either may quote another error.
_OF_JAVA: Final = re.compile(r"^(?:: |Caused by: )(.+)$", re.MULTILINE)
_CLASS_OF_JAVA: Final = re.compile(r"(?:[a-z]\w*\.)+\w*(?:Error|Exception): ")
_UNMADE: Final = re.compile(r"[Mm]kdirs? (?:of|failed to create) (?:file:)?(/\S+)")
_NO_SOURCE: Final = "[DATA_SOURCE_NOT_FOUND]"
_FULL: Final = "No space left on device"
_TWO_WRITERS: Final = "CONCURRENT_STREAM_LOG_UPDATE"
_WORKER_GONE: Final = "Python worker exited unexpectedly"
_NO_MEMORY: Final = "java.lang.OutOfMemoryError"
# Java fails before the last bytes of a disk are used.
_FREE_BYTES_MIN: Final = 1 << 20
_IMPORT_S_MAX: Final = 60


def spark_error_message(error: Exception, python: str, output: str | None = None) -> str:
    """The relevant message in an error of Spark, whose workers run in `python`.

    `output` is the directory that was written to, if any.
    """
    said_first = str(error)
    # The error of a stream's task is only in Java's stack trace.
    text = f"{said_first}\n{getattr(error, '_stackTrace', None) or ''}"
    if _NO_SOURCE in text:
        return _why_no_source(python)
    if _FULL in text:
        return _where_full(output)
    if _TWO_WRITERS in text:
        return (
            f"another process writes to {output} or its checkpoint: wait for its end, or name"
            " another place"
        )
    if _WORKER_GONE in text:
        return (
            "a Python process of Spark was killed or crashed, most likely for lack of memory: give"
            " it more, or read less, as with --starting-offsets snapshot"
        )
    of_python = _OF_PYTHON.findall(text)
    if of_python:
        return str(of_python[-1])
    of_java = _OF_JAVA.findall(text)
    if not of_java:
        return said_first.strip().splitlines()[0]
    unmade = _UNMADE.search(text)
    if unmade is not None:
        return (
            f"{unmade[1]} cannot be made: let the user that runs Spark write there, or name another"
            " place"
        )
    said = _CLASS_OF_JAVA.split(of_java[-1])[-1]
    if _NO_MEMORY in text:
        return out_of_memory(f" ({said})")
    return said


def out_of_memory(said: str = "") -> str:
    """The message for a Java process that ran out of memory, with Java's own text if known."""
    return (
        f"Spark's Java process ran out of memory{said}: give it more, by spark-submit"
        " --driver-memory, or read less, as with --starting-offsets snapshot"
    )


def _where_full(output: str | None) -> str:
    """The message for a full disk, which Java does not name; both paths may be on one disk."""
    places = [tempfile.gettempdir() if output is None else output, tempfile.gettempdir()]
    full = next((place for place in places if _free_bytes(place) < _FREE_BYTES_MIN), None)
    where = full or " or ".join(dict.fromkeys(places))
    return (
        f"no space is left on the disk of {where}: free some, or name another disk, of the output"
        " or by TMPDIR, where Spark has its own files; then run the command again"
    )


def _free_bytes(place: str) -> int:
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return _FREE_BYTES_MIN


def _why_no_source(python: str) -> str:
    """Import the source in Spark's Python again: Spark does not report why that failed."""
    try:
        ran = subprocess.run(  # noqa: S603 - the Python that Spark has just started
            [python, "-c", "import pyspark_quorate"],
            capture_output=True,
            text=True,
            timeout=_IMPORT_S_MAX,
            check=False,
        )
        said = ran.stderr.strip().splitlines()
        why = said[-1] if ran.returncode and said else "it has the package here, but not for Spark"
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    return (
        f"Spark does not find the log's source in the Python that it starts, {python}: {why}; let"
        " this user run it and read its packages, or name one that has quorate[pipeline] in"
        " PYSPARK_PYTHON"
    )
