"""`fpsmt reveal`: what it prints, its JSON and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fpsmt.cli import main
from fpsmt.kernel import read_result
from fpsmt.networks import parse_order, tree_from_json

MODULE = """
import numpy as np

def backwards(x):
    acc = x[-1]
    for v in x[-2::-1]:
        acc = v + acc
    return acc

def parity(x):
    return np.add.accumulate(x if np.float32(x[0]).view(np.uint32) & 1 else x[::-1])[-1]

def matrix(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        out += a[:, k : k + 1] * b[k : k + 1]
    return out
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "routines_of_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_text(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["reveal", "routines_of_test:backwards", "--terms", "5", "--vectors", "60"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("reveal agrees terms=5 calls=")
    assert out[0].endswith("order=right-to-left accumulator=float32")
    assert any(line.split() == ["order", "equals", "right-to-left"] for line in out)
    assert out[-1].strip().endswith("`-- 4")
    saved = list((folder / "fpsmt-results").glob("reveal-*.json"))
    assert len(saved) == 1 and read_result(saved[0])["result"]["family"] == "right-to-left"


def test_json_is_an_order_that_sum_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", "numpy:sum", "--terms", "12", "--vectors", "60", "--no-save", "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    result = data["result"]
    assert result["agrees"] is True and result["calls"] > 0
    tree = tree_from_json(result["tree"], 12)
    assert parse_order("pairwise").contains(tree)
    terms = ["1", "2^24", "1", "-2^24", "1", "1", "3", "1", "5", "1", "7", "1"]
    code = main(["sum", "--format", "float32", "--order", result["order"], "--no-save", *terms])
    assert code == 0 and capsys.readouterr().out.startswith("outcomes exact 1 ")


def test_a_difference_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["reveal", "routines_of_test:parity", "--terms", "9", "--no-save"])
    out, err = capsys.readouterr()
    assert code in (2, 3)
    if code == 3:
        assert out.startswith("reveal differs ") and "FAILED" in out and "  routine  " in out
    else:
        assert err.startswith("fpsmt: ")


def test_matrix_product(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--matmul", "3,10,2", "1,0", "--vectors", "60", "--no-save"]
    assert main(["reveal", "routines_of_test:matrix", *words]) == 0
    first = capsys.readouterr().out.splitlines()[0].split()
    assert first[:3] == ["reveal", "agrees", "terms=10"]
    assert "order=left-to-right" in first and "products=rounded" in first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["numpy:sum"], "needs --terms"),
        (["numpysum", "--terms", "4"], "names no routine"),
        (["numpy:nope", "--terms", "4"], "has no 'nope'"),
        (["numpy:pi", "--terms", "4"], "not callable"),
        (["no_such_module_at_all:f", "--terms", "4"], "is not installed"),
        (["numpy:sum", "--terms", "0"], "at least one term"),
        (["numpy:sort", "--terms", "3"], "returned an array of shape (3,)"),
        (["numpy:matmul", "--matmul", "2,3", "0,0"], "is not 3 numbers"),
        (["numpy:matmul", "--matmul", "2,3,2", "2,0"], "count from 0"),
        (["numpy:matmul", "--matmul", "2,3,2", "0,0", "--terms", "5"], "leave --terms out"),
        (["numpy:sum", "--terms", "4", "--format", "float33"], "unknown format"),
    ],
)
def test_usage_errors(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", *words, "--no-save"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.startswith("fpsmt: ") and err.count("\n") == 1
