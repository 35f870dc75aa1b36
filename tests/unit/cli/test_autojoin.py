"""`quorate autojoin` from the command line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from quorate.cli.main import main

if TYPE_CHECKING:
    import pytest


def test_settings_may_come_from_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUORATE_AUTOJOIN_NAMESPACE", "ns")
    monkeypatch.delenv("QUORATE_AUTOJOIN_STATEFULSET", raising=False)
    assert main(["autojoin"]) == 1
    assert "autojoin.statefulset is missing" in capsys.readouterr().err


def test_without_its_libraries_it_says_what_to_install() -> None:
    # Modules that are imported again would differ from those that other tests hold.
    lacking = (
        "import sys; sys.modules['kopf'] = None;"
        "from quorate.cli.main import main; sys.exit(main(['autojoin']))"
    )
    done = subprocess.run([sys.executable, "-c", lacking], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"install quorate[operator]" in done.stderr
