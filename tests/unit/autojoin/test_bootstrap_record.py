"""The bootstrap record as it is written and read, by machines and by hand."""

from __future__ import annotations

import pytest

from quorate.autojoin.bootstrap_record import (
    BootstrapRecord,
    decode_record,
    encode_record,
    labels_of,
    record_name,
)
from quorate.records.ids import ClusterId
from tests.unit.autojoin.looks import CLUSTER, RECORD


def test_the_config_map_is_named_after_the_stateful_set() -> None:
    assert record_name("q-quorate") == "q-quorate-bootstrap"


def test_no_label_says_that_a_release_may_delete_it() -> None:
    labels = {"app.kubernetes.io/instance": "q", "app.kubernetes.io/managed-by": "Helm", "a": "b"}
    assert labels_of(labels) == {"a": "b"}


def test_a_record_is_read_as_it_was_written() -> None:
    assert decode_record(encode_record(RECORD), "q-bootstrap") == RECORD
    by_hand = BootstrapRecord(ClusterId("c"))
    assert decode_record({"clusterId": "c"}, "q-bootstrap") == by_hand
    assert decode_record({"clusterId": " c\n"}, "q-bootstrap") == by_hand
    assert decode_record(encode_record(by_hand), "q-bootstrap") == by_hand


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"clusterId": ""},
        {"clusterId": "a b"},
        {"clusterId": CLUSTER, "directoryId": "x"},
        {"clusterId": "c", "directoryId": "?"},
    ],
)
def test_what_is_no_record_is_named(data: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="ConfigMap q-bootstrap is no bootstrap record"):
        decode_record(data, "q-bootstrap")
