"""ISRs and leaders of partitions as a metadata kind; their records are those of topics."""

from __future__ import annotations

from typing import Final

from quorate.controller.metadata_kind import MetadataKind, WriteOperation
from quorate.controller.replication.alter_partition import alter_partitions_in_slices
from quorate.controller.replication.elect_leaders import elect_leaders_in_slices
from quorate.controller.replication.leader_balancer import BALANCING
from quorate.controller.replication.messages import AlterPartition, ElectLeaders

REPLICATION: Final = MetadataKind(
    writes=(
        WriteOperation(request=AlterPartition, in_slices=alter_partitions_in_slices),
        WriteOperation(request=ElectLeaders, in_slices=elect_leaders_in_slices),
    ),
    periodic_task=BALANCING,
)
