"""`quorate` as in the init container of a pod, without a cluster: run as a module.

POD_ACCOUNT is the folder of the account, POD_NAMES what DNS answers: addresses, or the name of
getaddrinfo's error. POD_PATIENCE_S is how long a pod has for its answer, POD_DIES names the step
before which the process kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from quorate.admin.kube_api import ApiServer
from quorate.admin.statefulset import StatefulSetAddress, statefulset_at
from quorate.cli import leader_probe, pod_disk_check, storage_statefulset
from quorate.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Mapping

STEPS: Final = ("write_founding", "call", "after_call", "write_plan", "end_founding")


def die(*_: object, **__: object) -> NoReturn:
    """End without any last word."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it is dead")


_SYSTEM: Final = socket.getaddrinfo


def get_address(host: Any, *more: Any, **kind: Any) -> Any:  # noqa: ANN401 - as the system's
    """Answer as the cluster's DNS would, in place of `socket.getaddrinfo`."""
    answer = json.loads(os.environ["POD_NAMES"]).get(host)
    if answer is None:
        return _SYSTEM(host, *more, **kind)
    if answer.startswith("EAI_"):
        raise socket.gaierror(getattr(socket, answer), answer)
    return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (answer, 0))]


def address_of(
    named: str, environment: Mapping[str, str], *, key: str = ""
) -> StatefulSetAddress | None:
    """The StatefulSet at the API server of this pod, with the account of the test."""
    found = statefulset_at(named, environment, key=key)
    assert found is not None
    server = ApiServer(url=found.server.url, account=os.environ["POD_ACCOUNT"])
    return replace(found, server=server)


def prepare() -> None:
    """Put the stand-ins in place."""
    stand_ins: dict[str, Any] = {"statefulset_at": address_of}
    socket.getaddrinfo = get_address
    leader_probe.PROBE_TIMEOUT_S = float(os.environ["POD_PATIENCE_S"])  # type: ignore[misc]
    storage_statefulset.SILENCES = storage_statefulset.PROOFS  # type: ignore[misc]
    pod_disk_check.ROUNDS = storage_statefulset.PROOFS  # type: ignore[misc]
    pod_disk_check.PAUSE_S = 0.0  # type: ignore[misc]
    step = os.environ.get("POD_DIES", "")
    if step in ("call", "after_call"):
        post = ApiServer.post

        def dying(server: ApiServer, path: str, body: Mapping[str, object]) -> NoReturn:
            if step == "after_call":
                post(server, path, body)
            die()

        ApiServer.post = dying  # type: ignore[assignment, method-assign]
    elif step:
        stand_ins[step] = die
    for name, stand_in in stand_ins.items():
        setattr(storage_statefulset, name, stand_in)


if __name__ == "__main__":
    prepare()
    sys.exit(main(sys.argv[1:]))
