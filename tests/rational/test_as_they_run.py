"""Rationals as float programs: functions by name, schedules, contracts, poles, and use in networks."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import PredictionInvariant, Values
from fpsmt.cli import main
from fpsmt.engines import Options, decide
from fpsmt.engines.rational_programs import compare, implementation, poles_that_floats_hit, program_within
from fpsmt.engines.representation import represent
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, exactly, float8_e4m3, float16, float32, round_real
from fpsmt.functions import correctly_rounded, enclose, function_named, table
from fpsmt.networks import Network, enclosures, execution, run
from fpsmt.rational import Rational, Trainable, rational_function
from fpsmt.rational.functions import name_of, trainable_named
from fpsmt.rational.schedules import NAMES, number, program_text
from fpsmt.terms.programs import program

SMOOTH_RELU = Trainable.of("A", [0.0218, 0.5, 1.5957, 1.1915], [0.0, 2.383])
EIGHT = F(-8), F(8)

coefficients = st.fractions(-3, 3, max_denominator=4)


@st.composite
def rationals(draw, versions=("A", "unsafe", "B")):
    version = draw(st.sampled_from(versions))
    a = draw(st.lists(coefficients, min_size=1, max_size=6))
    b = draw(st.lists(coefficients, min_size=0, max_size=5))
    if version == "unsafe":  # even powers above 0: no real pole
        b = [abs(c) if j % 2 else F(0) for j, c in enumerate(b)]
    return Trainable(version, tuple(a), tuple(b))


@given(rationals(), st.fractions(-9, 9, max_denominator=16), st.sampled_from(NAMES))
@settings(max_examples=80, deadline=None)
def test_every_schedule_computes_the_rational(r, x, schedule):
    if schedule == "reciprocal" and (r.version == "B" or not r.b):
        with pytest.raises(UsageError):
            program_text(r, schedule)
        return
    ctx = context("float64")
    x = F(float(x))
    (y,) = program(program_text(r, schedule)).outcomes(ctx, exactly(ctx.format, x))
    scale = sum(abs(c) * abs(x) ** i for i, c in enumerate(r.a)) + 1
    assert abs(y.fraction - r(x)) <= scale / 10**12


@given(rationals(("A", "unsafe")), st.fractions(-5, 5, max_denominator=8), st.fractions(0, 5, max_denominator=8))
@settings(max_examples=60, deadline=None)
def test_functions_enclose_their_values(r, low, width):
    f = rational_function(r)
    a, b = enclose(f, low, low + width)
    for k in range(9):
        assert a <= r(low + width * k / 8) <= b
    assert function_named(name_of(r)) is f and trainable_named(f.name) == r
    assert len(f.directions) == len(f.turning) + 1


def test_directions_and_limits():
    bump = function_named("rational(0, 1; 0, 1)")
    assert bump.directions == (-1, 1, -1) and enclose(bump, F(-9), F(9)) == (F(-1, 2), F(1, 2))
    assert bump.at_plus_infinity == 0 and function_named("rational(0,1)").at_minus_infinity == -np.inf
    kink = function_named("rational_A(1;1)")
    assert kink.directions == (1, -1) and kink.derivative.directions[0] == 1
    assert kink.derivative.turning[0].limits == (1, -1)  # slopes on both sides of 0
    for bad, why in (
        ("rational(1;0,-1)", "real pole"), ("rational(;1)", "at least one"), ("rational(1;2;3)", "one semicolon"),
        ("rational(nan)", "nan"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=why):
            function_named(bad)
    with pytest.raises(UsageError, match="no function by name"):
        rational_function(Trainable("B", (F(1),), (F(1),)))


def test_correct_rounding_is_exact():
    f, ctx = rational_function(SMOOTH_RELU), context("float8_e4m3")
    values = table(f, ctx)
    for x in (Float(float8_e4m3, code) for code in range(0, 256, 7)):
        if x.is_finite:
            assert correctly_rounded(f, ctx, x) == round_real(ctx, SMOOTH_RELU(x.fraction)) or x.is_zero
            assert correctly_rounded(f, ctx, x).fraction == F(float(values[x.code]))
    assert number(F(1, 3)).startswith("0.3333333333333333333333333333333333")


def test_the_best_schedule_is_the_one_without_overflow():
    """Numerator and denominator overflow together, and inf/inf is NaN, unless powers are divided out."""
    runs = compare(SMOOTH_RELU, "float8_e4m3", *EIGHT)
    assert runs[0].schedule == "reciprocal" and runs[0].wrong == 0
    assert {run.schedule for run in runs if run.wrong} == {"horner", "estrin", "powers"}
    assert all(run.audit.exhaustive for run in runs)


def test_contracts():
    claim = program_within(SMOOTH_RELU, "horner", "always", "float16", *EIGHT, F(1, 128))
    assert decide(claim).how == "all inputs exhausted"
    smaller = program_within(SMOOTH_RELU, "horner", "always", "float16", *EIGHT, F(1, 256))
    assert decide(smaller).name == "refuted"
    single = program_within(SMOOTH_RELU, "horner", "never", "float32", F(1), F(2), F(1, 2**18))
    assert decide(single, Options(timeout=30)).how == "error analysis"


def test_poles_between_floats():
    pole = Rational.make((1,), (-2, 0, 1))
    around = poles_that_floats_hit(pole, float32)
    assert [hit for *_, hit in around] == [False, False]
    for low, high, _ in around:
        assert high.ordinal == low.ordinal + 1
    low, high, hit = poles_that_floats_hit(Rational.make((1,), (-3, 2)), float16)[0]
    assert hit and low == high and low.fraction == F(3, 2)
    assert poles_that_floats_hit(Rational.make((1,), (1, 0, 1)), float16) == []
    (beyond,) = poles_that_floats_hit(Rational.make((1,), (-(10**6), 1)), float16)
    assert beyond[0] == exactly(float16, 65504) and beyond[1].is_infinite


def test_a_network_with_rational_activations():
    """Certified for every order of its sums, with the activation as it runs."""
    use = implementation(SMOOTH_RELU, "reciprocal")
    layers = [([[1, 0.5, -1], [-0.5, 1, 2]], [0, 0.25]), use, ([[1, -1], [-1, 1]], [0, 0])]
    network = Network.sequential("float16", 3, layers)
    x = tuple(exactly(float16, v) for v in (1, 0.5, -2))
    assert decide(PredictionInvariant(network, (x,), execution("any"))).name == "proved"


def test_bounds_of_programs_in_long_formats():
    """The same in float32, where a program is bounded by its error analysis; every execution is within the bounds."""
    for schedule, fma in (("horner", "never"), ("reciprocal", "always"), ("estrin", "any")):
        use = implementation(SMOOTH_RELU, schedule, fma)
        layers = [([[1, 0.5, -1], [-0.5, 1, 2]], [0, 0.25]), use, ([[1, -1], [-1, 1]], [0, 0])]
        network = Network.sequential("float32", 3, layers)
        low, high = np.array([[0.5, 0.25, -2]]), np.array([[1, 0.75, -1.5]])
        bounds = enclosures(network, low, high, execution("any"))
        assert all(np.isfinite(end).all() for end in bounds[network.output.name])
        assert (bounds[network.output.name][1] - bounds[network.output.name][0] < 5).all()
        rng = np.random.default_rng(0)
        for _ in range(20):
            x = [round_real(network.input.context, F(v)) for v in rng.uniform(low[0], high[0])]
            values = run(network, x).values
            for name, (least, most) in bounds.items():  # one order of many
                assert all(a <= float(v) <= b for v, a, b in zip(values[name], least[0], most[0], strict=True))
        x = tuple(exactly(float32, v) for v in (1, 0.5, -2))
        assert decide(PredictionInvariant(network, (x,), execution("any"))).name == "proved"


def test_a_rational_in_verify(tmp_path, monkeypatch, capfd):
    """In the place of an operator's function, as its program runs: proved on a box, with linear bounds; refuted."""
    helper = pytest.importorskip("onnx").helper
    monkeypatch.chdir(tmp_path)
    tensors = {"w": [[1.0, 0.5], [-0.5, 1]], "b": [0.25, 0], "v": [[1.0, -1]]}
    initial = [
        helper.make_tensor(name, 1, np.shape(values), np.ravel(values).astype(np.float32))
        for name, values in tensors.items()
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Gemm", ["t", "v"], ["y"], transB=1),
    ]
    ends = [helper.make_tensor_value_info(name, 1, [1, n]) for name, n in (("x", 2), ("y", 1))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    text = """(vnnlib-version <2.0>)
        (declare-network f (declare-input X float32 [1,2]) (declare-output Y float32 [1,1]))
        (assert (and (>= X[0,0] 0) (<= X[0,0] 0.5) (>= X[0,1] -0.5) (<= X[0,1] 0.5)))
        (assert (>= Y[0,0] {}))"""
    assert F(8, 10) < SMOOTH_RELU(F(7, 8)) - SMOOTH_RELU(F(0)) < F(9, 10)  # at (1/2, 1/4)
    for bound, word in ((F(8, 10), "sat"), (F(9, 10), "unsat")):  # bounds of each value alone leave 1
        (tmp_path / "q.vnnlib").write_text(text.format(float(bound)))
        activation = f"Tanh={implementation(SMOOTH_RELU, 'reciprocal').text}"
        words = ["q.vnnlib", "--network", "f=m.onnx", "--activation", activation, "--no-save", "--jobs", "1"]
        main(["verify", *words])
        assert capfd.readouterr().out.split()[0] == word


@pytest.mark.parametrize("schedule", ["horner", "reciprocal"])
def test_a_table_by_a_network_of_rational_activations(schedule):
    """Unbounded on both sides, and a NaN far out by Horner's rule."""
    use = implementation(Trainable.of("A", [0, 0.5, 1.5957, 1.1915], [0.0, 2.383]), schedule)
    fmt = context("bfloat16").format
    table_of_five = Values(fmt, [[-2.0], [-0.5], [0.0], [1.0], [3.0]], [[1.0], [0.0], [-2.5], [7.0], [0.125]])
    found = represent(context("bfloat16"), use, table_of_five)
    assert (found.verdict.name, found.construction) == ("proved", "bumps")


def test_rationals_by_name_on_the_command_line(capfd):
    assert main(["separate", "--format", "float8_e4m3", "--activation", "rational_A(0,0.5,1;0,1)", "--no-save"]) == 0
    assert capfd.readouterr().out.startswith("separate exact ")
