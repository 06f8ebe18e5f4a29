"""Fused multi-term accumulation: exact steps, cut summands, orders of steps."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    context,
    exactly,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    floor_log2,
    infinity,
    nan,
    pow2,
    round_real,
)
from fpsmt.networks.fused import PRESETS, FusedAccumulator
from tests import strategies


def test_adding_zeros_changes_the_accumulator() -> None:
    unit = PRESETS["fp22"]
    nil, one = exactly(float8_e4m3fn, 0), exactly(float8_e4m3fn, 1)
    assert unit.step(exactly(float32, 1 + pow2(-14)), [(nil, one)]).fraction == 1
    assert unit.step(exactly(float32, 1 + pow2(-13)), [(nil, one)]).fraction == 1 + pow2(-13)
    assert unit.step(exactly(float32, -1 - pow2(-14)), []).fraction == -1
    assert FusedAccumulator(1, 14, context("ieee(8,14)"), "floor").step(
        exactly(float32, -1 - pow2(-14))
    ).fraction == -1 - pow2(-13)


def test_fourteen_bits() -> None:
    unit = PRESETS["fp22"]
    one = exactly(float8_e4m3fn, 1)
    eights = [(exactly(float8_e4m3fn, v), one) for v in (448, 7.5)]
    assert unit.dot(eights).fraction == Fraction("455.5")
    small = (exactly(float8_e4m3fn, pow2(-6)), one)
    assert unit.dot([(exactly(float8_e4m3fn, 256), one), *[small] * 31]).fraction == 256  # each is cut away
    assert unit.dot([*[small] * 32, (exactly(float8_e4m3fn, 256), one)]).fraction == 256 + Fraction(1, 2)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_wide_step_is_one_rounding(data: st.DataObject) -> None:
    """With enough bits nothing is cut, and a step rounds the exact sum once; with few, each summand loses under one
    unit of the largest."""
    pairs = [tuple(data.draw(strategies.finite_floats(float8_e5m2)) for _ in range(2)) for _ in range(4)]
    start = data.draw(strategies.finite_floats(float16))
    ctx = context("float32")
    exact = start.fraction + sum(w.fraction * x.fraction for w, x in pairs)
    wide = FusedAccumulator(4, 200, ctx).step(start, pairs)  # type: ignore[arg-type]
    assert wide.fraction == round_real(ctx, exact).fraction
    values = [start.fraction, *(w.fraction * x.fraction for w, x in pairs)]
    narrow = FusedAccumulator(4, 8, context("float64"), exponents="value").step(start, pairs)  # type: ignore[arg-type]
    largest = max((abs(v) for v in values), default=Fraction(0))
    if largest:
        assert abs(narrow.fraction - exact) < 5 * pow2(floor_log2(largest) - 7)


def test_special_values() -> None:
    unit = FusedAccumulator(2, 14, context("float32:RTZ"))
    one, inf = exactly(float16, 1), infinity(float16)
    assert unit.step(one, [(inf, one)]) == infinity(float32)
    assert unit.step(one, [(inf, one), (-inf, one)]).is_nan
    assert unit.step(one, [(inf, exactly(float16, 0))]).is_nan
    assert unit.step(nan(float16), []).is_nan
    assert unit.step(exactly(float16, -0.0), []).negative
    with pytest.raises(UsageError, match="at most 2"):
        unit.step(one, [(one, one)] * 3)


@pytest.mark.parametrize("regroup", [False, True])
def test_orders_of_steps(regroup: bool) -> None:
    unit = FusedAccumulator(2, 12, context("ieee(8,12):RTZ"))
    one = exactly(float16, 1)
    pairs = [(exactly(float16, v), one) for v in (4096, 1, -4096, 1.5, 2047, 0.75)]
    found = unit.outcomes(pairs, regroup=regroup)
    every = set()
    for order in permutations(range(6) if regroup else range(3)):
        places = order if regroup else [i for g in order for i in (2 * g, 2 * g + 1)]
        every.add(unit.dot([pairs[i] for i in places]))
    assert set(found) == every
    for value, steps in found.items():
        assert unit.dot([pairs[i] for group in steps for i in group]) == value


def test_too_many_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    one = exactly(float16, 1)
    monkeypatch.setattr("fpsmt.networks.fused.MOST_STEPS", 1000)
    with pytest.raises(Unsupported, match="fewer terms"):
        FusedAccumulator(1, 24, context("float32")).outcomes([(exactly(float16, 1 + k * 0.5), one) for k in range(40)])
