"""Refuses a `helm rollback` that would change the number of controllers.

    python -c "$(cat rollback.py)"

Each revision of a release contains this script and the number of replicas that the StatefulSet had
when the revision was created. Before a rollback to a revision, Helm runs the script of that
revision, which compares its number with the current one. The script imports nothing of Quorate: the
image may be of another release than the chart.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path(os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
TIMEOUT_S = 10
TRIES = 5
PAUSE_S = 2.0
NOT_FOUND = 404
# Errors with this status or a higher one may be transient, so the request is repeated.
SERVER_FAULT = 500
LEFT_OUT = "left-out"


def read(path: str) -> dict:
    """Read an object from the API server. Raises OSError; HTTPError is one."""
    host, port = (os.environ[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = urllib.request.Request(
        f"https://{server}/{path}",
        headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}"},
    )
    tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=tls) as answer:
        return json.load(answer)


def live(path: str) -> dict | None:
    """An object, or None if it does not exist. Raises OSError if it cannot be read."""
    for tries_left in reversed(range(TRIES)):
        try:
            return read(path)
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND:
                return None
            if error.code < SERVER_FAULT or not tries_left:
                raise
        except OSError:
            if not tries_left:
                raise
        time.sleep(PAUSE_S)
    raise AssertionError("the last try ends it")


def objection(found: dict, namespace: str, name: str, recorded: str) -> str:
    """The reason to refuse the rollback, or "". Raises OSError if an object cannot be read."""
    replicas = found["spec"]["replicas"]
    if str(replicas) == (recorded or "1"):
        return ""
    if recorded:
        words = f"has {recorded} replicas"
    else:
        # The ConfigMap shows if the current revision leaves the number out, too.
        kept = live(f"api/v1/namespaces/{namespace}/configmaps/{name}-cluster") or {}
        if kept.get("data", {}).get("replicas") == LEFT_OUT:
            return ""
        words = "leaves the number out, which Kubernetes takes for 1"
    has = f"StatefulSet {name} has {replicas} replicas"
    return f"{has}, and this revision {words}: a rollback would scale"


def remedies(release: str, namespace: str) -> str:
    """The remedies in the message, except scaling before the rollback."""
    return f"""\
- Let the rollback change the number:
  helm --namespace {namespace} rollback {release} N --no-hooks
- Go back by an upgrade, with the chart of that revision and its values:
  helm --namespace {namespace} get values {release} --revision N --output yaml
  Before, clear the rollback that was refused:
  kubectl --namespace {namespace} delete secret --selector \
    owner=helm,name={release},status=pending-rollback"""


def main() -> int:
    """Return 0 to let the rollback continue, 1 to end it before anything is changed."""
    namespace, _, name = os.environ["STATEFULSET"].partition("/")
    recorded = os.environ["REPLICAS"]
    found = None
    try:
        found = live(f"apis/apps/v1/namespaces/{namespace}/statefulsets/{name}")
        words = f"StatefulSet {name} is not there to be compared"
        if found:
            words = objection(found, namespace, name, recorded)
    except OSError as error:
        words = f"the number of controllers cannot be compared ({error})"
    if not words:
        print("the number of controllers stays as it is")
        return 0
    print(f"{words}; nothing is rolled back. Choose one:")
    if found:
        # The remedy with the least risk comes first.
        print("- Have the number of this revision, and roll back again:")
        scale = f"scale statefulset/{name} --replicas={recorded or 1}"
        print(f"  kubectl --namespace {namespace} {scale}")
    print(remedies(os.environ["RELEASE"], namespace))
    return 1


if __name__ == "__main__":
    sys.exit(main())
