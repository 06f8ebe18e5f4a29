"""Audit: how far a routine or a float program is from a real function, and what contract it meets.

Every input of a format of at most 16 bits is tried, and of a longer one when that is asked for; else runs of
neighbours in every binade, and the result is labelled as sampled.  The largest error is an enclosure by balls
(`audit_errors.error_at`) of the errors at the inputs that certified bounds leave as candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fpsmt.engines.audit_contracts import contract_found
from fpsmt.engines.audit_errors import Error, error_at
from fpsmt.engines.audit_inputs import BLOCK, RUN, Domain, carriers
from fpsmt.engines.audit_subjects import Moved, Subject, position_dependence
from fpsmt.engines.audit_tally import Measure, Tally, code_of, read_pair
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float
from fpsmt.functions import Contract, Function

SMALL_BITS = 16  #: formats that are always tried whole
SAMPLE = 1 << 20  #: inputs tried of a longer one
AROUND = 1 << 11  #: neighbours tried on both sides of the largest errors of a sample
MOVED = 1 << 14  #: inputs with which the dependence on the position is tried

Heard = Callable[[str, Tally], None]


@dataclass(frozen=True)
class Audit:
    """What was found.

    * `error`: the largest error in ulps, enclosed; it is at `at`, where `result` was returned.
    * `exhaustive`: every input of the domain was tried.
    * `tally`: counts of NaN, infinities, results out of range, falls (`audit_tally.Tally`).
    * `range`: the least and greatest correctly rounded results on the whole line, None when not known.
    * `moved`: an input whose result depends on its place in the array.
    * `contract`: what all results meet (that were tried), None when none is known; `single_valued` goes with it.
    """

    subject: str
    function: Function
    context: Context
    domain: Domain
    exhaustive: bool
    error: Error
    at: Float | None
    result: Float | None
    tally: Tally
    range: tuple[Float, Float] | None
    moved: Moved | None
    contract: Contract | None
    seconds: float

    @property
    def clean(self) -> bool:
        """No NaN, infinity, range or order is wrong."""
        t = self.tally
        return not any(seen.count for seen in (t.nan, t.infinite, t.over, t.under, t.falls))


def audit(
    subject: Subject,
    function: Function,
    low: Float | None = None,
    high: Float | None = None,
    exhaustive: bool = False,
    sample: int = SAMPLE,
    seed: int = 0,
    resume: Tally | None = None,
    heard: Heard | None = None,
) -> Audit:
    """Audits a subject against a real function on the inputs from `low` to `high` (all, when None).

    `heard` is told after each block how far the audit is; `resume` is the tally of an exhaustive one that was stopped.
    """
    start = time.monotonic()
    ctx, fmt = subject.context, subject.context.format
    domain = Domain.of(fmt, low, high)
    if domain.size <= 0:
        raise UsageError(f"no value of {fmt} lies between {low} and {high}")
    whole = exhaustive or fmt.bits <= SMALL_BITS or domain.size <= sample
    measure = Measure(function, ctx, fmt, resume or Tally())
    tally = measure.tally
    if not tally.inputs:
        special = np.array([np.nan] * (domain.everything and fmt.has_nan) + [-0.0] * _minus_zero(domain))
        if special.size:
            measure.values(special, subject.call(special))
            tally.inputs += special.size
    if whole:
        done = 0 if tally.next is None else tally.next - domain.first + 1
        before = done
        for places in domain.blocks(tally.next):
            measure.block(places, subject.call(carriers(fmt, places)))
            done += len(places)
            if heard is not None:
                heard(_progress(done, domain.size, before, time.monotonic() - start, tally), tally)
    else:
        _sampled(measure, subject, domain, sample, seed, heard)
    error, at, result = _largest(measure)
    moved = position_dependence(subject, _for_positions(domain, seed))
    return Audit(
        subject.name, function, ctx, domain, whole, error, at, result, tally, measure.range, moved,
        contract_found(measure, error, domain.everything), time.monotonic() - start,
    )  # fmt: skip


def _minus_zero(domain: Domain) -> bool:
    return domain.format.has_signed_zero and domain.first <= 0 <= domain.last


def _sampled(measure: Measure, subject: Subject, domain: Domain, sample: int, seed: int, heard: Heard | None) -> None:
    """Runs in every binade; then the neighbours of the largest errors."""
    fmt = domain.format
    places = domain.sample(sample, seed)
    start = time.monotonic()
    for at in range(0, len(places), BLOCK):
        part = places[at : at + BLOCK]
        measure.block(part, subject.call(carriers(fmt, part)))
        if heard is not None:
            seconds = time.monotonic() - start
            heard(_progress(at + len(part), len(places), 0, seconds, measure.tally), measure.tally)
    for _, _, x, _ in list(measure.tally.candidates[:4]):
        at = read_pair(x, fmt).ordinal
        near = np.arange(max(domain.first, at - AROUND), min(domain.last, at + AROUND) + 1)
        near = near[places[np.minimum(np.searchsorted(places, near), len(places) - 1)] != near]
        if near.size:
            measure.tally.previous = None
            measure.block(near, subject.call(carriers(fmt, near)))


def _progress(done: int, total: int, before: int, seconds: float, tally: Tally) -> str:
    left = seconds * (total - done) / max(1, done - before)
    worst = max([0.0, *(c[1] for c in tally.candidates)])
    rest = f"about {left:.0f} s left" if left < 120 else f"about {left / 60:.0f} min left"
    return f"{done:,} of {total:,} inputs, largest error so far {worst:.4g} ulps, {rest}"


def _largest(measure: Measure) -> tuple[Error, Float | None, Float | None]:
    """The largest error: candidates enclosed by balls; the bound of the others closes the enclosure above."""
    tally, fmt, ctx = measure.tally, measure.format, measure.context
    best: tuple[Error, Float | None, Float | None] = (Error(Fraction(0), Fraction(0), Fraction(0)), None, None)
    high = Fraction(0) if tally.others == 0 else _fraction(tally.others)
    for _, _, x, y in tally.candidates:
        at, result = code_of(fmt, float.fromhex(x)), code_of(ctx.format, float.fromhex(y))
        found = error_at(measure.function, ctx, at, result)
        high = max(high, found.high)
        if best[1] is None or found.low > best[0].low:
            best = (found, at, result)
    error, at, result = best  # type: ignore[assignment]
    return Error(error.low, max(high, error.high), error.absolute, error.mismatch), at, result


def _fraction(v: float) -> Fraction:
    return Fraction(v) if np.isfinite(v) else Fraction(2) ** 1024


def _for_positions(domain: Domain, seed: int) -> Any:
    places = domain.sample(MOVED, seed)
    step = max(1, len(places) // (MOVED // RUN) // RUN)
    finite = places[::step][:MOVED]
    return carriers(domain.format, finite)
