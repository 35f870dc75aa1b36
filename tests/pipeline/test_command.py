from __future__ import annotations

import sys
from importlib import import_module

import pytest

from quorate.pipeline.command import main, overview
from quorate.pipeline.jobs.registry import JOBS


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


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.tables])
def test_the_help_of_a_job_lists_the_columns_of_its_tables(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert not ended.value.code
    told = " ".join(capsys.readouterr().out.split())
    for table, schema in import_module(JOBS[name].module).SCHEMAS.items():
        assert f"columns of {table}: {', '.join(schema.names)}" in told


def test_help_goes_without_spark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, JOBS["elections"].module, None)
    with pytest.raises(SystemExit):
        main(["elections", "--help"])
    told = capsys.readouterr().out
    assert "--order-by" in told
    assert "columns of" not in told
