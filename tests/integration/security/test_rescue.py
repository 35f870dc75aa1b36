"""Backup and recovery next to controllers with mutual TLS: asked as a peer, or not checked."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

from quorate.cli.main import main
from tests.integration.security.secure_quorum import SecureQuorum

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.integration.security.stores import Stores


async def test_the_certificates_of_a_controller_are_those_of_its_rescue(
    tmp_path: Path,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with SecureQuorum(tmp_path / "quorum", stores, controllers=1) as quorum:
        await quorum.assert_logs_agree()
        node = quorum.nodes[1]
        copy = tmp_path / "copy"
        shutil.copytree(node.metadata_dir, copy)

        async def storage(*arguments: str) -> tuple[int, str, str]:
            status = await asyncio.to_thread(main, ["storage", *arguments])
            said = capsys.readouterr()
            return status, said.out, said.err

        def as_(party: str) -> tuple[str, str]:
            path = tmp_path / f"{party}.properties"
            path.write_text(
                f"security.protocol=SSL\nssl.truststore.location={stores.truststore}\n"
                f"ssl.keystore.location={stores.keystore(party)}\n"
            )
            return "--command-config", str(path)

        recover = ("recover", "--unsafe-new-quorum", "--directory", str(copy))
        host, port = node.address
        status, _, err = await storage(*recover)
        assert status == 1
        assert f"{host}:{port} accepts connections, but: " in err
        assert "cannot be judged" in err
        status, _, err = await storage(*recover, *as_("stranger"))
        assert status == 1
        assert f"{host}:{port} refuses to say who leads" in err
        status, _, err = await storage(*recover, *as_("viewer"))
        assert status == 1
        assert f"{host}:{port} is node 1, which leads in epoch" in err

        store = str(stores.keystore("controller-1"))
        monkeypatch.setenv("QUORATE_SSL_KEYSTORE_LOCATION", store)
        backup = ("backup", "--config", str(node.properties_path), "--output")
        status, _, err = await storage(*backup, str(tmp_path / "no.tar"), *as_("stranger"))
        assert status == 1
        assert "User:CN=stranger may not call" in err
        assert "--command-config" in err
        # Whose certificate lets it fetch the log may ask who leads, too.
        status, out, err = await storage(*backup, str(tmp_path / "b.tar"))
        assert (status, err) == (0, "")
        assert "(all of it committed)" in out
