"""Reads from the API server over HTTP, through one `kubectl proxy` for all tests of a process.

Tests look at pods several times a second. A kubectl for each look takes a fifth of a second of CPU
before it asks anything; a request to the proxy takes a hundredth of that.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import urllib.parse
from typing import TYPE_CHECKING, Any, Final, Self

from tests.e2e.commands import CommandFailedError

if TYPE_CHECKING:
    from types import TracebackType

ANSWER_WITHIN_S: Final = 60.0
STOPS_WITHIN_S: Final = 10.0
# Kinds outside the core group.
GROUPS: Final = {
    "leases": "/apis/coordination.k8s.io/v1",
    "statefulsets": "/apis/apps/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
}
CLUSTER_WIDE: Final = frozenset({"nodes"})


class ApiProxy:
    """A running `kubectl proxy` on loopback. A context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            ["kubectl", "proxy", "--port=0"],  # noqa: S607 - the kubectl of PATH
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        # "Starting to serve on 127.0.0.1:12345"
        line = self._process.stdout.readline()
        self._port = int(line.rpartition(":")[2] or 0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=STOPS_WITHIN_S)

    def objects(
        self, namespace: str, kind: str, name: str = "", *, selector: str = ""
    ) -> dict[str, Any]:
        """One object of a kind (`pods`), or the list of those with these labels.

        Raises CommandFailedError.
        """
        scope = "" if kind in CLUSTER_WIDE else f"/namespaces/{namespace}"
        path = f"{GROUPS.get(kind, '/api/v1')}{scope}/{kind}"
        if name:
            path += f"/{name}"
        if selector:
            path += f"?{urllib.parse.urlencode({'labelSelector': selector})}"
        found: dict[str, Any] = json.loads(self.read(path))
        return found

    def read(self, path: str) -> str:
        """The text at a path of the API. Raises CommandFailedError."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_WITHIN_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise CommandFailedError(f"GET {path}: {error!r}") from error
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise CommandFailedError(f"GET {path}: {answer.status} {text.strip()}")
        return text
