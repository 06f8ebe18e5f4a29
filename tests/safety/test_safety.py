"""Safety of outputs on boxes, compared with every input and every outcome of small networks."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import Polytope, Property, Query, Safe
from fpsmt.engines import Options, decide
from fpsmt.engines.violations import violation
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import Float, context
from fpsmt.floats.vector import to_floats, values
from fpsmt.functions import implementation_named
from fpsmt.kernel.rules.safety import LEAF, read_tree, tree_text
from fpsmt.networks import Network, parse_execution, run
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.nodes import Affine, Constant, Input, Select
from fpsmt.networks.relaxation import Box, Relaxation, halves
from fpsmt.networks.relaxation_ascent import Effort, climb
from fpsmt.networks.relaxation_shares import good_shares

EXECUTIONS = ["any", "any fma=any", "any accumulator=float16", "left-to-right", "any products=exact bias=any"]


def network(rng: Random, fmt: str, sizes: tuple[int, ...], activation: str = "relu") -> Network:
    """Random weights in eighths, few bits each."""
    layers: list[object] = []
    for n, m in itertools.pairwise(sizes):
        weights = [[rng.randrange(-12, 13) / 8 for _ in range(n)] for _ in range(m)]
        layers += [(weights, [rng.randrange(-8, 9) / 8 for _ in range(m)]), activation]
    return Network.sequential(fmt, sizes[0], layers[:-1])


def claim(net: Network, execution: str, box: list[tuple[Fraction, Fraction]], limit: Fraction) -> Safe:
    """Unsafe: y0 − y1 ≥ limit."""
    polytope = Polytope.of([({0: -1, 1: 1}, -limit, False)])
    return Safe(net, parse_execution(execution), Property((Query(tuple(box), (polytope,)),)))


def outcomes(net: Network, execution: str, x: tuple[float, ...]) -> set[tuple[Fraction, ...]]:
    """Outputs of all executions of a network with two sums of at most two terms and a bias in each layer: every choice
    of schedules of every sum."""
    how = parse_execution(execution)
    sums = list(net.sums())
    listed = [list(how.schedules(n, bias)) for _, _, n, bias in sums]
    found = set()
    for trees in itertools.product(*listed):
        schedules = {(name, i): tree for (name, i, _, _), tree in zip(sums, trees, strict=True)}
        y = run(net, to_floats(net.input.format, list(x)), how, schedules).output
        found.add(tuple(v.fraction if v.is_finite else Fraction(10**9) for v in y))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_verdicts_are_those_of_every_input_and_every_execution(seed: int) -> None:
    rng = Random(seed)
    net = network(rng, "float8_e4m3", (2, 2, 2))
    execution = EXECUTIONS[seed % len(EXECUTIONS)].replace("float16", "float8_e5m2")
    if "fma=any" in execution or "exact" in execution:
        execution = "any fma=always"
    low, high = Fraction(rng.randrange(-4, 1), 4), Fraction(rng.randrange(1, 5), 4)
    x = [v for v in values(net.input.format, finite=True).tolist() if low <= v <= high]
    x = x[:: len(x) // 6 + 1]
    x = [v for v in x if v or not np.signbit(v)]
    lowest, highest = Fraction(min(x)), Fraction(max(x))
    worst = max(
        (y[0] - y[1] for pair in itertools.product(x, x) for y in outcomes(net, execution, pair)),
        default=Fraction(0),
    )
    for limit in (worst, worst + Fraction(1, 4), worst + 2):
        stated = claim(net, execution, [(lowest, highest)] * 2, limit)
        verdict = decide(stated, Options(timeout=1, seed=seed))
        if limit <= worst:
            assert verdict.name != "proved"  # a violation exists among these inputs
        if verdict.name == "proved":
            assert kernel.check_verdict(kernel.verdict_to_json(verdict)).name == "proved"
    assert decide(claim(net, execution, [(lowest, highest)] * 2, worst + 64), Options(timeout=5)).name == "proved"


@pytest.mark.parametrize("seed", range(4))
def test_tiny_boxes_are_decided_exactly(seed: int) -> None:
    """Boxes of a few floats: the verdict is that of all inputs and all executions, and none is unknown."""
    rng = Random(100 + seed)
    net = network(rng, "float8_e4m3", (1, 2, 2))
    all_values = [v for v in values(net.input.format, finite=True).tolist() if v > 0]
    at = rng.randrange(20, len(all_values) - 30)
    x = all_values[at : at + 4]
    worst = max(y[0] - y[1] for v in x for y in outcomes(net, "any", (v,)))
    box = [(Fraction(x[0]), Fraction(x[-1]))]
    assert decide(claim(net, "any", box, worst), Options(timeout=2)).name == "refuted"
    verdict = decide(claim(net, "any", box, worst + Fraction(1, 512)), Options(timeout=2))
    # bounds of a sum are exact, those of a difference of two outputs need not be
    assert verdict.name in ("proved", "unknown")


@pytest.mark.parametrize("fmt", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_linear_bounds_hold_in_random_executions(fmt: str, execution: str) -> None:
    rng = Random(f"{fmt} {execution}")
    net = network(rng, fmt, (3, 5, 4, 2))
    if fmt != "float16":
        execution = execution.replace("accumulator=float16", f"accumulator={fmt}")
    how = parse_execution(execution)
    relaxation = Relaxation(net, how)
    low, high = np.array([[-1.0, 0.25, -0.5]]), np.array([[0.5, 1.0, 0.0]])
    state = relaxation.state(low, high)
    below = relaxation.minorants(state, np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 0.0]]))
    assert np.isfinite(below.constants).all()
    a, k = below.slopes[0], below.constants[0]
    for _ in range(30):
        x = [float(low[0, i] + (high[0, i] - low[0, i]) * rng.randrange(9) / 8) for i in range(3)]
        schedules = {(name, i): how.random_schedule(n, rng, bias) for name, i, n, bias in net.sums()}
        trace = run(net, to_floats(net.input.format, x), how, schedules)
        y = [v.fraction for v in trace.output]
        for row, c in enumerate([(1, -1), (-1, 1), (1, 0)]):
            terms = [Fraction(float(s)) * Fraction(v) for s, v in zip(a[row], x, strict=True)]
            exact = sum(terms, Fraction(float(k[row])))
            assert c[0] * y[0] + c[1] * y[1] >= exact
        told = np.array([[2 * unit + (trace.values["affine1"][unit].fraction > 0) for unit in (0, 3)]])
        part = relaxation.state(low, high, relaxation.signed(None, told))
        signed = relaxation.minorants(part, np.array([[1.0, -1.0]]))
        more = relaxation.sign_minorants(part, told)
        held = [*zip(signed.slopes[0], signed.constants[0], [y[0] - y[1]], strict=True)]
        for at, unit in enumerate((0, 3)):
            z = trace.values["affine1"][unit].fraction
            held.append((more.slopes[0, at], more.constants[0, at], -abs(z)))
        for slope, constant, value in held:
            exact = sum((Fraction(float(s)) * Fraction(v) for s, v in zip(slope, x, strict=True)), Fraction(0))
            assert value >= exact + Fraction(float(constant))
        rows, limits = np.array([[1.0, -1.0], [-1.0, 0.5]]), np.array([0.25, -0.5])
        above = max(sum(Fraction(c) * v for c, v in zip(row, y, strict=True)) - Fraction(limit)
                    for row, limit in zip(rows.tolist(), limits.tolist(), strict=True))  # fmt: skip
        for some, signs in ((state, np.zeros((1, 0), np.int64)), (part, told)):
            start = np.array([[rng.random(), rng.random(), *[0.25] * signs.shape[1]]])
            climbed = climb(relaxation, some, rows, limits, start, signs, Effort(rng.randrange(1, 9), 9.0))
            assert np.isfinite(climbed.reached[0]) and above >= Fraction(float(climbed.reached[0]))
        again = relaxation.state(low, high, relaxation.signed(state.bounds, told), relaxation.after(told.max(1) // 2))
        for some, (at, name) in itertools.product((state, again), enumerate(("affine1", "affine2"))):
            ends = [end[:, relaxation.of(at)] for end in some.bounds]
            for i, v in enumerate(trace.values[name]):
                assert Fraction(float(ends[0][0, i])) <= v.fraction <= Fraction(float(ends[1][0, i]))


@pytest.mark.parametrize("activation", ["sigmoid", "tanh:ulps=4", "gelu", "softplus", "elu", "swish:floats=1"])
def test_linear_bounds_hold_with_every_activation(activation: str) -> None:
    """Inputs, executions, and results at either end of what each activation may return."""
    rng = Random(activation)
    net, how = network(rng, "bfloat16", (2, 3, 3, 2), activation), parse_execution("any fma=any")
    relaxation = Relaxation(net, how)
    low, high = np.array([[-1.0, 0.25]]), np.array([[0.5, 1.0]])
    state, rows = relaxation.state(low, high), np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 1.0]])
    below = relaxation.minorants(state, rows)
    assert np.isfinite(below.constants).all()
    use = implementation_named(activation)

    class Either(dict[tuple[str, str, Float], Float]):
        """One of the two farthest results at each input."""

        def get(self, key: Any, default: Any = None) -> Float:
            return self.setdefault(key, rng.choice(use.allowed(net.output.context, key[2])))

    for _ in range(20):
        x = [float(low[0, i] + (high[0, i] - low[0, i]) * rng.randrange(9) / 8) for i in range(2)]
        schedules = {(name, i): how.random_schedule(n, rng, bias) for name, i, n, bias in net.sums()}
        y = [v.fraction for v in run(net, to_floats(net.input.format, x), how, schedules, Either()).output]
        for row, slope, constant in zip(rows, below.slopes[0], below.constants[0], strict=True):
            exact = sum((Fraction(float(s)) * Fraction(v) for s, v in zip(slope, x, strict=True)), Fraction(0))
            assert sum(Fraction(float(c)) * v for c, v in zip(row, y, strict=True)) >= exact + Fraction(float(constant))


def test_bounds_beyond_the_largest_value_say_nothing() -> None:
    net = Network.sequential("float16", 2, [([[60000, 60000], [1, 1]], [0, 0])])
    relaxation = Relaxation(net, parse_execution("any"))
    state = relaxation.state(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]]))
    assert np.isneginf(relaxation.minorants(state, np.eye(2)).constants).all()
    state = relaxation.state(np.array([[0.0, 0.0]]), np.array([[0.5, 0.5]]))
    assert np.isfinite(relaxation.minorants(state, np.eye(2)).constants).all()


def test_what_is_not_understood_is_declined() -> None:
    with pytest.raises(Unsupported, match="turns without end"):
        Relaxation(Network.sequential("float16", 1, [([[1]], None), "sin"]), parse_execution("any"))
    with pytest.raises(Unsupported, match="gradual"):
        Relaxation(Network.sequential("float16:flush", 1, [([[1]], None)]), parse_execution("any"))


@pytest.mark.parametrize("fmt", ["float8_e4m3", "float16", "float32", "float64"])
def test_halves_lose_no_value(fmt: str) -> None:
    rng = np.random.default_rng(1)
    some = values(context("float8_e4m3").format, finite=True)
    a, b = rng.choice(some, 500), rng.choice(some, 500)
    low, high = np.minimum(a, b), np.maximum(a, b)
    low, high = low[low < high] + 0.0, high[low < high] + 0.0
    m, after = halves(context(fmt).format, low, high)
    assert ((low <= m) & (m < after) & (after <= high)).all()
    if fmt == "float8_e4m3":
        for x, y in zip(m, after, strict=True):
            assert not ((some > x) & (some < y)).any()


# -- the rule ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proved() -> kernel.Proved:
    net = Network.sequential("float32", 2, [([[1, 1], [1, -1]], [0, 0]), "relu", ([[1, 1], [0, 0]], [0, 0])])
    stated = claim(net, "any", [(Fraction(-1), Fraction(1))] * 2, Fraction(21, 10))
    verdict = decide(stated, Options(timeout=20))
    assert isinstance(verdict, kernel.Proved)
    assert verdict.evidence.found["boxes"] > 3
    return verdict


def _apply(stated: Safe, inputs: np.ndarray) -> kernel.Verdict:
    return kernel.apply("splits of the inputs", stated, {"trees": [tree_text(inputs)]})


def test_a_tree_with_a_leaf_less_or_more_is_refused(proved: kernel.Proved) -> None:
    stated = proved.claim
    assert isinstance(stated, Safe)
    tree = read_tree(proved.evidence.data["trees"][0]).inputs
    assert _apply(stated, tree).name == "proved"
    for bad in (
        tree[:-1],
        tree[1:],
        np.append(0, tree),
        np.append(tree, LEAF),
        np.append(tree, [0]),
        tree[:0],
        np.array([LEAF, 0, LEAF]),
    ):
        with pytest.raises(UsageError):
            _apply(stated, bad)
    for text in ("", "AAAA", 7, None, proved.evidence.data["trees"][0][:-8]):
        with pytest.raises(UsageError):
            kernel.apply("splits of the inputs", stated, {"trees": [text]})
    with pytest.raises(UsageError):
        kernel.apply("splits of the inputs", stated, {"trees": []})


def test_a_tree_that_splits_too_little_or_elsewhere_proves_nothing(proved: kernel.Proved) -> None:
    stated = proved.claim
    assert isinstance(stated, Safe)
    assert _apply(stated, np.array([LEAF])).name == "unknown"
    with pytest.raises(UsageError):
        _apply(stated, np.array([6, LEAF, LEAF]))


def test_a_tree_does_not_prove_another_claim(proved: kernel.Proved) -> None:
    stated = proved.claim
    assert isinstance(stated, Safe)
    trees = dict(proved.evidence.data)
    query = stated.safety.queries[0]
    wider = Query(tuple((low - 1, high + 1) for low, high in query.box), query.unsafe)
    stricter = Query(query.box, (Polytope.of([({0: -1, 1: 1}, Fraction(-2), False)]),))
    for other in (wider, stricter):
        assert kernel.apply("splits of the inputs", replace(stated, safety=Property((other,))), trees).name == "unknown"
    with pytest.raises(EvidenceError):
        kernel.check({"rule": "splits of the inputs", "data": trees, "premises": []},
                     replace(stated, safety=Property((wider,))))  # fmt: skip


def test_a_side_of_one_value_is_not_split(proved: kernel.Proved) -> None:
    stated = proved.claim
    assert isinstance(stated, Safe)
    query = Query(((Fraction(1), Fraction(1)),) * 2, stated.safety.queries[0].unsafe)
    with pytest.raises(EvidenceError, match="one value"):
        _apply(replace(stated, safety=Property((query,))), np.array([0, LEAF, LEAF]))


def test_a_mixture_climbs() -> None:
    """relu(x) − x/2 ≥ 0: neither of the lower lines 0 and x of relu shows it, one between them does."""
    unsafe = Polytope.of([({0: 1}, Fraction(-1, 100), False)])
    net = Network.sequential("float32", 1, [([[1], [1]], [0, 1]), "relu", ([[1, -0.5], [0, 0]], [0.5, 0])])
    stated = Safe(net, parse_execution("any"), Property((Query(((Fraction(-1), Fraction(1)),), (unsafe,)),)))
    assert _apply(stated, np.array([LEAF])).name == "proved"


def test_signs_of_units_split_executions() -> None:
    """relu(x) − relu(x), as two units: the lines of one and of the other do not cancel, those of their signs do."""
    net = Network.sequential("float32", 1, [([[1], [-1]], [0, 0]), "relu", ([[0.5, 0.5], [0, 0]], [0, 0])])
    unsafe = Polytope.of([({0: 1}, Fraction(-1, 100), False)])
    stated = Safe(net, parse_execution("any"), Property((Query(((Fraction(-1), Fraction(1)),), (unsafe,)),)))
    net2 = Network.sequential("float32", 1, [([[1], [1]], [0, 0]), "relu", ([[1, -1], [0, 0]], [0, 0])])
    other = replace(stated, network=net2)
    assert _apply(other, np.array([LEAF])).name == "unknown"
    assert _apply(other, np.array([1, LEAF, LEAF])).name == "unknown"
    assert _apply(other, np.array([2, LEAF, LEAF])).name == "proved"
    assert _apply(other, np.array([1, 1, LEAF, LEAF, LEAF])).name == "unknown"
    assert _apply(other, np.array([1, 1, 2, LEAF, LEAF, 2, LEAF, LEAF, 2, LEAF, LEAF])).name == "proved"
    with pytest.raises(UsageError, match="4 units"):
        _apply(other, np.array([5, LEAF, LEAF]))
    assert _apply(stated, np.array([LEAF])).name == "proved"


def test_a_tree_for_each_polytope(proved: kernel.Proved) -> None:
    stated = proved.claim
    assert isinstance(stated, Safe)
    query = stated.safety.queries[0]
    two = replace(stated, safety=Property((replace(query, unsafe=query.unsafe * 2),)))
    text, leaf = proved.evidence.data["trees"][0], tree_text(np.array([LEAF]))
    for trees, name in (([[text, text]], "proved"), ([text], "proved"), ([[text, leaf]], "unknown")):
        assert kernel.apply("splits of the inputs", two, {"trees": trees}).name == name
    for wrong in ([[text]], [[text] * 3], [[]], [[text, 7]], [[text, [text]]]):
        with pytest.raises(UsageError, match="tree"):
            kernel.apply("splits of the inputs", two, {"trees": wrong})


def test_boxes_without_a_value_have_nothing_to_prove() -> None:
    net = Network.sequential("float16", 1, [([[1], [2]], None)])
    stated = claim(net, "any", [(Fraction(1, 3), Fraction(1, 3))], Fraction(-100))
    assert decide(stated).name == "proved"


def test_every_execution_or_some() -> None:
    """2048 + 1 + 1 in float16 is 2048 or 2050: unsafe in some orders only."""
    net = Network.sequential("float16", 3, [([[1, 1, 1], [0, 0, 0]], None)])
    box = [(Fraction(2048), Fraction(2048)), (Fraction(1), Fraction(1)), (Fraction(1), Fraction(1))]
    stated = claim(net, "any", box, Fraction(2050))
    verdict = decide(stated, Options(timeout=20))
    assert isinstance(verdict, kernel.Refuted)
    found = violation(stated, verdict.counterexample)
    assert (found.every, found.real, found.outputs) == (False, True, (2050, 0))
    exactly = claim(net, "any", box, Fraction(2048))
    assert violation(exactly, verdict.counterexample).violated_by == "every"
    downwards = Safe(net, stated.executions, Property((Query(tuple(box), (Polytope.of([({0: 1}, 2049, False)]),)),)))
    verdict = decide(downwards, Options(timeout=20))
    assert isinstance(verdict, kernel.Refuted)
    assert violation(downwards, verdict.counterexample).violated_by == "execution-only"
    assert decide(claim(net, "any", box, Fraction(2051)), Options(timeout=20)).name == "proved"
    assert enclosures(net, [[2048.0, 1.0, 1.0]])["affine1"][1].max() == 2050


def proved_at_once(net: Network, polytope: Polytope, low: int, high: int) -> bool:
    """Whether the rule proves that the polytope is not met for inputs in [low, high], without a split."""
    box = ((Fraction(low), Fraction(high)),) * net.input.size
    stated = Safe(net, parse_execution("any"), Property((Query(box, (polytope,)),)))
    return kernel.apply("splits of the inputs", stated, {"trees": [tree_text(np.array([LEAF]))]}).name == "proved"


@pytest.mark.parametrize("layers", [["relu"], [([[1]], None), "relu"], [([[1]], [0]), "relu", "relu"]])
def test_the_last_relu_counts(layers: list[object]) -> None:
    """The output is relu(−1) = 0 at −1, and not −1."""
    net = Network.sequential("float16", 1, layers)
    assert not proved_at_once(net, Polytope.of([({0: -1}, Fraction(1, 2), False)]), -1, -1)
    assert proved_at_once(net, Polytope.of([({0: 1}, Fraction(-1, 2), False)]), -1, 1)


def selecting(order: tuple[str, str], picks: tuple[tuple[int, int], ...]) -> Network:
    ctx = context("float16")
    nodes = (
        Input(name="x", context=ctx, size=2),
        Constant(name="c", context=ctx, values=np.array([5.0, 7.0])),
        Select(name="s", context=ctx, nodes=order, picks=picks),
        Affine(name="y", context=ctx, source="s", weights=np.eye(len(picks))),
    )
    return Network(nodes, ("y",))


@pytest.mark.parametrize("order", [("c", "x"), ("x", "c")])
@pytest.mark.parametrize("places", [((0, 0), (1, 1)), ((1, 0), (0, 1)), ((0, 1), (0, 0), (1, 1), (1, 0))])
def test_constants_among_what_is_selected(order: tuple[str, str], places: tuple[tuple[int, int], ...]) -> None:
    """Inputs are in [0, 1], the constants are 5 and 7: each output is bounded by what it is, and by no more."""
    net = selecting(order, places)
    for j, (k, i) in enumerate(places):
        low, high = ((5, 7)[i],) * 2 if order[k] == "c" else (0, 1)
        for end, sign in ((low, 1), (high, -1)):
            assert not proved_at_once(net, Polytope.of([({j: sign}, sign * end, False)]), 0, 1)
            assert proved_at_once(net, Polytope.of([({j: sign}, sign * end - Fraction(1, 8), False)]), 0, 1)


def test_coefficients_beyond_float64_are_left_open() -> None:
    net = Network.sequential("float16", 1, ["relu"])
    for polytope in (Polytope.of([({0: 10**400}, -1, False)]), Polytope.of([({0: 1}, -(10**400), False)])):
        box = ((Fraction(0), Fraction(1)),)
        stated = Safe(net, parse_execution("any"), Property((Query(box, (polytope,)),)))
        assert kernel.apply("splits of the inputs", stated, {"trees": [tree_text(np.array([LEAF]))]}).name == "unknown"
        assert decide(stated, Options(timeout=5)).name == "proved"  # by intervals, in exact rationals
    met = Safe(net, parse_execution("any"), Property((Query(box, (Polytope.of([({0: 10**400}, 10**300, False)]),)),)))
    assert decide(met, Options(timeout=5)).name == "refuted"


def test_shares_never_vanish() -> None:
    """Where no combination is above 0, the best one found is still a combination of the rows."""
    rng = np.random.default_rng(2)
    slopes, constants = rng.normal(size=(40, 3, 2)), rng.uniform(-1, 0, (40, 3))
    shares = good_shares(Box(-np.ones((40, 2)), np.ones((40, 2))), slopes, constants, np.zeros((40, 3)), 8)
    assert (shares >= 0).all() and (shares.sum(axis=1) > 0).all()


def test_results_of_activations_are_part_of_the_execution_found() -> None:
    """tanh within 3 ulps reaches a threshold that its correctly rounded values do not."""
    use = implementation_named("tanh:ulps=3")
    net = Network.sequential("float16", 1, [use, ([[1], [2]], None)])
    x = to_floats(net.input.format, [0.5])[0]
    most = use.allowed(net.output.context, x)[1].fraction
    box = ((x.fraction, x.fraction),)
    for limit, name in ((most, "refuted"), (most + Fraction(1, 2**20), "proved")):
        unsafe = Polytope.of([({0: -1}, -limit, False)])
        verdict = decide(Safe(net, parse_execution("any"), Property((Query(box, (unsafe,)),))), only="splits")
        assert verdict.name == name
