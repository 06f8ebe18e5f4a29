"""Networks with values and gradients: against the interpreter in both passes, for many tables and orders."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from fpsmt.claims import AllGradientTables, GradientTable, RepresentsGradients
from fpsmt.claims.gradient_representation import run_both
from fpsmt.constructions.gradient_passes import both_passes
from fpsmt.constructions.gradient_tables import domain, factors, gradient_network, places, split, targets
from fpsmt.constructions.gradient_traces import traces
from fpsmt.constructions.gradient_wide import WideCells
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.engines import decide
from fpsmt.engines.gradient_representation import represent_gradients
from fpsmt.errors import Unsupported
from fpsmt.floats import (
    Format,
    bfloat16,
    context,
    equal,
    float8_e3m4,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    ieee,
)
from fpsmt.floats.vector import Carriers, arithmetic, from_ordinals, ordinals, to_carrier, to_floats, values
from fpsmt.functions import implementation_named
from fpsmt.networks import ANY, Affine, Execution, Network, gradient, run
from fpsmt.networks.orders import LEFT_TO_RIGHT

EIGHT_BITS = [float8_e5m2, float8_e4m3]
LEFT = Execution(LEFT_TO_RIGHT)


def random_table(fmt: Format, points: Carriers, seed: int) -> GradientTable:
    rng = np.random.default_rng(seed)
    numbers = some_numbers(fmt, rng)
    f, h, g = (rng.choice(numbers, len(points)) for _ in range(3))
    zeros = rng.random((2, len(points))) < 0.1
    return GradientTable(fmt, points, np.where(zeros[0], 0, f), h, np.where(zeros[1] | (h == 0), 0, g))


def some_numbers(fmt: Format, rng: np.random.Generator) -> Carriers:
    """All floats of a format of at most 16 bits, else many."""
    if fmt.bits <= 16:
        return values(fmt, finite=True)
    return from_ordinals(fmt, rng.integers(-fmt.largest_code, fmt.largest_code + 1, 20000))


def network_of(table: GradientTable, layers: int, any_order: bool) -> SparseNetwork:
    columns = (table.points, table.values, table.upstream, table.gradients)
    return gradient_network(context(table.format), *columns, layers, any_order)


@pytest.mark.parametrize("fmt", EIGHT_BITS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_whole_domains(fmt: Format, seed: int) -> None:
    table = random_table(fmt, domain(fmt), seed)
    for sums, layers in (("left-to-right", 6), ("any", 7), ("any", 11)):
        claim = RepresentsGradients(network_of(table, layers, sums == "any"), table, sums)
        assert decide(claim).name == "proved"


@pytest.mark.parametrize("fmt", [*EIGHT_BITS, float16, bfloat16, float32], ids=str)
def test_the_interpreter_agrees(fmt: Format) -> None:
    """At the table's points, their neighbours and 0, in both passes from left to right; elsewhere 0 and 0."""
    most = (fmt.emax - 2 + fmt.bias) << fmt.fraction_bits
    rng = Random(str(fmt))
    some = sorted({rng.randrange(-most, most + 1) for _ in range(3)} | {-most, most, 0, -1, 1})
    points = from_ordinals(fmt, some)
    table = random_table(fmt, points, 7)
    sparse = network_of(table, 6, False)
    net = sparse.materialised()
    found = traces(sparse, points, table.upstream, False)
    assert (found.output == table.values).all() and (found.gradient == table.gradients).all()
    for i, x in enumerate(to_floats(fmt, points)):
        h = to_floats(fmt, table.upstream[i : i + 1])[0]
        trace = run(net, [x], LEFT)
        back = gradient(trace, [h], LEFT).gradient[0]
        assert float(trace.output[0]) == table.values[i] and float(back) == table.gradients[i]
        assert run_both(sparse, x, h) == (trace.output[0], back)
    near = from_ordinals(fmt, sorted({n + d for n in some for d in (-1, 1) if abs(n + d) < most} - set(some)))
    ones = np.ones(len(near))
    away = traces(sparse, near, ones, False)
    assert not away.reason and not away.output.any() and not away.gradient.any()


def test_random_orders_of_both_passes() -> None:
    fmt, rng = float8_e4m3, Random(3)
    table = random_table(fmt, domain(fmt)[::24], 5)
    net = network_of(table, 7, True).materialised()
    ctx_any = Execution(ANY)
    for _ in range(2):
        forward, backward = random_schedules(net, rng)
        for i, x in enumerate(to_floats(fmt, table.points)):
            trace = run(net, [x], ctx_any, forward)
            h = to_floats(fmt, table.upstream[i : i + 1])
            assert float(trace.output[0]) == table.values[i]
            assert float(gradient(trace, h, ctx_any, backward).gradient[0]) == table.gradients[i]


