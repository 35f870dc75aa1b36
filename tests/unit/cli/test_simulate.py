from __future__ import annotations

import argparse
import itertools
import re
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

import pytest

from quorate.cli.simulate import NAMED_MAX, Seeds, parse_seeds, register
from quorate.sim import parallel_runner
from quorate.sim.failure import Failure
from quorate.sim.runner import SeedResult

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    arguments = parser.parse_args(["simulate", *words])
    status = arguments.run(arguments)
    assert isinstance(status, int)
    return status


def replace_worlds(
    monkeypatch: pytest.MonkeyPatch, failure_of: Callable[[int], str | None]
) -> list[int]:
    """Seeds take no time, and fail as told; those that were begun are in the list."""
    begun: list[int] = []

    def run_seeds(seeds: Iterable[int], **_: object) -> Generator[SeedResult]:
        for seed in seeds:
            begun.append(seed)
            words = failure_of(seed)
            failure = None if words is None else Failure("Oracle", words)
            yield SeedResult(seed, "voters=1", failure, "", "", 1, 1, 1)

    monkeypatch.setattr(parallel_runner, "run_seeds", run_seeds)
    return begun


@pytest.mark.parametrize(
    ("text", "seeds"), [("7", (7, 7)), ("1-200", (1, 200)), ("0-0", (0, 0)), ("8-", (8, None))]
)
def test_seeds_are_one_number_or_a_range(text: str, seeds: tuple[int, int | None]) -> None:
    assert parse_seeds(text) == Seeds(*seeds)


@pytest.mark.parametrize("text", ["", "x", "-", "x-", "-3", "5-4", "1-2-3"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a seed|begins behind its end"):
        parse_seeds(text)


def test_a_bad_range_is_named_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--seeds", "9-1")
    assert "'9-1' begins behind its end" in capsys.readouterr().err


def test_a_clean_seed_prints_one_line_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--seeds", "1", "--jobs", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("seed 1: clean; ")
    assert lines[1:] == ["seed 1: 1 run, 0 failed"]


def test_a_failing_seed_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    status = run("--seeds", "1-8", "--jobs", "1", "--bug", "minority-commits", "--lines", "5")
    out = capsys.readouterr().out
    assert status == 1
    assert "FAILED: AcknowledgedSurvives: " in out
    assert "repeat: quorate simulate --seeds 8 --bug minority-commits" in out


def test_an_unknown_bug_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--seeds", "1", "--bug", "no-such-bug") == 1
    assert "there is no 'no-such-bug', only vote-not-persisted, " in capsys.readouterr().err


def test_a_transcript_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--seeds", "1", "--jobs", "1", "--transcript") == 0
    assert capsys.readouterr().out.startswith("[     0] * > voters=")


def test_without_seeds_the_clock_chooses_and_the_command_to_repeat_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = replace_worlds(monkeypatch, lambda _: "broken")
    assert run("--until-failure", "--bug", "minority-commits") == 1
    told = capsys.readouterr().out.splitlines()[0]
    words = re.search(r"repeat: quorate simulate (--seeds (\d+)- .*)", told)
    assert words is not None
    assert begun == [int(words[2])]
    again = replace_worlds(monkeypatch, lambda _: "broken")
    assert run(*words[1].split()) == 1
    assert again == begun


def test_no_seed_is_begun_once_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = replace_worlds(monkeypatch, lambda _: None)
    clock = itertools.count(0, 20)
    monkeypatch.setattr("quorate.cli.simulate.time.monotonic", lambda: next(clock))
    assert run("--seeds", "5-", "--for", "1m") == 0
    assert begun == [5, 6]
    assert capsys.readouterr().out.splitlines()[-1] == "seeds 5-6: 2 run, 0 failed"


def test_the_first_failure_ends_a_run_that_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = replace_worlds(monkeypatch, lambda seed: "broken" if seed > 8 else None)
    assert run("--seeds", "7-20", "--until-failure") == 1
    assert begun == [7, 8, 9]


def interrupt_at_9(seed: int) -> None:
    if seed == 9:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("seeds", "status"), [("7-20", 130), ("7-", 0)])
def test_ctrl_c_ends_with_a_summary(
    seeds: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the way to end a run that has no end of its own."""
    replace_worlds(monkeypatch, interrupt_at_9)
    assert run("--seeds", seeds) == status
    assert capsys.readouterr().out.splitlines()[-1] == "seeds 7-8: 2 run, 0 failed"


def kill_at_9(seed: int) -> None:
    if seed == 9:
        raise BrokenProcessPool


def test_a_process_that_was_killed_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_worlds(monkeypatch, kill_at_9)
    assert run("--seeds", "7-20") == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "seeds 7-8: 2 run, 0 failed"
    assert "was killed; with fewer --jobs" in told.err


def test_of_many_failures_the_first_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_worlds(monkeypatch, lambda _: "broken")
    assert run("--seeds", "1-50") == 1
    names = " ".join(map(str, range(1, NAMED_MAX + 1)))
    assert capsys.readouterr().out.endswith(f"\nseeds 1-50: 50 run, 50 failed {names} ...\n")


@pytest.mark.parametrize("flag", ["--for", "--jobs", "--lines", "--seeds"])
def test_what_a_flag_cannot_be_is_told_with_the_flag(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(flag, "soon")
    assert f"argument {flag}: 'soon'" in capsys.readouterr().err


def test_a_failing_seed_is_kept_as_a_small_case_which_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--bug", "minority-commits", "--lines", "2"]
    assert run("--seeds", "8", *words, "--shrink", str(tmp_path / "kept")) == 1
    (path,) = (tmp_path / "kept").iterdir()
    assert path.name == "AcknowledgedSurvives-8.case"
    assert f"repeat: quorate simulate --case {path}" in capsys.readouterr().out
    assert run("--case", str(path)) == 1
    assert "FAILED: AcknowledgedSurvives: " in capsys.readouterr().out


def test_a_case_that_is_clean_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quiet.case"
    path.write_text("seed 1\nworld duration_ms=1\n", encoding="utf-8")
    assert run("--case", str(path)) == 0
    assert capsys.readouterr().out.startswith(f"case {path}: clean; ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"seed 1\nworld voters=x\n", "line 2: voters: 'x': a whole"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_what_is_no_case_is_refused(
    text: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.case"
    path.write_bytes(text)
    assert run("--case", str(path)) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"--case {path}: ")
    assert message in told


def test_a_case_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--case", str(tmp_path / "none.case")) == 1
    assert "none.case" in capsys.readouterr().err
