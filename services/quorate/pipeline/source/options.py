"""Parses and validates the options of the data source.

Spark passes options as strings with case-insensitive names. An unknown name is rejected, because a
misspelt one would otherwise be a filter that silently does nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.frame_schema import COLUMNS, TIME_MAX_MS, TYPED
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS: Final = {"true": True, "false": False}
_SPLIT_BYTES: Final = 32 * 1024 * 1024
# Records converted to JSON take several times as long, so smaller splits pay off.
_SPLIT_BYTES_WITH_PAYLOAD: Final = 8 * 1024 * 1024
_SPLIT_BYTES_MIN: Final = 4096
_INT64_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = len(str(_INT64_MAX))
START: Final = "startingOffsets"
END: Final = "endingOffsets"
_NAMES: Final = (
    "path",
    "bootstrap.servers",
    START,
    END,
    "maxOffsetsPerTrigger",
    "maxTasks",
    "failOnDataLoss",
    "includeControlRecords",
    "isolation",
    "recordTypes",
    "recordTypesOnly",
    "columns",
    "payload",
    "onDamage",
    "splitBytes",
    "commandConfig",
    "pushdown",
    "mergeDirectories",
)
# Spark's catalog sets these for a new table, and repeats its options with a prefix.
_OF_A_TABLE: Final = frozenset({"owner", "provider"})
_TABLE_OPTION: Final = "option."
_STARTS: Final = ("earliest", "latest", "snapshot")
_ENDS: Final = ("latest",)
_PLACES: Final = "an offset from 0 on or a time such as 2026-11-20T08:00:00Z"
_TIMES: Final = "{} takes a time, too, such as 2026-11-20T08:00:00Z"
# Option names of other Spark sources, with the equivalent here.
_HINTS: Final = {
    "kafka.bootstrap.servers": "it is bootstrap.servers here",
    "startingtimestamp": _TIMES.format(START),
    "startingoffsetsbytimestamp": _TIMES.format(START),
    "endingtimestamp": _TIMES.format(END),
    "endingoffsetsbytimestamp": _TIMES.format(END),
    "minpartitions": "splitBytes says how much one task reads of a path",
    "maxrecordsperpartition": "splitBytes says how much one task reads of a path",
    "subscribe": "the metadata log is read, and no other topic; leave it out",
    "paths": "path takes several directories, separated by commas: load('/a,/b')",
}
_FILE_URL: Final = re.compile(r"file:(//(localhost)?)?(?=/(?!/))", re.IGNORECASE)
URL: Final = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
# An offset of at least this is probably a time of this century in milliseconds.
_MILLISECONDS_MIN: Final = 946_684_800_000


class OptionError(ValueError):
    """An invalid option of the source; the message names it and the valid values."""


@value_type
class AtOffset:
    """A position in the log: the record with this offset, or the next one."""

    offset: int

    def __str__(self) -> str:
        return str(self.offset)


@value_type
class AtTime:
    """A position in the log: the first record with this timestamp or a later one."""

    timestamp_ms: int

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)
        return moment.isoformat().replace("+00:00", "Z")


@value_type
class SnapshotAt:
    """The newest intact snapshot that ends at or below a position."""

    place: AtOffset | AtTime

    def __str__(self) -> str:
        return f"snapshot@{self.place}"


@value_type
class Options:
    """The options of a reader.

    `start` and `end` are a keyword (earliest, latest, snapshot) or a position; the end is
    exclusive. `payload_types` are the data records returned as JSON, None means all;
    `has_control_payload` is the same for control records. Either `paths` or `bootstrap_servers` (a
    live quorum) is set.
    """

    paths: tuple[str, ...]
    bootstrap_servers: str | None
    start: str | AtOffset | AtTime | SnapshotAt
    end: str | AtOffset | AtTime
    offsets_per_trigger_max: int | None
    tasks_max: int | None
    fails_on_data_loss: bool
    has_controls: bool
    is_committed_only: bool
    record_types: tuple[str, ...]
    is_typed_only: bool
    columns: tuple[str, ...]
    payload_types: tuple[str, ...] | None
    has_control_payload: bool
    fails_on_damage: bool
    split_bytes: int
    command_config: str | None
    takes_filters: bool
    merges_directories: bool

    @property
    def times(self) -> dict[str, AtTime]:
        """The options that name a time, including the time of a snapshot."""
        start = self.start.place if isinstance(self.start, SnapshotAt) else self.start
        places = {START: start, END: self.end}
        return {name: place for name, place in places.items() if isinstance(place, AtTime)}


def parse_options(options: Mapping[str, str]) -> Options:
    """Parse the options of `spark.read`. Raises OptionError for the first invalid one."""
    return _Parser(options).parse()


def table_options(options: Mapping[str, str]) -> dict[str, str] | None:
    """The options of a table that is being created, without those that Spark's catalog adds.

    Returns None for the options of a frame.
    """
    if not {name.lower() for name in options} >= _OF_A_TABLE:
        return None
    prefixed = {name: name.lower().removeprefix(_TABLE_OPTION) for name in options}
    own = {new: options[name] for name, new in prefixed.items() if new != name.lower()}
    # The path is the location of the table, and has no prefix.
    return own | {name: given for name, given in options.items() if name.lower() == "path"}


def gone_error(option: str, place: object, log: str, begin: int, more: str = "") -> OptionError:
    """The error for a position whose records were deleted, in a log that starts at `begin`."""
    remedy = "begin there, or with earliest" if option == START else "end there or later"
    return OptionError(f"{option}: {place} is gone, {log} begins at offset {begin}; {remedy}{more}")


def check_reached(options: Options, log: str, end: int) -> None:
    """Raise OptionError for an offset after the end of a log."""
    for name, place in ((START, options.start), (END, options.end)):
        if isinstance(place, AtOffset) and place.offset > end:
            more = ""
            if _MILLISECONDS_MIN <= place.offset <= TIME_MAX_MS:
                more = f"; if that is a time in milliseconds, write {AtTime(place.offset)}"
            raise OptionError(
                f"{name}: {place} lies behind the end of {log}, which is at offset {end}; give "
                f"that or a lower one, or latest{more}"
            )


class _Parser:
    def __init__(self, options: Mapping[str, str]) -> None:
        known = {name.lower(): name for name in _NAMES}
        self.given: dict[str, str] = {}
        for name, given in options.items():
            if name.lower() not in known:
                raise OptionError(f"{name}: there is no such option; {_hint(name, known)}")
            self.given[known[name.lower()]] = given.strip()

    def parse(self) -> Options:
        parts = (part.strip() for part in self.given.get("path", "").split(","))
        paths = tuple(_local_path(part) for part in parts if part)
        servers = self.given.get("bootstrap.servers") or None
        if bool(paths) == bool(servers):
            raise OptionError(
                "path: give either path (the directory of a metadata log, or several separated by "
                "commas) or bootstrap.servers (host:port,... of a live quorum)"
            )
        start, end = self.start(), self.end()
        self.check_order(start, end)
        types = self.record_types()
        columns = self.columns()
        payload_types = self.payload_types() if "payload" in columns else ()
        return Options(
            paths=paths,
            bootstrap_servers=servers,
            start=start,
            end=end,
            offsets_per_trigger_max=self.count("maxOffsetsPerTrigger", 1),
            tasks_max=self.tasks(servers),
            fails_on_data_loss=self.flag("failOnDataLoss", default=True),
            has_controls=self.flag("includeControlRecords", default=True),
            is_committed_only=self.is_committed_only(),
            record_types=types,
            is_typed_only=self.is_typed_only(types),
            columns=columns,
            payload_types=payload_types,
            has_control_payload="payload" in columns
            and self.given.get("payload", "").lower() != "false",
            fails_on_damage=self.choice("onDamage", ("row", "fail")) == "fail",
            split_bytes=self.count("splitBytes", _SPLIT_BYTES_MIN)
            or (_SPLIT_BYTES if payload_types == () else _SPLIT_BYTES_WITH_PAYLOAD),
            command_config=self.given.get("commandConfig") or None,
            takes_filters=self.flag("pushdown", default=False),
            merges_directories=self.flag("mergeDirectories", default=False),
        )

    def start(self) -> str | AtOffset | AtTime | SnapshotAt:
        text = self.given.get(START) or "earliest"
        if text.lower() in _STARTS:
            return text.lower()
        word, at, place = text.partition("@")
        if at and word.lower() == "snapshot":
            return SnapshotAt(self.offset_or_time(START, place, _STARTS))
        return self.offset_or_time(START, text, _STARTS)

    def end(self) -> str | AtOffset | AtTime:
        text = self.given.get(END) or _ENDS[0]
        return text.lower() if text.lower() in _ENDS else self.offset_or_time(END, text, _ENDS)

    def check_order(
        self, start: str | AtOffset | AtTime | SnapshotAt, end: str | AtOffset | AtTime
    ) -> None:
        """Check that the end is not before the start; an offset and a time are not compared."""
        is_reversed = False
        if isinstance(start, AtOffset) and isinstance(end, AtOffset):
            is_reversed = end.offset < start.offset
        elif isinstance(start, AtTime) and isinstance(end, AtTime):
            is_reversed = end.timestamp_ms < start.timestamp_ms
        if is_reversed:
            raise OptionError(
                f"{END}: {self.given[END]} comes before {START}, "
                f"{self.given[START]}; it may be the same or later"
            )

    def tasks(self, servers: str | None) -> int | None:
        most = self.count("maxTasks", 1)
        if most is not None and servers is None:
            raise OptionError(
                "maxTasks: it spares a live quorum; splitBytes says how much one task reads of a "
                "path"
            )
        return most

    def is_committed_only(self) -> bool:
        words = ("committed", "read_uncommitted")
        if self.given.get("isolation", "").lower() == "read_committed":
            raise OptionError("isolation: write committed for read_committed, or leave it out")
        return self.choice("isolation", words) == words[0]

    def is_typed_only(self, types: tuple[str, ...]) -> bool:
        is_only = self.flag("recordTypesOnly", default=False)
        if is_only and not types:
            raise OptionError(
                "recordTypesOnly: no row would be left; name the types to keep in recordTypes"
            )
        return is_only

    def offset_or_time(self, name: str, text: str, words: tuple[str, ...]) -> AtOffset | AtTime:
        # Python rejects numbers with thousands of digits, with an error message of its own.
        if text.isdecimal() and len(text) <= _DIGITS_MAX and int(text) <= _INT64_MAX:
            return AtOffset(int(text))
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise OptionError(
                f"{name}: {text!r} is none of {', '.join(words)}, {_PLACES}"
            ) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return AtTime(round(moment.timestamp() * 1000))

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.given.get(name)
        if not text:
            return default
        if text.lower() not in _WORDS:
            raise OptionError(f"{name}: {text!r} is neither true nor false")
        return _WORDS[text.lower()]

    def choice(self, name: str, words: tuple[str, ...]) -> str:
        text = (self.given.get(name) or words[0]).lower()
        if text not in words:
            raise OptionError(f"{name}: {text!r} is none of {', '.join(words)}")
        return text

    def count(self, name: str, minimum: int) -> int | None:
        text = self.given.get(name)
        if not text:
            return None
        is_number = text.isdecimal() and len(text) <= _DIGITS_MAX
        if not is_number or not minimum <= int(text) <= _INT64_MAX:
            raise OptionError(f"{name}: {text!r} is not a whole number from {minimum} on")
        return int(text)

    def record_types(self) -> tuple[str, ...]:
        return self.types("recordTypes", "")

    def payload_types(self) -> tuple[str, ...] | None:
        match (self.given.get("payload") or "true").lower():
            case "true":
                return None
            case "false" | "control":
                return ()
            case _:
                return self.types("payload", "neither true, false or control nor ")

    def types(self, name: str, otherwise: str) -> tuple[str, ...]:
        names = self.names(name)
        for each in names:
            if each not in TYPED:
                what = f"{otherwise}a" if otherwise else "no"
                raise OptionError(
                    f"{name}: {each!r} is {what} metadata record's name; there are "
                    f"{', '.join(TYPED)}"
                )
        return names

    def columns(self) -> tuple[str, ...]:
        names = self.names("columns") or tuple(COLUMNS)
        for name in names:
            if name not in COLUMNS:
                raise OptionError(f"columns: {name!r} is no column; there are {', '.join(COLUMNS)}")
        return names

    def names(self, name: str) -> tuple[str, ...]:
        parts = [part.strip() for part in self.given.get(name, "").split(",")]
        return tuple(dict.fromkeys(part for part in parts if part))


def _hint(name: str, known: Mapping[str, str]) -> str:
    if name.lower() in _HINTS:
        return _HINTS[name.lower()]
    if name.lower().startswith("kafka."):
        return "commandConfig names a file with the properties of the connection"
    close = get_close_matches(name.lower(), known, n=1)
    return f"{known[close[0]]} is meant?" if close else f"there are {', '.join(known.values())}"


def _local_path(path: str) -> str:
    """The path in a file URL; other paths are returned unchanged."""
    local = _FILE_URL.match(path)
    if local is None and URL.match(path):
        raise OptionError(
            f"path: {path} is in no directory of this machine: only those are read; mount it, or "
            "name a copy"
        )
    return path if local is None else path[local.end() :]
