"""The image: small, without what installs or compiles, and good at a read-only root."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import yaml

from tests.e2e.cluster import READY_WITHIN_S, wait_for

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)
BYTES_MAX = 250_000_000
# One file system only: what is mounted into a pod is not part of the image.
LOOK = """
du --one-file-system --summarize --bytes / 2> /dev/null | cut -f 1
for program in pip apt-get perl gcc cc; do command -v $program; done
id -u
python -c 'import quorate.server.service, quorate.autojoin.service'
"""


def test_the_image_is_small_and_holds_what_runs(cluster: Cluster) -> None:
    container = {
        "name": "look",
        "image": cluster.image,
        "command": ["sh", "-uc", LOOK],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"restartPolicy": "Never", "securityContext": security, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "look"}, "spec": spec}
    cluster.kubectl("apply", "--filename", "-", text=yaml.safe_dump(pod))

    def look() -> bool | str:
        phase: str = cluster.get("pods", "look")["status"]["phase"]
        return phase in ("Succeeded", "Failed") or phase

    wait_for("the pod has ended", READY_WITHIN_S, look)
    size, *programs, user = cluster.logs("look").split()
    log.info(f"{int(size) / 1e6:.1f} MB")
    assert int(size) < BYTES_MAX
    assert not programs
    assert user == "65532"
    assert cluster.get("pods", "look")["status"]["phase"] == "Succeeded"
