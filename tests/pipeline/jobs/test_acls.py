"""The history of ACLs equals that of a loop over the same records."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from quorate.pipeline.jobs import acls
from quorate.pipeline.jobs.cached_rows import cache_typed_rows
from quorate.records.ids import format_uuid
from quorate.records.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from tests.pipeline.jobs import plain
from tests.pipeline.jobs.histories import Entry, History, frame_of
from tests.pipeline.jobs.rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_acl_from_its_creation_to_its_removal(spark: SparkSession) -> None:
    history = History(time.time_ns() % 1_000_000_000, 500)
    created: dict[bytes, Entry] = {}
    removed: dict[bytes, tuple[int, int]] = {}
    for entry in plain.effective(history.entries):
        match entry.record:
            case AccessControlEntryRecord() as record:
                created[record.id] = entry
            case RemoveAccessControlEntryRecord() as record:
                removed[record.id] = (entry.offset, entry.timestamp_ms)
    expected = []
    for acl_id, entry in created.items():
        start = (entry.offset, entry.timestamp_ms)
        last = plain.last_ms(history.entries)
        expected.append((*told(entry), *plain.interval(start, removed.get(acl_id), last)))
    frame = frame_of(spark, history.entries, shuffled=random.Random(history.seed))
    found = acls.acl_history(cache_typed_rows(frame, *acls.ACL_RECORDS))
    assert found.schema.simpleString() == acls.ACL_HISTORY_SCHEMA.simpleString()
    assert rows_of(found) == sorted(expected, key=repr), f"seed {history.seed}"


def told(entry: Entry) -> tuple[str, ...]:
    record = entry.record
    assert isinstance(record, AccessControlEntryRecord)
    return (
        record.principal,
        {2: "DENY", 3: "ALLOW"}[record.permission_type],
        OPERATIONS[record.operation],
        {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 99: "UNKNOWN(99)"}[record.resource_type],
        record.resource_name,
        {3: "LITERAL", 4: "PREFIXED"}[record.pattern_type],
        record.host,
        format_uuid(record.id),
    )


OPERATIONS = {
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
