"""The file `pod-domain`: the pod to which a formatted directory belongs, by its DNS name.

A copy of a disk is a voter of the original's quorum: its log names the other voters there. Nothing
else on the disk distinguishes the two, but on Kubernetes pods of different names mount them. Pod
and namespace are compared. The service may be renamed, and the domain of the cluster is left out,
because an upgrade may change it. The file lies next to meta.properties, which stays as Kafka writes
it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.layout import POD_DOMAIN

if TYPE_CHECKING:
    from quorate.storage.file_system import FileSystem

# Bytes. A DNS name has at most 253 characters; an editor may add a line feed or two.
_BYTES_MAX: Final = 512
_LABEL: Final = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"({_LABEL})\.({_LABEL})\.({_LABEL})\.svc")


@keyword_value_type
class PodDomain:
    """The name of a pod in the cluster: POD.SERVICE.NAMESPACE.svc."""

    pod: str
    service: str
    namespace: str

    def is_same_pod(self, other: PodDomain) -> bool:
        """True if both name the same pod, with any service name."""
        return (self.pod, self.namespace) == (other.pod, other.namespace)

    def __str__(self) -> str:
        return f"{self.pod}.{self.service}.{self.namespace}.svc"


def parse_pod_domain(text: str) -> PodDomain:
    """Parse POD.SERVICE.NAMESPACE.svc. Raises ValueError."""
    match = _DOMAIN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not of the form POD.SERVICE.NAMESPACE.svc")
    return PodDomain(pod=match[1], service=match[2], namespace=match[3])


def read_pod_domain(fs: FileSystem, metadata_log_dir: str) -> PodDomain | None:
    """Read the pod to which the directory belongs; None if the file does not exist.

    Raises StorageError for a malformed file: this may be the copy of a disk.
    """
    path = f"{metadata_log_dir}/{POD_DOMAIN}"
    if not fs.exists(path):
        return None
    try:
        return _decode(fs.read(path))
    except ValueError as error:
        raise StorageError(
            f"{path}: malformed ({error}). It names the pod of this disk, so that no copy of it"
            " runs beside the original. If this disk is not a copy, remove the file in a rescue pod"
            " (docs/kubernetes.md): the next start writes it"
        ) from error


def _decode(data: bytes) -> PodDomain:
    if len(data) > _BYTES_MAX:
        raise ValueError(f"it has {len(data)} bytes, and {_BYTES_MAX} are the most")
    return parse_pod_domain(data.decode("ascii").strip())


def write_pod_domain(fs: FileSystem, metadata_log_dir: str, domain: PodDomain) -> None:
    """Assign the directory to this pod, durable on return."""
    write_atomically(fs, f"{metadata_log_dir}/{POD_DOMAIN}", f"{domain}\n".encode())
