"""Refuses a `helm rollback` that would change the number of controllers.

    python -c "$(cat rollback.py)"

A revision of a release holds the number that the StatefulSet had when it was made. It runs before a
rollback to its own revision, and compares. It imports nothing of the image, which may be of another
release than the chart.
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
# From here on another try may be answered otherwise.
SERVER_FAULT = 500
LEFT_OUT = "left-out"


def read() -> dict:
    """The StatefulSet, at the API server of this pod. Raises OSError, of which HTTPError is one."""
    host, port = (os.environ[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    namespace, _, name = os.environ["STATEFULSET"].partition("/")
    request = urllib.request.Request(
        f"https://{server}/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}",
        headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}"},
    )
    tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=tls) as answer:
        return json.load(answer)


def live() -> dict | None:
    """The StatefulSet; None where there is none. Raises OSError when it cannot be read."""
    for tries_left in reversed(range(TRIES)):
        try:
            return read()
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


def difference(found: dict, recorded: str) -> str:
    """Words for what the rollback would do to the number of controllers; "" for nothing."""
    replicas = found["spec"]["replicas"]
    if recorded:
        return "" if str(replicas) == recorded else f"has {recorded} replicas"
    is_left_out = found["metadata"].get("annotations", {}).get("quorate/replicas") == LEFT_OUT
    return "" if is_left_out else "leaves the number out, which Kubernetes takes for 1"


def main() -> int:
    """0 lets the rollback go on; 1 ends it before anything is changed."""
    release, name = os.environ["RELEASE"], os.environ["STATEFULSET"].partition("/")[2]
    try:
        found = live()
    except OSError as error:
        print(f"StatefulSet {name} cannot be read, so nothing is rolled back: {error}")
        found = None
        words = "cannot be compared"
    else:
        words = difference(found, os.environ["REPLICAS"]) if found else ""
    if not words:
        print("the number of controllers stays as it is")
        return 0
    if found:
        print(
            f"StatefulSet {name} has {found['spec']['replicas']} replicas, and this revision"
            f" {words}: a rollback would scale, so nothing is rolled back"
        )
    print(
        "Go back by an upgrade, which leaves the number alone, with the values of that revision"
        f" (helm get values {release} --revision N --output yaml) and its chart."
    )
    print(
        "Before, clear the rollback that was refused:"
        f" kubectl delete secret --selector owner=helm,name={release},status=pending-rollback"
    )
    print("To let the number change all the same: helm rollback --no-hooks")
    return 1


if __name__ == "__main__":
    sys.exit(main())
