"""Leaders, voters, their health, and agreement of logs: by walking through the rows."""

from __future__ import annotations

from itertools import combinations, zip_longest
from typing import TYPE_CHECKING

from tests.pipeline.walks.past import Cells, Event, Past, ordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.pipeline.log_frames import Row

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# id, directory, endpoints
Voter = tuple[int, str | None, tuple[Cells, ...] | None]


def elections(past: Past) -> list[Cells]:
    """One row an epoch that has records."""
    epochs: dict[int, list[Event]] = {}
    for event in past.events:
        epochs.setdefault(event.row.leader_epoch, []).append(event)
    found: list[Cells] = []
    before: Event | None = None
    numbers = sorted(epochs)
    for epoch in numbers:
        events = epochs[epoch]
        won = next((each for each in events if each.kind == "LeaderChangeMessage"), None)
        last = events[-1]
        is_open = epoch == numbers[-1]
        begin = past.first_ms if won is None else won.at_ms
        found.append(
            (
                epoch,
                won.data["leaderId"] if won else None,
                won.row.offset if won else None,
                won.at_ms if won else None,
                None if is_open else last.row.offset + 1,
                None if is_open else last.at_ms,
                is_open,
                (past.last_ms if is_open else last.at_ms) - begin,
                won.at_ms - before.at_ms if won is not None and before is not None else None,
                sum(not each.row.from_snapshot for each in events),
                _voter_ids(won, "voters"),
                _voter_ids(won, "grantingVoters"),
            )
        )
        before = last
    return ordered(found)


def _voter_ids(won: Event | None, name: str) -> tuple[int, ...] | None:
    return None if won is None else tuple(sorted(voter["voterId"] for voter in won.data[name]))


def voters(event: Event) -> tuple[Voter, ...]:
    """The set that a record names, by id."""
    return tuple(
        sorted(
            (
                voter["voterId"],
                voter.get("voterDirectoryId"),
                tuple((at["name"], at["host"], at["port"]) for at in voter["endpoints"])
                if "endpoints" in voter
                else None,
            )
            for voter in event.data["voters"]
        )
    )


def sets(past: Past) -> list[tuple[Event, tuple[Voter, ...]]]:
    """Each set of voters that differs from the one before. LeaderChanges tell it where nothing
    better does, which the batch that founds a quorum does right behind."""
    first = next((each for each in past.events if each.kind == "VotersRecord"), None)
    found: list[tuple[Event, tuple[Voter, ...]]] = []
    for event in past.events:
        is_better = first is not None and (
            event.row.batch_base_offset >= first.row.batch_base_offset or first.row.from_snapshot
        )
        if event.kind == "VotersRecord" or (event.kind == "LeaderChangeMessage" and not is_better):
            told = voters(event)
            if not found or found[-1][1] != told:
                found.append((event, told))
    return found


def voter_sets(past: Past) -> list[Cells]:
    """Each set for as long as it held."""
    told = sets(past)
    ends = [event.bound for event, _ in told[1:]]
    return ordered(
        (*past.known_interval(event.bound, end), len(named), named)
        for (event, named), end in zip_longest(told, ends)
    )


def voter_changes(past: Past) -> list[Cells]:
    """The change of each voter from set to set."""
    found: list[Cells] = []
    before: tuple[Voter, ...] | None = None
    for event, after in sets(past):
        row = event.row
        known = (None, None) if row.from_snapshot else (row.offset, event.at_ms)
        at = (*known, row.leader_epoch)
        found += [
            (*at, word, *voter, previous, len(after))
            for word, voter, previous in _changes(before, after)
        ]
        before = after
    return ordered(found)


def _changes(
    before: tuple[Voter, ...] | None, after: tuple[Voter, ...]
) -> Iterable[tuple[str, Voter, object]]:
    if before is None:
        yield from (("initial", voter, None) for voter in after)
        return
    old = {(number, directory): at for number, directory, at in before}
    new = {(number, directory) for number, directory, _ in after}
    for voter in after:
        number, directory, at = voter
        if (number, directory) in old:
            if old[number, directory] != at:
                yield "moved", voter, old[number, directory]
        elif (number, None) in old:
            yield "identified", voter, None
        else:
            yield "added", voter, None
    for voter in before:
        number, directory, at = voter
        is_named = directory is None and any(number == other for other, _ in new)
        if (number, directory) not in new and not is_named:
            yield "removed", voter, None


# --- several logs ---------------------------------------------------------------------------------


