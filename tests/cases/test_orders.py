"""Public reports of sums that depend on their order, on fused products or on the accumulator, with exact answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fpsmt.floats import (
    Float,
    bfloat16,
    context,
    exactly,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    nearest,
    pow2,
    ulp,
)
from fpsmt.functions import FUNCTIONS, correctly_rounded
from fpsmt.networks.brackets import a_priori, bracket
from fpsmt.networks.executions import execution
from fpsmt.networks.extremes import extremes
from fpsmt.networks.fused import PRESETS
from fpsmt.networks.orders import given
from fpsmt.networks.outcomes import Sum, reachable
from fpsmt.networks.packed import PackedSum


def values(fmt, numbers):
    return tuple(nearest(fmt, Fraction(x)) if not isinstance(x, Float) else x for x in numbers)


def outcomes(ctx, terms, order="any", **options):
    problem = Sum(context(ctx), tuple(terms), None, execution(order, **options))
    found = reachable(problem)
    for value, tree in found.items():
        assert problem.evaluate(tree) == value
    return {str(v) for v in found}


def ends(ctx, terms, order="any", **options):
    found = extremes(Sum(context(ctx), tuple(terms), None, execution(order, **options)))
    return str(found.low), str(found.high), found.nan


# -- orders -------------------------------------------------------------------------------------------------


def test_eight_halves_of_the_largest_float16():
    """4 × 32000 and 4 × −32000: one kernel gave 0, another inf."""
    terms = values(float16, [32000] * 4 + [-32000] * 4)
    every = {"-inf", "0.0", "inf", "nan"}
    assert outcomes("float16", terms) == every
    assert outcomes("float16", terms, "contiguous") == every
    assert outcomes("float16", terms, "sequential") == {"-inf", "0.0", "inf"}
    assert outcomes("float16", terms, accumulator="float32") == {"0.0"}
    assert ends("float16", terms) == ("-inf", "inf", True)
    assert ends("float16", terms, "sequential") == ("-inf", "inf", False)
    assert outcomes("float16", values(float16, [32000] * 2 + [-32000] * 2)) == {"0.0"}
    assert outcomes("float16", values(float16, [32000] * 3 + [-32000] * 3)) == every


def test_finite_doubles_with_an_infinite_sum():
    terms = values(float64, [1e308, 1e308, -1e308, -1e308])
    assert outcomes("float64", terms) == {"-inf", "0.0", "inf", "nan"}
    assert outcomes("float64", terms, "sequential") == {"-inf", "0.0", "inf"}
    assert ends("float64", terms, "sequential") == ("-inf", "inf", False)


def test_the_interleaved_order_is_dangerous_for_eight_lanes():
    """[3e38, −3e38] eight times: left to right never overflows; numpy's eight lanes meet inf − inf."""
    interleaved = np.array([3e38, -3e38] * 8, dtype=np.float32)
    blocked = np.array([3e38] * 8 + [-3e38] * 8, dtype=np.float32)
    with np.errstate(all="ignore"):
        assert np.isnan(interleaved.sum())
        assert blocked.sum() == 0
    for array, lanes, left in ((interleaved, "nan", "0.0"), (blocked, "0.0", "inf")):
        terms = values(float32, [Fraction(float(x)) for x in array])
        assert outcomes("float32", terms, "pairwise") == {lanes}
        assert outcomes("float32", terms, "left-to-right") == {left}
        assert ends("float32", terms) == ("-inf", "inf", True)


