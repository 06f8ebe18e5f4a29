"""Rules about witness functions: maps given as float programs, and what separation points then tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.functions import read_value
from fpsmt.claims.steering import AllDistinguishable, SameOutput, Steering
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats import Float, Subnormals, exactly, floor_log2, less_equal, pow2
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.rules.conditions import certain_separation
from fpsmt.kernel.trust import BALLS
from fpsmt.terms import (
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
    extract,
    from_bits,
    implies,
    ite,
    mul,
    negation,
    same,
    substitute,
    term_from_json,
    term_to_json,
    var,
    variables,
)
from fpsmt.terms import const as constant


@dataclass(frozen=True)
class Case:
    """w⊗t ⊕ b for the inputs for which `where` holds; `where` and b are terms in the codes u, v and η."""

    where: Term
    w: Float
    b: Term

    @property
    def exponent(self) -> int:
        """k of w = ±2^k."""
        if not self.w.is_finite or self.w.is_zero:
            raise EvidenceError(f"a weight is a power of two, not {self.w}")
        k = floor_log2(abs(self.w.fraction))
        if abs(self.w.fraction) != pow2(k):
            raise EvidenceError(f"a weight is a power of two, not {self.w}")
        return k


@dataclass(frozen=True)
class Cases:
    """Maps for v ∈ [1, 2), of which the first `lower` are for u far below v, and maps for subnormal v."""

    normal: tuple[Case, ...]
    lower: int
    subnormal: tuple[Case, ...]

    def to_json(self) -> dict[str, Json]:
        def listed(cases: tuple[Case, ...]) -> list[Json]:
            return [[term_to_json(c.where), c.w.hex, term_to_json(c.b)] for c in cases]

        return {"normal": listed(self.normal), "lower": self.lower, "subnormal": listed(self.subnormal)}


def cases_from_json(claim: Steering, data: Mapping[str, Json]) -> Cases:
    known, fmt = set(_codes(claim)), claim.context.format

    def read(each: Json) -> Case:
        where, w, b = each
        case = Case(term_from_json(where), read_value(fmt, w), term_from_json(b))
        if not set(variables(case.where, case.b)) <= known:
            raise EvidenceError("a case is [where, w, b], with terms in the variables u, v and η")
        return case

    normal, subnormal = (tuple(read(each) for each in data[name]) for name in ("normal", "subnormal"))
    return Cases(normal, int(data["lower"]), subnormal)


def _codes(claim: Steering) -> tuple[Term, Term, Term]:
    sort = BitsSort(claim.context.format.bits)
    return var("u", sort), var("v", sort), var("η", sort)


def asked(claim: Steering) -> Term:
    """0 < v ≤ bound, −v ≤ u < v, first < η < last, for codes u, v, η; u may be either zero."""
    fmt = claim.context.format
    u, v, eta = _codes(claim)
    top = fmt.bits - 1
    size = bits_and(u, bits(fmt.bits, fmt.sign_mask - 1))
    return all_of(
        same(extract(v, top, top), bits(1, 0)),
        bits_less(bits(fmt.bits, 0), v),
        negation(bits_less(bits(fmt.bits, claim.bound.code), v)),
        ite(same(extract(u, top, top), bits(1, 1)), negation(bits_less(v, size)), bits_less(u, v)),
        bits_less(bits(fmt.bits, claim.first.code), eta),
        bits_less(eta, bits(fmt.bits, claim.last.code)),
    )


def steers(claim: Steering, w: Float, b: Term, u: Term | None = None) -> Term:
    """w⊗t ⊕ b is η⁻ at one of u, v and η or η⁺ at the other."""
    ctx, fmt = claim.context, claim.context.format
    code, v, eta = _codes(claim)
    one = bits(fmt.bits, 1)
    below, above = (from_bits(fmt, c) for c in (bits_sub(eta, one), bits_add(eta, one)))
    points = (from_bits(fmt, code) if u is None else u, from_bits(fmt, v))
    at_u, at_v = (add(ctx, mul(ctx, constant(w), t), b) for t in points)
    here = [any_of(same(t, from_bits(fmt, eta)), same(t, above)) for t in (at_u, at_v)]
    return any_of(all_of(same(at_u, below), here[1]), all_of(same(at_v, below), here[0]))


def witness_claims(claim: Steering, cases: Cases) -> list[ForAll]:
    """The premises of the rule `witness functions`: the cases, their completeness, and tiny u."""
    fmt = claim.context.format
    u, v, _ = _codes(claim)
    domain = asked(claim)
    exponent = extract(v, fmt.bits - 2, fmt.fraction_bits)
    normal, subnormal = (all_of(same(exponent, bits(fmt.exponent_bits, e)), domain) for e in (fmt.bias, 0))
    parts = [implies(all_of(normal, c.where), steers(claim, c.w, c.b)) for c in cases.normal]
    parts += [implies(all_of(subnormal, c.where), steers(claim, c.w, c.b)) for c in cases.subnormal]
    found = [ForAll(f"case {i} of {claim.text}", part) for i, part in enumerate(parts, 1)]
    complete = [
        implies(domain_, any_of(*(c.where for c in some)))
        for domain_, some in ((normal, cases.normal), (subnormal, cases.subnormal))
    ]
    found.append(ForAll("the cases are complete", all_of(*complete)))
    zero = {u: bits(fmt.bits, 0)}
    least = exactly(fmt, pow2(fmt.emin))
    tiny = []
    for c in cases.normal[: cases.lower]:
        both = all_of(*(steers(claim, c.w, substitute(c.b, zero), constant(t)) for t in (least, -least)))
        tiny.append(implies(all_of(substitute(normal, zero), substitute(c.where, zero)), both))
    covered = any_of(*(substitute(c.where, zero) for c in cases.normal[: cases.lower]))
    tiny.append(implies(substitute(normal, zero), covered))
    return [*found, ForAll("what is done at 0 is done up to the least normal value", all_of(*tiny))]


@rule("witness functions")
def witness_functions(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """∀ u, v, η ∃ w, b: given w and b, b as a term in u, v and η, by cases; nothing is left to quantify but ∀.

    *v > 0.*  Of two different numbers x, x′ with |x|, |x′| ≤ bound let v be the one with the larger absolute value, u
    the other (either one when these are equal).  When v < 0 the map −w, b does at u, v what w, b does at −u, −v, since
    (−w)⊗t = w⊗(−t); so let v > 0, hence −v ≤ u < v.

    *Cases.*  For subnormal v, and for v ∈ [1, 2), the case that holds for (u, v, η) does what is asked.

    *Scaling.*  Let v be normal, v = 2^e·v₀ with 1 ≤ v₀ < 2, and u = 2^e·u₀.  For w₀ = ±2^k of a case let w = 2^−e·w₀: a
    float, since emin − p ≤ k − e ≤ emax for emin ≤ e ≤ ⌊log₂ bound⌋ is checked, p the fraction bits.  The real products
    are w·v = w₀·v₀ and w·u = w₀·u₀, and so are the rounded ones where u₀ is a float: then w, b do at u, v what w₀, b do
    at u₀, v₀.  |u₀| ≤ v₀ < 2, so u₀, which has no more bits than u, is a float unless |u₀| < 2^emin.

    *Tiny u.*  There take w₀, b of the case that holds for 0, v₀.  By the last premise they move ±2^emin, together with
    v₀, onto η; t ↦ round(w₀·t) ⊕ b is monotone, so u₀ is moved between two floats that are both η⁻, or both η or η⁺.

    b is finite: what an infinite or NaN b gives is infinite or NaN, and not η⁻.

    data: normal and subnormal, lists of [where, w, b] with w in hex; lower, how many of `normal` are for tiny
    u.  Premises: those of `witness_claims`.
    """
    if not isinstance(claim, Steering):
        raise EvidenceError(f"these witness functions do not speak about {claim.kind}")
    fmt = claim.context.format
    if claim.context.subnormals is not Subnormals.GRADUAL or not fmt.emin <= 0 < fmt.emax:
        raise EvidenceError(f"scaling needs gradual underflow and values from 1 to 2, not {claim.context}")
    if not less_equal(exactly(fmt, 2), claim.bound):
        raise EvidenceError(f"the inputs up to {claim.bound} are not all from 1 to 2")
    cases = cases_from_json(claim, data)
    top = floor_log2(claim.bound.fraction)
    for case in cases.normal:
        if not fmt.emin - fmt.fraction_bits <= case.exponent - top <= case.exponent - fmt.emin <= fmt.emax:
            raise EvidenceError(f"the weight {case.w} cannot be scaled to every binade")
    if list(premises) != witness_claims(claim, cases):
        raise EvidenceError("the premises are not the cases and their completeness")
    return Holds({"cases": len(cases.normal) + len(cases.subnormal)})


@rule("separation point in reach")
def separation_in_reach(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Every implementation has a separation point η with η⁻, η, η⁺ in a run onto which every two inputs can be moved.

    `certain_separation` gives, for each implementation I, an η with I(η⁻) ∉ {I(η), I(η⁺)} and p ≤ η⁻, η⁺ ≤ q⁺.  By the
    premise some finite w, b send one of x, x′ to η⁻ and the other to η or η⁺; both values are finite, and so are the
    products.  So the map is admissible for this pair, and I gives two different numbers.

    data: points, a [p, q] in hex for each activation.  Premise: `Steering` in this context, with bound ≥ |x| on the
    domain and a run that holds all points.  Not for maps that must be finite on the whole domain.
    """
    if isinstance(claim, Distinguishable):
        settings: tuple[Setting, ...] = (claim.setting,)
    elif isinstance(claim, AllDistinguishable):
        settings = claim.settings
    else:
        raise EvidenceError(f"separation points in reach do not speak about {claim.kind}")
    if len(premises) != 1 or not isinstance(premises[0], Steering):
        raise EvidenceError("the premise is that every two inputs can be moved onto a separation point")
    steering = premises[0]
    if len(data["points"]) != len(settings):
        raise UsageError(f"there are {len(settings)} activations and {len(data['points'])} pairs of points")
    for setting, points in zip(settings, data["points"], strict=True):
        if setting.reading is Reading.FINITE_ON_DOMAIN:
            return Open("the maps need not be finite on the whole domain")
        if setting.context != steering.context:
            raise EvidenceError("the premise is about another context")
        if not all(less_equal(abs(end), steering.bound) for end in (setting.low, setting.high)):
            raise EvidenceError("the premise is about a smaller domain")
        p, q = (read_value(setting.context.format, point) for point in points)
        if not (less_equal(steering.first, p) and less_equal(q.next_up, steering.last)):
            raise EvidenceError("the points are not in the run of the premise")
        if not certain_separation(setting.implementation, setting.context, p, q):
            return Open(f"{setting.name}: the results at {p} are not apart from those at {q} and after")
    return Holds({"activations": len(settings)}, (BALLS,))


@rule("first layer agrees")
def first_layer_agrees(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """If no admissible map tells x from y, no network does (Lemma 2 of paper A).

    Every neuron of the first layer is I(φ(x)) with an admissible map φ, hence one number at x and at y.  What follows
    is made of ⊗, ⊕, fma and I, whose results are one number when their arguments are: at ±0 they differ at most in the
    sign of a zero (there is no division), and I is a function of numbers.  By induction over the operations the outputs
    are one number.

    Premise: `Inseparable` for this setting and pair; where it says that some implementation fails, that one is meant.
    """
    if not isinstance(claim, SameOutput):
        raise EvidenceError(f"an agreeing first layer does not speak about {claim.kind}")
    if list(premises) != [Inseparable(claim.setting, claim.x, claim.y)]:
        raise EvidenceError("the premise is not that no map tells this pair apart")
    return Holds({})
