from __future__ import annotations

from quorate.controller.image import MetadataImage
from quorate.controller.metadata_kind import MetadataKind


def test_a_subject_of_which_nothing_is_said_has_nothing() -> None:
    nothing = MetadataKind()
    assert list(nothing.snapshot(MetadataImage())) == []
    assert list(nothing.large_parts(MetadataImage())) == []
    assert nothing.periodic_task is None
