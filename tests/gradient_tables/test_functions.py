"""Gradients that are functions of the loss derivative: circuits, networks against the interpreter, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import AllGradientFunctions, GradientFunctions, RepresentsGradientFunctions, claim_from_json
from fpsmt.claims.gradient_representation import run_both
from fpsmt.constructions import gradient_cells
from fpsmt.constructions.gradient_cells import Circuits
from fpsmt.constructions.gradient_circuits import first_wrong
from fpsmt.constructions.gradient_functions import (
    circuit,
    function_network,
    least_layers,
    positive,
    run_circuit,
    scales,
)
from fpsmt.constructions.gradient_tables import domain
from fpsmt.engines import decide
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import Format, context, float8_e3m4, float8_e4m3, float8_e5m2, float16, ieee
from fpsmt.floats.vector import Carriers, are_numbers, to_floats, values
from fpsmt.kernel import Refuted
from fpsmt.networks import Execution, gradient, run
from fpsmt.networks.orders import LEFT_TO_RIGHT

FMT = float8_e4m3
LEFT = Execution(LEFT_TO_RIGHT)


def table(fmt: Format, points: Carriers, seed: int = 0) -> GradientFunctions:
    rng, numbers = np.random.default_rng(seed), values(fmt, finite=True)
    g = rng.choice(numbers, (len(points), fmt.largest_code)) * (rng.random((len(points), 1)) < 0.9)
    return GradientFunctions(fmt, points, rng.choice(numbers, len(points)), g)


def claim_of(wanted: GradientFunctions, layers: int = 12) -> RepresentsGradientFunctions:
    columns = (wanted.points, wanted.values, wanted.gradients)
    return RepresentsGradientFunctions(function_network(context(wanted.format), *columns, layers), wanted)


@pytest.mark.parametrize("fmt", [float8_e5m2, float8_e4m3, ieee(4, 3), float16], ids=str)
def test_circuits(fmt: Format) -> None:
    """sign(y)·A at ±y₀ and 0 elsewhere: every float above 0, in float16 some."""
    y = np.unique(values(fmt, finite=True) + 0.0)
    most = fmt.largest_code
    places = range(1, most + 1) if fmt.bits < 16 else [1, 2, 999, 4 * 1024, 4 * 1024 - 1, 15 << 10, most - 1, most]
    for place in places:
        found = run_circuit(context(fmt), circuit(context(fmt), place), y)
        wanted = np.zeros((2, len(y)))
        wanted[:, most + place], wanted[:, most - place] = scales(fmt), [-a for a in scales(fmt)]
        assert (found[-1] == wanted).all() and all(np.isfinite(level).all() for level in found)
        levels, above = circuit(context(fmt), place), positive(fmt)
        assert len(levels) == least_layers(fmt) - 3
        assert are_numbers(fmt, [w for level in levels for node in level for _, w in node]).all()
        assert first_wrong(context(fmt), levels, above, place - 1, scales(fmt)) == -1
        assert first_wrong(context(fmt), levels, above, place, scales(fmt)) in (place - 1, place)


def test_compiled_circuits() -> None:
    """The first loss derivative at which a changed circuit is wrong, by arrays and compiled."""
    ctx, y, rng = context(FMT), positive(FMT), np.random.default_rng(5)
    numbers, seen = values(FMT, finite=True), set()
    for place in rng.integers(1, FMT.largest_code + 1, 60).tolist():
        levels = [[list(node) for node in level] for level in circuit(ctx, place)]
        level = levels[rng.integers(len(levels))]
        node = level[rng.integers(len(level))]
        at = rng.integers(len(node))
        node[at] = (node[at][0], float(rng.choice(numbers)))
        found = run_circuit(ctx, levels, y)
        wanted = np.zeros((2, len(y)))
        wanted[:, place - 1] = scales(FMT)
        good = (found[-1] == wanted).all(axis=0) & np.isfinite(np.concatenate(found)).all(axis=0)
        first = -1 if good.all() else int(np.argmin(good))
        assert first_wrong(ctx, levels, y, place - 1, scales(FMT)) == first
        seen.add(first)
    assert len(seen) > 10


def test_the_interpreter_agrees() -> None:
    """Circuits for ten floats, the least and the largest among them; loss derivatives of these, and others."""
    points = domain(FMT)[[0, 96, 150]]
    wanted, some = table(FMT, points), [0, 1, 2, 28, 32, 33, 64, 100, 117, 118]
    g = np.zeros_like(wanted.gradients)
    g[:, some] = wanted.gradients[:, some]
    wanted = replace(wanted, gradients=g)
    claim = claim_of(wanted)
    assert decide(claim).name == "proved"
    net = claim.network.materialised()
    chosen = [119 + sign * (1 + k) for k in (0, 28, 33, 50, 118) for sign in (1, -1)]
    for i, x in enumerate(to_floats(FMT, points)):
        trace = run(net, [x], LEFT)
        assert float(trace.output[0]) == wanted.values[i]
        for j, y in zip(chosen, to_floats(FMT, wanted.upstream[chosen]), strict=True):
            back = gradient(trace, [y], LEFT).gradient[0]
            assert float(back) == wanted.all_gradients[i, j]
            if i == j % 3:
                assert run_both(claim.network, x, y) == (trace.output[0], back)


def test_more_layers() -> None:
    claim = claim_of(table(FMT, domain(FMT)[::60]), 14)
    assert decide(claim).name == "proved"
    assert claim_from_json(claim.to_json()) == claim


def test_a_wrong_weight_is_found() -> None:
    """The numbers by which a circuit brings its gradient to A; then one gradient of the table."""
    claim = claim_of(table(FMT, domain(FMT)[::40], 2))
    for layer in (3, 4):
        layers = list(claim.network.layers)
        weights = np.array(layers[layer].weights)
        assert weights[0] == -weights[1]
        weights[:2] *= 0.5
        layers[layer] = replace(layers[layer], weights=weights)
        verdict = decide(replace(claim, network=replace(claim.network, layers=tuple(layers))))
        assert isinstance(verdict, Refuted) and verdict.counterexample["upstream"] in (-1, 1)
    g = np.array(claim.table.gradients)
    g[3, 17] = -g[3, 17] or 1.0
    verdict = decide(replace(claim, table=replace(claim.table, gradients=g)))
    assert isinstance(verdict, Refuted) and verdict.counterexample == {"point": 3, "upstream": -18}


def test_tables_of_a_wrong_form() -> None:
    with pytest.raises(UsageError, match="119 gradients"):
        GradientFunctions(FMT, [1.0], [1.0], [[1.0]])
    with pytest.raises(UsageError, match="finite"):
        GradientFunctions(FMT, [1.0], [np.inf], np.ones((1, 119)))
    with pytest.raises(UsageError, match="twice"):
        GradientFunctions(FMT, [1.0, 1.0], [1.0, 1.0], np.ones((2, 119)))
    with pytest.raises(Unsupported, match="12 are needed"):
        function_network(context(FMT), np.ones(1), np.ones(1), np.ones((1, 119)), 11)
    with pytest.raises(Unsupported, match="13 are needed"):
        function_network(context(float16), np.ones(1), np.ones(1), np.ones((1, float16.largest_code)), 12)


def test_every_function() -> None:
    assert decide(AllGradientFunctions(context("float8_e4m3"), 12)).name == "proved"
    assert decide(AllGradientFunctions(context("float8_e4m3"), 11)).name == "unknown"
    assert decide(AllGradientFunctions(context("float8_e4m3:rtp"), 12)).name == "unknown"
    assert decide(AllGradientFunctions(context(float8_e3m4), 12)).name == "unknown"
    assert decide(AllGradientFunctions(context("float32"), 12)).name == "unknown"
    for rule in ("traces of gradient functions", "every table of gradient functions"):
        one = claim_of(table(FMT, np.ones(1)))
        wrong = AllGradientFunctions(context(FMT), 12) if rule.startswith("traces") else one
        with pytest.raises(EvidenceError, match="not speak"):
            kernel.apply(rule, wrong)


def test_weights_are_floats() -> None:
    """In ieee(4, 5) a circuit would need the weight −2⁸ beyond Ω; in float8_e4m3fn 9·2⁻¹⁰ below 2·ω is none."""
    wide, fn = context(ieee(4, 5)), context("float8_e4m3fn:nan")
    assert any(abs(w) > float(wide.format.largest) for level in circuit(wide, 1) for node in level for _, w in node)
    assert decide(AllGradientFunctions(wide, 12)).name == "unknown"
    circuits = Circuits(fn)
    assert circuits.are_floats([1.0, 9 * 2.0**-10, 512.0, np.nan, -(2.0**-9)]).tolist() == [True, *[False] * 3, True]
    for place in (118, 119, 120):
        weights = [w for level in circuit(fn, place) for node in level for _, w in node]
        assert circuits.are_floats(weights).all() and not circuits.circuit(place)


def test_wrong_circuits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    circuits = Circuits(context(FMT))
    assert not circuits.circuit(60)
    monkeypatch.setattr(gradient_cells, "circuit", lambda ctx, place: circuit(ctx, place + 1))
    assert "y₀" in circuits.circuit(60)
    monkeypatch.setattr(gradient_cells, "circuit", lambda ctx, place: ((((0, 2.0),),), *circuit(ctx, place)[1:]))
    assert "y₀" in circuits.circuit(60)
    which, weight = gradient_cells.lowest_weights(FMT, np.ones(1), np.ones(1))
    monkeypatch.setattr(gradient_cells, "lowest_weights", lambda *a: (which, 2 * weight))
    assert circuits.weights()
    assert positive(FMT)[-1] == 240
