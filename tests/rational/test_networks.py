"""Networks that are proved part by part: the rules, what they refuse, and the numbers that they seal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import NetworkWithin, SupNorm
from fpsmt.engines import Options, decide
from fpsmt.engines.approximation import certified_minimax, certified_sup_norm
from fpsmt.engines.rational_networks import certified_lifting, certified_network, certified_relu, certified_root
from fpsmt.engines.size_law import exponent, sizes
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.kernel import apply, check_verdict, verdict_to_json
from fpsmt.rational import Builder, Problem, Rational, constant, named, rational
from fpsmt.rational.aaa import aaa
from fpsmt.rational.activations import NETWORKS, design, network
from fpsmt.rational.formulas import Balls
from fpsmt.rational.layers import Layer
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import to_fmpq
from fpsmt.rational.propagation import Replacement, propagated
from fpsmt.rational.steps import is_odd_chain
from fpsmt.rational.supnorm import error_at
from fpsmt.rational.zolotarev import balanced_ell, composed_sign

UNIT = ((F(-1), F(1)),)
EIGHTH = ((F(-1, 8), F(1, 8)),)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_keeps_its_promise(name):
    error = F(1, 10**4)
    claim = SupNorm(named(name), network(name, F(3, 2), error), ((F(-3, 2), F(3, 2)),), error)
    verdict = decide(claim, Options(timeout=60))
    assert verdict.name == "proved"
    for x in (F(-3, 2), F(-1, 7), F(0), F(1), F(3, 2)):
        assert error_at(claim.problem, x, 20) <= to_fmpq(error)


@pytest.mark.parametrize(("name", "digits"), [("gelu_tanh", 20), ("elu", 12), ("relu", 100), ("gelu", 100)])
def test_small_errors(name, digits):
    proof = decide(SupNorm(named(name), network(name, F(1), F(1, 10**digits)), UNIT, F(1, 10**digits)))
    assert proof.name == "proved" and check_verdict(verdict_to_json(proof)).name == "proved"


def test_the_proof_has_a_rule_for_each_part():
    proof = certified_network("gelu_tanh", F(1), F(1, 10**8))
    rules, waiting = set(), [proof]
    while waiting:
        step = waiting.pop()
        rules.add(step.how)
        waiting += step.evidence.premises
    assert rules == {"triangle inequality", "propagation of errors", "rational enclosure", "Halley step"}
    assert all("python-flint" in word for word in proof.evidence.all_trusted)


def test_networks_that_are_not_built_here():
    build = Builder()
    gated = build.formula(build.product(0, build.call("tanh", 0)))
    found = design(gated, F(-1), F(1), F(1, 1000))
    assert found.formula.is_rational and [part.name for part in found.parts] == ["tanh"]
    with pytest.raises(Unsupported):
        build = Builder()
        design(build.formula(build.call("sign", build.call("tanh", 0))), F(-1), F(1), F(1, 1000))
    with pytest.raises(UsageError, match="no construction"):
        certified_network("sin", F(1), F(1, 10))


# -- carried errors are upper bounds --------------------------------------------------------------------------

numbers = st.fractions(-2, 2, max_denominator=8)


@st.composite
def formulas(draw):
    """Random formulas with two functions in them."""
    build, values = Builder(), [0]
    for _ in range(draw(st.integers(2, 6))):
        kind, a, b = draw(st.integers(0, 5)), draw(st.sampled_from(values)), draw(st.sampled_from(values))
        if kind == 0:
            values.append(build.affine(draw(numbers), (draw(numbers), a), (draw(numbers), b)))
        elif kind == 1:
            values.append(build.product(a, b))
        elif kind == 2:
            values.append(build.rational(Rational.make((draw(numbers), draw(numbers), 1), (3, 0, 1)), a))
        elif kind == 3:
            values.append(build.quotient(a, build.affine(5, (1, b))))
        else:
            values.append(build.call("tanh" if kind == 4 else "relu", a))
    return build.formula(values[-1])


@given(formulas(), st.fractions(-1, 1, max_denominator=16), st.sampled_from([F(1, 7), F(1, 1000), F(-1, 50)]))
@settings(max_examples=60, deadline=None)
def test_carried_errors_hold(formula, x, shift):
    """Each function is replaced by itself plus a number."""
    calls = formula.calls
    others = {}
    for k, name in enumerate(calls):
        build = Builder()
        others[k] = build.formula(build.affine(shift, (1, build.call(name, 0))))
    line = ((F(-(10**6)), F(10**6)),)
    bound = propagated(formula, {k: Replacement(line, abs(shift)) for k in others}, UNIT, 8, 64)
    if bound is None:
        return
    moved = formula.with_calls(others)
    with working(200, 2):
        assert not abs(formula.ball(x, 200) - moved.ball(x, 200)) > bound


# -- what the rules refuse ------------------------------------------------------------------------------------


def tighter(claim: SupNorm, factor: F) -> SupNorm:
    return replace(claim, bound=claim.bound * factor)


def test_triangle():
    proof = certified_network("gelu_tanh", F(1), F(1, 1000))
    first, second = proof.evidence.premises
    assert apply("triangle inequality", proof.claim, premises=[first, second]).name == "proved"
    assert apply("triangle inequality", tighter(proof.claim, F(1, 2)), premises=[first, second]).name == "unknown"
    wide = replace(proof.claim, domain=((F(-1), F(2)),))
    for claim, premises in ((proof.claim, [second, first]), (wide, [first, second]), (proof.claim, [first])):
        with pytest.raises(EvidenceError):
            apply("triangle inequality", claim, premises=premises)


def test_propagation():
    proof = certified_network("gelu_tanh", F(1), F(1, 1000)).evidence.premises[1]
    data, parts = dict(proof.evidence.data), list(proof.evidence.premises)
    rule = "propagation of errors"
    assert apply(rule, proof.claim, data, parts).name == "proved"
    assert apply(rule, tighter(proof.claim, F(1, 4)), data, parts).name == "unknown"
    beyond = replace(proof.claim, domain=((F(-2), F(2)),))  # the network of tanh is not known there
    assert apply(rule, beyond, data, parts).name == "unknown"
    for bad in ({**data, "replaced": []}, {**data, "parts": 0}, {**data, "replaced": [[5, 0]]}):
        with pytest.raises(EvidenceError):
            apply(rule, proof.claim, bad, parts)
    with pytest.raises(EvidenceError):
        apply(rule, replace(proof.claim, approximation=named("gelu_tanh")), data, parts)


def test_halley():
    proof = certified_network("tanh", F(1, 8), F(1, 10**9))
    inner, log = proof.evidence.premises
    assert proof.how == "Halley step" and log.claim.target == named("log")
    assert apply("Halley step", proof.claim, premises=[inner, log]).name == "proved"
    assert apply("Halley step", tighter(proof.claim, F(1, 100)), premises=[inner, log]).name == "unknown"
    for premises in ([log, inner], [inner, inner]):
        with pytest.raises(EvidenceError):
            apply("Halley step", proof.claim, premises=premises)


def test_newton_root():
    proof = certified_root(3, F(1, 2), 3)
    data, (before,) = dict(proof.evidence.data), proof.evidence.premises
    rule = "Newton step for a root"
    assert apply(rule, proof.claim, data, [before]).name == "proved"
    assert apply(rule, tighter(proof.claim, F(99, 100)), data, [before]).name == "unknown"
    negative = {**data, "a": "-" + data["a"]}
    absolute = replace(proof.claim, relative=False)
    for claim, wrong in ((proof.claim, negative), (absolute, data), (proof.claim, {**data, "b": "1"})):
        with pytest.raises(EvidenceError):
            apply(rule, claim, wrong, [before])
    found = error_at(Problem(named("root(3)"), proof.claim.approximation, proof.claim.domain, True), F(1, 3), 30)
    assert found <= to_fmpq(proof.claim.bound)


def test_relu():
    proof = certified_relu(composed_sign(3, balanced_ell(27)), F(2))
    above, below = proof.evidence.premises
    rule, data = "ReLU from a sign", {"size": "2"}
    assert apply(rule, proof.claim, data, [above, below]).name == "proved"
    assert apply(rule, tighter(proof.claim, F(9, 10)), data, [above, below]).name == "unknown"
    assert apply(rule, replace(proof.claim, domain=((F(-3), F(3)),)), data, [above, below]).name == "unknown"
    for size, premises in (("1", [above, below]), ("2", [below, above]), ("2", [above, above])):
        with pytest.raises(EvidenceError):
            apply(rule, proof.claim, {"size": size}, premises)
    assert is_odd_chain(composed_sign(2, F(1, 9)).formula) and not is_odd_chain(constant(1))
    assert not is_odd_chain(rational(Rational.make((0, 1, 1)))) and not is_odd_chain(named("tanh"))


# -- whole networks -------------------------------------------------------------------------------------------


def block(gate: bool) -> list[Layer]:
    other = ([[1, 0.25], [0, -1]], [0.5, 0]) if gate else None
    return [Layer.of([[1, -1], [0.5, 2]], [0, 0.25], "swish", other), Layer.of([[1, 1], [2, -1]], [0, 1])]


@pytest.mark.parametrize("gate", [False, True])
def test_lifting(gate):
    layers, box = block(gate), ((F(-1), F(1)), (F(0), F(1, 2)))
    proof = certified_lifting(layers, box, F(1, 10**5))
    claim, parts = proof.claim, list(proof.evidence.premises)
    assert check_verdict(verdict_to_json(proof)).name == "proved"
    rule, data = "lifting to networks", {"bits": 96}
    assert apply(rule, replace(claim, bound=claim.bound / 1000), data, parts).name == "unknown"
    assert apply(rule, replace(claim, box=((F(-99), F(99)),) * 2), data, parts).name == "unknown"
    wrong = replace(claim, replaced=(("swish", named("swish")),))
    for bad, premises in ((wrong, parts), (claim, []), (claim, [certified_network("tanh", F(1), F(1, 100))])):
        with pytest.raises(EvidenceError):
            apply(rule, bad, data, premises)
    # at a point, in balls
    ((_, net),) = claim.replaced
    with working(200, 2):
        values = [[arb(1) / 3, arb(1) / 5]] * 2
        for layer in layers:
            maps = [[_sums(m, b, v) for v in values] for m, b in layer.maps]
            values = maps[0]
            if layer.activation:
                values = [[_at(f, t) for t in v] for f, v in zip((named("swish"), net), values)]
            if layer.gate:
                values = [[s * t for s, t in zip(v, w)] for v, w in zip(values, maps[1])]
        assert all(abs(s - t) < 1e-5 for s, t in zip(*values))


def test_lifting_replaces_activations_under_any_of_their_names():
    zero, box = constant(0), ((F(-1), F(1)),)
    part = decide(SupNorm(named("elu"), zero, ((F(-2), F(2)),), F(3)))
    layers = (Layer.of([[1]], [0], "elu"),)
    for name in ("elu", "elu(1)", " elu"):
        claim = NetworkWithin(layers, box, ((name, zero),), F(1, 2))
        assert claim.replaced == (("elu", zero),)
        assert apply("lifting to networks", claim, {"bits": 96}, [part]).name == "unknown"
    with pytest.raises(UsageError, match="sorted"):
        NetworkWithin(layers, box, (("elu", zero), ("elu(1)", zero)), F(1, 2))


def _sums(matrix, bias, v):
    return [sum((to_fmpq(w) * t for w, t in zip(row, v)), arb(to_fmpq(c))) for row, c in zip(matrix, bias)]


def _at(formula, x):
    return formula.over(Balls(F(1, 999)), x)


def test_layers_that_do_not_fit():
    with pytest.raises(UsageError, match="one bias"):
        Layer.of([[1, 2]], [0, 0])
    with pytest.raises(UsageError, match="as many values"):
        certified_lifting([Layer.of([[1, 2]], [0], "tanh")], [(F(0), F(1))], F(1, 100))
    layers = [Layer.of([[1]], [0], "tanh"), Layer.of([[1]], [0], "step")]
    with pytest.raises(Unsupported):
        certified_lifting(layers, [(F(0), F(1))], F(1, 100))


# -- sizes ----------------------------------------------------------------------------------------------------


def test_sizes_and_errors():
    rows = sizes("relu", F(1), (2, 8, 32))
    assert [row.parameters for row in rows] == [10, 18, 30] and all(row.proof is not None for row in rows)
    assert 0.5 < exponent(sizes("relu", F(1), (8, 16, 32, 64))) < 1.5
    smooth = sizes("gelu_tanh", F(1), (4, 16), Options(timeout=0))
    assert [row.proof for row in smooth] == [None, None]
    assert smooth[1].polynomial == 22 and smooth[1].relu == 22


@pytest.mark.parametrize(("name", "type", "error"), [("abs", (4, 4), 0.0085014), ("relu", (5, 4), 0.0042507)])
def test_best_rationals_at_a_kink(name, type, error):
    best = certified_minimax(named(name), (F(-1), F(1)), type)
    assert float(best.lower.claim.bound) == pytest.approx(error, rel=1e-4)
    assert best.bounds.high <= best.lower.claim.bound * F(101, 100)
    wide = certified_minimax(named(name), (F(-3), F(3)), type)
    assert float(wide.lower.claim.bound) == pytest.approx(3 * error, rel=1e-4)


def test_aaa_is_certified_afterwards():
    r = aaa(named("tanh"), (F(0), F(8)), 5)
    bounds, proof = certified_sup_norm(Problem(named("tanh"), rational(r), ((F(0), F(8)),)))
    best = certified_minimax(named("tanh"), (F(0), F(8)), (5, 5))
    assert best.lower.claim.bound < bounds.low <= bounds.high < 20 * best.bounds.high and proof.name == "proved"
    with pytest.raises(UsageError):
        aaa(named("log"), (F(0), F(1)), 3)
    with pytest.raises(UsageError):
        aaa(named("tanh"), (F(1), F(0)), 3)
