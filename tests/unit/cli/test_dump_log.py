"""dump-log prints what is there, and says of any flipped byte where it is."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from quorate.cli.dump_log import damage
from quorate.cli.main import main
from quorate.records.batch import encode_batch
from quorate.records.control import LeaderChange, encode_control_batch
from quorate.records.ids import NodeId
from quorate.records.metadata import FeatureLevelRecord, encode_record

if TYPE_CHECKING:
    from pathlib import Path

LEVEL = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
LOG = "00000000000000000000.log"


def log_bytes() -> bytes:
    """Three epochs: a LeaderChange and a data batch each."""
    out = b""
    for index in range(3):
        change = LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))
        base, epoch = index * 3, index + 1
        out += encode_control_batch([change], timestamp_ms=5, base_offset=base, epoch=epoch)
        out += encode_batch([LEVEL, LEVEL], timestamp_ms=5, base_offset=base + 1, epoch=epoch)
    return out


def written(folder: Path, data: bytes) -> Path:
    path = folder / LOG
    path.write_bytes(data)
    (folder / "leader-epoch-checkpoint").write_text("0\n3\n1 0\n2 3\n3 6\n", encoding="ascii")
    return path


def test_a_healthy_log_is_printed_in_kafkas_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, log_bytes())
    assert main(["dump-log", "--cluster-metadata-decoder", "--files", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 ")
    assert lines[2].endswith("isvalid: true")
    assert 'LeaderChange: {"version":0,"leaderId":1,' in lines[3]
    assert lines[5].endswith(
        'payload: {"type":"FEATURE_LEVEL_RECORD","version":0,'
        '"data":{"name":"metadata.version","featureLevel":30}}'
    )
    assert len(lines) == 2 + 3 * 5


def test_any_flipped_byte_is_reported_with_file_and_offset(tmp_path: Path) -> None:
    sound = log_bytes()
    for position in range(len(sound)):
        data = bytearray(sound)
        data[position] ^= 0x40
        path = written(tmp_path, bytes(data))
        (finding,) = damage(str(path))
        assert finding.startswith(f"{path}: damaged at byte "), position


def test_damage_ends_with_status_1_and_the_rest_is_still_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(log_bytes())
    data[-1] ^= 1
    path = written(tmp_path, bytes(data))
    assert main(["dump-log", "--files", str(path)]) == 1
    shown = capsys.readouterr()
    assert "isvalid: false" in shown.out
    assert shown.err.startswith(f"{path}: damaged at byte ")


def test_bytes_that_are_no_batch_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, log_bytes() + b"torn")
    assert main(["dump-log", "--files", str(path)]) == 1
    assert f"Found 4 invalid bytes at the end of {path}" in capsys.readouterr().out


def test_json_has_an_object_for_every_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, log_bytes())
    assert main(["dump-log", "-o", "json", "--files", str(path)]) == 0
    batches = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [batch["baseOffset"] for batch in batches] == [0, 1, 3, 4, 6, 7]
    assert batches[0]["records"][0]["type"] == "LeaderChange"


def test_json_names_a_record_that_does_not_parse_and_shows_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = encode_control_batch(
        [LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))], timestamp_ms=5, epoch=1
    )
    odd = encode_batch([LEVEL, LEVEL[:-2], b"", LEVEL], timestamp_ms=5, base_offset=1, epoch=1)
    path = written(tmp_path, change + odd)
    (tmp_path / "leader-epoch-checkpoint").unlink()
    assert main(["dump-log", "-o", "json", "--files", str(path)]) == 1
    shown = capsys.readouterr()
    batches = [json.loads(line) for line in shown.out.splitlines()]
    kinds = ["error" if "error" in record else "sound" for record in batches[1]["records"]]
    assert kinds == ["sound", "error", "error", "sound"]
    assert [line.split(": ")[:2] for line in shown.err.splitlines()] == [
        [str(path), "offset 2"],
        [str(path), "offset 3"],
    ]


def test_records_are_printed_without_their_place_where_it_is_not_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Kafka's tool has it: batches stay, and a control record is an empty line."""
    path = written(tmp_path, log_bytes())
    flags = ["--skip-record-metadata", "--cluster-metadata-decoder"]
    assert main(["dump-log", *flags, "--files", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[2:6]] == [
        "baseOffset",
        "",
        "baseOffset",
        "| payload",
    ]
    assert lines[5].startswith('| payload: {"type":"FEATURE_LEVEL_RECORD"')


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump-log", "--files", str(tmp_path / LOG)]) == 1
    assert "--files" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "what"), [("pipe", "a pipe"), ("device", "a device")])
def test_what_is_no_file_is_not_read_for_ever(
    kind: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / LOG
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    assert main(["dump-log", "--files", str(path)]) == 1
    said = f"quorate dump-log: --files: {path}: it is {what}, not a regular file\n"
    assert capsys.readouterr() == ("", said)
