"""As much of Kubernetes' API server as the containers of the chart ask for, with TLS, in a thread.

It keeps Secrets, ConfigMaps and one number of replicas, and wants the token of the account.
"""

from __future__ import annotations

import ctypes
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from tests.certificates import LOOPBACK, Authority

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

T = TypeVar("T")
CLONE_NEWNET: Final = 0x40000000
TOKEN: Final = "a-token"  # noqa: S105 - it opens nothing but this
SECRETS: Final = "/api/v1/namespaces/default/secrets"
CLUSTER: Final = "/api/v1/namespaces/default/configmaps/q-quorate-cluster"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
STATEFULSET: Final = "/apis/apps/v1/namespaces/default/statefulsets/q-quorate"


class ApiServer:
    """Use as a context manager. `account` is what is mounted into pods."""

    def __init__(
        self,
        folder: Path,
        network: Path | None = None,
        config_maps: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """`network` is the network namespace to listen in, on its loopback.

        `config_maps` are those of all API servers of one cluster.
        """
        self.account = folder / "account"
        self.account.mkdir(parents=True)
        self.secrets: dict[str, dict[str, Any]] = {}
        self.config_maps = {} if config_maps is None else config_maps
        # Status by the begin of `METHOD path`, for requests that it refuses.
        self.refused: dict[str, int] = {}
        # None where the StatefulSet is gone.
        self.replicas: int | None = 3
        # What the newest revision says of its number.
        self.recorded = "rendered"
        self.calls: list[str] = []
        authority = Authority("cluster")
        (self.account / "ca.crt").write_bytes(authority.pem)
        (self.account / "token").write_text(TOKEN)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.leaf("kubernetes").write(folder / "api.pem"))
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def do_POST(self) -> None:
                server.answer(self)

            def do_PUT(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing is to be seen."""

        self._server = made_in(network, lambda: ThreadingHTTPServer((LOOPBACK, 0), Handler))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def environment(self) -> dict[str, str]:
        """The environment that Kubernetes gives every container."""
        return {
            "KUBERNETES_SERVICE_HOST": LOOPBACK,
            "KUBERNETES_SERVICE_PORT": str(self._server.server_port),
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """One request."""
        method, path = request.command, request.path
        self.calls.append(f"{method} {path}")
        length = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(length)) if length else {}
        status = 404
        found: dict[str, Any] = {}
        name = path.removeprefix(f"{SECRETS}/")
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            status = 401
        elif refusals := [
            code for begin, code in self.refused.items() if f"{method} {path}".startswith(begin)
        ]:
            status, found = refusals[0], {"message": "it is refused by the test"}
        elif path == STATEFULSET and self.replicas is not None:
            # Annotations are put back by hand; they say nothing.
            metadata = {
                "annotations": {"quorate/replicas": "left-out"},
                "labels": {"app": "quorate"},
            }
            status, found = 200, {"metadata": metadata, "spec": {"replicas": self.replicas}}
        elif path == CLUSTER:
            status, found = 200, {"data": {"replicas": self.recorded}}
        elif method == "POST" and path == CONFIG_MAPS:
            kept = self.config_maps.setdefault(body["metadata"]["name"], body)
            status, found = (201 if kept is body else 409), kept
        elif method == "GET" and path.removeprefix(f"{CONFIG_MAPS}/") in self.config_maps:
            status, found = 200, self.config_maps[path.removeprefix(f"{CONFIG_MAPS}/")]
        elif method == "POST" and path == SECRETS:
            status, found = self._put(body, expected=None)
        elif method == "PUT" and name in self.secrets:
            status, found = self._put(body, expected=self.secrets[name])
        elif method == "GET" and name in self.secrets:
            status, found = 200, self.secrets[name]
        text = json.dumps(found).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def _put(
        self, body: dict[str, Any], expected: dict[str, Any] | None
    ) -> tuple[int, dict[str, Any]]:
        metadata = body["metadata"]
        kept = self.secrets.get(metadata["name"])
        version = kept["metadata"]["resourceVersion"] if kept else "0"
        if kept != expected or (kept and metadata.get("resourceVersion") != version):
            return 409, {}
        metadata["resourceVersion"] = str(int(version) + 1)
        self.secrets[metadata["name"]] = body
        return 201, body


def made_in(network: Path | None, make: Callable[[], T]) -> T:
    """Call `make` where its sockets belong to that network; return its result."""
    if network is None:
        return make()
    made: list[T] = []

    def enter() -> None:
        # Only this thread goes there, and it ends there; a socket stays where it was made.
        libc = ctypes.CDLL(None, use_errno=True)
        with network.open("rb") as namespace:
            if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns to {network}")
        made.append(make())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return made[0]
