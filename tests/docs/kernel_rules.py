"""Writes docs/9-kernel-rules.md from the rules themselves: ``python -m tests.docs.kernel_rules``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fpsmt.kernel import RULES
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "9-kernel-rules.md"

HEAD = """# 9. Kernel rules

Each proof is a tree whose nodes are applications of these rules; each rule's text is its proof of soundness.  A rule is
given the claim, its data and the claims of the premises, does whatever computation it takes, and says that the claim
holds, that it met a counterexample, or that it settles nothing.  `fpsmt check` applies the rules again.

**Touch:** the rule's file in `fpsmt/kernel/rules/` (a function under `@rule`), an engine that applies it (page 4), a
test in `tests/kernel/`.  This page is written from the docstrings by `make docs`.
"""


def page() -> str:
    """The page as it should be."""
    parts = [HEAD]
    for name, function in sorted(RULES.items(), key=lambda item: (_file(item[1]), _line(item[1]))):
        text = inspect.getdoc(function)
        assert text, f"the rule {name!r} has no docstring: that is where its proof of soundness is"
        parts.append(f"## {name}\n\n{text}\n\nIn `{_file(function)}`.\n")
    return "\n".join(parts)


def _file(function: Callable[..., Any]) -> str:
    return Path(inspect.getfile(function)).resolve().relative_to(ROOT).as_posix()


def _line(function: Callable[..., Any]) -> int:
    return inspect.getsourcelines(function)[1]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