def test_the_sign_of_an_eight_bit_dot_product():
    """Products are exact in float32, two of them cancel, and the rest is below an ulp of these."""
    w = values(float8_e5m2, [0.001220703125, 20480, -0.001220703125, 1.5, -0.005859375, -3072, -640, 0.00146484375])
    x = values(
        float8_e5m2,
        [-40, 320, -1280, -7.62939453125e-05, 0, 0.00042724609375, 10240, -4.57763671875e-05],
    )
    terms = tuple(zip(w, x, strict=True))
    exact = sum(a.fraction * b.fraction for a, b in terms)
    assert float(exact) == 0.20105736702680588
    found = reachable(Sum(context("float32"), terms))
    assert len(found) == 44
    low, high, nan = ends("float32", terms)
    assert [f"{float(v):.8f}" for v in (low, high)] == ["-0.04894263", "0.25000000"]
    assert not nan
    assert (low, high) == tuple(str(pick(found, key=lambda v: v.fraction)) for pick in (min, max))
    kept = outcomes("float32", terms, "contiguous")
    assert len(kept) == 4
    assert {"0.0", "-0.048828125"} < kept
    narrow = reachable(Sum(context("float32"), terms, None, execution(accumulator="bfloat16")))
    assert len(narrow) == 11
    assert ends("float32", terms, accumulator="bfloat16") == ("-1.359375", "1.5625", False)
    assert outcomes("float32", terms, accumulator="float16") == {"nan"}
    none = extremes(Sum(context("float32"), terms, None, execution(accumulator="float16")))
    assert (none.low, none.high, none.nan) == (None, None, True)


def test_cross_entropy_depends_on_the_order_of_classes():
    ctx = context("float32")
    target = nearest(float32, Fraction("-0.02199082262814044952392578125"))
    others = values(
        float32,
        [
            Fraction("0.050022132694721221923828125"),
            Fraction("0.00222884747199714183807373046875"),
            Fraction("-0.122285909950733184814453125"),
            Fraction("-0.055452823638916015625"),
        ],
    )
    from fpsmt import floats

    logits = [target, *others]
    top = max(logits, key=lambda v: v.fraction)
    shifted = [floats.sub(ctx, v, top) for v in logits]
    powers = tuple(correctly_rounded(FUNCTIONS["exp"], ctx, v) for v in shifted)
    sums = list(reachable(Sum(ctx, powers)))
    assert [v.hex for v in sums] == ["0x1.2807a4p+2", "0x1.2807a6p+2"]
    losses = {str(floats.sub(ctx, correctly_rounded(FUNCTIONS["log"], ctx, v), shifted[0])) for v in sums}
    reported = ("1.60359013080596923828125", "1.6035902500152587890625")
    assert losses == {str(nearest(float32, Fraction(x))) for x in reported}


def test_a_network_that_sees_the_order():
    """2^24 + 1 + 1 − 2^24 is 2 exactly, and 0, 1 or 2 in float32: minus 1.5, its sign depends on the order."""
    terms = values(float32, [2**24, 1, 1, -(2**24)])
    assert outcomes("float32", terms) == {"0.0", "1.0", "2.0"}
    shifted = Sum(context("float32"), terms, nearest(float32, Fraction(-3, 2)))
    found = extremes(shifted)
    assert found.low is not None
    assert found.high is not None
    assert found.low.fraction < 0 < found.high.fraction


def test_four_models_of_an_unordered_reduction():
    terms = values(float16, [2048, 1, 1])
    assert outcomes("float16", terms, "left-to-right") == {"2048.0"}
    assert outcomes("float16", terms) == {"2048.0", "2050.0"}
    assert outcomes("float16", terms, accumulator="float32") == {"2050.0"}
    one = exactly(float16, 1)
    assert PRESETS["truncating32"].dot([(one, t) for t in terms], result=context("float16")).fraction == 2050


