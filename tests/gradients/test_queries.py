"""Questions over boxes, for values and free weights: against every input and execution, and in real numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from fpsmt.claims.gradient_targets import KINDS, Target
from fpsmt.cli import main
from fpsmt.engines import Options
from fpsmt.engines.gradient_queries import Query, ask, wrong_sign
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import exactly, float8_e4m3, float32, from_ordinal, infinity, nan, zero
from fpsmt.networks import Network, gradient, run
from fpsmt.networks.reach import GradientProblem, reachable_gradients
from fpsmt.networks.real_gradients import real_gradient

FMT = float8_e4m3


def network(rng: Random) -> Network:
    """1 – 3 – 1 ReLU units with weights that round and cancel."""
    draw = lambda: rng.choice([1, 1.125, -1, 16, -16, 0.5, 18, 240]) * rng.choice([1, -1])  # noqa: E731
    layers = [([[draw()] for _ in range(3)], [draw() for _ in range(3)]), "relu", ([[draw() for _ in range(3)]], [1])]
    return Network.sequential("float8_e4m3", 1, [*layers, "relu"])


def test_every_input_and_execution() -> None:
    """Against the exact set of gradients at each input of the box."""
    rng, seen = Random(7), set()
    for _ in range(12):
        net, start = network(rng), rng.randrange(-60, 50)
        ends = from_ordinal(FMT, start), from_ordinal(FMT, start + 6)
        target = rng.choice([Target(k) for k in KINDS] + [Target("", exactly(FMT, -16), exactly(FMT, 16))])
        one = (exactly(FMT, 1),)
        inputs = [from_ordinal(FMT, start + k) for k in range(7)]
        found = {g for x in inputs for (g,) in reachable_gradients(GradientProblem(net, (x,), one))}
        good = {target.holds(g) for g in found}
        for some in (False, True):
            answer = ask(Query(GradientProblem(net, ends[:1], one), (ends,), (target,), some=some), Options())
            assert answer.verdict.name == ("refuted" if some in good else "proved")
            seen.add((some, answer.verdict.name))
            assert (answer.witness is None) == (answer.verdict.name == "proved")
            if answer.witness is not None:
                (g,) = answer.witness.problem.value(answer.witness.trace)
                assert g in found and target.holds(g) == some
    assert len(seen) == 4


def test_kinds() -> None:
    one, inf = exactly(FMT, 1), infinity(FMT)
    values = [one, -one, zero(FMT), zero(FMT, True), inf, nan(FMT)]
    expected = {
        "any": values, "zero": values[2:4], "nonzero": [one, -one, inf, nan(FMT)], "nan": [nan(FMT)],
        "finite": values[:4], "infinite": [inf], "positive": [one, inf], "negative": [-one],
    }  # fmt: skip
    assert {kind: [x for x in values if Target(kind).holds(x)] for kind in KINDS} == expected
    assert [Target("", x, x).holds(x) for x in values] == [True] * 6
    assert not Target("", zero(FMT), zero(FMT)).holds(zero(FMT, True))
    with pytest.raises(UsageError, match="no target"):
        Target("blue")


def test_free_weights() -> None:
    """A map by one weight of at most 2 has no gradient 3; one of two units has, with a value asked for beside it."""
    line = Network.sequential("float8_e4m3", 1, [([[1]], [0])])
    one, two, three = (exactly(FMT, k) for k in (1, 2, 3))
    box, free, goal = ((one, one),), (-two, two), (Target("", three, three),)
    assert (
        ask(Query(GradientProblem(line, (one,), (one,)), box, goal, None, True, free), Options()).verdict.name
        == "proved"
    )
    pair = Network.sequential("float8_e4m3", 1, [([[1], [1]], None), "relu", ([[1, 1]], None)])
    query = Query(GradientProblem(pair, (one,), (one,)), box, goal, (Target("", three, three),), True, free)
    witness = ask(query, Options()).witness
    assert witness is not None and witness.problem.network != pair
    trace = witness.trace
    assert trace.gradient == (three,) and trace.forward.output == (three,)
    weights = [w for name in ("affine1", "affine2") for w in witness.problem.network.node(name).weights.ravel()]
    assert all(abs(w) <= 2 for w in weights)


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh", "gelu", "elu"])
def test_real_gradients(activation: str) -> None:
    """The intervals of points are narrow, hold what float32 comes near to, and lie within those of boxes."""
    rng = np.random.default_rng(2)
    shapes = [((3, 2), 3), ((3, 3), 3), ((1, 3), 1)]
    parts = [(rng.integers(-8, 9, shape) / 4, rng.integers(-8, 9, n) / 4) for shape, n in shapes]
    net = Network.sequential("float32", 2, [parts[0], activation, parts[1], activation, parts[2]])
    one = [exactly(float32, 1)]
    low, high = ([exactly(float32, Fraction(k, 8)) for k in ks] for ks in ((-5, 3), (-3, 4)))
    wide = real_gradient(net, list(zip(low, high)), one)
    for k in range(5):
        x = [exactly(float32, (a.fraction * k + b.fraction * (4 - k)) / 4) for a, b in zip(low, high)]
        exact = real_gradient(net, list(zip(x, x)), one)
        near = gradient(run(net, x), one).gradient
        for (a, b), (c, d), g in zip(exact, wide, near, strict=True):
            assert c <= a <= b <= d and b - a < Fraction(1, 2**60)
            assert abs(g.fraction - a) <= Fraction(1, 2**15)


def test_the_wrong_sign() -> None:
    """Slopes 2²⁴, 1, −2²⁴, −½ have the sum ½; some backward order has −½.  At a kink there is no one sign."""
    slopes = [2.0**24, 1, -(2.0**24), -0.5]
    layers = [([[s] for s in slopes], [(1 if s > 0 else 2) - s for s in slopes]), "relu", ([[1] * 4], [0]), "relu"]
    net, one = Network.sequential("float32", 1, layers), exactly(float32, 1)
    problem = GradientProblem(net, (one,), (one,))
    query = Query(problem, ((one, one),), (Target("any"),), some=True)
    assert real_gradient(net, query.box, [one]) == [(Fraction(1, 2), Fraction(1, 2))]
    assert wrong_sign(query) == (Target("negative"),)
    assert any(wrong_sign(query)[0].holds(g) for (g,) in reachable_gradients(problem))
    kink = Network.sequential("float32", 1, ["relu"])
    nothing = zero(float32)
    with pytest.raises(Unsupported, match="no one sign"):
        wrong_sign(Query(GradientProblem(kink, (nothing,), (one,)), ((nothing, nothing),), (Target("any"),)))


# -- the command ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    w, half = 2048.0, np.float16
    np.savez(
        tmp_path / "units.npz",
        weights1=np.array([[w], [1], [w]], half), bias1=np.array([1 - w, 0, 1 - w], half),
        weights2=np.array([[1, 1, -1]], half),
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "first"),
    [
        ("--at 1 --target 0:1", 0, "gradient every 2 0.0 1.0"),
        ("--at 1 --target zero", 1, "gradient some 2 0.0 1.0"),
        ("--at 1 --target nan --some", 1, "gradient never 2 0.0 1.0"),
        ("--at 1 --target wrong-sign --some", 1, "gradient never 2 0.0 1.0"),
        ("--box 0.5:1 --target 0:3000", 0, "gradient every"),
        ("--box 0.5:1 --target nonzero", 1, "gradient not-every"),
        ("--box 0.5:1 --target nan --some", 1, "gradient never"),
        ("--box 0.5:1 --target zero --some", 0, "gradient some"),
        ("--at 1 --target zero --value 1 --some", 0, "gradient some"),
        ("--at 1 --target any --value 1", 0, "gradient every"),
    ],
)
def test_answers(words: str, code: int, first: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gradient", "units.npz", *words.split(), "--no-save"]) == code
    assert capsys.readouterr().out.splitlines()[0] == first


def test_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--box 0.5:1 --target zero --value 1 --some --json out.json"
    assert main(["gradient", "units.npz", *words.split()]) == 0
    out = capsys.readouterr().out
    assert "backward column 0" in out and "∃ 0.5 ≤ x0 ≤ 1.0 ∃ execution: gradient zero, value 1.0" in out
    result = json.loads((folder / "out.json").read_text())["result"]
    assert result["reached"] == "some" and result["witness"]["gradient"] == ["0x0p+0"]
    saved = str(next((folder / "fpsmt-results").glob("gradient-*.json")))
    assert main(["check", saved]) == 0
    assert capsys.readouterr().out.startswith("check 1 verified 0 failed")
    assert main(["replay", saved]) == 0
    assert capsys.readouterr().out.startswith("replay 1 of 1 reproduced")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("--at 1 --box 0:1 --target zero", "--at X"),
        ("--box 1:0 --target zero", "empty range"),
        ("--box 0:1,0:1 --target zero", "2 ranges are given, and 1 are needed"),
        ("--box 0:1", "say which gradient"),
        ("--at 1 --target blue", "cannot read 'blue'"),
        ("--at 1 --target zero,zero", "2 targets are given, and 1 are needed"),
        ("--at 1 --target wrong-sign --free-weights 0:1", "no one sign for all weights"),
        ("--at 1 --target zero --free-weights 0:inf", "are finite"),
        ("--box 0:1 --target wrong-sign", "no one sign here"),
    ],
)
def test_usage(words: str, what: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gradient", "units.npz", *words.split(), "--no-save"]) == 2
    assert what in capsys.readouterr().err
