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

# What Python said last in the traceback of a worker: the error's class and its sentence.
_OF_PYTHON: Final = re.compile(r"^(?:[\w.]*\.)?\w*(?:Error|Exception): (.+)$", re.MULTILINE)
# Java's own, and what caused it; either may quote another one's in its line.
_OF_JAVA: Final = re.compile(r"^(?:: |Caused by: )(.+)$", re.MULTILINE)
_CLASS_OF_JAVA: Final = re.compile(r"(?:[a-z]\w*\.)+\w*(?:Error|Exception): ")
_UNMADE: Final = re.compile(r"[Mm]kdirs? (?:of|failed to create) (?:file:)?(/\S+)")
_NO_SOURCE: Final = "[DATA_SOURCE_NOT_FOUND]"
_FULL: Final = "No space left on device"
_TWO_WRITERS: Final = "CONCURRENT_STREAM_LOG_UPDATE"
_WORKER_GONE: Final = "Python worker exited unexpectedly"
_NO_MEMORY: Final = "java.lang.OutOfMemoryError"
# Java fails before the last byte is taken.
_FREE_BYTES_MIN: Final = 1 << 20
_IMPORT_S_MAX: Final = 60


def spark_error_message(error: Exception, python: str, output: str | None = None) -> str:
    """The sentence in an error of Spark, whose workers run in `python`.

    `output` is the directory that was written to, if any.
    """
    said_first = str(error)
    # What a task of a stream met stands in Java's stack alone.
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
    """The sentence for a Java that ran out of memory, with its own words if it has left any."""
    return (
        f"Spark's Java process ran out of memory{said}: give it more, by spark-submit"
        " --driver-memory, or read less, as with --starting-offsets snapshot"
    )


def _where_full(output: str | None) -> str:
    """A full disk by its path: Java names none. Both places may be on one disk."""
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
    """Spark keeps to itself why the Python that it starts does not know the source: ask it anew."""
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
