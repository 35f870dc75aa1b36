"""Structured logging to stderr as key=value or JSON, with rate-limited repeats.

Code logs through the standard library. The message is a sentence, for instance one of the core's
notes; values that a reader would search for are separate fields:

    logging.getLogger(__name__).info(note, extra={"epoch": 4, "high_watermark": 17})

The field names `time`, `level`, `logger`, `message` and `error` are reserved, and so are `trace_id`
and `span_id` while a span is current.

A line that other processes can trigger repeatedly, or that is logged at each retry, has a key in
the field `repeats`: one line per key and minute is written, with the number of lines left out
before it (rule `retry_backoff`). The key is not part of the line:

    log.info("refused: %s", why, extra={"repeats": why})

Keys contain no numbers and no peer's text. In case one does, `PLACE_LINES_MAX` bounds the lines
with keys that one statement writes in a minute. A statement that logs events of several kinds has
the kind in the field `topic`, so that one kind does not silence the others.

A peer's text is shortened where it is logged (`records/escaping.py`). Every value is bounded here,
and control characters for terminals and invisible characters are escaped.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.process.queued_output import lines_dropped, queued_stderr
from quorate.records.escaping import UNSEEN
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

Field: TypeAlias = str | int | float | bool | None

REPEATS: Final = "repeats"
TOPIC: Final = "topic"
LEFT_OUT: Final = "left_out"
PERIOD_S: Final = 60.0
KEYS_MAX: Final = 1000
# Lines with keys that one statement writes in a period, whatever the keys.
PLACE_LINES_MAX: Final = 240
# Characters of a textual key that are compared and kept.
_KEY_CHARS_MAX: Final = 200
# Characters of one value; of a longer one its beginning and its end are written.
VALUE_CHARS_MAX: Final = 16 * 1024
# Libraries that write a line or a traceback for each failure, without keys.
_CHATTY: Final = ("grpc", "asyncio", "opentelemetry")

# What logging itself puts on a record; everything else came with `extra`.
_RESERVED = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    REPEATS,
    TOPIC,
}


class LogFormat(Enum):
    """The format of a line."""

    KEY_VALUE = "key-value"
    JSON = "json"


class StructuredFormatter(logging.Formatter):
    """Time, level, logger and message first, then the fields; a traceback is the field `error`."""

    def __init__(self, log_format: LogFormat, process_fields: Mapping[str, Field]) -> None:
        """`process_fields`, such as the node id, are on every line."""
        super().__init__()
        self._write = _json if log_format is LogFormat.JSON else _key_value
        self._process_fields = dict(process_fields)

    def format(self, record: logging.LogRecord) -> str:
        """One line without a line break in it."""
        moment = datetime.fromtimestamp(record.created, tz=UTC)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= self._process_fields
        line |= {key: value for key, value in vars(record).items() if key not in _RESERVED}
        ids = tracing.ids()
        if ids is not None:
            line["trace_id"], line["span_id"] = ids
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return self._write(line)


@dataclass(slots=True)
class _Said:
    """The time when a line of one key was last written, and the number left out since."""

    at_s: float
    left_out: int = 0


@dataclass(slots=True)
class _Place:
    """The lines with keys that one statement has written since `begun_s`, and those left out."""

    begun_s: float
    lines: int = 0
    left_out: int = 0


class RepeatFilter(logging.Filter):
    """Lets one line of each key through in a period, and counts the others."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._said: dict[object, _Said] = {}
        # As many entries as there are statements with keys, and topics.
        self._places: dict[object, _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record is written; if so, it gets the number of those left out before it."""
        key: object = getattr(record, REPEATS, None)
        if key is None:
            if not record.name.startswith(_CHATTY):
                return True
            kind = record.exc_info[0] if record.exc_info else None
            key = (record.name, record.lineno, kind)
        now_s = self._now_s()
        key = _bounded_key(key)
        said = self._said.get(key)
        if said is not None and now_s - said.at_s < PERIOD_S:
            said.left_out += 1
            return False
        place = self._place_of(record, now_s)
        if place.lines >= PLACE_LINES_MAX:
            place.left_out += 1
            return False
        place.lines += 1
        left_out, place.left_out = place.left_out, 0
        if said is None:
            self._begin(key, now_s)
        else:
            left_out += said.left_out
            said.at_s, said.left_out = now_s, 0
        if left_out:
            setattr(record, LEFT_OUT, left_out)
        return True

    def _place_of(self, record: logging.LogRecord, now_s: float) -> _Place:
        where = (record.name, record.lineno, getattr(record, TOPIC, None))
        place = self._places.get(where)
        if place is None or now_s - place.begun_s >= PERIOD_S:
            left_out = 0 if place is None else place.left_out
            place = self._places[where] = _Place(now_s, left_out=left_out)
        return place

    def _begin(self, key: object, now_s: float) -> None:
        """Add a new key, replacing the oldest one if there are too many."""
        if len(self._said) >= KEYS_MAX:
            del self._said[next(iter(self._said))]
        self._said[key] = _Said(now_s)


def _bounded_key(key: object) -> object:
    if isinstance(key, tuple):
        return tuple(map(_bounded_key, key))
    return key[:_KEY_CHARS_MAX] if isinstance(key, str | bytes) else key


def _bounded(text: str) -> str:
    """Shorten a value to the allowed length."""
    excess = len(text) - VALUE_CHARS_MAX
    if excess <= 0:
        return text
    half = VALUE_CHARS_MAX // 2
    return f"{text[:half]} [{excess} characters left out] {text[-half:]}"


def _escaped(line: str) -> str:
    """The line with characters that a terminal obeys or hides as JSON's escapes."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _json(line: Mapping[str, object]) -> str:
    bounded = {key: _bounded(v) if isinstance(v, str) else v for key, v in line.items()}
    return _escaped(json.dumps(bounded, default=str, ensure_ascii=False))


def _key_value(line: Mapping[str, object]) -> str:
    return " ".join(f"{key}={_quoted(value)}" for key, value in line.items())


def _quoted(value: object) -> str:
    """`value` as a word, or as a JSON string if its end would be ambiguous."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = _bounded(str(value))
    is_word = text.isprintable() and text != "" and not any(mark in text for mark in ' "=')
    return text if is_word else _escaped(json.dumps(text, ensure_ascii=False))


def loss_line(formatter: logging.Formatter, lines: int) -> str:
    """The line that replaces lines dropped because the reader of the log was too slow."""
    about = {"name": __name__, "levelname": "WARNING", "levelno": logging.WARNING}
    words = "%d log lines dropped: the reader of this log stood still"
    record = logging.makeLogRecord({**about, "msg": words, "args": (lines,), "dropped": lines})
    return formatter.format(record)


def numbers() -> dict[str, int]:
    """The figures about its log that each process with a metrics port reports."""
    return {"log_lines_dropped_total": lines_dropped()}


def configure_logs(
    *,
    level: str = "INFO",
    log_format: LogFormat = LogFormat.KEY_VALUE,
    process_fields: Mapping[str, Field] | None = None,
    stream: TextIO | None = None,
) -> None:
    """Send everything that is logged in this process to `stream` (stderr), and only there.

    Raises ValueError, and changes nothing, if `level` is not a level of the logging module.
    """
    levels = logging.getLevelNamesMapping()
    if level.upper() not in levels:
        raise ValueError(f"log level {level!r} is none of {', '.join(levels)}")
    handler = logging.StreamHandler(stream)
    handler.addFilter(RepeatFilter())
    formatter = StructuredFormatter(log_format, process_fields or {})
    handler.setFormatter(formatter)
    queued = queued_stderr()
    if queued is not None:
        queued.word_loss = partial(loss_line, formatter)
    logging.basicConfig(handlers=[handler], level=levels[level.upper()], force=True)
    logging.captureWarnings(capture=True)
