"""Rules of exact algebra: identities, certificates of positivity, what coefficients absorb, sizes that are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from fpsmt.claims.absorption import CURVATURE_LEFT, SECOND_DIFFERENCE, Absorbed, SizeNeeded
from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.identities import Identity, Nonnegative
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.trust import POLYNOMIALS
from fpsmt.rational.affine import parameters, polynomial_text, shifted_parameters, unsafe_text
from fpsmt.rational.symbols import certifies, same

MOST_DEGREE = 12
TRUSTED = (POLYNOMIALS,)


@rule("exact algebra")
def exact_algebra(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Two quotients of polynomials u₁/v₁ and u₂/v₂ have one value wherever both are defined when u₁v₂ − u₂v₁ = 0.

    Everything is expanded over the rationals (`rational.symbols`).  A denominator that is the zero polynomial is an
    error: the claim would say nothing.
    """
    if not isinstance(claim, Identity):
        raise EvidenceError(f"an identity does not speak about {claim.kind}")
    if not same(claim.left, claim.right):
        return Open("the two sides are different rational functions", "look for values at which they differ")
    return Holds({"symbols": len(claim.symbols)}, TRUSTED)


@rule("certificate of positivity")
def positivity(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """value = Σ cₖ·sₖ²·Π gᵢ, with cₖ ≥ 0 and assumptions gᵢ ≥ 0, is ≥ 0 term by term; the identity is expanded.

    data: parts, a list of [cₖ, the polynomial sₖ, the places of the assumptions in the product].
    """
    if not isinstance(claim, Nonnegative):
        raise EvidenceError(f"a certificate of positivity does not speak about {claim.kind}")
    parts = [(Fraction(str(c)), str(s), [int(i) for i in product]) for c, s, product in data["parts"]]
    if not certifies(claim.value, claim.assumptions, parts):
        return Open("the parts do not add up to the polynomial")
    return Holds({"parts": len(parts)}, TRUSTED)


@rule("input absorbed by coefficients")
def absorbed(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The new parameters are written down, and the two sides are compared as rational functions of all symbols.

    * unsafe: a′ₖ = Σᵢ aᵢ·C(i,k)·γᵏθ^{i−k}/D and b′ₖ likewise, D = 1 + Σ bⱼθʲ, which is not 0 by assumption.
    * A, a factor γ only: a′ᵢ = aᵢγⁱ and b′ⱼ = bⱼγʲ; the numerators are equal, and with c = |b|, g = |γ|, w = |u| the
      denominators are 1 + Σ cⱼ(gw)ʲ and 1 + Σ (cⱼgʲ)wʲ, since absolute values are multiplicative.
    * B, a factor γ only: the same parameters; numerators and inner polynomials are equal.
    * every form of type (m, 0) is a polynomial, and as the unsafe one.
    """
    if not isinstance(claim, Absorbed):
        raise EvidenceError(f"absorption does not speak about {claim.kind}")
    if max(claim.type) > MOST_DEGREE:
        return Open(f"degrees beyond {MOST_DEGREE}")
    a, b = parameters(claim.type)
    if claim.version == "unsafe" or claim.type[1] == 0:
        shift = "t" if claim.map == "affine" else "0"
        left, right = unsafe_text(a, b, f"g*u + {shift}"), unsafe_text(*shifted_parameters(claim.type, "g", shift), "u")
        pairs = [(left, right)]
    elif claim.map == "scale":
        powers = [["0", *names] for names in (b, [f"{name}*g**{j}" for j, name in enumerate(b, 1)])]
        pairs = [
            (polynomial_text(a, "g*u"), polynomial_text([f"{name}*g**{i}" for i, name in enumerate(a)], "u")),
            (polynomial_text(powers[0], "g*w"), polynomial_text(powers[1], "w")),
        ]
    else:
        return Open(f"form {claim.version} has its kinks where it has them: a shift moves them", "look for one")
    if not all(same(left, right) for left, right in pairs):
        return Open("the two sides are different")
    return Holds({"identities": len(pairs)}, TRUSTED)


@rule("curvature of small networks")
def curvature(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Few bounded weights bend a function little, and 1/(x² + η²) bends much.

    Let R = 1/(x² + η²), 0 < η⁴ ≤ ε ≤ ¼, and |f − R| ≤ ε on [−1, 1], f twice differentiable; η ≤ 1.  By the first
    premise the second difference of R at 0 with step h = η is −η⁻⁴, so that of f is at least η⁻⁴ − 4ε/η² in size, and
    it is f″(ξ) for some ξ.  By the second premise, with s = √ε and v = η² ≤ s, this is at least 1/(2ε).

    Let f be a network of at most s parameters, B, M₁, M₂ the bounds, A = max(1, B, BM₁), C = 2A, κ = max(1, M₂/M₁²).
    Let its neurons be in topological order.  A value computed with e weights up to and including its own neuron has
    |v′| ≤ Cᵉ and |v″| ≤ κC²ᵉ: x has 1 and 0.  A neuron with d ≥ 1 weights on values with at most e before it has a sum
    z with |z′| ≤ dB·Cᵉ and |z″| ≤ dB·κC²ᵉ, and its value has |v′| ≤ M₁|z′| and |v″| ≤ M₁|z″| + M₂|z′|².  d ≤ 2^{d−1}:
    dB and dBM₁ are at most dA ≤ 2^{d−1}A^d = Cᵈ/2.  So |v′| ≤ C^{e+d}, and |v″| ≤ κC^{2e+d}/2 + (M₂/M₁²)·C^{2e+2d}/4,
    at most κC^{2(e+d)}; the same holds of the sum itself, the output.  (A neuron without weights is a number.)  So
    |f″| ≤ κC^{2s}, which must not be less than 1/(2ε).
    """
    if not isinstance(claim, SizeNeeded):
        raise EvidenceError(f"curvature does not speak about {claim.kind}")
    left, right = SECOND_DIFFERENCE
    first, second = premises if len(premises) == 2 else (claim, claim)
    if not isinstance(first, Identity) or not isinstance(second, Nonnegative):
        raise EvidenceError("the premises are the second difference and the inequality of the argument")
    if (first.left, first.right) != (left, right) or (second.value, second.assumptions) != CURVATURE_LEFT:
        raise EvidenceError("the premises are not those of the argument")
    if claim.error > Fraction(1, 4):
        return Open("the argument needs an error of at most 1/4")
    a = max(Fraction(1), claim.weights, claim.weights * claim.slope)
    kappa = max(Fraction(1), claim.curvature / claim.slope**2)
    if claim.size > 1 << 16 or kappa * (2 * a) ** (2 * claim.size) >= 1 / (2 * claim.error):
        return Open("networks of this size may bend enough")
    return Holds({})
