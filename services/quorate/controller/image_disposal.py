"""Frees what only one image still references, in time slices.

Images share what did not change, so that dropping one mostly frees next to nothing. An image that
was kept for long is different: a snapshot, a long read, or one that a fetched snapshot replaces.
What only it holds may be every topic, at 0.2 us each, all freed in one event-loop iteration.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.controller.metadata_kinds import METADATA_KINDS

if TYPE_CHECKING:
    from immutables import Map

    from quorate.controller.image import MetadataImage
    from quorate.controller.slices import Slices

K = TypeVar("K")
V = TypeVar("V")
# Half a millisecond.
KEYS_SLICE: Final = 256


def dispose_in_slices(image: MetadataImage) -> Slices[None]:
    """Free what only this image holds, with pauses. The caller must not keep the image."""
    parts = [part for subject in METADATA_KINDS for part in subject.large_parts(image)]
    del image
    while parts:
        left = parts.pop()
        while left:
            if isinstance(left, list):
                left.pop()
            else:
                left = _without_some(left)
            yield


def _without_some(left: Map[K, V]) -> Map[K, V]:
    keys = tuple(islice(left, KEYS_SLICE))
    # Copies the nodes on the way to these keys, and no others; what is shared stays.
    mutation = left.mutate()
    for key in keys:
        del mutation[key]
    return mutation.finish()
