"""As much of an API server as an operator asks that has nothing to do: a StatefulSet without pods.

On loopback, in a thread. What is created or patched is taken and forgotten, but for Leases.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import yaml

from tests.chart.monitoring import NAMESPACE, STATEFUL_SET
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPLICAS = 3
_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {
        "name": STATEFUL_SET,
        "namespace": NAMESPACE,
        "uid": "set",
        "resourceVersion": "1",
        "generation": 1,
    },
    "spec": {
        "replicas": REPLICAS,
        "serviceName": f"{STATEFUL_SET}-headless",
        "selector": {"matchLabels": {"app": "quorate"}},
        "template": {"metadata": {}, "spec": {"containers": []}},
        "updateStrategy": {"type": "OnDelete"},
    },
    "status": {"replicas": 0, "observedGeneration": 1, "updateRevision": "1"},
}
_KINDS = {"pods": ("Pod", "v1"), "statefulsets": ("StatefulSet", "apps/v1")}


_DISCOVERY: dict[str, object] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
            }
        ],
    },
}


class _Handler(BaseHTTPRequestHandler):
    leases: dict[str, Any]
    over: threading.Event

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        last = path.rpartition("/")[2]
        if last == STATEFUL_SET:
            self._answer(200, _SET)
        elif "/leases/" in path and last in self.leases:
            self._answer(200, self.leases[last])
        elif path in _DISCOVERY:
            self._answer(200, _DISCOVERY[path])
        elif path in ("/api/v1", "/apis/apps/v1"):
            self._answer(200, _resources(path))
        elif last in _KINDS:
            self._list(last, is_watch="watch=true" in query)
        else:
            self._answer(404, {"kind": "Status", "code": 404, "reason": "NotFound"})

    def do_POST(self) -> None:
        self._keep(201)

    def do_PUT(self) -> None:
        self._keep(200)

    def do_PATCH(self) -> None:
        self._body()
        self._answer(200, _SET)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""

    def _body(self) -> Any:  # noqa: ANN401 - whatever a client sends
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    def _keep(self, status: int) -> None:
        body = self._body()
        if "/leases" in self.path:
            body["metadata"]["resourceVersion"] = str(len(self.leases) + 1)
            self.leases[body["metadata"]["name"]] = body
        self._answer(status, body)

    def _list(self, plural: str, *, is_watch: bool) -> None:
        kind, version = _KINDS[plural]
        items = [_SET] if plural == "statefulsets" else []
        if is_watch:
            # Nothing ever happens.
            self.over.wait()
            self._answer(200, None)
            return
        metadata = {"resourceVersion": "1"}
        listed = {"kind": f"{kind}List", "apiVersion": version, "metadata": metadata}
        self._answer(200, listed | {"items": items})

    def _answer(self, status: int, body: object) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(content)


def _resources(path: str) -> dict[str, object]:
    version = path.partition("/api/")[2] or path.partition("/apis/")[2]
    resources = [
        {
            "name": plural,
            "singularName": kind.lower(),
            "namespaced": True,
            "kind": kind,
            "verbs": ["get", "list", "watch", "patch"],
        }
        for plural, (kind, its_version) in _KINDS.items()
        if its_version == version
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


@contextmanager
def kubernetes_api(folder: Path) -> Iterator[Path]:
    """Serves it; the path is that of a kubeconfig."""
    over = threading.Event()
    handler = type("Handler", (_Handler,), {"leases": {}, "over": over})
    server = ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {"name": "c", "cluster": {"server": f"http://{HOST}:{server.server_port}"}}
                ],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    try:
        yield path
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