def random_schedules(net: Network, rng: Random):  # type: ignore[no-untyped-def]
    forward, backward = {}, {}
    for node in net.nodes:
        if not isinstance(node, Affine):
            continue
        for i in range(len(node.weights)):
            n = int(node.mask[i].sum()) if node.mask is not None else node.weights.shape[1]
            if n > 1:
                tree = ANY.random_tree(n, rng)
                forward[node.name, i] = (tree, n) if node.bias is not None else tree
        for j in range(node.weights.shape[1]):
            n = len(node.rows(j))
            if n > 1:
                backward[node.name, j] = ANY.random_tree(n, rng)
    return forward, backward


def random_network(fmt: Format, rng: np.random.Generator, most: float = 9.0) -> SparseNetwork:
    """Small, with many terms: what the traces claim to know of it has to be true."""
    numbers = values(fmt, finite=True)
    numbers = numbers[(np.abs(numbers) > 0.05) & (np.abs(numbers) < most)]
    sizes = [*rng.integers(2, 6, rng.integers(2, 5)).tolist(), 1]
    layers, below = [], 1
    for place, size in enumerate(sizes):
        rows = [np.flatnonzero(rng.random(below) < 0.7) for _ in range(size)] if place else [np.zeros(1, int)] * size
        starts = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
        weights = rng.choice(numbers, starts[-1])
        bias = rng.choice(numbers, size) * (rng.random(size) < 0.7)
        layers.append(Layer(starts, np.concatenate(rows), weights, -np.abs(bias) if place else bias))
        below = size
    return SparseNetwork(context(fmt), 1, implementation_named("relu"), tuple(layers))


def test_traces_of_random_networks() -> None:
    fmt = float8_e4m3
    xs = np.unique(values(fmt, finite=True))[20:-20:23]
    known = alive = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        network = random_network(fmt, rng)
        ys = rng.choice(xs, len(xs))
        for any_order in (False, True):
            try:
                found = traces(network, xs, ys, any_order)
            except Unsupported:
                continue
            if found.reason:
                continue
            net = network.materialised()
            schedules = random_schedules(net, Random(seed)) if any_order else (None, None)
            how = Execution(ANY) if any_order else LEFT
            for i, (x, y) in enumerate(zip(to_floats(fmt, xs), to_floats(fmt, ys), strict=True)):
                trace = run(net, [x], how, schedules[0])
                back = gradient(trace, [y], how, schedules[1]).gradient[0]
                assert float(trace.output[0]) == found.output[i] and float(back) == found.gradient[i], seed
                known += 1
                alive += found.gradient[i] != 0
                if not any_order:
                    output, slope = run_both(network, x, y)
                    assert equal(output, trace.output[0]) and equal(slope, back)
    assert known > 60 and alive > 5


def test_a_neuron_that_nothing_reads_may_bring_nan() -> None:
    """Overflow to NaN in the first layer: 0 ⊗ ReLU′(NaN) = NaN, although nothing reads the neuron."""
    first = Layer(np.array([0, 1, 2]), np.zeros(2, int), np.array([1.0, 4.0]), np.zeros(2))
    one = Layer(np.array([0, 1]), np.zeros(1, int), np.ones(1), np.zeros(1))
    net = SparseNetwork(context("ieee(3,3):nan"), 1, implementation_named("relu"), (first, one, one))
    fmt, xs, ys = net.format, np.array([8.0, 0.5]), np.array([1.0, 1.0])
    points = list(zip(to_floats(fmt, xs), to_floats(fmt, ys), strict=True))
    known = [float(run_both(net, x, y)[1]) for x, y in points]
    assert np.isnan(known[0]) and known[1] == 1.0
    dense = net.materialised()
    for (x, y), wanted in zip(points, known, strict=True):
        assert np.array_equal(float(gradient(run(dense, [x]), [y]).gradient[0]), wanted, equal_nan=True)
    assert np.array_equal(both_passes(net, xs, ys)[1], known, equal_nan=True)
    with pytest.raises(Unsupported, match="nothing reads"):
        traces(net, xs, ys, False)
    assert traces(net, xs[1:], ys[1:], True).gradient.tolist() == [1.0]


@pytest.mark.parametrize(("text", "weight"), [("ieee(3,3):RTP", -14.0), ("ieee(3,3):RTN", 14.0)])
def test_directed_rounding_may_overflow_one_sign_alone(text: str, weight: float) -> None:
    """−12 ⊗ ∓14 is infinite and −12 ⊗ ±14 is not; the neuron is flat, and ∞ ⊗ 0 = NaN comes back."""
    one = Layer(np.array([0, 1]), np.zeros(1, int), np.ones(1), np.zeros(1))
    flat, last = replace(one, bias=-2 * np.ones(1)), replace(one, weights=np.array([weight]))
    net = SparseNetwork(context(text), 1, implementation_named("relu"), (one, flat, last))
    x, y = (to_floats(net.format, [v])[0] for v in (1.0, -12.0))
    assert np.isnan(float(run_both(net, x, y)[1]))
    for any_order in (False, True):
        assert "not finite" in traces(net, np.ones(1), np.array([-12.0]), any_order).reason


