"""The derivative rule ``framework`` against torch.autograd, bit for bit, where the order of every sum is forced.

Weights are powers of two, so that products are exact, and sums have at most two terms: every order and every
contraction gives one result.  Activations take torch's own outputs, whatever their errors: only the backward step is
compared.  Two findings: 1 − y·y in the backward step of tanh is one fused operation where torch was compiled so, and
sums there start from +0, so that zeros lose their signs.
"""

from __future__ import annotations

import numpy as np
import pytest

from fpsmt.floats import FORMATS, Float, context
from fpsmt.floats.vector import to_floats
from fpsmt.functions import function_named
from fpsmt.networks import FRAMEWORK, FRAMEWORK_FMA, RULES, Network, gradient, run, site_of
from fpsmt.networks.autodiff import Local

torch = pytest.importorskip("torch", reason="compares with torch.autograd where torch is installed")

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-300, 3e38, -3e38]


def _tensor(values: object, name: str) -> object:
    return torch.tensor(np.asarray(values, np.float64), dtype=getattr(torch, name), requires_grad=True)


def _floats(tensor: object, name: str) -> list[Float]:
    return to_floats(FORMATS[name], tensor.detach().to(torch.float64).numpy())  # type: ignore[attr-defined]


def _one_step(function: str, name: str, values: np.ndarray, upstream: np.ndarray) -> list[str]:
    """The rules that give every gradient of an activation."""
    x, g = _tensor(values, name), _tensor(upstream, name).detach()  # type: ignore[attr-defined]
    y = getattr(torch, function)(x)
    y.backward(g)
    ctx, f = context(name), function_named(function)
    steps = list(zip(*(_floats(v, name) for v in (g, x, y, x.grad))))  # type: ignore[attr-defined]
    return [
        rule.name
        for rule in (FRAMEWORK, FRAMEWORK_FMA)
        if all(rule.step(Local(f, gi, xi, yi, ctx, ctx)) == expected for gi, xi, yi, expected in steps)
    ]


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("function", ["relu", "sigmoid", "tanh"])
def test_one_activation(function: str, name: str) -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([SPECIAL, rng.normal(size=1000) * 3, rng.normal(size=500) * 30])
    upstream = np.concatenate([rng.normal(size=len(values) - len(SPECIAL)), SPECIAL])
    rules = _one_step(function, name, values, upstream)
    assert rules == ["framework", "framework-fma"] if function != "tanh" else len(rules) == 1


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("function", ["relu", "sigmoid", "tanh"])
def test_small_networks(function: str, name: str) -> None:
    """Three layers of two units, with values and gradients."""
    rng = np.random.default_rng(2)
    (rule,) = _one_step("tanh", name, rng.normal(size=500), np.ones(500))
    fmt, what = FORMATS[name], function if function == "relu" else f"{function}:ulps=8"
    for _ in range(40):
        weights = [2.0 ** rng.integers(-3, 3, shape) * rng.choice([-1, 1], shape) for shape in ((2, 2), (2, 2), (1, 2))]
        net = Network.sequential(name, 2, [(weights[0], None), what, (weights[1], None), what, (weights[2], None)])
        point = rng.normal(size=2).astype(np.float32).astype(np.float64)
        x = hidden = _tensor(point, name)
        outputs = {}
        for k, layer in enumerate(weights):
            hidden = hidden @ _tensor(layer, name).detach().T  # type: ignore[attr-defined,operator]
            if k < 2:
                before, hidden = hidden, getattr(torch, function)(hidden)
                node = net.node(f"activation{k + 1}")
                for i, pair in enumerate(zip(_floats(before, name), _floats(hidden, name))):
                    if function != "relu":
                        outputs[what, site_of(node, i), pair[0]] = pair[1]  # type: ignore[arg-type]
        hidden.backward(torch.ones_like(hidden))  # type: ignore[attr-defined]
        forward = run(net, to_floats(fmt, point), outputs=outputs)
        back = gradient(forward, to_floats(fmt, [1.0]), rules=RULES[rule])
        for mine, theirs in ((forward.output, hidden), (back.gradient, x.grad)):  # type: ignore[attr-defined]
            assert [v.fraction for v in mine] == [v.fraction for v in _floats(theirs, name)]
