"""What a subject of the metadata is: everything that the controller knows of one, in one value.

A subject is a package: its part of the image (image.py), what is asked of it (messages.py), what is
decided and answered, its records, and kind.py, which puts all that together. The table of all of
them (controller/metadata_kinds.py) is what deciding, replay, snapshots and reads derive from.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from quorate.records.value_types import named_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from immutables import Map

    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.decision import Context, Outcome, SoftState
    from quorate.controller.errors import RefusedError
    from quorate.controller.image import MetadataDelta, MetadataImage, View
    from quorate.controller.periodic_task import Timed
    from quorate.controller.request_types import ReadRequest, Sender, WriteRequest
    from quorate.controller.slices import Slices
    from quorate.records.ids import Offset
    from quorate.records.metadata import MetadataRecord

    # A record works itself into a delta; ReplayError when it contradicts what is there.
    Replay: TypeAlias = Callable[[MetadataDelta, Any], None]
    ReplayAt: TypeAlias = Callable[[MetadataDelta, Any, Offset], None]
    ReplayInSlices: TypeAlias = Callable[[MetadataDelta, Any], Slices[None]]
    # To a caller that has these rights: of what it may not look at it is told nothing.
    Answer: TypeAlias = Callable[[MetadataImage, Any, Rights], Slices[Any]]
    # Records in their order in a snapshot; None where time went by without one.
    Records: TypeAlias = Callable[[MetadataImage], Iterator[MetadataRecord | None]]
    # The same, encoded, in lists that are made in one turn each.
    Values: TypeAlias = Callable[[MetadataImage], Iterator[list[bytes]]]
    # What can be taken apart: maps key by key, lists item by item.
    Large: TypeAlias = Callable[[MetadataImage], Iterable[Map[Any, Any] | list[Any]]]


def _no_records(_image: MetadataImage) -> Iterator[MetadataRecord | None]:
    return iter(())


def _nothing_large(_image: MetadataImage) -> Iterable[Map[Any, Any] | list[Any]]:
    return ()


@named_value
class Write:
    """How a request is decided on: as a whole by `decide`, or in slices.

    What is decided as a whole may name the offset that it is decided for. Where records are written
    `onto_overlay` there is no image for each decision; they concern neither brokers nor features.
    `refused` makes the result of an item that its caller has no right to. `arrived` is for a
    request that is a sign of life: it notes that its sender was heard, whatever is decided then,
    and tells who that is.
    """

    request: type[WriteRequest]
    decide: Callable[[Context, Any], Outcome] | None = None
    in_slices: Callable[[Context, Any], Slices[Outcome]] | None = None
    onto_overlay: bool = False
    refused: Callable[[Context, Any, RefusedError], Any] | None = None
    arrived: Callable[[SoftState, View, Any, int], Sender] | None = None


@named_value
class Subject:
    """One row of the table.

    `replay` has what becomes of each type of its records; `replay_at` those that say something by
    where they lie, `replay_in_slices` a second way for those that may be about very much.
    `snapshot` tells all of the subject's part of an image, `snapshot_values` the same faster where
    there is very much of it, and `large` what of it is freed in slices. `timed` is what is decided
    without a request.
    """

    writes: tuple[Write, ...] = ()
    reads: Mapping[type[ReadRequest], Answer] = field(default_factory=dict)
    replay: Mapping[type, Replay] = field(default_factory=dict)
    replay_at: Mapping[type, ReplayAt] = field(default_factory=dict)
    replay_in_slices: Mapping[type, ReplayInSlices] = field(default_factory=dict)
    snapshot: Records = _no_records
    snapshot_values: Values | None = None
    large: Large = _nothing_large
    timed: Timed | None = None
