"""Model and input files, and running the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fpsmt.cli import main
from tests.cli.conftest import Ran

Stability = Callable[..., Ran]


@pytest.fixture
def stability(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Stability:
    """Runs ``fpsmt stability`` in a folder with the files of `write_files`."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)

    def run(*arguments: str) -> Ran:
        capfd.readouterr()
        code = main(["stability", *arguments])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


def write_files(folder: Path) -> None:
    """``known``: 2^24 + 1 + 1 − 2^24 against 3/2 + 1/4, which orders decide; ``digits``: some real images."""
    row = np.float32([2.0**24, 1, 1, -(2.0**24)])
    np.savez(
        folder / "known.npz",
        weights1=np.stack([row, np.zeros(4, np.float32)]), bias1=np.float32([0, 0]),
        weights2=np.eye(2, dtype=np.float32), bias2=np.float32([-1.5, 0.25]),
    )  # fmt: skip
    np.save(folder / "known.npy", np.float32([[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]]))
    np.savez(folder / "both.npz", inputs=np.float32([[1, 1, 1, 1]]), more=np.float32([1]))


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A process of its own, as from a shell."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "fpsmt", "stability", *arguments],
        cwd=folder, env={**os.environ, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
