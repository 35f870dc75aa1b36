from __future__ import annotations

from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.controller.opaque.kind import ACLS, SCRAM_CREDENTIALS
from tests.unit.controller.opaque.test_records import acl, scram


def test_a_subject_holds_its_own_rows_and_no_others() -> None:
    delta = MetadataDelta(MetadataImage())
    for subject, record in ((ACLS, acl()), (SCRAM_CREDENTIALS, scram())):
        subject.replay[type(record)](delta, record)
    image = delta.apply(LOG_BEGIN)
    for subject, record in ((ACLS, acl()), (SCRAM_CREDENTIALS, scram())):
        assert [row for row in subject.snapshot(image) if row is not None] == [record]
        (rows,) = subject.large_parts(image)
        assert len(rows) == 1
