"""Outcomes of sums from public bug reports: which results a deployed kernel may give."""

from fractions import Fraction

from fpsmt.claims import Case, SumInvariant, SumOutcomes, spec
from fpsmt.floats import Float, Format, context, exactly, infinity, nan
from fpsmt.networks import Sum, execution


def _value(fmt: Format, v: str | int) -> Float:
    if v in ("inf", "-inf"):
        return infinity(fmt, v == "-inf")
    return nan(fmt) if v == "nan" else exactly(fmt, Fraction(v))


CANCELLING = ("-inf", 0, "inf", "nan")


@spec(
    "half-precision-cancellation",
    source="public report: eight float16 values summing to 0 or to inf (pytorch#2391)",
    cases=[
        Case({"pairs": 4, "order": "any", "accumulator": "float16", "outcomes": CANCELLING}),
        Case({"pairs": 4, "order": "contiguous", "accumulator": "float16", "outcomes": CANCELLING}),
        Case({"pairs": 4, "order": "sequential", "accumulator": "float16", "outcomes": CANCELLING[:3]}),
        Case({"pairs": 4, "order": "any", "accumulator": "float32", "outcomes": (0,)}),
        Case({"pairs": 2, "order": "any", "accumulator": "float16", "outcomes": (0,)}),
    ],
)
def half_precision_cancellation(
    pairs: int, order: str, accumulator: str, outcomes: tuple[str | int, ...]
) -> SumOutcomes:
    """The float16 sum of `pairs` times 32000, then as often −32000, reaches exactly these results."""
    ctx = context("float16")
    terms = tuple(exactly(ctx.format, v) for v in (32000, -32000) for _ in range(pairs))
    problem = Sum(ctx, terms, None, execution(order, accumulator=accumulator))
    return SumOutcomes(problem, tuple(_value(ctx.format, v) for v in outcomes))


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
