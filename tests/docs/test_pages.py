"""The pages of docs/: every example runs, every file that is named is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, differences, link_project, run_page

PAGES = sorted((ROOT / "docs").glob("*.md"))
MACHINE = {"reveal"}  #: pages that show what one machine's libraries do


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in MACHINE], ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    link_project(tmp_path, "examples")
    count = run_page(page, tmp_path)
    assert count or page.stem in ("architecture", "9-kernel-rules"), "a page without an example"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = {m for block in blocks(page) for m in re.findall(r"^# (\S+\.py)$", block.text, re.MULTILINE)}
    for name in re.findall(r"`((?:fpsmt|specs|proofs|tests|docs|examples|benchmarks)/[\w./]*)`", text):
        assert (ROOT / name).exists() or name in shown, f"{page.name} names {name}"
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\n…\nc\n", "a\nb\nb\nc\n", True),
        ("a\n…\n", "a\n", True),
        ("a 1.5 s\n", "a 20 s\n", True),
        ("a\n", "fpsmt: doing it, 2 s\na\n\n", True),
        ("a\nc\n", "a\nb\nc\n", False),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_outputs_are_compared(expected: str, printed: str, same: bool) -> None:
    assert (not differences(expected, printed)) == same


def test_outputs_without_an_order_are_compared() -> None:
    assert not differences("b\na\n", "a\nb\n", ordered=False)
    assert differences("b\na\n", "a\nb\nb\n", ordered=False)
    assert differences("b\nc\n…\n", "a\nb\n", ordered=False)
