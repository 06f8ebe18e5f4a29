"""Rationals as they run: what each schedule of evaluation returns in a format, and which poles floats can hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq_poly

from fpsmt.claims.contracts import MeetsContract
from fpsmt.engines.audit import Audit, audit
from fpsmt.engines.audit_subjects import of_program
from fpsmt.floats import Context, Float, Format, Mode, context, from_ordinal, round_real
from fpsmt.functions import Implementation, WithinError
from fpsmt.rational import Rational, Trainable, rational_function
from fpsmt.rational.polynomials import count_roots, isolate_roots, root_bound, sign_at
from fpsmt.rational.schedules import NAMES, program_text
from fpsmt.terms.programs import Program, program

FMA = ("never", "always")


def implementation(r: Trainable, schedule: str = "horner", fma: str = "never") -> Implementation:
    """The activation of a network that evaluates a rational by a schedule.

    >>> r = Trainable("A", (Fraction(0), Fraction(1)), (Fraction(1),))
    >>> implementation(r).text
    'rational_A(0,1;1):program(z = abs(x); p = (1.0)*x + 0.0; q = (1.0)*z + 1.0; p/q)'
    """
    return Implementation(rational_function(r), program(program_text(r, schedule), fma))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Run:
    """One schedule in one format: its audit on the domain, and what happens on the whole line.

    `absolute` is an upper bound of the largest error |y − r(x)| on the inputs tried (a proof is that of
    `program_within`); `wrong` counts inputs of the whole line with NaN or an infinity where the
    correctly rounded value is none (None when the format is too long for that).
    """

    schedule: str
    fma: str
    audit: Audit
    absolute: Fraction
    wrong: int | None


def compare(
    r: Trainable, ctx: Context | str, low: Fraction, high: Fraction, schedules: Sequence[str] | None = None
) -> list[Run]:
    """Every schedule, with and without fma, on the floats of [low, high], best first.

    Exhaustive for formats of at most 16 bits; else a sample, as the audits say.

    >>> r = Trainable("A", (Fraction(0), Fraction(1, 2), Fraction(1)), (Fraction(0), Fraction(1)))
    >>> best = compare(r, "float8_e4m3", Fraction(-8), Fraction(8))[0]
    >>> best.audit.exhaustive, best.wrong
    (True, 0)
    """
    ctx = context(ctx) if isinstance(ctx, str) else ctx
    chosen = schedules or [s for s in NAMES if s != "reciprocal" or (r.version != "B" and r.b)]
    function = rational_function(r)
    ends = ends_in(ctx, low, high)
    found = []
    for schedule in chosen:
        for fma in FMA:
            own: Program = program(program_text(r, schedule), fma)  # type: ignore[arg-type]
            subject = of_program(own, function, ctx)
            inside = audit(subject, function, *ends)
            absolute = max([Fraction(0), *(Fraction(row[1]) for row in inside.tally.binades.values())])
            whole = audit(subject, function).tally if ctx.format.bits <= 16 else None
            wrong = None if whole is None else whole.nan.count + whole.infinite.count
            found.append(Run(schedule, fma, inside, absolute, wrong))
    return sorted(found, key=lambda run: (run.wrong or 0, run.absolute, run.audit.error.high))


def program_within(
    r: Trainable, schedule: str, fma: str, ctx: Context | str, low: Fraction, high: Fraction, error: Fraction
) -> MeetsContract:
    """The claim that a schedule is within an absolute error of the rational on the floats of [low, high]; `decide`
    proves it by exhaustion in formats of at most 16 bits, and by error analysis in longer ones.

    >>> from fpsmt.engines import decide
    >>> r = Trainable("A", (Fraction(0), Fraction(1, 2), Fraction(1)), (Fraction(0), Fraction(1)))
    >>> decide(program_within(r, "horner", "never", "float16", Fraction(-8), Fraction(8), Fraction(1, 500))).name
    'proved'
    """
    ctx = context(ctx) if isinstance(ctx, str) else ctx
    first, last = ends_in(ctx, low, high)
    return MeetsContract(implementation(r, schedule, fma), ctx, WithinError(error), ctx.format, first, last)


def ends_in(ctx: Context, low: Fraction, high: Fraction) -> tuple[Float, Float]:
    return round_real(ctx.with_mode(Mode.RTP), low), round_real(ctx.with_mode(Mode.RTN), high)


def poles_that_floats_hit(r: Rational, fmt: Format) -> list[tuple[Float, Float, bool]]:
    """For each real pole the neighbouring floats around it, and whether a float is the pole itself (given twice).

    At a float that is a pole the exact quotient does not exist; between two floats it is large at most.

    >>> from fpsmt.floats import float8_e4m3
    >>> root_two, three = Rational.make((1,), (-2, 0, 1)), Rational.make((1,), (-3, 1))
    >>> [(low.decimal, high.decimal, hit) for low, high, hit in poles_that_floats_hit(root_two, float8_e4m3)]
    [('-1.5', '-1.375', False), ('1.375', '1.5', False)]
    >>> [(low.decimal, high.decimal, hit) for low, high, hit in poles_that_floats_hit(three, float8_e4m3)]
    [('3.0', '3.0', True)]
    """
    q = r.reduced().q
    if q.degree() < 1:
        return []
    far = root_bound(q)
    return [_around(q, low, high, fmt) for low, high in isolate_roots(q, -far, far, Fraction(1))]


def _around(q: fmpq_poly, low: Fraction, high: Fraction, fmt: Format) -> tuple[Float, Float, bool]:
    """Bisection over the floats around the only root of q in [low, high]."""
    down, up = (context(fmt).with_mode(mode) for mode in (Mode.RTN, Mode.RTP))
    a, b = round_real(down, low), round_real(up, high)
    while a.ordinal + 1 < b.ordinal:
        middle = from_ordinal(fmt, (a.ordinal + b.ordinal) // 2)
        z = middle.fraction
        if low <= z <= high and sign_at(q, z) == 0:
            return middle, middle, True
        if z > low and (z >= high or count_roots(q, low, z)):
            b, high = middle, min(high, z)
        else:
            a, low = middle, max(low, z)
    return a, b, a == b
