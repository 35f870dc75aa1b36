"""A controller leaves only when its StatefulSet says that it is scaled away."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from quorate.admin.statefulset import (
    WITHDRAWN_S,
    Fate,
    FateOfPod,
    StatefulSetAddress,
    fate_of,
    statefulset_at,
)
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def found(replicas: object, **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"replicas": replicas, **spec}}


@pytest.mark.parametrize(
    ("ordinal", "fate"),
    [
        (0, Fate.RETURNS),
        (2, Fate.RETURNS),
        (3, Fate.SCALED_AWAY),
        (4, Fate.SCALED_AWAY),
    ],
)
def test_ordinals_beyond_the_replicas_are_scaled_away(ordinal: int, fate: Fate) -> None:
    assert fate_of(found(3), ordinal) is fate


def test_ordinals_may_begin_later() -> None:
    assert fate_of(found(3, ordinals={"start": 5}), 7) is Fate.RETURNS
    assert fate_of(found(3, ordinals={"start": 5}), 8) is Fate.SCALED_AWAY


@pytest.mark.parametrize("replicas", [0, 3])
def test_a_deleted_statefulset_scales_nobody_away(replicas: int) -> None:
    gone = found(replicas)
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert fate_of(gone, 1) is Fate.ALL_GO


def test_without_replicas_all_stop_and_stay_voters() -> None:
    assert fate_of(found(0), 0) is Fate.ALL_GO


@pytest.mark.parametrize("odd", [{}, {"metadata": {}}, found(None), found("3")])
def test_what_is_no_statefulset_is_not_judged(odd: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError)):
        fate_of(odd, 0)


def test_the_address_is_that_of_the_pods_api_server() -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    named = statefulset_at("metadata/q-quorate", environment)

    assert named is not None
    assert named.url == (
        "https://10.0.0.1:6443/apis/apps/v1/namespaces/metadata/statefulsets/q-quorate"
    )
    six = statefulset_at("a/b", {"KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert six is not None
    assert six.url.startswith("https://[fd00::1]:443/")
    assert statefulset_at("", {}) is None


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="write NAMESPACE/NAME"):
        statefulset_at("q-quorate", {"KUBERNETES_SERVICE_HOST": "h"})
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is missing"):
        statefulset_at("a/b", {})


class ApiServer(HTTPServer):
    """Answers every request with the same, and keeps who asked."""

    status = 200
    answer: object = None
    tokens: list[str | None]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tokens = []

    def at(self, folder: Path) -> StatefulSetAddress:
        (folder / "token").write_text("secret\n")
        return StatefulSetAddress(url=f"http://127.0.0.1:{self.server_port}/q", account=str(folder))


class Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers["Authorization"])
        body = json.dumps(self.server.answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    # It answers, however busy the machine is.
    monkeypatch.setattr("quorate.admin.statefulset.LOOK_UP_S", 60.0)
    server = ApiServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def test_the_api_server_is_asked_with_the_accounts_token(
    api: ApiServer, tmp_path: Path
) -> None:
    api.answer = found(3)

    assert await FateOfPod(api.at(tmp_path), 2).look() is Fate.RETURNS
    assert await FateOfPod(api.at(tmp_path), 3).look() is Fate.SCALED_AWAY
    assert api.tokens == ["Bearer secret"] * 2


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_a_refusal_from_the_beginning_is_a_restart_and_said_once(
    api: ApiServer, tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    api.status = status
    api.answer = found(0)
    pod = FateOfPod(api.at(tmp_path), 3)

    for _ in range(2):
        assert await pod.look() is None
    assert caplog.text.count("a stop is taken for a restart") == 1
    assert "see that the account of the pod may get this one object" in caplog.text


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_rights_that_go_go_with_everything_else(
    api: ApiServer, tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 100.0
    api.answer = found(3)
    pod = FateOfPod(api.at(tmp_path), 2, clock=lambda: now_s)
    await pod.learn()
    # Once is enough.
    await pod.learn()
    assert len(api.tokens) == 1

    api.status = status

    if status != 404:
        # As from an API server that starts.
        assert await pod.look() is None
        now_s += WITHDRAWN_S
    assert await pod.look() is Fate.ALL_GO
    assert "could be read before, and is gone now" in caplog.text


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("between", [None, 200, 500])
async def test_an_api_server_that_starts_and_knows_nobody_yet_stops_nobody(
    api: ApiServer, tmp_path: Path, status: int, between: int | None
) -> None:
    now_s = 100.0
    api.answer = found(3)
    pod = FateOfPod(api.at(tmp_path), 2, clock=lambda: now_s)
    await pod.learn()

    api.status = status
    assert await pod.look() is None
    now_s += WITHDRAWN_S - 0.1
    assert await pod.look() is None
    if between is None:
        # Nobody has asked for long: it may have known better meanwhile.
        now_s += 3600.0
    else:
        # It knows after all, or fails.
        api.status = between
        await pod.look()
    api.status = status
    now_s += 0.1
    assert await pod.look() is None
    now_s += WITHDRAWN_S
    assert await pod.look() is Fate.ALL_GO


async def test_a_server_that_fails_has_taken_no_rights(api: ApiServer, tmp_path: Path) -> None:
    api.answer = found(3)
    pod = FateOfPod(api.at(tmp_path), 2)
    await pod.learn()

    api.status = 503

    assert await pod.look() is None


async def test_whoever_looks_all_the_time_is_told_what_was_seen_last(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answer = found(2)
    pod = FateOfPod(api.at(tmp_path), 2)
    monkeypatch.setattr("quorate.admin.statefulset.LOOK_AGAIN_S", 60.0)
    assert await pod.look_again() is Fate.SCALED_AWAY

    api.answer = found(3)

    assert await pod.look_again() is Fate.SCALED_AWAY
    monkeypatch.setattr("quorate.admin.statefulset.LOOK_AGAIN_S", 0.0)
    assert await pod.look_again() is Fate.RETURNS


async def test_nonsense_is_a_restart(api: ApiServer, tmp_path: Path) -> None:
    api.answer = ["no", "object"]

    assert await FateOfPod(api.at(tmp_path), 3).look() is None


async def test_nobody_there_is_a_restart(api: ApiServer, tmp_path: Path) -> None:
    named = api.at(tmp_path)
    (tmp_path / "token").unlink()

    assert await FateOfPod(named, 3).look() is None
