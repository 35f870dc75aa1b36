"""Copy the jars of stock Kafka, which tests/interop compares us with, into this checkout.

    python -m tools.fetch_kafka

Maven resolves tests/interop/stock/pom.xml from wherever its own settings say. The folder is
`.kafka`, or the one that QUORATE_KAFKA_JARS names. It appears whole or not at all, and is fetched
again when the pom has changed.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tools import fetched_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

POM = fetched_folder.ROOT / "tests" / "interop" / "stock" / "pom.xml"
JARS = fetched_folder.Fetched(
    variable="QUORATE_KAFKA_JARS",
    home=".kafka",
    tool="Maven",
    needs=(("mvn", "Maven"), ("java", "a Java runtime of version 17 or newer")),
    timeout_s=600,
    stamp="pom.sha256",
)


def jars_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the jars, which may not exist yet."""
    return JARS.folder(environment)


def is_complete(folder: Path, pom: Path = POM) -> bool:
    """True if the folder holds what the pom asks for."""
    return JARS.is_complete(folder, [pom])


def fetch(folder: Path, pom: Path = POM) -> str | None:
    """Let Maven copy the jars; None, or why it could not be done."""

    def command(fresh: Path) -> list[str]:
        maven = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", f"--file={pom}"]
        maven += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        return [*maven, f"-DoutputDirectory={fresh}"]

    return JARS.fill(folder, [pom], command)


def main() -> int:
    """Fetch what is not there yet; the exit status is 1 when that failed."""
    folder = jars_folder(os.environ)
    problem = None if is_complete(folder) else fetch(folder)
    if problem is not None:
        print(f"fetch_kafka: {problem}", file=sys.stderr)
        return 1
    print(f"stock Kafka: {len(list(folder.glob('*.jar')))} jars in {folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
