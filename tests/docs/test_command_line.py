"""docs/10-command-line.md has every command and every option, and no others; docs/9 has every rule; small habits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from fpsmt.cli import COMMANDS, app, main
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
    assert PAGE.read_text(encoding="utf-8") == page(), "run make docs"


def run(words: str, folder: Path, redirect: str = "") -> tuple[int, str]:
    done = subprocess.run(
        f"{sys.executable} -m fpsmt {words} {redirect}", shell=True, cwd=folder, capture_output=True, encoding="utf-8"
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["sum --format float16 --no-save 1 2", "--help", "prove two-term-dot --no-save"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_no_internal_error(words: str, tmp_path: Path) -> None:
    code, errors = run(words, tmp_path, ">/dev/full")
    assert code == 2 and errors.startswith("fpsmt: the output cannot be written")


@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_errors(redirect: str, tmp_path: Path) -> None:
    assert run("sum --format float16 --no-save 1 2", tmp_path, redirect)[0] == 0


def test_a_misplaced_letter_is_named(tmp_path: Path) -> None:
    code, errors = run("sum -f float16 1", tmp_path)
    assert code == 2 and errors == "fpsmt: no such option -f: see fpsmt sum --help\n"


def test_cases_are_chosen_by_words(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "A-corollary-4", "--list", "--case", "float32 cos"]) == 0
    assert [line.split(":")[0].strip() for line in capfd.readouterr().out.splitlines()[-1:]] == [
        "cos float32 finite-on-domain"
    ]
    assert main(["prove", "A-corollary-4", "--list", "--case", "float3"]) == 2
    assert main(["prove", " ", "--list"]) == 2
