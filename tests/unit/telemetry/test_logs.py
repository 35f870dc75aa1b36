from __future__ import annotations

import io
import json
import logging
import warnings

import pytest

from quorate.telemetry.logs import Field, LogFormat, StructuredFormatter, configure_logs

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
