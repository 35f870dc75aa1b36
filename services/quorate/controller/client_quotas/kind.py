"""Client quotas as a metadata kind."""

from __future__ import annotations

from typing import Final

from quorate.controller.client_quotas.alter_quotas import alter_quotas_in_slices
from quorate.controller.client_quotas.describe_quotas import describe_quotas_in_slices
from quorate.controller.client_quotas.messages import AlterClientQuotas, DescribeClientQuotas
from quorate.controller.client_quotas.records import all_quota_records, replay_quota
from quorate.controller.metadata_kind import MetadataKind, WriteOperation
from quorate.records.metadata import ClientQuotaRecord

CLIENT_QUOTAS: Final = MetadataKind(
    writes=(
        WriteOperation(
            request=AlterClientQuotas, in_slices=alter_quotas_in_slices, uses_overlay=True
        ),
    ),
    reads={DescribeClientQuotas: describe_quotas_in_slices},
    replay={ClientQuotaRecord: replay_quota},
    snapshot=all_quota_records,
    large_parts=lambda image: (image.client_quotas.by_owner,),
)
