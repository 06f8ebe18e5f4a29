"""Distinguishability: the engines against every map by reference arithmetic, and published numbers of classes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.partition import Partition
from fpsmt.engines import Options, decide
from fpsmt.engines.classes import classes
from fpsmt.floats import (
    Context,
    Mode,
    Overflow,
    Subnormals,
    context,
    exactly,
    float6_e3m2fn,
    float16,
    from_ordinal,
    ieee,
    largest,
    p3109,
    pow2,
)
from fpsmt.functions import FUNCTIONS
from fpsmt.kernel import Proved, Refuted, check_verdict, verdict_to_json
from tests.kernel import brute

COSINE_TYPE = ("cos", "sqrt1p_square", "cosh", "gaussian")

#: (p, q): distinguishable classes for each function of COSINE_TYPE, and inputs.
CLASSES = {
    (2, 4): ((95, 93, 95, 95), 97),
    (2, 5): ((159, 157, 159, 159), 161),
    (3, 4): ((207, 207, 207, 209), 209),
    (3, 5): ((333, 333, 333, 335), 337),
}


def symmetric(function: str, p: int, q: int) -> Setting:
    """The domain [−2^(p+3), 2^(p+3)], clipped to the finite values, of the format of q exponent and p fraction bits."""
    fmt = ieee(q, p + 1)
    bound = exactly(fmt, min(pow2(p + 3), fmt.largest))
    return Setting(FUNCTIONS[function], context(fmt), -bound, bound, Reading.FINITE_ON_DOMAIN)


@pytest.mark.parametrize("function", COSINE_TYPE)
@pytest.mark.parametrize(("p", "q"), CLASSES)
def test_numbers_of_classes(p: int, q: int, function: str) -> None:
    found = classes(symmetric(function, p, q))
    expected, of = CLASSES[p, q]
    assert (found.alone + len(found.classes), found.inputs) == (expected[COSINE_TYPE.index(function)], of)
    assert found.settled and len(found.proofs) == sum(len(members) - 1 for members in found.classes)


@pytest.mark.parametrize("function", COSINE_TYPE)
@pytest.mark.parametrize(("p", "q"), [(2, 4), (2, 5), (3, 4)])
def test_numbers_of_classes_by_reference(p: int, q: int, function: str) -> None:
    expected, of = CLASSES[p, q]
    setting = symmetric(function, p, q)
    assert len(brute.inputs(setting)) == of
    assert brute.classes(setting) == expected[COSINE_TYPE.index(function)]


TINY = [
    context(ieee(2, 3)),
    Context(ieee(3, 3), Mode.RTZ, Overflow.INFINITY, Subnormals.FLUSH),
    Context(ieee(2, 4), Mode.RTP, Overflow.INFINITY, Subnormals.GRADUAL),
    Context(ieee(3, 3), Mode.RNA, Overflow.NAN, Subnormals.FLUSH_INPUTS),
    context(p3109(6, 3)),
    context(float6_e3m2fn, overflow="saturate"),
    Context(ieee(3, 2), Mode.RTN, Overflow.SATURATE, Subnormals.FLUSH_OUTPUTS),
]


@st.composite
def tiny_settings(draw: st.DrawFn) -> Setting:
    ctx = draw(st.sampled_from(TINY))
    top = ctx.format.largest_code
    low, high = sorted(draw(st.lists(st.integers(-top, top), min_size=2, max_size=2, unique=True)))
    names = ["tanh", "relu", "cos", "gaussian", "step", "gelu", "exp", "identity", "sqrt1p_square", "elu"]
    function = FUNCTIONS[draw(st.sampled_from(names))]
    ends = (from_ordinal(ctx.format, o) for o in (low, high))
    return Setting(function, ctx, *ends, draw(st.sampled_from(list(Reading))))


@given(tiny_settings())
@settings(max_examples=60)
def test_every_reading_against_all_maps(setting: Setting) -> None:
    apart = brute.told_apart(setting)
    np.fill_diagonal(apart, True)
    verdict = decide(Distinguishable(setting), Options(timeout=60, solvers=()))
    assert verdict.name == ("proved" if apart.all() else "refuted"), str(verdict)
    if isinstance(verdict, Refuted):
        xs = [x.hex for x in brute.inputs(setting)]
        i, j = (xs.index(verdict.counterexample[name]) for name in "xy")
        assert not apart[i, j]


@given(tiny_settings(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_pairs_against_all_maps(setting: Setting, rng) -> None:
    apart = brute.told_apart(setting)
    xs = brute.inputs(setting)
    i, j = rng.sample(range(len(xs)), 2)
    verdict = decide(Inseparable(setting, xs[i], xs[j]), Options(solvers=()), only="all maps")
    assert verdict.name == ("refuted" if apart[i, j] else "proved")
    if isinstance(verdict, Proved):
        again = check_verdict(verdict_to_json(verdict))
        assert isinstance(again, Proved) and again.claim == verdict.claim


@pytest.mark.parametrize("reading", list(Reading))
def test_half_precision(reading: Reading) -> None:
    """All 16-bit inputs under tanh on [−1, 1]: proved, and the maps that prove it do so again."""
    one = exactly(float16, 1)
    claim = Distinguishable(Setting(FUNCTIONS["tanh"], context(float16), -one, one, reading))
    verdict = decide(claim)
    assert isinstance(verdict, Proved) and verdict.how == "separating maps"
    assert verdict.evidence.found["inputs"] == 2 * 0x3C00 + 1
    assert check_verdict(verdict_to_json(verdict)).name == "proved"


def test_zero_and_the_smallest_value_stay_together_under_cosine() -> None:
    for name in ("float16", "float32", "float64"):
        ctx = context(name)
        bound = exactly(ctx.format, pow2(ctx.format.fraction_bits + 3))
        setting = Setting(FUNCTIONS["cos"], ctx, -bound, bound, Reading.FINITE_ON_DOMAIN)
        verdict = decide(Distinguishable(setting), Options(timeout=120), only="pair at zero")
        assert isinstance(verdict, Refuted)
        assert verdict.counterexample == {"x": "0x0p+0", "y": from_ordinal(ctx.format, 1).hex}
        assert [type(premise.claim) for premise in verdict.premises] == [Inseparable]


def test_a_map_that_is_not_finite_on_the_domain_is_refused() -> None:
    fmt = float16
    setting = Setting(FUNCTIONS["tanh"], context(fmt), -largest(fmt), largest(fmt), Reading.FINITE_ON_DOMAIN)
    from fpsmt.errors import UsageError

    with pytest.raises(UsageError, match="not finite on the domain"):
        Partition.of(setting).refine(exactly(fmt, 2), exactly(fmt, 0))
    pair = Setting(FUNCTIONS["tanh"], context(fmt), -largest(fmt), largest(fmt), Reading.FINITE_ON_PAIR)
    with pytest.raises(UsageError, match="not finite on the inputs still together"):
        Partition.of(pair).refine(exactly(fmt, 2), exactly(fmt, 0))
    anything = Setting(FUNCTIONS["tanh"], context(fmt), -largest(fmt), largest(fmt), Reading.ANY)
    assert Partition.of(anything).refine(exactly(fmt, 2), exactly(fmt, Fraction(0))) > 0
