"""Output of `quorate up` about its controllers."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from rich.console import Console

from quorate.cli import up
from quorate.cli.local_quorum import NodePlan, open_quorum
from quorate.cli.main import main
from quorate.cli.supervisor import Child
from quorate.cli.up import Row, StatusLog, leader_of, rows_of, table_of
from quorate.raft.messages import DescribeQuorumResponse, LeaderInfo, ReplicaState
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, Offset, ReplicaKey
from quorate.settings.property_files import read_properties
from quorate.storage.directory_lock import DirectoryLock
from tests.ports import PORTS


def child(node_id: int, pid: int | None) -> Child:
    node = NodePlan(node_id, 9093 + node_id, Path("data"))
    return Child(node, pid, "" if pid else "killed by SIGKILL")


def ends(*replicas: tuple[int, int]) -> tuple[ReplicaState, ...]:
    return tuple(
        ReplicaState(
            key=ReplicaKey(NodeId(i)),
            log_end_offset=Offset(end),
            last_fetch_ms=None,
            last_caught_up_ms=None,
        )
        for i, end in replicas
    )


LEADER = DescribeQuorumResponse(
    error=ErrorCode.NONE,
    leader=LeaderInfo(NodeId(1), Epoch(4)),
    high_watermark=Offset(9),
    voters=ends((1, 9), (2, 7), (3, 0)),
)
STALE = DescribeQuorumResponse(
    error=ErrorCode.NONE,
    leader=LeaderInfo(NodeId(2), Epoch(3)),
    high_watermark=Offset(9),
    voters=ends((1, 9), (2, 9), (3, 0)),
)
FOLLOWER = DescribeQuorumResponse(
    error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
    leader=LeaderInfo(NodeId(1), Epoch(4)),
    remarks=("healing",),
)
SEEKING = DescribeQuorumResponse(
    error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=LeaderInfo(None, Epoch(4))
)


def test_of_two_leaders_the_one_of_the_higher_epoch_counts() -> None:
    assert leader_of({1: STALE, 2: LEADER, 3: FOLLOWER}) is LEADER
    assert leader_of({1: "no answer in time", 2: FOLLOWER}) is None


def test_every_controller_has_a_row() -> None:
    children = [child(1, 11), child(2, 12), child(3, None), child(4, 14), child(5, 15)]
    refused = "connection refused"
    answers: dict[int, DescribeQuorumResponse | str]
    answers = {1: LEADER, 2: FOLLOWER, 4: refused, 5: SEEKING}
    assert rows_of(children, answers) == [
        Row(1, "127.0.0.1:9094", 11, "Leader", 4, 9, 0),
        Row(2, "127.0.0.1:9095", 12, "Follower", 4, 7, 2, "healing"),
        Row(3, "127.0.0.1:9096", None, "down", remarks="killed by SIGKILL"),
        Row(4, "127.0.0.1:9097", 14, "no answer", remarks="connection refused"),
        Row(5, "127.0.0.1:9098", 15, "seeks a leader", 4),
    ]


def test_without_a_terminal_only_changes_are_said() -> None:
    said: list[str] = []
    changes = StatusLog(said.append)
    following = Row(2, "h:2", 12, "Follower", 4, 7, 2)
    changes.show([Row(1, "h:1", 11, "Leader", 4, 9, 0), following])
    changes.show([Row(1, "h:1", 11, "Leader", 4, 12, 0), following])
    changes.show([Row(1, "h:1", None, "down", remarks="killed"), following])
    changes.show([Row(1, "h:1", 13, "no answer", remarks="connection refused"), following])
    assert said == [
        "controller 1: Leader (epoch 4)",
        "controller 2: Follower (epoch 4)",
        "controller 1: no answer, connection refused",
    ]


def test_a_collector_is_in_the_settings_of_every_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_: object) -> None:
        return

    monkeypatch.setattr(up, "_run", nothing)
    where = ["--data-dir", str(tmp_path), "--base-port", str(min(PORTS))]
    monkeypatch.setattr(up, "check_ports", lambda _: None)
    assert main(["up", *where, "--otlp", "localhost:4317"]) == 0
    settings = [read_properties(str(path)) for path in tmp_path.glob("*/controller.properties")]
    assert [found["tracing.otlp.endpoint"] for found in settings] == ["http://localhost:4317"] * 3
    assert main(["up", *where]) == 0
    for path in tmp_path.glob("*/controller.properties"):
        assert "tracing.otlp.endpoint" not in read_properties(str(path))


def test_a_collector_that_is_no_address_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--data-dir", str(tmp_path / "data"), "--otlp", "localhost"]) == 1
    assert "--otlp has 'localhost': write HOST:PORT" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("file", "is no directory"),
        ("file/below", "lies below a file"),
        ("loop", "is no directory"),
        ("d" * 256, ": File name too long"),
    ],
)
def test_what_can_be_no_data_directory_is_named_with_the_option(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    problem: str,
) -> None:
    monkeypatch.setattr(up, "check_ports", lambda _: None)
    (tmp_path / "file").write_text("no directory")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = sorted(tmp_path.iterdir())
    assert main(["up", "--data-dir", str(tmp_path / name)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: --data-dir: {tmp_path / name}")
    assert said.endswith(f"{problem}; choose another directory\n")
    assert sorted(tmp_path.iterdir()) == before


def test_a_data_directory_without_permission_is_named_with_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "quorum.json"))

    monkeypatch.setattr(up, "check_ports", lambda _: None)
    monkeypatch.setattr(up, "prepare", forbidden)
    assert main(["up", "--data-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"error: --data-dir: {tmp_path}/quorum.json: Permission denied; choose another directory\n"
    )


def test_a_data_directory_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["up", "--data-dir", ""])
    assert ended.value.code == 1
    assert "argument --data-dir: it is empty: name a directory" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 120])
def test_addresses_and_remarks_are_whole_at_the_usual_widths(tmp_path: Path, width: int) -> None:
    quorum = open_quorum(tmp_path / "[red]", controllers=2, base_port=31_000)
    seeking = Row(1, "127.0.0.1:31000", 4_194_304, "seeks a leader", 12_345, 123_456_789_012, 10)
    down = Row(2, "127.0.0.1:31001", None, "down", remarks="killed by SIGKILL, see [1] a\nb")
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(table_of([seeking, down], quorum, width))
    shown = captured.get()
    lines = shown.splitlines()
    assert "/[red]" in shown
    assert "controller 2: killed by SIGKILL, see [1] a\\nb" in [line.rstrip() for line in lines]
    cells = [[cell.strip() for cell in line.split("│")] for line in lines if "│" in line]
    assert cells[0] == [
        *("1", "127.0.0.1:31000", "4194304", "seeks a leader", "12345", "123456789012", "10")
    ]
    assert cells[1] == ["2", "127.0.0.1:31001", "-", "down", "-", "-", "-"]


@pytest.mark.parametrize("width", [40, 57, 58, 69, 70, 79])
def test_a_narrow_terminal_has_fewer_columns_and_whole_states(tmp_path: Path, width: int) -> None:
    quorum = open_quorum(tmp_path, controllers=2, base_port=31_000)
    seeking = Row(1, "127.0.0.1:31000", 4_194_304, "seeks a leader", 12, 123_456_789, 10)
    down = Row(2, "127.0.0.1:31001", None, "down")
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(table_of([seeking, down], quorum, console.width))
    lines = captured.get().splitlines()
    head = next(line for line in lines if "┃" in line)
    names = [name.strip() for name in head.split("┃")]
    cells = [[cell.strip() for cell in line.split("│")] for line in lines if "│" in line]
    rows = [dict(zip(names, row, strict=True)) for row in cells]
    assert [row["State"] for row in rows] == ["seeks a leader", "down"]
    assert ("Address" in names, "Pid" in names) == (width >= 58, width >= 70)
    assert {"Epoch", "Lag"} < set(names)
    assert "LogEndOffset" not in names
    assert (rows[0]["Epoch"], rows[0]["Lag"]) == ("12", "10")
    assert rows[0].get("Address", "127.0.0.1:31000") == "127.0.0.1:31000"


def test_a_directory_belongs_to_one_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def nothing(_: object) -> None:
        return

    monkeypatch.setattr(up, "_run", nothing)
    monkeypatch.setattr(up, "check_ports", lambda _: None)
    with DirectoryLock(str(tmp_path)):
        assert main(["up", "--data-dir", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"/.lock is held by process {os.getpid()}: " in said
    assert said.endswith("use another --data-dir\n")
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
