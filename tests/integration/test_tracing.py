"""Tracing as a user has it: real controllers, a real collector, and collectors that are none."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING

from quorate.cli import connection
from quorate.cli.connection import add_connection_arguments, run_command
from quorate.controller.topics.messages import NewTopic
from quorate.settings.tracing import TracingSettings
from quorate.telemetry import tracing
from quorate.telemetry.span_exporter import QUEUE_MAX
from quorate.telemetry.trace_ids import trace_id_of, trace_id_text
from tests.certificates import Authority
from tests.integration.otlp import Received, collecting, hanging
from tests.integration.quorum import DEADLINE_S, OBSERVER_ID, STEADY, Quorum
from tests.integration.scraping import scraped
from tests.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from quorate.client.controller_client import ControllerClient
    from tests.integration.otlp import Collector

RAFT = "quorate.raft.v1.Raft/"
CLIENT, SERVER = 3, 2
LOST = "spans are lost on the way"


def traced(address: str) -> dict[str, str]:
    return {"tracing.otlp.endpoint": address, "tracing.write.ratio": "1"}


def instances(spans: list[Received]) -> set[str]:
    return {span.instance for span in spans}


def output(quorum: Quorum, node_id: int) -> str:
    return quorum.nodes[node_id].output_path.read_text(encoding="utf-8")


async def command(quorum: Quorum, collector: Collector, *arguments: str) -> str:
    """Run one that is traced, to its end; stderr. It has to succeed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.cli.main", arguments[0]),
        *("--bootstrap-controller", quorum.bootstrap_servers, *arguments[1:]),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.address}"},
    )
    async with asyncio.timeout(DEADLINE_S):
        _, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    return stderr.decode()


async def test_votes_and_changes_of_the_voters_are_traced_from_process_to_process(
    tmp_path: Path,
) -> None:
    async with collecting() as collector:
        async with Quorum(tmp_path, STEADY | traced(collector.address)) as quorum:
            leader_id = await quorum.leader_id()
            other = next(node_id for node_id in quorum.nodes if node_id != leader_id)
            said = await command(
                *(quorum, collector, "metadata-quorum", "remove-controller"),
                *("--controller-id", str(other)),
            )
            trace_id = said.strip().removeprefix("trace: ")
            await quorum.register_brokers()
            await quorum.create(NewTopic("a", 1, 1))
            await quorum.stop(*quorum.nodes)
        votes = [span for span in collector.spans if span.operation == RAFT + "Vote"]
        # A call without an answer, since a node started or stopped, has no attributes of one.
        answers = [span for span in votes if span.attributes["rpc.response.status_code"] == "OK"]
        asked = {span.span_id: span for span in answers if span.kind == CLIENT}
        answered = [span for span in answers if span.kind == SERVER]
        pairs = [(asked[span.parent_id], span) for span in answered if span.parent_id in asked]
        assert pairs
        for one, another in pairs:
            assert one.trace_id == another.trace_id
            assert one.instance != another.instance
            assert "kraft.vote.granted" in one.attributes
        assert len({span.service for span in votes}) == len(instances(votes))
        for span in votes:
            found = re.fullmatch(r"quorate-controller-([123])", span.service)
            assert found is not None
            assert re.fullmatch(rf"{found[1]}-[\w-]{{22}}", span.instance)
        change = {span.operation: span for span in collector.of_trace(trace_id)}
        root = change["quorate metadata-quorum remove-controller"]
        assert (root.service, root.parent_id) == ("quorate-cli", "")
        remove = RAFT + "RemoveRaftVoter"
        removal = [span for span in collector.of_trace(trace_id) if span.operation == remove]
        assert {span.kind for span in removal} == {CLIENT, SERVER}
        (at_leader,) = instances([span for span in removal if span.kind == SERVER])
        assert at_leader.startswith(f"{leader_id}-")
        writes = [
            span
            for span in collector.spans
            if span.operation == "quorate.controller.v1.Controller/Write"
        ]
        assert {"RegisterBroker", "CreateTopics"} <= {span.name for span in writes}
        # Both of the voters that are left have to have a record on the disk.
        of_creation = {span.trace_id for span in writes if span.name == "CreateTopics"}
        flushes = [
            span
            for span in collector.spans
            if span.operation == "kraft.write.flush" and span.trace_id in of_creation
        ]
        voters = {*quorum.nodes} - {other}
        assert {span.attributes["kraft.voter.id"] for span in flushes} == voters
        by_id = {span.span_id: span for span in collector.spans}
        for span in flushes:
            commit = by_id[span.parent_id]
            assert commit.operation == "kraft.write.commit"
            assert span.span.end_time_unix_nano <= commit.span.end_time_unix_nano


