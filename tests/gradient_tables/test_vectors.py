"""Networks of several inputs with values and gradients: against the interpreter, what is refused, the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import RepresentsVectorGradients, VectorGradients, claim_from_json
from fpsmt.claims.gradient_representation import run_at
from fpsmt.cli import main
from fpsmt.constructions.gradient_tables import domain
from fpsmt.constructions.gradient_vectors import vector_network
from fpsmt.engines import decide
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import Format, context, float8_e4m3, float8_e5m2, float16, ieee
from fpsmt.floats.vector import to_floats, values
from fpsmt.kernel import Refuted
from fpsmt.networks import Execution, gradient, run
from fpsmt.networks.orders import LEFT_TO_RIGHT

FMT = float8_e4m3
LEFT = Execution(LEFT_TO_RIGHT)


def table(fmt: Format, count: int, inputs: int, seed: int = 0) -> VectorGradients:
    """Random points on few numbers of each axis, so that coordinates are shared; some gradients are 0."""
    rng, numbers = np.random.default_rng(seed), values(fmt, finite=True)
    axis = rng.choice(domain(fmt), 6, replace=False)
    points = np.unique(rng.choice(axis, (count, inputs)), axis=0)
    f, h = rng.choice(numbers, len(points)), rng.choice(numbers, len(points))
    g = rng.choice(numbers, points.shape) * (rng.random(points.shape) < 0.7)
    return VectorGradients(fmt, points, f, h, np.where(h[:, None] == 0.0, 0.0, g))


def claim_of(wanted: VectorGradients) -> RepresentsVectorGradients:
    columns = (wanted.points, wanted.values, wanted.upstream, wanted.gradients)
    return RepresentsVectorGradients(vector_network(context(wanted.format), *columns), wanted)


@pytest.mark.parametrize(
    ("fmt", "inputs"),
    [(ieee(4, 2), 2), (ieee(4, 3), 3), (float8_e4m3, 1), (float8_e4m3, 2), (float8_e5m2, 3), (float16, 2)],
)
def test_the_interpreter_agrees(fmt: Format, inputs: int) -> None:
    """Both passes of the ordinary network, at some of the points."""
    claim = claim_of(table(fmt, 20, inputs))
    assert decide(claim).name == "proved" and len(claim.network.layers) == 7
    net, wanted = claim.network.materialised(), claim.table
    for i in range(0, len(wanted), 9):
        x, (h,) = to_floats(fmt, wanted.points[i]), to_floats(fmt, wanted.upstream[i : i + 1])
        trace = run(net, x, LEFT)
        back = gradient(trace, [h], LEFT).gradient
        assert float(trace.output[0]) == wanted.values[i]
        assert [float(g) for g in back] == wanted.gradients[i].tolist()
        assert run_at(claim.network, x, h) == (trace.output[0], list(back))


def test_what_is_wrong_is_found() -> None:
    claim = claim_of(table(FMT, 30, 2, 3))
    for name, place in (("values", (5,)), ("gradients", (7, 1))):
        column = np.array(getattr(claim.table, name))
        column[place] = 1.75 if column[place] != 1.75 else 1.5
        upstream = np.where(claim.table.upstream == 0.0, 1.0, claim.table.upstream)
        verdict = decide(replace(claim, table=replace(claim.table, upstream=upstream, **{name: column})))
        assert isinstance(verdict, Refuted) and verdict.counterexample["point"] <= place[0]
    layers = list(claim.network.layers)
    for layer in (0, 1, 3, 5):
        bias = np.array(layers[layer].bias)
        bias[0] = 8.0 if bias[0] != 8.0 else 4.0
        changed = [*layers[:layer], replace(layers[layer], bias=bias), *layers[layer + 1 :]]
        assert isinstance(decide(replace(claim, network=replace(claim.network, layers=tuple(changed)))), Refuted)


def test_impossible_tables() -> None:
    one = np.ones((1, 2))
    with pytest.raises(UsageError, match="only 0 can come back"):
        VectorGradients(FMT, one, [1.0], [0.0], [[0.0, 1.0]])
    with pytest.raises(UsageError, match="twice"):
        VectorGradients(FMT, np.ones((2, 2)), [1.0, 1.0], [1.0, 1.0], np.ones((2, 2)))
    with pytest.raises(UsageError, match="n rows of d"):
        VectorGradients(FMT, [1.0], [1.0], [1.0], [1.0])
    with pytest.raises(UsageError, match="as many values"):
        VectorGradients(FMT, one, [1.0, 2.0], [1.0], one)
    with pytest.raises(UsageError, match="not all finite"):
        VectorGradients(FMT, one, [np.inf], [1.0], one)
    with pytest.raises(Unsupported, match="outside"):
        vector_network(context(FMT), 64 * one, np.ones(1), np.ones(1), one)
    with pytest.raises(Unsupported, match="power of two"):
        vector_network(context("ieee(3,3)"), one, np.ones(1), np.array([0.0625]), one)


def test_evidence() -> None:
    claim = claim_of(table(FMT, 9, 2, 1))
    record = json.loads(json.dumps(kernel.verdict_to_json(decide(claim))))
    assert claim_from_json(json.loads(json.dumps(claim.to_json()))) == claim
    kernel.check(record["evidence"], claim)
    other = claim_of(table(FMT, 9, 1, 1))
    with pytest.raises(UsageError, match="2 inputs"):
        replace(claim, network=other.network)
    with pytest.raises(EvidenceError, match="do not speak"):
        kernel.apply("both passes at every input", claim)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A table, its network, and the gradients that `fpsmt gradient` finds in it."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("x,y,f,h,g,k\n1,2,-2.5,2,0.25,-7\n1,-4,0,448,1,0\n-0.5,2,96,1,0.125,3\n")
    words = ["represent", "t.csv", "--format", "float8_e5m2", "--activation", "relu", "--gradients", "-o", "net.npz"]
    assert main(words) == 2 and "left-to-right" in capsys.readouterr().err
    assert main([*words, "--order", "left-to-right"]) == 0
    assert capsys.readouterr().out.startswith("represent proved layers=7 ")
    for at, upstream, goal in (("1,2", "2", "0.25,-7"), ("1,-4", "448", "1,0"), ("-0.5,2", "1", "0.125,3")):
        asked = [f"--at={at}", "--upstream", upstream, f"--target={goal}", "--order", "left-to-right", "--no-save"]
        assert main(["gradient", "net.npz", *asked]) == 0
        assert capsys.readouterr().out.startswith("gradient every 1 ")
    saved = str(next((tmp_path / "fpsmt-results").glob("represent-*.json")))
    assert main(["check", saved]) == 0
