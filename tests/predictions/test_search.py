"""The engines: what is stable is certified, what breaks is broken by a replayed pair of executions."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import PredictionInvariant
from fpsmt.claims.predictions import predicted
from fpsmt.engines import Options, decide
from fpsmt.engines.predictions import schedules_search
from fpsmt.engines.rows import Rows
from fpsmt.floats import context, exactly, float8_e5m2, from_ordinal, ieee
from fpsmt.floats.vector import round_array
from fpsmt.networks import Affine, Network, execution, parse_execution, run
from tests.predictions.test_claims import CANCELLING, claim, vector

ONES = vector(1, 1, 1, 1)


@pytest.mark.parametrize("how", [
    "any", "any fma=any", "any fma=always bias=any", "any products=exact", "sequential", "contiguous", "depth:2",
    "any bias=first", "left-to-right|right-to-left",
])  # fmt: skip
def test_the_known_break_is_found(how: str) -> None:
    """Terms 2^24, 1, 1, −2^24 sum to 2 exactly; in float32 to 0, 1 or 2 by the order, and a bias of −1.5 decides.

    In real arithmetic the first output is 1/2 and the second 1/4.
    """
    verdict = decide(claim(CANCELLING, ONES, parse_execution(how)))
    assert verdict.name == "refuted", verdict
    assert set(verdict.replay.values["predictions"]) == {0, 1}


@pytest.mark.parametrize("how", ["left-to-right", "pairwise|lanes:2", "any accumulator=float64", "lanes:2 fma=any"])
def test_what_does_not_break_is_proved(how: str) -> None:
    verdict = decide(claim(CANCELLING, ONES, parse_execution(how)))
    assert verdict.name == "proved" and verdict.how == "bounds on every execution"


def test_contraction_alone_breaks_a_sum_of_two_terms() -> None:
    """A public report: two addends commute, and yet the class changes with fma."""
    x = vector(1, 1 + 2**-13)
    layers = [([[0, 0], [-(1 + 2**-12), 1 + 2**-13]], None)]
    assert decide(claim(layers, x)).name == "proved"
    verdict = decide(claim(layers, x, execution(fma="any")))
    assert verdict.name == "refuted" and "fma" in str(verdict.counterexample)


def test_only_one_of_several_inputs_breaks() -> None:
    net = Network.sequential("float32", 4, CANCELLING)
    inputs = (vector(0, 1, 1, 0), vector(1, 0, 0, 1), ONES)
    verdict = decide(PredictionInvariant(net, inputs, execution()))
    assert verdict.name == "refuted" and verdict.counterexample["input"] == 2


def test_a_long_sum_is_broken_by_choosing_what_to_add_next() -> None:
    """200 terms: the listed orders agree, the search finds one that does not."""
    rng = np.random.default_rng(3)
    terms = rng.normal(size=200).astype(np.float32).astype(float)
    x = vector(*([1] * 200))
    plain = run(Network.sequential("float32", 200, [(terms[None, :], None)]), x).output[0]
    for edge, how in ((plain.next_up, execution()), (plain.next_down, execution("sequential"))):
        layers = [(np.stack([np.zeros(200), terms]), [float(edge.next_up if edge == plain.next_up else edge), 0])]
        verdict = decide(claim(layers, x, how))
        assert verdict.name == "refuted", verdict
        predictions = verdict.replay.values["predictions"]
        assert predictions[0] != predictions[1]


def test_activations_are_chosen_too() -> None:
    """tanh(1/2) within two ulps against the float next to its rounding; rounded correctly it is stable."""
    def layers(activation: str) -> list[object]:
        return [([[1], [0]], [0, 0.5]), activation, ([[1, 0], [0, 1]], [0, 0])]

    x = vector(0.5)
    assert decide(claim(layers("tanh"), x)).name == "proved"
    assert decide(claim(layers("tanh:ulps=2"), x)).name != "refuted"  # one function: both neurons get one value
    verdict = decide(claim(layers("tanh:ulps=2:any-value"), x))
    assert verdict.name == "refuted" and verdict.counterexample["outputs"][1]


def test_a_contract_without_the_correctly_rounded_value() -> None:
    x = vector(3)
    layers = [([[1], [1]], None), "identity:range=..2", ([[1, 0], [0, 1]], [0, 1])]
    assert decide(claim(layers, x)).name == "proved"


def test_unknown_says_why() -> None:
    made = claim(CANCELLING, ONES)
    verdict = schedules_search(made, Options(timeout=0.0))
    assert verdict.name == "unknown" and "inputs 0 are neither" in verdict.reason and "no time left" in verdict.reason
    rng = np.random.default_rng(5)
    row = rng.normal(size=30).astype(np.float32).astype(float)
    lines: list[str] = []
    net = Network.sequential("float32", 30, [(np.stack([row, row]), [2.0**-18, 0])])
    unsure = PredictionInvariant(net, (vector(*([1] * 30)),), execution("blocks:2|contiguous"))
    verdict = decide(unsure, Options(progress=lines.append))
    assert verdict.name == "unknown" and "12 attempts on each" in verdict.reason
    assert any("attempt 12 of 12 on 1 inputs" in line for line in lines)
    wide = Network.sequential(ieee(15, 113), 2, [([[1, 1], [0, 0]], None)])
    one = exactly(ieee(15, 113), 1)
    verdict = decide(PredictionInvariant(wide, ((one, one),), execution()))
    assert verdict.name == "unknown" and "not embedded" in verdict.reason


def test_the_seed_decides_the_search() -> None:
    made = claim(CANCELLING, ONES)
    first, second = (decide(made, Options(seed=7)) for _ in range(2))
    assert first.counterexample == second.counterexample


@pytest.mark.parametrize("fmt", ["bfloat16", "float8_e5m2:RTZ"])
@pytest.mark.parametrize("how", [
    "any", "any fma=any", "sequential fma=always bias=first", "any products=exact", "any products=exact bias=first",
    "any bias=any fma=any accumulator=float16 products=bfloat16",
])  # fmt: skip
def test_folds_are_schedules_with_the_value_they_claim(fmt: str, how: str) -> None:
    """The search's own arithmetic, against the evaluation of the tree that it returns."""
    ctx, parsed, rng = context(fmt), parse_execution(how), np.random.default_rng(6)
    weights, x, bias = (round_array(ctx, rng.normal(size=shape)) for shape in ((5, 9), (9,), (5,)))
    node = Affine(name="y", context=ctx, source="x", weights=weights, bias=bias)
    rows = Rows(node, parsed, ctx.format, np.arange(5), x)
    for want in (1.0, -1.0, 0.0):
        for i, (tree, value) in enumerate(rows.fold(np.full(5, want), Random(1))):
            assert parsed.allows(tree, 9, True)
            assert rows.under(tree)[i] == value


