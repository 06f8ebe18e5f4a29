"""Outcomes of sums from public bug reports: which results a deployed kernel may give."""

from fractions import Fraction

from fpsmt.claims import Case, SumInvariant, SumOutcomes, spec
from fpsmt.floats import Float, context, exactly, infinity, nan, nearest
from fpsmt.networks import Sum, execution

MIXED = (32000,) * 4 + (-32000,) * 4
INF, NAN = "inf", "nan"


def _value(fmt, v) -> Float:  # type: ignore[no-untyped-def]
    if v in ("inf", "-inf"):
        return infinity(fmt, v == "-inf")
    return nan(fmt) if v == "nan" else exactly(fmt, v)


def _sum(terms: tuple[int, ...], order: str, accumulator: str | None) -> Sum:
    ctx = context("float16")
    return Sum(ctx, tuple(nearest(ctx.format, t) for t in terms), None, execution(order, accumulator=accumulator))


@spec(
    "half-precision-cancellation",
    source="public report: eight float16 values summing to 0 or to inf (pytorch#2391)",
    cases=[
        Case({"terms": MIXED, "order": "any", "accumulator": None, "outcomes": ("-inf", 0, "inf", "nan")}),
        Case({"terms": MIXED, "order": "contiguous", "accumulator": None, "outcomes": ("-inf", 0, "inf", "nan")}),
        Case({"terms": MIXED, "order": "sequential", "accumulator": None, "outcomes": ("-inf", 0, "inf")}),
        Case({"terms": MIXED, "order": "any", "accumulator": "float32", "outcomes": (0,)}),
        Case({"terms": MIXED[2:6], "order": "any", "accumulator": None, "outcomes": (0,)}),
    ],
)
def half_precision_cancellation(
    terms: tuple[int, ...], order: str, accumulator: str | None, outcomes: tuple[str | int, ...]
) -> SumOutcomes:
    """The float16 sum of equal numbers of 32000 and −32000 reaches exactly these results."""
    problem = _sum(terms, order, accumulator)
    return SumOutcomes(problem, tuple(_value(problem.context.format, v) for v in outcomes))


TINY = Fraction(1, 1 << 26)
STEP = Fraction(1, 1 << 13)


def _dot(fma: str) -> Sum:
    ctx = context("float32")
    x = (exactly(ctx.format, 1), exactly(ctx.format, 1 + STEP))
    w = (exactly(ctx.format, -(1 + 2 * STEP)), exactly(ctx.format, 1 + STEP))
    return Sum(ctx, tuple(zip(w, x)), None, execution("any", fma))


@spec(
    "two-term-dot",
    source="public report: the same row gives another result when batched (onnxruntime#7642)",
    cases=[
        Case({"fma": "never", "outcomes": (0,)}),
        Case({"fma": "any", "outcomes": (0, TINY)}),
    ],
)
def two_term_dot(fma: str, outcomes: tuple[Fraction, ...]) -> SumOutcomes:
    """A float32 dot product of two terms: two addends commute, but contraction to fma still changes the result."""
    problem = _dot(fma)
    return SumOutcomes(problem, tuple(exactly(problem.context.format, v) for v in outcomes))


@spec(
    "two-term-dot-is-stable",
    source="public report: the same row gives another result when batched (onnxruntime#7642)",
    cases=[Case({"fma": "never"}), Case({"fma": "any"}, "refuted"), Case({"fma": "always"}, "refuted")],
)
def two_term_dot_is_stable(fma: str) -> SumInvariant:
    """The dot product gives the same result under every allowed execution.  False as soon as fma may be used."""
    return SumInvariant(_dot(fma))
