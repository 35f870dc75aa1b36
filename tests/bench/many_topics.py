"""Additions of a large cluster: the leader of a quorum with many topics is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench import payloads
from tests.bench.commit_load import connect
from tests.bench.failover import kills
from tests.bench.http2_client import StreamLoad
from tests.bench.kafka_cluster import SESSION_MS
from tests.bench.metadata_load import MetadataSubject, open_writes
from tests.bench.quorate_cluster import QuorateMembers
from tests.bench.result_tables import Bounds, render_bounds

if TYPE_CHECKING:
    from pathlib import Path

TOPICS: Final = 20_000
_IN_FLIGHT: Final = 64
# A controller that comes back reads its log, or a snapshot with all the topics.
_SETTLES_S: Final = 4.0


def run(root: Path, *, failovers: int) -> None:
    """Measure and print."""
    folder = root / "many-topics"
    folder.mkdir()
    session = {"broker.session.timeout.ms": str(SESSION_MS)}
    with QuorateMembers(folder, overrides=session) as members:
        subject = MetadataSubject(members)
        subject.prepare()
        _create(members)
        members.settles_s = _SETTLES_S
        bounds = Bounds()
        what = f"kill -9 of the leader to the next commit, {TOPICS:,} topics"
        bounds.add(what, "s", kills(members, open_writes, failovers), 0.1)
    print(render_bounds("Ours alone, with many topics", bounds))


def _create(members: QuorateMembers) -> None:
    connections = connect(members, members.leader(), 1)
    make = payloads.topic_creations("many", 1)
    load = StreamLoad(connections, payloads.WRITE_PATH, make, payloads.last_write, _IN_FLIGHT)
    while load.answered < TOPICS:
        load.turn(10)
    load.finish()
