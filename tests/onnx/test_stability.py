"""``fpsmt stability`` on ONNX files: the verdicts of the same network saved otherwise, maxima included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from fpsmt.cli import main
from tests.onnx.building import build, save

N = helper.make_node
ROW = np.float32([2.0**24, 1, 1, -(2.0**24)])


def known(nodes: list[Any], tmp_path: Path) -> Path:
    """Two layers; the first sum is 2^24 + 1 + 1 − 2^24."""
    constants = {"w": np.stack([ROW, 0 * ROW]), "b": np.zeros(2, np.float32), "v": np.eye(2, dtype=np.float32),
                 "c": np.float32([-1.5, 0.25])}  # fmt: skip
    return save(build(nodes, {"x": [1, 4]}, {"y": [1, 2]}, constants), tmp_path / "known.onnx")


def rows(folder: Path) -> Any:
    (path,) = (folder / "fpsmt-results").glob("stability-*.json")
    return [row["verdict"] for row in json.loads(path.read_text())["result"]["inputs"]]


def test_the_known_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """ReLU written as a maximum; both executions are run again without the package's arithmetic."""
    monkeypatch.chdir(tmp_path)
    nodes = [N("Gemm", ["x", "w", "b"], ["h"], transB=1), N("Max", ["h", "b"], ["r"]),
             N("Gemm", ["r", "v", "c"], ["y"], transB=1)]  # fmt: skip
    known(nodes, tmp_path)
    np.save("inputs.npy", np.float32([[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]]))
    assert main(["stability", "known.onnx", "inputs.npy", "--jobs", "1", "--bias-place", "last"]) == 1
    out = capsys.readouterr()
    assert out.out.startswith("stability 3 certified 2 broken 1 unknown 0") and "ONNX, operator set 17" in out.err
    assert rows(tmp_path) == ["broken", "certified", "certified"]
    assert list((tmp_path / "fpsmt-results").glob("stability-*.py"))


def test_options_for_onnx_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("net.npz", weights1=np.float32([[1, 2], [3, 4]]))
    np.save("inputs.npy", np.float32([[1, 1]]))
    assert main(["stability", "net.npz", "inputs.npy", "--bias-from-add", "--no-save"]) == 2
    assert "are for ONNX files" in capsys.readouterr().err
    model = build([N("Gemm", ["x", "w"], ["h"]), N("Sigmoid", ["h"], ["y"])], {"x": [1, 2]}, {"y": [1, 2]},
                  {"w": np.float32([[8, 0], [0, -8]])})  # fmt: skip
    save(model, tmp_path / "net.onnx")
    assert main(["stability", "net.onnx", "inputs.npy", "--activation", "Sigmoid=ulps=4", "--no-save"]) == 0
    assert "certified 1" in capsys.readouterr().out
