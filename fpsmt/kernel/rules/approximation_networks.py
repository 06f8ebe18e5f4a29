"""Rules that prove a rational network part by part: triangle inequality, propagation of errors, Halley's step, ReLU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from fpsmt.claims.approximation import SupNorm
from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.lifting import NetworkWithin
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS
from fpsmt.rational import Formula, Interval, constant, named
from fpsmt.rational.layers import carried
from fpsmt.rational.polynomials import nonnegative_on, polynomial, to_fmpq
from fpsmt.rational.propagation import Replacement, propagated
from fpsmt.rational.steps import halley_step, is_odd_chain, relu_step, root_step, scaled

MOST_BITS, MOST_PARTS, MOST_ROOT = 1 << 14, 1 << 16, 100


def _absolute(claims: Sequence[Claim], count: int, what: str) -> list[SupNorm]:
    found = [c for c in claims if isinstance(c, SupNorm) and not c.relative]
    if len(found) != len(claims) or len(claims) != count:
        raise EvidenceError(f"{what} is about {count - 1} premises and a claim that are absolute sup norms")
    return found


def _inside(domain: Sequence[Interval], other: Sequence[Interval]) -> bool:
    return all(any(a <= low and high <= b for a, b in other) for low, high in domain)


@rule("triangle inequality")
def triangle_inequality(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """|f − h| ≤ |f − g| + |g − h| at every point of the domain, which lies in the domains of both premises."""
    whole, first, second = _absolute([claim, *premises], 3, "the triangle inequality")
    chain = first.approximation == second.target, first.target == whole.target
    if not all(chain) or second.approximation != whole.approximation:
        raise EvidenceError("the premises are not |f − g| and |g − h| for the claim's |f − h|")
    if not (_inside(whole.domain, first.domain) and _inside(whole.domain, second.domain)):
        raise EvidenceError("the domain of the claim is not inside those of the premises")
    if first.bound + second.bound > whole.bound:
        return Open("the bounds of the premises add up to more than the claim's")
    return Holds({})


@rule("propagation of errors")
def propagation_of_errors(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The claim's approximation is its target with some functions replaced; errors are carried through, step by step.

    Each premise bounds |φ − g| for a named function φ on one or more intervals.  `rational.propagation` has the proof
    of the bookkeeping, in balls: sums, products, quotients, and Lipschitz constants of functions.

    data: replaced, a list of [which named function of the target, which premise]; parts, into which each interval of
    the domain is cut; bits.
    """
    whole, *parts = _absolute([claim, *premises], len(premises) + 1, "the propagation of errors")
    replaced = {int(k): parts[int(i)] for k, i in data["replaced"]}
    names = whole.target.calls
    if not all(0 <= k < len(names) and part.target == named(names[k]) for k, part in replaced.items()):
        raise EvidenceError("a premise is not about the function that it replaces")
    if whole.approximation != whole.target.with_calls({k: part.approximation for k, part in replaced.items()}):
        raise EvidenceError("the claim's approximation is not its target with the functions of the premises replaced")
    pieces, bits = int(data["parts"]), int(data["bits"])
    if not (1 <= pieces <= MOST_PARTS and 16 <= bits <= MOST_BITS):
        raise EvidenceError(f"1 to {MOST_PARTS} parts and 16 to {MOST_BITS} bits")
    known = {k: Replacement(part.domain, part.bound) for k, part in replaced.items()}
    found = propagated(whole.target, known, whole.domain, pieces, bits)
    if found is None or not found <= to_fmpq(whole.bound):
        return Open("the errors of the parts add up to more, or to nothing known", "more parts, or better premises")
    return Holds({"parts": pieces}, (BALLS,))


