from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.cli import generate_log
from quorate.cli.main import main
from quorate.sim.log_generator import generator

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.sim.log_generator.options import WeekOptions

TINY = ("--days", "1", "--brokers", "3", "--topics", "3", "--records", "500")


def options_of(*words: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> WeekOptions:
    """The options with which the command would generate."""
    seen: list[WeekOptions] = []

    def note(root: str, options: WeekOptions, progress: object) -> generator.Generated:
        del root, progress
        seen.append(options)
        return generator.Generated(1, 1)

    monkeypatch.setattr(generator, "generate", note)
    assert main(["generate-log", *words, str(folder / "new")]) == 0
    return seen[0]


def test_every_flag_arrives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = (
        *("--seed", "5", "--days", "2", "--brokers", "4", "--topics", "6", "--records", "99"),
        *("--voters", "3", "--segment-bytes", "4096", "--snapshot-bytes", "2048"),
        *("--retention-bytes", "8192"),
    )
    options = options_of(*words, monkeypatch=monkeypatch, folder=tmp_path)
    assert (options.seed, options.days, options.brokers, options.topics) == (5, 2, 4, 6)
    assert (options.records, options.voters, options.segment_bytes) == (99, 3, 4096)
    assert (options.snapshot_bytes, options.retention_bytes) == (2048, 8192)


def test_a_week_of_a_hundred_brokers_is_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = options_of(monkeypatch=monkeypatch, folder=tmp_path)
    assert (options.days, options.brokers, options.topic_count) == (7, 100, 1000)
    assert (options.records, options.voters, options.retention_bytes) == (None, 1, -1)


def test_a_log_is_written_and_its_size_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "some" / "where"
    assert main(["generate-log", *TINY, str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{folder}: ")
    assert " records, the last epoch is " in out
    assert (folder / "meta.properties").is_file()
    assert main(["generate-log", *TINY, str(folder)]) == 1
    assert f"{folder} is not empty; name a new directory" in capsys.readouterr().err


def test_every_record_can_be_dumped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--segment-bytes", "20000", "--snapshot-bytes", "20000")
    assert main(["generate-log", *TINY, *words, str(tmp_path)]) == 0
    written = int(capsys.readouterr().out.split()[1])
    log_dir = tmp_path / "__cluster_metadata-0"
    logs = sorted(log_dir.glob("*.log"))
    assert len(logs) > 2
    files = ",".join(str(path) for path in (*logs, *log_dir.glob("*.checkpoint")))
    assert main(["dump-log", "--cluster-metadata-decoder", "--files", files]) == 0
    assert capsys.readouterr().err == ""
    names = ",".join(map(str, logs))
    assert main(["dump-log", "--cluster-metadata-decoder", "--files", names]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("| offset: ") for line in lines) == written


@pytest.mark.parametrize(
    ("flag", "value", "wrong"),
    [
        ("--days", "0", "0: it must be 1 to 366"),
        ("--brokers", "2", "2: it must be 3 to 2000"),
        ("--voters", "10", "10: it must be 1 to 9"),
        ("--records", "many", "'many': a whole number is needed"),
        ("--segment-bytes", "10", "10: it must be 1024 or more"),
        ("--retention-bytes", "-2", "-2: it must be -1 or more"),
    ],
)
def test_a_bad_number_is_named_with_its_flag(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flag: str, value: str, wrong: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["generate-log", flag, value, str(tmp_path / "new")])
    assert ended.value.code == 1
    assert f"argument {flag}: {wrong}" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_place_of_the_directory_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    assert main(["generate-log", *TINY, str(path)]) == 1
    assert f"DIR: {path} is no directory; name a new one" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_a_directory_without_a_name_is_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be the current working directory."""
    monkeypatch.chdir(tmp_path)
    assert main(["generate-log", *TINY, ""]) == 1
    assert "DIR: it is empty; name a new directory" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("had_it", [True, False])
def test_half_a_log_does_not_stay(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    had_it: bool,  # noqa: FBT001
) -> None:
    folder = tmp_path / "new"
    if had_it:
        folder.mkdir()

    def break_off(record_count: int, elapsed_ms: int) -> None:
        del elapsed_ms
        if record_count > 100:
            # A run that is killed here leaves nothing that opens.
            assert (folder / generate_log.UNFINISHED / "meta.properties").exists()
            assert not (folder / "meta.properties").exists()
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(generate_log, "_Progress", lambda _options: break_off)
    assert main(["generate-log", *TINY, str(folder)]) == 1
    assert "No space left on device; choose another place" in capsys.readouterr().err
    assert list(folder.iterdir()) == [] if had_it else not folder.exists()


def test_long_work_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(generate_log, "_TELL_EVERY_S", 0.0)
    assert main(["generate-log", *TINY, str(tmp_path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 23
    assert lines[-1].startswith("day 1 of 1, 23:00: ")
