"""The interpreter: hand-computed runs, choices that are checked, and its twin on arrays."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, context, exactly, float16, float32, ieee, infinity, nan, nearest, zero
from fpsmt.floats.vector import to_carrier, to_floats, values
from fpsmt.functions import CorrectlyRounded, Implementation, Table, implementation_named, relu, sigmoid
from fpsmt.networks import (
    Activation,
    Affine,
    Cast,
    Constant,
    Elementwise,
    Execution,
    Input,
    Network,
    Select,
    execution,
    parse_order,
    run,
    run_batch,
)
from fpsmt.networks.monotone import check_monotone
from tests import strategies

F16 = context("float16")


def half(*numbers):
    return [exactly(float16, x) for x in numbers]


# -- by hand ----------------------------------------------------------------------------------------------


def test_order_decides_a_prediction():
    """2048 + 1 + 1 in float16: left to right the ones are lost, the other way round they are not."""
    net = Network.sequential("float16", 3, [(np.ones((1, 3)), [-2048]), "relu"])
    x = half(2048, 1, 1)
    assert run(net, x).output == (zero(float16),)
    how = {"affine1": execution("right-to-left")}
    assert run(net, x, how).output == tuple(half(2))
    assert run(net, x, schedules={("affine1", 0): ((0, (1, 2)), 3)}).output == tuple(half(2))
    trace = run(net, x, schedules={("affine1", 0): (((0, 1), 2), 3)})
    assert [int(v.fraction) for v in trace.sums["affine1", 0].values] == [2048, 1, 2048, 1, 2048, -2048, 0]
    assert trace.text().splitlines()[-1] == "activation1  0.0"


def test_every_kind_of_node():
    bf = context("bfloat16")
    net = Network(
        (
            Input(name="x", context=F16, size=2),
            Input(name="y", context=F16, size=2),
            Constant(name="c", context=F16, values=[2, float("-inf")]),
            Elementwise(name="difference", context=F16, operation="sub", left="x", right="y"),
            Elementwise(name="quotient", context=F16, operation="div", left="difference", right="c"),
            Cast(name="cast", context=bf, source="quotient"),
            Select(name="out", context=bf, nodes=("cast", "cast"), picks=((1, 1), (0, 0), (0, 1))),
            Affine(name="masked", context=bf, source="out", weights=[[1, 1, 1], [1, 1, 1]], bias=[1, 2],
                   mask=[[0, 0, 0], [0, 1, 0]]),
        ),
        ("masked",),
    )  # fmt: skip
    trace = run(net, {"x": half(1025, 3), "y": half(0.0, 3)})
    assert [v.decimal for v in trace.values["quotient"]] == ["512.5", "-0.0"]
    assert [v.decimal for v in trace.values["out"]] == ["-0.0", "512.0", "-0.0"]
    assert [v.decimal for v in trace.output] == ["1.0", "512.0"]
    assert trace.sums["masked", 0].tree == 0


def test_special_values_propagate():
    net = Network.sequential("float16", 2, [([[1, 1], [0, 1]], None), "relu"])
    inf = infinity(float16)
    assert run(net, [inf, -inf]).values["affine1"] == (nan(float16), nan(float16))
    assert run(net, [inf, half(1)[0]]).values["activation1"] == (inf, nan(float16))
    assert run(net, half(60000, 60000)).output[0] == inf


# -- choices ----------------------------------------------------------------------------------------------


def one_activation(text: str | Implementation, copies: int = 1) -> Network:
    return Network.sequential("float16", copies, [text])


def test_outputs_are_checked_against_the_contract():
    x = half(0.5)[0]
    use = implementation_named("tanh:ulps=2")
    net = one_activation(use)
    low, high = use.allowed(F16, x)
    assert low != high
    for y in (low, high):
        assert run(net, [x], outputs={(use.text, "", x): y}).output == (y,)
    for y in (low.next_down, high.next_up, nan(float16), exactly(float32, 0.5)):
        with pytest.raises(UsageError, match="not one that tanh:ulps=2 allows"):
            run(net, [x], outputs={(use.text, "", x): y})
        with pytest.raises(UsageError, match="not one that tanh:ulps=2 allows"):
            run_batch(net, [[0.5]], outputs={(use.text, "", x): y})
    assert run(net, [x]).output[0].decimal == "0.462158203125"


def test_single_valued_implementations_are_one_function():
    x = half(0.5)[0]
    single, free = implementation_named("tanh:ulps=2"), implementation_named("tanh:ulps=2:any-value")
    low, high = single.allowed(F16, x)
    net = one_activation(single, 2)
    assert run(net, [x, x], outputs={(single.text, "", x): low}).output == (low, low)
    assert run(net, [x, x], outputs={(single.text, "activation1[0]", x): low}).output[0] == run(net, [x, x]).output[0]
    net = one_activation(free, 2)
    chosen = {(free.text, "activation1[0]", x): low, (free.text, "activation1[1]", x): high}
    assert run(net, [x, x], outputs=chosen).output == (low, high)
    assert run_batch(net, [[0.5, 0.5]], outputs=chosen)["activation1"].tolist() == [[float(low), float(high)]]


def test_the_default_is_an_allowed_value():
    """A table that is not the correctly rounded function, and a clamp: the nearest allowed value, in both twins."""
    fmt = ieee(3, 3)
    ctx = context(fmt)
    codes = tuple((code * 7 + 3) % (1 << fmt.bits) for code in range(1 << fmt.bits))
    grid = values(fmt)[:, None]
    clamped = implementation_named("identity:range=-1..1/3")
    pieces = implementation_named("sigmoid:ulps=2:range=1/4..1/2")
    for use in (Implementation(sigmoid, Table(fmt, fmt, codes)), clamped, pieces):
        net = Network.sequential(ctx, 1, [use])
        got = to_floats(fmt, run_batch(net, grid)["activation1"])
        for x, y in zip(to_floats(fmt, grid), got, strict=True):
            assert use.contains(ctx, x, y)
            assert run(net, [x]).output == (y,)
            if isinstance(use.contract, Table):
                assert y == Float(fmt, codes[x.code])


def test_monotone_implementations():
    use = implementation_named("sigmoid:ulps=3:monotone")
    net = one_activation(use, 2)
    a, b = half(1)[0], half(1)[0].next_up
    low, high = use.allowed(F16, b)[0], use.allowed(F16, a)[1]
    assert low.fraction < high.fraction
    chosen = {(use.text, "", a): high, (use.text, "", b): low}
    for x in ([a, b], [b, a]):
        with pytest.raises(UsageError, match="promises to be monotone, but its outputs fall"):
            run(net, x, outputs=chosen)
    assert run(net, [a, a], outputs=chosen).output == (high, high)
    assert run(net, [a, b], outputs={(use.text, "", a): low, (use.text, "", b): high}).output == (low, high)
    with pytest.raises(Unsupported, match=r"use interpreter\.run"):
        run_batch(net, [[1, 1]], outputs=chosen)


def test_monotone_pieces():
    def check(name, *pairs):
        check_monotone(implementation_named(f"{name}:ulps=50:monotone"), [tuple(half(*p)) for p in pairs])

    check("gelu", (-3, 0), (-1, -0.5), (0, 0), (1, 1))  # falls, then rises
    for bad in ([(-3, -0.5), (-2, -0.25)], [(1, 1), (2, 0.5)], [(0.5, 2), (7, 3), (8, 2.5)]):
        with pytest.raises(UsageError, match="monotone"):
            check("gelu", *bad)
    with pytest.raises(UsageError, match=r"fall from 0\.5 at -1\.0 to 0\.25 at 1\.0"):
        check("relu", (-1, 0.5), (1, 0.25))
    with pytest.raises(UsageError, match=r"fall from 0\.5 at -2\.0 to 0\.25 at 1\.0"):
        check("relu", (-2, 0.5), (-1, 0.5), (1, 0.25))
    check("step", (-1, 0.5), (1, 0.25))  # a jump: no promise across it
    check("sigmoid", (0.0, 1), (-0.0, 0))
    with pytest.raises(Unsupported, match="periodic"):
        check("sin", (0, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: run(net, half(1)), "has 2 values, and 1 are given"),
        (lambda net: run(net, [1.0, 2.0]), "element 0: 1.0 is a float, not a value of float16"),
        (lambda net: run(net, [exactly(float32, 1)] * 2), "is of float32, not a value of float16"),
        (lambda net: run(net, {}), "no values are given for the input 'input'"),
        (lambda net: run(net, {"input": half(1, 1), "z": half(1)}), "'z' is not an input: the inputs are input"),
        (lambda net: run(net, half(1, 1), {"activation1": Execution()}), "not an affine node"),
        (lambda net: run(net, half(1, 1), {"affine9": Execution()}), "no node 'affine9'"),
        (lambda net: run(net, half(1, 1), schedules={("affine1", 1): (0, 1)}), "output 1 of 'affine1', which is not"),
        (lambda net: run(net, half(1, 1), schedules={("input", 0): 0}), "output 0 of 'input', which is not a sum"),
        (lambda net: run(net, half(1, 1), schedules={("affine1", 0): (0, (1, 2))}),
         r"output 0 of 'affine1' is not one that its execution \(any\) allows"),
        (lambda net: run(net, half(1, 1), schedules={("affine1", 0): (0, 1)}), "leaves out terms 2"),
        (lambda net: run_batch(net, [[1, 1]], schedules={("affine1", 0): (0, (1, 2))}), "allows"),
        (lambda net: run_batch(net, [[1, 0.1]]), "input 'input': .*not a value of float16"),
        (lambda net: run_batch(net, [1, 1]), "shape should be any × 2"),
        (lambda net: run_batch(net, {"a": [[1, 1]]}), "no values are given for the input 'input'"),
    ],
)  # fmt: skip
def test_error_messages(call, message):
    net = Network.sequential("float16", 2, [([[1, 1]], [0]), "relu"])
    with pytest.raises(UsageError, match=message):
        call(net)


def test_nan_in_a_format_without_nan_is_an_error():
    ctx = context("float4_e2m1fn:saturate")
    net = Network(
        (
            Input(name="x", context=ctx, size=1),
            Elementwise(name="y", context=ctx, operation="div", left="x", right="x"),
        ),
        ("y",),
    )
    for call in (lambda: run(net, [zero(ctx.format)]), lambda: run_batch(net, [[0.0]])):
        with pytest.raises(UsageError, match="NaN"):
            call()


# -- the twin ---------------------------------------------------------------------------------------------

FORMATS = [f for f in strategies.EMBEDDED if f.precision <= 27]


@st.composite
def networks(draw: st.DrawFn) -> tuple[Network, dict[str, Execution], dict[tuple[str, int], object]]:
    """Small networks in one to three contexts, their executions and schedules."""
    ctx = draw(strategies.contexts(FORMATS))
    nodes = [Input(name="x", context=ctx, size=draw(st.integers(1, 4)))]
    sizes = {"x": nodes[0].size}
    orders = [parse_order(t) for t in ("any", "contiguous", "lanes:2", "sequential", "pairwise")]
    executions: dict[str, Execution] = {}
    schedules: dict[tuple[str, int], object] = {}
    rng = Random(draw(st.integers(0, 10**6)))
    for k in range(draw(st.integers(1, 4))):
        before, name = nodes[-1], f"n{k}"
        here = before.context
        kind = draw(st.sampled_from(["affine", "affine", "activation", "elementwise", "cast", "select"]))
        if kind == "affine":
            here = draw(st.one_of(st.just(here), strategies.contexts(FORMATS)))
            rows, columns = draw(st.integers(1, 3)), sizes[before.name]
            weight_format, bias_format = draw(strategies.formats(FORMATS)), draw(strategies.formats(FORMATS))
            some = strategies.floats(weight_format)
            weights = [[draw(some) for _ in range(columns)] for _ in range(rows)]
            bias = [draw(strategies.floats(bias_format)) for _ in range(rows)] if draw(st.booleans()) else None
            mask = None
            if bias is not None and draw(st.booleans()):
                mask = [[draw(st.booleans()) for _ in range(columns)] for _ in range(rows)]
            node = Affine(name=name, context=here, source=before.name, weights=weights, bias=bias,
                          weight_format=weight_format, bias_format=bias_format, mask=mask)  # fmt: skip
            accumulators = [None, draw(strategies.contexts(FORMATS))]
            executions[name] = Execution(
                draw(st.sampled_from(orders)), draw(st.sampled_from(["never", "always", "any"])),
                draw(st.sampled_from(accumulators)), draw(st.sampled_from([*accumulators, "exact"])),
                draw(st.sampled_from(["last", "first", "any"])),
            )  # fmt: skip
            for i in range(rows):
                if draw(st.booleans()):
                    schedules[name, i] = executions[name].random_schedule(len(node.columns(i)), rng, bias is not None)
        elif kind == "activation":
            text = draw(st.sampled_from(["relu", "identity", "tanh", "sigmoid:ulps=1", "relu:range=0..6", "step"]))
            node = Activation(name=name, context=here, source=before.name, implementation=implementation_named(text))
        elif kind == "elementwise":
            operation = draw(st.sampled_from(["add", "sub", "mul", "div"]))
            other = draw(st.sampled_from([n.name for n in nodes if n.format == here.format
                                          and sizes[n.name] == sizes[before.name]]))  # fmt: skip
            node = Elementwise(name=name, context=here, operation=operation, left=before.name, right=other)
        elif kind == "cast":
            node = Cast(name=name, context=draw(strategies.contexts(FORMATS)), source=before.name)
        else:
            picks = draw(st.lists(st.integers(0, sizes[before.name] - 1), min_size=1, max_size=3))
            node = Select(name=name, context=here, nodes=(before.name,), picks=tuple((0, p) for p in picks))
        nodes.append(node)
        sizes[name] = node.size_from([sizes[s] for s in node.sources])
    return Network(tuple(nodes), (nodes[-1].name,)), executions, schedules


@given(st.data())
@settings(max_examples=120)
def test_batch_twin(data):
    """Every value of every node, bit for bit, special values included; or a usage error of both."""
    net, executions, schedules = data.draw(networks())
    rows = data.draw(strategies.rows([net.input.format] * net.input.size, 3))
    try:
        traces = [run(net, row, executions, schedules) for row in rows]
    except UsageError as error:
        assert "NaN" in str(error)
        with pytest.raises(UsageError):
            run_batch(net, [[float(x) for x in row] for row in rows], executions, schedules)
        return
    got = run_batch(net, [[float(x) for x in row] for row in rows], executions, schedules)
    for node in net.nodes:
        for k, trace in enumerate(traces):
            assert to_floats(node.format, got[node.name][k]) == list(trace.values[node.name]), node.name


def test_batch_twin_beyond_float64():
    quad = ieee(15, 113)
    third = nearest(quad, Fraction(1, 3))
    net = Network.sequential(quad, 2, [([[third, third], [third, -third]], [third, third]), "relu"])
    rows = [[third, exactly(quad, 1)], [infinity(quad), -infinity(quad)]]
    grid = np.array(rows, dtype=object)
    got = run_batch(net, grid)
    for k, row in enumerate(rows):
        trace = run(net, row)
        for node in net.nodes:
            assert tuple(got[node.name][k]) == trace.values[node.name]


def test_large_layers_run_in_pieces():
    """More sums than fit one piece: the pieces are put together in the right places."""
    rng = np.random.default_rng(3)
    weights = rng.integers(-8, 9, (40, 6)).astype(float)
    mask = rng.random((40, 6)) < 0.6
    layers = [Input(name="x", context=F16, size=6)]
    layers.append(Affine(name="y", context=F16, source="x", weights=weights, bias=np.zeros(40), mask=mask))
    net = Network(tuple(layers), ("y",))
    x = rng.integers(-4, 5, (5, 6)).astype(float)
    from fpsmt.networks import batch

    expected = x @ (weights * mask).T
    for limit in (1, 7, batch.BATCH_VALUES):
        saved, batch.BATCH_VALUES = batch.BATCH_VALUES, limit
        try:
            assert np.array_equal(run_batch(net, x)["y"], expected)
        finally:
            batch.BATCH_VALUES = saved


def test_functions_are_plain_implementations():
    assert Network.sequential("float16", 1, [relu]).nodes[1].implementation == Implementation(relu, CorrectlyRounded())
    assert to_carrier(run(one_activation("relu"), half(-0.0)).output).tolist() == [0.0]