async def test_who_joins_by_itself_is_traced_from_there_to_the_commit(tmp_path: Path) -> None:
    joins = {"controller.quorum.auto.join.enable": "true"}
    async with (
        collecting() as collector,
        Quorum(tmp_path, traced(collector.address) | joins, controllers=1) as quorum,
    ):
        await quorum.add_observer()

        def changes() -> list[Received]:
            return [span for span in collector.spans if span.operation == "kraft.voter_change"]

        await collector.until("the change of the voters", lambda: bool(changes()))
        # If it did not succeed immediately, the one that joins asks again.
        change = changes()[0]

        def asked() -> list[Received]:
            whole = collector.of_trace(change.trace_id)
            return [span for span in whole if span.operation == RAFT + "AddRaftVoter"]

        await collector.until("both ends of the call", lambda: len(asked()) == 2)
        by_id = {span.span_id: span for span in asked()}
        served = by_id[change.parent_id]
        root = by_id[served.parent_id]
        assert (served.kind, served.instance) == (SERVER, change.instance)
        assert (root.kind, root.parent_id) == (CLIENT, "")
        assert root.instance.startswith(f"{OBSERVER_ID}-")


async def test_the_id_of_an_epochs_trace_is_told_by_any_controller(quorum: Quorum) -> None:
    told = await quorum.cli("trace-id", "--epoch", "3")
    assert told.strip() == trace_id_text(trace_id_of(quorum.plan.cluster_id, 3))


async def test_a_collector_is_reached_by_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(trusted))
    async with collecting(authority.leaf("collector")) as collector:
        tracing.start(TracingSettings(endpoint=f"https://{collector.address}"), "test")
        try:
            with tracing.root("a", {"answer": 42}):
                pass
            tracing.flush()
            await collector.until("the span", lambda: bool(collector.spans))
            (span,) = collector.spans
            assert (span.service, span.attributes) == ("quorate-test", {"answer": 42})
        finally:
            await asyncio.to_thread(tracing.stop)


async def test_spans_that_a_collector_rejects_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async with collecting() as collector:
        collector.answer.rejected_spans = 1
        collector.answer.error_message = "too old"
        tracing.start(TracingSettings(endpoint=f"http://{collector.address}"), "test")
        for _ in range(3):
            with tracing.root("a", {}):
                pass
        active = tracing.active()
        assert active is not None
        await asyncio.to_thread(tracing.stop)
        numbers = active.metrics()
    assert (numbers["spans_exported_total"], numbers["spans_dropped_total"]) == (2, 1)
    assert "1 rejected: too old" in caplog.text


def traced_command() -> int:
    """Run a command that asks no quorum, to its end; its status."""

    async def succeeds(_: ControllerClient, __: argparse.Namespace) -> int:
        return 0

    parser = argparse.ArgumentParser()
    add_connection_arguments(parser, [])
    return run_command(succeeds, parser.parse_args(["--bootstrap-controller", "127.0.0.1:1"]))


async def test_a_command_gives_up_at_the_first_refusal_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with collecting() as collector:
        collector.refuses = True
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        # However slow the machine is, the refusal arrives.
        monkeypatch.setattr(connection, "TRACE_S", DEADLINE_S)
        assert await asyncio.to_thread(traced_command) == 0
        assert collector.calls == 1
    said = capsys.readouterr().err
    assert said.startswith(f"warning: the trace is lost on the way to http://{collector.address}: ")
    assert "it is overloaded" in said
    assert said.count("\n") == 1


async def test_a_command_does_not_wait_for_a_collector_that_hangs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with hanging() as (port, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"127.0.0.1:{port}")
        assert await asyncio.to_thread(traced_command) == 0
    said = capsys.readouterr().err
    assert said == (
        f"warning: the trace is lost on the way to http://127.0.0.1:{port}:"
        " it does not answer in time\n"
    )


async def test_a_command_whose_trace_arrives_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        monkeypatch.setattr(connection, "TRACE_S", DEADLINE_S)
        assert await asyncio.to_thread(traced_command) == 0
        assert [span.service for span in collector.spans] == ["quorate-cli"]
    assert capsys.readouterr().err == ""


async def test_a_dead_collector_is_a_line_in_the_log_and_nothing_else(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with Quorum(tmp_path, traced(f"127.0.0.1:{port}"), controllers=1) as quorum:

        async def is_told() -> bool:
            await quorum.create(*(NewTopic(f"t{number}", 1, 1) for number in range(3)))
            return LOST in output(quorum, 1)

        await quorum.register_brokers()
        await quorum.eventually("the loss is told", is_told)
        await quorum.stop(1)
        lines = [line for line in output(quorum, 1).splitlines() if "spans" in line]
        assert len(lines) == 1
        assert "opentelemetry" not in output(quorum, 1)
        assert "Traceback" not in output(quorum, 1)


async def test_a_collector_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    async with (
        hanging() as (port, came),
        Quorum(tmp_path, traced(f"127.0.0.1:{port}"), controllers=1) as quorum,
    ):
        await quorum.register_brokers()
        async with asyncio.timeout(DEADLINE_S):
            await came.wait()
        # One change each, and a span of each.
        for count in range(100):
            await quorum.create(NewTopic(f"t{count}", 1, 1))
        assert 0 < await scraped(quorum.nodes[1], "spans_queued") <= QUEUE_MAX
        assert await scraped(quorum.nodes[1], "spans_exported") == 0
        await quorum.stop(1)
        assert "Traceback" not in output(quorum, 1)
