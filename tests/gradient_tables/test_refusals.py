"""What is refused: wrong weights, slopes and indicators, impossible tables, evidence that was changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import AllGradientTables, GradientTable, RepresentsGradients, claim_from_json
from fpsmt.cli import main
from fpsmt.constructions import gradient_cells
from fpsmt.constructions.gradient_cells import Cells
from fpsmt.constructions.gradient_tables import domain
from fpsmt.constructions.gradient_traces import traces
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.engines import decide
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import context, float8_e4m3, float8_e5m2
from fpsmt.floats.vector import from_ordinals, ordinals
from fpsmt.functions import implementation_named
from fpsmt.kernel import Refuted, Unknown
from tests.gradient_tables.test_tables import network_of, random_table

FMT = float8_e4m3


@pytest.fixture(scope="module")
def table() -> GradientTable:
    return random_table(FMT, domain(FMT), 11)


@pytest.fixture(scope="module")
def network(table: GradientTable) -> SparseNetwork:
    return network_of(table, 6, False)


def with_next(network: SparseNetwork, layer: int, name: str, index: int) -> SparseNetwork:
    """The network with one parameter moved to the next float."""
    numbers = np.array(getattr(network.layers[layer], name))
    numbers[index] = from_ordinals(FMT, ordinals(FMT, numbers[index : index + 1]) + 1)[0]
    layers = list(network.layers)
    layers[layer] = replace(layers[layer], **{name: numbers})
    return replace(network, layers=tuple(layers))


def steep(table: GradientTable) -> int:
    """The number among the points with a gradient of one near 1, away from powers of two."""
    points = table.points[table.gradients != 0]
    return int(np.argmin(np.abs(points - 1.4)))


def test_a_wrong_weight_is_found(network: SparseNetwork, table: GradientTable) -> None:
    """The last layer's: the value is wrong there, and is replayed by the reference arithmetic."""
    levels = int(np.argmax(np.abs(network.layers[-2].bias)))
    wrong = with_next(network, 5, "weights", levels)
    verdict = decide(RepresentsGradients(wrong, table, "left-to-right"))
    assert isinstance(verdict, Refuted)
    assert "value" in verdict.replay.lines[1]


@pytest.mark.parametrize("layer", [2, 3, 4])
def test_a_wrong_slope_is_found(network: SparseNetwork, table: GradientTable, layer: int) -> None:
    """Twice w₃, w₄ or w₅ of one point, in both of its products: the value is still right, the gradient is not."""
    layers, begin = list(network.layers), int(network.layers[layer].starts[steep(table)])
    weights = np.array(layers[layer].weights)
    assert weights[begin] == -weights[begin + 1]
    weights[begin : begin + 2] *= 2
    layers[layer] = replace(layers[layer], weights=weights)
    verdict = decide(RepresentsGradients(replace(network, layers=tuple(layers)), table, "left-to-right"))
    assert isinstance(verdict, Refuted)
    i = verdict.counterexample["point"]
    assert float.fromhex(verdict.replay.values["output"]) == table.values[i]
    assert float.fromhex(verdict.replay.values["gradient"]) == 2 * table.gradients[i]


def test_an_indicator_that_is_off_by_one_place_is_found(network: SparseNetwork, table: GradientTable) -> None:
    first = network.layers[0]
    steeps = int((table.gradients != 0).sum())
    for row in (steep(table), steeps + 100, steeps + len(table) + 100):
        moved = with_next(network, 0, "bias", row)
        assert first.bias[row] != moved.layers[0].bias[row]
        assert isinstance(decide(RepresentsGradients(moved, table, "left-to-right")), Refuted)


