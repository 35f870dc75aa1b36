"""`quorate controller` refuses to start in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_config_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "controller.properties"
    assert main(["controller", "--config", str(missing)]) == 1
    assert str(missing) in capsys.readouterr().err
