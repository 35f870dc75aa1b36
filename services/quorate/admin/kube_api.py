"""Minimal Kubernetes API client with the pod's service account: gets and creates objects."""

from __future__ import annotations

import http.client
import io
import json
import queue
import socket
import ssl
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.api.kube_api_errors import message_of, printable
from quorate.records.value_types import keyword_value_type
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Kubernetes mounts them there; the token is renewed while the pod runs, so it is read each time.
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ANSWER_S: Final = 3.0
# Time limit in seconds for a complete answer, however slowly it arrives.
WHOLE_ANSWER_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


@keyword_value_type
class ApiServer:
    """The URL of the API server and the folder of the account. Calls block for seconds."""

    url: str
    account: str = ACCOUNT

    def get(self, path: str) -> bytes:
        """An object as JSON. Raises OSError, of which HTTPError is one."""
        return self._ask(path, None)

    def post(self, path: str, body: Mapping[str, object]) -> bytes:
        """Create an object; returns it as JSON. Raises OSError, of which HTTPError is one."""
        return self._ask(path, json.dumps(body).encode())

    def _ask(self, path: str, body: bytes | None) -> bytes:
        """Return the complete answer within the time limit. Raises OSError."""
        answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answers.put(self._call(path, body))
            except urllib.error.HTTPError as error:
                answers.put(_with_text(error))
            except http.client.HTTPException as error:
                answers.put(OSError(f"the answer is no HTTP: {error!r}"))
            except Exception as error:
                answers.put(error)

        # The time limit of a socket restarts with each byte.
        threading.Thread(target=ask, name=f"call of {self.url}", daemon=True).start()
        try:
            answer = answers.get(timeout=WHOLE_ANSWER_S)
        except queue.Empty:
            raise TimeoutError(f"no whole answer in {WHOLE_ANSWER_S:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _call(self, path: str, body: bytes | None) -> bytes:
        token = (Path(self.account) / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data=body, headers=headers)  # noqa: S310 - the address is that of the API server
        tls = None
        if self.url.startswith("https:"):
            tls = ssl.create_default_context(cafile=str(Path(self.account) / "ca.crt"))
            tls.hostname_checks_common_name = False
        with urllib.request.urlopen(request, timeout=ANSWER_S, context=tls) as answer:  # noqa: S310
            text: bytes = answer.read(ANSWER_BYTES_MAX)
            return text


def api_server_of_pod(key: str, environment: Mapping[str, str]) -> ApiServer:
    """The API server of this pod's cluster. Raises ConfigError that names the setting."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError(f"{key} is for pods: KUBERNETES_SERVICE_HOST is missing")
    return ApiServer(url=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")


def _with_text(error: urllib.error.HTTPError) -> urllib.error.HTTPError:
    """The same error, with its text read."""
    try:
        text = error.read(ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException):
        text = b""
    return urllib.error.HTTPError(
        error.url, error.code, error.reason, error.headers, io.BytesIO(text)
    )


def words_of(error: OSError) -> str:
    """The reason for which a call failed, with the API server's message if it sent one."""
    if not isinstance(error, urllib.error.HTTPError):
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, socket.gaierror):
            return f"the name of the API server does not resolve: {reason.strerror}"
        return str(error) or type(error).__name__
    try:
        message = message_of(error.read(ANSWER_BYTES_MAX))
    except (OSError, http.client.HTTPException):
        message = ""
    return f"{error.code} {printable(error.reason)}: {message}".removesuffix(": ")
