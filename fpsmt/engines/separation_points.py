"""Engines for separation points, least windows, and the largest error that leaves one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fpsmt import kernel
from fpsmt.claims.adversary import MOST_HELD, allowed, allowed_on, least_windows, pattern, points, ranges
from fpsmt.claims.places import Places
from fpsmt.claims.separation import AlwaysSeparates, Compliant, Run, SeparationCount, SeparationPoints
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, exactly, largest, pow2
from fpsmt.functions import Function, Implementation, WithinUlps
from fpsmt.kernel import Proved, Unknown, Verdict


@engine("separation points", SeparationPoints, SeparationCount)
def listed(claim: SeparationPoints | SeparationCount, options: Options) -> Verdict:
    """Looks at every float of the run."""
    return kernel.apply("separation points exhausted", claim)


@engine("compliance", Compliant)
def compliance(claim: Compliant, options: Options) -> Verdict:
    """Looks at every float of the run."""
    return kernel.apply("compliance exhausted", claim)


@engine("three points", AlwaysSeparates)
def three_points(claim: AlwaysSeparates, options: Options) -> Verdict:
    """Looks for three floats with pairwise disjoint allowed sets: about zero, at powers of two, at the ends."""
    run = claim.run
    chosen = three_disjoint(run, candidates(run))
    if chosen is None:
        raise Unsupported("no three of the floats tried have pairwise disjoint allowed sets")
    return kernel.apply("three disjoint allowed sets", claim, {"points": [x.hex for x in chosen]})


@engine("adversary", AlwaysSeparates)
def adversary(claim: AlwaysSeparates, options: Options) -> Verdict:
    """Decides a run of at most 2^24 floats: an implementation without a separation point, or none exists."""
    run = claim.run
    if len(run) > MOST_HELD:
        raise Unsupported(f"a run of {len(run)} floats is longer than {MOST_HELD}")
    found = pattern(run.low.ordinal, *allowed(run))
    if found is None:
        return kernel.apply("no implementation avoids separation points", claim)
    compliant = kernel.apply("compliance exhausted", Compliant(run, found))
    if not isinstance(compliant, Proved):
        return Unknown(claim, f"whether {compliant.claim.text} is {compliant.name}")
    return kernel.refute(claim, found.to_json(), [compliant])


def candidates(run: Run) -> list[Float]:
    """Floats of the run that are worth a look: its ends, zero, and (3/4, 1 or 3/2) times powers of two near 1."""
    fmt = run.context.format
    found = [run.low, run.high]
    for exponent in range(max(fmt.emin, -2 * fmt.precision), min(fmt.emax, 6) + 1):
        for factor in (1, Fraction(5, 4), Fraction(3, 2), Fraction(7, 4)):
            for sign in (1, -1):
                x = sign * factor * pow2(exponent)
                if fmt.precision > 2 and abs(x) <= fmt.largest and run.low.fraction <= x <= run.high.fraction:
                    found.append(exactly(fmt, x))
    if run.low.fraction <= 0 <= run.high.fraction:
        found.append(exactly(fmt, 0))
    return found


def three_disjoint(run: Run, among: Sequence[Float]) -> list[Float] | None:
    """Three of these floats with pairwise disjoint allowed sets: greedily, those that end first."""
    sets = sorted(((*run.allowed(x.ordinal), x) for x in among), key=lambda s: s[1])
    chosen: list[Float] = []
    end = None
    for low, high, x in sets:
        if end is None or low > end:
            chosen.append(x)
            end = high
        if len(chosen) == 3:
            return chosen
    return None


# -- what is asked most ---------------------------------------------------------------------------------------


def whole_run(implementation: Implementation, ctx: Context) -> Run:
    """All finite floats."""
    return Run(implementation, ctx, largest(ctx.format, True), largest(ctx.format))


def separation_points(run: Run) -> SeparationPoints:
    """The claim that lists the separation points of every implementation on the run, not yet proved."""
    return SeparationPoints(run, ranges(np.concatenate([part for _, _, part in points(run)])))


def windows(run: Run) -> Places:
    """The least windows [first place, last place] in which every implementation has a separation point, ascending."""
    return least_windows(*allowed(run)) + run.low.ordinal


def first_window(run: Run, longest: int = 1 << 12) -> tuple[Float, Float] | None:
    """The shortest window that begins at the run's lower end, if it has at most `longest` floats; for any format."""
    length = 64
    while True:
        high = min(run.low.ordinal + min(length, longest) - 1, run.high.ordinal)
        found = least_windows(*allowed_on(run, run.low.ordinal, high))
        if len(found):
            return run.low, run.at(run.low.ordinal + int(found[:, 1].min()))
        if high == run.high.ordinal or length >= longest:
            return None
        length *= 4


def landmark_windows(run: Run) -> list[tuple[int, int]]:
    """Windows [first place, last place] that begin at the run's powers of two near 1, each the shortest from there."""
    fmt = run.context.format
    found = []
    for exponent in range(max(fmt.emin, -6), min(fmt.emax, 3) + 1):
        for sign in (1, -1):
            start = exactly(fmt, sign * pow2(exponent)).ordinal
            if run.low.ordinal <= start < run.high.ordinal - 1:
                part = Run(run.implementation, run.context, run.at(start), run.high)
                window = first_window(part)
                if window is not None:
                    found.append((window[0].ordinal, window[1].ordinal))
    return sorted(found)


def count_points(run: Run) -> int:
    """How many floats inside the run are separation points of every implementation."""
    return sum(len(part) for _, _, part in points(run))


@dataclass(frozen=True)
class BreakEven:
    """The largest whole number of ulps with which every implementation has a separation point on the run.

    `holds` proves it for `ulps`, `fails` refutes it for one more.  ulps is −1 where already correct rounding has none;
    `fails` is None where every number of ulps that makes sense leaves one.
    """

    ulps: int
    holds: Verdict | None
    fails: Verdict | None


def break_even(function: Function, ctx: Context, low: Float, high: Float, options: Options | None = None) -> BreakEven:
    """By bisection: the sets allowed by more ulps are larger, so what they leave the adversary is more."""
    options = options or Options()

    def run(ulps: int) -> Run:
        return Run(Implementation(function, WithinUlps(Fraction(ulps))), ctx, low, high)

    def escapes(ulps: int) -> bool:
        options.report(f"{function.name}: {ulps} ulps")
        return pattern(run(ulps).low.ordinal, *allowed(run(ulps))) is not None

    if len(run(0)) > MOST_HELD:
        raise UsageError(f"a run of {len(run(0))} floats is longer than {MOST_HELD}: narrow the domain")
    most = (1 << ctx.format.fraction_bits) - 2
    good, bad, step = -1, most + 1, 1
    while good < most:  # doubling first: large numbers of ulps are never asked about where few are enough
        trial = min(good + step, most)
        if escapes(trial):
            bad = trial
            break
        good, step = trial, 2 * step
    while bad - good > 1:
        middle = (good + bad) // 2
        if escapes(middle):
            bad = middle
        else:
            good = middle
    holds = None if good < 0 else kernel.apply("no implementation avoids separation points", AlwaysSeparates(run(good)))
    fails = None if bad > most else adversary(AlwaysSeparates(run(bad)), options)
    return BreakEven(good, holds, fails)
