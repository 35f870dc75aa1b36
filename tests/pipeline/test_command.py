from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.command import main, overview
from quorate.pipeline.jobs.registry import JOBS

if TYPE_CHECKING:
    import pytest


def test_the_list_has_every_job_and_its_summary() -> None:
    lines = overview().splitlines()
    for job in JOBS.values():
        assert any(line.split() == [job.name, *job.summary.split()] for line in lines)


def test_words_without_a_log_are_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in JOBS:
        words = [name]
        for option in JOBS[name].options:
            words += [option.flag, "1"] if option.is_required else []
        assert main(words) == 1
        assert "--path: name the directory" in capsys.readouterr().err
