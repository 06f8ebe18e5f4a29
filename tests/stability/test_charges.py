"""Charges bound every tree: against exact extremes of short sums, and annealed trees of long ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.engines.annealing import ANY, EXACT, NEVER, Leaves, Nodes, anneal
from fpsmt.floats import bfloat16, context, float32
from fpsmt.floats.vector import arithmetic, round_array
from fpsmt.networks import Network, bounds, enclosures, parse_execution
from fpsmt.networks.charges import DEEP, accepts, charge, charged_sums, residual
from fpsmt.networks.sums import SumFormats, evaluate_tree_batch

HOW = ["any", "any fma=any", "any fma=always", "any products=exact", "any bias=any", "any fma=any bias=first"]


def ends(network: Network, x: np.ndarray, how: str, monkeypatch: pytest.MonkeyPatch, charged: bool):  # type: ignore[no-untyped-def]
    """Exact extremes by the table over subsets, or what charges alone say."""
    with monkeypatch.context() as patch:
        if charged:
            patch.setattr(bounds, "MOST_LEAVES", 0)
            nothing = lambda self: tuple(np.full(self.low.shape[:2], end) for end in (-np.inf, np.inf))  # noqa: E731
            patch.setattr(bounds._Sums, "_a_priori", nothing)
        return enclosures(network, x, executions=parse_execution(how))["affine1"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(HOW), st.integers(2, 7), st.integers(2, 6), st.sampled_from([4, 8]))
def test_charges_contain_the_exact_extremes(seed: int, how: str, n: int, precision: int, exponent: int) -> None:
    """60 sums of few-bit floats each: random, of one sign, with repeated binades, near underflow."""
    rng, ctx = np.random.default_rng(seed), context(f"ieee({exponent},{precision})")
    rows, kind = 60, rng.integers(4)
    weights = rng.normal(size=(rows, n)) * 2.0 ** rng.integers(-3, 4, size=(rows, n))
    if kind == 1:
        weights = np.abs(weights)
    if kind == 2:
        steps = 2 ** (precision - 1)
        weights = np.sign(weights) * 2.0 ** rng.integers(-4, 2, size=weights.shape)
        weights *= 1 + rng.integers(0, steps, size=weights.shape) / steps
    if exponent == 4:
        weights *= 2.0 ** float(rng.choice([-8, -5, 0]))
    weights[rng.random(size=weights.shape) < 0.15] = 0.0
    weights = round_array(ctx, weights)
    weights = np.where(np.isfinite(weights), weights, 1.0)
    x = round_array(ctx, rng.choice([1.0, 0.75, 0.5, 1.25], size=(1, n)))
    bias = None if rng.random() < 0.5 else round_array(ctx, rng.normal(size=rows))
    network = Network.sequential(ctx, n, [(weights, bias)])
    with pytest.MonkeyPatch.context() as patch:
        low, high = ends(network, x, how, patch, charged=False)
        least, most = ends(network, x, how, patch, charged=True)
    known = np.isfinite(least) & np.isfinite(most)
    assert (least[known] <= low[known]).all() and (high[known] <= most[known]).all()


def test_charges_are_met_by_some_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are not merely wide: on some sums of three values they are the extremes themselves."""
    rng, ctx = np.random.default_rng(0), context("ieee(8,3)")
    network = Network.sequential(ctx, 3, [(round_array(ctx, rng.normal(size=(500, 3))), None)])
    x = np.ones((1, 3))
    low, high = ends(network, x, "any", monkeypatch, charged=False)
    least, most = ends(network, x, "any", monkeypatch, charged=True)
    assert ((least == low) & (most == high)).sum() >= 10


@pytest.mark.parametrize(("how", "rule"), [("any", NEVER), ("any fma=any", ANY), ("any products=exact", EXACT)])
def test_long_sums_made_extreme_stay_inside(how: str, rule: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annealed trees of 40 terms reach most of the width and never leave it; zeros change nothing."""
    rng, ctx, n = np.random.default_rng(4), context("bfloat16"), 40
    execution, formats = parse_execution(how), SumFormats(bfloat16, bfloat16, bfloat16)
    weights, x = round_array(ctx, rng.normal(size=(6, n))), round_array(ctx, rng.uniform(0, 1, size=n))
    x[rng.random(n) < 0.3] = 0.0
    low, high = ends(Network.sequential(ctx, n, [(weights, None)]), x[None, :], how, monkeypatch, charged=True)
    products = arithmetic(ctx).mul(weights, x)
    for i in range(6):
        leaves = Leaves(products[i], n, weights[i], x)
        reached = []
        for sign in (1.0, -1.0):
            tree, value = anneal(leaves, Nodes(ctx, formats, rule), sign, 5000, 1)
            assert execution.allows(tree, n)
            assert evaluate_tree_batch(ctx, tree, x[:, None], weights[i][:, None], None, execution, formats)[0] == value
            reached.append(value)
        assert low[0, i] <= reached[1] < reached[0] <= high[0, i]
        assert reached[0] - reached[1] > 0.2 * (high[0, i] - low[0, i])


def test_charges_are_much_tighter_than_the_general_bound() -> None:
    rng, ctx = np.random.default_rng(5), context("bfloat16")
    weights = round_array(ctx, rng.normal(size=(20, 60)))
    network, x = Network.sequential(ctx, 60, [(weights, None)]), np.ones((1, 60))
    wide = np.subtract(*enclosures(network, x, charged=False)["affine1"][::-1])
    tight = np.subtract(*enclosures(network, x)["affine1"][::-1])
    assert (tight < wide / 2).all()


@settings(deadline=None)
@given(st.integers(-300, 300), st.integers(-3, 3))
def test_residuals(numerator: int, place: int) -> None:
    """μ(x, g): the larger of the errors of a multiple of g plus x, and of an odd multiple of g/2 plus x, up to ties."""
    x, g = numerator / 32, 2.0**place
    rounded = [np.rint((base + x) / g) * g - (base + x) for base in (0.0, g / 2)]
    errors = [g / 2 if abs(e) == g / 2 else e for e in rounded]
    assert residual(x, g) == max(errors)


def test_charges_grow_with_the_level() -> None:
    """Conditions (1) and (3) of the module, on the compiled function."""
    shares, work = np.full(DEEP, 0.5), np.empty(DEEP)
    for x in (0.3, -0.7, 1.0, 0.011):
        binade = int(np.floor(np.log2(abs(x))))
        steps = [charge(x, e, binade, 0.5, 8, -126, shares, work) for e in range(binade, binade + 9)]
        for at, (c, after) in enumerate(pairwise(steps)):
            g = 2.0 ** (binade + at - 7)
            assert after >= c + g / 4
            assert c >= residual(x, g) or at <= 1
        assert steps[:2] == [2.0 ** (binade - 8), 2.0 ** (binade - 7)]


@pytest.mark.parametrize("text", ["float32:RTZ", "float32:flush", "float64"])
def test_declined(text: str) -> None:
    assert not accepts(context(text), (float32, float32))


def test_empty_single_and_overflowing_sums() -> None:
    ctx = context("float16")
    leaves = np.array([[[0.0], [0.0]], [[3.0], [0.0]], [[60000.0], [60000.0]]])
    found = charged_sums(ctx, leaves, leaves, False)
    assert found.low.tolist() == [0.0, 3.0, -np.inf] and found.high.tolist() == [0.0, 3.0, np.inf]
    assert found.kept.tolist() == [[False, False], [True, False], [True, True]]
