"""Small random networks in small formats: the rule against every order of every sum by the reference arithmetic."""

from __future__ import annotations

import itertools
from functools import lru_cache
from random import Random

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import Represents, Values
from fpsmt.constructions.sparse import Layer, Rows, SparseNetwork
from fpsmt.floats import Context, Float, add, all_values, context, mul, zero
from fpsmt.floats.vector import to_carrier
from fpsmt.functions import Implementation, Table, function_named, implementation_named
from fpsmt.kernel import Proved, Refuted, Unknown

RULE = "representation by indicators"
CONTEXTS = [
    "ieee(2,2)", "ieee(2,3)", "ieee(2,3):saturate", "ieee(3,2):RTP", "ieee(3,2):nan", "ieee(2,3):RTZ",
    "float8_e4m3", "float8_e4m3:RTN", "float8_e4m3:nan", "float8_e4m3fn:saturate", "float8_e4m3fn:nan",
    "float8_e4m3fnuz:nan", "float8_e4m3fnuz:saturate:RTP", "float8_e5m2:nan", "float4_e2m1fn",
]  # fmt: skip
MOST_JOINT = 20_000

plus, times = lru_cache(maxsize=None)(add), lru_cache(maxsize=None)(mul)


def sums(ctx: Context, layer: Layer, i: int, below: tuple[Float, ...], weights: dict[float, Float]) -> set[Float]:
    """Every result of sum i over all trees of its products, with the bias last."""
    terms, bias = layer.terms(i), weights[float(layer.bias[i])]
    if not terms:
        return {bias}
    parts: dict[int, set[Float]] = {1 << t: {times(ctx, weights[w], below[j])} for t, (j, w) in enumerate(terms)}
    for whole in range(1, 1 << len(terms)):
        if whole not in parts:
            splits = [p for p in range(1, whole) if p & whole == p]
            parts[whole] = {plus(ctx, a, b) for p in splits for a in parts[p] for b in parts[whole ^ p]}
    last = zero(ctx.format) if bias.is_zero else bias
    return {plus(ctx, y, last) for y in parts[(1 << len(terms)) - 1]}


def outputs(network: SparseNetwork, point: list[Float], weights: dict[float, Float]) -> list[set[Float]] | None:
    """The results of each output over all orders and both signs of zero inputs; None when there are too many."""
    ctx, fmt = network.context, network.format
    signs = [[zero(fmt), zero(fmt, True)] if x.is_zero and fmt.has_signed_zero else [x] for x in point]
    joint = set(itertools.product(*signs))
    for layer in network.layers[:-1]:
        after: set[tuple[Float, ...]] = set()
        for below in joint:
            each = [
                {network.implementation.default(ctx, y) for y in sums(ctx, layer, i, below, weights)}
                for i in range(layer.size)
            ]
            after.update(itertools.product(*each))
            if len(after) > MOST_JOINT:
                return None
        joint = after
    last = network.layers[-1]
    return [set().union(*(sums(ctx, last, i, below, weights) for below in joint)) for i in range(last.size)]


def random_table(ctx: Context, rng: Random) -> Implementation:
    """Few different results, sometimes NaN or infinite; often constant on long pieces."""
    fmt = ctx.format
    line = list(all_values(fmt))
    some = rng.choices([y for y in line if not y.is_nan] if rng.random() < 0.6 else line, k=rng.randint(1, 5))
    if rng.random() < 0.7:
        some.append(zero(fmt))
    codes, left, y = [0] * (1 << fmt.bits), 0, some[0]
    for x in line:
        if left == 0:
            left, y = rng.randint(1, rng.choice((2, len(line)))), rng.choice(some)
        codes[x.code], left = y.code, left - 1
    return Implementation(function_named("identity"), Table(fmt, fmt, tuple(codes)))


def random_network(ctx: Context, rng: Random) -> tuple[SparseNetwork, dict[float, Float]]:
    finite = list(all_values(ctx.format, finite=True))
    near = [x for x in finite if abs(x.fraction) <= 4]
    pool = rng.sample(finite, 2) + rng.sample(near, 2)
    weights = {float(x): x for x in finite if not (x.is_zero and x.negative)}
    inputs = rng.choice((1, 1, 1, 2))
    size, layers = inputs, []
    depth = rng.randint(1, 2)
    for level in range(depth + 1):
        rows, last = Rows(), level == depth
        for _ in range(rng.randint(1, 2 if last else 4)):
            columns = rng.sample(range(size), min(size, rng.randint(0 if level else 1, 4)))
            chosen = [(j, float(rng.choice(pool))) for j in sorted(columns)]
            terms = [(j, w) for j, w in chosen if w != 0.0 or not last]
            rows.add(terms, rng.choice((0.0, -0.0, float(rng.choice(pool)))), True)
        layers.append(rows.layer())
        size = layers[-1].size
    named = implementation_named(
        rng.choice(("relu", "identity", "tanh", "sin", "step", *("sqrt", "exp") * ctx.format.has_nan))
    )
    use = random_table(ctx, rng) if rng.random() < 0.6 else named
    return SparseNetwork(ctx, inputs, use, tuple(layers)), weights


def same(a: Float, b: Float) -> bool:
    return a == b or (a.is_zero and b.is_zero)


