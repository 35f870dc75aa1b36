"""Health over a real socket: three services with the status that is set, and reflection."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quorate.rpc.channels import make_server, open_channel
from quorate.rpc.health import LIVENESS, READINESS, STARTUP, HealthServer, enable_reflection
from tests.integration.rpc.conftest import HOST
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from quorate.settings.port_checks import Hosts

STATUS = health_pb2.HealthCheckResponse


async def test_each_service_says_what_it_was_told() -> None:
    health = HealthServer(chosen())
    port = await health.start(HOST, 0)
    try:
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)

            async def ask(service: str) -> int:
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
                return int(answer.status)

            services = (LIVENESS, READINESS, STARTUP)
            assert [await ask(one) for one in services] == [STATUS.NOT_SERVING] * 3
            await health.set(READINESS, serving=True)
            assert [await ask(one) for one in services] == [
                STATUS.NOT_SERVING,
                STATUS.SERVING,
                STATUS.NOT_SERVING,
            ]
            await health.set(READINESS, serving=False)
            assert await ask(READINESS) == STATUS.NOT_SERVING
    finally:
        await health.stop()


async def test_all_services_are_listed_with_what_they_say(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health = HealthServer(chosen())
    port = await health.start(HOST, 0)
    try:
        await health.set(READINESS, serving=True)
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            answer = await health_pb2_grpc.HealthStub(channel).List(health_pb2.HealthListRequest())
    finally:
        await health.stop()
    assert {name: one.status for name, one in answer.statuses.items()} == {
        "": STATUS.SERVING,
        LIVENESS: STATUS.NOT_SERVING,
        READINESS: STATUS.SERVING,
        STARTUP: STATUS.NOT_SERVING,
    }
    assert not caplog.records


async def test_a_taken_port_is_an_error_that_names_it() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=str(port)):
            await HealthServer(chosen()).start(HOST, port)


@pytest.mark.parametrize("hosts", ["", (HOST, "::1")])
async def test_it_listens_on_ipv6_addresses_too(hosts: Hosts) -> None:
    health = HealthServer(chosen())
    port = await health.start(hosts, 0)
    try:
        for host in (HOST, "::1"):
            async with open_channel(host, port, transport=chosen()) as channel:
                stub = health_pb2_grpc.HealthStub(channel)
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=LIVENESS))
                assert answer.status == STATUS.NOT_SERVING
    finally:
        await health.stop()


async def test_reflection_lists_the_services() -> None:
    server = make_server((), received_bytes_max=1024, transport=chosen())
    enable_reflection(server, "quorate.raft.v1.Raft")
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            call = stub.ServerReflectionInfo(
                iter([reflection_pb2.ServerReflectionRequest(list_services="")])
            )
            answer = await call.read()
            names = {service.name for service in answer.list_services_response.service}
            assert names == {
                "quorate.raft.v1.Raft",
                "grpc.reflection.v1alpha.ServerReflection",
            }
    finally:
        await server.stop(None)
