"""``fpsmt compare``: two formats, two networks, two executions; its options, results and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fpsmt.cli import main
from fpsmt.engines import splitting
from fpsmt.engines.comparison import Examined
from tests.onnx.building import gemm
from tests.verify.conftest import Ran

Compare = Callable[..., Ran]
QUERY = "(declare-const X_0 Real)(declare-const X_1 Real)(declare-const Y_0 Real)(declare-const Y_1 Real)" + "".join(
    f"(assert (>= X_{k} {a}))(assert (<= X_{k} {b}))" for k, (a, b) in enumerate([(4, 8), (0, 1)])
)


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Compare:
    monkeypatch.chdir(tmp_path)
    gemm(tmp_path, [[1, 0.3], [0.7, 0.9]], [0, 0.1])
    (tmp_path / "q.vnnlib").write_text(QUERY + "(assert (<= Y_0 Y_1))")

    def call(*arguments: str) -> Ran:
        code = main(["compare", *arguments, "--jobs", "1"])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def saved(folder: Path) -> Any:
    (path,) = (folder / "fpsmt-results").glob("compare-*.json")
    return path, json.loads(path.read_text())


def test_lower_precision_keeps_the_class_here_and_not_there(compare: Compare, tmp_path: Path) -> None:
    ran = compare("model.onnx", "--to", "bfloat16", "--query", "q.vnnlib")
    assert ran.code == 0 and ran.first == "compare proved" and "rounded to bfloat16" in ran.errors
    path, data = saved(tmp_path)
    assert data["evidence"]["rule"] == "splits show agreement" and main(["check", str(path)]) == 0
    path.unlink()
    ran = compare("model.onnx", "--to", "bfloat16", "--box", "-1:1")
    assert ran.code == 1 and "compare refuted" in ran.out and "classes" in ran.out
    path, data = saved(tmp_path)
    first, second = data["result"]["outputs"]
    assert [len(first), len(second)] == [2, 2] and main(["check", str(path)]) == 0 and main(["replay", str(path)]) == 0


def test_ulps_and_differences(compare: Compare) -> None:
    around = ["--query", "q.vnnlib", "--to", "bfloat16", "--no-save"]
    for question, word in ((["--within", "1/4"], "proved"), (["--within", "1e-6"], "refuted"),
                           (["--ulps", "8"], "proved"), (["--ulps", "0"], "refuted")):  # fmt: skip
        ran = compare("model.onnx", *around, *question)
        assert ran.first == f"compare {word}", question


def test_two_executions_and_two_files(compare: Compare, tmp_path: Path) -> None:
    gemm(tmp_path, [[2.0**24, 1, 1, -(2.0**24)]], [0], "four.onnx")
    np.save(tmp_path / "ones.npy", np.ones((1, 4), dtype=np.float32))
    point = ["--around", "ones.npy", "--no-save", "--within", "0"]
    fixed = ["--execution", "left-to-right"]
    assert compare("four.onnx", *point, *fixed).first == "compare proved"
    assert compare("four.onnx", *point, *fixed, "--other", "any").first == "compare refuted"
    gemm(tmp_path, [[1, 0.3], [0.7, 0.90001]], [0, 0.1], "close.onnx")
    box = ["--query", "q.vnnlib", "--no-save"]
    assert compare("model.onnx", "close.onnx", *box, "--within", "1/1000").first == "compare proved"
    assert compare("model.onnx", "close.onnx", *box, "--within", "1/1000000").first == "compare refuted"


def test_interrupted_and_gone_on_with(compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {"weights1": [[1, 2], [2, 1], [-1, 1]], "bias1": [0, 0.125, 0],
               "weights2": [[1, 0.3125, 0.1875], [0.21875, 1, 0.09375]], "bias2": [0, 0]}  # fmt: skip
    np.savez(tmp_path / "net.npz", **{name: np.float32(values) for name, values in weights.items()})  # type: ignore[arg-type]
    np.save(tmp_path / "middle.npy", np.float32([[6, -1]]))
    monkeypatch.setattr(splitting, "BATCH", 1)
    calls, step = [0], Examined.step

    def stopping(self: Any, block: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise KeyboardInterrupt
        return step(self, block)

    monkeypatch.setattr(Examined, "step", stopping)
    question = ["net.npz", "--around", "middle.npy", "--radius", "2.5", "--to", "bfloat16"]
    ran = compare(*question)
    assert ran.code == 130 and ran.out == "compare unknown\n" and "--resume goes on from there" in ran.errors
    before = calls[0]
    ran = compare(*question, "--resume")
    assert ran.first == "compare proved" and "going on from" in ran.errors
    resumed = calls[0] - before
    assert compare(*question, "--no-save").first == "compare proved"
    assert resumed < calls[0] - before - resumed


ERRORS = {
    "no inputs": ([], "by one of --query, --box and --around, not none"),
    "two inputs": (["--box", "0:1", "--query", "q.vnnlib"], "not --query and --box"),
    "a box": (["--box", "1"], "write LO:HI"),
    "a number": (["--box", "a:1"], "--box"),
    "two questions": (["--box", "0:1", "--ulps", "1", "--within", "1"], "write one of them"),
    "negative": (["--box", "0:1", "--within", "-1"], "is negative"),
    "an execution": (["--box", "0:1", "--other", "any fam=any"], "unknown word 'fam=any'"),
    "a format": (["--box", "0:1", "--to", "float7"], "--to"),
    "a file": (["none.onnx", "--box", "0:1"], "none.onnx"),
    "sizes": (["wide.onnx", "--box", "0:1"], "these must be as many"),
    "no folder": (["--box", "0:1", "--resume", "--no-save"], "leave out --no-save"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, compare: Compare, tmp_path: Path) -> None:
    gemm(tmp_path, [[1, 2, 3]], [0], "wide.onnx")
    arguments, words = ERRORS[name]
    ran = compare("model.onnx", *arguments)
    assert ran.code == 2 and ran.out == "" and words in ran.errors and "internal" not in ran.errors
