"""Rules about the conditions for universality: witnesses, and proofs that a part fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from fpsmt.claims.adversary import pattern
from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.conditions import Condition, PartFails, inside
from fpsmt.claims.functions import read_value
from fpsmt.claims.interval_condition import IntervalCondition
from fpsmt.claims.places import allowed_by_index, allowed_places, listed, offset
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import (
    Context,
    Float,
    Mode,
    Subnormals,
    all_values,
    floor_log2,
    from_ordinal,
    largest,
    pow2,
    round_real,
)
from fpsmt.functions import CorrectlyRounded, Implementation, WithinUlps, constant_on, enclose, range_on
from fpsmt.functions.implementations import ALWAYS_ALLOW_ROUNDED
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR

MOST_VISITED = 1 << 12  #: floats of a run that are visited one by one where its range cannot be enclosed
EXACT_BITS = 8  #: of a format whose slopes are all computed


def needs_condition(claim: Claim) -> Condition:
    if not isinstance(claim, Condition):
        raise EvidenceError(f"this rule is for conditions on activations, not for {claim.kind}")
    return claim


def disjoint(implementation: Implementation, ctx: Context, x: Float, others: Sequence[Float]) -> bool:
    """No result allowed at x is allowed at one of the others, as numbers."""
    low, high = allowed_places(implementation, ctx, x)
    ends = [allowed_places(implementation, ctx, y) for y in others]
    return low <= high and all(other[0] <= other[1] and (high < other[0] or other[1] < low) for other in ends)


def certain_separation(implementation: Implementation, ctx: Context, p: Float, q: Float) -> bool:
    """Every implementation has a separation point η with p ≤ η⁻ and η⁺ ≤ q⁺; p < q.

    Proof.  Let p = x₀ < … < x_{n−1} = q < x_n = q⁺ be the floats from p to q⁺, and sᵢ = I(xᵢ).  If no xᵢ, 0 < i < n, is
    a separation point, then sᵢ ∈ {sᵢ₊₁, sᵢ₊₂} for all i ≤ n − 2, so that by induction from the end all sᵢ are in
    {s_{n−1}, s_n}; but the results allowed at p are neither allowed at q nor at q⁺.
    """
    if not (p.is_finite and q.is_finite and p.ordinal < q.ordinal and q.next_up.is_finite):
        return False
    return disjoint(implementation, ctx, p, [q, q.next_up])


def results_inside(
    implementation: Implementation, ctx: Context, low: Float, high: Float, window: tuple[Fraction, Fraction]
) -> bool:
    """Every result allowed at every float of [low, high] has an absolute value in the window, which is above 0.

    For K ulps by an enclosure [a, b] of f over the interval, say a > 0.  A result is ⌈f(x)⌋, between ⌈a⌋ and ⌈b⌋, or
    within K·ulp(y) of a y ∈ [a, b].  y + K·ulp(y) is increasing.  y − K·ulp(y) is increasing within a binade; over
    binades that begin in (a, b] it is least at the first of these beginnings when K < 2^p, and not positive at any
    when not.  A result beyond Ω may be ±inf, hence the window ends at Ω.
    """
    contract = implementation.contract
    if isinstance(contract, CorrectlyRounded | WithinUlps) and ctx.subnormals is Subnormals.GRADUAL:
        ulps = contract.ulps if isinstance(contract, WithinUlps) else Fraction(0)
        try:
            a, b = enclose(implementation.function, low.fraction, high.fraction)
        except (Unsupported, UsageError):
            return False
        if b < 0:
            a, b = -b, -a
        if a <= 0:
            return False
        fmt = ctx.format

        def spread(y: Fraction) -> Fraction:
            return ulps * pow2(max(floor_log2(y), fmt.emin) - fmt.fraction_bits)

        starts = [pow2(e) for e in (floor_log2(a) + 1,) if pow2(e) <= b]
        ends = [round_real(ctx.with_mode(mode), y) for mode, y in ((Mode.RTZ, a), (Mode.RTN, b), (Mode.RTP, b))]
        if not all(y.is_finite for y in ends):
            return False
        least = min([y - spread(y) for y in (a, *starts)] + [y.fraction for y in ends])
        most = max([b + spread(b)] + [y.fraction for y in ends])
        return window[0] <= least and most <= min(window[1], fmt.largest)
    if high.ordinal - low.ordinal >= MOST_VISITED:
        return False
    points = (from_ordinal(ctx.format, k) for k in range(low.ordinal, high.ordinal + 1))
    return all(inside(ctx.format, allowed_places(implementation, ctx, x), window) for x in points)


@rule("condition witnesses")
def condition_witnesses(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Checks c₀, c₁ and a run of floats with a separation point, for every implementation within the contract.

    All results allowed at c₀ are in the window of C0, all allowed at c₁ in that of C1.  In the run from p to q⁺ every
    implementation has a separation point (`certain_separation`), with η⁻ and η⁺ in the run; the run lies in the window
    for η, and all results allowed on it in the window for values.

    data: c0, c1, p, q in hex.  Works for formats of any size: results come from certified enclosures.
    """
    condition = needs_condition(claim)
    ctx, fmt = condition.context, condition.context.format
    c0, c1, p, q = (read_value(fmt, data[name]) for name in ("c0", "c1", "p", "q"))
    if not (c0.is_finite and c1.is_finite):
        raise EvidenceError("c₀ and c₁ are finite")
    if not condition.small(condition.allowed(c0)):
        return Open(f"not every result at c₀ = {c0} is within {condition.windows.zero} of 0")
    if not condition.usable(condition.allowed(c1)):
        return Open(f"not every result at c₁ = {c1} is in the window around 1")
    if not certain_separation(condition.implementation, ctx, p, q):
        return Open(f"the results allowed at {p} are not apart from those at {q} and after")
    first, last = condition.run
    if not first <= p.ordinal <= q.ordinal + 1 <= last:
        return Open(f"the run from {p} to {q.next_up} leaves the window for η")
    if not results_inside(condition.implementation, ctx, p, q.next_up, condition.windows.value):
        return Open(f"on the run from {p} to {q.next_up} some result may leave the window for values")
    return Holds({"run": f"[{p}, {q.next_up}]", "floats": q.ordinal + 2 - p.ordinal}, (BALLS,))


