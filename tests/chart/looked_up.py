"""As much of an API server as helm asks while it renders: objects that are there, by their names.

On loopback, in a thread. Nothing can be changed in it.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.chart.rendering import CLUSTER_ID, VERSION, Helm
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NAMESPACE: Final = "default"
# Kind, and whether its objects have a namespace, by group and plural.
_KINDS: Final = {
    "v1": {
        "configmaps": ("ConfigMap", True),
        "pods": ("Pod", True),
        "persistentvolumeclaims": ("PersistentVolumeClaim", True),
        "namespaces": ("Namespace", False),
    },
    "apps/v1": {"statefulsets": ("StatefulSet", True)},
}
_PREFIXES: Final = {"v1": "/api/v1", "apps/v1": "/apis/apps/v1"}
_GROUP: Final = {
    "name": "apps",
    "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
    "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
}
_FIXED: Final[dict[str, dict[str, Any]]] = {
    "/version": {"major": "1", "minor": VERSION.split(".")[1], "gitVersion": f"v{VERSION}"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
}


@dataclass(frozen=True)
class There:
    """The objects of a namespace, and the kinds that the account that asks may not read."""

    objects: tuple[dict[str, Any], ...] = ()
    forbidden: frozenset[str] = frozenset()
    # Every namespace that is there has this one; a namespace that helm is to create is not.
    has_namespace: bool = True

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """Status and body of a GET."""
        if path in _FIXED:
            return 200, _FIXED[path]
        for version, prefix in _PREFIXES.items():
            if path == prefix:
                return 200, _resources(version)
            if path.startswith(f"{prefix}/"):
                return self._read(path.removeprefix(f"{prefix}/").split("/"), version)
        return _status(404, "NotFound")

    def _read(self, words: Sequence[str], version: str) -> tuple[int, dict[str, Any]]:
        is_namespaced = words[0] == "namespaces" and len(words) > 2
        plural, *name = words[2:] if is_namespaced else words
        if plural in self.forbidden:
            return _status(403, "Forbidden")
        kind = _KINDS[version][plural][0]
        found = [each for each in self._all() if each["kind"] == kind]
        if not name:
            return 200, {
                "kind": f"{kind}List",
                "apiVersion": version,
                "metadata": {},
                "items": found,
            }
        for each in found:
            if each["metadata"]["name"] == name[0]:
                return 200, each
        return _status(404, "NotFound")

    def _all(self) -> list[dict[str, Any]]:
        own = [thing("v1", "Namespace", "kube-system")]
        if self.has_namespace:
            own.append(thing("v1", "ConfigMap", "kube-root-ca.crt"))
        return [*own, *self.objects]


def thing(version: str, kind: str, name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """An object with so much of its metadata."""
    metadata = {"name": name, "namespace": NAMESPACE} | more.pop("metadata", {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def cluster_id(text: str = CLUSTER_ID, suffix: str = "cluster", **more: str) -> dict[str, Any]:
    """A ConfigMap with the identity of a quorum: that of the chart, or the record `bootstrap`."""
    return thing("v1", "ConfigMap", f"q-quorate-{suffix}", data={"clusterId": text, **more})


def orphan(ordinal: int, instance: str = "q", **metadata: str) -> dict[str, Any]:
    """A pod that a StatefulSet left when it was deleted with --cascade=orphan."""
    labels = {
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/component": "controller",
    }
    return thing("v1", "Pod", f"q-quorate-{ordinal}", metadata={"labels": labels, **metadata})


def stateful_set(
    replicas: int, name: str = "q-quorate", domain: str = "", chart: str = "quorate", **labels: str
) -> dict[str, Any]:
    """One of this chart's, of the release q, with further labels of its own."""
    selects = {
        "app.kubernetes.io/name": "quorate",
        "app.kubernetes.io/instance": "q",
        "app.kubernetes.io/component": "controller",
    }
    host = f"$(POD_NAME).{name}-headless.{NAMESPACE}.svc{domain and f'.{domain}'}"
    told = {"name": "QUORATE_ADVERTISED_LISTENERS", "value": f"GRPC://{host}:9094"}
    added = {"helm.sh/chart": f"{chart}-0.1.0", "app.kubernetes.io/part-of": "quorate"}
    containers = [{"name": "controller", "env": [{"name": "POD_NAME"}, told]}]
    return thing(
        *("apps/v1", "StatefulSet", name),
        metadata={"labels": {**added, **selects, **labels}},
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": selects},
            "template": {"spec": {"containers": containers}},
        },
    )


def _status(code: int, reason: str) -> tuple[int, dict[str, Any]]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return code, body | {"reason": reason, "message": f"this is {reason}"}


def _resources(version: str) -> dict[str, Any]:
    resources = [
        {
            "name": plural,
            "singularName": kind.lower(),
            "namespaced": is_namespaced,
            "kind": kind,
            "verbs": ["get", "list"],
        }
        for plural, (kind, is_namespaced) in _KINDS[version].items()
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


@contextmanager
def looked_up(helm: Helm, folder: Path, there: There) -> Iterator[Helm]:
    """helm next to a cluster that has this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = there.answer(self.path.partition("?")[0])
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing is to be seen."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    path = folder / "kubeconfig"
    address = f"http://{HOST}:{server.server_port}"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": address}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    try:
        yield replace(helm, kubeconfig=str(path))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
