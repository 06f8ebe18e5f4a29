"""Engines for sup norms: signs of polynomials where all is piecewise rational, else branch and bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

from fpsmt import kernel
from fpsmt.claims.approximation import BestError, SupNorm
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.rational import (
    Formula,
    Interval,
    Problem,
    Rational,
    SupNormBounds,
    constant,
    degree_on_pieces,
    number_text,
    rational,
    sup_norm,
)
from fpsmt.rational.remez import minimax
from fpsmt.rational.supnorm import GAP
from fpsmt.rational.zolotarev import Sign, sign_bound

MOST_DEGREE = 20  #: of polynomials whose signs are decided


@engine("signs of polynomials", SupNorm)
def signs_of_polynomials(claim: SupNorm, options: Options) -> Verdict:
    """Exact algebra; proves bounds that are reached."""
    degree = degree_on_pieces(claim.problem)
    if degree is None or degree > MOST_DEGREE:
        raise Unsupported(f"not piecewise rational of degree at most {MOST_DEGREE}")
    return kernel.apply("signs of polynomials", claim)


@engine("network, part by part", SupNorm)
def network_by_parts(claim: SupNorm, options: Options) -> Verdict:
    """Networks that `rational.activations.network` builds, at errors far below what one enclosure reaches."""
    from fpsmt.engines.rational_networks import network_by_parts as prove

    return prove(claim, options)


@engine("rational enclosure", SupNorm)
def rational_enclosure(claim: SupNorm, options: Options) -> Verdict:
    """Halves the domain until every part is within the bound, or a point is beyond it."""
    start = time.monotonic()
    found = sup_norm(claim.problem, goal=claim.bound, seconds=options.timeout, report=options.report)
    if found.high is not None and found.high <= claim.bound:
        return kernel.apply("rational enclosure", claim, evidence(found))
    for x in (found.at, *claim.problem.cuts, *(end for piece in claim.domain for end in piece)):
        if claim.problem.fails_at(claim.bound, x):
            return kernel.refute(claim, {"x": str(x)}, seconds=time.monotonic() - start)
    high = "nothing" if found.high is None else number_text(found.high)
    reason = f"after {found.boxes} intervals the sup norm is between {number_text(found.low)} and {high}"
    return Unknown(claim, reason, time.monotonic() - start, "raise the timeout")


@engine("alternation", BestError)
def alternation(claim: BestError, options: Options) -> Verdict:
    """Looks for a best rational: its alternation proves the bound, or its error refutes it."""
    start = time.monotonic()
    if len(claim.domain) != 1:
        raise Unsupported("best rationals are searched for on one interval")
    found = minimax(claim.target, claim.domain[0], claim.type, claim.relative, report=options.report)
    formula = rational(found.rational)
    if found.largest >= claim.bound:
        points = [str(x) for x in found.points]
        return kernel.apply("alternation", claim, {"approximation": formula.to_json(), "points": points})
    middle = (found.largest + claim.bound) / 2
    better = rational_enclosure(SupNorm(claim.target, formula, claim.domain, middle, claim.relative), options)
    if not isinstance(better, Proved):
        return Unknown(claim, "the bound is too close to the best error", time.monotonic() - start)
    return kernel.refute(claim, {"approximation": formula.to_json(), "bound": str(middle)}, [better])


def evidence(found: SupNormBounds) -> dict[str, object]:
    """What the rule needs to verify the upper bound."""
    return {"trees": list(found.trees), "order": found.order, "bits": found.bits}


def certified_sup_norm(
    problem: Problem, gap: Fraction = GAP, options: Options | None = None
) -> tuple[SupNormBounds, Proved]:
    """low ≤ sup |error| ≤ high with high ≤ (1 + gap)·low where time allows, and the proof of the upper bound.

    `Unsupported` when no upper bound is found: the error is unbounded, or the time is too short.

    >>> from fpsmt.rational import Rational, named, rational
    >>> line = rational(Rational((Fraction(1, 8), 1)))
    >>> bounds, proof = certified_sup_norm(Problem(named("sqrt"), line, ((Fraction(0), Fraction(1)),)))
    >>> str(bounds.low), proof.how
    ('1/8', 'rational enclosure')
    """
    options = options or Options()
    found = sup_norm(problem, gap, seconds=options.timeout, report=options.report)
    if found.high is None:
        low, high = found.open or (Fraction(0), Fraction(0))
        raise Unsupported(
            f"no bound on [{number_text(low)}, {number_text(high)}]: the error may be unbounded or undefined there"
        )
    verdict = kernel.apply("rational enclosure", SupNorm.of(problem, found.high), evidence(found))
    if not isinstance(verdict, Proved):
        raise Unsupported(str(verdict))
    return found, verdict


def certified_sign(approximation: Sign) -> Proved:
    """|1 − r(x)| ≤ about the error of Zolotarev's sign r on [ℓ, 1], proved map by map: r is odd, so also on [−1, −ℓ].

    Each map has a proved range, which is the domain of the next; the kernel joins them.  A composition of nine maps
    has 19684 extremes, too many to enclose one by one.

    >>> from fpsmt.rational.zolotarev import composed_sign
    >>> proof = certified_sign(composed_sign(4, Fraction(1, 10**8)))
    >>> proof.how, f"{float(proof.claim.bound):.3g}"
    ('composition of approximations', '6.88e-09')
    """
    *maps, last = [rational(r) for r in approximation.maps]
    one, bound = constant(1), sign_bound(approximation)
    proof = proved_by_signs(SupNorm(one, last, ((approximation.ells[-1], Fraction(1)),), bound))
    for r, low, after in reversed(list(zip(maps, approximation.ells, approximation.ells[1:], strict=False))):
        domain = ((low, Fraction(1)),)
        within = proved_by_signs(SupNorm(constant((1 + after) / 2), r, domain, (1 - after) / 2))
        assert isinstance(proof.claim, SupNorm)
        whole = SupNorm(one, r.then(proof.claim.approximation), domain, bound)
        joined = kernel.apply("composition of approximations", whole, premises=[within, proof])
        assert isinstance(joined, Proved)
        proof = joined
    return proof


@dataclass(frozen=True)
class Best:
    """A rational of a type with proofs: its error is at most `bounds.high`, and no rational of the type is below
    `lower.claim.bound`."""

    rational: Rational
    bounds: SupNormBounds
    upper: Proved
    lower: Proved


def certified_minimax(
    target: Formula,
    interval: Interval,
    type: tuple[int, int],
    relative: bool = False,
    gap: Fraction = GAP,
    options: Options | None = None,
) -> Best:
    """A near-best rational of the type, its certified sup norm, and a certified lower bound for every other one.

    The lower bound is 1 − 2⁻²⁰ times the least error at the points of alternation that the exchange found.
    `Unsupported` when the exchange does not converge or a part is not proved.

    >>> from fpsmt.rational import named
    >>> best = certified_minimax(named("exp"), (Fraction(-1), Fraction(1)), (1, 1))
    >>> best.upper.name, best.lower.name, best.bounds.high < best.lower.claim.bound * Fraction(101, 100)
    ('proved', 'proved', True)
    """
    options = options or Options()
    found = minimax(target, interval, type, relative, report=options.report)
    formula = rational(found.rational)
    bounds, upper = certified_sup_norm(Problem(target, formula, (interval,), relative), gap, options)
    if found.levelled <= 0:
        raise Unsupported("the error is 0: there is nothing to bound from below")
    claim = BestError(target, (interval,), type, found.levelled * (1 - Fraction(1, 1 << 20)), relative)
    points = [str(x) for x in found.points]
    lower = kernel.apply("alternation", claim, {"approximation": formula.to_json(), "points": points})
    if not isinstance(lower, Proved):
        raise Unsupported(f"no lower bound: {lower}")
    return Best(found.rational, bounds, upper, lower)


def proved_by_signs(claim: SupNorm) -> Proved:
    verdict = signs_of_polynomials(claim, Options())
    if not isinstance(verdict, Proved):
        raise Unsupported(f"not proved, increase the bits of the coefficients: {claim.text}")
    return verdict
