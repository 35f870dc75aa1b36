"""The built wheel alone in an empty environment: a quorum starts, serves and stops."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.integration.quorum import free_quorum
from tests.integration.test_up import end, read_until, stop
from tools import build_release


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The folder of commands of an environment with the wheel and its dependencies alone."""
    build_release.build(tmp_path / "dist", [], is_draft=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    commands = tmp_path / "env" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python"), "install"]
    subprocess.run([*pip, "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)
    link_dependencies(commands / "python")
    return commands


def link_dependencies(python: Path) -> None:
    """Give an environment all packages of this one but the checkout's quorate."""
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    said = subprocess.run([str(python), "-c", program], check=True, capture_output=True, text=True)
    target = Path(said.stdout.strip())
    for key in ("purelib", "platlib"):
        for path in Path(sysconfig.get_path(key)).iterdir():
            own = "quorate" in path.name or path.suffix == ".pth"
            if not own and not (target / path.name).exists():
                (target / path.name).symlink_to(path)


async def test_the_installed_wheel_runs_a_quorum(tmp_path: Path, installed: Path) -> None:
    root = tmp_path / "quorum"
    quorum = free_quorum(root)
    # From an empty folder and without the variables that lead to the checkout.
    place = tmp_path / "place"
    place.mkdir()
    variables = {"PATH": f"{installed}:/usr/bin:/bin", "HOME": str(place)}
    process = await asyncio.create_subprocess_exec(
        *(str(installed / "quorate"), "up"),
        *("--data-dir", str(root), "--base-port", str(quorum.base_port)),
        cwd=place,
        env=variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await read_until(process, "^ready$")
        server = f"127.0.0.1:{quorum.base_port}"
        said = await asyncio.to_thread(
            subprocess.run,
            [
                *(str(installed / "quorate"), "metadata-quorum", "--bootstrap-controller", server),
                *("describe", "--status"),
            ],
            cwd=place,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stderr
        assert re.search(r"^LeaderId: +[123]$", said.stdout, re.MULTILINE)
        await stop(process, signal.SIGTERM)
    finally:
        await end(process)
