from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tools import lint, verify

if TYPE_CHECKING:
    import pytest


def test_a_check_that_passes_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.passes(("python", "-c", "print('chatter')"))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("ok ")
    assert line.endswith("python -c print('chatter')")


def test_a_check_that_fails_prints_all_that_it_said(capsys: pytest.CaptureFixture[str]) -> None:
    program = "import sys; print('finding'); sys.exit('reason')"
    assert not verify.passes(("python", "-c", program))
    verdict, *said = capsys.readouterr().out.splitlines()
    assert verdict.startswith("FAILED ")
    assert sorted(line for line in said if line) == ["finding", "reason"]


def test_make_help_lists_every_target_and_what_it_is_for() -> None:
    listing = subprocess.run(
        ["make", "--no-print-directory", "help"],  # noqa: S607
        cwd=lint.ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    described = [line.split(maxsplit=1) for line in listing.splitlines()]
    setup = ["help", "install", "pythons", "pipeline"]
    everyday = ["report", "run", "test", "test-fast", "verify", "fix", "sim", "chaos"]
    rest = ["kafka", "grpc", "interop", "bench", "image", "release", "e2e", "gen"]
    targets = [*setup, *everyday, *rest]
    assert [target for target, _ in described] == targets
