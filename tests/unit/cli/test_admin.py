"""`quorate admin` refuses to start in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_setting_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "admin.properties"
    assert main(["admin", "--config", str(config)]) == 1
    assert str(config) in capsys.readouterr().err
    config.write_text("admin.controller=h:1\n", encoding="utf-8")
    assert main(["admin", "--config", str(config)]) == 1
    assert capsys.readouterr().err == (
        "quorate admin: node.id is missing: give that of the controller beside this sidecar\n"
    )
