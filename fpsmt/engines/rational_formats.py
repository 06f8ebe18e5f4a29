"""Rationals that hold in a format: the float program that evaluates one is within an error of a function, proved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.claims.contracts import MeetsContract
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options
from fpsmt.engines.rational_programs import FMA, ends_in
from fpsmt.errors import Unsupported
from fpsmt.floats import Context
from fpsmt.functions import Implementation, WithinError, function_named
from fpsmt.kernel import Proved
from fpsmt.networks.growth import float_up
from fpsmt.rational import Interval, Rational, Trainable, number_text
from fpsmt.rational.schedules import SCHEDULES, program_text
from fpsmt.terms.programs import Program, program


@dataclass(frozen=True)
class Held:
    """A program, and the proof that it is within an error of a function at all floats of an interval."""

    schedule: str
    fma: str
    proof: Proved

    @property
    def claim(self) -> MeetsContract:
        assert isinstance(self.proof.claim, MeetsContract)
        return self.proof.claim

    @property
    def error(self) -> Fraction:
        assert isinstance(self.claim.contract, WithinError)
        return self.claim.contract.error


def in_format(
    r: Rational,
    name: str,
    ctx: Context,
    interval: Interval,
    error: Fraction | None = None,
    options: Options | None = None,
) -> Held:
    """The schedule of the smallest error in a context, proved to be within `error` of the named function; without it,
    within the bound of the error analysis.

    Coefficients are divided by the constant one below, and rounded to nearest.  `Unsupported` when no schedule is
    proved.

    >>> from fpsmt.floats import context
    >>> pade = Rational.make((0, 15, 0, 1), (15, 0, 6))
    >>> held = in_format(pade, "tanh", context("float32"), (Fraction(0), Fraction(1, 2)))
    >>> held.proof.name, held.error < Fraction(1, 10**5)
    ('proved', True)
    """
    options, function = options or Options(), function_named(name)
    if r.q[0] == 0:
        raise Unsupported("the denominator is 0 at 0: no program divides by it")
    below = Fraction(int(r.q[0].p), int(r.q[0].q))
    form = Trainable("unsafe", tuple(c / below for c in r.numerator), tuple(c / below for c in r.denominator[1:]))
    low, high = ends_in(ctx, *interval)
    found: list[tuple[Fraction | None, str, str, Program]] = []
    for schedule in SCHEDULES:
        for fma in FMA:
            own = program(program_text(form, schedule), fma)  # type: ignore[arg-type]
            found.append((own.error_on(function, ctx, low, high), schedule, fma, own))
    known = sorted((each for each in found if each[0] is not None), key=lambda each: each[0] or 0)
    if not known and (error is None or ctx.format.bits > 16):
        raise Unsupported(f"no program of the rational in {ctx} has an error that the analysis bounds")
    for bound, schedule, fma, own in known or found:
        if error is not None and bound is not None and bound > error and ctx.format.bits > 16:
            break
        asked = error if error is not None else _up(bound)
        claim = MeetsContract(Implementation(function, own), ctx, WithinError(asked), ctx.format, low, high)
        verdict = decide(claim, options)
        if isinstance(verdict, Proved):
            return Held(schedule, fma, verdict)
    least = f": the least is {number_text(known[0][0])}" if known and known[0][0] is not None else ""
    raise Unsupported(f"no program of the rational in {ctx} is proved to reach the error{least}")


def _up(bound: Fraction | None) -> Fraction:
    """A float64 above the bound, or the bound where there is none."""
    assert bound is not None
    near = math.nextafter(float_up(bound), math.inf)
    return Fraction(near) if math.isfinite(near) else bound
