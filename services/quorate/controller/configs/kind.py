"""Configs as a metadata kind."""

from __future__ import annotations

from typing import Final

from quorate.controller.configs.alter_configs import alter_configs_in_slices, refused_alteration
from quorate.controller.configs.describe_configs import describe_configs_in_slices
from quorate.controller.configs.messages import DescribeConfigs, IncrementalAlterConfigs
from quorate.controller.configs.records import all_config_records, replay_config
from quorate.controller.metadata_kind import MetadataKind, WriteOperation
from quorate.records.metadata import ConfigRecord

CONFIGS: Final = MetadataKind(
    writes=(
        WriteOperation(
            request=IncrementalAlterConfigs,
            in_slices=alter_configs_in_slices,
            uses_overlay=True,
            refused=refused_alteration,
        ),
    ),
    reads={DescribeConfigs: describe_configs_in_slices},
    replay={ConfigRecord: replay_config},
    snapshot=all_config_records,
    large_parts=lambda image: (image.configs.by_owner,),
)
