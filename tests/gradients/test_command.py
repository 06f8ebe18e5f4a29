"""`fpsmt gradient`: what it prints, its JSON, its exit codes, and what replay and check make of its files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fpsmt.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three units whose backward sum is w + 1 − w, and a plain affine map of two inputs."""
    w = 2048.0
    units = np.array([[w], [1], [w]], np.float16), np.array([1 - w, 0, 1 - w], np.float16)
    np.savez(tmp_path / "units.npz", weights1=units[0], bias1=units[1], weights2=np.array([[1, 1, -1]], np.float16))
    np.savez(tmp_path / "map.npz", weights1=np.array([[1, 2], [3, 4]], np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "first"),
    [
        ("--at 1", 0, "gradient exact 2 0.0 1.0"),
        ("--at 1 --target 1", 1, "gradient some 2 0.0 1.0"),
        ("--at 1 --target 1 --some", 0, "gradient some 2 0.0 1.0"),
        ("--at 1 --target 2 --some", 1, "gradient never 2 0.0 1.0"),
        ("--at 1 --target 0 --order left-to-right", 0, "gradient every 1 0.0"),
        ("--at 1 --target 0 --backward-order left-to-right", 0, "gradient every 1 0.0"),
        ("--at 1 --target 1 --accumulator float32", 0, "gradient every 1 1.0"),
        ("--at=-1 --target 0 --derivative framework", 0, "gradient every 1 0.0"),
    ],
)
def test_verdicts(words: str, code: int, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gradient", "units.npz", *words.split(), "--no-save"]) == code
    assert capsys.readouterr().out.splitlines()[0] == first


def test_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gradient", "map.npz", *["--at", "0,0", "--upstream", "1,1", "--target", "4,6", "--no-save"]]) == 0
    assert capsys.readouterr().out.startswith("gradient every 1 4.0,6.0\n")
    assert (
        main(
            [
                "gradient",
                "map.npz",
                *["--at", "0,0", "--upstream", "1,1", "--target", "6", "--component", "1", "--no-save"],
            ]
        )
        == 0
    )
    assert (
        main(["gradient", "map.npz", *["--at", "0,0", "--upstream", "1,1", "--format", "bfloat16", "--no-save"]]) == 0
    )


def test_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gradient", "units.npz", "--at", "1", "--target", "1", "--json", "out.json"]) == 1
    data = json.loads((folder / "out.json").read_text())
    assert data["verdict"] == "refuted" and data["result"]["reached"] == "some"
    assert [g["decimal"] for g in data["result"]["gradients"]] == [["0.0"], ["1.0"]]
    saved = str(next((folder / "fpsmt-results").glob("gradient-*.json")))
    capsys.readouterr()
    assert main(["check", saved]) == 0
    assert capsys.readouterr().out.startswith("check 2 verified 0 failed")
    assert main(["replay", saved]) == 0
    assert capsys.readouterr().out.startswith("replay 3 of 3 reproduced")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("units.npz", "--at X"),
        ("units.npz --at 1,2", "2 numbers are given, and 1 are needed"),
        ("units.npz --at 1 --some", "give --target"),
        ("map.npz --at 1,2", "--upstream, 2 numbers"),
        ("units.npz --at 1 --derivative no", "unknown derivative rule"),
        ("no.npz --at 1", "no such file"),
        ("map.npz --at 1,2 --upstream 1,1 --component 2", "no component 2"),
        ("units.npz --at 1 --format ieee(12,3)", "not every value of ieee(12,3) is a float64"),
    ],
)
def test_usage(words: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gradient", *words.split(), "--no-save"]) == 2
    assert what in capsys.readouterr().err
