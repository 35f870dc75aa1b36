"""`.pre-commit-config.yaml` runs what `make verify` runs, from this checkout alone."""

from __future__ import annotations

import yaml

from tools.lint import ROOT


def test_hooks_run_what_make_verify_runs() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    recipe = (ROOT / "Makefile").read_text().partition("\nverify:")[2].partition("\n\n")[0]
    commands = [line.strip() for line in recipe.splitlines()[1:]]
    names = {"$(BIN)": ".venv/bin", "$(MAKE)": "make"}
    for variable, value in names.items():
        commands = [command.replace(variable, value) for command in commands]

    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == commands
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
