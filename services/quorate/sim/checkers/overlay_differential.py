"""Differential check: the same decisions with and without the batch overlay.

The reference makes an image for each decision. The other controller works as leaders do: it
accumulates the decisions of a batch on one overlay, which becomes an image when the batch is cut.
For any requests and any cuts, records, replies and images must be equal.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings
from quorate.records.ids import Offset
from quorate.sim.checkers.oracle import Violation
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.randomness import RandomSource
from quorate.sim.workload.random_requests import RandomRequests

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.decision import Decision
    from quorate.controller.image import MetadataImage
    from quorate.controller.request_types import WriteRequest
    from quorate.records.ids import Epoch
    from quorate.records.metadata import MetadataRecord

_SOMEBODY: Final = Caller("User:somebody")
_DECISIONS_MAX: Final = 20


class Batch(NamedTuple):
    """The decisions of one batch; a control batch has offsets and no records."""

    records: tuple[MetadataRecord, ...]
    base_offset: Offset
    end_offset: Offset
    epoch: Epoch
    timestamp_ms: int


class Standby:
    """A controller that replays committed batches."""

    def __init__(self) -> None:
        self._controller = _controller(0, None, gathers=False)

    @property
    def image(self) -> MetadataImage:
        return self._controller.image

    @property
    def end_offset(self) -> Offset:
        """The end of the replayed records."""
        return self._controller.end_offset

    def replay(self, batch: Batch) -> None:
        """Replay the next committed batch."""
        records, base_offset, end_offset, epoch, timestamp_ms = batch
        self._controller.replay(
            records,
            base_offset=base_offset,
            end_offset=end_offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
        )


class DifferentialController:
    """The controller of one leader, twice. Raises Violation if the two differ."""

    def __init__(self, seed: int, image: MetadataImage, epoch: Epoch, now_ms: int) -> None:
        """Become active at the end of `image`; `seed` determines the ids of new topics."""
        self._epoch = epoch
        self._plain = _controller(seed, image, gathers=False)
        self._gathering = _controller(seed, image, gathers=True)
        self._gathered: list[Decision] = []
        self._end = end = image.position.end_offset
        plain = self._plain.activate(epoch, end, now_ms)
        self._compare("the activation", plain, self._gathering.activate(epoch, end, now_ms))

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self._plain.image

    def decide(
        self, request: WriteRequest, now_ms: int, pause: Callable[[], object]
    ) -> Decision | None:
        """Decide on a request; at each `pause` a batch may be cut."""
        self._gathering.hear(request, _SOMEBODY, now_ms)
        slices = self._gathering.decide_in_slices(request, _SOMEBODY, now_ms)
        while True:
            try:
                next(slices)
            except StopIteration as end:
                gathering: Decision = end.value
                break
            pause()
        return self._compare(request, self._plain.decide(request, _SOMEBODY, now_ms), gathering)

    def expire(self, now_ms: int) -> Decision | None:
        """Run one slice of the periodic decisions."""
        plain, gathering = self._plain.expire(now_ms), self._gathering.expire(now_ms)
        return self._compare("the end of sessions", plain, gathering)

    def _compare(
        self, what: object, plain: Decision | None, gathering: Decision | None
    ) -> Decision | None:
        if plain != gathering:
            raise Violation(f"{what} is decided as {plain}, and on one overlay as {gathering}")
        wake_ms, other_ms = self._plain.wake_at_ms, self._gathering.wake_at_ms
        if wake_ms != other_ms:
            raise Violation(f"after {what} sessions are due at {wake_ms}, or at {other_ms}")
        if plain is not None and plain.values:
            self._gathered.append(plain)
            self._end = plain.end_offset
        return plain

    def append_controls(self, now_ms: int) -> Batch:
        """Append a control record after all decided records, which must have been cut."""
        assert not self._gathered, "the leader proposes first what has gathered"
        base, self._end = self._end, Offset(self._end + 1)
        self._plain.advance(self._end)
        self._gathering.advance(self._end)
        return Batch((), base, self._end, self._epoch, now_ms)

    def cut(self, now_ms: int, *, keeps_last: bool = False) -> Batch | None:
        """Make a batch of the accumulated decisions; with `keeps_last` of all but the last."""
        count = len(self._gathered) - keeps_last
        if count <= 0:
            return None
        going, self._gathered = self._gathered[:count], self._gathered[count:]
        end = going[-1].end_offset
        self._gathering.end_batch(end)
        records = tuple(record for decision in going for record in decision.records)
        return Batch(records, going[0].base_offset, end, self._epoch, now_ms)

    def commit(self, batch: Batch) -> None:
        """Everything up to the end of this batch is committed."""
        self._plain.commit(batch.end_offset, batch.timestamp_ms)
        self._gathering.commit(batch.end_offset, batch.timestamp_ms)
        require_equal(self._plain.image, self._gathering.image, "with an overlay a batch")


class RandomDecisions:
    """Random requests to leaders and random cuts, from one random stream."""

    def __init__(self, random_source: RandomSource) -> None:
        self._random_source = random_source
        self._requests = RandomRequests(random_source)

    def lead(self, image: MetadataImage, epoch: Epoch, now_ms: int) -> DifferentialController:
        """Let a new leader become active on this image."""
        return DifferentialController(self._random_source.between(0, 1 << 60), image, epoch, now_ms)

    def batches(self, ways: DifferentialController, now_ms: int) -> list[Batch]:
        """Make a random number of decisions; returns the batches that were cut."""
        draws = self._random_source
        cut: list[Batch | None] = []

        def pause() -> None:
            if draws.chance(0.05):
                cut.append(ways.cut(now_ms))

        for _ in range(draws.between(1, _DECISIONS_MAX)):
            if draws.chance(0.12):
                decision = ways.expire(now_ms)
            else:
                decision = ways.decide(self._requests.one(ways.image), now_ms, pause)
            if decision is not None and decision.values and draws.chance(0.15):
                cut.append(ways.cut(now_ms, keeps_last=True))
        if draws.chance(0.7):
            cut.append(ways.cut(now_ms))
        return [batch for batch in cut if batch is not None]


def _controller(seed: int, image: MetadataImage | None, *, gathers: bool) -> Controller:
    new_topic_id = RandomSource(seed, "topics").topic_id
    settings = ControllerSettings(cluster_id=CLUSTER_ID, new_topic_id=new_topic_id)
    return Controller(settings, image=image, gathers=gathers)


def unequal_fields(image: MetadataImage, other: MetadataImage) -> list[str]:
    """The fields that differ between two images."""
    return [
        field.name
        for field in fields(image)
        if getattr(image, field.name) != getattr(other, field.name)
    ]


def require_equal(image: MetadataImage, other: MetadataImage, whose: str) -> None:
    """Raise a Violation that names the fields that differ."""
    differing = unequal_fields(image, other)
    # The comparison of images ignores these offsets.
    if _offsets(image) != _offsets(other):
        differing.append("offsets of brokers")
    if differing:
        end = image.position.end_offset
        raise Violation(f"{', '.join(differing)} below {end} differ from those {whose}")


def _offsets(image: MetadataImage) -> dict[int, Offset]:
    return {broker_id: broker.offset for broker_id, broker in image.brokers.by_id.items()}
