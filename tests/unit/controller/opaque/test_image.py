from __future__ import annotations

from immutables import Map

from quorate.controller.opaque.image import Opaque
from quorate.records.metadata import AccessControlEntryRecord, UnknownRecord

FIRST, SECOND = UnknownRecord(99, 0, b"a"), UnknownRecord(98, 0, b"b")
ACL = AccessControlEntryRecord(
    id=b"i" * 16,
    resource_type=2,
    resource_name="a",
    pattern_type=3,
    principal="User:a",
    host="*",
    operation=3,
    permission_type=3,
)


def test_rule_22_what_came_since_follows_what_was_there() -> None:
    delta = Opaque(unknown=(FIRST,)).mutate()
    delta.unknown.append(SECOND)
    delta.rows[3, (b"i",)] = ACL
    assert delta.finish() == Opaque(Map({(3, (b"i",)): ACL}), (FIRST, SECOND))


def test_without_a_new_one_the_unknown_records_are_the_same() -> None:
    before = Opaque(unknown=(FIRST, SECOND))
    assert before.mutate().finish().unknown is before.unknown
