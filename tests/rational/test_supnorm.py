"""Certified sup norms: against values known in closed form, all functions, and what must not be proved."""

from __future__ import annotations

import itertools
from fractions import Fraction as F

import flint
import pytest
from flint import arb, arb_series, fmpq

from fpsmt import kernel
from fpsmt.claims import BestError, SupNorm, claim_from_json
from fpsmt.engines import Options, decide
from fpsmt.engines.approximation import certified_sup_norm
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.functions import FUNCTIONS
from fpsmt.rational import Builder, Problem, Rational, named, rational, sup_norm
from fpsmt.rational.analytic import BROKEN, SMOOTH, analytic
from fpsmt.rational.enclosures import leaves
from fpsmt.rational.models import Models, over_unit, supremum, working

UNIT = ((F(-1), F(1)),)
LINE = rational(Rational((F(1, 3), F(1, 2)), (1, F(1, 7))))
ALL = [*FUNCTIONS, *(f"{name}'" for name in FUNCTIONS), "leaky_relu(0.2)", "abs", "sign", "atanh", "root(3)"]


def domain_of(name):
    if name in ("log", "log'", "sqrt'"):
        return F(1, 2), F(2)
    return (F(0), F(1, 2)) if name in ("sqrt", "root(3)") else (F(-1, 2), F(3, 4))


@pytest.mark.parametrize("name", [*SMOOTH, *BROKEN, "abs", "sign", "atanh", "root(3)", "leaky_relu(0.2)"])
def test_series_formulas_are_the_functions(name):
    """The formula of each piece and the registry's ball overlap, tightly."""
    function = analytic(name)
    low, high = domain_of(name)
    with working(200, 4):
        for k in range(1, 20):
            x = low + (high - low) * k / 20
            if x in function.cuts:
                continue
            piece = function.piece(x, x)
            assert piece is not None
            series = piece(arb_series([arb(fmpq(x.numerator, x.denominator)), 1], 3))
            known = function.ball(arb(fmpq(x.numerator, x.denominator)))
            assert series.prec >= 3 and series[0].overlaps(known) and float((series[0] - known).abs_upper()) < 1e-40


@pytest.mark.parametrize("name", [n for n in SMOOTH if n + "'" in SMOOTH])
def test_series_of_derivatives(name):
    low, high = domain_of(name)
    with working(200, 6):
        x = arb_series([arb(fmpq(*((low + 2 * (high - low) / 3).as_integer_ratio()))), 1], 6)
        f, slope = SMOOTH[name](x), SMOOTH[name + "'"](x)
        for k in range(4):
            assert (f[k + 1] * (k + 1)).overlaps(slope[k])


@pytest.mark.parametrize("name", ALL)
def test_models_contain_the_function(name):
    try:
        named(name)
    except UsageError:
        pytest.skip("no such derivative")
    low, high = domain_of(name)
    cuts = [low, *[c for c in analytic(name).cuts if low < c < high], high]
    build = Builder()
    formula = build.formula(build.call(name, build.rational(Rational((0, F(9, 10), 0, F(1, 10))), 0)))
    with working(120, 8):
        for a, b in itertools.pairwise(cuts):
            for one in (named(name), formula):
                if name in ("root(3)", "sqrt") and a == 0:
                    continue
                model = one.over(Models(a, b, 8), Models(a, b, 8).x)
                most, _ = supremum(model)
                for k in range(1, 8):
                    s = F(k, 4) - 1
                    x = (a + b) / 2 + s * (b - a) / 2
                    value = one.ball(x, 200)
                    assert model(arb(fmpq(*s.as_integer_ratio()))).overlaps(value)
                    assert most >= abs(value).lower()
                    assert over_unit(model).overlaps(value)


@pytest.mark.parametrize("name", ALL)
def test_sup_norms_bracket_a_scan(name):
    try:
        target = named(name)
    except UsageError:
        pytest.skip("no such derivative")
    problem = Problem(target, LINE, (domain_of(name),))
    found, proof = certified_sup_norm(problem)
    assert found.high is not None and found.low <= found.high <= found.low * F(1001, 1000) + F(1, 10**9)
    assert isinstance(proof, kernel.Proved)
    low, high = domain_of(name)
    scan = [low + (high - low) * k / 97 for k in range(98)]
    worst = max(float(abs(target.ball(x, 80) - LINE.ball(x, 80)).lower()) for x in scan)
    assert worst <= float(found.high)
    again = kernel.check_verdict(kernel.verdict_to_json(proof))
    assert again.name == "proved"


