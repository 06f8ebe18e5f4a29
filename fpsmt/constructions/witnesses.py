"""Affine maps that put two given inputs onto a separation point: float programs for w and b (paper A, §A3 and §A4).

Let η be a float with its neighbours η⁻, η⁺ in (1, 3/2], G = 2^(1 − precision) their distance, and
|u| ≤ v two different inputs, 0 < v < 2^(emax − 1).  There are w, b with

    w⊗u ⊕ b = η⁻ and w⊗v ⊕ b ∈ {η, η⁺},  or the same with u and v exchanged.

So an activation with a separation point there, σ(η⁻) ∉ {σ(η), σ(η⁺)}, tells u from v, whatever it does elsewhere.
|w| is always a power of two, w⊗u and w⊗v are exact or far below G, and ties to even decide between η⁻ and η: what
rounds to an even float is a closed interval, so that the side of a threshold to which it belongs goes to the even one.

* `far`: u is in a lower binade.  |w|·v ∈ [G/2, G), |w·u| < G/2; b = η⁻ when η is even (then w·v moves it up), else
  b = η (and w·v moves it down).
* `opposite`: −u is in the binade of v.  b = η; w·v and w·u move it both ways.
* `agree`: u ≥ 0 is in the binade of v, and their significands differ first at bit j.  With |w|·2^j units = G/2 and A
  the common part of |w|·u and |w|·v, b = η⁻ − A or η + A, exactly.  For j = 0 and odd η: neighbours go to neighbours.

The cases are given for v ∈ [1, 2) and for subnormal v.  With 2^−e·w for w they are those for the binade of 2^e.
The subnormals count as one binade for `agree`, and by their leading bit for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from fpsmt.errors import UsageError
from fpsmt.floats import Float, Format, context, exactly, pow2
from fpsmt.terms import (
    FALSE,
    BitsSort,
    Term,
    add,
    all_of,
    bits,
    bits_add,
    bits_and,
    bits_less,
    bits_sub,
    concat,
    const,
    extract,
    from_bits,
    ite,
    le,
    negation,
    same,
    sub,
    var,
)


@dataclass(frozen=True)
class Map:
    """φ(t) = w⊗t ⊕ b, for the inputs for which `where` holds; `where` and b are terms in the codes u, v and η."""

    name: str
    where: Term
    w: Float
    b: Term


def bound(fmt: Format) -> Float:
    """The largest input: the predecessor of 2^(emax − 1)."""
    return exactly(fmt, pow2(fmt.emax - 1)).next_down


def run_of(fmt: Format) -> tuple[Float, Float]:
    """[1⁺, 3/2], where η⁻, η and η⁺ lie."""
    return exactly(fmt, 1).next_up, exactly(fmt, pow2(0) + pow2(-1))


class Inputs:
    """The codes of u, v and η as variables, and their parts."""

    def __init__(self, fmt: Format) -> None:
        if not fmt.is_ieee or fmt.fraction_bits < 3 or fmt.emax < fmt.fraction_bits + 3:
            raise UsageError(f"witness functions are for IEEE formats with 3 ≤ p ≤ emax − 3, not for {fmt}")
        self.fmt = fmt
        self.u_code, self.v_code, self.eta_code = (var(name, BitsSort(fmt.bits)) for name in ("u", "v", "η"))
        self.u, self.v = from_bits(fmt, self.u_code), from_bits(fmt, self.v_code)
        one = bits(fmt.bits, 1)
        self.below = from_bits(fmt, bits_sub(self.eta_code, one))
        self.eta = from_bits(fmt, self.eta_code)
        self.above = from_bits(fmt, bits_add(self.eta_code, one))
        self.even = same(extract(self.eta_code, 0, 0), bits(1, 0))

    def domain(self) -> Term:
        """0 < v ≤ bound, −v ≤ u < v, and η⁻, η, η⁺ in the run."""
        fmt = self.fmt
        low, high = run_of(fmt)
        codes = (bits(fmt.bits, low.code), bits(fmt.bits, high.code))
        u_size = bits_and(self.u_code, bits(fmt.bits, fmt.sign_mask - 1))
        minus = same(self.sign(self.u_code), bits(1, 1))
        return all_of(
            bits_less(bits(fmt.bits, 0), self.v_code),
            le(self.v, const(bound(fmt))),
            same(self.sign(self.v_code), bits(1, 0)),
            ite(minus, negation(bits_less(self.v_code, u_size)), bits_less(self.u_code, self.v_code)),
            bits_less(codes[0], self.eta_code),
            bits_less(self.eta_code, codes[1]),
        )

    def sign(self, code: Term) -> Term:
        return extract(code, self.fmt.bits - 1, self.fmt.bits - 1)

    def field(self, code: Term) -> Term:
        """The exponent field."""
        return extract(code, self.fmt.bits - 2, self.fmt.fraction_bits)

    def fraction(self, code: Term) -> Term:
        return extract(code, self.fmt.fraction_bits - 1, 0)

    # -- numbers --------------------------------------------------------------------------------------------

    def number(self, exponent: int, fraction: Term, hidden: bool = True) -> Term:
        """1.fraction·2^exponent, or 0.fraction·2^exponent."""
        fmt = self.fmt
        value = from_bits(fmt, concat(bits(1, 0), bits(fmt.exponent_bits, exponent + fmt.bias), fraction))
        return value if hidden else sub(context(fmt), value, const(exactly(fmt, pow2(exponent))))


def normal_maps(fmt: Format) -> list[Map]:
    """The cases for v ∈ [1, 2); the first two of them are for u of any lower binade."""
    given = Inputs(fmt)
    p, u, v = fmt.fraction_bits, given.u_code, given.v_code
    lower = bits_less(given.field(u), given.field(v))
    together = all_of(same(given.field(u), given.field(v)), _minus(given))
    top = same(extract(v, p - 1, p - 1), bits(1, 1))
    return [
        *_far(given, "far", lower, -p - 1),
        Map("opposite high", all_of(together, top), _power(fmt, -p - 1, -1), given.eta),
        Map("opposite low", all_of(together, negation(top)), _power(fmt, -p), given.eta),
        *_agree(given, hidden=True),
    ]


def subnormal_maps(fmt: Format) -> list[Map]:
    """The cases for subnormal v."""
    given = Inputs(fmt)
    p, u, v = fmt.fraction_bits, given.u_code, given.v_code
    found: list[Map] = []
    for i in range(p):
        leads = all_of(_leads(given, v, i), _minus(given))
        found += _far(given, f"far subnormal {i}", all_of(leads, _below(given, u, i)), fmt.emax - 2 - i)
        here = all_of(leads, _leads(given, u, i))
        next_bit = same(extract(v, i - 1, i - 1), bits(1, 1)) if i else FALSE
        if i:
            high = all_of(here, next_bit)
            found.append(Map(f"opposite high subnormal {i}", high, _power(fmt, fmt.emax - 2 - i, -1), given.eta))
        low = all_of(here, negation(next_bit))
        found.append(Map(f"opposite low subnormal {i}", low, _power(fmt, fmt.emax - 1 - i), given.eta))
    return found + _agree(given, hidden=False)


def _power(fmt: Format, exponent: int, sign: int = 1) -> Float:
    return exactly(fmt, sign * pow2(exponent))


def _minus(given: Inputs) -> Term:
    return same(given.sign(given.u_code), bits(1, 1))


def _below(given: Inputs, code: Term, i: int) -> Term:
    """The magnitude has no bit at i or above."""
    top = given.fmt.bits - 2
    return same(extract(code, top, i), bits(top - i + 1, 0))


def _leads(given: Inputs, code: Term, i: int) -> Term:
    """The magnitude is subnormal with its leading one at bit i."""
    top = given.fmt.bits - 2
    return same(extract(code, top, i), bits(top - i + 1, 1))


def _far(given: Inputs, name: str, where: Term, exponent: int) -> list[Map]:
    """u is in a lower binade than v, and |w|·v is in that of G/2."""
    fmt = given.fmt
    odd = all_of(where, negation(given.even))
    return [
        Map(f"{name} even", all_of(where, given.even), _power(fmt, exponent), given.below),
        Map(f"{name} odd", odd, _power(fmt, exponent, -1), given.eta),
    ]


def _agree(given: Inputs, hidden: bool) -> list[Map]:
    """u and v in one binade (or u = +0 and v subnormal), u < v: the fractions differ first at bit j."""
    fmt, p, ctx = given.fmt, given.fmt.fraction_bits, context(given.fmt)
    u, v = given.fraction(given.u_code), given.fraction(given.v_code)
    together = all_of(same(given.field(given.u_code), given.field(given.v_code)), negation(_minus(given)))
    kind, scale = ("agree", 0) if hidden else ("agree subnormal", -fmt.emin)
    found = []
    for j in range(p):
        first = all_of(same(extract(u, j, j), bits(1, 0)), same(extract(v, j, j), bits(1, 1)))
        prefix = bits(j + 1, 0)
        if j < p - 1:
            first = all_of(first, same(extract(u, p - 1, j + 1), extract(v, p - 1, j + 1)))
            prefix = concat(extract(u, p - 1, j + 1), prefix)
        shared = given.number(-j - 1, prefix, hidden)
        here, half = all_of(together, first), scale - j - 1
        even, odd = all_of(here, given.even), all_of(here, negation(given.even))
        found.append(Map(f"{kind} {j} even", even, _power(fmt, half), sub(ctx, given.below, shared)))
        if j:
            found.append(Map(f"{kind} {j} odd", odd, _power(fmt, half, -1), add(ctx, given.eta, shared)))
        else:
            b = sub(ctx, given.below, given.number(0, u, hidden))
            found.append(Map(f"{kind} {j} odd", odd, _power(fmt, scale), b))
    return found
