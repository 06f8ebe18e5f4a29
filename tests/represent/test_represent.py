"""Networks with the values of tables: every activation, every order; what the kernel refuses; files; the command."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import Represents, Values
from fpsmt.claims.representation import Reference
from fpsmt.cli import main
from fpsmt.constructions.cones import last_hidden
from fpsmt.constructions.sparse import Rows, SparseNetwork, network_from_data
from fpsmt.engines import Options
from fpsmt.engines.representation import represent
from fpsmt.errors import UsageError
from fpsmt.files.representations import load_representation, read_table, save_representation
from fpsmt.floats import Format, context, float8_e4m3, float8_e5m2, float16, float32
from fpsmt.floats.vector import to_floats, values
from fpsmt.functions import implementation_named
from fpsmt.kernel import Refuted
from fpsmt.networks import ANY, load_arrays, run_batch

RULE = "representation by indicators"


def line(fmt: Format) -> np.ndarray:
    return np.unique(values(fmt, finite=True) + 0.0)


def table(fmt: Format, points: np.ndarray, seed: int = 0) -> Values:
    f = np.random.default_rng(seed).choice(line(fmt), len(points))
    f[::9], f[4::9] = np.inf, -np.inf
    return Values(fmt, points.reshape(len(points), -1), f[:, None])


@pytest.mark.parametrize("fmt", [float8_e4m3, float8_e5m2], ids=str)
@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh", "gelu"])
def test_every_finite_input(fmt: Format, activation: str) -> None:
    wanted = table(fmt, line(fmt))
    found = represent(context(fmt), implementation_named(activation), wanted)
    assert found.verdict.name == "proved", found.reasons
    assert found.network is not None and len(found.network.layers) == (3 if activation == "relu" else 4)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_two_inputs(activation: str) -> None:
    some = line(float8_e4m3)[::24]
    points = np.array(list(itertools.product(some, some)))
    found = represent(context("float8_e4m3"), implementation_named(activation), table(float8_e4m3, points))
    assert found.verdict.name == "proved", found.reasons


def test_the_network_agrees_with_the_interpreter_in_random_orders() -> None:
    some = line(float8_e4m3)[::30]
    points = np.array(list(itertools.product(some, some)))
    wanted = table(float8_e4m3, points)
    found = represent(context("float8_e4m3"), implementation_named("sigmoid"), wanted)
    assert found.network is not None
    net = found.network.materialised()
    last, rng = len(found.network.layers), Random(0)
    terms = len(found.network.layers[-1].terms(0))
    for _ in range(5):
        schedules = {(f"affine{last}", 0): (ANY.random_tree(terms, rng), terms)}
        out = run_batch(net, wanted.points, schedules=schedules)[net.output.name]
        assert np.array_equal(out + 0.0, wanted.values)


def test_bounds_hold_what_the_reference_returns() -> None:
    """Random small networks: where a neuron is said to be zero, and its bounds, against the scalar arithmetic."""
    rng, ctx = np.random.default_rng(3), context("float8_e4m3")
    axis = line(float8_e4m3)
    small = axis[np.abs(axis) <= 8]
    for activation in ("relu", "sin", "tanh"):
        layers = []
        size = 1
        for width in (4, 5, 6):
            rows = Rows()
            for _ in range(width):
                columns = rng.choice(size, min(size, int(rng.integers(1, 4))), replace=False)
                rows.add([(int(j), float(rng.choice(small))) for j in sorted(columns)], float(rng.choice(small)), True)
            layers.append(rows.layer())
            size = width
        rows = Rows()
        rows.add([(j, 1.0) for j in range(size)])
        net = SparseNetwork(ctx, 1, implementation_named(activation), (*layers, rows.layer()))
        points = rng.choice(axis, 12, replace=False)
        hits = last_hidden(net, points[:, None])
        known = {(int(j), int(i)): (a, b) for j, i, a, b in zip(hits.neuron, hits.point, hits.low, hits.high)}
        for i, x in enumerate(points):
            for _ in range(3):
                trees = {
                    (place, k): ANY.random_tree(len(layer.terms(k)), Random(int(rng.integers(1 << 30))))
                    for place, layer in enumerate(layers)
                    for k in range(layer.size)
                }
                reference = Reference(net, to_floats(float8_e4m3, [x]), trees)
                for j in range(size):
                    y = float(reference.value(2, j))
                    low, high = known.get((j, i), (0.0, 0.0))
                    assert np.isnan(low) or low <= y <= high


def test_a_wrong_value_is_refuted_by_replay() -> None:
    wanted = table(float8_e4m3, line(float8_e4m3)[::10])
    found = represent(context("float8_e4m3"), implementation_named("relu"), wanted)
    assert found.network is not None
    changed = wanted.values.copy()
    changed[5] = 1.0 if changed[5] != 1.0 else 2.0
    verdict = kernel.apply(RULE, Represents(found.network, Values(float8_e4m3, wanted.points, changed)))
    assert isinstance(verdict, Refuted) and verdict.counterexample["point"] == 5


def test_a_sum_that_depends_on_the_order_is_refuted_by_an_order() -> None:
    first, second, last = Rows(), Rows(), Rows()
    x_itself, one, two = first.add([(0, 1.0)]), first.add([], 1.0), first.add([], 2.0)
    second.add([(x_itself, 1.0), (one, 16.0), (two, -8.0)])
    last.add([(0, 1.0)])
    net = SparseNetwork(
        context("float8_e4m3"), 1, implementation_named("identity"), (first.layer(), second.layer(), last.layer())
    )
    x = 0.0625
    value = float(Reference(net, to_floats(float8_e4m3, [x])).value(2, 0))
    verdict = kernel.apply(RULE, Represents(net, Values(float8_e4m3, [[x]], [[value]])))
    assert isinstance(verdict, Refuted) and verdict.counterexample["schedules"]


def test_points_of_a_wide_format() -> None:
    rng = np.random.default_rng(0)
    points = np.unique(rng.normal(size=500).astype(np.float32).astype(float))
    f = rng.normal(size=(len(points), 2)).astype(np.float32).astype(float)
    found = represent(context("float32"), implementation_named("relu"), Values(float32, points[:, None], f))
    assert found.verdict.name == "proved", found.reasons


def test_a_pair_that_no_map_tells_apart() -> None:
    points = np.array([0.0, 2.0**-24, 8192.0])[:, None]
    wanted = Values(float16, points, np.array([1.0, 2.0, 3.0])[:, None])
    found = represent(context("float16"), implementation_named("cos"), wanted, Options(timeout=120))
    assert found.network is None and isinstance(found.verdict, Refuted)
    assert found.verdict.counterexample == {"x": "0x0p+0", "y": "0x1p-24"}


def test_files(tmp_path: Path) -> None:
    wanted = table(float8_e4m3, line(float8_e4m3)[::20])
    found = represent(context("float8_e4m3"), implementation_named("relu"), wanted)
    assert found.network is not None
    again = network_from_data(json.loads(json.dumps(found.network.to_json())))
    assert again == found.network
    sparse, plain = str(tmp_path / "net.json"), str(tmp_path / "net.npz")
    assert save_representation(found.network, sparse) == "sparse" and load_representation(sparse) == found.network
    assert save_representation(found.network, plain) == "ordinary"
    net = load_arrays(plain)
    assert np.array_equal(run_batch(net, wanted.points)[net.output.name] + 0.0, wanted.values)
    proof = kernel.verdict_to_json(found.verdict)
    assert kernel.check_verdict(json.loads(json.dumps(proof))).name == "proved"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,0.1\n", "t.csv, row 1, column 2: 0.1 is not a value of float8_e4m3: the nearest is 0.1015625"),
        ("0,1\n0,2\n", "the input [0.0] is in the table twice"),
        ("0,1\n1\n", "row 2: 1 numbers, and the first row has 2"),
        ("inf,1\n", "the inputs of a table are finite"),
        ("", "has no rows of numbers"),
        ("O,1\n1,2\n", "row 1, column 1"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as error:
        read_table(str(tmp_path / "t.csv"), float8_e4m3)
    assert message in str(error.value)


def test_a_byte_order_mark_costs_no_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("0,1\n1,2\n", encoding="utf-8-sig")
    assert len(read_table(str(tmp_path / "t.csv"), float8_e4m3)) == 2


@pytest.mark.parametrize("array", [np.array([[1j, 1]]), np.array([["a", "b"]]), np.array([[2**60 + 1, 1]])])
def test_arrays_that_are_no_tables(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "t.npy", array)
    np.savez(tmp_path / "t.npz", points=array[0, 0], values=array[0])
    for name in ("t.npy", "t.npz"):
        with pytest.raises(UsageError):
            read_table(str(tmp_path / name), float32)


def test_a_network_that_cannot_be_written_is_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("0,1\n", encoding="utf-8")
    words = ["represent", str(tmp_path / "t.csv"), "--format", "float8_e4m3", "--activation", "relu", "--no-save"]
    assert main([*words, "-o", str(tmp_path / "none" / "net.npz")]) == 2


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("x,f\n-1,3\n0,inf\n0.5,0\n240,0.001953125\n", encoding="utf-8")
    words = ["represent", str(tmp_path / "t.csv"), "--format", "float8_e4m3", "--activation", "relu"]
    assert main([*words, "-o", str(tmp_path / "net.npz"), "--json", "-", "--no-save"]) == 0
    result = json.loads(capfd.readouterr().out)["result"]
    assert (result["layers"], result["inputs_checked"]) == (3, 4) and result["parameters"] == 20
    assert load_arrays(tmp_path / "net.npz").outputs
    assert main([*words, "--order", "pairwise"]) == 2
