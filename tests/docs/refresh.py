"""Runs the commands of README.md and docs/ and writes what they print now: ``make docs``.

Read the difference before you believe it.  Around a line ``…`` as many lines as there were are kept at both ends.
Blocks of Python are left as they are.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.docs import kernel_rules
from tests.docs.pages import (
    FILE,
    PROGRESS,
    ROOT,
    Block,
    blocks,
    commands,
    differences,
    link_project,
    shell,
    write_file,
)
from tests.docs.test_pages import MACHINE, PAGES


def refreshed(block: Block, folder: Path) -> str:
    """The text of a console block with the output of now, where that differs."""
    text = block.text
    for command, output in commands(block):
        printed = shell(command, folder)
        if differences(output, printed, not command.startswith("fpsmt prove")):
            text = text.replace(output, _cut(output, printed), 1) if output else text
    return text


def _cut(before: str, printed: str) -> str:
    """What is printed, with as many lines around the first ``…`` as before."""
    had = before.rstrip("\n").split("\n")
    told = any(line.startswith("fpsmt: saved ") for line in had)
    got = [line.rstrip() for line in printed.splitlines() if not PROGRESS.fullmatch(line)]
    got = [line for line in got if told or not line.startswith("fpsmt: saved ")]
    if "…" in had:
        head = had.index("…")
        tail = len(had) - head - 1
        got = [*got[:head], "…", *(got[-tail:] if tail else [])]
    return "\n".join(got) + before[len(before.rstrip("\n")) :]


def main() -> None:
    kernel_rules.PAGE.write_text(kernel_rules.page(), encoding="utf-8")
    for page in [ROOT / "README.md", *(page for page in PAGES if page.stem not in MACHINE)]:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            link_project(folder, *(("specs", "proofs", "examples") if page.stem == "README" else ("examples",)))
            for block in blocks(page):
                if shown := FILE.match(block.text):
                    write_file(folder, shown[1], block.text)
                elif block.kind == "console":
                    text = text.replace(block.text, refreshed(block, folder), 1)
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
