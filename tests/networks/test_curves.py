"""Lines below and above activations, compared with every allowed result of small formats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fpsmt.errors import Unsupported
from fpsmt.floats import context
from fpsmt.floats.vector import from_ordinals, ordinals, values
from fpsmt.functions import function_named, implementation_named
from fpsmt.functions.allowed import allowed_arrays
from fpsmt.networks.curves import Curve, Relu
from fpsmt.networks.smooth_curves import Smooth, grid_of

TEXTS = [
    "sigmoid", "tanh:ulps=3", "gelu", "gelu_tanh:ulps=1", "softplus", "elu", "selu", "leaky_relu", "swish:floats=1",
    "mish", "erf", "tanh:ulps=5:range=-1..1", "sigmoid:error=1/64", "relu", "exp", "gaussian",
]  # fmt: skip


def boxes(fmt: str, count: int, widest: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals between values of the format, of up to `widest` places."""
    rng = np.random.default_rng(seed)
    given = context(fmt).format
    ends = values(given, finite=True)
    ends = np.unique(ordinals(given, ends[np.abs(ends) <= 60]))
    low = rng.integers(0, len(ends) - 1, count)
    high = np.minimum(low + rng.integers(0, widest, count), len(ends) - 1)
    return from_ordinals(given, ends[low]) + 0.0, from_ordinals(given, ends[high]) + 0.0


def exact(x: float) -> Fraction:
    return Fraction(float(x))


@pytest.mark.parametrize("text", TEXTS)
def test_lines_hold_for_every_allowed_result(text: str) -> None:
    """Every value of float8_e4m3 in an interval, and the ends of what the contract allows there, in exact rationals."""
    use, ctx = implementation_named(text), context("float8_e4m3")
    curve: Curve = Relu() if text == "relu" else Smooth(use.function, use.contract, ctx)
    low, high = boxes("float8_e4m3", 40, 120, 1)
    lines = curve.lines(low, high)
    known = 0
    for k in range(len(low)):
        z = values(ctx.format, finite=True)
        z = z[(z >= low[k]) & (z <= high[k])]
        least, most = allowed_arrays(use, ctx, z)
        if not np.isfinite(lines.least[k]):
            continue
        known += 1
        for x, a, b in zip(z, least, most, strict=True):
            for theta in (-1, 1):
                lower, upper = (s if s in (0, 1) else s * (1 + Fraction(theta, 2**53))
                                for s in (exact(lines.lower[k]), exact(lines.upper[k])))  # fmt: skip
                assert lower * exact(x) + exact(lines.bottom[k]) <= exact(a)
                assert upper * exact(x) + exact(lines.top[k]) >= exact(b)
            assert lines.least[k] <= a and b <= lines.most[k]
    assert known > 20 or text == "exp"
    assert known > 5


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "gelu", "swish", "softplus"])
def test_lines_are_close(name: str) -> None:
    """On intervals of float32 of width 1/16 the two lines are less than 1/800 apart, and not farther than needed."""
    curve = Smooth(function_named(name), implementation_named(name).contract, context("float32"))
    low = np.linspace(-6, 6, 200)
    lines = curve.lines(low, low + 1 / 16)
    for z in (low, low + 1 / 32, low + 1 / 16):
        apart = lines.upper * z + lines.top - lines.lower * z - lines.bottom
        assert (apart > 0).all() and (apart < 1 / 800).all()


def test_what_has_no_lines() -> None:
    with pytest.raises(Unsupported, match="derivative everywhere, not sqrt"):
        grid_of(function_named("sqrt"))
    with pytest.raises(Unsupported, match="derivative everywhere, not step"):
        grid_of(function_named("step"))
    with pytest.raises(Unsupported, match="turns without end"):
        grid_of(function_named("sin"))
    tanh = function_named("tanh")
    for text in ("tanh:floats=9000000", "tanh:range=-0.9..0.9"):
        with pytest.raises(Unsupported, match="linear bounds do not know"):
            Smooth(tanh, implementation_named(text).contract, context("float32"))
    curve = Smooth(tanh, implementation_named("tanh").contract, context("float32"))
    assert np.isneginf(curve.lines(np.array([-np.inf, 0.0]), np.array([0.0, 1e30])).least).all()
