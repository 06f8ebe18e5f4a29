"""README.md: its examples run, its tables are complete."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fpsmt.commands import common
from fpsmt.floats import FORMATS
from fpsmt.networks import parse_order
from fpsmt.networks.orders import ORDER_NAMES
from tests.docs.pages import ROOT, link_project, run_page

README = ROOT / "README.md"


def test_the_examples_run(tmp_path: Path) -> None:
    link_project(tmp_path, "specs", "proofs", "examples")
    assert run_page(README, tmp_path) >= 10


def test_every_format_and_order_is_listed() -> None:
    text = README.read_text(encoding="utf-8")
    tables = set(re.findall(r"`([^`\s]+)`", "\n".join(line for line in text.splitlines() if line.startswith("|"))))
    assert set(FORMATS) <= tables
    plain = {name for name in ORDER_NAMES if " " not in name and ":" not in name}
    assert plain <= tables
    for name in ORDER_NAMES:
        if ":" in name:
            assert any(word.startswith(name.split(":")[0] + ":") for word in tables), name
    for word in plain | {"((0+1)+2)"}:
        assert str(parse_order(word)) == word


def test_every_exit_code_is_listed() -> None:
    text = README.read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert listed == {
        common.PROVED, common.REFUTED, common.USAGE, common.UNKNOWN, common.INTERNAL, common.INTERRUPTED
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_two_commands_are_targets() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`make (\w+)`", README.read_text(encoding="utf-8")):
        assert re.search(rf"^{command}:", text, re.MULTILINE), command
