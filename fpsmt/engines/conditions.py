"""Finders of the witnesses for the conditions for universality, and of implementations that have none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, pairwise

from fpsmt import kernel
from fpsmt.claims.adversary import pattern
from fpsmt.claims.conditions import Condition, PartFails, Windows
from fpsmt.claims.interval_condition import MOST_BITS, IntervalCondition
from fpsmt.claims.places import allowed_by_index, listed, offset, value_at
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import FpsmtError, Unsupported
from fpsmt.floats import Context, Float, Format, floor_log2, from_ordinal, largest, nearest, pow2, zero
from fpsmt.functions import CorrectlyRounded, Function, Implementation, WithinUlps, enclose
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.kernel.rules.conditions import certain_separation, results_inside

GRID = 33  #: floats of the window for η among which the ends of a run are looked for
MOST_CUTS = 256
PI = Fraction(314159265358979323846264338327950288419716939937510, 10**50)


@engine("condition witnesses", Condition)
def condition_witnesses(claim: Condition, options: Options) -> Verdict:
    """Looks for c₀ and c₁ among powers of two, a grid and roots, and for a run that is as steep as possible."""
    fmt = claim.context.format
    c0 = next((x for x in candidates(claim) if claim.small(claim.allowed(x))), None)
    if c0 is None:
        return Unknown(claim, "C0: no float tried has all its results small")
    c1 = next((x for x in candidates(claim) if claim.usable(claim.allowed(x))), None)
    if c1 is None:
        return Unknown(claim, "C1: no float tried has all its results in the window around 1")
    run = separating_run(claim)
    if run is None:
        return Unknown(claim, "C2: no run of floats tried has a separation point for every implementation")
    p, q = (from_ordinal(fmt, k) for k in run)
    return kernel.apply("condition witnesses", claim, {"c0": c0.hex, "c1": c1.hex, "p": p.hex, "q": q.hex})


def candidates(claim: Condition | IntervalCondition) -> Iterator[Float]:
    """Floats at which an activation may be small, or near 1."""
    fmt = claim.context.format
    yield from (zero(fmt), largest(fmt, True), largest(fmt))
    for size in _sizes(fmt):
        for sign in (-1, 1):
            yield nearest(fmt, sign * size)
    yield from _roots(claim.implementation.function, fmt)


def _sizes(fmt: Format) -> Iterator[Fraction]:
    """A grid on (0, 8], coarse and then fine, then powers of two that the format has."""
    for step in (Fraction(1, 2), Fraction(1, 16)):
        for k in range(1, int(8 / step) + 1):
            if k * step <= fmt.largest and (step == Fraction(1, 2) or k % 8):
                yield k * step
    for e in range(4, fmt.emax + 1):
        yield pow2(e)
    for e in range(-5, max(fmt.emin - fmt.fraction_bits, -80) - 1, -1):
        yield pow2(e)


@lru_cache(maxsize=256)
def _roots(function: Function, fmt: Format) -> tuple[Float, ...]:
    """Floats on both sides of a change of sign, from a grid on [−16, 16], by bisection."""

    def sign(x: Float) -> int:
        low, high = enclose(function, x.fraction, x.fraction)
        return 1 if low > 0 else -1 if high < 0 else 0

    found: list[Float] = []
    points = [nearest(fmt, Fraction(k, 4)) for k in range(-64, 65) if Fraction(abs(k), 4) <= fmt.largest]
    for a, b in pairwise(points):
        try:
            if a.ordinal >= b.ordinal or sign(a) * sign(b) >= 0:
                continue
            low, high = a.ordinal, b.ordinal
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if sign(from_ordinal(fmt, middle)) == sign(a) else (low, middle)
        except FpsmtError:  # outside the domain
            continue
        found += [from_ordinal(fmt, low), from_ordinal(fmt, high)]
    phase = function.period_phase
    if phase is not None:  # floats that are very near to zeros far out, the nearest first
        zeros = [(k + phase + Fraction(1, 2)) * PI for k in range(1, 4096)]
        near = [(abs(nearest(fmt, x).fraction - x), nearest(fmt, x)) for x in zeros if x < fmt.largest]
        found += [x for _, x in sorted(near, key=lambda pair: pair[0])[:8]]
    return tuple(found)


def separating_run(claim: Condition) -> tuple[int, int] | None:
    """(p, q): ordinals of a run with a certain separation point, the longest ones tried first."""
    fmt = claim.context.format
    first, last = claim.run
    if last - first < 2:
        return None
    places = sorted({first + (last - 1 - first) * i // (GRID - 1) for i in range(GRID)})
    try:
        results = {k: claim.allowed(from_ordinal(fmt, k)) for p in places for k in (p, p + 1)}
    except Unsupported:
        return None
    pairs = [(a, b) for a in places for b in places if a < b and _apart(results[a], results[b], results[b + 1])]
    for p, q in sorted(pairs, key=lambda pair: pair[0] - pair[1]):
        ends = from_ordinal(fmt, p), from_ordinal(fmt, q)
        if not certain_separation(claim.implementation, claim.context, *ends):
            continue
        if results_inside(claim.implementation, claim.context, ends[0], ends[1].next_up, claim.windows.value):
            return p, q
    return None


def _apart(a: tuple[int, int], *others: tuple[int, int]) -> bool:
    return all(a[1] < other[0] or other[1] < a[0] for other in others)


@engine("condition fails", Condition)
def condition_fails(claim: Condition, options: Options) -> Verdict:
    """Formats of any size: a range that misses the window, or an implementation that is constant on the one for η."""
    for part in ("C0", "C1"):
        failing = kernel.apply("range outside the window", PartFails(claim, part))
        if isinstance(failing, Proved):
            return _refute(claim, part, failing)
    failing = kernel.apply("constant on the window", PartFails(claim, "C2"))
    if isinstance(failing, Proved):
        return _refute(claim, "C2", failing)
    found = common_value(claim)
    if found is not None:
        failing = kernel.apply("one value on the window", PartFails(claim, "C2"), found)
        if isinstance(failing, Proved):
            return _refute(claim, "C2", failing)
    return Unknown(claim, "no part is shown to fail")


@engine("condition exhausted", Condition)
def condition_exhausted(claim: Condition, options: Options) -> Verdict:
    """Every float of a format of at most 16 bits: proves or refutes."""
    fmt = claim.context.format
    if not listed(fmt):
        raise Unsupported(f"the values of {fmt} are too many to list as float64 numbers")
    low, high = allowed_by_index(claim.implementation, claim.context)
    shift = offset(fmt)
    finite = range(shift - fmt.largest_code, shift + fmt.largest_code + 1)
    for part, holds in (("C0", claim.small), ("C1", claim.usable)):
        if not any(holds((int(low[i]), int(high[i]))) for i in finite):
            return _refute(claim, part, kernel.apply("no usable value", PartFails(claim, part)))
    first, last = claim.run
    allowed = {k: (int(low[k + shift]), int(high[k + shift])) for k in range(first, last + 1)}
    segments = []
    for counts, group in groupby(allowed, key=lambda k: claim.valued(allowed[k])):
        inside = list(group)
        if not counts:
            continue
        segment = slice(inside[0] + shift, inside[-1] + shift + 1)
        found = pattern(inside[0], low[segment], high[segment])
        if found is None:
            ends = [from_ordinal(fmt, k).hex for k in (inside[0], inside[-1])]
            return kernel.apply("condition exhausted", claim, {"segment": ends})
        places = [from_ordinal(fmt, k).hex for k in (inside[0], inside[-1], found.last)]
        segments.append([*places, value_at(fmt, found.first).hex, value_at(fmt, found.second).hex])
    return kernel.refute(claim, {"part": "C2", "segments": segments})


def _refute(claim: Condition, part: str, failing: Verdict) -> Verdict:
    if isinstance(failing, Proved):
        return kernel.refute(claim, {"part": part}, [failing])
    return Unknown(claim, f"{part}: whether it fails is {failing.name}")


def common_value(claim: Condition) -> dict[str, object] | None:
    """A number that K ulps allow on the window for η but for its last float, with pieces on which that is seen."""
    contract, fmt = claim.implementation.contract, claim.context.format
    first, last = claim.run[0], claim.run[1] - 1
    if not isinstance(contract, WithinUlps) or first > last:
        return None
    cuts: list[int] = []
    low_end, high_end = -fmt.largest, fmt.largest
    todo = [(first, last)]
    while todo:
        low, high = todo.pop()
        ends = from_ordinal(fmt, low).fraction, from_ordinal(fmt, high).fraction
        y1, y2 = enclose(claim.implementation.function, *ends)
        exponents = {max(floor_log2(abs(y)), fmt.emin) if y else fmt.emin for y in (y1, y2)}
        if high > low and len(cuts) < MOST_CUTS and (len(exponents) > 1 or y1 <= 0 <= y2):
            middle = (low + high) // 2
            todo += [(middle + 1, high), (low, middle)]
            continue
        if high != last:
            cuts.append(high)
        spread = contract.ulps * pow2(min(exponents) - fmt.fraction_bits)
        low_end, high_end = max(low_end, y2 - spread), min(high_end, y1 + spread)
    value = nearest(fmt, (low_end + high_end) / 2)
    if not value.is_finite or not low_end <= value.fraction <= high_end:
        return None
    return {"value": value.hex, "cuts": [from_ordinal(fmt, k).hex for k in sorted(cuts)]}


# -- the condition of arXiv 2506.16065 ------------------------------------------------------------------------------


@engine("interval condition", IntervalCondition)
def interval_condition(claim: IntervalCondition, options: Options) -> Verdict:
    """Tries c₁, c₂ and η on grids; in small formats everything else refutes."""
    fmt = claim.context.format
    reason = "no zero"
    zeros = [x for x in candidates(claim) if claim.output(x).is_zero][:8]
    pairs = [(c1, c2) for c2 in candidates(claim) for c1 in zeros if claim.constants(c1, c2)] if zeros else []
    for eta in (nearest(fmt, Fraction(k, 16)) for k in (24, 20, 16, 28, 12, 8, -8, -12, -16, 32, 40, 48, -24, 4, -4)):
        for step in range(8):
            point = from_ordinal(fmt, eta.ordinal + step)
            if not pairs or not claim.sizes(point):
                continue
            for c1, c2 in pairs[:3]:
                try:
                    verdict = kernel.apply(
                        "interval condition witnesses", claim, {"c1": c1.hex, "c2": c2.hex, "eta": point.hex}
                    )
                except Unsupported as error:
                    verdict = Unknown(claim, str(error))
                if isinstance(verdict, Proved):
                    return verdict
                reason = verdict.reason if isinstance(verdict, Unknown) else reason
    if fmt.bits <= MOST_BITS and claim.replay({}).violates:
        return kernel.refute(claim, {})
    return Unknown(claim, f"no witnesses among those tried: {reason}")


# -- break-even -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BreakEven:
    """The largest K for which the condition is proved for K ulps (None: not even for correct rounding), the verdict
    there and the one for K + 1, which is a refutation unless the answer is only a lower bound."""

    ulps: int | None
    below: Verdict | None
    above: Verdict | None


def condition_at(function: Function, ctx: Context, windows: Windows, ulps: int) -> Condition:
    """Condition 1 for 0 ulps, else Condition 2."""
    contract = WithinUlps(Fraction(ulps)) if ulps else CorrectlyRounded()
    return Condition(Implementation(function, contract), ctx, windows)


def break_even(
    function: Function,
    ctx: Context,
    windows: Windows,
    options: Options | None = None,
    found: dict[int, Verdict] | None = None,
) -> BreakEven:
    """By halving and bisection: more ulps allow more implementations, so that the condition holds up to some K.

    K is at most 2^p − 2, beyond which an ulp of a result says little about it.  `found` holds verdicts by K that are
    known, and takes the new ones.
    """
    options = options or Options()
    known: dict[int, Verdict] = {} if found is None else found

    def holds(ulps: int) -> bool:
        if ulps not in known:
            options.report(f"{function.name} in {ctx}, {ulps} ulps")
            known[ulps] = decide(condition_at(function, ctx, windows, ulps), replace(options, progress=None))
        return isinstance(known[ulps], Proved)

    if not holds(0):
        return BreakEven(None, None, known[0])
    low = (1 << ctx.format.fraction_bits) - 2
    high = low + 1  # it is not asked
    while low and not holds(low):
        low, high = low // 2, low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return BreakEven(low, known[low], known.get(high))
