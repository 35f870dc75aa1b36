"""A controller leaves only when its StatefulSet says that it is scaled away."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from quorate.admin.statefulset import StatefulSet, statefulset_at, wants
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def found(replicas: object, **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"replicas": replicas, **spec}}


@pytest.mark.parametrize(("ordinal", "is_wanted"), [(0, True), (2, True), (3, False), (4, False)])
def test_ordinals_beyond_the_replicas_are_scaled_away(ordinal: int, *, is_wanted: bool) -> None:
    assert wants(found(3), ordinal) is is_wanted


def test_ordinals_may_begin_later() -> None:
    assert wants(found(3, ordinals={"start": 5}), 7)
    assert not wants(found(3, ordinals={"start": 5}), 8)


def test_a_deleted_statefulset_scales_nobody_away() -> None:
    gone = found(0)
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert wants(gone, 4)


@pytest.mark.parametrize("odd", [{}, {"metadata": {}}, found(None), found("3")])
def test_what_is_no_statefulset_is_not_judged(odd: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError)):
        wants(odd, 0)


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

    def at(self, folder: Path) -> StatefulSet:
        (folder / "token").write_text("secret\n")
        return StatefulSet(url=f"http://127.0.0.1:{self.server_port}/q", account=str(folder))


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

    assert await api.at(tmp_path).has(2)
    assert not await api.at(tmp_path).has(3)
    assert api.tokens == ["Bearer secret"] * 2


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_a_refusal_is_a_restart(
    api: ApiServer, tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    api.status = status
    api.answer = found(0)

    assert await api.at(tmp_path).has(3)
    assert "this stop is taken for a restart" in caplog.text


async def test_nonsense_is_a_restart(api: ApiServer, tmp_path: Path) -> None:
    api.answer = ["no", "object"]

    assert await api.at(tmp_path).has(3)


async def test_nobody_there_is_a_restart(api: ApiServer, tmp_path: Path) -> None:
    named = api.at(tmp_path)
    (tmp_path / "token").unlink()

    assert await named.has(3)
