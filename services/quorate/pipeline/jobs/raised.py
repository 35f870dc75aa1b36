"""What Spark raises, as one sentence that names what is at fault and the remedy.

Its errors quote the traceback of the process that read the log, or a stack of Java's, and what can
be mended is somewhere in the middle of it.
"""

from __future__ import annotations

import re
import subprocess
from typing import Final

# What Python said last in the traceback of a worker: the error's class and its sentence.
_OF_PYTHON: Final = re.compile(r"^(?:[\w.]*\.)?\w*(?:Error|Exception): (.+)$", re.MULTILINE)
# Java's own, and what caused it; either may quote another one's in its line.
_OF_JAVA: Final = re.compile(r"^(?:: |Caused by: )(.+)$", re.MULTILINE)
_CLASS_OF_JAVA: Final = re.compile(r"(?:[a-z]\w*\.)+\w*(?:Error|Exception): ")
_UNMADE: Final = re.compile(r"[Mm]kdirs? (?:of|failed to create) (?:file:)?(/\S+)")
_NO_SOURCE: Final = "[DATA_SOURCE_NOT_FOUND]"
_IMPORT_S_MAX: Final = 60


def what_was_said(error: Exception, python: str) -> str:
    """The sentence in an error of Spark, whose workers run in `python`."""
    text = str(error)
    if _NO_SOURCE in text:
        return _why_no_source(python)
    of_python = _OF_PYTHON.findall(text)
    if of_python:
        return str(of_python[-1])
    of_java = _OF_JAVA.findall(text)
    if not of_java:
        return text.strip().splitlines()[0]
    unmade = _UNMADE.search(text)
    if unmade is not None:
        return (
            f"{unmade[1]} cannot be made: let the user that runs Spark write there, or name another"
            " place"
        )
    return _CLASS_OF_JAVA.split(of_java[-1])[-1]


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
