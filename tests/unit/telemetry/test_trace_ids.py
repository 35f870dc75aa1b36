"""The ids of traces that are known before there is a trace."""

from __future__ import annotations

from quorate.telemetry.trace_ids import trace_id_of, trace_id_text

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def test_a_trace_id_is_what_a_shell_makes_of_cluster_and_epoch() -> None:
    # printf 'MkU3OEVBNTcwNTJENDM2Qk\000\000\000\007' | sha256sum | cut -c1-32
    assert trace_id_text(trace_id_of(CLUSTER, 7)) == "cd832b1a51a7cc7a2973629a5d19685d"
    assert trace_id_text(trace_id_of(CLUSTER, 0)) == "c063e6943dce7f6f3c10a2d87b3bba0e"
    assert trace_id_text(trace_id_of(CLUSTER, 2**31 - 1)) == "fc53437dab7df2972f5409dff6af4cd1"


def test_other_epochs_and_other_clusters_have_other_traces() -> None:
    ids = {trace_id_of(cluster, epoch) for cluster in (CLUSTER, "a", "") for epoch in range(100)}
    assert len(ids) == 300
    assert all(0 < trace_id < 1 << 128 for trace_id in ids)


def test_a_small_trace_id_is_written_in_full() -> None:
    assert trace_id_text(0x2A) == "0000000000000000000000000000002a"
