"""The position of a stream in JSON, as Spark stores it in the checkpoint of the query."""

from __future__ import annotations

import pytest

from quorate.pipeline.source.stream_offset import CheckpointError, StreamOffset, read_offset


def test_what_is_not_known_is_left_out() -> None:
    assert StreamOffset(7).to_json() == {"offset": 7}
    whole = StreamOffset(7, 0, "c", 0, "7-1", "7-2")
    assert whole.to_json() == {
        "offset": 7,
        "epoch": 0,
        "cluster": "c",
        "log_start": 0,
        "snapshot": "7-1",
        "through": "7-2",
    }
    assert read_offset(whole.to_json()) == whole
    assert read_offset({"offset": 7}) == StreamOffset(7)


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ({"offset": 7, "voter": 2, "at": 1}, r"voter, at, which"),
        ({"offset": "7"}, r"offset, which"),
        ({"offset": True}, r"offset, which"),
        ({"offset": 7, "cluster": None}, r"cluster, which"),
        ({"cluster": "c"}, r"no offset:"),
    ],
)
def test_what_this_release_does_not_know_is_refused(place: dict[str, object], what: str) -> None:
    with pytest.raises(CheckpointError, match=rf"with {what}.*give the query a new checkpoint"):
        read_offset(place)