def health(rows: Sequence[Row]) -> dict[str, tuple[str | None, float | None, float | None]]:
    """Verdict, value and threshold by metric: as Kafka recommends, and tenfold for worse."""
    whole = [row for row in rows if row.crc_valid and row.record_type is not None]
    events = [row for row in whole if not row.from_snapshot]
    leaders: dict[int, set[int]] = {}
    begun: dict[int, int] = {}
    for row in events:
        if row.record_type == "LeaderChangeMessage":
            leaders.setdefault(row.leader_epoch, set()).add(row.data["leaderId"])
            if row.offset > 0:
                begun.setdefault(row.leader_epoch, row.at_ms)
    most = max(map(len, leaders.values()), default=None)
    times = list(begun.values())
    recent = [at for at in times if at > max(row.at_ms for row in events) - DAY_MS]
    rate = max((sum(at - HOUR_MS <= each <= at for each in times) for at in recent), default=0)
    ends: dict[int | None, int] = {}
    for row in events:
        ends[row.source_node] = max(ends.get(row.source_node, 0), row.offset + 1)
    lag = max(ends.values()) - min(ends.values()) if len(ends) > 1 else None
    stamps: dict[tuple[int | None, str], list[int]] = {}
    for row in whole:
        if row.from_snapshot and row.offset >= 0:
            stamps.setdefault((row.source_node, row.segment), []).append(row.at_ms)
    took = max((max(times) - min(times) for times in stamps.values()), default=0) or None
    logs: dict[int | None, list[Row]] = {}
    for row in sorted(events, key=lambda row: row.offset):
        logs.setdefault(row.source_node, []).append(row)
    back = max(map(_furthest_back, logs.values()), default=None)
    errors = len(rows) - len(whole)
    pairs = compared(rows)["divergence"]
    broken = sum(bool(pair[-1]) for pair in pairs) if pairs else None
    return {
        "ActiveControllerCount": (
            "unknown" if most is None else "ok" if most == 1 else "critical",
            most,
            1,
        ),
        "LeaderElectionRate": (_verdict(rate, 1), rate, 1),
        "MetadataLogEndOffset": (
            None if ends else "unknown",
            max(ends.values(), default=None),
            None,
        ),
        "MetadataLogLag": (_verdict(lag, 1000), lag, 1000),
        "SnapshotGenerationTimeMs": (_verdict(took, 10_000), took, 10_000),
        "MetadataErrorCount": ("critical" if errors else "ok", errors, 0),
        "TimestampRegressionMs": (
            "unknown" if back is None else "ok" if back <= 1000 else "warn",
            back,
            1000,
        ),
        "LogMatchingViolationCount": (
            "unknown" if broken is None else "critical" if broken else "ok",
            broken,
            0,
        ),
    }


def _furthest_back(log: Sequence[Row]) -> int:
    """The most by which a record of the last day is earlier than one in front of it."""
    back, highest = 0, log[0].at_ms
    for row in log:
        highest = max(highest, row.at_ms)
        if row.at_ms > log[-1].at_ms - DAY_MS:
            back = max(back, highest - row.at_ms)
    return back


def _verdict(value: float | None, bound: float) -> str:
    if value is None:
        return "unknown"
    return "ok" if value <= bound else "warn" if value <= 10 * bound else "critical"


def held(rows: Iterable[Row]) -> dict[int, dict[int, Cells]]:
    """The entry of each node at each offset of its log: epoch first, then all that a record is."""
    found: dict[int, dict[int, Cells]] = {}
    for row in rows:
        if row.crc_valid and row.record_type is not None and not row.from_snapshot:
            assert row.source_node is not None
            found.setdefault(row.source_node, {})[row.offset] = (
                row.leader_epoch,
                row.is_control,
                row.at_ms,
                row.key,
                row.value,
            )
    return found


def compared(rows: Sequence[Row]) -> dict[str, list[Cells]]:
    """The tables that say how logs differ."""
    logs = held(rows)
    damage: dict[int, list[Row]] = {}
    for row in rows:
        if not row.crc_valid or row.record_type is None:
            assert row.source_node is not None
            damage.setdefault(row.source_node, []).append(row)
    longest = max((max(log) + 1 for log in logs.values()), default=0)
    told: list[Cells] = []
    for node in logs.keys() | damage.keys():
        spans = _span(logs.get(node, {}), longest)
        told.append((node, *spans, len(damage.get(node, [])), _first_damage(damage.get(node, []))))
    pairs: list[Cells] = []
    for one, other in combinations(sorted(logs), 2):
        a, b = logs[one], logs[other]
        common = sorted(a.keys() & b.keys())
        differing = [offset for offset in common if a[offset] != b[offset]]
        parted = (differing[0], a[differing[0]][0], b[differing[0]][0]) if differing else None
        shared = [offset for offset in common if a[offset][0] == b[offset][0]]
        counts = (len(common), len(differing), bool(differing) and shared[-1:] >= differing[:1])
        if common:
            pairs.append((one, other, *(parted or (None,) * 3), *counts))
    return {"logs": ordered(told), "divergence": ordered(pairs), "epochs": _epochs(rows, logs)}


def _span(log: dict[int, Cells], longest: int) -> Cells:
    """start_offset, end_offset, last_epoch, lag, missing_count."""
    if not log:
        return (None,) * 5
    start, end = min(log), max(log) + 1
    return (
        start,
        end,
        max(_epoch(cells) for cells in log.values()),
        longest - end,
        end - start - len(log),
    )


def _epoch(cells: Cells) -> int:
    epoch = cells[0]
    assert isinstance(epoch, int)
    return epoch


def _first_damage(rows: list[Row]) -> str | None:
    told = sorted((row.data["file"], row.data["position"], row.data["error"]) for row in rows)
    return "{}: byte {}: {}".format(*told[0]) if told else None


def _epochs(rows: Sequence[Row], logs: dict[int, dict[int, Cells]]) -> list[Cells]:
    """Each epoch in each log, and whether those that saw it begin saw it at one offset."""
    spans: dict[tuple[int, int], list[int]] = {}
    for node, log in logs.items():
        for offset, cells in log.items():
            spans.setdefault((_epoch(cells), node), []).append(offset)
    begun: dict[tuple[int, int | None], int] = {}
    for row in sorted(rows, key=lambda row: row.offset):
        if row.record_type == "LeaderChangeMessage" and not row.from_snapshot:
            begun.setdefault((row.leader_epoch, row.source_node), row.offset)
    return ordered(
        (
            epoch,
            node,
            min(offsets),
            max(offsets) + 1,
            len({at for (begins, _), at in begun.items() if begins == epoch}) <= 1,
        )
        for (epoch, node), offsets in spans.items()
    )
