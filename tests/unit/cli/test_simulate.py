from __future__ import annotations

import argparse

import pytest

from quorate.cli.simulate import parse_seeds, register


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    arguments = parser.parse_args(["simulate", *words])
    status = arguments.run(arguments)
    assert isinstance(status, int)
    return status


@pytest.mark.parametrize(("text", "seeds"), [("7", (7, 7)), ("1-200", (1, 200)), ("0-0", (0, 0))])
def test_seeds_are_one_number_or_a_range(text: str, seeds: tuple[int, int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "x", "1-", "-3", "5-4", "1-2-3"])
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
    assert lines[1:] == ["1 seeds, 0 failed"]


def test_a_failing_seed_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    status = run("--seeds", "1-8", "--jobs", "1", "--bug", "minority-commits", "--lines", "5")
    out = capsys.readouterr().out
    assert status == 1
    assert "FAILED: Violation: " in out
    assert "repeat: quorate simulate --seeds 8 --bug minority-commits" in out


def test_an_unknown_bug_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--seeds", "1", "--bug", "no-such-bug") == 1
    assert "there is no 'no-such-bug', only vote-not-persisted, " in capsys.readouterr().err


def test_a_transcript_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--seeds", "1", "--jobs", "1", "--transcript") == 0
    assert capsys.readouterr().out.startswith("[     0] * > voters=")
