from __future__ import annotations

import signal
import sys
from importlib import import_module

import pytest

from quorate.pipeline.command import main, overview
from quorate.pipeline.jobs.registry import JOBS

RUNNING = "quorate.pipeline.jobs.job_runner"


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


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_while_spark_is_imported_ends_a_job_with_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    status: int,
) -> None:
    class Signalled:
        """Finds no module."""

        def find_spec(self, name: str, *_: object) -> None:
            """A signal comes when the one is looked for that imports Spark."""
            if name == RUNNING:
                signal.raise_signal(number)

    monkeypatch.delitem(sys.modules, RUNNING, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Signalled(), *sys.meta_path])
    assert main(["elections", "--path", "a"]) == status
    assert capsys.readouterr().err == (
        f"quorate pipeline elections: {number.name} ended it before it was done; run it again\n"
    )
