"""Answers read requests from a committed image.

Any controller can answer, active or not, because only the committed image is needed
(rule `linearizable_reads`). Images are immutable, so a long answer is made in time slices, with
other tasks in between, and in pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.request_authorization import authorize_read
from quorate.controller.metadata_kinds import METADATA_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.image import MetadataImage
    from quorate.controller.metadata_kind import Answer
    from quorate.controller.request_types import ReadReply, ReadRequest
    from quorate.controller.slices import Slices

_ANSWERS: Final[Mapping[type[ReadRequest], Answer]] = {
    kind: answer for subject in METADATA_KINDS for kind, answer in subject.reads.items()
}


def answer_in_slices(
    image: MetadataImage, request: ReadRequest, rights: Rights
) -> Slices[ReadReply]:
    """The reply to a read request, with the offset that it reflects.

    Raises RefusedError for an invalid cursor, for an answer of several pages to a caller without
    paging, and for a caller without authorization.
    """
    authorize_read(rights, request)
    return _ANSWERS[type(request)](image, request, rights)
