"""Runs ``fpsmt verify`` in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fpsmt.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    errors: str

    @property
    def first(self) -> str:
        return self.out.partition("\n")[0]


Verify = Callable[..., Ran]


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verify:
    """verify(query text, *arguments): the command on a file with this text."""
    monkeypatch.chdir(tmp_path)

    def call(query: str, *arguments: str) -> Ran:
        (tmp_path / "q.vnnlib").write_text(query)
        code = main(["verify", "q.vnnlib", *arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call
