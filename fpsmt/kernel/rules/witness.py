"""Rules about witness functions: maps given as float programs, and what separation points then tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.functions import read_value
from fpsmt.claims.steering import AllDistinguishable, SameOutput, Steering
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats import less_equal
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
    le,
    mul,
    negation,
    same,
    term_from_json,
    var,
    variables,
)
from fpsmt.terms import const as constant


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
        le(from_bits(fmt, v), constant(claim.bound)),
        ite(same(extract(u, top, top), bits(1, 1)), negation(bits_less(v, size)), bits_less(u, v)),
        bits_less(bits(fmt.bits, claim.first.code), eta),
        bits_less(eta, bits(fmt.bits, claim.last.code)),
    )


def steers(claim: Steering, w: Term, b: Term) -> Term:
    """w⊗t ⊕ b is η⁻ at one of u, v and η or η⁺ at the other."""
    ctx, fmt = claim.context, claim.context.format
    u, v, eta = _codes(claim)
    one = bits(fmt.bits, 1)
    below, above = (from_bits(fmt, code) for code in (bits_sub(eta, one), bits_add(eta, one)))
    at_u, at_v = (add(ctx, mul(ctx, w, from_bits(fmt, code)), b) for code in (u, v))
    here = [any_of(same(t, from_bits(fmt, eta)), same(t, above)) for t in (at_u, at_v)]
    return any_of(all_of(same(at_u, below), here[1]), all_of(same(at_v, below), here[0]))


def witness_claims(claim: Steering, cases: Sequence[tuple[Term, Term, Term]]) -> list[ForAll]:
    """The premises of the rule `witness functions` for cases (where, w, b)."""
    domain = asked(claim)
    parts = [
        ForAll(f"case {i} of {claim.text}", implies(all_of(domain, where), steers(claim, w, b)))
        for i, (where, w, b) in enumerate(cases, 1)
    ]
    return [*parts, ForAll("the cases are complete", implies(domain, any_of(*(where for where, _, _ in cases))))]


@rule("witness functions")
def witness_functions(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """∀ u, v, η ∃ w, b: given w and b as terms in u, v, η, by cases; then nothing is left to quantify but ∀.

    Of two different numbers x, x′ with |x|, |x′| ≤ bound let v be the one with the larger absolute value, u the
    other (either one when these are equal).  When v < 0 the map −w, b does at u, v what w, b does at −u, −v, since
    (−w)⊗t = w⊗(−t); so let v > 0, hence −v ≤ u < v.  In the case that holds for (u, v, η) its w and b do what is asked.
    They are finite: what an infinite or NaN w or b gives is infinite or NaN, and not η⁻.

    data: cases, a list of [where, w, b] as terms in the codes u, v, η.  Premises: those of `witness_claims`.
    """
    if not isinstance(claim, Steering):
        raise EvidenceError(f"these witness functions do not speak about {claim.kind}")
    cases = [tuple(term_from_json(part) for part in case) for case in data["cases"]]
    known = set(_codes(claim))
    for case in cases:
        if len(case) != 3 or not set(variables(*case)) <= known:
            raise EvidenceError("a case is [where, w, b], in the variables u, v and η")
    if list(premises) != witness_claims(claim, [(where, w, b) for where, w, b in cases]):
        raise EvidenceError("the premises are not the cases and their completeness")
    return Holds({"cases": len(cases)})


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
