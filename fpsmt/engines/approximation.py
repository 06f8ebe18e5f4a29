"""Engines for sup norms: signs of polynomials where all is piecewise rational, else branch and bound."""

from __future__ import annotations

import time
from fractions import Fraction

from fpsmt import kernel
from fpsmt.claims.approximation import SupNorm
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.rational import Problem, SupNormBounds, degree_on_pieces, number_text, sup_norm
from fpsmt.rational.supnorm import GAP

MOST_DEGREE = 64  #: of polynomials whose signs are decided


@engine("signs of polynomials", SupNorm)
def signs_of_polynomials(claim: SupNorm, options: Options) -> Verdict:
    """Exact algebra; proves bounds that are reached."""
    degree = degree_on_pieces(claim.problem)
    if degree is None or degree > MOST_DEGREE:
        raise Unsupported(f"not piecewise rational of degree at most {MOST_DEGREE}")
    return kernel.apply("signs of polynomials", claim)


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
