"""`quorate trace-id`: the id, the page, and what it asks of whom."""

from __future__ import annotations

import json

import pytest

from quorate.cli.main import main
from quorate.client.controller_calls import ApiVersions
from quorate.client.controller_client import ControllerClient

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
OF_EPOCH_7 = "cd832b1a51a7cc7a2973629a5d19685d"


def test_the_id_of_a_cluster_and_an_epoch_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace-id", "--cluster-id", CLUSTER, "--epoch", "7"]) == 0
    assert capsys.readouterr().out == f"{OF_EPOCH_7}\n"


@pytest.mark.parametrize("url", ["http://localhost:16686", "http://localhost:16686/"])
def test_jaegers_page_comes_after_it(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["trace-id", "--cluster-id", CLUSTER, "--epoch", "7", "--jaeger", url]
    page = f"http://localhost:16686/trace/{OF_EPOCH_7}"
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{OF_EPOCH_7}\n{page}\n"
    assert main([*arguments, "-o", "json"]) == 0
    told = {"clusterId": CLUSTER, "epoch": 7, "traceId": OF_EPOCH_7, "url": page}
    assert json.loads(capsys.readouterr().out) == told


def test_a_controller_is_asked_for_the_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def api_versions(_: ControllerClient) -> ApiVersions:
        return ApiVersions(CLUSTER, 1, "9")

    monkeypatch.setattr(ControllerClient, "api_versions", api_versions)
    assert main(["trace-id", "--bootstrap-controller", "127.0.0.1:1", "--epoch", "7"]) == 0
    assert capsys.readouterr().out == f"{OF_EPOCH_7}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epoch", "7"], "give --cluster-id ID, or --bootstrap-controller"),
        (["--epoch", "7", "--cluster-id", ""], "--cluster-id: it is empty"),
        (["--epoch", "7", "--cluster-id", "a", "--jaeger", "jaeger:1"], "is no URL such as http"),
        (
            ["--epoch", "7", "--cluster-id", "a", "--jaeger", "http://[::1"],
            "is no URL such as http",
        ),
        (["--epoch", "7", "--cluster-id", "a", "--jaeger", "http://h:99999"], "is no URL such as"),
        (
            ["--epoch", "7", "--cluster-id", "\udcff"],
            "--cluster-id: '\\udcff' has bytes that are no",
        ),
        (["--epoch", "-1", "--cluster-id", "a"], "--epoch"),
        (["--epoch", "4294967296", "--cluster-id", "a"], "--epoch"),
        (["--cluster-id", "a"], "--epoch"),
    ],
)
def test_what_cannot_be_told_is_one_line_with_the_flag(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["trace-id", *arguments])
    except SystemExit as ended:
        status = int(str(ended.code))
    assert status == 1
    assert words in capsys.readouterr().err
