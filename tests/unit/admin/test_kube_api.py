"""The account's token goes with each call, and objects are read and made as JSON."""

from __future__ import annotations

import io
import socket
import threading
import urllib.error
from email.message import Message
from typing import TYPE_CHECKING

import pytest

from quorate.admin import kube_api
from quorate.admin.kube_api import ApiServer, api_server_of_pod, words_of
from quorate.settings.properties import ConfigError
from tests.unit.admin.api_servers import StandIn, api

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["api"]


def test_an_object_is_read_and_made_in_the_name_of_the_account(
    api: StandIn, tmp_path: Path
) -> None:
    server = api.at(tmp_path).server
    api.answer = {"kind": "Thing"}
    assert server.get("/things/1") == b'{"kind": "Thing"}'
    assert api.tokens == ["Bearer secret"]

    # Kubernetes renews it while the pod runs.
    (tmp_path / "token").write_text("renewed")
    server.get("/things/1")
    assert api.tokens[-1] == "Bearer renewed"

    assert server.post("/things", {"kind": "Thing"}) == b'{"kind": "Thing"}'
    assert api.posted == [("/things", {"kind": "Thing"})]


def test_what_is_refused_is_an_error_of_the_system(api: StandIn, tmp_path: Path) -> None:
    server = api.at(tmp_path).server
    api.status = 403
    with pytest.raises(urllib.error.HTTPError, match="403"):
        server.get("/things/1")
    with pytest.raises(OSError, match="403"):
        server.post("/things", {})
    (tmp_path / "token").unlink()
    with pytest.raises(FileNotFoundError):
        server.get("/things/1")


@pytest.mark.parametrize(
    "answer",
    [b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", b""],
)
def test_an_answer_that_breaks_off_is_an_error_of_the_system(tmp_path: Path, answer: bytes) -> None:
    (tmp_path / "token").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        server = ApiServer(
            url=f"http://127.0.0.1:{listening.getsockname()[1]}", account=str(tmp_path)
        )
        with pytest.raises(OSError, match=r".") as raised:
            server.get("/things/1")
        thread.join()
    assert words_of(raised.value)


def test_an_answer_has_one_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a socket begins again with each byte."""
    (tmp_path / "token").write_text("secret")
    monkeypatch.setattr(kube_api, "WHOLE_ANSWER_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(TimeoutError, match=r"no whole answer in 0\.01 s"):
            ApiServer(url=url, account=str(tmp_path)).get("/things/1")


def test_it_is_where_kubernetes_says_or_the_setting_is_named() -> None:
    told = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert api_server_of_pod("key", told).url == "https://10.0.0.1:6443"
    assert api_server_of_pod("key", {"KUBERNETES_SERVICE_HOST": "fd00::1"}).url == (
        "https://[fd00::1]:443"
    )
    with pytest.raises(ConfigError, match="key is for pods: KUBERNETES_SERVICE_HOST is missing"):
        api_server_of_pod("key", {})


def refused(body: bytes) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("u", 403, "Forbidden", Message(), io.BytesIO(body))


def test_a_refusal_is_told_in_the_api_servers_own_words() -> None:
    assert words_of(refused(b'{"message": "no right"}')) == "403 Forbidden: no right"
    for body in (b"", b"text", b"[]", b"{}"):
        assert words_of(refused(body)) == "403 Forbidden"
    assert words_of(TimeoutError()) == "TimeoutError"
    assert words_of(OSError("gone")) == "gone"


def test_a_name_that_does_not_resolve_is_told_as_that() -> None:
    absent = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    told = "the name of the API server does not resolve: Name or service not known"
    assert words_of(urllib.error.URLError(absent)) == told
    assert words_of(absent) == told