def test_a_table_that_differs_in_one_last_place(network: SparseNetwork, table: GradientTable) -> None:
    for name in ("values", "gradients"):
        column = np.array(getattr(table, name))
        i = int(np.flatnonzero(table.gradients != 0)[17])
        column[i] = from_ordinals(FMT, ordinals(FMT, column[i : i + 1]) - 1)[0]
        verdict = decide(RepresentsGradients(network, replace(table, **{name: column}), "left-to-right"))
        assert isinstance(verdict, Refuted) and verdict.counterexample == {"point": i}


def test_six_layers_near_zero_need_their_order(network: SparseNetwork, table: GradientTable) -> None:
    verdict = decide(RepresentsGradients(network, table, "any"))
    assert isinstance(verdict, Unknown) and "order" in verdict.reason


def test_networks_of_another_form(network: SparseNetwork, table: GradientTable) -> None:
    """The terms of a sum in another order; another activation; two layers."""
    layers, begin = list(network.layers), int(network.layers[2].starts[0])
    columns = np.array(layers[2].columns)
    columns[begin : begin + 2] = columns[begin : begin + 2][::-1].copy()
    layers[2] = replace(layers[2], columns=columns)
    other = implementation_named("leaky_relu")
    for wrong in (
        replace(network, layers=tuple(layers)),
        replace(network, implementation=other),
        replace(network, layers=(network.layers[0], Layer([0, 1], [0], [1.0], [0.0]))),
    ):
        with pytest.raises(Unsupported):
            traces(wrong, table.points, table.upstream, False)


def test_impossible_tables() -> None:
    with pytest.raises(UsageError, match=r"row 1: at x = 2\.0 the gradient 3\.0 .* loss derivative 0"):
        GradientTable(FMT, [1.0, 2.0], [0, 0], [1.0, 0.0], [3.0, 3.0])
    with pytest.raises(UsageError, match="twice"):
        GradientTable(FMT, [0.0, -0.0], [0, 0], [1.0, 1.0], [3.0, 3.0])
    with pytest.raises(UsageError, match="not finite"):
        GradientTable(FMT, [1.0], [np.inf], [1.0], [3.0])
    with pytest.raises(UsageError, match="one length"):
        GradientTable(FMT, [1.0], [1.0, 2.0], [1.0], [3.0])
    with pytest.raises(UsageError, match="left-to-right, any"):
        AllGradientTables(context(FMT), 6, "pairwise")  # type: ignore[arg-type]


def test_evidence(network: SparseNetwork, table: GradientTable) -> None:
    claim = RepresentsGradients(network, table, "left-to-right")
    record = json.loads(json.dumps(kernel.verdict_to_json(decide(claim))))
    assert claim_from_json(json.loads(json.dumps(claim.to_json()))) == claim
    kernel.check(record["evidence"], claim)
    wrong = RepresentsGradients(with_next(network, 2, "weights", 0), table, "left-to-right")
    with pytest.raises(EvidenceError, match="counterexample"):
        kernel.check(record["evidence"], wrong)
    with pytest.raises(EvidenceError, match="do not speak"):
        kernel.apply("traces of values and gradients", AllGradientTables(context(FMT), 6, "any"))
    with pytest.raises(EvidenceError, match="does not speak"):
        kernel.apply("every table of values and gradients", claim)


@pytest.mark.parametrize(
    ("name", "which"), [("targets", 0), ("targets", 1), ("factors", 0), ("factors", 1), ("split", 1), ("climb", 0)]
)
def test_every_fact_about_a_format_is_checked(monkeypatch: pytest.MonkeyPatch, name: str, which: int) -> None:
    """Each number of the construction, when it is twice what it should be, is noticed."""
    right = getattr(gradient_cells, name)
    wrong = lambda *given: tuple(x * (1 + (k == which)) for k, x in enumerate(right(*given)))  # noqa: E731
    monkeypatch.setattr(gradient_cells, name, wrong)
    cells = Cells(context(float8_e5m2), False)
    assert any(fails for _, fails in cells.checks())


