"""Zolotarev's sign, composite roots, log, tanh, exp and activations as rational networks: certified errors."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from flint import arb

from fpsmt.claims import SupNorm
from fpsmt.engines import Options, decide
from fpsmt.engines.approximation import certified_sign
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.kernel import apply, check_verdict, verdict_to_json
from fpsmt.rational import Problem, constant, named, rational, sup_norm
from fpsmt.rational.activations import network
from fpsmt.rational.elementary import log, small_tanh
from fpsmt.rational.roots import root, steps_for
from fpsmt.rational.supnorm import error_at
from fpsmt.rational.zolotarev import (
    absolute_value,
    balanced_ell,
    composed_sign,
    maps_for,
    relu,
    sign,
    zolotarev,
    zolotarev_balls,
)

UNIT = ((F(-1), F(1)),)


def near(x: F, text: str) -> bool:
    """x rounds to this number of few digits."""
    return float(f"{float(x):.{len(text.split('e')[0].replace('.', '').lstrip('0'))}g}") == float(text)


@pytest.mark.parametrize(("k", "error"), [(3, "0.085009"), (9, "0.00510241"), (27, "3.88169e-5")])
def test_sign_and_absolute_value(k, error):
    ell = balanced_ell(k)
    best = sign(k, ell)
    assert near(F(float(best.error)), error)
    found = sup_norm(Problem(named("abs"), absolute_value(best), UNIT))
    assert near(found.low, error) and found.high <= found.low * F(1001, 1000)
    if k < 27:
        assert decide(SupNorm(named("abs"), absolute_value(best), UNIT, ell), Options(timeout=30)).name == "proved"
        outside = ((F(-1), -ell), (ell, F(1)))
        assert near(sup_norm(Problem(named("sign"), best.formula, outside)).low, error)
        halved = sup_norm(Problem(named("relu"), relu(best), UNIT))
        assert abs(halved.low - found.low / 2) <= F(1, 10**12)


def test_composition_law():
    """Z₉ = Z₃∘Z₃, as functions: the certified distance is that of the rounding of the coefficients."""
    ell = F(1, 50)
    whole, parts = sign(9, ell, 256), composed_sign(2, ell, 256)
    assert whole.error.overlaps(parts.error) or abs(whole.error - parts.error) < arb(2) ** -200
    claim = SupNorm(whole.formula, parts.formula, ((ell, F(1)),), F(1, 10**50))
    assert decide(claim, Options(timeout=20)).name == "proved"
    assert parts.formula.expand().type == (9, 8) and parts.formula.parameters < whole.formula.parameters


@pytest.mark.parametrize(("error", "maps"), [("1e-3", 3), ("1e-8", 4), ("1e-16", 6), ("1e-100", 9)])
def test_number_of_maps(error, maps):
    assert maps_for(F(error)) == maps
    bits = 512 if maps == 9 else 256
    ell = balanced_ell(3**maps, bits)
    proof = certified_sign(composed_sign(maps, ell, bits))
    assert proof.claim.bound <= ell * (1 + F(1, 10**15)) and ell < 2 * F(error) and proof.evidence.all_trusted == ()
    if maps <= 4:
        assert decide(SupNorm(named("relu"), relu(composed_sign(maps, ell, bits)), UNIT, F(error))).name == "proved"


def test_composition_needs_its_premises():
    s = composed_sign(2, F(1, 100))
    proof = certified_sign(s)
    (inner, outer), claim = proof.evidence.premises, proof.claim
    assert check_verdict(verdict_to_json(proof)).name == "proved"
    tighter = SupNorm(claim.target, claim.approximation, claim.domain, claim.bound / 2)
    other = SupNorm(claim.target, s.formula.then(s.formula), claim.domain, claim.bound)
    for bad, premises in (
        (tighter, [inner, outer]),
        (other, [inner, outer]),
        (claim, [outer, inner]),
        (claim, [inner]),
    ):
        with pytest.raises(EvidenceError):
            apply("composition of approximations", bad, premises=premises)


@pytest.mark.parametrize(("ell", "error"), [("1e-2", "8.95195e-5"), ("1e-4", "0.00939323"), ("1e-6", "0.0587407")])
def test_small_domains(ell, error):
    """Type (13, 12); the balls lose nothing in 1 − ℓ²."""
    r = sign(13, F(ell))
    found = sup_norm(Problem(constant(1), r.formula, ((F(ell), F(1)),)), seconds=20)
    assert near(found.low, error) and found.high <= found.low * F(1001, 1000)


@pytest.mark.parametrize(
    ("steps", "error"), list(enumerate(["0.33", "0.18", "0.066", "0.0096", "2.1e-4", "9.8e-8", "2.2e-14", "1.1e-27"]))
)
def test_composite_tenth_root(steps, error):
    """The relative error on [1/1024, 1] is (1 − α)/(1 + α), certified for up to five steps."""
    r = root(10, F(1, 2), steps)
    assert float(r.error) == pytest.approx(float(error), rel=0.06)
    assert steps_for(10, F(1, 2), F(error) * F(106, 100)) == steps
    if steps <= 4:
        found = sup_norm(Problem(named("root(10)"), r.formula, ((r.low, F(1)),), relative=True), seconds=20)
        assert found.low <= found.high <= found.low * F(1001, 1000)
        assert float(found.low) == pytest.approx(float(r.error), rel=1e-3)


@pytest.mark.parametrize("digits", [3, 16, 50])
def test_log(digits):
    f = log(F(7, 9), F(9, 7), F(1, 10**digits))
    claim = SupNorm(named("log"), f, ((F(7, 9), F(9, 7)),), F(1, 10**digits))
    assert f.is_rational and decide(claim, Options(timeout=60)).name == "proved"


@pytest.mark.parametrize(("steps", "error"), [(0, 3.3e-4), (1, 1.2e-11), (2, 6.6e-34), (3, 9.6e-101)])
def test_halley(steps, error):
    """The errors at s = 1/10 of Halley's steps with a logarithm that is far better."""
    net = small_tanh(F(1, 10**110), steps)
    found = error_at(Problem(named("tanh"), net, ((F(0), F(1, 8)),)), F(1, 10), 20)
    assert float(found) == pytest.approx(error, rel=0.02)


def test_tanh_and_exp():
    net = network("tanh", F(1), F(1, 10**8))
    assert decide(SupNorm(named("tanh"), net, UNIT, F(1, 10**8)), Options(timeout=60)).name == "proved"
    net = network("exp", F(1), F(1, 10**16))
    found = error_at(Problem(named("exp"), net, UNIT), F(1), 20)
    assert found < 1e-16


def test_sizes_grow_slowly():
    sizes = [network("gelu_tanh", F(1), F(1, 10**d)).parameters for d in (8, 16, 50, 100)]
    assert sizes == sorted(sizes) and sizes[-1] < 1000


def test_errors():
    for bad in ((2, F(1, 2)), (0, F(1, 2)), (3, F(0)), (3, F(1))):
        with pytest.raises(UsageError):
            zolotarev_balls(*bad, 50)
    with pytest.raises(UsageError, match="p ≥ 2"):
        root(1, F(1, 2), 3)
    with pytest.raises(UsageError, match="no construction"):
        network("sin", F(1), F(1, 10))
    with pytest.raises(UsageError, match="between 0 and 1"):
        network("tanh", F(1), F(2))
    with pytest.raises(Unsupported, match="digits"):
        network("tanh", F(1), F(1, 10**8))(F(1, 2))
    assert rational(zolotarev(3, F(1, 10))).degree == 3
