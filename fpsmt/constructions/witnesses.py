"""Affine maps that put two given inputs onto a separation point: a float program for w and b (paper A, §A3 and §A4).

Let η be a float with its neighbours η⁻, η⁺ in (1, 3/2], G = 2^(1 − precision) their distance, and
|u| ≤ v two different inputs, 0 < v < 2^(emax − 1).  There are w, b with

    w⊗u ⊕ b = η⁻ and w⊗v ⊕ b ∈ {η, η⁺},  or the same with u and v exchanged.

So an activation with a separation point there, σ(η⁻) ∉ {σ(η), σ(η⁺)}, tells u from v, whatever it does elsewhere.
|w| is always a power of two, w⊗u and w⊗v are exact or far below G, and ties to even decide between η⁻ and η: what
rounds to an even float is a closed interval, so that the side of a threshold to which it belongs goes to the even one.

* `far`: u is in a lower binade.  |w|·v ∈ [G/2, G), |w·u| < G/2; b = η⁻ when η is even (then w·v moves it up), else
  b = η (and w·v moves it down).
* `opposite`: −u is in the binade of v.  b = η; w·v and w·u move it both ways.
* `agree`: u > 0 is in the binade of v, and their significands differ first at bit j.  With |w|·2^j units = G/2 and A
  the common part of |w|·u and |w|·v, b = η⁻ − A or η + A, exactly.  For j = 0 and odd η: neighbours go to neighbours.

The subnormals count as one binade for `agree`, and by their leading bit for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, context, exactly, pow2
from fpsmt.terms import (
    FALSE,
    BitsSort,
    Term,
    add,
    all_of,
    any_of,
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
    mul,
    neg,
    negation,
    same,
    shift_left,
    sub,
    var,
)


@dataclass(frozen=True)
class Maps:
    """The map φ(t) = w⊗t ⊕ b for the inputs for which `where` holds."""

    name: str
    where: Term
    w: Term
    b: Term

    def at(self, ctx: Context, t: Term) -> Term:
        """φ(t)."""
        return add(ctx, mul(ctx, self.w, t), self.b)


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

    def powers(self, exponent: int) -> list[tuple[Term, Term]]:
        """(condition, 2^(exponent − e)) with e that of the normal v: a normal or a subnormal power of two."""
        fmt, p = self.fmt, self.fmt.fraction_bits
        top = exponent + 2 * fmt.bias  # the exponent field of the power is top − field of v, when that is ≥ 1
        width = fmt.exponent_bits + 1
        field = concat(bits(1, 0), self.field(self.v_code))
        t = extract(bits_sub(bits(width, top), field), fmt.exponent_bits - 1, 0)
        normal = from_bits(fmt, concat(bits(1, 0), t, bits(p, 0)))
        least = bits(width, min(top, 2 * fmt.bias))
        found = [(bits_less(field, least), normal)]
        if top <= 2 * fmt.bias - 2:  # v reaches the field 2·bias − 2
            wide = concat(bits(fmt.bits - width, 0), field)
            place = bits_sub(bits(fmt.bits, top - 1 + p), wide)
            found.append((negation(found[0][0]), from_bits(fmt, shift_left(bits(fmt.bits, 1), place))))
        return found


def separating_maps(fmt: Format) -> list[Maps]:
    """The cases, which together cover `Inputs.domain`; their terms are in the variables u, v and η."""
    given = Inputs(fmt)
    return [*_far(given), *_opposite(given), *_agree(given)]


def folded(maps: Sequence[Maps], size: int) -> list[Maps]:
    """The same with up to `size` neighbouring cases made one: fewer and larger formulas."""
    found = []
    for start in range(0, len(maps), size):
        some = maps[start : start + size]
        w, b = some[-1].w, some[-1].b
        for each in reversed(some[:-1]):
            w, b = ite(each.where, each.w, w), ite(each.where, each.b, b)
        name = some[0].name + (f" … {some[-1].name}" if len(some) > 1 else "")
        found.append(Maps(name, any_of(*(each.where for each in some)), w, b))
    return found


def _far(given: Inputs) -> list[Maps]:
    fmt, p = given.fmt, given.fmt.fraction_bits
    u, v = given.u_code, given.v_code
    normal = negation(same(given.field(v), bits(fmt.exponent_bits, 0)))
    lower = all_of(normal, bits_less(given.field(u), given.field(v)))
    b = ite(given.even, given.below, given.eta)
    found = []
    for regime, (where, power) in zip(("", " w subnormal"), given.powers(-p - 1)):
        w = ite(given.even, power, neg(power))
        found.append(Maps(f"far{regime}", all_of(lower, where), w, b))
    minus = same(given.sign(u), bits(1, 1))
    for i in range(p):
        where = all_of(_leads(given, v, i), minus, _below(given, u, i))  # u may be −0
        power = const(exactly(fmt, pow2(fmt.emax - 2 - i)))
        found.append(Maps(f"far subnormal {i}", where, ite(given.even, power, neg(power)), b))
    return found


def _below(given: Inputs, code: Term, i: int) -> Term:
    """The magnitude has no bit at i or above."""
    top = given.fmt.bits - 2
    return same(extract(code, top, i), bits(top - i + 1, 0))


def _leads(given: Inputs, code: Term, i: int) -> Term:
    """The magnitude is subnormal with its leading one at bit i."""
    top = given.fmt.bits - 2
    return same(extract(code, top, i), bits(top - i + 1, 1))


def _opposite(given: Inputs) -> list[Maps]:
    fmt, p = given.fmt, given.fmt.fraction_bits
    u, v = given.u_code, given.v_code
    minus = same(given.sign(u), bits(1, 1))
    normal = negation(same(given.field(v), bits(fmt.exponent_bits, 0)))
    together = all_of(normal, minus, same(given.field(u), given.field(v)))
    high = same(extract(v, p - 1, p - 1), bits(1, 1))
    found = []
    for regime, (where, power) in zip(("", " w subnormal"), given.powers(-p - 1)):
        found.append(Maps(f"opposite high{regime}", all_of(together, high, where), neg(power), given.eta))
    for regime, (where, power) in zip(("", " w subnormal"), given.powers(-p)):
        found.append(Maps(f"opposite low{regime}", all_of(together, negation(high), where), power, given.eta))
    for i in range(p):
        here = all_of(minus, _leads(given, v, i), _leads(given, u, i))
        next_bit = same(extract(v, i - 1, i - 1), bits(1, 1)) if i else FALSE
        power, double = (const(exactly(fmt, pow2(fmt.emax - k - i))) for k in (2, 1))
        if i:
            found.append(Maps(f"opposite high subnormal {i}", all_of(here, next_bit), neg(power), given.eta))
        found.append(Maps(f"opposite low subnormal {i}", all_of(here, negation(next_bit)), double, given.eta))
    return found


def _agree(given: Inputs) -> list[Maps]:
    """u and v in one binade (or u = +0 and v subnormal), u < v: the fractions differ first at bit j."""
    fmt, p, ctx = given.fmt, given.fmt.fraction_bits, context(given.fmt)
    u, v = given.fraction(given.u_code), given.fraction(given.v_code)
    fields = same(given.field(given.u_code), given.field(given.v_code))
    normal = negation(same(given.field(given.v_code), bits(fmt.exponent_bits, 0)))
    plus = same(given.sign(given.u_code), bits(1, 0))
    found = []
    for j in range(p):
        first = all_of(same(extract(u, j, j), bits(1, 0)), same(extract(v, j, j), bits(1, 1)))
        prefix = bits(j + 1, 0)
        if j < p - 1:
            first = all_of(first, same(extract(u, p - 1, j + 1), extract(v, p - 1, j + 1)))
            prefix = concat(extract(u, p - 1, j + 1), prefix)
        for hidden in (True, False):
            shared = given.number(-j - 1, prefix, hidden)
            scaled = given.number(0, u, hidden)
            here = all_of(first, fields, normal if hidden else negation(normal))
            here = all_of(here, plus)
            half = given.powers(-j - 1) if hidden else [(None, const(exactly(fmt, pow2(-j - 1 - fmt.emin))))]
            for regime, (where, power) in zip(("", " w subnormal"), half):
                part = here if where is None else all_of(here, where)
                kind = ("agree" if hidden else "agree subnormal") + regime
                found.append(Maps(f"{kind} {j} even", all_of(part, given.even), power, sub(ctx, given.below, shared)))
                if j:
                    b = add(ctx, given.eta, shared)
                    found.append(Maps(f"{kind} {j} odd", all_of(part, negation(given.even)), neg(power), b))
            if not j:
                unit = given.powers(0) if hidden else [(None, const(exactly(fmt, pow2(-fmt.emin))))]
                for regime, (where, power) in zip(("", " w subnormal"), unit):
                    part = here if where is None else all_of(here, where)
                    kind = ("agree" if hidden else "agree subnormal") + regime
                    b = sub(ctx, given.below, scaled)
                    found.append(Maps(f"{kind} {j} odd", all_of(part, negation(given.even)), power, b))
    return found

