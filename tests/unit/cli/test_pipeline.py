"""`quorate pipeline` without Spark: help, and the sentence that says what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quorate.cli.main import main


def test_help_lists_the_jobs_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  elections  ") for line in lines)


def test_a_job_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "elections", "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: quorate pipeline elections ")


def test_without_spark_a_job_says_what_to_install() -> None:
    lacking = (
        "import sys; sys.modules.update(dict.fromkeys(['pyspark', 'pyarrow', 'pandas', 'py4j']));"
        "from quorate.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", lacking, "pipeline", "elections", "--path", "somewhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "quorate pipeline elections: pyspark is missing: install it with"
        " python -m pip install 'quorate[pipeline]'\n"
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "JOB"),
        (["histories"], "JOB"),
        (["elections", "--format", "xml"], "--format"),
        (["elections", "--rows", "0"], "--rows"),
        (["elections", "--table", "brokers"], "--table"),
        (["elections", "--paths", "d"], "--paths"),
    ],
)
def test_bad_words_end_with_one_line_that_names_them(
    capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", *words])
    assert ended.value.code == 1
    assert named in capsys.readouterr().err
