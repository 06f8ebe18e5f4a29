"""Every function on a set of inputs: the rule, what it refuses, and its detectors against the reference arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import Represents, Universal, Values, claim_from_json
from fpsmt.cli import main
from fpsmt.constructions.cones import Lists, cone_of, last_hidden
from fpsmt.constructions.ending import Shared, last_rows
from fpsmt.constructions.intervals import ranges, row
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import Layer, Rows, SparseNetwork
from fpsmt.engines import Options, decide
from fpsmt.engines.representation import CONSTRUCTIONS, represent_tables, share
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.files.representations import random_tables, read_tables
from fpsmt.floats import all_values, context, exactly, float8_e4m3, float32
from fpsmt.floats.compiled import parameters
from fpsmt.floats.vector import to_floats, values
from fpsmt.functions import implementation_named
from fpsmt.kernel import Proved, Refuted, Unknown
from fpsmt.kernel.rules.universal import made
from fpsmt.networks import Sum, execution, load_arrays, run_batch
from fpsmt.networks.outcomes import reachable
from tests.represent.test_exhaustive import differs_somewhere, outputs

RULE = "representation of every function"
CTX = context("float8_e4m3")
LINE = np.unique(values(float8_e4m3, finite=True) + 0.0)
THREE = np.array([[-1.0], [0.0], [0.0625]])


def claim(points: np.ndarray = THREE, activation: str = "relu", layers: int = 4, dense: bool = False) -> Universal:
    return Universal(CTX, implementation_named(activation), points, layers, dense)


def shared(points: np.ndarray = THREE, activation: str = "relu", how: str = "conjunction") -> Shared:
    return share(how, Shape(CTX, implementation_named(activation)), points, Options())


def network(hidden: tuple[Layer, ...], last: Layer, activation: str = "relu") -> SparseNetwork:
    return SparseNetwork(CTX, 1, implementation_named(activation), (*hidden, last))


def asked(made_of: SparseNetwork, about: Universal | None = None) -> Any:
    return kernel.apply(RULE, about or claim(), {"detectors": made_of.to_json()})


def rows_of(*rows: list[tuple[int, float]], bias: float = 0.0) -> Layer:
    out = Rows()
    for terms in rows:
        out.add(terms, bias, True)
    return out.layer()


def with_terms(layer: Layer, **changed: np.ndarray) -> Layer:
    fields = {"starts": layer.starts, "columns": layer.columns, "weights": layer.weights, "bias": layer.bias}
    return Layer(**{**fields, **changed})


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu"])
def test_all_functions_on_all_finite_inputs(activation: str) -> None:
    verdict = decide(claim(LINE[:, None], activation))
    assert isinstance(verdict, Proved)
    stored = json.loads(json.dumps(kernel.verdict_to_json(verdict)))
    assert stored["claim"]["text"].endswith("X all 239 finite inputs of float8_e4m3")
    assert kernel.check_verdict(stored).name == "proved"
    stored["claim"]["statement"]["layers"] = 1
    with pytest.raises((EvidenceError, UsageError)):
        kernel.check_verdict(stored)


@pytest.mark.parametrize(
    ("activation", "how"), [("relu", "conjunction"), ("tanh", "centred"), ("sigmoid", "conjunction")]
)
def test_every_value_in_every_order_by_reference(activation: str, how: str) -> None:
    """One point takes all values of the format while the others keep theirs: every tree of every sum."""
    found = shared(THREE, activation, how)
    every = np.append(LINE, [np.inf, -np.inf])[::7]
    wanted = np.stack([every, np.roll(every, 1), np.roll(every, 2)])
    shape = Shape(CTX, implementation_named(activation))
    net = network(found.hidden, last_rows(shape, found, wanted), activation)
    weights = {float(x): x for x in all_values(float8_e4m3, finite=True) if not (x.is_zero and x.negative)}
    got = [outputs(net, to_floats(float8_e4m3, x), weights) for x in THREE]
    assert not differs_somewhere(got, [to_floats(float8_e4m3, ys) for ys in wanted])  # type: ignore[arg-type]
    represents = Represents(net, Values(float8_e4m3, THREE, wanted))
    assert isinstance(kernel.apply("representation by indicators", represents), Proved)
    assert isinstance(asked(network(found.hidden, found.one_hot(), activation), claim(THREE, activation)), Proved)


def test_a_detector_that_is_not_zero_elsewhere() -> None:
    found = shared()
    *below, top = found.hidden
    for weights in (np.where(np.arange(len(top.weights)) == 0, 0.0, top.weights), top.weights / 4):
        hidden = (*below, with_terms(top, weights=weights))
        verdict = asked(network(hidden, found.one_hot()))
        assert isinstance(verdict, Unknown) and "is not zero at" in verdict.reason


def test_detectors_of_other_points() -> None:
    found = shared()
    a, b, c = found.neurons.tolist()
    for rows, why in (
        ((b, a, c), "is not zero at"),
        ((a, b, [a[0], c[0]]), "is a detector of two inputs"),
        ((a, b), "one to 10 detectors for each input"),
        ((a, b, []), "one to 10 detectors for each input"),
    ):
        last = rows_of(*([(j, 1.0) for j in sorted(row)] for row in rows))
        verdict = asked(network(found.hidden, last))
        assert isinstance(verdict, Unknown) and why in verdict.reason, verdict


def test_a_detector_that_is_zero_at_its_point() -> None:
    found = shared()
    *below, top = found.hidden
    bias = top.bias.copy()
    bias[found.neurons[1]] = 0.0
    verdict = asked(network((*below, with_terms(top, bias=bias)), found.one_hot()))
    assert isinstance(verdict, Unknown) and "is zero there" in verdict.reason


@pytest.mark.parametrize(("returned", "copies", "missed"), [(1.0, 1, "-inf"), (0.25, 2, "-inf"), (1.125, 1, "")])
def test_a_result_from_which_a_value_is_not_made(returned: float, copies: int, missed: str) -> None:
    found = shared()
    *below, top = found.hidden
    hidden = (*below, with_terms(top, bias=np.where(top.bias != 0, returned, 0.0)))
    last = rows_of(*([(j, 1.0) for j in sorted(row[:copies])] for row in found.neurons.tolist()))
    verdict = asked(network(hidden, last))
    assert isinstance(verdict, Unknown) and f"{missed}" in verdict.reason and "is not made of" in verdict.reason


def test_a_detector_that_depends_on_the_order() -> None:
    """0.0625 ⊕ 16 ⊖ 16 is 0.0625 or 0, by the order."""
    points = np.array([[0.0625]])
    first = rows_of([(0, 1.0)])
    first = with_terms(first, starts=np.array([0, 1, 1, 1]), bias=np.array([0.0, 16.0, 16.0]))
    hidden = (first, rows_of([(0, 16.0), (1, 16.0), (2, -16.0)]))
    verdict = asked(network(hidden, rows_of([(0, 1.0)])), claim(points))
    assert isinstance(verdict, Unknown) and "is from" in verdict.reason


def test_what_is_not_about_the_claim() -> None:
    found = shared()
    good = network(found.hidden, found.one_hot())
    for other in (
        Universal(CTX, implementation_named("sigmoid"), THREE), claim(layers=2),
        Universal(context("float8_e4m3:RTZ"), implementation_named("relu"), THREE),
    ):  # fmt: skip
        with pytest.raises(EvidenceError):
            asked(good, other)
    assert isinstance(asked(good, claim(THREE[::-1])), Unknown)
    wide = asked(good, claim(LINE[:, None]))
    assert isinstance(wide, Unknown) and "for each input" in wide.reason


def test_terms_of_weight_zero() -> None:
    points = LINE[::40, None]
    assert isinstance(decide(claim(points, "tanh", dense=True)), Proved)
    assert isinstance(decide(claim(LINE[:, None])), Proved)
    verdict = decide(claim(LINE[:, None], dense=True))
    assert isinstance(verdict, Unknown) and "may return an infinity" in verdict.reason


@pytest.mark.parametrize(("text", "name"), [("float8_e4m3:RTZ", "unknown"), ("float8_e4m3fn:saturate", "proved")])
def test_infinities_are_values_where_the_format_has_them(text: str, name: str) -> None:
    """No sum rounds to inf towards zero."""
    about = Universal(context(text), implementation_named("relu"), THREE)
    assert decide(about).name == name


def test_weights_are_checked() -> None:
    v, w = np.array([1.0, 2.0, 240.0, 240.0]), np.array([0.0, 0.125, 240.0, 0.0])
    wanted = np.array([1.0, 2.125, np.inf, 240.0])
    wanted[1] = 2.0  # 2 ⊕ 0.125 ties to even
    one, none = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    assert made(CTX, wanted, pairs(v, w), one).all()
    assert made(CTX, wanted, pairs(v, w), none).tolist() == [True, False, False, True]
    for bad in (np.nan, np.inf, -np.inf):
        assert not made(CTX, wanted, pairs(np.full(4, bad), w), one).any()
        assert not made(CTX, wanted, pairs(v, np.full(4, bad)), one).any()
    assert not made(CTX, wanted, pairs(-v, w), one).any()
    assert not made(CTX, np.array([np.inf]), np.array([[240.0, -240.0]]), np.array([2.0, 2.0])).any()


def pairs(v: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.stack([v, w], axis=1)


@pytest.mark.parametrize(
    ("wanted", "weights", "result", "good"),
    [
        (240.0, [192, 192, 192, 192, 192], 0.25, True),
        (np.inf, [192, 192, 192, 192, 192, 64], 0.25, True),
        (-np.inf, [-192, -192, -192, -192, -192, -64], 0.25, True),
        (-np.inf, [192, 192, 192, 192, 192, 64], 0.25, False),
        (240.0, [192, 192, 192, 192, 192, 64], 0.25, False),  # 256 is infinite
        (np.inf, [192, 192, 192, 192, 192, 32], 0.25, False),  # 8 is not a multiple of 16
        (240.0, [240, 240, 240, 240], 0.25, False),  # 60 is not a multiple of 16
        (224.0, [192, 192, 192, 192, 192, -64], 0.25, False),  # both signs
        (17.0, [8, 8, 1], 1.0, False),  # not a float
        (18.0, [8, 8, 2], 1.0, True),
        (18.0, [8, 9, 1], 1.0, False),  # 9 is not a multiple of 2
    ],
)
def test_sums_of_several_products(wanted: float, weights: list[float], result: float, good: bool) -> None:
    """Those that are accepted have the value in every tree, by exhaustion."""
    results = np.full(len(weights), result)
    assert made(CTX, np.array([wanted]), np.array([weights], float), results).tolist() == [good]
    if good:
        terms = tuple(exactly(CTX.format, Fraction(w) * Fraction(result)) for w in weights)
        assert [float(y.decimal) for y in reachable(Sum(CTX, terms, execution=execution("any")))] == [wanted]


def test_the_statement_in_a_file() -> None:
    about = claim(np.array([[-0.0], [2.0]]), dense=True)
    again = claim_from_json(json.loads(json.dumps(about.to_json())))
    assert again == about and again.hash == about.hash and hash(again) == hash(about)
    assert "2 inputs of float8_e4m3 from 0.0 to 2.0" in about.text and "terms of weight 0 included" in about.text
    for points in ([[1.0], [1.0]], [[np.inf]], [1.0, 2.0], [[0.3]]):
        with pytest.raises(UsageError):
            claim(np.array(points))
    assert not about.replay({}).violates


@pytest.mark.parametrize("seed", range(6))
def test_where_neurons_are_not_zero(seed: int) -> None:
    """Compiled search against the evaluation of every neuron at every input; some cones share one first weight."""
    rng = np.random.default_rng(seed)
    small = LINE[(np.abs(LINE) <= 4) & (LINE != 0)]
    first, second = Rows(), Rows()
    weights = rng.choice(small, 3)
    for _ in range(8):
        first.add([(0, float(rng.choice(weights)))] if rng.random() < 0.9 else [], float(rng.choice(small)), True)
    first.add([(0, float(weights[0]))], 0.0, True)
    for i in range(12):
        columns = rng.choice(8, 2, replace=False)
        terms = [(int(j), float(rng.choice(small))) for j in sorted(columns)]
        second.add([*terms, (8, float(rng.choice(small)))][i % 2 :], float(rng.choice(LINE)), True)
    activation = ["relu", "sin", "identity", "tanh"][seed % 4]
    net = network((first.layer(), second.layer()), rows_of([(0, 1.0)]), activation)
    axis = LINE if seed % 2 else LINE[::30]
    hits = last_hidden(net, axis[:, None])
    known = {(j, i): ends for j, i, *ends in zip(hits.neuron.tolist(), hits.point.tolist(), hits.low, hits.high)}
    assert len(known) == len(hits.neuron)
    lists, low, high = [Lists(layer) for layer in net.layers[:-1]], np.zeros(len(axis)), np.zeros(len(axis))
    for j in range(12):
        row(cone_of(lists, 1, j).program, axis, ranges(net), parameters(CTX), low, high)
        for i in range(len(axis)):
            a, b = known.get((j, i), (0.0, 0.0))
            assert np.array_equal([a, b], [low[i], high[i]], equal_nan=True), (j, axis[i])


def test_constructions_make_what_they_promise() -> None:
    """Detectors of some points only; two equal ones where asked; results that do not depend on the point."""
    points = LINE[::34, None]
    needed = np.abs(points[:, 0]) > 1
    for name, activation in (("conjunction", "gelu"), ("centred", "tanh")):
        found = CONSTRUCTIONS[name](Shape(CTX, implementation_named(activation)), points, needed)
        neurons = [found.make(i, 0, again) for i in np.flatnonzero(needed).tolist() for again in (False, True)]
        net = network(found.hidden(), rows_of([(0, 1.0)]), activation)
        hits = last_hidden(net, points)
        assert sorted(hits.neuron.tolist()) == sorted(neurons), name
        assert (hits.low == found.returns[0][0]).all() and (hits.high == found.returns[0][0]).all()


def test_tables_on_shared_detectors(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two files with different inputs: the network has the inputs of both, and 0 where a table lacks one."""
    (tmp_path / "a.csv").write_text("-1,3\n0,inf\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("0,-0.001953125\n2,240\n", encoding="utf-8")
    wanted = read_tables([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], float8_e4m3)
    assert wanted.points[:, 0].tolist() == [-1.0, 0.0, 2.0]
    assert wanted.values.tolist() == [[3.0, 0.0], [np.inf, -(2.0**-9)], [0.0, 240.0]]
    words = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--format", "float8_e4m3", "--activation", "sigmoid"]
    into = ["--no-save", "--json", str(tmp_path / "r.json"), "-o", str(tmp_path / "net.npz")]
    assert main(["represent", *words, *into]) == 0
    assert capfd.readouterr().out.startswith("represent proved layers=3 ")
    assert main(["check", str(tmp_path / "r.json")]) == 0
    assert "2 verified 0 failed" in capfd.readouterr().out
    net = load_arrays(tmp_path / "net.npz")
    assert np.array_equal(run_batch(net, wanted.points)[net.output.name] + 0.0, wanted.values)
    (tmp_path / "b.csv").write_text("0,1,2\n", encoding="utf-8")
    assert main(["represent", *words, "--no-save"]) == 2
    assert main(["represent", *words, "--no-save", "--random", "1"]) == 2
    assert main(["represent", *words[2:], "--no-save", "--random", "0"]) == 2


def test_random_tables_hold_what_is_hard() -> None:
    found = random_tables(float8_e4m3, 3, seed=1)
    assert np.array_equal(found.points[:, 0], LINE) and found.values.shape == (239, 3)
    for column in found.values.T:
        assert {np.inf, -np.inf, 0.0, 240.0, -240.0, 2.0**-9, -(2.0**-9)} <= set(column.tolist())
    assert np.array_equal(found.values, random_tables(float8_e4m3, 3, seed=1).values)
    with pytest.raises(UsageError):
        random_tables(float32, 1)


def test_a_wrong_weight_among_many_tables_is_refuted() -> None:
    found, wanted = shared(LINE[:, None], "tanh", "centred"), random_tables(float8_e4m3, 5)
    last = last_rows(Shape(CTX, implementation_named("tanh")), found, wanted.values)
    about = Represents(network(found.hidden, last, "tanh"), wanted)
    assert isinstance(kernel.apply("representation by indicators", about), Proved)
    weights = last.weights.copy()
    weights[500] *= -1
    about = Represents(network(found.hidden, with_terms(last, weights=weights), "tanh"), wanted)
    assert isinstance(kernel.apply("representation by indicators", about), Refuted)


def test_a_context_without_the_values_of_a_table() -> None:
    verdict = represent_tables(context("float8_e4m3:RTZ"), implementation_named("relu"), random_tables(float8_e4m3, 1))
    assert verdict.verdict is None and verdict.every.verdict.name == "unknown"
