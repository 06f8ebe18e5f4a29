"""Rules about approximation of real functions: enclosures on a subdivision, signs of polynomials, alternation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from fpsmt.claims.approximation import BestError, SupNorm
from fpsmt.claims.claim import Claim, Json
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS
from fpsmt.rational import Formula, check_alternation, check_subdivision, within_exactly

MOST_BITS, MOST_ORDER = 1 << 16, 1 << 11


@rule("rational enclosure")
def rational_enclosure(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Encloses the error on every interval of a subdivision of the domain, by Taylor models with ball coefficients.

    The domain is cut at the kinks of functions of x; every piece is halved as the data say; the leaves cover it.  On a
    leaf, a Taylor model (`rational.models`, with its proof) of f − g, or of (f − g)/f, bounds the error; that a model
    exists shows that nothing divides by 0 there.  For relative errors at a common exact zero z of f and g the quotient
    is that of the slopes (f − f(z))/(x − z) and (g − g(z))/(x − z), and at z itself 0 ≤ bound·0.  The values at the
    kinks themselves are enclosed one by one.  A point where the bound is certainly exceeded is a counterexample.
    """
    if not isinstance(claim, SupNorm):
        raise EvidenceError(f"an enclosure of an error does not speak about {claim.kind}")
    if "point" in data:
        return Fails({"x": data["point"]})
    order, bits, trees = int(data["order"]), int(data["bits"]), [str(tree) for tree in data["trees"]]
    if not (2 <= order <= MOST_ORDER and 16 <= bits <= MOST_BITS):
        raise EvidenceError(f"the order is within [2, {MOST_ORDER}] and the precision within [16, {MOST_BITS}]")
    failed = check_subdivision(claim.problem, claim.bound, trees, order, bits)
    if failed is not None:
        return Open(f"the bound is not proved on [{failed[0]}, {failed[1]}]", "subdivide more, or raise order or bits")
    return Holds({"intervals": sum(tree.count("0") for tree in trees), "order": order, "bits": bits}, (BALLS,))


@rule("signs of polynomials")
def signs_of_polynomials(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Decides |f − g| ≤ bound for piecewise rational f and g: a polynomial is nowhere negative on an interval.

    With f − g = e/q and no zero of a divisor on the piece, the bound says bound²·q² − e² ≥ 0.  A polynomial changes its
    sign exactly at its roots of odd multiplicity; Sturm's theorem shows that none lies inside, and one value that is
    not 0 gives the sign.  All arithmetic is rational.
    """
    if not isinstance(claim, SupNorm):
        raise EvidenceError(f"signs of polynomials do not speak about {claim.kind}")
    if not within_exactly(claim.problem, claim.bound):
        return Open("the bound is exceeded somewhere, or something divides by 0")
    return Holds({"pieces": len(claim.problem.pieces())}, (BALLS,) if claim.problem.cuts else ())


@rule("composition of approximations")
def composition_of_approximations(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """|k(h(x)) − g(h(x))| is bounded on a domain that h maps into one where |k − g| is bounded.

    The first premise says |c − h(x)| ≤ w on the domain, for a number c: so h(x) lies in [c − w, c + w].  The second
    bounds the error of g for k on a domain that contains this interval.  The claim's approximation is h followed by g,
    its target h followed by k, or k itself when k is a number.
    """
    if not isinstance(claim, SupNorm) or len(premises) != 2:
        raise EvidenceError("a composition needs a sup norm and two premises")
    inner, outer = premises
    if not isinstance(inner, SupNorm) or not isinstance(outer, SupNorm) or inner.relative:
        raise EvidenceError("the premises of a composition are an absolute sup norm and a sup norm")
    centre, constant = inner.target.as_constant, outer.target.as_constant
    if centre is None or inner.domain != claim.domain:
        raise EvidenceError("the first premise of a composition is the range of the inner part on the domain")
    low, high = centre - inner.bound, centre + inner.bound
    if not any(a <= low and high <= b for a, b in outer.domain):
        raise EvidenceError(f"the range [{low}, {high}] is not inside the domain of the second premise")
    h, k, g = inner.approximation, outer.target, outer.approximation
    if claim.approximation != h.then(g) or claim.target != (h.then(k) if constant is None else k):
        raise EvidenceError("the claim is not about the composition of its premises")
    if outer.relative != claim.relative or outer.bound > claim.bound:
        raise EvidenceError("the second premise does not bound this error")
    return Holds({})


@rule("alternation")
def alternation(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """De la Vallée-Poussin: a rational whose error alternates often enough bounds every other from below.

    Let p/q be in lowest terms, of type (m − d', n − d'') with d = min(d', d''), q without zeros between the first and
    the last of N = m + n + 2 − d points of the domain, where the error f − p/q alternates in sign and is at least
    `bound` > 0 in size.  If u/v of type (m, n), without poles on the domain, had an error below the bound at every one
    of these points, then p/q − u/v = (f − u/v) − (f − p/q) would have the signs of −(f − p/q) there; so
    (p·v − u·q)·(q·v) alternates.  Its sign is that of p·v − u·q times the sign of q·v, which is constant between
    neighbouring points when q and v have no zero between the first and the last point.  So p·v − u·q has N − 1 zeros
    but its degree is at most max(m − d' + n, m + n − d'') ≤ m + n − d = N − 2, and it is not 0 since it alternates.
    Contradiction.  For relative errors the same, with bound·|f| > 0 for the bound at each point.

    The domain must be one interval, so that a rational without poles on it has none between the points.
    """
    if not isinstance(claim, BestError):
        raise EvidenceError(f"alternation does not speak about {claim.kind}")
    approximation = Formula.from_json(data["approximation"])
    points = [Fraction(str(x)) for x in data["points"]]
    why = check_alternation(claim.target, approximation, claim.domain, claim.type, claim.bound, claim.relative, points)
    if why:
        return Open(why)
    return Holds({"points": len(points)}, (BALLS,))