def test_a_million_triples():
    """10^6 copies of [1, 1e-7, −1]: memory order changed the sum by all of its value."""
    small = float(np.float32(1e-7))
    triple = values(float32, [1, Fraction(small), -1])
    assert outcomes("float32", triple) == {str(nearest(float32, Fraction(small))), str(exactly(float32, pow2(-23)))}
    x = np.tile(np.array([1, small, -1]), 10**6 // 3 + 1)[: 3 * (10**6 // 3)]
    outer = a_priori(PackedSum.of(context("float32"), x))
    assert outer.low is not None
    assert outer.high is not None
    for reported in (0.0, 0.0625, 0.1186676, 0.11920929):
        assert outer.low.fraction <= Fraction(reported) / 3 <= outer.high.fraction


def test_split_k_rounds_the_partial_sums():
    terms = values(float32, [257, -256])
    assert outcomes("float32", terms) == {"1.0"}
    assert outcomes("float32", terms, accumulator="bfloat16") == {"0.0"}


def test_infinities_give_nan_in_every_order():
    for numbers in (["-inf", "inf"], ["-inf", "1", "inf"], ["inf", "2", "1", "-inf"]):
        terms = [exactly(float32, float(x)) for x in numbers]
        assert outcomes("float32", terms) == {"nan"}
        found = extremes(Sum(context("float32"), tuple(terms)))
        assert (found.low, found.nan) == (None, True)


# -- fused products -----------------------------------------------------------------------------------------


def test_a_row_alone_and_in_a_batch():
    """Two products: they commute, so that no order changes their sum; fusing one does."""
    x = values(float32, [1, 1 + pow2(-13)])
    w = values(float32, [-(1 + pow2(-12)), 1 + pow2(-13)])
    terms = tuple(zip(w, x, strict=True))
    assert ends("float32", terms) == ("0.0", "0.0", False)
    tiny = str(exactly(float32, pow2(-26)))
    assert ends("float32", terms, fma="any") == ("0.0", tiny, False)
    assert outcomes("float32", terms, fma="any") == {"0.0", tiny}
    # beside a logit that is always 0, the first index wins a tie: the prediction flips
    assert outcomes("float32", terms, products="exact") == {tiny}


def test_a_difference_of_products_has_no_certain_sign():
    a, x = nearest(float32, Fraction(10) ** 20), nearest(float32, Fraction(10) ** 10)
    terms = ((a, x), (-a, x))
    assert outcomes("float32", terms) == {"0.0"}
    found = reachable(Sum(context("float32"), terms, None, execution(fma="any")))
    big = nearest(float32, Fraction("4.993411122843311e21"))
    assert set(found) == {exactly(float32, 0), big, -big}
    assert ends("float32", terms, fma="any") == (str(-big), str(big), False)


# -- accumulators -------------------------------------------------------------------------------------------


def test_an_accumulator_that_cuts():
    unit = PRESETS["fp22"]
    c = exactly(float32, 1 + pow2(-14))
    nil = exactly(float8_e4m3fn, 0)
    assert unit.step(c, [(nil, nil)] * 32).fraction == 1
    assert outcomes("float32", [c, exactly(float32, 0), exactly(float32, 0)]) == {str(c)}
    one = exactly(float8_e4m3fn, 1)
    pairs = [(exactly(float8_e4m3fn, 448), one), (exactly(float8_e4m3fn, 7.5), one)]
    assert unit.dot(pairs).fraction == Fraction("455.5")


@pytest.mark.parametrize(("count", "wide"), [(3000, "3000.0"), (6000, "6000.0"), (65519, "65504.0"), (65520, "inf")])
def test_ones_in_float16(count, wide):
    ones = np.ones(count)
    plain = a_priori(PackedSum.of(context("float16"), ones, execution=execution("left-to-right")))
    assert (str(plain.low), str(plain.high)) == ("2048.0", "2048.0")
    how = execution("pairwise", accumulator="float32")
    other = a_priori(PackedSum.of(context("float16"), ones, execution=how))
    assert (str(other.low), str(other.high)) == (wide, wide)


def test_running_sums_stall():
    for fmt, count, stalled in ((float16, 4096, 2048), (bfloat16, 512, 256)):
        ones = values(fmt, [1] * count)
        alone = (f"{stalled}.0", f"{stalled}.0", False)
        assert ends(fmt.name, ones, "sequential") == ends(fmt.name, ones, "left-to-right") == alone
        assert ends(fmt.name, ones, "pairwise") == (f"{count}.0", f"{count}.0", False)
        found = extremes(Sum(context(fmt), ones))
        assert found.low == exactly(fmt, stalled)
        assert found.high is not None
        assert found.high.fraction > count  # ties to even can be met upwards again and again


def test_overflow_in_some_order_and_in_every_order():
    big = values(float16, [255, 100, 100])
    squares = [(v, v) for v in big]
    assert outcomes("float16", squares) == {"inf"}
    assert ends("float16", [(v, v) for v in values(float16, [256, 0, 0])])[0] == "inf"
    mixed = values(float16, [65504, 65504, -65504])
    assert outcomes("float16", mixed) == {"inf", "65504.0"}


def test_a_row_summed_in_bfloat16():
    """Sixteen bfloat16 ulps between two paths: the first cannot have been summed in float32."""
    path = nearest(bfloat16, Fraction("2.01562"))
    wide = nearest(bfloat16, Fraction("1.89315"))
    assert (path.fraction - wide.fraction) / ulp(bfloat16, wide.fraction) == 16
    rng = np.random.default_rng(0)
    x = np.array([float(nearest(bfloat16, Fraction(float(v)))) for v in rng.normal(size=256)])
    w = np.array([float(nearest(bfloat16, Fraction(float(v)))) for v in rng.normal(size=256) / 16])
    widths = []
    for how in (execution(), execution(accumulator="float32")):
        outer = a_priori(PackedSum.of(context("bfloat16"), x, w, execution=how))
        assert outer.low is not None
        assert outer.high is not None
        widths.append((outer.high.fraction - outer.low.fraction) / ulp(bfloat16, outer.high.fraction))
    assert widths[1] <= 2
    assert widths[0] > 16


def test_either_accumulator():
    """A driver may promote the accumulator: both sets belong to the answer."""
    terms = values(float16, [60000, 60000, -60000])
    assert outcomes("float16", terms) == {"inf", "60000.0"}
    assert outcomes("float16", terms, accumulator="float32") == {"60000.0"}


# -- classes ------------------------------------------------------------------------------------------------


def test_logits_that_tie():
    """Two sums that are equal in some order and differ in exact arithmetic: a tie is reachable."""
    first = set(reachable(Sum(context("float32"), values(float32, [2**24, 1, 1]))))
    second = set(reachable(Sum(context("float32"), values(float32, [2**24, 1, 0]))))
    assert first & second
    assert sum((2**24, 1, 1)) != sum((2**24, 1, 0))


def test_a_gap_above_the_bound_is_stable_and_below_it_is_not():
    rng = np.random.default_rng(3)
    x = np.float32(rng.normal(size=512)).astype(np.float64)
    found = bracket(PackedSum.of(context("float32"), x))
    assert found.outer.low is not None
    assert found.outer.high is not None
    assert found.reached_low is not None
    assert found.reached_high is not None
    far = found.outer.high.fraction + pow2(-10)
    assert found.reached_high.fraction < far  # against a constant logit beyond the bound nothing flips
    middle = (found.reached_low.fraction + found.reached_high.fraction) / 2
    assert found.reached_low.fraction < middle < found.reached_high.fraction  # against this one both orders exist


def test_squares_summed_by_two_block_sizes():
    """An RMS norm whose block size depends on the number of tokens."""
    rng = np.random.default_rng(5)
    v = np.float32(rng.normal(size=300)).astype(np.float64)
    results = set()
    for blocks in ("blocks:2", "blocks:3", "blocks:4", "blocks:5", "lanes:8"):
        outer = a_priori(PackedSum.of(context("float32"), v, v, execution=execution(blocks)))
        assert outer.low == outer.high
        results.add(outer.low)
    whole = a_priori(PackedSum.of(context("float32"), v, v))
    assert len(results) > 1
    assert whole.low is not None
    assert whole.high is not None
    assert all(r is not None and whole.low.fraction <= r.fraction <= whole.high.fraction for r in results)


def test_a_given_tree_is_what_it_says():
    terms = values(float16, [2048, 1, 1])
    assert outcomes("float16", terms, given((0, (1, 2)))) == {"2050.0"}
