from __future__ import annotations

import io
import json
import logging
import warnings

import pytest

from quorate.telemetry import tracing
from quorate.telemetry.logs import (
    KEYS_MAX,
    PERIOD_S,
    PLACE_LINES_MAX,
    VALUE_CHARS_MAX,
    Field,
    LogFormat,
    RepeatFilter,
    StructuredFormatter,
    configure_logs,
    loss_line,
)
from tests.recorded_spans import recorded

NOTE = "no fetch from leader 1 for 2000 ms: become prospective, ask for pre-votes"


def record(message: str, *arguments: object, **fields: Field) -> logging.LogRecord:
    attributes = {"name": "quorate.raft", "levelname": "INFO", "created": 1_700_000_000.25}
    return logging.makeLogRecord({**attributes, "msg": message, "args": arguments, **fields})


def test_a_line_is_key_value_pairs_that_carry_a_note_as_it_is() -> None:
    formatter = StructuredFormatter(LogFormat.KEY_VALUE, {"node_id": 3})
    assert formatter.format(record(NOTE, epoch=4, leader=None)) == (
        "time=2023-11-14T22:13:20.250Z level=info logger=quorate.raft "
        f'message="{NOTE}" node_id=3 epoch=4 leader=null'
    )


def test_a_json_line_keeps_the_types_of_its_fields() -> None:
    formatter = StructuredFormatter(LogFormat.JSON, {"node_id": 3})
    line = formatter.format(record("flushed %d bytes", 7, epoch=4, leader=None, slow=True))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "quorate.raft",
        "message": "flushed 7 bytes",
        "node_id": 3,
        "epoch": 4,
        "leader": None,
        "slow": True,
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("word", "word"),
        ("two words", '"two words"'),
        ("", '""'),
        ("a=b", '"a=b"'),
        ('say "so"', '"say \\"so\\""'),
        ("first\nsecond", '"first\\nsecond"'),
        ("größer", "größer"),
        ("\x9b2J", '"\\u009b2J"'),
        ("a\u202eb", '"a\\u202eb"'),
        (True, "true"),
        (1.5, "1.5"),
    ],
)
def test_a_value_is_quoted_where_its_end_would_be_in_doubt(value: Field, written: str) -> None:
    line = StructuredFormatter(LogFormat.KEY_VALUE, {}).format(record("x", field=value))
    assert line.endswith(f" message=x field={written}")


@pytest.mark.parametrize("log_format", LogFormat)
def test_a_traceback_stays_on_its_line(log_format: LogFormat) -> None:
    failed = record("flush failed")
    error = OSError(5, "the disk is gone")
    failed.exc_info = (OSError, error, None)
    line = StructuredFormatter(log_format, {}).format(failed)
    assert "the disk is gone" in line
    assert "\n" not in line


def test_configured_logs_go_to_one_stream_from_a_level_on(root_logger: logging.Logger) -> None:
    stream = io.StringIO()
    configure_logs(level="warning", process_fields={"node_id": 3}, stream=stream)
    logging.getLogger("quorate.raft").info("unheard")
    logging.getLogger("quorate.raft").warning("heard", extra={"epoch": 4})
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("a library warns", UserWarning, stacklevel=1)
    heard, warned = stream.getvalue().splitlines()
    assert heard.endswith(" level=warning logger=quorate.raft message=heard node_id=3 epoch=4")
    assert "a library warns" in warned
    assert len(root_logger.handlers) == 1


def test_an_unknown_level_is_refused_and_changes_nothing(root_logger: logging.Logger) -> None:
    before = (root_logger.handlers[:], root_logger.level)
    with pytest.raises(ValueError, match=r"log level 'loud' is none of .*WARNING"):
        configure_logs(level="loud")
    assert (root_logger.handlers, root_logger.level) == before


@pytest.mark.parametrize("log_format", LogFormat)
def test_lines_that_were_dropped_are_a_line_of_the_log(log_format: LogFormat) -> None:
    line = loss_line(StructuredFormatter(log_format, {"node_id": 3}), 17)
    assert "17 log lines dropped: the reader of this log stood still" in line
    assert "warning" in line
    assert "node_id" in line
    if log_format is LogFormat.JSON:
        assert json.loads(line)["dropped"] == 17


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_what_repeats_itself_is_one_line_a_minute_that_counts_the_others() -> None:
    clock = Clock()
    repeats = RepeatFilter(clock)
    lines = []
    for clock.now_s in range(125):
        line = record("asks again: %d", clock.now_s, repeats="asks again")
        if repeats.filter(line):
            lines.append(
                StructuredFormatter(LogFormat.KEY_VALUE, {}).format(line).split("message=")[1]
            )
    assert lines == [
        '"asks again: 0"',
        '"asks again: 60" left_out=59',
        '"asks again: 120" left_out=59',
    ]


