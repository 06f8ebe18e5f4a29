"""Training with numpy: slopes are right, and what is proved of the rationals afterwards."""

from __future__ import annotations

import sys
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest

from fpsmt.engines.trained_rationals import distance, flat_directions
from fpsmt.errors import UsageError
from fpsmt.rational import Trainable
from fpsmt.rational.fitting import fitted, value_and_slopes

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop("train_rationals", None)
    import train_rationals

    return train_rationals


def test_slopes_by_differences():
    rng = np.random.default_rng(1)
    x, a, b = rng.normal(size=(7,)) * 2, rng.normal(size=6), rng.normal(size=4)
    r, slope, da, db = value_and_slopes(x, a, b)
    exact = Trainable.of("A", a, b)
    assert np.allclose(r, [float(exact(F(float(t)))) for t in x], rtol=1e-12)
    h = 1e-6
    up, down = (value_and_slopes(x + side, a, b)[0] for side in (h, -h))
    assert np.allclose((up - down) / (2 * h), slope, rtol=1e-5)
    for k in range(6):
        d = np.eye(6)[k] * h
        assert np.allclose((value_and_slopes(x, a + d, b)[0] - r) / h, da[:, k], rtol=1e-3, atol=1e-5)
    for k in range(4):
        d = np.eye(4)[k] * h
        assert np.allclose((value_and_slopes(x, a, b + d)[0] - r) / h, db[:, k], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "rational from gelu"])
@pytest.mark.parametrize("normalised", [False, True])
def test_the_gradient_of_the_network(example, activation, normalised):
    rng = np.random.default_rng(2)
    net = example.Net(activation, (2, 5, 5, 1), normalised).randomise(rng)
    x, y = example.kink(rng, 16)
    out, kept = net.forward(x)
    grads = net.backward(example.loss_slope("kink", out, y), kept)
    for name, g in grads.items():
        place = tuple(0 for _ in g.shape)
        keep = net.p[name][place]
        values = []
        for h in (1e-6, -1e-6):
            net.p[name][place] = keep + h
            values.append(float(((net.forward(x)[0] - y) ** 2).sum()) / (2 * len(y)))
        net.p[name][place] = keep
        assert abs((values[0] - values[1]) / 2e-6 - g[place]) < 1e-5 * (1 + abs(g[place])), name


def test_scales_make_a_flat_direction(example):
    """(γ, θ, aᵢ, bⱼ) → (sγ, sθ, aᵢ/sⁱ, bⱼ/sʲ) changes nothing; the coefficients alone, or GELU, have none such."""
    net, _ = example.train("kink", "rational from gelu", True, 0, 60)
    x, _ = example.kink(np.random.default_rng(3), 96)
    found = example.conditioning(net, x, 0)
    assert [found[name][:2] for name in ("coefficients", "scales and shifts", "both")] == [(10, 0), (48, 0), (58, 1)]
    assert found["both"][2] > 10 * max(found["coefficients"][2], found["scales and shifts"][2])
    slopes = example.derivatives(net, x, ["a0", "b0", "scale0", "shift0"])
    powers = np.concatenate([-np.arange(6.0), -np.arange(1.0, 5.0)])
    orbit = np.concatenate([powers * np.concatenate([net.p["a0"], net.p["b0"]]), net.p["scale0"], net.p["shift0"]])
    assert np.abs(slopes @ orbit).max() < 1e-11 * np.abs(slopes).max() * np.abs(orbit).max()
    fixed, _ = example.train("kink", "gelu", True, 0, 20)
    assert example.conditioning(fixed, x, 0)["scales and shifts"][:2] == (48, 0)


def test_what_is_proved_after_training(example):
    net, score = example.train("kink", "rational from gelu", False, 0, 40)
    assert score < 1.5 and len(net.rationals()) == 2
    start = fitted("gelu")
    for r in net.rationals():
        assert r.type == (5, 4) and r.left.count_poles(-8, 0) == r.right.count_poles(0, 8) == 0
        after, before = (distance(each, "gelu", F(-3), F(3)) for each in (r, start))
        assert before.high < F(1, 100) < after.high < 10 and len(after.proofs) == 2
        assert after.low <= after.high <= after.low * F(102, 100)
    with pytest.raises(UsageError, match="form B"):
        distance(Trainable("B", (F(1),), (F(-2), F(0), F(1))), "gelu", F(-3), F(3))


def test_flat_directions():
    """Two for a rational in lowest terms; one more for each common root that numerator and denominator have."""
    r = Trainable.of("unsafe", [0.1, 0.5, 0.25, 0.125], [0.5, 1.0])
    assert flat_directions(r, F(3, 2), F(1, 5)) == 2
    common = Trainable("unsafe", (F(1), F(2), F(1)), (F(1), F(0)))  # (1 + x)²/(1 + x)
    assert flat_directions(common, F(1), F(0)) > 2
    with pytest.raises(UsageError):
        flat_directions(Trainable("A", (F(1),), (F(1),)), F(1), F(0))
