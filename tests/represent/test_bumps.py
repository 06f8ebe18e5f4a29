"""Bumps and joined detectors: several inputs, noisy implementations, every order by brute force, refusals."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fpsmt.claims import Represents, Values
from fpsmt.cli import main
from fpsmt.constructions.bumps import bumps, deep_bumps
from fpsmt.constructions.cones import last_hidden
from fpsmt.constructions.ending import network_layers
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.engines import Options
from fpsmt.engines.representation import Construction, represent
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Format, bfloat16, context, float8_e4m3, float8_e5m2, float16, format_named
from fpsmt.floats.vector import encode, from_ordinals, ordinals, to_floats, values
from fpsmt.functions import Implementation, Table, WithinUlps, function_named, implementation_named
from fpsmt.functions.allowed import allowed_tables
from fpsmt.kernel import Refuted
from tests.represent.test_exhaustive import outputs


def line(fmt: Format) -> np.ndarray:
    return np.unique(values(fmt, finite=True) + 0.0)


def table(fmt: Format, axis: np.ndarray, inputs: int = 1, seed: int = 0) -> Values:
    points = np.stack(np.meshgrid(*[axis] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)
    f = np.random.default_rng(seed).choice(line(fmt), len(points))
    f[::9], f[4::9] = np.inf, -np.inf
    return Values(fmt, points, f[:, None])


def noisy(name: str, fmt: Format, ulps: int, seed: int) -> Implementation:
    """One of the implementations within `ulps`, drawn uniformly at every input; the two zeros give one result."""
    use = Implementation(function_named(name), WithinUlps(Fraction(ulps)))
    low, high = allowed_tables(use, context(fmt))
    nan = np.isnan(low)
    ends = [ordinals(fmt, np.where(nan, 0.0, end)) for end in (low, high)]
    drawn = from_ordinals(fmt, np.random.default_rng(seed).integers(ends[0], ends[1] + 1))
    codes = encode(fmt, np.where(nan, np.nan, drawn)).astype(int)
    codes[fmt.sign_mask] = codes[0]
    return Implementation(use.function, Table(fmt, fmt, tuple(codes.tolist())))


@pytest.mark.parametrize(
    ("activation", "fmt"), [("selu", float8_e4m3), ("elu", float8_e5m2)], ids=str
)
def test_every_finite_input(activation: str, fmt: Format) -> None:
    found = represent(context(fmt), implementation_named(activation), table(fmt, line(fmt)))
    assert found.verdict.name == "proved", found.reasons
    assert found.network is not None and len(found.network.layers) == (5 if activation == "selu" else 4)


@pytest.mark.parametrize("activation", ["sin"])
def test_inputs_of_a_wider_format(activation: str) -> None:
    """From end to end of float16, the smallest numbers among them."""
    axis = np.unique(np.concatenate([line(float16)[::4000], [0.0, 2.0**-24, -(2.0**-24), 2.0**-23, 1.0, 1 + 2.0**-10]]))
    found = represent(context("float16"), implementation_named(activation), table(float16, axis))
    assert found.verdict.name == "proved", found.reasons


@pytest.mark.parametrize("activation", ["elu", "tanh", "sin", "identity"])
def test_two_inputs(activation: str) -> None:
    axis = np.array([-240.0, 0.0, 2.0**-9, 1.0, 1.125])
    wanted = table(float8_e4m3, axis, 2)
    found = represent(context("float8_e4m3"), implementation_named(activation), wanted)
    assert found.verdict.name == "proved", found.reasons
    layers = {"tanh": (4,), "sin": (6,), "identity": (6, 7)}.get(activation, (4, 5))
    assert found.network is not None and len(found.network.layers) in layers


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_three_inputs(activation: str) -> None:
    axis = np.array([-2.0, 0.0, 0.001953125, 112.0])
    found = represent(context("float8_e4m3"), implementation_named(activation), table(float8_e4m3, axis, 3))
    assert found.verdict.name == "proved", found.reasons


def layers_of(construction: Construction, ctx: Context, use: Implementation, wanted: Values) -> tuple[Layer, ...]:
    shape = Shape(ctx, use)
    return network_layers(shape, construction(shape, wanted.points, (wanted.values != 0).any(axis=1)), wanted.values)


@pytest.mark.parametrize(
    ("construction", "activation", "inputs"), [(bumps, "elu", 1), (deep_bumps, "selu", 1), (bumps, "tanh", 2)]
)
def test_against_every_order_by_the_reference(construction: Construction, activation: str, inputs: int) -> None:
    """Each output of small networks, over all trees of all sums and both signs of zero, in a format of seven bits."""
    fmt = format_named("ieee(4,3)")
    wanted = table(fmt, np.array([-14.0, 0.0, 0.015625]), inputs)
    wanted = Values(fmt, wanted.points[:4], wanted.values[:4])
    ctx, use = context(fmt), implementation_named(activation)
    network = SparseNetwork(ctx, inputs, use, layers_of(construction, ctx, use, wanted))
    weights = {float(x): x for x in to_floats(fmt, line(fmt))}
    for point, value in zip(wanted.points, wanted.values, strict=True):
        found = outputs(network, to_floats(fmt, point), weights)
        assert found is not None and {float(y) for y in found[0]} == {float(value[0])}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "selu", "gelu", "swish", "sin"])
def test_implementations_within_an_ulp(activation: str, seed: int) -> None:
    """A network for each of some implementations, unless one is never 0: then no detector can be."""
    axis = np.array([-16.0, -3.5, -1.0, -0.875, 0.0, 1.0, 1.125, 2.0, 30.0])
    wanted = table(float8_e4m3, axis)
    found = represent(context("float8_e4m3"), noisy(activation, float8_e4m3, 1, seed), wanted)
    assert found.verdict.name == "proved" or "is never 0" in " ".join(found.reasons), found.reasons


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_implementations_within_ten_ulps(activation: str) -> None:
    axis = line(bfloat16)[::3000]
    found = represent(context("bfloat16"), noisy(activation, bfloat16, 10, 0), table(bfloat16, axis))
    assert found.verdict.name == "proved", found.reasons


def test_a_program() -> None:
    wanted = table(float8_e4m3, np.array([-3.5, -1.0, 0.0, 1.125]))
    found = represent(context("float8_e4m3"), implementation_named("gelu:program(gelu_tanh)"), wanted)
    assert found.verdict.name == "proved", found.reasons
    assert found.network is not None and isinstance(found.network.implementation.contract, Table)


def test_several_results_at_one_input() -> None:
    wanted = table(float8_e4m3, np.array([-3.5, 1.0]))
    with pytest.raises(UsageError, match="it is no table"):
        represent(context("float8_e4m3"), implementation_named("gelu:ulps=2"), wanted)


def test_an_activation_without_zeros() -> None:
    codes = [0x38] * (1 << 8)
    use = Implementation(function_named("identity"), Table(float8_e4m3, float8_e4m3, tuple(codes)))
    with pytest.raises(Unsupported, match="never 0"):
        bumps(Shape(context("float8_e4m3"), use), np.array([[0.0], [1.0]]), np.array([True, True]))


def test_grouped_neurons_are_those_of_single_inputs() -> None:
    """A grid of all pairs against each of its points alone."""
    axis = line(float8_e4m3)[::60]
    wanted = table(float8_e4m3, axis, 2)
    ctx, use = context("float8_e4m3"), implementation_named("tanh")
    network = SparseNetwork(ctx, 2, use, layers_of(bumps, ctx, use, wanted))
    together = last_hidden(network, wanted.points)
    for p in range(0, len(wanted), 5):
        alone = last_hidden(network, wanted.points[p : p + 1])
        mine = together.point == p
        assert np.array_equal(together.neuron[mine], alone.neuron)
        assert np.array_equal(together.low[mine], alone.low) and np.array_equal(together.high[mine], alone.high)


def test_a_pair_of_two_inputs_that_no_map_tells_apart(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    points = np.array([[0.0, 1.0], [0.0, 0.0], [2.0**-24, 0.0], [8192.0, 0.0]])
    wanted = Values(float16, points, np.array([[5.0], [1.0], [2.0], [3.0]]))
    found = represent(context("float16"), implementation_named("cos"), wanted, Options(timeout=120))
    assert found.network is None and isinstance(found.verdict, Refuted) and found.pair == (1, 2)
    (tmp_path / "t.csv").write_text("0,1,5\n0,0,1\n0x1p-24,0,2\n8192,0,3\n", encoding="utf-8")
    words = ["represent", str(tmp_path / "t.csv"), "--format", "float16", "--activation", "cos", "--no-save"]
    assert main([*words, "--json", "-"]) == 1
    result = json.loads(capfd.readouterr().out)["result"]
    assert result["pair"] == ["(0x0p+0;0x0p+0)", "(0x1p-24;0x0p+0)"]


def test_equal_values_at_such_a_pair_refute_nothing() -> None:
    points = np.array(list(itertools.product([0.0, 2.0**-24, 8192.0], [0.0])))
    wanted = Values(float16, points, np.array([[1.0], [1.0], [3.0]]))
    found = represent(context("float16"), implementation_named("cos"), wanted, Options(timeout=120))
    assert not isinstance(found.verdict, Refuted)


def test_claims_are_about_the_table_alone() -> None:
    """Noise elsewhere does not matter: the same network is proved again from its JSON form."""
    wanted = table(float8_e4m3, np.array([-1.0, 0.0, 1.0]))
    found = represent(context("float8_e4m3"), noisy("tanh", float8_e4m3, 2, 1), wanted)
    assert found.network is not None
    claim = Represents(found.network, wanted)
    assert Represents.from_fields(json.loads(json.dumps(claim.fields()))).hash == claim.hash
