"""Running the command line inside the test's process, and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fpsmt.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def first(self) -> str:
        return self.out.split("\n", 1)[0]


Fpsmt = Callable[..., Ran]


@pytest.fixture
def fpsmt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Fpsmt:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> Ran:
        capfd.readouterr()
        code = main(list(arguments))
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


def start(folder: Path, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A process of its own, as from a shell."""
    return subprocess.Popen(
        [sys.executable, "-m", "fpsmt", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
