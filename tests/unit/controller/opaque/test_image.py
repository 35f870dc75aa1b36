from __future__ import annotations

import pytest

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


@pytest.mark.rule("lossless_replay")
def test_what_came_since_follows_what_was_there() -> None:
    delta = Opaque(unknown=(FIRST,)).mutate()
    delta.unknown.append(SECOND)
    delta.group("acls")[b"i",] = ACL
    whole = delta.finish()
    assert whole.unknown == (FIRST, SECOND)
    assert dict(whole.group("acls")) == {(b"i",): ACL}


def test_without_a_new_one_the_unknown_records_are_the_same() -> None:
    before = Opaque(unknown=(FIRST, SECOND))
    assert before.mutate().finish().unknown is before.unknown


def test_a_group_without_a_row_is_none() -> None:
    delta = Opaque().mutate()
    delta.group("acls")[b"i",] = ACL
    with_one = delta.finish()
    delta = with_one.mutate()
    del delta.group("acls")[b"i",]
    assert delta.finish() == Opaque()
    assert len(with_one.group("acls")) == 1
