"""docs/10-command-line.md has every command and every option, and no others; docs/9 has every rule."""

from __future__ import annotations

import re

import pytest
import typer

from fpsmt.cli import COMMANDS, app
from tests.docs.kernel_rules import PAGE, page
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "10-command-line.md").read_text(encoding="utf-8")


def options(command: str) -> set[str]:
    group = typer.main.get_command(app)
    found = group.commands[command].params  # type: ignore[attr-defined]
    return {name for parameter in found for name in parameter.opts if name.startswith("--")}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_on_the_page(command: str) -> None:
    assert f"| `{command}` |" in TEXT
    missing = {o for o in options(command) if not re.search(rf"`{o}\b", TEXT)}
    assert not missing


def test_every_option_on_the_page_exists() -> None:
    known = set().union(*map(options, COMMANDS)) | {"--help"}
    assert set(re.findall(r"`(--[\w-]+)", TEXT)) <= known


def test_the_page_of_rules_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.kernel_rules"
