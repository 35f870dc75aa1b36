"""Run every check that needs no simulation, write nothing, and say which failed.

The checks run without their caches, so that a verified checkout is byte for byte what it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS: tuple[tuple[str, ...], ...] = (
    ("ruff", "check", "--no-cache"),
    ("ruff", "format", "--check", "--no-cache"),
    ("mypy", f"--cache-dir={os.devnull}"),
    ("lint-imports", "--no-cache", "--no-logo"),
    ("python", "tools/gen_proto.py", "--check"),
    ("python", "tools/draw_state_diagram.py", "--check"),
    ("python", "tools/chart_values.py", "--check"),
    ("codespell",),
    ("python", "tools/lint.py"),
)


def passes(check: tuple[str, ...]) -> bool:
    """Run one check; print its name and duration, and what it said if it failed."""
    program, *arguments = check
    start = time.monotonic()
    done = subprocess.run(
        [str(BIN / program), *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    verdict = "ok" if done.returncode == 0 else "FAILED"
    print(f"{verdict:6} {time.monotonic() - start:5.1f} s  {' '.join(check)}", flush=True)
    if done.returncode != 0:
        print(done.stdout, flush=True)
    return done.returncode == 0


def main() -> int:
    """Run all checks, also after one has failed: a developer wants to see every finding."""
    verdicts = [passes(check) for check in CHECKS]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