def test_each_key_repeats_for_itself_and_a_line_without_key_always_is_written() -> None:
    repeats = RepeatFilter(Clock())
    keys = ["a", "b", "a", None, None, "b"]
    lines = [record("x", **({} if key is None else {"repeats": key})) for key in keys]
    assert [repeats.filter(line) for line in lines] == [True, True, False, True, True, False]


def test_keys_that_callers_choose_do_not_add_up() -> None:
    repeats = RepeatFilter(Clock())
    for number in range(KEYS_MAX + 1):
        assert repeats.filter(record("x", repeats=number, lineno=number))
    assert repeats.filter(record("x", repeats=0))
    assert not repeats.filter(record("x", repeats=KEYS_MAX))


def test_keys_that_a_peer_varies_are_bounded_for_each_statement() -> None:
    clock = Clock()
    repeats = RepeatFilter(clock)
    lines = [record("x", repeats=number) for number in range(3 * PLACE_LINES_MAX)]
    assert [repeats.filter(line) for line in lines].count(True) == PLACE_LINES_MAX
    clock.now_s = PERIOD_S
    line = record("x", repeats="another")
    assert repeats.filter(line)
    assert vars(line)["left_out"] == 2 * PLACE_LINES_MAX


def test_one_topic_of_a_statement_does_not_silence_another() -> None:
    repeats = RepeatFilter(Clock())
    for number in range(2 * PLACE_LINES_MAX):
        repeats.filter(record("refused", repeats=number, topic="votes"))
    line = record("leads", repeats="leads", topic="roles")
    assert repeats.filter(line)
    assert "topic" not in StructuredFormatter(LogFormat.KEY_VALUE, {}).format(line)


def test_a_long_key_takes_little_memory() -> None:
    repeats = RepeatFilter(Clock())
    long = "k" * 100_000
    assert repeats.filter(record("x", repeats=long))
    assert not repeats.filter(record("x", repeats=f"{long}!"))
    assert len(repr(repeats._said)) < 1000


@pytest.mark.parametrize("log_format", LogFormat)
def test_a_value_is_bounded_and_keeps_its_beginning_and_its_end(log_format: LogFormat) -> None:
    text = "first " + "." * 10 * VALUE_CHARS_MAX + " last"
    line = StructuredFormatter(log_format, {}).format(record("%s", text))
    assert len(line) < VALUE_CHARS_MAX + 500
    assert "first ..." in line
    assert " characters left out] ..." in line
    assert "... last" in line


def test_json_escapes_what_a_terminal_obeys() -> None:
    line = StructuredFormatter(LogFormat.JSON, {}).format(record("x", peer="\x9b2J\u2028"))
    assert line.isprintable()
    assert json.loads(line)["peer"] == "\x9b2J\u2028"


def test_a_library_that_logs_each_failed_call_is_held_to_one_traceback_of_a_kind() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    library = logging.getLogger("grpc._cython.cygrpc")
    for error in (ValueError, ValueError, KeyError, ValueError):
        try:
            raise error("no message")
        except (ValueError, KeyError):
            library.exception("Unexpected [%s] raised by servicer method", error)
    said = [line.split("[")[1].split("]")[0] for line in stream.getvalue().splitlines()]
    assert said == ["<class 'ValueError'>", "<class 'KeyError'>"]


def test_a_line_within_a_span_tells_its_trace() -> None:
    stream = io.StringIO()
    configure_logs(log_format=LogFormat.JSON, stream=stream)
    log = logging.getLogger("quorate")
    with recorded():
        with tracing.root("election", {}):
            ids = tracing.ids()
            log.info("inside")
        log.info("outside")
    log.info("off")
    inside, outside, off = map(json.loads, stream.getvalue().splitlines())
    assert (inside["trace_id"], inside["span_id"]) == ids
    assert "trace_id" not in outside
    assert "trace_id" not in off
