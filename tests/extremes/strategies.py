"""Sums that go wrong: ties, cancellation, thresholds of overflow, subnormals, infinities, mixed formats."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from fpsmt.floats import Context, Float, Format, float16, float32, from_ordinal
from fpsmt.networks.executions import Execution
from fpsmt.networks.extremes import Box, BoxSum, number
from fpsmt.networks.orders import parse_order
from fpsmt.networks.outcomes import Sum
from tests import strategies

ORDERS = ("any", "sequential", "contiguous", "depth:3", "left-to-right", "pairwise", "lanes:2", "contiguous|sequential")
SYMMETRIC = ("any", "sequential", "depth:3")


@st.composite
def near(draw: st.DrawFn, fmt: Format, size: int) -> list[Float]:
    """Values of comparable size, with repetitions, opposite signs, a few ulps apart; or near the largest; or tiny."""
    top = fmt.largest_code
    centre = draw(st.sampled_from([top, top, min(fmt.bias << fmt.fraction_bits, top), 1 << fmt.fraction_bits, 3]))
    step = draw(st.sampled_from([1, 1 << fmt.fraction_bits]))
    found = []
    for _ in range(size):
        place = min(max(centre - step * draw(st.integers(0, 3)) - draw(st.integers(0, 2)), 0), top)
        found.append(from_ordinal(fmt, place if draw(st.booleans()) else -place))
    return found


@st.composite
def values(draw: st.DrawFn, fmt: Format, size: int) -> list[Float]:
    if draw(st.booleans()):
        return draw(near(fmt, size))
    return draw(st.lists(strategies.floats(fmt), min_size=size, max_size=size))


@st.composite
def sums(draw: st.DrawFn, most: int = 5, orders: tuple[str, ...] = ORDERS) -> Sum:
    """One sum or dot product with a random execution."""
    ctx = draw(strategies.contexts())
    other = draw(strategies.contexts())
    n = draw(st.integers(1, most))
    dot = draw(st.booleans())
    fmt = draw(st.sampled_from([ctx.format, ctx.format, other.format]))
    execution = Execution(
        parse_order(draw(st.sampled_from(orders))),
        draw(st.sampled_from(["never", "any", "always"])),
        draw(st.sampled_from([None, None, other, Context(float32, ctx.mode, *_rest(float32))])),
        draw(st.sampled_from([None, None, "exact", Context(float16, ctx.mode, *_rest(float16))])),
        draw(st.sampled_from(["last", "first", "any"])),
    )
    x = draw(values(fmt, n))
    bias = draw(st.none() | strategies.floats(ctx.format))
    if not dot:
        return Sum(ctx, tuple(x), bias, execution)
    w = draw(values(draw(st.sampled_from([fmt, ctx.format])), n))
    return Sum(ctx, tuple(zip(w, x, strict=True)), bias, execution)


def _rest(fmt: Format) -> tuple[object, object]:
    from fpsmt.floats import context

    return context(fmt).overflow, context(fmt).subnormals


@st.composite
def boxes(draw: st.DrawFn, fmt: Format, width: int = 2) -> Float | Box:
    """A value, or a box of a few neighbouring values."""
    x = draw(strategies.floats(fmt))
    if x.is_nan or draw(st.booleans()):
        return x
    top = fmt.largest_code + fmt.has_infinity
    return Box(x, from_ordinal(fmt, min(x.ordinal + draw(st.integers(0, width)), top)))


def members(x: Float | Box) -> list[Float]:
    """Every value of a box."""
    if isinstance(x, Float):
        return [x]
    return [from_ordinal(x.low.format, place) for place in range(x.low.ordinal, x.high.ordinal + 1)]


@st.composite
def box_sums(draw: st.DrawFn, most: int = 3) -> BoxSum:
    plain = draw(sums(most, ("any", "sequential", "contiguous", "left-to-right")))

    def around(x: Float) -> Float | Box:
        if x.is_nan or draw(st.integers(0, 2)) == 0:
            return x
        fmt = x.format
        top = fmt.largest_code + fmt.has_infinity
        return Box(x, from_ordinal(fmt, min(x.ordinal + draw(st.integers(0, 2)), top)))

    terms = tuple(tuple(around(v) for v in t) if isinstance(t, tuple) else around(t) for t in plain.terms)
    bias = None if plain.bias is None else around(plain.bias)
    return BoxSum(plain.context, terms, bias, plain.execution)  # type: ignore[arg-type]


def same_number(a: Float | None, b: Fraction | float | None) -> bool:
    """Equal as numbers, where the two zeros are one."""
    return (a is None) == (b is None) and (a is None or b is None or number(a) == b)
