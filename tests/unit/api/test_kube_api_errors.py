"""An error names only what a person can read of an API server's answer."""

from __future__ import annotations

import json

import pytest

from quorate.api.kube_api_errors import BODY_BYTES_MAX, WORDS_MAX, message_of, printable


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        b"",
        "<html>502 Bad Gateway</html>",
        b"\xff\xfe{",
        "[]",
        '"text"',
        "{}",
        '{"message": 3}',
        "[" * 20_000,
        json.dumps({"message": "x" * BODY_BYTES_MAX}),
    ],
)
def test_what_is_no_refusal_has_no_message(body: bytes | str | None) -> None:
    assert message_of(body) == ""


def test_the_message_alone_is_told() -> None:
    body = {"kind": "Status", "message": 'pods "q-2" is forbidden', "details": {"uid": "u"}}
    assert message_of(json.dumps(body)) == 'pods "q-2" is forbidden'
    assert message_of(json.dumps(body).encode()) == 'pods "q-2" is forbidden'


def test_a_message_is_one_bounded_line() -> None:
    assert printable("a\x1b[31m\nb\u2028\ud800c") == "a [31m b c"
    long = message_of(json.dumps({"message": "y" * 5_000}))
    assert len(long) == WORDS_MAX
    assert long.endswith("...")
