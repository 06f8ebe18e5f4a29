"""Bounded activations by absorption and the identity by windows: all finite inputs of small formats, some of wider."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from fpsmt.claims import Represents, Values
from fpsmt.claims.representation import Reference
from fpsmt.constructions.cones import last_hidden
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.windows import targets, window
from fpsmt.engines.representation import Representation, represent
from fpsmt.floats import Format, bfloat16, context, float16
from fpsmt.floats.vector import to_floats, values
from fpsmt.functions import implementation_named
from fpsmt.kernel import Proved
from fpsmt.networks import ANY, run_batch

SMALL = [f"ieee({e},{p})" for e in (2, 3, 4, 5) for p in (2, 3, 4, 5)]
WITHOUT_SIN = {*(f"ieee(2,{p})" for p in (2, 3, 4, 5)), "ieee(3,4)", "ieee(3,5)"}
WITHOUT_IDENTITY = {t for t in SMALL if t[5] in "23" or t[7] == "2"}


def line(fmt: Format) -> np.ndarray:
    return np.unique(values(fmt, finite=True) + 0.0)


def network(text: str, activation: str, points: np.ndarray, seed: int = 0) -> tuple[Representation, Values]:
    """For values among which are ω, ±Ω and ±inf."""
    fmt = context(text).format
    f = np.random.default_rng(seed).choice(line(fmt), len(points))
    f[::9], f[4::9], f[1::17], f[2::19] = np.inf, -np.inf, float(fmt.largest), float(fmt.smallest)
    table = Values(fmt, points[:, None], f[:, None])
    return represent(context(text), implementation_named(activation), table), table


@pytest.mark.parametrize("text", SMALL)
def test_every_finite_input_of_small_formats(text: str) -> None:
    points = line(context(text).format)
    for activation, without in (("sin", WITHOUT_SIN), ("identity", WITHOUT_IDENTITY)):
        found, _ = network(text, activation, points)
        assert (found.verdict.name == "proved") == (text not in without), (activation, found.reasons)
        if found.network is not None:
            assert len(found.network.layers) == (4 if activation == "sin" else 5)


def some_inputs(fmt: Format, rng: np.random.Generator) -> np.ndarray:
    """0, ±ω, subnormals, ends of binades with their neighbours, ±Ω, and others."""
    p, omega = fmt.precision, float(fmt.smallest)
    ends = np.ldexp(1.0, np.arange(fmt.emin, fmt.emax + 1))
    near = np.concatenate([ends, ends * (1 + 2.0 ** (1 - p)), ends * (1 - 2.0**-p), [float(fmt.largest)]])
    low = omega * np.concatenate([np.arange(12), 2 ** (p - 1) + np.arange(-3, 4), 2**p - np.arange(1, 8)])
    both = np.concatenate([near, low, rng.choice(line(fmt), 40)])
    both = both[np.isin(both, line(fmt))]
    return np.unique(np.concatenate([both, -both]) + 0.0)


@pytest.mark.parametrize(
    ("fmt", "activation"),
    [(float16, "sin"), (float16, "tanh"), (float16, "erf"), (float16, "identity"), (bfloat16, "tanh")],
    ids=str,
)
def test_selected_inputs_of_wider_formats(fmt: Format, activation: str) -> None:
    points = some_inputs(fmt, np.random.default_rng(1))
    found, _ = network(str(context(str(fmt))), activation, points)
    assert found.verdict.name == "proved", found.reasons
    assert found.network is not None and len(found.network.layers) == (5 if activation == "identity" else 4)


def test_four_layers_for_the_identity_away_from_zero() -> None:
    points = some_inputs(float16, np.random.default_rng(2))
    found, table = network("float16", "identity", points[np.abs(points) >= 4 * float(float16.smallest)])
    assert found.verdict.name == "proved", found.reasons
    assert found.network is not None and len(found.network.layers) == 4 and len(table) > 100


@pytest.mark.parametrize("text", ["ieee(4,3)", "ieee(4,4)", "ieee(5,4)", "ieee(5,6)", "float16"])
def test_windows_find_their_target_alone(text: str) -> None:
    """At u = ω all even targets from 4 to 2^p but 2^(p−1) + 2; those of `targets` for larger u."""
    shape = Shape(context(text), implementation_named("identity"))
    p = shape.format.precision
    even = range(4, 2**p, 2) if p < 7 else [4, 6, 2 ** (p - 1), 2 ** (p - 1) + 4, 3 * 2 ** (p - 2), 2**p - 2]
    for target in even:
        found = window(shape, target, shape.smallest)
        assert found is not None and (found.reach == np.inf) == (target != 2 ** (p - 1) + 2)
    larger = [window(shape, target, 4 * shape.smallest) for target in targets(p)[:3]]
    alone = [found is not None and found.reach == np.inf for found in larger]
    assert all(alone) if p > 3 else any(alone)


@pytest.mark.parametrize("activation", ["sin", "identity"])
def test_random_orders_by_the_interpreter(activation: str) -> None:
    points = line(context("float8_e4m3").format)[::9]
    found, table = network("float8_e4m3", activation, points)
    assert found.network is not None
    net = found.network.materialised()
    last, terms, rng = len(found.network.layers), len(found.network.layers[-1].terms(0)), Random(0)
    for _ in range(4):
        schedules = {(f"affine{last}", 0): (ANY.random_tree(terms, rng), terms)}
        out = run_batch(net, table.points, schedules=schedules)[net.output.name]
        assert np.array_equal(out + 0.0, table.values)


def test_values_that_are_sums_of_several_products() -> None:
    """Beside ω a detector of sin in float16 returns 1/8 at most: Ω and ±inf are sums of nine products."""
    omega, largest = float(float16.smallest), float(float16.largest)
    points = omega * np.array([-2.0, -1, 0, 1, 2, 3])
    f = np.array([largest, -largest, np.inf, -np.inf, 5000.0, 3.0])
    table = Values(float16, points[:, None], f[:, None])
    found = represent(context("float16"), implementation_named("sin"), table)
    assert found.verdict.name == "proved" and found.network is not None
    hits = last_hidden(found.network, table.points)
    assert np.bincount(hits.point).tolist()[:4] == [9, 9, 9, 9]
    last = len(found.network.layers) - 1
    terms = len(found.network.layers[last].terms(0))
    for seed in range(5):
        trees = {(last, 0): ANY.random_tree(terms, Random(seed))}
        for x, y in zip(points, f, strict=True):
            assert float(Reference(found.network, to_floats(float16, [x]), trees).value(last, 0)) == y


def test_cones_of_one_sum_are_examined_once() -> None:
    points = line(context("float8_e4m3").format)
    found, table = network("float8_e4m3", "identity", points)
    assert isinstance(found.verdict, Proved) and found.network is not None
    assert isinstance(found.verdict.claim, Represents) and found.verdict.claim.table == table
    assert int(found.verdict.evidence.found["different_cones"]) <= 12
