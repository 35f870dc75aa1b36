"""Errors that a client gets when it cannot connect."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from quorate.client.controller_client import ControllerClient
from quorate.rpc.security.tls_files import TlsFiles
from quorate.settings.tls import TlsSettings
from tests.certificates import DAY, Authority
from tests.integration.rpc.conftest import WAIT_S, serve
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from tests.integration.rpc.conftest import Served
    from tests.integration.security.stores import Stores


async def answer(served: Served, tls: TlsFiles | None, host: str = "127.0.0.1") -> str:
    """The reason for which the server cannot be asked."""
    server = (host, served.port)
    async with ControllerClient(
        [server], timeout_ms=int(WAIT_S * 1000), tls=tls, transport=chosen()
    ) as client:
        said = await client.try_describe_at(server, WAIT_S)
    assert isinstance(said, str)
    return said


async def test_a_client_without_a_certificate_is_told_that_one_is_wanted(
    guarded: Served, stores: Stores
) -> None:
    assert "it wants a client certificate, set ssl.keystore.location" in await answer(
        guarded, stores.files(None)
    )


async def test_a_client_whose_certificate_expires_under_way_is_told_which_one_it_was(
    guarded: Served, stores: Stores
) -> None:
    keystore = stores.give("late", stores.authority.leaf("late", valid_for=-DAY))
    # To a process that has been running for two days it was good at the start.
    files = TlsFiles(stores.settings("late"), now=lambda: dt.datetime.now(dt.UTC) - 2 * DAY)
    assert (
        f"it may not trust the certificate of User:CN=late in ssl.keystore.location {keystore}"
    ) in await answer(guarded, files)


async def test_a_client_of_another_authority_is_told_the_same(
    guarded: Served, stores: Stores
) -> None:
    stores.give("foreign", Authority("elsewhere").leaf("foreign"))
    assert "may not trust the certificate of User:CN=foreign" in await answer(
        guarded, stores.files("foreign")
    )


async def test_a_server_of_another_authority_is_not_trusted(
    guarded: Served, stores: Stores
) -> None:
    elsewhere = stores.folder / "elsewhere.pem"
    elsewhere.write_bytes(Authority("elsewhere").pem)
    said = await answer(guarded, TlsFiles(TlsSettings(ca_file=str(elsewhere))))
    assert said.startswith("the server's certificate is not trusted (")


async def test_a_certificate_for_another_host_is_not_accepted(
    guarded: Served, stores: Stores
) -> None:
    said = await answer(guarded, stores.files("peer"), host="localhost")
    assert said == "the server's certificate is for another host: use a name that it contains"


async def test_plaintext_and_tls_do_not_understand_each_other(
    guarded: Served, stores: Stores
) -> None:
    assert "it may want TLS" in await answer(guarded, None)
    plain = await serve()
    try:
        assert await answer(plain, stores.files("peer")) == "the server does not speak TLS"
    finally:
        await plain.server.stop()
