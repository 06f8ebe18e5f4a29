"""The facts of `gradient_cells` about formats whose floats are too many to run through: up to 64 bits.

Trusted, for rounding to nearest even in IEEE formats; M is 2^(emax − 2), p the fraction bits.  Computed: the indicator
for every gap, all exponents; up to 32 bits also values whose ulp is below 4ω, and all significands of loss derivatives,
so that these two are known twice.  The rest by hand:

* hat and t.  In the reading of z, γ = z − z⁻ is a float, a power of two 2^e with emin − p ≤ e ≤ emax − 3 − p, and
  z⁺ − z ≥ γ.  Products of layer 1 are exact, and |2x − 2z| ≤ 4M = 2^emax.  At x = z: a = γ, b = c = 0.  At x ≤ z⁻:
  a = b = 0, and z − x ≥ γ, so that c ≥ γ, because rounding is monotone: t = ReLU(γ ⊖ c) = 0.  At x ≥ z⁺, with
  d = x − z ≥ γ: c = 0, and x − z⁻ = d + γ ≤ 2d, so that a ≤ b and hat = 0; and b ≥ 2γ, so that t = 0;
* values v with an ulp of 4ω or more: ω is less than half of it, so that ω ⊕ v = v, even at a power of two, below which
  the floats are 2ω apart or more: ω is at most half of that, and v is even;
* values v = n·ω with an ulp of ω: β = ω, and c = v − ω is exact, being a multiple of ω up to 2^(p + 1)·ω in size.
  Values v = ±2m·ω with an ulp of 2ω: where v ⊕ ω = v there is nothing to show.  Else m is odd, or v = −2^(p + 1)·ω.
  For odd m, v ⊖ ω is a tie and goes to the even float below v, where adding ω, another tie, leaves it; for the power
  of two v ⊖ ω is v.  So β = 2ω; c = v − 2ω is a float, and β + c = v is one;
* w₃.  A = 1 and w₃ = |g|, where γ ≤ 1 or |g|·γ ≤ 2^emax.  Else A = γ, |g| > 2^emax/γ, and |g|/γ > 2^emax/γ² is at least
  2^(2p + 6 − emax), which is normal: so |g|/γ is a float, and γ times it is |g|;
* w₅ and w₄.  With |h| = m·2^k, 1 ≤ m < 2, w₅ is 1 or ¾ times 2^i.  Where nothing leaves the normal numbers, rounded
  products of significands do not depend on exponents, so that all m at one exponent and all (k, A) are all there is.
  q = m, or m ⊗ ¾ for m > 1.5, is in [1, 1.5].  q ⊗ w = 1 for the w in [(1 − 2^(−p − 2))/q, (1 + 2^(−p − 1))/q], where
  ties go to 1.  This is at least 2^(−p − 1) long, as far as floats of [½, 1] are apart, and begins above ½: so there
  is a float w in it, but perhaps where its end exceeds 1; then q = 1, and w = 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fpsmt.constructions.gradient_cells import Cells
from fpsmt.constructions.gradient_tables import LEAST_LAYERS, climb
from fpsmt.floats import Context, pow2
from fpsmt.floats.vector import arithmetic, from_ordinals, ordinals

CHUNK = 1 << 20
COUNTED_BITS = 32  #: formats whose significands are run through


class WideCells(Cells):
    """Without a list of the domain."""

    def __init__(self, ctx: Context, any_order: bool) -> None:
        fmt = ctx.format
        self.ctx, self.any_order, self.vector = ctx, any_order, arithmetic(ctx)
        p = fmt.fraction_bits
        self.gaps = np.array([float(pow2(e)) for e in range(fmt.emin - p, fmt.emax - 2 - p)])
        self.late = any_order and bool((climb(fmt, self.gaps)[1] > 0).any())
        self.layers = LEAST_LAYERS + self.late
        self.gate = float(pow2(fmt.emax - 1))
        self.points = 2 * ((fmt.emax - 2 + fmt.bias) << p) + 1

    def checks(self) -> Iterator[tuple[str, str]]:
        fmt = self.ctx.format
        yield "the form of the format", "" if fmt.is_ieee and fmt.emax >= fmt.fraction_bits + 3 else str(fmt)
        yield "the indicator", self.indicator()
        if fmt.bits <= COUNTED_BITS:
            yield "values", self.values()
            yield "significands of loss derivatives", self.significands()
        yield "exponents of loss derivatives", self.exponents()

    def values(self) -> str:
        """All v, of both signs, up to 2^(emin + 2), from where on an ulp is 4ω."""
        fmt = self.ctx.format
        for start in range(1, (3 << fmt.fraction_bits) + 1, CHUNK):
            v = from_ordinals(fmt, np.arange(start, min(start + CHUNK, (3 << fmt.fraction_bits) + 1)))
            for signed in (v, -v):
                if fails := self.values_at(signed):
                    return fails
        return ""

    def significands(self) -> str:
        """For every m: with q = m or m ⊗ ¾ in [1, 1.5], some w in [½, 1] has q ⊗ w = 1."""
        one, vector, fmt = 1 << self.ctx.format.fraction_bits, self.vector, self.ctx.format
        for start in range(0, one, CHUNK):
            m = 1.0 + np.arange(start, min(start + CHUNK, one)) / one
            q = vector.mul(m, np.where(m > 1.5, 0.75, 1.0))
            near = ordinals(fmt, vector.div(1.0, q))
            good = np.zeros(q.shape, bool)
            for shift in (-1, 0, 1):
                w = from_ordinals(fmt, near + shift)
                good |= (vector.mul(q, w) == 1.0) & (w >= 0.5) & (w <= 1.0)
            if not (good & (q >= 1.0) & (q <= 1.5)).all():
                return f"at {m[int(np.argmin(good))]}"
        return ""

    def exponents(self) -> str:
        """2^i with i = ⌊(a − k − 1)/2⌋ for A = 2^a: w₅, q and w₄ are normal, w₅ ≤ 2^(emax − 3) and w₄ ≤ 2^emax."""
        fmt = self.ctx.format
        a = np.arange(0, max(fmt.emax - 2 - fmt.fraction_bits, 1))[:, None]
        k = np.arange(fmt.emin - fmt.fraction_bits, fmt.emax + 1)[None, :]
        i = (a - k - 1) // 2
        rest = a - k - i
        good = (i - 1 >= fmt.emin) & (i <= fmt.emax - 3) & (k + i >= fmt.emin) & (k + i <= fmt.emax)
        good &= (rest - 1 >= fmt.emin) & (rest <= fmt.emax)
        return "" if good.all() else "an exponent is out of range"