def test_shifted_detectors_are_noticed() -> None:
    cells = Cells(context(float8_e5m2), False)
    first = cells.build.first()
    bias = np.array(first.bias)
    bias[150] = from_ordinals(float8_e5m2, ordinals(float8_e5m2, bias[150:151]) + 1)[0]
    cells.build.first = lambda: replace(first, bias=bias)  # type: ignore[method-assign]
    assert cells.detectors()


# -- the command ------------------------------------------------------------------------------------------

ROWS = "x,f,h,g\n-4,96,1,-7\n0,0,0,0\n3,-2.5,57344,1.52587890625e-05\n"


def command(tmp_path: Path, rows: str, *options: str) -> int:
    (tmp_path / "t.csv").write_text(rows)
    return main([
        "represent", str(tmp_path / "t.csv"), "--format", "float8_e5m2", "--activation", "relu", "--gradients",
        "--out", str(tmp_path), *options,
    ])  # fmt: skip


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, ROWS, "-o", str(tmp_path / "net.npz"), "--json", str(tmp_path / "r.json")) == 0
    assert capsys.readouterr().out.startswith("represent proved layers=7 parameters=75 inputs=3\n")
    assert main(["check", str(tmp_path / "r.json")]) == 0
    assert main(["gradient", str(tmp_path / "net.npz"), "--at", "-4", "--target", "-7", "--no-save"]) == 0
    assert command(tmp_path, ROWS, "--order", "left-to-right", "--layers", "13", "--no-save") == 0
    assert "layers=13" in capsys.readouterr().out


def test_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, ROWS, "--layers", "5", "--no-save") == 3
    assert "5 layers are too few: 7 are needed" in capsys.readouterr().out
    assert command(tmp_path, "16384,1,1,1\n", "--no-save") == 3
    assert "outside [−M, M]" in capsys.readouterr().out
    for rows, options, what in (
        ("1,1,0,1\n", [], "the loss derivative 0"),
        ("1,1,inf,1\n", [], "not finite"),
        ("1,1,1\n", [], "rows of 4 numbers"),
        (ROWS, ["--order", "pairwise"], "any or left-to-right"),
    ):
        assert command(tmp_path, rows, *options) == 2
        assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "sums", "activation", "why"),
    [
        ("ieee(2,2)", "left-to-right", "gelu", "passes no gradient"),
        ("float4_e2m1fn", "left-to-right", "relu", "NaN"),
        ("float6_e2m3fn", "any", "relu", "NaN"),
        ("float8_e4m3b11fnuz:nan", "left-to-right", "relu", "NaN"),
        ("float8_e3m4:nan", "any", "relu", "NaN"),
        ("ieee(12,40)", "any", "relu", "float64"),
        ("ieee(12,3)", "left-to-right", "tanh", "float64"),
        ("ieee(8,56)", "any", "relu", "float64"),
    ],
)
def test_formats_without_such_networks(name: str, sums: str, activation: str, why: str) -> None:
    """Where numbers that the construction needs are missing, nothing is said; nothing breaks."""
    verdict = decide(AllGradientTables(context(name), 7, sums, activation))
    assert isinstance(verdict, Unknown) and why in verdict.reason


@pytest.mark.parametrize(
    ("name", "order", "activation", "why"),
    [
        ("ieee(2,2)", "left-to-right", "gelu", "passes no gradient"),
        ("float8_e4m3b11fnuz:nan", "any", "relu", "needs the parameter 512"),
        ("float8_e5m2:flush", "any", "relu", "difference of neighbours is 0"),
    ],
)
def test_tables_without_such_networks(name: str, order: str, activation: str, why: str, capsys, tmp_path) -> None:
    rows = tmp_path / "t.csv"
    rows.write_text("1,2,1,3\n-1,0.5,2,-1\n0,0,0,0\n")
    options = ["--gradients", "--format", name, "--activation", activation, "--order", order, "--no-save"]
    assert main(["represent", str(rows), *options]) == 3
    assert why in capsys.readouterr().out
