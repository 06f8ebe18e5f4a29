"""Networks that ``represent --gradients`` writes, run in torch from their plain arrays: values and gradients.

Sums are built term by term from scalar tensors, so that their order is the one claimed.  Backwards, autograd runs what
was made last first, and adds what arrives at a tensor in that order: so the rows of a layer are made from the last to
the first, and its backward sums run from left to right.  Scalar sums and products of torch are correctly rounded in
float16, bfloat16 and float32, subnormals too.

Only signs of zeros differ: torch selects +0 where ReLU is flat (rule ``framework``; D^AD has g ⊗ 0), and nothing comes
back from a neuron that nothing reads (D^AD has ±0 ⊗ w).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fpsmt.cli import main
from fpsmt.floats import FORMATS, Format, context
from fpsmt.floats.vector import arithmetic, from_ordinals, to_floats
from fpsmt.networks import FRAMEWORK, Affine, Execution, Network, Trace, gradient, load_arrays, run
from fpsmt.networks.orders import LEFT_TO_RIGHT, RIGHT_TO_LEFT

torch = pytest.importorskip("torch", reason="runs networks in torch where torch is installed")

NAMES = ["float16", "bfloat16", "float32"]
LEFT = Execution(LEFT_TO_RIGHT)
Layers = Sequence[tuple[Any, Any]]


@pytest.fixture(autouse=True)
def keep_subnormals() -> None:
    torch.set_flush_denormal(False)


def plain_layers(path: Path) -> list[tuple[Any, Any]]:
    """Weights and biases as numbers, without anything of fpsmt."""
    with np.load(path) as arrays:
        count = sum(name.startswith("weights") for name in arrays)
        return [(arrays[f"weights{k}"], arrays[f"bias{k}"]) for k in range(1, count + 1)]


def forward(
    layers: Layers, activation: Callable[[Any], Any], inputs: list[Any], newest_first: bool = True
) -> list[Any]:
    """The values of every layer; absent terms are those of weight 0."""
    values = [inputs]
    for place, (weights, bias) in enumerate(layers, 1):
        w, b = (torch.tensor(a.astype(float), dtype=inputs[0].dtype) for a in (weights, bias))
        rows: list[Any] = [None] * len(bias)
        for i in sorted(range(len(bias)), reverse=newest_first):
            terms = [values[-1][j] * w[i, j] for j in np.flatnonzero(weights[i])]
            total = b[i] if not terms else terms[0]
            for term in (*terms[1:], *([b[i]] if terms else [])):
                total = total + term
            rows[i] = activation(total) if place < len(layers) else total
        values.append(rows)
    return values


def backward(output: Any, inputs: list[Any], upstream: Any) -> list[float]:
    if not output.requires_grad:
        return [0.0] * len(inputs)
    found = torch.autograd.grad(output, inputs, upstream, retain_graph=True, allow_unused=True)
    return [0.0 if g is None else g.item() for g in found]


def tensor(value: float, fmt: Format, leaf: bool = False) -> Any:
    return torch.tensor(value, dtype=getattr(torch, fmt.name), requires_grad=leaf)


def table(fmt: Format, d: int = 1, upstream: float = np.inf, values: float = np.inf) -> np.ndarray:
    """Rows x …, f, h, g … with the largest and smallest numbers, ±0 and subnormals in every place."""
    top, low, edge = float(fmt.largest), float(fmt.smallest), 2.0 ** (fmt.emax - 2)
    points = [-edge, -3.0, -1.0, -low, 0.0, low, 3 * low, float(fmt.smallest_normal), 1.0, 2.5, edge]
    sizes = [top, low, 1.0, -top, -low, 5 * low, -0.0, float(fmt.smallest_normal), -1.5, 0.0, 3.0]
    n = len(points)
    x = [np.roll(points, 3 * k) for k in range(d)]
    f, h = np.clip(sizes, -values, values), np.clip(np.roll(sizes, 2), -upstream, upstream)
    g = [np.where(h == 0, 0.0, np.roll(sizes, 5 + k)) for k in range(d)]
    return np.stack([*x, f, h, *g], axis=1).reshape(n, -1)


def written(tmp_path: Path, rows: np.ndarray, fmt: Format, activation: str, order: str) -> Path:
    (tmp_path / "table.csv").write_text("\n".join(",".join(map(float.hex, row)) for row in rows.tolist()))
    options = ["--format", fmt.name, "--activation", activation, "--gradients", "--order", order, "--no-save"]
    assert main(["represent", str(tmp_path / "table.csv"), *options, "-o", str(tmp_path / "net.npz")]) == 0
    return tmp_path / "net.npz"


def bits(values: Any) -> list[int]:
    return np.array([v.item() if isinstance(v, torch.Tensor) else float(v) for v in values]).view(np.int64).tolist()


def check_values(trace: Trace, values: list[list[Any]]) -> None:
    """Every hidden value and the output, with the signs of zeros."""
    hidden = [trace.values[f"activation{k}"] for k in range(1, len(values) - 1)]
    for mine, theirs in zip((*hidden, trace.output), values[1:], strict=True):
        assert bits(mine) == bits(theirs)


@pytest.mark.parametrize("name", NAMES)
def test_scalars(name: str) -> None:
    fmt, rng = FORMATS[name], np.random.default_rng(1)
    numbers = from_ordinals(fmt, rng.integers(-fmt.largest_code, fmt.largest_code + 1, (2, 20000)))
    tiny = from_ordinals(fmt, rng.integers(-4 << fmt.fraction_bits, 4 << fmt.fraction_bits, (2, 20000)))
    tiny[1, ::2] = from_ordinals(fmt, (fmt.bias << fmt.fraction_bits) + rng.integers(-99, 99, 10000))
    for a, b in (numbers, tiny):
        for operation in ("add", "mul"):
            mine = getattr(arithmetic(context(fmt)), operation)(a, b)
            theirs = getattr(torch, operation)(tensor(a, fmt), tensor(b, fmt)).double().numpy()
            assert (mine.view(np.int64) == theirs.view(np.int64)).all()


@pytest.mark.parametrize("newest_first", [True, False])
def test_the_order_of_autograd(newest_first: bool) -> None:
    """2²⁴, 1, −2²⁴, −½ add up to −½ from left to right, and to 1 from right to left."""
    slopes = np.array([[2.0**24], [1.0], [-(2.0**24)], [-0.5]])
    layers = [(slopes, np.full(4, 2.0**25)), (np.ones((1, 4)), np.zeros(1))]
    leaf = [tensor(1.0, FORMATS["float32"], leaf=True)]
    (output,) = forward(layers, torch.relu, leaf, newest_first)[-1]
    found = backward(output, leaf, torch.tensor(1.0))
    net = Network.sequential("float32", 1, [layers[0], "relu", layers[1]])
    one = to_floats(FORMATS["float32"], [1.0])
    order = Execution(LEFT_TO_RIGHT if newest_first else RIGHT_TO_LEFT)
    mine = gradient(run(net, one, LEFT), one, order).gradient
    assert bits(mine) == bits(found) == bits([-0.5 if newest_first else 1.0])


@pytest.mark.parametrize("order", ["left-to-right", "any"])
@pytest.mark.parametrize("name", NAMES)
def test_relu(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, order: str) -> None:
    fmt = FORMATS[name]
    rows = table(fmt)[:: 1 if name == "float32" else 2]
    path = written(tmp_path, rows, fmt, "relu", order)
    layers, net = plain_layers(path), load_arrays(path)
    for weights, affine in zip((w for w, _ in layers), net.of_kind(Affine), strict=True):
        assert ((weights != 0) == (True if affine.mask is None else affine.mask)).all()
    for x, f, h, g in rows:
        leaf = [tensor(x, fmt, leaf=True)]
        for newest_first in (True,) if order == "left-to-right" else (True, False):
            values = forward(layers, torch.relu, leaf, newest_first)
            (output,) = values[-1]
            slope = backward(output, leaf, tensor(h, fmt))
            assert (output.item(), *slope) == (f, g)
        trace = run(net, to_floats(fmt, [x]), LEFT)
        check_values(trace, values)
        assert bits(gradient(trace, to_floats(fmt, [h]), LEFT, rules=FRAMEWORK).gradient) == bits(slope)
    capsys.readouterr()
    x, _, h, g = rows[-1]
    options = ["--upstream", h.hex(), "--order", "left-to-right", "--no-save"]
    assert main(["gradient", str(path), f"--at={x.hex()}", *options]) == 0
    assert float(capsys.readouterr().out.split("\n")[0].removeprefix("gradient exact 1 ")) == g != 0


@pytest.mark.parametrize("name", NAMES)
def test_two_inputs(tmp_path: Path, name: str) -> None:
    fmt = FORMATS[name]
    rows = table(fmt, 2)
    layers = plain_layers(written(tmp_path, rows, fmt, "relu", "left-to-right"))
    for x, y, f, h, *g in rows:
        leaves = [tensor(x, fmt, leaf=True), tensor(y, fmt, leaf=True)]
        (output,) = forward(layers, torch.relu, leaves)[-1]
        assert output.item() == f and backward(output, leaves, tensor(h, fmt)) == g


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "elu", "gelu", "silu"])
def test_other_activations(tmp_path: Path, activation: str, name: str) -> None:
    """torch has NaN for gelu and silu at −∞, which occurs; of finite arguments alone they give what the table says."""
    fmt, bounded, no_limit = FORMATS[name], activation in ("tanh", "sigmoid"), activation in ("gelu", "silu")
    rows = table(fmt, upstream=2.0 ** (fmt.fraction_bits - 2), values=16.0 if bounded else np.inf)
    path = written(tmp_path, rows[::2], fmt, activation.replace("silu", "swish"), "left-to-right")
    sigma, top = getattr(torch.nn.functional, activation), float(fmt.largest)
    layers, net = plain_layers(path), load_arrays(path)
    for x, f, h, g in rows[::2]:
        leaf = [tensor(x, fmt, leaf=True)]
        values = forward(layers, sigma, leaf)
        if no_limit:
            assert np.isnan(values[-1][0].item())
            values = forward(layers, lambda v: sigma(torch.clamp(v, -top, top)), leaf)
        else:
            check_values(run(net, to_floats(fmt, [x]), LEFT), values)
        (output,) = values[-1]
        assert (output.item(), *backward(output, leaf, tensor(h, fmt))) == (f, g)
