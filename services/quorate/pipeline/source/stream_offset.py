"""Position of a stream, as Spark stores it in the checkpoint: a JSON object.

`offset` is the next record of the log. `epoch` is the epoch of the last record below it: a log with
another epoch there was truncated and rewritten. `cluster` is the cluster id of the log, and
`log_start` the first offset that the log had. `snapshot` names a snapshot that must be read before
`offset`, `through` one that replaces records that were deleted before they were read. Unknown
values are left out; earlier releases wrote only `offset`, `cluster`, `snapshot` and `through`.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping


class CheckpointError(RuntimeError):
    """The checkpoint of a stream has an offset that this release cannot read."""


@value_type
class StreamOffset:
    """A position of a stream; snapshots are named as `516-1`: end offset and epoch."""

    offset: int
    epoch: int | None = None
    cluster: str | None = None
    log_start: int | None = None
    snapshot: str | None = None
    through: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON object for the checkpoint."""
        named = {name: getattr(self, name) for name in _KINDS}
        return {name: given for name, given in named.items() if given is not None}


_KINDS: Final = {
    each.name: str if each.name in {"cluster", "snapshot", "through"} else int
    for each in fields(StreamOffset)
}


def read_offset(place: Mapping[str, Any]) -> StreamOffset:
    """Parse the position in a checkpoint. Raises CheckpointError."""
    unread = [name for name, given in place.items() if type(given) is not _KINDS.get(name)]
    if unread or "offset" not in place:
        what = f"{', '.join(unread)}, which this release cannot read" if unread else "no offset"
        raise CheckpointError(
            f"the checkpoint says {json.dumps(place)}, with {what}: go on with the release that "
            "wrote it, or give the query a new checkpoint and another output"
        )
    return StreamOffset(**place)
