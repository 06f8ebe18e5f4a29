"""The bounds contain every outcome, and are exact where they say so."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    Context,
    Float,
    Format,
    Overflow,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    from_ordinal,
    ieee,
)
from fpsmt.floats.vector import to_carrier, to_floats, values
from fpsmt.functions import implementation_named
from fpsmt.networks import (
    Activation,
    Affine,
    Cast,
    Constant,
    Elementwise,
    Execution,
    Input,
    Network,
    Node,
    Select,
    bounds,
    enclosures,
    execution,
    parse_order,
    run,
)
from fpsmt.networks.outcomes import Sum, reachable
from tests.strategies import every_context, finite_floats

FORMATS = (float8_e5m2, float8_e4m3, float8_e4m3fn, bfloat16, float16, float32)


def within(low: float, high: float, value: Float) -> bool:
    """The meaning of a bound: finite ends promise a finite value between them."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return True
    return value.is_finite and Fraction(low) <= value.fraction <= Fraction(high)


def ordinary(fmt) -> st.SearchStrategy[Float]:  # type: ignore[no-untyped-def]
    """Values within a few binades of one, so that sums round and cancel but seldom overflow."""
    one, width = fmt.bias << fmt.fraction_bits, 2 << fmt.fraction_bits
    places, signs = st.integers(one - width, one + width), st.sampled_from([1, -1])
    return st.builds(lambda place, sign: from_ordinal(fmt, sign * place), places, signs)


def numbers(fmt) -> st.SearchStrategy[Float]:  # type: ignore[no-untyped-def]
    return st.one_of(ordinary(fmt), ordinary(fmt), finite_floats(fmt))


contexts = st.sampled_from(FORMATS).flatmap(lambda fmt: st.sampled_from(every_context(fmt)))


@st.composite
def executions(draw: st.DrawFn, orders: tuple[str, ...] = ("any", "left-to-right", "lanes:2", "pairwise|blocks:2")):
    accumulator = draw(st.one_of(st.none(), contexts))
    products = draw(st.one_of(st.none(), st.just("exact"), contexts))
    fma = draw(st.sampled_from(["never", "always", "any"]))
    bias = draw(st.sampled_from(["last", "first", "any"]))
    return Execution(parse_order(draw(st.sampled_from(orders))), fma, accumulator, products, bias)


@st.composite
def dots(draw: st.DrawFn, how: st.SearchStrategy[Execution], most: int = 4) -> tuple[Network, list[Float], Sum]:
    """One dot product as a network, its input, and as a sum."""
    ctx, source = draw(contexts), draw(contexts)
    weight_format, bias_format = draw(st.sampled_from(FORMATS)), draw(st.sampled_from(FORMATS))
    n = draw(st.integers(1, most))
    w = [draw(numbers(weight_format)) for _ in range(n)]
    x = [draw(numbers(source.format)) for _ in range(n)]
    bias = draw(st.one_of(st.none(), numbers(bias_format)))
    nodes = (
        Input(name="x", context=source, size=n),
        Affine(
            name="y", context=ctx, source="x", weights=[w], bias=None if bias is None else [bias],
            weight_format=weight_format, bias_format=bias_format,
        ),
    )  # fmt: skip
    return Network(nodes, ("y",)), x, Sum(ctx, tuple(zip(w, x)), bias, draw(how))


def ends(network: Network, x: list[Float], how: Execution) -> tuple[float, float]:
    low, high = enclosures(network, to_carrier(x)[None, :], executions=how)[network.output.name]
    return float(low[0, 0]), float(high[0, 0])