@rule("lifting to networks")
def lifting(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Layer by layer: affine maps, activations, gates; errors are carried as `rational.propagation` proves.

    Premise k bounds |σ − g| for the k-th replaced activation σ and its formula g, on intervals that hold every value at
    which either network evaluates it (checked, in balls).  data: bits.
    """
    if not isinstance(claim, NetworkWithin) or len(premises) != len(claim.replaced):
        raise EvidenceError("lifting needs a network and one premise for each replaced activation")
    known: dict[str, Replacement] = {}
    for (name, formula), part in zip(claim.replaced, premises, strict=True):
        if not isinstance(part, SupNorm) or part.relative or part.target != named(name):
            raise EvidenceError(f"the premise for {name} is an absolute sup norm of it")
        if part.approximation != formula:
            raise EvidenceError(f"the premise for {name} is about another formula")
        known[name] = Replacement(part.domain, part.bound)
    bits = int(data["bits"])
    if not 16 <= bits <= MOST_BITS:
        raise EvidenceError(f"16 to {MOST_BITS} bits")
    found = carried(claim.layers, claim.box, known, bits)
    if found is None or not found <= to_fmpq(claim.bound):
        return Open("the errors add up to more, or to nothing known", "a smaller box, or better premises")
    return Holds({"layers": len(claim.layers)}, (BALLS,))


@rule("Halley step")
def halley(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """From |tanh − t| ≤ e and |log − ℓ| ≤ δ to the error of Halley's step t − (1 − t²)Ã/(1 − tÃ) for atanh(t) = x.

    Ã = ½ℓ((1 + t)/(1 − t)) − x.  Let |x| ≤ m on the domain and τ = m + e < 1.  Since |tanh x| ≤ |x|, both tanh x and
    t = t(x) are within ±τ, where atanh has slopes of at most 1/(1 − τ²): A = atanh(t) − x is at most α = e/(1 − τ²) in
    size.  (1 + t)/(1 − t) lies in [(1 − τ)/(1 + τ), (1 + τ)/(1 − τ)], inside the second premise's domain, so that
    |Ã − A| ≤ δ/2.  The step is (t − Ã)/(1 − tÃ), and tanh x = tanh(atanh t − A) = (t − T)/(1 − tT) with T = tanh A.
    The difference is (1 − t²)(T − Ã)/((1 − tÃ)(1 − tT)), and |T − A| ≤ |A|³/3.  So the error is at most
    (α³/3 + δ/2)/((1 − τ(α + δ/2))(1 − τα)), if τ(α + δ/2) < 1.
    """
    whole, inner, log = _absolute([claim, *premises], 3, "a Halley step")
    if whole.target != named("tanh") or inner.target != whole.target or log.target != named("log"):
        raise EvidenceError("a Halley step needs an approximation of tanh and one of log")
    if not _inside(whole.domain, inner.domain):
        raise EvidenceError("the domain of the claim is not inside that of the first premise")
    if whole.approximation != halley_step(inner.approximation, log.approximation):
        raise EvidenceError("the claim is not about Halley's step from the premises")
    e, delta = inner.bound, log.bound
    tau = max(abs(x) for interval in whole.domain for x in interval) + e
    if tau >= 1:
        return Open("the domain is too wide")
    alpha = e / (1 - tau * tau)
    far = (1 + tau) / (1 - tau)
    if not _inside([(1 / far, far)], log.domain):
        return Open(f"the logarithm is needed on [{1 / far}, {far}]")
    a = alpha + delta / 2
    if tau * a >= 1 or (alpha**3 / 3 + delta / 2) / ((1 - tau * a) * (1 - tau * alpha)) > whole.bound:
        return Open("the step has a larger error")
    return Holds({})


@rule("Newton step for a root")
def newton_root(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """From the relative error e < 1 of c·f for the p-th root of x > 0 to that of c′·(a·f + b·x/f^{p−1}).

    a, b, c and c′ are positive.  With f = ρ·x^{1/p}, ρ ∈ [(1 − e)/c, (1 + e)/c] by the premise, the new value is
    c′(aρ + bρ^{1−p})·x^{1/p}.  So the claim's bound e′ says 1 − e′ ≤ c′(aρ + bρ^{1−p}) ≤ 1 + e′; times ρ^{p−1} > 0
    these are polynomials in ρ that are nowhere negative on an interval, which is decided exactly.

    data: p, a, b, c and c′ (scales).
    """
    if not isinstance(claim, SupNorm) or len(premises) != 1 or not isinstance(premises[0], SupNorm):
        raise EvidenceError("a Newton step for a root takes one sup norm to another")
    before, p = premises[0], int(data["p"])
    a, b, c, after = (Fraction(str(data[name])) for name in ("a", "b", "scale", "new_scale"))
    if not (claim.relative and before.relative) or not claim.target == before.target == named(f"root({p})"):
        raise EvidenceError(f"the errors are relative ones of root({p})")
    if not (2 <= p <= MOST_ROOT and min(a, b, c, after) > 0 and 0 <= before.bound < 1):
        raise EvidenceError(f"2 ≤ p ≤ {MOST_ROOT}, a, b and the scales are positive, the premise's bound is below 1")
    f = Formula.from_json(data["value"])
    if before.approximation != scaled(f, c) or claim.approximation != scaled(root_step(f, p, a, b), after):
        raise EvidenceError("the claim is not about the Newton step from the premise")
    if not _inside(claim.domain, before.domain) or any(low <= 0 for low, _ in claim.domain):
        raise EvidenceError("the domain is positive and inside that of the premise")
    low, high = (1 - before.bound) / c, (1 + before.bound) / c
    middle = [Fraction(0)] * (p - 2)
    for sign, level in ((1, 1 - claim.bound), (-1, 1 + claim.bound)):
        q = polynomial([sign * after * b, *middle, -sign * level, sign * after * a])
        if not nonnegative_on(q, low, high):
            return Open("the step has a larger error")
    return Holds({})


@rule("ReLU from a sign")
def relu_from_a_sign(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """(x + x·r(x/c))/2 is within c·max(ℓ, E)/2 of ReLU on [−c, c], for an odd r with |1 − r| ≤ E on [ℓ, 1] and
    0 ≤ r ≤ 1 on [0, ℓ].

    With y = x/c, ReLU(x) = (x + |x|)/2 differs by half of c·||y| − y·r(y)| = c·|y|·|1 − r(|y|)|, r being odd; that is
    at most c·E for |y| ≥ ℓ and at most c·ℓ below.  r is odd: it is a chain of odd rationals.

    data: size, the number c.  Premises: |1 − r| ≤ E on [ℓ, 1], |½ − r| ≤ ½ on [0, ℓ].
    """
    whole, above, below = _absolute([claim, *premises], 3, "ReLU from a sign")
    size, r = Fraction(str(data["size"])), above.approximation
    if above.target != constant(1) or below.target != constant(Fraction(1, 2)) or below.approximation != r:
        raise EvidenceError("the premises are |1 − r| and |1/2 − r| for one r")
    if size <= 0 or not is_odd_chain(r) or below.bound > Fraction(1, 2):
        raise EvidenceError("r is a chain of odd rationals with values in [0, 1] near 0, and the size is positive")
    ell = above.domain[0][0]
    if not (0 < ell <= 1 and _inside([(ell, Fraction(1))], above.domain) and _inside([(0 * ell, ell)], below.domain)):
        raise EvidenceError("the premises are about [ℓ, 1] and [0, ℓ]")
    if whole.target != named("relu") or whole.approximation != relu_step(r, size):
        raise EvidenceError("the claim is not about (x + x·r(x/size))/2 as an approximation of ReLU")
    if not _inside(whole.domain, [(-size, size)]):
        return Open("the domain is beyond ±size")
    if size * max(ell, above.bound) / 2 > whole.bound:
        return Open("the error is larger")
    return Holds({})
