"""Indicator blocks: the weights are the published numbers, the networks are indicators, and mutants are not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fpsmt.constructions import indicators as blocks
from fpsmt.constructions.indicators import CASES, SIGNS, Indicator, block_for, is_indicator
from fpsmt.errors import UsageError
from fpsmt.floats import Float, Format, context, exactly, float8_e4m3, float8_e5m2, float16, floor_log2, pow2
from fpsmt.floats.vector import decode
from fpsmt.terms import BitsSort, Term, const, evaluate, from_bits, mul, postorder, var
from fpsmt.terms.arrays import evaluate_arrays
from specs.indicators import indicator, indicator_exhausted, landmarks

FORMATS = [float16, float8_e5m2, float8_e4m3]
Weights = dict[str, Fraction]


def published(fmt: Format, z: Fraction) -> tuple[Weights, Weights]:
    """1[x ≥ z] and 1[x ≤ z] for z > 0, in the letters of the released blocks."""
    p, emin = fmt.fraction_bits, fmt.emin
    e0 = 2 ** (fmt.exponent_bits - 2) - 1
    e = floor_log2(z)
    a = z / pow2(e)
    c = max(emin - e, 0)
    u0 = pow2(-p) if e >= emin else pow2(-p + c)
    half, extra = (Fraction(0), 0) if a != 1 or e == -p + emin else (u0 / 2, 1)
    k = -p + e0 if e > 0 else 3 - p - e0 - c
    slope, unit = pow2(p - e + k), pow2(p + k)
    at_least = {
        "shift": (2 - u0) * pow2(e),
        "slope": slope,
        "bias1": (2 - a - half) * unit,
        "bias2": (2 - a - u0) * unit,
        "scale": pow2(extra - c - k),
    }
    at_most = {
        "shift": -pow2(e),
        "slope": slope,
        "bias1": (a - 1 + u0) * unit,
        "bias2": (a - 1) * unit,
        "scale": pow2(-c - k),
    }
    return at_least, at_most


def codes_of(fmt: Format, case: str) -> np.ndarray:
    """Codes of the z > 0 of a case."""
    every = np.arange(1, 1 << (fmt.bits - 1), dtype=np.uint64)
    code = var("z", BitsSort(fmt.bits))
    return every[evaluate_arrays(blocks.case_holds(fmt, case, code), {"z": every})]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_weights_are_the_published_ones(fmt: Format, case: str) -> None:
    ctx, code = context(fmt), var("z", BitsSort(fmt.bits))
    codes = codes_of(fmt, case)
    assert len(codes)
    built = [blocks.at_least(ctx, case, code), blocks.at_most(ctx, case, code)]
    found = [
        {name: np.broadcast_to(evaluate_arrays(getattr(block, name), {"z": codes}), codes.shape) for name in
         ("shift", "slope", "bias1", "bias2", "scale")}
        for block in built
    ]  # fmt: skip
    assert [block.sign for block in built] == [-1, 1]
    excepted = 0
    for k, z in enumerate(decode(fmt, codes)):
        z = Fraction(float(z))
        exponent = floor_log2(z)
        # the docstring's exception: a power of two whose lower neighbour is a whole gap away
        special = z == pow2(exponent) and fmt.emin - fmt.fraction_bits < exponent <= fmt.emin
        excepted += special
        for weights, expected in zip(found, published(fmt, z)):
            for name, value in expected.items():
                if special and weights is found[0] and name in ("bias1", "scale"):
                    continue
                assert Fraction(float(weights[name][k])) == value, (float(z), name)
        if special:
            below = z - fmt.smallest
            weights = {name: Fraction(float(values[k])) for name, values in found[0].items()}
            assert weights["bias1"] == weights["slope"] * (weights["shift"] - below)
            assert weights["scale"] == 1 / (weights["slope"] * (z - below))
    # all powers of two among the subnormals but the least, and the least normal number
    assert excepted == (fmt.fraction_bits - 1 if case == "subnormal" else case == "low")


def test_cases_cover_the_domain_once() -> None:
    for fmt in FORMATS:
        parts = [codes_of(fmt, case) for case in CASES]
        whole = np.sort(np.concatenate(parts))
        assert whole.tolist() == list(range(1, blocks.domain_bound(fmt).code + 1))
        assert blocks.domain_bound(fmt).fraction == pow2(fmt.emax - 2)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("fmt", [float8_e5m2, float8_e4m3], ids=str)
def test_every_z_and_x_by_reference_arithmetic(fmt: Format, sign: str, case: str) -> None:
    """A few z of each case at every x of the domain, with the scalar interpreter."""
    ctx, bound = context(fmt), blocks.domain_bound(fmt)
    codes = [int(c) for c in codes_of(fmt, case)]
    if sign == "nonpositive" and case == "subnormal":
        codes.append(0)
    block = block_for(ctx, sign, case, var("z", BitsSort(fmt.bits)))
    for code in {codes[0], codes[len(codes) // 2], codes[-1]}:
        z = Float(fmt, code) if sign == "positive" else -Float(fmt, code)
        for magnitude in range(bound.code + 1):
            for x in (Float(fmt, magnitude), -Float(fmt, magnitude)):
                output = evaluate(block.output(ctx, const(x)), {"z": code})
                assert output == exactly(fmt, int(x.fraction >= z.fraction)), (z, x)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("fmt", [float8_e5m2, float8_e4m3], ids=str)
def test_every_z_and_x_by_arrays(fmt: Format, sign: str, case: str) -> None:
    condition = indicator.build(fmt, sign, case).condition
    every = np.arange(1 << fmt.bits, dtype=np.uint64)
    assert evaluate_arrays(condition, {"z": every[:, None], "x": every[None, :]}).all()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sign", SIGNS)
def test_half_precision_at_landmarks(sign: str, case: str) -> None:
    """Every 13th z of [−M, M] at the x of the spec `B-indicator-exhausted`."""
    claim = indicator_exhausted.build(float16, sign, case)
    options = next(t.sort.size for t in postorder(claim.condition) if t.op == "var" and t.data == "which x")
    assert options == 7 + len(landmarks(float16))
    z, which = np.arange(0, 1 << 15, 13, dtype=np.uint64), np.arange(options)
    values = {"magnitude of z": z[:, None], "which x": which[None, :]}
    assert evaluate_arrays(claim.condition, values).all()


def test_landmarks() -> None:
    points = landmarks(float16)
    values = [x.fraction for x in points]
    assert len(set(points)) == len(points)
    for x in (0, pow2(-24), pow2(-14), 1, 8192, 8192 - 4, 1 + pow2(-10), 1 - pow2(-11)):
        assert x in values and -x in values
    assert max(values) == pow2(13) and sum(x.is_zero for x in points) == 2


def mutants(block: Indicator) -> dict[str, Indicator]:
    ctx, fmt = context(float16), float16
    half = const(exactly(fmt, 0.5))
    return {
        "half the scale": replace(block, scale=mul(ctx, block.scale, half)),
        "half the slope": replace(block, slope=mul(ctx, block.slope, half)),
        "one bias twice": replace(block, bias2=block.bias1),
        "the other sign": replace(block, sign=-block.sign),
        "no shift": replace(block, shift=const(exactly(fmt, 0))),
    }


@pytest.mark.parametrize("name", ["half the scale", "half the slope", "one bias twice", "the other sign", "no shift"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sign", SIGNS)
def test_mutants_are_no_indicators(sign: str, case: str, name: str) -> None:
    ctx, code, x = context(float16), var("z", BitsSort(16)), from_bits(float16, var("x", BitsSort(16)))
    block = mutants(block_for(ctx, sign, case, code))[name]
    condition = is_indicator(ctx, sign, case, code, x, block)
    z = codes_of(float16, case)[2::7]
    near = np.concatenate([z + np.uint64(d) - np.uint64(2) for d in range(5)])
    points = {"z": np.tile(z, 10), "x": np.concatenate([near, near | np.uint64(0x8000)])}
    holds = evaluate_arrays(condition, points)
    assert not holds.all()
    k = int(np.argmin(holds))
    assert evaluate(condition, {"z": int(points["z"][k]), "x": int(points["x"][k])}) is False


def test_errors() -> None:
    code: Term = var("z", BitsSort(16))
    with pytest.raises(UsageError, match="unknown sign 'minus'"):
        block_for(context(float16), "minus", "high", code)
    with pytest.raises(UsageError, match="unknown case 'tiny'"):
        blocks.case_holds(float16, "tiny", code)