@settings(max_examples=70)
@given(dots(executions()))
def test_short_sums_are_exact(case: tuple[Network, list[Float], Sum]) -> None:
    """The extremes over all schedules, and no bounds exactly when a schedule has an infinity or NaN in its total
    (which a saturating node may still make finite)."""
    network, x, problem = case
    results, how = list(reachable(problem)), problem.execution
    low, high = ends(network, x, how)
    totals = list(reachable(replace(problem, context=how.sum_context(problem.context)))) if how.accumulator else []
    if all(value.is_finite for value in (*results, *totals)):
        fractions = [value.fraction for value in results]
        assert (Fraction(low), Fraction(high)) == (min(fractions), max(fractions))
    else:
        assert (low, high) == (-np.inf, np.inf)


@given(dots(executions(("any", "sequential", "depth:3")), most=5))
def test_a_priori_bounds_contain_every_schedule(case: tuple[Network, list[Float], Sum]) -> None:
    network, x, problem = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MOST_LEAVES", 0)
        low, high = ends(network, x, problem.execution)
    for value in reachable(problem):
        assert within(low, high, value)


@given(st.data(), st.sampled_from([float8_e5m2, float8_e4m3]), st.sampled_from(["never", "any", "exact"]))
def test_a_priori_bounds_contain_underflow(data: st.DataObject, fmt: Format, products: str) -> None:
    """Products and sums below the normal range, gradual or flushed, in every rounding mode."""
    ctx = data.draw(st.sampled_from([c for c in every_context(fmt) if c.overflow is Overflow.INFINITY]))
    how = execution(products="exact") if products == "exact" else execution(fma=products)
    last = 3 << fmt.fraction_bits
    small = st.integers(-last, last).map(lambda place: from_ordinal(fmt, place))
    n = data.draw(st.integers(2, 4))
    x = [data.draw(small) for _ in range(n)]
    w = [exactly(fmt, data.draw(st.sampled_from([1, -1, Fraction(1, 2), Fraction(3, 4), Fraction(1, 4)])))
         for _ in range(n)]  # fmt: skip
    net = Network.sequential(ctx, n, [([w], None)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MOST_LEAVES", 0)
        low, high = ends(net, x, how)
    for value in reachable(Sum(ctx, tuple(zip(w, x)), None, how)):
        assert within(low, high, value)


@settings(max_examples=50)
@given(dots(executions(("contiguous", "sequential", "depth:4", "any|contiguous"))))
def test_smaller_families_are_contained(case: tuple[Network, list[Float], Sum]) -> None:
    network, x, problem = case
    low, high = ends(network, x, problem.execution)
    for value in reachable(problem):
        assert within(low, high, value)


@settings(max_examples=40)
@given(st.data(), st.sampled_from([float8_e5m2, bfloat16, float16, float32]), executions(("any",)), st.booleans())
def test_two_layers_of_boxes(data: st.DataObject, fmt, how: Execution, small: bool) -> None:  # type: ignore[no-untyped-def]
    """Random executions on inputs inside a box stay inside the bounds of every node."""
    def draw(count: int) -> list[Float]:
        return [data.draw(ordinary(fmt)) for _ in range(count)]

    ctx = context(fmt)
    net = Network.sequential(ctx, 3, [([draw(3), draw(3)], draw(2)), "relu", ([draw(2), draw(2)], draw(2)), "tanh"])
    pairs = [sorted(pair, key=lambda v: v.ordinal) for pair in zip(draw(3), draw(3))]
    low, high = (to_carrier([pair[side] for pair in pairs])[None, :] for side in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MOST_LEAVES", 12 if small else 0)
        found = enclosures(net, low, high, how)
    rng = Random(data.draw(st.integers(0, 2**32)))
    for _ in range(6):
        x = [from_ordinal(fmt, rng.choice([a.ordinal, b.ordinal, rng.randint(a.ordinal, b.ordinal)])) for a, b in pairs]
        schedules = {(name, i): how.random_schedule(n, rng, bias) for name, i, n, bias in net.sums()}
        for name, row in run(net, x, how, schedules).values.items():
            for i, value in enumerate(row):
                assert within(found[name][0][0, i], found[name][1][0, i], value), (name, i)


def test_a_long_sum_in_float32_is_enclosed_tightly() -> None:
    """The error term is that of the theory, (n−1)·u·Σ|xᵢ|, with a little room for rounding it up."""
    rng = np.random.default_rng(1)
    terms = rng.normal(size=200).astype(np.float32)
    net = Network.sequential("float32", 200, [(terms[None, :], None)])
    low, high = (end[0, 0] for end in enclosures(net, np.ones((1, 200)))["affine1"])
    exact, size = sum(map(Fraction, terms.tolist())), sum(map(abs, map(Fraction, terms.tolist())))
    assert Fraction(low) < exact < Fraction(high)
    assert Fraction(high) - Fraction(low) <= Fraction(21, 10) * 199 * Fraction(1, 2**24) * size
    reached = [run(net, to_floats(float32, np.ones(200)), execution(order)).output[0].fraction
               for order in ("left-to-right", "right-to-left", "pairwise", "lanes:16")]  # fmt: skip
    assert len(set(reached)) > 1
    assert all(Fraction(low) <= r <= Fraction(high) for r in reached)


@pytest.mark.parametrize("most", [12, 0])
def test_overflow_is_never_silently_finite(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public report: four 32000 and four −32000 in float16 give 0, ±inf or NaN by the order."""
    monkeypatch.setattr(bounds, "MOST_LEAVES", most)
    net = Network.sequential("float16", 8, [([[32000] * 4 + [-32000] * 4], None)])
    one = [exactly(float16, 1)] * 8
    assert ends(net, one, execution()) == (-np.inf, np.inf)
    assert ends(net, one, execution(accumulator="float32")) == (0.0, 0.0) or most == 0
    low, high = ends(net, one, execution(accumulator="float32"))
    assert -1 < low <= 0 <= high < 1
    assert ends(net, one, execution("left-to-right")) == (-np.inf, np.inf)
    assert ends(net, one, execution("lanes:4")) == (0.0, 0.0)
    ctx = context("float16:saturate")
    saturating = Network.sequential(ctx, 8, [([[32000] * 4 + [-32000] * 4], None)])
    low, high = ends(saturating, one, execution())
    results = [float(y) for y in reachable(Sum(ctx, tuple(exactly(float16, v) for v in [32000] * 4 + [-32000] * 4)))]
    assert (low, high) == ((min(results), max(results)) if most else (-np.inf, np.inf))


def test_what_depends_on_infinities_and_nan_is_unbounded() -> None:
    net = Network.sequential("float16", 2, [([[1, 0], [0, 0]], [0, 1]), "relu"])
    for bad in (np.inf, -np.inf, np.nan):
        low, high = enclosures(net, [[bad, 1.0], [1.0, 1.0]])["activation1"]
        assert np.isneginf(low[0]).all() and np.isposinf(high[0]).all()
        assert low[1].tolist() == high[1].tolist() == [1.0, 1.0]


ACTIVATIONS = (
    "tanh", "gelu", "sin", "step", "sqrt", "log", "exp", "tanh:ulps=2", "sigmoid:ulps=5/2:range=0..1",
    "gelu:floats=3", "swish:error=1/8", "exp:ulps=1", "tanh:ulps=1 on -1..1; error=1/16", "relu'", "gaussian:ulps=3",
)  # fmt: skip


@pytest.mark.parametrize("ctx", ["float8_e4m3", "float8_e5m2:RTZ", "float8_e4m3:flush", "float8_e4m3fn:nan:RTP"])
@pytest.mark.parametrize("text", ACTIVATIONS)
def test_activations_on_all_intervals_of_some_ends(text: str, ctx: str) -> None:
    """Every result that a contract allows anywhere in an interval is in its bounds."""
    here, use = context(ctx), implementation_named(text)
    rng = np.random.default_rng(2)
    line = values(here.format, finite=True)
    pairs = np.sort(rng.choice(line, size=(60, 2)), axis=1)
    net = Network(
        (Input(name="x", context=here, size=1), Activation(name="y", context=here, source="x", implementation=use)),
        ("y",),
    )
    low, high = enclosures(net, pairs[:, :1], pairs[:, 1:])["y"]
    allowed = {float(v): [use.allowed(here, z) for z in ([v, -v] if v.is_zero else [v])]
               for v in to_floats(here.format, line)}  # fmt: skip
    assert np.isfinite(low).any()
    for (a, b), bottom, top in zip(pairs, low[:, 0], high[:, 0], strict=True):
        results = [end for x in line[(line >= a) & (line <= b)] for pair in allowed[float(x)] for end in pair]
        assert all(within(bottom, top, y) for y in results)
        exact = ":" not in text and not (text == "sin" and b - a >= 1024)  # over many turns: −1 and 1
        if exact and all(y.is_finite for y in results) and np.isfinite(bottom):
            assert Fraction(bottom) == min(y.fraction for y in results)
            assert Fraction(top) == max(y.fraction for y in results)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(["add", "sub", "mul", "div"]), contexts)
def test_elementwise_casts_and_selections(data: st.DataObject, operation: str, ctx: Context) -> None:
    fmt = ctx.format
    pairs = [sorted((data.draw(numbers(fmt)), data.draw(numbers(fmt))), key=lambda v: v.ordinal) for _ in range(2)]
    other = data.draw(contexts)
    nodes: tuple[Node, ...] = (
        Input(name="x", context=ctx, size=2),
        Constant(name="c", context=ctx, values=[data.draw(numbers(fmt))]),
        Select(name="a", context=ctx, nodes=("x", "c"), picks=((0, 0), (1, 0))),
        Select(name="b", context=ctx, nodes=("x", "x"), picks=((0, 1), (1, 1))),
        Elementwise(name="y", context=ctx, operation=operation, left="a", right="b"),
        Cast(name="z", context=other, source="y"),
    )
    net = Network(nodes, ("z",))
    low, high = (to_carrier([pair[side] for pair in pairs])[None, :] for side in (0, 1))
    found = enclosures(net, low, high)
    for _ in range(10):
        x = [from_ordinal(fmt, data.draw(st.integers(a.ordinal, b.ordinal))) for a, b in pairs]
        try:
            trace = run(net, x)
        except UsageError:  # NaN into a format without one
            continue
        for name in ("y", "z"):
            for i, value in enumerate(trace.values[name]):
                assert within(found[name][0][0, i], found[name][1][0, i], value)


def test_masked_rows_and_lone_biases() -> None:
    """Rows with fewer terms keep their own bounds; a row of its bias alone has one value."""
    nodes = (
        Input(name="x", context=context("float16"), size=3),
        Affine(
            name="y", context=context("float16"), source="x", weights=[[2048, 1, 1], [1, 1, 1], [1, 1, 1]],
            bias=[0, 0, 3], mask=np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=bool),
        ),
    )  # fmt: skip
    low, high = enclosures(Network(nodes, ("y",)), [[1.0, 1.0, np.inf], [1.0, 1.0, 1.0]])["y"]
    assert low.tolist() == [[-np.inf, 1.0, 3.0], [2048.0, 1.0, 3.0]]
    assert high.tolist() == [[np.inf, 1.0, 3.0], [2050.0, 1.0, 3.0]]


def test_errors_say_what_to_do() -> None:
    net = Network.sequential("float16", 2, [([[1, 1]], [0])])
    with pytest.raises(UsageError, match="lower bounds are not all below"):
        enclosures(net, [[1.0, 2.0]], [[0.0, 3.0]])
    with pytest.raises(UsageError, match="the shape should be any × 2"):
        enclosures(net, [[1.0]])
    wide = Network.sequential(ieee(15, 113), 2, [([[1, 1]], [0])])
    with pytest.raises(Unsupported, match="not embedded"):
        enclosures(wide, [[1.0, 2.0]])
    assert float64.precision == 53
