"""Runs the examples of a page of Markdown.

* A ``python`` block that begins with a comment such as ``# proofs/mine.py`` is a file of that name.
* Another ``python`` block is run in the page's one namespace: as a doctest when it has ``>>>``, else whole.  A
  ``text`` block right after it is what it prints.
* A ``console`` block holds commands after ``$ `` and what they print.  They run in the page's folder.

A backslash at the end of a line joins it with the next.  A line ``…`` stands for any number of lines.  Seconds, and
lines that only report progress or where things were saved, are not compared.  The lines of ``fpsmt prove`` come in
any order.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRESS = re.compile(r"fpsmt: .*, \d+ s")
SECONDS = re.compile(r"\b\d+(\.\d+)? s\b")
FILE = re.compile(r"# ((?:fpsmt|specs|proofs)/[\w/]+\.py)\n")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    line: int


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    kind, start, lines = "", 0, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif kind:
            found.append(Block(kind, "\n".join(lines) + "\n", start))
            kind = ""
        else:
            kind, start, lines = line[3:].strip() or "plain", number + 1, []
    assert not kind, f"{path}:{start}: the block has no end"
    return found


def differences(expected: str, printed: str, ordered: bool = True) -> str:
    """Why the printed text is not what is expected, or an empty string."""
    expected = expected.replace("\\\n", "")  # a long line goes on
    want = _lines(expected)
    got = [line for line in _lines(printed) if not line.startswith("fpsmt: saved ") or line in want]
    if not ordered:
        missing = Counter(line for line in want if line != "…") - Counter(got)
        extra = Counter(got) - Counter(want) if "…" not in want else Counter()
        return "" if not missing and not extra else f"missing {list(missing)}, unexpected {list(extra)}"
    pattern = "".join("(.*\n)*?" if line == "…" else re.escape(line) + "\n" for line in want)
    text = "".join(line + "\n" for line in got)
    return "" if re.fullmatch(pattern, text) else f"expected\n{expected}\nbut got\n{printed}"


def _lines(text: str) -> list[str]:
    lines = [SECONDS.sub("# s", line.rstrip()) for line in text.splitlines() if not PROGRESS.fullmatch(line.strip())]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """(command, what it prints) of a console block."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more.strip()
        yield command, output


def run_page(path: Path, folder: Path) -> int:
    """Runs every example of a page in this folder; how many there were."""
    namespace: dict[str, Any] = {"__name__": "page"}
    count, printed = 0, None
    for block in blocks(path):
        where = f"{path.name}:{block.line}"
        if block.kind == "text" and printed is not None:
            problem = differences(block.text, printed)
            assert not problem, f"{where}: {problem}"
            count += 1
        printed = None
        if block.kind == "console":
            for command, output in commands(block):
                problem = differences(output, shell(command, folder), not command.startswith("fpsmt prove"))
                assert not problem, f"{where}: {command}: {problem}"
                count += 1
        elif block.kind == "python" and (named := FILE.match(block.text)):
            write_file(folder, named[1], block.text)
            count += 1
        elif block.kind == "python" and ">>> " in block.text:
            with _inside(folder):
                _doctest(block, namespace, where)
            count += 1
        elif block.kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out), _inside(folder):
                exec(compile(block.text, where, "exec"), namespace)
            printed = out.getvalue()
            count += 1
    return count


def shell(command: str, folder: Path) -> str:
    """What a command prints in this folder, errors included."""
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
    )
    return done.stdout


def link_project(folder: Path, *names: str) -> None:
    """Makes these folders of the project seen from the folder where commands run."""
    for name in names:
        (folder / name).symlink_to(ROOT / name)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def write_file(folder: Path, name: str, text: str) -> None:
    """Writes a file that the page shows; one for `fpsmt` itself can be imported as if it were in the package."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if name.startswith("fpsmt/"):
        package = importlib.import_module(".".join(Path(name).parent.parts))
        package.__path__.append(str(path.parent))


def _doctest(block: Block, namespace: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, where, where, block.line - 1)
    out = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=out.write, clear_globs=False)
    namespace.update(test.globs)
    assert runner.failures == 0, f"{where}:\n{out.getvalue()}"
