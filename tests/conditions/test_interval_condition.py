"""The condition of arXiv 2506.16065: verdicts against all c₁, c₂, η of small formats, and the bound of the slope."""

from __future__ import annotations

import pytest

from fpsmt import kernel
from fpsmt.claims import IntervalCondition, claim_from_json
from fpsmt.engines import decide
from fpsmt.errors import UsageError
from fpsmt.floats import all_values, context, exactly, float8_e4m3
from fpsmt.functions import Implementation, function_named, implementation_named
from fpsmt.kernel.rules.conditions import _lipschitz


def claim_of(name: str, fmt: str) -> IntervalCondition:
    return IntervalCondition(Implementation(function_named(name)), context(fmt))


@pytest.mark.parametrize("fmt", ["float8_e4m3"])
@pytest.mark.parametrize("name", ["relu", "tanh", "log", "cosh", "gelu", "step", "exp"])
def test_small_formats(name: str, fmt: str) -> None:
    claim = claim_of(name, fmt)
    assert (decide(claim).name == "refuted") == claim.replay({}).violates


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_large_formats(name: str) -> None:
    for fmt in ("float32", "float64"):
        verdict = decide(claim_of(name, fmt))
        assert verdict.name == "proved"
        assert kernel.check_verdict(kernel.verdict_to_json(verdict)).name == "proved"


def test_the_slope_is_bounded() -> None:
    points = [x for x in all_values(float8_e4m3, finite=True) if not (x.is_zero and x.negative)]
    for name in ("tanh", "relu", "sigmoid", "sin"):
        claim = claim_of(name, "float8_e4m3")
        values = [claim.output(x).fraction for x in points]
        for eta in (exactly(float8_e4m3, 0.5), exactly(float8_e4m3, 1.25), exactly(float8_e4m3, -1.5)):
            exact = claim.lipschitz_by_points(eta, points, values)
            s, t = claim.output(eta).fraction, claim.output(eta.next_up).fraction
            assert exact <= _lipschitz(claim, eta, s, t)


def test_wrong_witnesses() -> None:
    claim = claim_of("relu", "float32")
    data = decide(claim).evidence.data  # type: ignore[union-attr]
    for name, value in (("c1", "0x1p+0"), ("c2", "0x1p+4"), ("eta", "0x1p-130"), ("eta", "-0x1p+0")):
        assert kernel.apply("interval condition witnesses", claim, {**data, name: value}).name == "unknown"
    assert kernel.apply("interval condition witnesses", claim_of("sin", "float32"), data).name == "unknown"
    assert claim_from_json(claim.to_json()) == claim
    with pytest.raises(UsageError, match="correctly rounded"):
        IntervalCondition(implementation_named("relu:ulps=1"), context("float32"))
    with pytest.raises(UsageError, match="too many"):
        claim.replay({})
