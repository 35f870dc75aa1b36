"""Commands whose stdout is not UTF-8: what is committed is reported as such."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tests.integration.quorum import STEADY, Quorum

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NAME: Final = "josé €"
ASCII_LOCALE: Final = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SHOWN: Final = {
    "ascii": rb"jos\xe9 \u20ac",
    "latin-1:strict": b"jos\xe9 \\u20ac",
    "utf-8": NAME.encode(),
}


async def test_a_committed_change_is_a_success_in_any_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = ("quotas", "alter", "--user", NAME, "--add-config", "consumer_byte_rate=1")
    async with Quorum(tmp_path / "quorum", STEADY) as quorum:

        async def run(*arguments: str) -> tuple[int | None, bytes, bytes]:
            process = await quorum.spawn_cli(*arguments)
            stdout, stderr = await process.communicate()
            return process.returncode, stdout, stderr

        for encoding, shown in SHOWN.items():
            monkeypatch.setenv("PYTHONIOENCODING", encoding)
            status, stdout, stderr = await run(*alter)
            assert (status, stderr) == (0, b""), encoding
            assert shown in stdout
            status, stdout, _ = await run("quotas", "describe", "-o", "json")
            assert status == 0
            assert stdout.isascii() == (encoding != "utf-8")
            assert json.loads(stdout)["entries"][0]["entity"] == {"user": NAME}
        monkeypatch.delenv("PYTHONIOENCODING")
        for name, value in ASCII_LOCALE.items():
            monkeypatch.setenv(name, value)
        status, stdout, _ = await run("quotas", "describe")
        assert status == 0
        assert SHOWN["ascii"] in stdout
        # This locale cannot encode the arguments: the error names the remedy.
        status, _, stderr = await run(*alter)
        assert status == 1
        assert b"has bytes outside of ascii: set LC_ALL to a locale of UTF-8" in stderr
