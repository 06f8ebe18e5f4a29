"""Queries with their networks as claims: the same inputs and outputs satisfy both, by an evaluation of its own."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from fpsmt.files.assignments import exact_decimal
from fpsmt.files.onnx import Model, read_onnx
from fpsmt.files.queries import ask
from fpsmt.files.vnnlib import parse_vnnlib
from fpsmt.floats import exactly, float16, float64
from fpsmt.functions import implementation_named
from fpsmt.networks import Network, execution, run
from tests.onnx.building import build, gemm, save

N = helper.make_node
OLD = "".join(f"(declare-const {name} Real)" for name in ("X_0", "X_1", "Y_0", "Y_1"))

#: Quarters: some values are hit exactly, and −0 is among them.
QUARTERS = [float(k) / 4 for k in range(-4, 5)] + [-0.0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    nodes = [N("Gemm", ["x", "w"], ["y"], transB=1)]
    made = build(nodes, {"x": [1, 2]}, {"y": [1, 2]}, {"w": np.float16([[1, 2], [3, -1]])}, kind=TensorProto.FLOAT16)
    return read_onnx(save(made, tmp_path_factory.mktemp("model") / "m.onnx"))


number = st.integers(-6, 6).map(lambda k: Fraction(k, 4))
variable = st.sampled_from(["X_0", "X_1", "Y_0", "Y_1"])


def text(x: Any) -> str:
    if isinstance(x, Fraction):
        return str(float(x))
    return x if isinstance(x, str) else f"({' '.join(map(text, x))})"


def terms(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-"]), inner, inner), st.tuples(st.just("-"), inner),
        st.tuples(st.just("*"), number, inner), st.tuples(st.just("*"), inner, number),
    )  # fmt: skip


term = st.recursive(st.one_of(number, variable, variable), terms, max_leaves=3)
comparison = st.tuples(st.sampled_from(["<=", "<", ">=", ">", "!=", "="]), term, term)
formula = st.recursive(
    comparison, lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner), max_leaves=5
)


def value(x: Any, at: dict[str, Fraction]) -> Any:
    """The meaning, straight from the text of the standard."""
    if isinstance(x, Fraction):
        return x
    if isinstance(x, str):
        return at[x]
    head, *parts = x[0], *(value(p, at) for p in x[1:])
    a, b = parts[0], parts[-1]
    match head:
        case "+":
            return a + b
        case "-":
            return a - b if len(parts) == 2 else -a
        case "*":
            return a * b
        case "and":
            return a and b
        case "or":
            return a or b
    return {"<=": a <= b, "<": a < b, ">=": a >= b, ">": a > b, "!=": a != b, "=": a == b}[head]


@settings(max_examples=150)
@given(st.lists(formula, min_size=1, max_size=3), st.lists(st.sampled_from(QUARTERS), min_size=40, max_size=40))
def test_the_claim_says_what_the_query_says(model: Model, formulas: list[Any], draws: list[float]) -> None:
    query = OLD + "".join(f"(assert {text(f)})" for f in formulas)
    problem = ask(parse_vnnlib(query), {"": model}, execution())
    claim = problem.claim
    size = claim.network.input.size
    if size < 2:
        return  # the query makes the two inputs one
    for k in range(0, 40, 4):
        x, y = ([exactly(float16, v) for v in draws[at : at + 2]] for at in (k, k + 2))
        outputs = [*y, *x][: claim.network.sizes[claim.network.output.name]]
        met = any(q.has_input(x) and q.unsafe_at(outputs) is not None for q in claim.safety.queries)
        at = dict(zip(("X_0", "X_1", "Y_0", "Y_1"), (v.fraction for v in (*x, *y)), strict=True))
        assert met == all(value(f, at) for f in formulas), (query, at)


def test_inputs_that_are_equal_become_one(model: Model) -> None:
    problem = ask(parse_vnnlib(OLD + "(assert (= X_0 X_1))"), {"": model}, execution())
    network = problem.claim.network
    assert network.input.size == 1
    x = [exactly(float16, 0.5)]
    y = run(network, x).output
    assert [v.fraction for v in y[:2]] == [Fraction(3, 2), 1]
    found = [[float(v) for v in problem.values(t, x, y)] for t in problem.tensors]
    assert found == [[0.5, 0.5], [1.5, 1]]


def test_inputs_stay_apart_where_zeros_differ(tmp_path: Path) -> None:
    """1/x tells −0 from +0, and so may an activation that is not correctly rounded."""
    path = save(build([N("Reciprocal", ["x"], ["y"])], {"x": [2]}, {"y": [2]}), tmp_path / "r.onnx")
    query = parse_vnnlib(OLD + "(assert (= X_0 X_1))")
    assert ask(query, {"": read_onnx(path)}, execution()).claim.network.input.size == 2
    path = save(build([N("Tanh", ["x"], ["y"])], {"x": [2]}, {"y": [2]}), tmp_path / "t.onnx")
    loose = read_onnx(path, {"Tanh": implementation_named("identity:ulps=2")})
    assert ask(query, {"": loose}, execution()).claim.network.input.size == 2
    assert ask(query, {"": read_onnx(path)}, execution()).claim.network.input.size == 1


def test_several_networks_keep_their_own_values(tmp_path: Path) -> None:
    paths = gemm(tmp_path, [[1, 2]], [3], "f.onnx"), gemm(tmp_path, [[-1]], [0], "g.onnx")
    models = dict(zip("fg", map(read_onnx, paths)))
    query = """(vnnlib-version <2.0>)
    (declare-network f (declare-input X float32 [1,2]) (declare-output Y float32 [1,1]))
    (declare-network g (declare-input A real [1,1]) (declare-output B real [1,1]))
    (assert (and (== X[0,1] A[0,0]) (<= (+ Y[0,0] B[0,0]) 0)))"""
    problem = ask(parse_vnnlib(query), models, execution())
    network: Network = problem.claim.network
    assert network.input.size == 2
    x = [exactly(network.input.format, v) for v in (5, 7)]
    y = run(network, x).output
    named = {t.name: [float(v) for v in problem.values(t, x, y)] for t in problem.tensors}
    assert named == {"X": [5, 7], "Y": [22], "A": [7], "B": [-7]}
    assert problem.claim.safety.queries[0].unsafe[0].text == "y0 + y1 <= 0"


def test_exact_decimals() -> None:
    for fmt in (float16, float64):
        for x in (0.1, -0.0, float(fmt.smallest), float(fmt.largest), -3.0, float("inf"), float("nan")):
            near = float(np.float16(x)) if fmt is float16 else x
            shown = exact_decimal(exactly(fmt, near))
            assert "e" not in shown
            assert exactly(fmt, float(shown)) == exactly(fmt, near)
            if np.isfinite(near):
                assert Fraction(shown) == Fraction(near)
