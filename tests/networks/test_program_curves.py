"""Lines below and above rationals and float programs, compared with every result in small formats."""

from __future__ import annotations

import numpy as np
import pytest

import fpsmt.rational
import fpsmt.terms  # noqa: F401  (programs)
from fpsmt.errors import Unsupported
from fpsmt.floats import context
from fpsmt.floats.vector import values
from fpsmt.functions import implementation_named
from fpsmt.functions.allowed import allowed_arrays
from fpsmt.networks.program_curves import Analysed
from fpsmt.networks.smooth_curves import Smooth
from tests.networks.test_curves import boxes, exact

SMOOTH_RELU = "rational_A(0.0218,0.5,1.5957,1.1915;0,2.383)"
KINK = "rational_A(0.25,1,-0.5;1,0.5)"
HORNER = "z = abs(x); p = ((1.1915*x + 1.5957)*x + 0.5)*x + 0.0218; p/(2.383*z*z + 1)"
TEXTS = [
    SMOOTH_RELU, KINK, "rational(0,1;0,1)",
    f"{SMOOTH_RELU}:program({HORNER})", f"{SMOOTH_RELU}:program({HORNER} | fma any)",
    f"{KINK}:program(z = abs(x); p = (-0.5*x + 1)*x + 0.25; p/((0.5*z + 1)*z + 1))",
    "tanh:program(tanh_rational_clamped)", "swish:program(swish | exp ulps=1)", "tanh:program(x/(1 + x*x/3))",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("fmt", ["float8_e4m3", "float16"])
def test_lines_hold_for_every_result(text: str, fmt: str) -> None:
    use, ctx = implementation_named(text), context(fmt)
    curve = Analysed(use, ctx) if "program" in text else Smooth(use.function, use.contract, ctx)
    low, high = boxes(fmt, 30, 120 if fmt == "float8_e4m3" else 6000, 1)
    lines, known = curve.lines(low, high), 0
    every = values(ctx.format, finite=True)
    for k in np.flatnonzero(np.isfinite(lines.least)):
        z = every[(every >= low[k]) & (every <= high[k])][:: 1 if fmt == "float8_e4m3" else 61]
        least, most = allowed_arrays(use, ctx, z)
        known += 1
        assert lines.least[k] <= least.min() and most.max() <= lines.most[k]
        for x, a, b in zip(z, least, most, strict=True):
            assert exact(lines.lower[k]) * exact(x) + exact(lines.bottom[k]) <= exact(a)
            assert exact(lines.upper[k]) * exact(x) + exact(lines.top[k]) >= exact(b)
    assert known >= 5


def test_lines_of_a_program_are_close() -> None:
    """On intervals of float32 of width 1/16 less than 1/500 apart, wherever the function is not kinked."""
    curve = Analysed(implementation_named(f"{SMOOTH_RELU}:program({HORNER})"), context("float32"))
    low = np.linspace(-6, 6, 100)
    lines = curve.lines(low, low + 1 / 16)
    for z in (low, low + 1 / 32, low + 1 / 16):
        apart = lines.upper * z + lines.top - lines.lower * z - lines.bottom
        assert (apart > 0).all() and (apart < 1 / 500).all()


def test_what_has_no_lines() -> None:
    for text, fmt in (("tanh:program(x*1)", "float16:RTZ"), ("tanh:program(tanh_exp | in float32)", "float16")):
        with pytest.raises(Unsupported, match="linear bounds do not know"):
            Analysed(implementation_named(text), context(fmt))
    curve = Analysed(implementation_named("swish:program(x*x*x/(1 + x*x))"), context("float16"))
    lines = curve.lines(np.array([-1.0, -100.0, -np.inf]), np.array([1.0, 1.0, 0.0]))
    assert np.isfinite(lines.least[0]) and np.isneginf(lines.least[1:]).all() and np.isfinite(lines.top).all()


@pytest.mark.parametrize("fmt", ["float8_e4m3", "float16"])
def test_lines_up_to_the_largest_value(fmt: str) -> None:
    """2^k is not a value of the format where it is above the largest one."""
    use, ctx = implementation_named("tanh:program(clamp(x, -1, 1))"), context(fmt)
    every = values(ctx.format, finite=True)
    end = float(ctx.format.largest)
    lines = Analysed(use, ctx).lines(np.array([-end, end / 2]), np.array([0.0, end]))
    for k, z in enumerate((every[every <= 0], every[every >= end / 2])):
        least, most = allowed_arrays(use, ctx, z)
        assert lines.least[k] <= least.min() and most.max() <= lines.most[k]
        assert np.isfinite(lines.least[k]) or fmt == "float16"