@settings(max_examples=20)
@given(st.data(), st.sampled_from(["any", "sequential fma=any", "any products=exact", "contiguous bias=first"]))
def test_verdicts_agree_with_all_executions(data: st.DataObject, how: str) -> None:
    """Small float8 networks: every schedule of every sum by the reference interpreter, against the verdict."""
    fmt, rng = float8_e5m2, Random(data.draw(st.integers(0, 2**32)))

    def draw(count: int) -> list[object]:
        return [from_ordinal(fmt, rng.choice([-1, 1]) * rng.randint(52, 70)) for _ in range(count)]

    parsed = parse_execution(how)
    net = Network.sequential(context(fmt), 3, [([draw(3), draw(3)], draw(2)), "relu", ([draw(2), draw(2)], draw(2))])
    x = tuple(draw(3))
    sums = [(name, i, list(parsed.schedules(n, bias))) for name, i, n, bias in net.sums()]
    total = np.prod([len(trees) for *_, trees in sums])
    choices = product(*(trees for *_, trees in sums))
    if total > 200:
        choices = ([rng.choice(trees) for *_, trees in sums] for _ in range(200))
    keys = [(name, i) for name, i, _ in sums]
    picks = {predicted(run(net, x, parsed, dict(zip(keys, trees))).output) for trees in choices}
    verdict = decide(PredictionInvariant(net, (x,), parsed))
    if len(picks) > 1 or None in picks:
        assert verdict.name != "proved"
    elif total <= 200:
        assert verdict.name != "refuted"
