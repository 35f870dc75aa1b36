"""A stand-in for the API server of Kubernetes: the same answer to each, and what was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from quorate.admin.kube_api import ApiServer
from quorate.admin.statefulset import StatefulSetAddress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class StandIn(HTTPServer):
    """A namespace that is a number is a status."""

    status = 200
    answer: object = None
    namespace: object = 403
    tokens: list[str | None]
    posted: list[tuple[str, Any]]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tokens = []
        self.posted = []

    def at(self, folder: Path) -> StatefulSetAddress:
        """StatefulSet q of namespace ns, for the account in this folder."""
        (folder / "token").write_text("secret\n")
        server = ApiServer(url=f"http://127.0.0.1:{self.server_port}", account=str(folder))
        return StatefulSetAddress(server=server, namespace="ns", name="q")


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers["Authorization"])
        if self.path == "/api/v1/namespaces/ns":
            namespace = self.server.namespace
            self._answer(namespace if isinstance(namespace, int) else 200, namespace)
        else:
            self._answer(self.server.status, self.server.answer)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append((self.path, body))
        self._answer(self.server.status, body)

    def _answer(self, status: int, what: object) -> None:
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    # It answers, however busy the machine is.
    monkeypatch.setattr("quorate.admin.statefulset.ANSWER_S", 60.0)
    monkeypatch.setattr("quorate.admin.kube_api.ANSWER_S", 60.0)
    server = StandIn()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
