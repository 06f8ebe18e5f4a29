"""Where the paper fails: the counterexamples are the least, by a second count; what holds, holds one by one."""

from __future__ import annotations

from itertools import product

import pytest

from fpsmt.claims import AllGradientTables
from fpsmt.constructions.gradient_blocks import copies_needed, last_killed
from fpsmt.constructions.gradient_tables import places
from fpsmt.engines import decide
from fpsmt.errors import UsageError
from fpsmt.floats import (
    Float,
    Format,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    ieee,
    mul,
)
from fpsmt.floats.vector import arithmetic, values
from fpsmt.kernel import Refuted
from specs import gradient_limits as specs

FORMATS = [ieee(4, 3), float8_e4m3, float8_e5m2, ieee(5, 4), ieee(5, 5), ieee(6, 8), ieee(6, 9), float16, bfloat16]


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_three_killers(fmt: Format) -> None:
    """Three do where emax ≥ 4p + 1; else the counterexample is the first gradient that survives."""
    enough = fmt.emax >= 4 * fmt.fraction_bits + 1
    assert enough == (copies_needed(fmt) <= 3)
    verdict = decide(specs.three_killers.build(fmt))
    assert verdict.name == ("proved" if enough else "refuted")
    if isinstance(verdict, Refuted):
        y = Float(fmt, int(verdict.counterexample["values"]["y"], 16))
        assert y == last_killed(fmt, 3).next_up


@pytest.mark.parametrize("fmt", [float32, float64, ieee(8, 31), ieee(8, 32), ieee(11, 256)], ids=str)
def test_the_number_of_killers_in_wide_formats(fmt: Format) -> None:
    assert (copies_needed(fmt) <= 3) == (fmt.emax >= 4 * fmt.fraction_bits + 1)


def test_a_killer_that_does_not_kill() -> None:
    with pytest.raises(UsageError, match="does not make gradients smaller"):
        copies_needed(ieee(2, 3))


def test_the_slope_of_small_points_overflows() -> None:
    """In three exponent bits, at the first normal number."""
    for precision in (2, 3, 4):
        fmt = ieee(3, precision)
        verdict = decide(specs.indicator_of_small_points.build(fmt, "positive", True))
        assert isinstance(verdict, Refuted)
        assert verdict.counterexample["values"]["z"] == 1 << fmt.fraction_bits


@pytest.mark.parametrize("fmt", [float8_e4m3, float8_e5m2], ids=str)
def test_how_far_detectors_reach(fmt: Format) -> None:
    """In array arithmetic, every z and x up to Ω: where hat is not what it should be, x or z is beyond 2M."""
    ctx = context(fmt)
    xs = values(fmt, finite=True) + 0.0
    here, vector = places(ctx, xs[1:-1]), arithmetic(ctx)
    wrong = []
    for sign, z, below, gap in zip(here.sign, here.z, here.below, here.gap, strict=True):
        if sign > 0:
            a = vector.sub(xs, below).clip(0.0)
            b = vector.sub(vector.mul(xs, 2.0), vector.mul(z, 2.0)).clip(0.0)
            hat = vector.sub(a, b).clip(0.0)
            wrong += [max(abs(x), abs(z)) for x, h in zip(xs, hat, strict=True) if h != (gap if x == z else 0.0)]
    assert wrong and min(wrong) > 2.0 ** (fmt.emax - 1)


def test_no_weights_make_something_of_nothing() -> None:
    """The refuted case is y = 0; for 1.875 and ω some pair of weights is found among all."""
    fmt, ctx = float8_e4m3, context(float8_e4m3)
    verdict = decide(specs.any_gradient_from_a_loss_derivative.build(fmt, True))
    assert isinstance(verdict, Refuted) and verdict.counterexample["values"]["y"] in (0, 128)
    one, weights = exactly(fmt, 1), [Float(fmt, code) for code in range(fmt.largest_code + 1)]
    for y in (exactly(fmt, 1.875), Float(fmt, 1)):
        assert any(mul(ctx, mul(ctx, y, u), v) == one for u, v in product(weights, weights))


def test_gradients_of_both_signs() -> None:
    """Round up: 1.25·1.25 is 1.75, and −1.25·1.25 is −1.5."""
    fmt = float8_e5m2
    up = context("float8_e5m2:rtp")
    a = exactly(fmt, 1.25)
    assert mul(up, a, a) == exactly(fmt, 1.75) and mul(up, -a, a) == exactly(fmt, -1.5)
    assert mul(context(fmt), -a, a) == -mul(context(fmt), a, a)


def test_every_table_of_64_bits() -> None:
    for sums, layers in (("left-to-right", 6), ("any", 7)):
        assert decide(AllGradientTables(context("float64"), layers, sums)).name == "proved"  # type: ignore[arg-type]
        assert decide(AllGradientTables(context("float64"), layers - 1, sums)).name == "unknown"  # type: ignore[arg-type]