@pytest.mark.parametrize("fmt", EIGHT_BITS, ids=str)
def test_every_neuron_says_the_same(fmt: Format) -> None:
    """Two programs for whole domains: with and without shortcuts."""
    table = random_table(fmt, domain(fmt), 8)
    network = network_of(table, 7, True)
    output, slopes = both_passes(network, table.points, table.upstream)
    assert (output == table.values).all() and (slopes == table.gradients).all()


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "gelu", "swish", "elu", "relu"])
@pytest.mark.parametrize("fmt", [float8_e4m3, float16, float32], ids=str)
def test_other_activations(fmt: Format, activation: str) -> None:
    """What reverse mode returns for a network of any activation is proved, and anything else is refuted."""
    network = replace(random_network(float8_e4m3, np.random.default_rng(4), 1.2), context=context(fmt))
    network = replace(network, implementation=implementation_named(activation))
    x, y = np.array([-2.0, -0.5, 0.0, 0.75, 3.0]), np.array([1.0, -1.0, 2.0, 0.5, 0.0])
    pairs = [run_both(network, *ab) for ab in zip(to_floats(fmt, x), to_floats(fmt, y), strict=True)]
    f, g = (to_carrier(column) for column in zip(*pairs, strict=True))
    claim = RepresentsGradients(network, GradientTable(fmt, x, f, y, g), "left-to-right")
    assert decide(claim).name == "proved"
    net = network.materialised()
    for i, (a, b) in enumerate(zip(to_floats(fmt, x), to_floats(fmt, y), strict=True)):
        trace = run(net, [a], LEFT)
        assert float(trace.output[0]) == f[i] and float(gradient(trace, [b], LEFT).gradient[0]) == g[i]
    moved = from_ordinals(fmt, ordinals(fmt, f) + (np.arange(5) == 3))
    assert decide(replace(claim, table=replace(claim.table, values=moved))).name == "refuted"


@pytest.mark.parametrize("fmt", [*EIGHT_BITS, float16, bfloat16, float32, float64], ids=str)
def test_numbers(fmt: Format) -> None:
    ctx, rng = context(fmt), np.random.default_rng(1)
    numbers = some_numbers(fmt, rng)
    numbers = numbers[numbers != 0]
    beta, c = split(ctx, numbers)
    vector = arithmetic(ctx)
    assert (vector.add(beta, c) == numbers).all() and (beta <= 2 * float(fmt.smallest)).all()
    for gap in (float(fmt.smallest), 1.0, 2.0 ** (fmt.emax - 3 - fmt.fraction_bits)):
        target, w3 = targets(fmt, np.full(len(numbers), gap), numbers)
        assert (vector.mul(target, w3) == np.abs(numbers)).all() and np.isfinite(vector.mul(w3, gap)).all()
        w5, w4 = factors(ctx, numbers, np.full(len(numbers), max(gap, 1.0)))
        assert (vector.mul(vector.mul(np.abs(numbers), w5), w4) == max(gap, 1.0)).all()


@pytest.mark.parametrize("fmt", [*EIGHT_BITS, float16, bfloat16, ieee(6, 6)], ids=str)
def test_formats_without_a_list(fmt: Format) -> None:
    """What is said of wide formats by hand holds where it can be listed."""
    wide = WideCells(context(fmt), False)
    here = places(context(fmt), domain(fmt))
    assert (np.unique(here.gap) == wide.gaps).all() and len(here.gap) == wide.points
    assert not any(fails for _, fails in wide.checks())
    assert any(fails for _, fails in WideCells(context("ieee(4,6)"), False).checks())


@pytest.mark.parametrize("fmt", EIGHT_BITS, ids=str)
def test_gaps_are_to_the_neighbour_below(fmt: Format) -> None:
    here = places(context(fmt), domain(fmt))
    assert (np.frexp(here.gap)[0] == 0.5).all() and (here.z - here.below == here.gap).all()


def test_every_table() -> None:
    for sums, layers in (("left-to-right", 6), ("any", 7)):
        verdict = decide(AllGradientTables(context("float8_e5m2"), layers, sums))
        assert verdict.name == "proved"
        assert decide(AllGradientTables(context("float8_e5m2"), layers - 1, sums)).name == "unknown"
    assert decide(AllGradientTables(context("float8_e4m3fn:nan"), 6, "left-to-right")).name == "proved"
    assert "indicator" in decide(AllGradientTables(context(float8_e3m4), 6, "left-to-right")).reason
    assert decide(AllGradientTables(context("float8_e5m2:rtz"), 6, "left-to-right")).name == "unknown"


def test_six_layers_do_for_every_order_away_from_zero() -> None:
    points = domain(float16)[-400:]
    table = random_table(float16, points, 1)
    found = represent_gradients(context("float16"), table)
    assert found.network is not None and found.verdict is not None
    assert len(found.network.layers) == 6 and found.verdict.name == "proved"
