"""Draws the fault mix of a seed: kinds and rates of faults, and the shape of the quorum.

Every seed draws its own mix (swarm testing), so that rare combinations occur; most seeds lack most
faults. The mix is the first line of a transcript.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from quorate.records.value_types import value_type
from quorate.sim.cases.field_codec import with_fields
from quorate.sim.engine.disk import Survival
from quorate.sim.engine.network import NetworkOptions, PartitionShape
from quorate.sim.sim_options import WorldOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

T = TypeVar("T")


def draw_options(random: Random) -> WorldOptions:
    """The mix of one seed."""
    draw = _Draw(random)
    voters = draw.one((1, 2, 2, 3, 3, 3, 3, 3, 4, 5))
    kraft_version = draw.one((1, 1, 1, 1, 1, 1, 1, 0))
    fast = draw.chance(0.5)
    return with_fields(
        WorldOptions(),
        voters=voters,
        observers=draw.one((0, 0, 1, 2)),
        kraft_version=kraft_version,
        duration_ms=draw.between(20_000, 80_000),
        network=draw.network(),
        election_timeout_ms=300 if fast else 1000,
        fetch_timeout_ms=600 if fast else 2000,
        fsync_us=draw.one((100, 1000, 5000, 20_000)),
        slow_fsync_rate=draw.one((0.0, 0.0, 0.02, 0.2)),
        slow_fsync_us=draw.one((50_000, 300_000, 1_000_000)),
        drift_ppm=draw.one((0, 0, 1000, 50_000)),
        partition_every_ms=draw.rarely(2000, 8000, 0.5),
        partition_ms=draw.between(300, 6000),
        partition_shapes=draw.some(tuple(PartitionShape)),
        kill_every_ms=draw.rarely(1500, 8000, 0.5),
        power_every_ms=draw.rarely(2000, 10_000, 0.4),
        blackout_every_ms=draw.rarely(5000, 15_000, 0.25),
        restart_ms=draw.between(50, 4000),
        survivals=draw.some(tuple(Survival)),
        crash_every_effects=draw.rarely(100, 1500, 0.5),
        crash_at_vote_rate=draw.one((0.0, 0.0, 0.05, 0.2)),
        pause_every_ms=draw.rarely(3000, 10_000, 0.3),
        pause_ms=draw.between(100, 6000),
        rot_every_ms=draw.rarely(3000, 8000, 0.35),
        disk_fault_every_ms=draw.rarely(5000, 15_000, 0.2),
        # Few clusters lack directory ids, so those that do replace disks more often: a new disk
        # cannot be distinguished from the old one there.
        wipe_every_ms=draw.rarely(5000, 15_000, 0.25 if kraft_version else 0.5),
        voters_every_ms=draw.rarely(600, 4000, 0.45),
        shutdown_every_ms=draw.rarely(3000, 9000, 0.3),
        unready_every_ms=draw.rarely(2000, 6000, 0.2),
        write_every_ms=draw.one((20, 50, 150, 400)),
        read_every_ms=draw.one((100, 300, 1000)),
        follower_read_every_ms=draw.one((100, 300, 1000)),
        record_bytes=draw.one((10, 40, 300)),
        records_max=draw.one((1, 3, 10)),
        fetch_max_bytes=draw.one((200, 1000, 16_384)),
        chunk_bytes=draw.one((100, 1000)),
        segment_bytes=draw.one((1024, 4000, 20_000)),
        snapshot_every_records=draw.one((0, 10, 40, 150)),
        retention_bytes=draw.one((500, 5000, 50_000)),
        spoiled_snapshot_rate=draw.one((0.0, 0.0, 0.0, 0.5)),
        auto_join=draw.chance(0.5),
        move_every_ms=draw.rarely(2000, 8000, 0.3),
        hand_over_every_ms=draw.rarely(1500, 6000, 0.3),
        upgrade_every_ms=draw.rarely(1000, 8000, 0.8),
        hang_every_ms=draw.rarely(3000, 10_000, 0.3),
        hang_ms=draw.between(500, 10_000),
        moves_together=draw.one((0.0, 0.3, 1.0)),
        has_bootstrap_names=draw.chance(0.7),
        strangers_every_ms=draw.rarely(1000, 8000, 0.4),
        turns_every_ms=draw.rarely(3000, 15_000, 0.25),
        scale_every_ms=draw.rarely(3000, 15_000, 0.25),
        linger_ms=draw.one((0, 0, 5, 100)),
        between_rate=draw.one((0.0, 0.1, 0.5)),
    )


@value_type
class _Draw:
    """Draws by `random()` alone, so that a mix depends only on its seed."""

    random: Random

    def one(self, choices: Sequence[T]) -> T:
        return choices[int(self.random.random() * len(choices))]

    def chance(self, rate: float) -> bool:
        return self.random.random() < rate

    def between(self, low: int, high: int) -> int:
        return low + int(self.random.random() * (high - low))

    def rarely(self, low: int, high: int, rate: float) -> int:
        """A mean interval with probability `rate`, else 0 for never."""
        interval = self.between(low, high)
        return interval if self.chance(rate) else 0

    def some(self, choices: tuple[T, ...]) -> tuple[T, ...]:
        """A random, non-empty part of the choices."""
        kept = tuple(choice for choice in choices if self.chance(0.5))
        return kept or (self.one(choices),)

    def network(self) -> NetworkOptions:
        return NetworkOptions(
            delay_us=self.one((200, 1000, 10_000)),
            jitter_us=self.one((0, 500, 20_000)),
            slow_rate=self.one((0.0, 0.0, 0.05)),
            slow_us=self.one((100_000, 800_000)),
            loss_rate=self.one((0.0, 0.0, 0.01, 0.1)),
            duplication_rate=self.one((0.0, 0.0, 0.05)),
        )
