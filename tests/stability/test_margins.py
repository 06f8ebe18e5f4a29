"""Bounds on differences of outputs: against every execution of small networks, and random ones of larger."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import PredictionInvariant
from fpsmt.claims.predictions import predicted
from fpsmt.floats import context
from fpsmt.floats.vector import round_array, to_floats
from fpsmt.kernel.rules.predictions import settle
from fpsmt.networks import Activation, Network, enclosures, parse_execution, run
from fpsmt.networks.margins import margins

HOW = [
    "any", "any fma=any", "any products=exact", "any bias=any", "any fma=any accumulator=ieee(8,5)",
    "any accumulator=ieee(8,6) products=ieee(8,4) bias=first", "sequential", "left-to-right",
]  # fmt: skip


def small(seed: int, hidden: int, size: int) -> tuple[Network, np.ndarray]:
    rng, ctx = np.random.default_rng(seed), context("ieee(8,4)")
    shapes = [(hidden, size), (hidden,), (3, hidden), (3,)]
    arrays = [round_array(ctx, rng.normal(size=shape)) for shape in shapes]
    if rng.random() < 0.3:
        arrays[2][0] = arrays[2][1]
    layers = [(arrays[0], arrays[1]), "relu", (arrays[2], None if rng.random() < 0.2 else arrays[3])]
    return Network.sequential(ctx, size, layers), round_array(ctx, rng.uniform(0, 1, size=(1, size)))


def every(network: Network, x: np.ndarray, how: str, most: int, rng: Random):  # type: ignore[no-untyped-def]
    """Outputs of all executions, or of some when there are many; and whether they are all."""
    execution, values = parse_execution(how), to_floats(network.input.format, x[0])
    sums = [((name, i), list(execution.schedules(n, bias))) for name, i, n, bias in network.sums()]
    total = int(np.prod([len(trees) for _, trees in sums]))
    choices = product(*(trees for _, trees in sums))
    if total > most:
        choices = ([rng.choice(trees) for _, trees in sums] for _ in range(most))  # type: ignore[assignment]
    keys = [key for key, _ in sums]
    return [run(network, values, execution, dict(zip(keys, trees))).output for trees in choices], total <= most


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(HOW))
def test_margins_hold_in_every_execution(seed: int, how: str) -> None:
    network, x = small(seed, 3, 3)
    found = enclosures(network, x, executions=parse_execution(how))
    outputs, _ = every(network, x, how, 60, Random(seed))
    for i in range(3):
        apart = margins(network, found, parse_execution(how), np.array([i]))
        assert apart is not None and apart[0, i] == 0
        for y in outputs:
            for j in range(3):
                if np.isfinite(apart[0, j]):
                    assert y[i].fraction - y[j].fraction >= Fraction(apart[0, j])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(HOW))
def test_certified_classes_are_those_of_every_execution(seed: int, how: str) -> None:
    network, x = small(seed, 2, 3)
    outputs, _ = every(network, x, how, 120, Random(seed))
    claim = PredictionInvariant(network, (tuple(to_floats(network.input.format, x[0])),), parse_execution(how))
    settled = settle(claim)
    if settled.winners[0] >= 0:
        assert {predicted(y) for y in outputs} == {int(settled.winners[0])}


def test_what_rivals_share_cancels() -> None:
    """Two outputs with nearly one row of weights: the bounds of each overlap by far, their difference is certain."""
    rng, ctx = np.random.default_rng(1), context("bfloat16")
    first, row = round_array(ctx, rng.normal(size=(8, 40))), round_array(ctx, rng.uniform(1, 2, size=8))
    network = Network.sequential(ctx, 40, [(first, np.full(8, 8.0)), "relu", (np.stack([row, row]), [4.0, 0.0])])
    x = round_array(ctx, rng.uniform(0, 1, size=(1, 40)))
    found = enclosures(network, x)
    low, high = found["affine2"]
    assert low[0, 0] < high[0, 1]
    apart = margins(network, found, parse_execution("any"), np.array([0]))
    assert apart is not None and low[0, 0] - high[0, 1] < apart[0, 1] < 4


@pytest.mark.parametrize("bias", [None, [0.5, 0.0]])
def test_layers_of_one_value_and_of_zeros(bias: list[float] | None) -> None:
    """Fewer than two leaves that are not zero: no charges, the values themselves."""
    network = Network.sequential("bfloat16", 2, [([[3, 0], [1, 0]], bias)])
    for x, gap in (([[1.0, 1.0]], 2.0), ([[0.0, 1.0]], 0.0)):
        found = enclosures(network, x)
        apart = margins(network, found, parse_execution("any"), np.array([0]))
        expected = gap + (0.5 if bias else 0.0)
        assert apart is not None and expected - 0.02 <= apart[0, 1] <= expected


def test_ties_go_to_the_first() -> None:
    """Equal outputs in every execution: the first is the class, and a claim that it is the second is not made."""
    network = Network.sequential("bfloat16", 2, [([[2, 0], [2, 0]], None)])
    claim = PredictionInvariant(network, (tuple(to_floats(network.input.format, np.array([1.0, 1.0]))),),
                                parse_execution("any"))  # fmt: skip
    assert settle(claim).winners.tolist() == [0]


def test_not_for_other_outputs() -> None:
    network = Network.sequential("bfloat16", 2, [([[1, 1], [1, 2]], None), "relu"])
    assert isinstance(network.output, Activation)
    assert margins(network, enclosures(network, [[1.0, 1.0]]), parse_execution("any"), np.array([0])) is None
    directed = Network.sequential("bfloat16:RTZ", 2, [([[1, 1], [1, 2]], None)])
    assert margins(directed, enclosures(directed, [[1.0, 1.0]]), parse_execution("any"), np.array([0])) is None
