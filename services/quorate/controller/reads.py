"""Answers from an image: what the metadata is, as far as that image goes (rule 19).

Any controller can give them, active or not, because they need the committed image only. An image
never changes, so a long answer is made in slices with others' turns between them, and in pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.request_authorization import judge_read
from quorate.controller.metadata_kinds import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.image import MetadataImage
    from quorate.controller.metadata_kind import Answer
    from quorate.controller.request_types import ReadReply, ReadRequest
    from quorate.controller.slices import Slices

_ANSWERS: Final[Mapping[type[ReadRequest], Answer]] = {
    kind: answer for subject in SUBJECTS for kind, answer in subject.reads.items()
}


def answer_in_slices(
    image: MetadataImage, request: ReadRequest, rights: Rights
) -> Slices[ReadReply]:
    """The reply to a request that changes nothing, with the offset that it reflects.

    Raises RefusedError for a cursor that names nothing, for an answer of several pages to somebody
    who asked for none, and to a caller that may not ask.
    """
    judge_read(rights, request)
    return _ANSWERS[type(request)](image, request, rights)
