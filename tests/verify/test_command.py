"""``fpsmt verify`` and ``fpsmt supports``: the contract of the standard, exact verdicts, errors that are errors."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fpsmt.claims import Safe
from fpsmt.cli import main
from fpsmt.engines import Engine, decide
from tests.onnx.building import build, gemm, save
from tests.verify.conftest import Verify

DATA = Path(__file__).parents[3] / "shared" / "data"  #: public benchmarks beside the project, where they are
N = helper.make_node


def declare(inputs: int, outputs: int) -> str:
    names = [f"X_{k}" for k in range(inputs)] + [f"Y_{k}" for k in range(outputs)]
    return "".join(f"(declare-const {name} Real)\n" for name in names)


def box(*sides: tuple[Any, Any]) -> str:
    return "".join(f"(assert (>= X_{k} {a}))(assert (<= X_{k} {b}))\n" for k, (a, b) in enumerate(sides))


def result(folder: Path) -> Any:
    (path,) = (folder / "fpsmt-results").glob("verify-*.json")
    return json.loads(path.read_text())


# -- the contract ---------------------------------------------------------------------------------------------------


def test_sat_with_an_assignment_of_version_one(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2, -1]], [0.25])
    ran = verify(declare(2, 1) + box((1, 1), (0.5, 0.5)) + "(assert (>= Y_0 1.75))", "--network", "model.onnx")
    assert ran.code == 1
    assert ran.out.splitlines() == ["sat", "((X_0 1.0)", " (X_1 0.5)", " (Y_0 1.75))"]
    data = result(tmp_path)
    assert data["result"]["answer"] == "sat" and data["verdict"] == "refuted"
    assert data["result"]["witness"] == {"X": ["0x1p+0", "0x1p-1"], "Y": ["0x1.cp+0"]}
    assert data["result"]["violated_by"] == "every"
    name = str(next((tmp_path / "fpsmt-results").glob("verify-*.json")))
    assert main(["check", name]) == 0 and main(["replay", name]) == 0


NEW = """(vnnlib-version <2.0>)
(declare-network f (declare-input In float32 [1,2]) (declare-output Out float32 [1,1]))
(assert (and (== In[0,0] 1) (== In[0,1] 0.5)))
"""


def test_sat_with_blocks_of_version_two(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2, -1]], [0.25])
    ran = verify(NEW + "(assert (>= Out[0,0] 1.75))", "--network", "f=model.onnx", "--no-save")
    assert ran.out.splitlines() == ["sat", "In float32 [1,2]", "1.0", "0.5", "Out float32 [1,1]", "1.75"]


def test_serialised_assignments(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2, -1]], [0.25])
    for option in ("--serialise-assignments", "--assignments"):
        ran = verify(NEW + "(assert (>= Out[0,0] 1.75))", "--network", "f=model.onnx", "--no-save", option, "folder")
        assert ran.code == 1 and ran.out == "sat\n"
        tensor = onnx.TensorProto.FromString((tmp_path / "folder" / "In.pb").read_bytes())
        assert numpy_helper.to_array(tensor).tolist() == [[1, 0.5]] and tensor.data_type == TensorProto.FLOAT
        tensor = onnx.TensorProto.FromString((tmp_path / "folder" / "Out.pb").read_bytes())
        assert numpy_helper.to_array(tensor).tolist() == [[1.75]]


def test_unsat_unknown_and_timed_out(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2, -1], [1, 1]], [0.25, 0])
    query = declare(2, 2) + box((0, 1), (0, 1))
    ran = verify(query + "(assert (> Y_0 2.25))", "--network", "model.onnx")
    assert ran.code == 0 and ran.out == "unsat\n" and result(tmp_path)["verdict"] == "proved"
    hard = query + "(assert (>= (+ Y_0 Y_1) 3.2500001))"  # Y_0 + Y_1 = 3·X_0 + 0.25, up to rounding
    ran = verify(hard, "--network", "model.onnx", "--timeout", "0.000001", "--no-save")
    assert ran.code == 3 and ran.out == "timed-out\n"
    none = gemm(tmp_path, [[np.nan]], [0], "none.onnx")
    query = declare(1, 1) + box((0, 1)) + "(assert (>= Y_0 0))"
    ran = verify(query, "--network", str(none), "--no-save", "--timeout", "5")
    assert ran.code == 3 and ran.out in ("unknown\n", "timed-out\n")


def test_json_on_stdout_is_alone(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2, -1]], [0.25])
    ran = verify(NEW + "(assert (>= Out[0,0] 1.75))", "--network", "f=model.onnx", "--no-save", "--json", "-")
    assert json.loads(ran.out)["result"]["answer"] == "sat"


def test_supports(capsys: pytest.CaptureFixture[str]) -> None:
    def lines(*words: str) -> list[str]:
        assert main(["supports", *words]) == 0
        return capsys.readouterr().out.splitlines()

    assert lines("--onnx-opset-versions") == ["7", "28"] and lines("--vnnlib-versions") == ["1.0", "2.0"]
    assert {"float32", "float16", "bfloat16", "real"} <= set(lines("--onnx-element-types"))
    assert "Gemm" in lines("--onnx-operators") and lines("--onnx-operators-unsat-proofs") == []
    assert lines("--serialise-assignments") == ["true"] and lines("--unsat-proofs") == ["false"]
    assert lines("--hidden-node-theories") == ["NH"] and "MNET" in lines("--multiple-network-theories")
    assert main(["supports"]) == 2 and main(["--name"]) == 0
    assert capsys.readouterr().out == "fpsmt\n"


ERRORS = {
    "no model": (NEW, [], "verify needs --network"),
    "no file": (NEW, ["--network", "f=none.onnx"], "none.onnx: No such file"),
    "unknown name": (NEW, ["--network", "g=model.onnx"], "the query declares f"),
    "twice": (NEW, ["--network", "f=model.onnx", "--network", "f=model.onnx"], "twice"),
    "type": (NEW.replace("In float32", "In float16"), ["--network", "f=model.onnx"],
             "declared as float16, and the model's x is float32"),
    "shape": (NEW.replace("[1,2]", "[2]").replace("In[0,", "In["), ["--network", "f=model.onnx"], "has shape [2]"),
    "name": (NEW.replace("[1,2])", '[1,2] "z")'), ["--network", "f=model.onnx"], "'z', which is no input"),
    "count": (declare(3, 1), ["--network", "model.onnx"], "the query has 3 variables X_i, the model's x 2"),
    "format of a typed query": (NEW, ["--network", "f=model.onnx", "--format", "float16"], "would not match"),
    "cast alone": (NEW, ["--network", "f=model.onnx", "--cast"], "--cast goes with --format"),
    "hidden": (NEW.replace("(declare-output", '(declare-hidden H real [1] "h") (declare-output'),
               ["--network", "f=model.onnx"], "hidden nodes are not supported"),
    "query": ("(assert", ["--network", "model.onnx"], "q.vnnlib, line 1: a parenthesis is not closed"),
    "activation": (NEW, ["--network", "f=model.onnx", "--activation", "Sigmoid"], "--activation Sigmoid: write"),
    "order": (NEW, ["--network", "f=model.onnx", "--order", "sideways"], "--order"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2, -1]], [0.25])
    query, arguments, words = ERRORS[name]
    ran = verify(query, *arguments, "--no-save")
    assert ran.code == 2 and ran.out == "" and words in ran.errors
    assert "internal" not in ran.errors


# -- verdicts -------------------------------------------------------------------------------------------------------


def test_a_narrow_box_is_not_a_point(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[1e6]], [0])
    ran = verify(declare(1, 1) + box((0, "0.000009")) + "(assert (>= Y_0 1))", "--network", "model.onnx", "--no-save")
    assert ran.code == 1


def test_the_ends_of_a_box_are_rational(verify: Verify, tmp_path: Path) -> None:
    """0.1 is no float32: the least float above it is in [0.1, …], the greatest below it is not."""
    gemm(tmp_path, [[1]], [0])
    above = Fraction(float(np.float32(0.1)))
    assert above > Fraction(1, 10)
    query = declare(1, 1) + box((0.1, 0.5))
    below = float(np.nextafter(np.float32(0.1), np.float32(0)))
    assert verify(query + f"(assert (<= Y_0 {Fraction(below).limit_denominator(1)}))", "--network", "model.onnx",
                  "--no-save").out == "unsat\n"  # fmt: skip
    exact = format(float(above), ".60f")
    ran = verify(query + f"(assert (<= Y_0 {exact}))", "--network", "model.onnx", "--no-save")
    assert ran.first == "sat" and f"(X_0 {exact.rstrip('0')})" in ran.out
    assert verify(query + f"(assert (< Y_0 {exact}))", "--network", "model.onnx", "--no-save").out == "unsat\n"
    empty = verify(declare(1, 1) + box((0.1, 0.1)) + "(assert (<= Y_0 5))", "--network", "model.onnx", "--no-save")
    assert empty.out == "unsat\n" and "hold no value of float32" in empty.errors
    strict = "(vnnlib-version <2.0>)(declare-network f (declare-input X float32 [1]) (declare-output Y float32 [1]))"
    one = save(build([N("Relu", ["x"], ["y"])], {"x": [1]}, {"y": [1]}), tmp_path / "one.onnx")
    for bounds, word in (("(> X[0] 1) (<= X[0] 1)", "unsat"), ("(> X[0] 1) (<= X[0] 1.0000002)", "sat"),
                         ("(> X[0] 1) (< X[0] 1.0000001)", "unsat"), ("(< X[0] 0) (>= X[0] 0)", "unsat")):  # fmt: skip
        ran = verify(f"{strict}(assert (and {bounds}))(assert (>= Y[0] -1))", "--network", f"f={one}", "--no-save")
        assert ran.first == word, bounds


def test_zeros_and_ties(verify: Verify, tmp_path: Path) -> None:
    """−0 is not below 0; both zeros are in [0, 0]; equal outputs are a tie, which ≤ allows and < does not."""
    gemm(tmp_path, [[-1], [-1]], [-0.0, -0.0])
    query = declare(1, 2) + box((0, 0))
    for formula, word in (("(< Y_0 0)", "unsat"), ("(<= Y_0 0)", "sat"), ("(>= Y_0 0)", "sat"), ("(> Y_0 0)", "unsat"),
                          ("(<= Y_0 Y_1)", "sat"), ("(< Y_0 Y_1)", "unsat"), ("(!= Y_0 Y_1)", "unsat"),
                          ("(= Y_0 Y_1)", "sat")):  # fmt: skip
        assert verify(f"{query}(assert {formula})", "--network", "model.onnx", "--no-save").first == word, formula


def test_not_a_number_satisfies_no_comparison(verify: Verify, tmp_path: Path) -> None:
    big = float(np.float32(3e38))
    gemm(tmp_path, [[big, big, -big, -big]], [0])
    query = declare(4, 1) + box(*[(1.5, 1.5)] * 4)  # inf, −inf, NaN or 0 by the order
    for formula, word in (("(>= Y_0 1e38)", "sat"), ("(<= Y_0 -1e38)", "sat"), ("(= Y_0 0)", "sat")):
        ran = verify(f"{query}(assert {formula})", "--network", "model.onnx", "--no-save", "--timeout", "10")
        assert ran.first in (word, "unknown", "timed-out"), formula
    always = save(build([N("Mul", ["x", "c"], ["a"]), N("Sub", ["a", "a"], ["y"])], {"x": [1]}, {"y": [1]},
                        {"c": np.float32([np.inf])}), tmp_path / "nan.onnx")  # fmt: skip
    query = declare(1, 1) + box((1, 1))
    query += "(assert (or (<= Y_0 0) (> Y_0 0)))"
    ran = verify(query, "--network", str(always), "--no-save", "--timeout", "5")
    assert ran.code == 3 and ran.first in ("unknown", "timed-out")


def test_an_order_changes_the_decision(verify: Verify, tmp_path: Path) -> None:
    """2^24 + 1 + 1 − 2^24 − 1.5: the real network is constant at 1/2, executions are not."""
    gemm(tmp_path, [[2.0**24, 1, 1, -(2.0**24)]], [-1.5], relu=True)
    query = declare(4, 1) + box(*[(1, 1)] * 4) + "(assert (<= Y_0 0.25))"
    ran = verify(query, "--network", "model.onnx")
    assert ran.first == "sat" and "violated by execution-only" in ran.errors
    data = result(tmp_path)
    assert data["result"]["violated_by"] == "execution-only"
    wide = verify(query, "--network", "model.onnx", "--accumulator", "float64", "--products", "exact", "--no-save")
    assert wide.out == "unsat\n"


def test_one_network_twice_is_two_executions(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2.0**24, 1, 1, -(2.0**24)]], [0])
    query = """(vnnlib-version <2.0>)
    (declare-network f (declare-input X float32 [1,4]) (declare-output Y float32 [1,1]))
    (declare-network g (equal-to f) (declare-input A float32 [1,4]) (declare-output B float32 [1,1]))
    """ + "".join(f"(assert (and (== X[0,{k}] A[0,{k}]) (== X[0,{k}] 1)))" for k in range(4))
    ran = verify(query + "(assert (> Y[0,0] B[0,0]))", "--network", "f=model.onnx", "--no-save", "--timeout", "10")
    assert ran.first == "sat"
    lines = ran.out.splitlines()
    assert lines[1] == "X float32 [1,4]" and lines[lines.index("A float32 [1,4]") + 1] == "1.0"
    same = ["--order", "left-to-right", "--fma", "never", "--bias-place", "last"]
    fixed = verify(query + "(assert (> Y[0,0] B[0,0]))", "--network", "f=model.onnx", "--no-save", *same)
    assert fixed.out == "unsat\n"
    both = verify(query, "--network", "f=model.onnx", "--network", "g=model.onnx", "--no-save")
    assert both.code == 2 and "a model is given for 'g'" in both.errors


def test_inputs_in_comparisons(verify: Verify, tmp_path: Path) -> None:
    gemm(tmp_path, [[2]], [0])
    query = declare(1, 1) + box((1, 2))
    assert verify(query + "(assert (>= Y_0 (* 2 X_0)))", "--network", "model.onnx", "--no-save").first == "sat"
    point = declare(1, 1) + box((1, 1))
    assert verify(point + "(assert (> Y_0 (* 2 X_0)))", "--network", "model.onnx", "--no-save").out == "unsat\n"


def test_a_format_for_the_whole_network(verify: Verify, tmp_path: Path) -> None:
    """2048 + 1 is 2048 in float16."""
    gemm(tmp_path, [[2048, 1]], [0])
    query = declare(2, 1) + box((1, 1), (1, 1)) + "(assert (>= Y_0 2049))"
    assert verify(query, "--network", "model.onnx", "--no-save").first == "sat"
    ran = verify(query, "--network", "model.onnx", "--no-save", "--format", "float16")
    assert ran.out == "unsat\n" and "rounded to float16" in ran.errors


def test_a_format_between_casts(verify: Verify, tmp_path: Path) -> None:
    """No bfloat16 is between 0.999 and 0.9999, and all float32 there are cast to 1."""
    gemm(tmp_path, [[1]], [0])
    query, how = declare(1, 1) + box(("0.999", "0.9999")), ["--network", "model.onnx", "--format", "bfloat16"]
    ran = verify(query + "(assert (<= Y_0 2))", *how, "--no-save")
    assert ran.out == "unsat\n" and "hold no value of bfloat16" in ran.errors
    ran = verify(query + "(assert (>= Y_0 1))", *how, "--cast")
    assert ran.first == "sat" and "(Y_0 1.0)" in ran.out and "hold no value" not in ran.errors
    assert verify(query + "(assert (> Y_0 1))", *how, "--cast", "--no-save").first == "unsat"
    typed = NEW.replace("[1,2]", "[1,1]").replace("(and (== In[0,0] 1) (== In[0,1] 0.5))", "(== In[0,0] 0.999)")
    near = typed.replace("(== In[0,0] 0.999)", "(and (>= In[0,0] 0.999) (<= In[0,0] 0.9999))")
    for text, first in ((typed, "unsat"), (near, "sat")):  # 0.999 is no float32
        assert verify(text, *how, "--cast", "--no-save").first == first
    name = str(next((tmp_path / "fpsmt-results").glob("verify-*.json")))
    assert main(["check", name]) == 0 and main(["replay", name]) == 0


def test_a_failing_engine_is_never_unsat(verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gemm(tmp_path, [[1]], [0])

    def broken(claim: Any, options: Any) -> Any:
        raise AssertionError("wrong")

    monkeypatch.setitem(decide.__globals__, "ENGINES", [Engine("broken", (Safe,), broken)])
    ran = verify(declare(1, 1) + "(assert (<= Y_0 0))", "--network", "model.onnx", "--no-save")
    assert ran.code == 4 and ran.out == ""


@pytest.mark.skipif(not DATA.exists(), reason="the public benchmark files are not there")
@pytest.mark.parametrize("name", ["sat_v2_c2", "sat_v3_c9"])
def test_thresholds_that_are_hit_exactly(name: str, verify: Verify) -> None:
    query = (DATA / "satrelu" / f"{name}.vnnlib").read_text()
    assert verify(query, "--network", str(DATA / "satrelu" / f"{name}.onnx"), "--no-save").first == "sat"