def test_tight_bounds():
    problem = Problem(named("exp"), rational(Rational((1, F(1, 2)), (1, F(-1, 2)))), ((F(0), F(1)),))
    found = sup_norm(problem, F(1, 10**15))
    flint.ctx.prec = 100
    true = 3 - arb(1).exp()  # at x = 1, where the error of the Padé approximation is largest
    assert found.at == 1 and found.low <= F(3 - 2.718281828459045) + F(1, 10**14)
    assert (
        fmpq(found.low.numerator, found.low.denominator) <= true <= fmpq(found.high.numerator, found.high.denominator)
    )
    assert found.high <= found.low * (1 + F(1, 10**15))
    flint.ctx.prec = 53


def test_small_errors_beyond_the_range_of_floats():
    """Σ_{k<200} xᵏ/k! against exp on [−1/2, 1/2]: about 2⁻²⁰⁰/200!, far below the least float."""
    terms, c = [], F(1)
    for k in range(200):
        terms.append(c)
        c /= k + 1
    found = sup_norm(Problem(named("exp"), rational(Rational(tuple(terms))), ((F(-1, 2), F(1, 2)),)))
    assert found.high is not None and c * F(1, 2) ** 200 < found.low <= found.high < c * F(1, 2) ** 200 * F(101, 100)


def test_singular_end_and_unbounded_errors():
    found, _ = certified_sup_norm(
        Problem(named("sqrt"), rational(Rational((F(1, 8), 1))), ((F(0), F(1)),)), F(1, 10**9)
    )
    assert found.low == F(1, 8)
    with pytest.raises(Unsupported, match="no bound"):
        certified_sup_norm(Problem(named("log"), LINE, ((F(0), F(1)),)), options=Options(timeout=1))
    with pytest.raises(Unsupported, match="no bound"):  # a pole
        certified_sup_norm(
            Problem(named("exp"), rational(Rational((1,), (F(-1, 3), 1))), UNIT), options=Options(timeout=1)
        )
    with pytest.raises(Unsupported, match="no bound"):  # the domain of √
        certified_sup_norm(Problem(named("sqrt"), LINE, UNIT), options=Options(timeout=1))


def test_relative_errors_at_a_common_zero():
    pade = rational(Rational((0, 1, 0, F(1, 15)), (1, 0, F(2, 5))))
    problem = Problem(named("tanh"), pade, UNIT, relative=True)
    found, _ = certified_sup_norm(problem, F(1, 10**6))
    flint.ctx.prec = 100
    true = abs(1 - arb(fmpq(16, 21)) / arb(1).tanh())
    flint.ctx.prec = 53
    assert float(found.low) <= float(true) * (1 + 1e-12) and float(true) <= float(found.high) * (1 + 1e-12)
    assert decide(SupNorm.of(problem, F("4.0784e-4"))).name == "proved"
    assert decide(SupNorm.of(problem, F("4.0783e-4"))).name == "refuted"
    scaled = Problem(named("tanh"), rational(Rational((0, F(9, 10)))), ((F(-1, 8), F(1, 8)),), relative=True)
    assert decide(SupNorm.of(scaled, F("0.1000001"))).name == "proved"  # the supremum 1/10 is a limit at 0
    assert decide(SupNorm.of(scaled, F("0.0999999"))).name == "refuted"
    assert (
        decide(SupNorm.of(Problem(named("tanh"), rational(Rational((F(1, 99), 1))), UNIT, True), F(10))).name
        == "refuted"
    )


def test_values_at_jumps_count():
    """sign(0) = 0 lies between the limits, but not for relative errors."""
    one = rational(Rational((1,)))
    assert decide(SupNorm(named("sign"), one, ((F(0), F(1)),), F(1))).name == "proved"
    assert decide(SupNorm(named("sign"), one, ((F(0), F(1)),), F(1, 2))).name == "refuted"
    assert decide(SupNorm(named("sign"), one, ((F(0), F(1)),), F(1, 2), relative=True)).name == "refuted"
    build = Builder()
    touching = build.formula(build.call("sign", build.rational(Rational((0, 0, 1)), 0)))  # sign(x²)
    verdict = decide(SupNorm(touching, one, UNIT, F(1, 2)), Options(timeout=1))
    assert verdict.name == "refuted"


def test_a_jump_to_zero_is_no_zero():
    """sign(x) + x and x are both 0 at 0, and differ by 1 next to it."""
    build = Builder()
    jump = build.formula(build.affine(0, (1, build.call("sign", 0)), (1, 0)))
    line = rational(Rational((F(0), F(1))))
    problem = Problem(jump, line, ((F(0), F(1, 1000)),), relative=True)
    assert not problem.zeros and not problem.within(F(1, 2), F(0), F(1, 1000), 8)
    evidence = {"trees": ["0"], "order": 8, "bits": 100}
    assert kernel.apply("rational enclosure", SupNorm.of(problem, F(1, 2)), evidence).name == "unknown"


