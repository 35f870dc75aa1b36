"""Copy the jars of stock Kafka, which tests/interop compares us with, into this checkout.

    python tools/fetch_kafka.py

Maven resolves tests/interop/stock/pom.xml from wherever its own settings say. The folder is
`.kafka`, or the one that QUORATE_KAFKA_JARS names. It appears whole or not at all, and is fetched
again when the pom has changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent.parent
POM = ROOT / "tests" / "interop" / "stock" / "pom.xml"
VARIABLE = "QUORATE_KAFKA_JARS"
STAMP = "pom.sha256"
TIMEOUT_S = 600


def jars_folder(environment: Mapping[str, str]) -> Path:
    """Where the jars are, or will be."""
    return Path(environment.get(VARIABLE) or ROOT / ".kafka").absolute()


def stamp_of(pom: Path) -> str:
    """What a folder that was made from this pom carries."""
    return hashlib.sha256(pom.read_bytes()).hexdigest()


def is_complete(folder: Path, pom: Path = POM) -> bool:
    """Whether the folder holds what the pom asks for."""
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == stamp_of(pom)


def fetch(folder: Path, pom: Path = POM) -> str | None:
    """Let Maven copy the jars; None, or why it could not be done."""
    for program, package in (("mvn", "Maven"), ("java", "a Java runtime of version 17 or newer")):
        if shutil.which(program) is None:
            return f"{program} is not on the PATH: install {package}"
    if folder.exists() and any(folder.iterdir()) and not (folder / STAMP).exists():
        return f"{folder} holds something else: let {VARIABLE} name a folder of its own"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as scratch:
        fresh = Path(scratch) / "jars"
        command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", f"--file={pom}"]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(
                [*command, f"-DoutputDirectory={fresh}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            return f"Maven was not done after {TIMEOUT_S} s: see whether its repository answers"
        if done.returncode != 0:
            return f"Maven failed:\n{done.stdout}"
        (fresh / STAMP).write_text(stamp_of(pom), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return None


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