# -- by exhaustion ------------------------------------------------------------------------------------------------


@rule("condition exhausted")
def condition_exhausted(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Looks at every float of a format of at most 16 bits: C0, C1 and C2 hold for every implementation.

    C0 and C1: some float has all its allowed results in the window.  C2: where a float of the window for η may give a
    result outside the window for values, an implementation gives that, and no separation point there counts.  Left are
    segments of consecutive floats whose results all count; `fpsmt.claims.adversary` says when an implementation has no
    separation point within one.  If on some segment there is no such implementation, every implementation has one.

    data: segment, the first and the last float of such a segment.
    """
    condition = needs_condition(claim)
    fmt = condition.context.format
    if not listed(fmt):
        return Open(f"the values of {fmt} are too many to list as float64 numbers")
    low, high = allowed_by_index(condition.implementation, condition.context)
    finite = range(offset(fmt) - fmt.largest_code, offset(fmt) + fmt.largest_code + 1)
    for part, holds in (("C0", condition.small), ("C1", condition.usable)):
        if not any(holds((int(low[i]), int(high[i]))) for i in finite):
            return Open(f"{part}: no float has all its results in the window")
    ends = [read_value(fmt, end).ordinal for end in data["segment"]]
    first, last = condition.run
    if not first <= ends[0] <= ends[1] <= last:
        raise EvidenceError("the segment leaves the window for η")
    segment = slice(ends[0] + offset(fmt), ends[1] + offset(fmt) + 1)
    low, high = low[segment], high[segment]
    if not all(map(condition.valued, zip(low.tolist(), high.tolist(), strict=True))):
        return Open("C2: some result on the segment may leave the window for values")
    if pattern(ends[0], low, high) is not None:
        return Open("C2: an implementation has no separation point in the segment")
    return Holds({"floats": len(low)}, (VECTOR, BALLS))


# -- failures -----------------------------------------------------------------------------------------------------


def _part(claim: Claim, *parts: str) -> Condition:
    if not isinstance(claim, PartFails) or claim.part not in parts:
        raise EvidenceError(f"this rule is about a failing {' or '.join(parts)}, not about {claim.text}")
    return claim.condition


@rule("no usable value")
def no_usable_value(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """At every float of a format of at most 16 bits some allowed result is outside the window: some I gives it.

    Results at different floats do not restrict each other, so that one implementation does so everywhere.
    """
    condition = _part(claim, "C0", "C1")
    fmt = condition.context.format
    if not listed(fmt):
        return Open(f"the values of {fmt} are too many to list as float64 numbers")
    low, high = allowed_by_index(condition.implementation, condition.context)
    holds = condition.small if isinstance(claim, PartFails) and claim.part == "C0" else condition.usable
    for i in range(offset(fmt) - fmt.largest_code, offset(fmt) + fmt.largest_code + 1):
        if holds((int(low[i]), int(high[i]))):
            return Open(f"{from_ordinal(fmt, i - offset(fmt))} has all its results in the window")
    return Holds({"floats": 2 * fmt.largest_code + 1}, (VECTOR, BALLS))


@rule("range outside the window")
def range_outside(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The correctly rounded activation is one of the implementations, and its values are between the rounded ends of
    the real function's range (rounding is monotone), where the window has none.
    """
    condition = _part(claim, "C0", "C1")
    assert isinstance(claim, PartFails)
    if not isinstance(condition.implementation.contract, ALWAYS_ALLOW_ROUNDED):
        return Open("the correctly rounded activation need not be an implementation")
    least, most = condition.implementation.function.range
    top = condition.context.format.largest * 2
    low = -top if least is None else _rounded(condition.context, least)
    high = top if most is None else _rounded(condition.context, most)
    windows = condition.windows
    target = [(-windows.zero, windows.zero)]
    if claim.part == "C1":
        target = [windows.one, (-windows.one[1], -windows.one[0])]
    if any(low <= b and a <= high for a, b in target):
        return Open("the range of the function meets the window")
    return Holds({"range": f"[{least}, {most}]"})


def _rounded(ctx: Context, x: Fraction) -> Fraction:
    y = round_real(ctx, x)
    return y.fraction if y.is_finite else x


@rule("constant on the window")
def constant_on_the_window(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The correctly rounded activation is an implementation, and takes one value on all floats of the window for η."""
    condition = _part(claim, "C2")
    if not isinstance(condition.implementation.contract, ALWAYS_ALLOW_ROUNDED):
        return Open("the correctly rounded activation need not be an implementation")
    fmt = condition.context.format
    first, last = condition.run
    if first > last:
        return Holds({"floats": 0})
    ends = from_ordinal(fmt, first), from_ordinal(fmt, last)
    value = constant_on(condition.implementation.function, condition.context, *ends)
    if value is None:
        return Open("the activation is not constant on the window")
    return Holds({"value": value.hex}, (BALLS,))


@rule("one value on the window")
def one_value_on_the_window(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """One number is an allowed result at every float of the window for η but the last: some I is constant on these.

    Then I(η⁻) = I(η) wherever η⁻, η, η⁺ are in the window.

    For K ulps.  On each piece [low, high] an enclosure [y₁, y₂] of f and the least ulp on it show that the value is
    within K·ulp(f(x)) of f(x): max(|a − y₁|, |a − y₂|) ≤ K·min ulp.

    data: value, cuts (the last float of each piece but the last one), in hex.
    """
    condition = _part(claim, "C2")
    contract, ctx, fmt = condition.implementation.contract, condition.context, condition.context.format
    if not isinstance(contract, WithinUlps) or ctx.subnormals is not Subnormals.GRADUAL:
        return Open("only for K ulps and gradual underflow")
    value = read_value(fmt, data["value"])
    first, last = condition.run[0], condition.run[1] - 1
    cuts = [read_value(fmt, cut).ordinal for cut in data["cuts"]]
    if not value.is_finite or sorted(cuts) != cuts or (cuts and not first <= cuts[0] <= cuts[-1] < last):
        raise EvidenceError("the cuts are floats of the window in order, the value is finite")
    low = first
    for high in [*cuts, last] if first <= last else []:
        ends = from_ordinal(fmt, low), from_ordinal(fmt, high)
        y1, y2 = enclose(condition.implementation.function, ends[0].fraction, ends[1].fraction)
        size = Fraction(0) if y1 <= 0 <= y2 else min(abs(y1), abs(y2))
        least = pow2(max(floor_log2(size), fmt.emin) - fmt.fraction_bits) if size else fmt.smallest
        if max(abs(value.fraction - y1), abs(value.fraction - y2)) > contract.ulps * least:
            return Open(f"{value} is not certainly allowed on all of [{ends[0]}, {ends[1]}]")
        low = high + 1
    return Holds({"value": value.hex, "pieces": len(cuts) + 1}, (BALLS,))


# -- the condition of arXiv 2506.16065 ------------------------------------------------------------------------------


@rule("interval condition witnesses")
def interval_condition_witnesses(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Checks c₁, c₂ and η; λ is the bound below, or for at most 8 bits the largest slope.

    What is said of all x is a range over floats, exact from the turning points of f (`range_on`).  Let |f′| ≤ L, base
    point x₀ ∈ {η, η⁺} with rounded value s, x on its side, Δ = |x − x₀| ≥ d, the distance of x₀ to its neighbour there.
    Rounding moves y by at most (ε/2)|y| + ω, and |f(x₀)| ≤ t := |s|(1 + ε) + 2ω, |f(x)| ≤ t + LΔ.  So
    |σ(x) − s| ≤ LΔ + (ε/2)(2t + LΔ) + 2ω ≤ (L(1 + ε/2) + (εt + 2ω)/d)·Δ, and λ is the larger of the two factors.  f is
    continuous with derivative f′ but for kinks: it has no jumps (`TurningPoint.limits`) and is defined everywhere.

    data: c1, c2, eta in hex.
    """
    if not isinstance(claim, IntervalCondition):
        raise EvidenceError(f"this rule is for the condition of arXiv 2506.16065, not for {claim.kind}")
    ctx, fmt, function = claim.context, claim.context.format, claim.implementation.function
    c1, c2, eta = (read_value(fmt, data[name]) for name in ("c1", "c2", "eta"))
    if not all(x.is_finite for x in (c1, c2, eta, eta.next_up)):
        raise EvidenceError("c₁, c₂, η and η⁺ are finite")
    if function.lowest is not None:
        return Open("the activation is not defined at every float")
    if not claim.constants(c1, c2) or not claim.sizes(eta):
        return Open("a value is outside its window")
    ends = sorted((c1, c2), key=lambda x: x.fraction)
    low, high = range_on(function, ctx, *ends)
    values = sorted(claim.output(c).fraction for c in ends)
    if not (low.is_finite and high.is_finite and values[0] <= low.fraction and high.fraction <= values[1]):
        return Open("between c₁ and c₂ the activation is not between its values there")
    left = range_on(function, ctx, largest(fmt, True), eta)
    right = range_on(function, ctx, eta.next_up, largest(fmt))
    if not all(y.is_finite for y in (*left, *right)):
        return Open("the activation is not finite at every float")
    s, t = claim.output(eta).fraction, claim.output(eta.next_up).fraction
    up = left[1].fraction == s < t == right[0].fraction
    down = left[0].fraction == s > t == right[1].fraction
    if not (up or down):
        return Open("the activation does not step from η to η⁺ for good")
    most = claim.steepest(eta)
    if fmt.bits <= EXACT_BITS:
        points = [x for x in all_values(fmt, finite=True) if not (x.is_zero and x.negative)]
        steep = claim.lipschitz_by_points(eta, points, [claim.output(x).fraction for x in points])
    else:
        steep = _lipschitz(claim, eta, s, t)
    if steep > most:
        return Open(f"the slope is only known to be at most {float(steep):.6g}, and {float(most):.6g} is allowed")
    return Holds({"λ": str(steep) if steep.denominator == 1 else f"{float(steep):.6g}"}, (BALLS,))


def _lipschitz(claim: IntervalCondition, eta: Float, s: Fraction, t: Fraction) -> Fraction:
    """λ from the derivative, as the rule says."""
    fmt, function = claim.context.format, claim.implementation.function
    if claim.context.mode is not Mode.RNE or claim.context.subnormals is not Subnormals.GRADUAL:
        raise EvidenceError("the bound of the slope is for round to nearest and gradual underflow")
    if function.lowest is not None or any(point.limits for point in function.turning):
        raise EvidenceError(f"{function.name} jumps or is not defined everywhere")
    low, high = enclose(function.derivative, -fmt.largest, fmt.largest)
    slope, eps = max(abs(low), abs(high)), pow2(-fmt.fraction_bits)
    found = []
    for base, value, beyond in ((eta, s, eta.next_down), (eta.next_up, t, eta.next_up.next_up)):
        size = abs(value) * (1 + eps) + 2 * fmt.smallest
        distance = abs(base.fraction - beyond.fraction)
        found.append(slope * (1 + eps / 2) + (eps * size + 2 * fmt.smallest) / distance)
    return max(found)
