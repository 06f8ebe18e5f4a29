"""Proofs by witness functions that every two inputs can be moved onto a separation point, and what follows from it."""

from __future__ import annotations

import time

from fpsmt import kernel
from fpsmt.claims.distinguishability import Inseparable, Setting
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.steering import AllDistinguishable, SameOutput, Steering
from fpsmt.constructions.witnesses import bound, normal_maps, run_of, subnormal_maps
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format, context, from_ordinal, less_equal
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.kernel.rules.conditions import certain_separation
from fpsmt.kernel.rules.witness import Case, Cases, witness_claims
from fpsmt.smt.encoding import EncoderName, encode
from fpsmt.terms import negation

SOLVERS = ["bitwuzla"]
GRID = 17  #: floats of the run among which the ends of a separation are looked for


def steering_claim(ctx: Context) -> Steering:
    """Every two inputs of size below 2^(emax − 1), every η with η⁻, η, η⁺ in (1, 3/2]."""
    return Steering(ctx, bound(ctx.format), *run_of(ctx.format))


@engine("witness functions", Steering)
def witness_functions(claim: Steering, options: Options) -> Verdict:
    """Discharges the cases of `fpsmt.constructions.witnesses` by solvers, one after the other."""
    fmt, start = claim.context.format, time.monotonic()
    first, last = run_of(fmt)
    inside = less_equal(claim.bound, bound(fmt)) and less_equal(first, claim.first) and less_equal(claim.last, last)
    if not inside or claim.context != context(fmt):
        raise Unsupported(f"the maps are for inputs up to {bound(fmt)}, η near {first} and IEEE arithmetic")
    cases = cases_of(fmt)
    proved: list[Proved] = []
    parts = witness_claims(claim, cases)
    for i, part in enumerate(parts):
        left = options.timeout - (time.monotonic() - start)
        if left <= 0:
            return Unknown(claim, f"no time left of {options.timeout:g} s for {part.text!r}: {i} are proved")
        effort = {"timeout": left, "memory_mb": options.memory_mb, "jobs": 1, "solvers": SOLVERS}
        effort["encoder"] = _encoder(part)
        verdict = kernel.apply("solver", part, effort)
        if not isinstance(verdict, Proved):
            why = verdict.reason if isinstance(verdict, Unknown) else f"{verdict}"
            return Unknown(claim, f"{part.text!r} is {verdict.name}: {why}")
        proved.append(verdict)
        options.report(f"{i + 1} of {len(parts)} cases")
    return kernel.apply("witness functions", claim, cases.to_json(), proved)


def cases_of(fmt: Format) -> Cases:
    """The maps of `fpsmt.constructions.witnesses`; those for u in any lower binade do for tiny u."""
    normal, subnormal = (
        tuple(Case(m.where, m.w, m.b) for m in some) for some in (normal_maps(fmt), subnormal_maps(fmt))
    )
    return Cases(normal, 2, subnormal)


def _encoder(part: ForAll) -> EncoderName:
    """Numbers on one grid where that does."""
    try:
        encode(negation(part.condition), "fixed")
    except Unsupported:
        return "auto"
    return "fixed"


@engine("separation point in reach", AllDistinguishable)
def separation_in_reach(claim: AllDistinguishable, options: Options) -> Verdict:
    """Finds a certain separation for each activation, then proves that every two inputs can be moved there."""
    steering = steering_claim(claim.settings[0].context)
    points = []
    for setting in claim.settings:
        found = certain_points(setting, steering)
        if found is None:
            return Unknown(claim, f"{setting.name}: no separation point is certain in the run")
        points.append([x.hex for x in found])
    moved = decide(steering, options)
    if not isinstance(moved, Proved):
        return Unknown(claim, f"whether every two inputs can be moved is {moved.name}: {getattr(moved, 'reason', '')}")
    return kernel.apply("separation point in reach", claim, {"points": points}, [moved])


def certain_points(setting: Setting, steering: Steering) -> tuple[Float, Float] | None:
    """(p, q) with a separation point in [p, q⁺] for every implementation, the ends of the run tried first."""
    fmt, low, high = setting.context.format, steering.first.ordinal, steering.last.ordinal - 1
    places = sorted({low + (high - low) * i // (GRID - 1) for i in range(GRID)})
    pairs = sorted(((a, b) for a in places for b in places if a < b), key=lambda pair: pair[0] - pair[1])
    for pair in pairs:
        p, q = (from_ordinal(fmt, k) for k in pair)
        if certain_separation(setting.implementation, setting.context, p, q):
            return p, q
    return None


@engine("first layer agrees", SameOutput)
def first_layer_agrees(claim: SameOutput, options: Options) -> Verdict:
    """Lemma 2: from a proof that no map tells the pair apart."""
    inseparable = decide(Inseparable(claim.setting, claim.x, claim.y), options)
    if isinstance(inseparable, Proved):
        return kernel.apply("first layer agrees", claim, {}, [inseparable])
    if isinstance(inseparable, Unknown):
        return Unknown(claim, f"whether no map tells the pair apart is unknown: {inseparable.reason}")
    return kernel.refute(claim, inseparable.counterexample)