def differs_somewhere(found: list[list[set[Float]]], wanted: list[list[Float]]) -> bool:
    return any(not same(y, z) for here, row in zip(found, wanted) for ys, z in zip(here, row) for y in ys)


def compared(text: str, rng: Random) -> str:
    """The name of the verdict on one random claim, which is the right one."""
    ctx = context(text)
    network, weights = random_network(ctx, rng)
    line = [x for x in all_values(ctx.format, finite=True) if not (x.is_zero and x.negative)]
    points = [list(p) for p in itertools.product(line, repeat=network.inputs)]
    if network.inputs == 2 or rng.random() < 0.5:
        points = rng.sample(points, min(len(points), rng.choice((1, 5, 40))))
    found = [outputs(network, point, weights) for point in points]
    if any(each is None for each in found):
        return "skipped"
    answers: list[list[set[Float]]] = [each for each in found if each is not None]
    numbers = [[sorted((y for y in ys if not y.is_nan), key=float) for ys in here] for here in answers]
    wanted = [[rng.choice(ys) if ys else line[0] for ys in here] for here in numbers]
    if rng.random() < 0.4:
        wanted[rng.randrange(len(points))][rng.randrange(network.outputs)] = rng.choice(line)
    if rng.random() < 0.5:  # without the points at which there are several results
        kept = [k for k, here in enumerate(answers) if all(same(y, z) for ys, z in zip(here, wanted[k]) for y in ys)]
        if kept:
            points, answers, wanted = ([part[k] for k in kept] for part in (points, answers, wanted))
    carriers = [np.array([to_carrier(row) for row in part]) for part in (points, wanted)]
    verdict = kernel.apply(RULE, Represents(network, Values(ctx.format, *carriers)))
    right = not differs_somewhere(answers, wanted)
    assert isinstance(verdict, (Unknown, Proved if right else Refuted)), (text, verdict)
    return ("right" if right else "wrong") + " " + verdict.name


@pytest.mark.parametrize("text", CONTEXTS)
def test_small_networks(text: str) -> None:
    rng = Random(text)
    names = [compared(text, rng) for _ in range(12)]
    assert len(names) == 12


def fixed(ctx: str, activation: str, *layers: list[tuple[list[tuple[int, float]], float]]) -> SparseNetwork:
    made = []
    for layer in layers:
        rows = Rows()
        for terms, bias in layer:
            rows.add(terms, bias, True)
        made.append(rows.layer())
    inputs = 1 + max(j for terms, _ in layers[0] for j, _ in terms)
    return SparseNetwork(context(ctx), inputs, implementation_named(activation), tuple(made))


def verdict(network: SparseNetwork, points: object, values: object) -> object:
    table = Values(network.format, np.array(points, float), np.array(values, float))
    return kernel.apply(RULE, Represents(network, table))


def test_an_order_that_overflows_to_nan_counts() -> None:
    """(448 ⊕ 448) ⊖ 448 is NaN, 448 ⊕ (448 ⊖ 448) is not."""
    copies = [([(0, 1.0)], 0.0)] * 3
    network = fixed("float8_e4m3fn:nan", "identity", copies, [([(0, 1.0), (1, 1.0), (2, -1.0)], 0.0)])
    assert not isinstance(verdict(network, [[448.0]], [[448.0]]), Proved)


def test_a_product_that_overflows_to_nan_counts() -> None:
    network = fixed("float8_e4m3fn:nan", "relu", [([(0, 4.0)], 0.0)], [([(0, 1.0)], 0.0)])
    line = np.array([float(x) for x in all_values(network.format, finite=True)]) + 0.0
    points = np.unique(line[(line <= 0) | (line > 448 / 4)])
    assert isinstance(verdict(network, points[:, None], np.zeros((len(points), 1))), Refuted)


def test_tables_over_different_grids_do_not_mix() -> None:
    network = fixed(
        "float8_e4m3", "relu", [([(0, 1.0)], 0.0), ([(1, 1.0)], 0.0)], [([(0, 1.0)], 0.0)], [([(0, 1.0)], 0.0)]
    )
    for size in (2, 14, 5):
        points = np.array(list(itertools.product([0.0, 1.0], range(size))), float)
        assert isinstance(verdict(network, points, points[:, :1]), Proved)
        changed = points[:, :1].copy()
        changed[-1] = 0.0
        assert isinstance(verdict(network, points, changed), Refuted)


def test_a_neuron_without_bounds_that_nothing_reads() -> None:
    network = fixed(
        "float8_e4m3", "identity", [([(0, 240.0)], 0.0), ([(0, 1.0)], 0.0)],
        [([(0, 1.0)], 0.0), ([(0, -1.0)], 0.0), ([(1, 1.0)], 0.0)],
        [([(0, 1.0), (1, 1.0)], 0.0), ([(2, 1.0)], 0.0)], [([(1, 1.0)], 0.0)],
    )  # fmt: skip
    assert isinstance(verdict(network, [[16.0]], [[16.0]]), Proved)


def test_infinities_beside_nan_for_overflow_are_left_open() -> None:
    network = fixed("float8_e5m2:nan", "relu", [([(0, 1.0)], 0.0)], [([(0, 1.0)], 0.0)])
    assert isinstance(verdict(network, [[1.0]], [[1.0]]), Unknown)
