"""`quorate topics` against real controllers: what its flags change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.quorum import Quorum

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_topic_that_is_not_there_is_an_error_unless_that_is_fine(quorum: Quorum) -> None:
    assert (await quorum.try_cli("topics", "create", "--topic", "there"))[0] == 0
    for action in ("describe", "delete"):
        status, _, stderr = await quorum.try_cli("topics", action, "--topic", "gone")
        assert status == 1
        assert "gone" in stderr
        status, stdout, _ = await quorum.try_cli("topics", action, "--topic", "gone", "--if-exists")
        assert (status, stdout) == (0, "")
    both = ("--topic", "gone", "--topic", "there", "--if-exists")
    status, stdout, _ = await quorum.try_cli("topics", "describe", *both)
    assert status == 0
    assert "there" in stdout
    assert "gone" not in stdout
    assert (await quorum.try_cli("topics", "delete", *both))[0] == 0
    assert (await quorum.try_cli("topics", "list"))[:2] == (0, "")


async def test_whoever_has_not_caught_up_is_read_only_by_who_asks_for_that(tmp_path: Path) -> None:
    """Alone after its start a controller cannot know what the others have committed."""
    async with Quorum(tmp_path / "quorum") as quorum:
        await quorum.register_brokers()
        await quorum.cli("topics", "create", "--topic", "t")
        await quorum.assert_logs_agree()
        await quorum.kill(*quorum.nodes)
        await quorum.start(1)
        node = quorum.nodes[1]
        alone = ("list", "--controller", f"{node.address[0]}:{node.port}", "--timeout-ms", "3000")

        async def is_up() -> bool:
            return not isinstance(await quorum.client.try_describe_at(node.address, 1.0), str)

        await quorum.eventually("it answers", is_up)
        status, stdout, stderr = await quorum.try_cli("topics", *alone)
        assert (status, stdout) == (1, "")
        assert "has not caught up since its start" in stderr
        assert (await quorum.try_cli("topics", *alone, "--even-if-behind"))[0] == 0
