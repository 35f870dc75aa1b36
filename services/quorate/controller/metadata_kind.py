"""MetadataKind: the records, requests, image part and snapshot order of one kind of metadata.

A kind is a package: its part of the image (image.py), its requests and replies (messages.py), its
decisions and reads, its records, and kind.py, which puts all that together. Decisions, replay,
snapshots and reads derive from the table of all kinds (controller/metadata_kinds.py).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from immutables import Map

    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.decision import Context, Outcome, VolatileState
    from quorate.controller.errors import RefusedError
    from quorate.controller.image import MetadataDelta, MetadataImage, View
    from quorate.controller.periodic_task import PeriodicTask
    from quorate.controller.request_types import ReadRequest, Sender, WriteRequest
    from quorate.controller.slices import Slices
    from quorate.records.ids import Offset
    from quorate.records.metadata import MetadataRecord

    # Applies a record to a delta; raises ReplayError if it contradicts the state.
    Replay: TypeAlias = Callable[[MetadataDelta, Any], None]
    ReplayAt: TypeAlias = Callable[[MetadataDelta, Any, Offset], None]
    ReplayInSlices: TypeAlias = Callable[[MetadataDelta, Any], Slices[None]]
    # The answer for a caller with these rights leaves out items that it may not describe.
    Answer: TypeAlias = Callable[[MetadataImage, Any, Rights], Slices[Any]]
    # Records in their order in a snapshot; None for a pause without a record.
    Records: TypeAlias = Callable[[MetadataImage], Iterator[MetadataRecord | None]]
    # The same, encoded; each list is made without yielding.
    Values: TypeAlias = Callable[[MetadataImage], Iterator[list[bytes]]]
    # Collections that are disposed of in slices: maps key by key, lists item by item.
    Large: TypeAlias = Callable[[MetadataImage], Iterable[Map[Any, Any] | list[Any]]]


def _no_records(_image: MetadataImage) -> Iterator[MetadataRecord | None]:
    return iter(())


def _nothing_large(_image: MetadataImage) -> Iterable[Map[Any, Any] | list[Any]]:
    return ()


@keyword_value_type
class WriteOperation:
    """The handling of a write request: in one step by `decide`, or in time slices.

    A decision in one step may depend on its offset. With `uses_overlay` the records are written
    without an image for each decision; they concern neither brokers nor features. `refused` makes
    the result of an item without authorization. `arrived` is for a request that shows its sender is
    alive: it records the contact, independently of the decision, and returns the sender.
    """

    request: type[WriteRequest]
    decide: Callable[[Context, Any], Outcome] | None = None
    in_slices: Callable[[Context, Any], Slices[Outcome]] | None = None
    uses_overlay: bool = False
    refused: Callable[[Context, Any, RefusedError], Any] | None = None
    arrived: Callable[[VolatileState, View, Any, int], Sender] | None = None


@keyword_value_type
class MetadataKind:
    """One row of the table of metadata kinds.

    `replay` maps each type of its records to its function, `replay_at` those types that depend on
    their offset, and `replay_in_slices` has a variant with pauses for types that may change very
    much. `snapshot` yields the records of the kind's part of an image, `snapshot_values` the same
    faster if the part is very large, and `large_parts` its collections that are freed in slices.
    `periodic_task` is its periodic task.
    """

    writes: tuple[WriteOperation, ...] = ()
    reads: Mapping[type[ReadRequest], Answer] = field(default_factory=dict)
    replay: Mapping[type, Replay] = field(default_factory=dict)
    replay_at: Mapping[type, ReplayAt] = field(default_factory=dict)
    replay_in_slices: Mapping[type, ReplayInSlices] = field(default_factory=dict)
    snapshot: Records = _no_records
    snapshot_values: Values | None = None
    large_parts: Large = _nothing_large
    periodic_task: PeriodicTask | None = None
