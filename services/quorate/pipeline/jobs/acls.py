"""Job `acls`: ACLs over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.pipeline.jobs.cached_rows import cache_typed_rows
from quorate.pipeline.jobs.enum_names import named
from quorate.pipeline.jobs.intervals import INTERVAL_FIELDS, closed
from quorate.pipeline.jobs.typed_payloads import of_types
from quorate.records.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

ACL_FIELDS: Final = tuple(
    T.StructField(name, T.StringType())
    for name in (
        "principal",
        "permission",
        "operation",
        "resource_type",
        "resource",
        "pattern_type",
        "host",
        "acl_id",
    )
)
ACL_HISTORY_SCHEMA: Final = T.StructType([*ACL_FIELDS, *INTERVAL_FIELDS])

# The enums of org.apache.kafka.common.acl and .resource; 0 (UNKNOWN) and 1 (ANY) occur in requests
# only.
RESOURCE_TYPES: Final = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
PATTERN_TYPES: Final = {3: "LITERAL", 4: "PREFIXED"}
PERMISSIONS: Final = {2: "DENY", 3: "ALLOW"}
OPERATIONS: Final = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}


ACL_RECORDS: Final = (AccessControlEntryRecord, RemoveAccessControlEntryRecord)


def acl_history(frame: DataFrame) -> DataFrame:
    """One row for each ACL that was created, until it was removed (ACL_HISTORY_SCHEMA).

    The frame is the result of `kept` for ACL_RECORDS: only committed records.
    """
    created, removed = F.col("access_control_entry_record"), "remove_access_control_entry_record"
    following = Window.partitionBy("acl_id").orderBy("offset").rowsBetween(1, 1)
    records = of_types(frame, *ACL_RECORDS)
    intervals = (
        records.withColumn("acl_id", F.coalesce(created["id"], F.col(removed)["id"]))
        .withColumn("end_offset", F.first("offset").over(following))
        .withColumn("end", F.first("timestamp").over(following))
        .where(created.isNotNull())
        .select(
            *acl_columns(created),
            F.col("offset").alias("start_offset"),
            F.col("timestamp").alias("start"),
            "end_offset",
            "end",
        )
    )
    return closed(intervals, frame).select(*ACL_HISTORY_SCHEMA.names)


def acl_columns(record: Column) -> list[Column]:
    """ACL_FIELDS of an AccessControlEntryRecord, with Kafka's names for its numbers."""
    return [
        record["principal"].alias("principal"),
        named(record["permissionType"], PERMISSIONS).alias("permission"),
        named(record["operation"], OPERATIONS).alias("operation"),
        named(record["resourceType"], RESOURCE_TYPES).alias("resource_type"),
        record["resourceName"].alias("resource"),
        named(record["patternType"], PATTERN_TYPES).alias("pattern_type"),
        record["host"].alias("host"),
        record["id"].alias("acl_id"),
    ]


SCHEMAS: Final = {"acls": ACL_HISTORY_SCHEMA}


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The table of the job, in the order of the log."""
    del values
    rows = cache_typed_rows(log, *ACL_RECORDS)
    return {"acls": acl_history(rows).orderBy("start_offset", "acl_id")}