def test_bounds_that_are_reached_are_decided_by_algebra():
    relu = rational(Rational((F(1, 16), F(1, 2), F(1, 2))))
    claim = SupNorm(named("relu"), relu, UNIT, F(1, 16))
    verdict = decide(claim)
    assert (verdict.name, verdict.how) == ("proved", "signs of polynomials")
    assert decide(SupNorm(named("relu"), relu, UNIT, F(1, 16) - F(1, 10**30))).name == "refuted"
    third = rational(Rational((F(1, 3),)))
    assert decide(SupNorm(named("abs"), third, ((F(-1), F(1, 3)),), F(2, 3))).how == "signs of polynomials"
    build = Builder()
    undefined = build.formula(build.product(0, build.rational(Rational((1,), (0, 1)), 0)))  # x·(1/x), not 1
    assert decide(SupNorm(rational(Rational((1,))), undefined, UNIT, F(1)), Options(timeout=1)).name == "unknown"


def test_claims_are_written_and_read():
    claim = SupNorm(named("tanh"), LINE, ((F(-1), F(0)), (F(1), F(2))), F("0.9"), True)
    assert claim_from_json(claim.to_json()) == claim
    assert claim.text == "∀ x ∈ [-1, 0] ∪ [1, 2]: |tanh(x) − ((1/3 + 1/2*x)/(1 + 1/7*x))| ≤ 0.9·|tanh(x)|"
    with pytest.raises(UsageError, match="LOW ≤ HIGH"):
        SupNorm(named("tanh"), LINE, ((F(1), F(0)),), F(1))
    with pytest.raises(UsageError):
        claim_from_json({**claim.to_json(), "bound": 0.9})


def test_evidence_that_proves_nothing():
    claim = SupNorm(named("tanh"), LINE, UNIT, F(2, 5))
    good = {"trees": ["0"], "order": 8, "bits": 100}
    assert kernel.apply("rational enclosure", claim, {**good, "trees": ["100"]}).name == "unknown"
    for bad in ({**good, "trees": ["10"]}, {**good, "trees": ["0", "0"]}, {**good, "trees": ["00"]}):
        with pytest.raises(UsageError):
            kernel.apply("rational enclosure", claim, bad)
    for bad in ({**good, "order": 10**9}, {**good, "bits": 1}):
        with pytest.raises(EvidenceError):
            kernel.apply("rational enclosure", claim, bad)
    with pytest.raises(EvidenceError, match="does not speak"):
        kernel.apply("rational enclosure", BestError(named("abs"), UNIT, (0, 0), F(1, 2)), good)


def test_leaves_cover():
    parts = leaves((F(0), F(1)), "1101000")
    assert parts[0][0] == 0 and parts[-1][1] == 1
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts)) and len(parts) == 4


def test_alternation_bounds_from_below():
    half, zero = rational(Rational((F(1, 2),))), rational(Rational((0,)))
    claim = BestError(named("abs"), UNIT, (1, 0), F(1, 2))  # degree 0 and 1: 1/2
    data = {"approximation": half.to_json(), "points": ["-1", "0", "1"]}
    assert kernel.apply("alternation", claim, data).name == "proved"
    assert kernel.apply("alternation", BestError(named("abs"), UNIT, (2, 0), F(1, 2)), data).name == "unknown"
    assert kernel.apply("alternation", BestError(named("abs"), UNIT, (1, 0), F(51, 100)), data).name == "unknown"
    for points in (["-1", "1", "0"], ["-2", "0", "1"], ["-1", "1"], []):
        assert kernel.apply("alternation", claim, {**data, "points": points}).name == "unknown"
    # a claim that is too strong is refuted by a better rational with its proof
    parabola = rational(Rational((F(1, 8), 0, 1)))
    strong = BestError(named("abs"), UNIT, (2, 0), F(1, 4))
    better = decide(SupNorm(named("abs"), parabola, UNIT, F(1, 8)))
    refuted = kernel.refute(strong, {"approximation": parabola.to_json(), "bound": "1/8"}, [better])
    assert refuted.name == "refuted"
    # |x| by rationals with a pole between the points: not accepted
    pole = rational(Rational((1,), (0, 1)))
    wide = BestError(named("abs"), UNIT, (1, 1), F(1, 2))
    assert "pole" in kernel.apply("alternation", wide, {**data, "approximation": pole.to_json()}).reason
    assert kernel.apply("alternation", BestError(named("sign"), UNIT, (0, 0), F(1)), {
        "approximation": zero.to_json(), "points": ["-1", "1"]}).name == "proved"  # fmt: skip
