"""The bootstrap record: the ConfigMap that permanently records that a quorum was bootstrapped.

The first pod creates it before it formats the directory that bootstraps the quorum. The operator
creates it if there is a leader and no record. The record outlives StatefulSet and release, so that
no empty disk bootstraps a second quorum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.ids import (
    ClusterId,
    NodeId,
    ReplicaKey,
    check_cluster_id,
    format_uuid,
    parse_directory_id,
)
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

# Helm and Argo CD use these labels to find what they may delete with a release.
_OF_A_RELEASE: Final = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by")


@value_type
class BootstrapRecord:
    """A quorum was bootstrapped with this cluster id.

    `first` is the voter that bootstrapped it, or one that the operator observed first. It is None
    in a record that a person wrote. It is also None in a record that a pod added later because its
    disk belongs to a quorum without a record.
    """

    cluster_id: ClusterId
    first: ReplicaKey | None = None


def record_name(stateful_set: str) -> str:
    """The name of the ConfigMap."""
    return f"{stateful_set}-bootstrap"


def labels_of(stateful_set: Mapping[str, str]) -> dict[str, str]:
    """The labels of the ConfigMap: those of the StatefulSet except the labels of a release."""
    return {key: text for key, text in stateful_set.items() if key not in _OF_A_RELEASE}


def encode_record(record: BootstrapRecord) -> dict[str, str]:
    """The data of the ConfigMap."""
    data = {"clusterId": str(record.cluster_id)}
    if record.first is not None and record.first.directory_id is not None:
        data["nodeId"] = str(record.first.node_id)
        data["directoryId"] = format_uuid(record.first.directory_id)
    return data


def decode_record(data: Mapping[str, str], name: str) -> BootstrapRecord:
    """Parse data that `encode_record` or a person wrote.

    Raises ValueError that names the ConfigMap.
    """
    try:
        # A person may leave spaces or a newline around a value.
        cluster_id, first = ClusterId(data["clusterId"].strip()), None
        check_cluster_id(cluster_id)
        if "directoryId" in data:
            disk = parse_directory_id(data["directoryId"].strip())
            first = ReplicaKey(NodeId(int(data["nodeId"])), disk)
    except (KeyError, ValueError) as error:
        raise ValueError(f"ConfigMap {name} is no bootstrap record: {error!r}") from error
    return BootstrapRecord(cluster_id, first)
