"""Hypothesis strategies for formats, rounding contexts and values, biased to where arithmetic goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from hypothesis import strategies as st

from fpsmt.floats import (
    FORMATS,
    Context,
    Float,
    Format,
    Mode,
    Overflow,
    Subnormals,
    from_ordinal,
    ieee,
    infinity,
    largest,
    nan,
    p3109,
    pow2,
    ulp,
    zero,
)

#: Formats without a name of their own, chosen for their corners: tiny ones, each place of NaN and infinity,
#: one bit on either side of the limits of `fpsmt.floats.compiled`'s narrow kernels, and wide exponents.
ODD_FORMATS: tuple[Format, ...] = (
    ieee(2, 2), ieee(2, 3), ieee(3, 3), ieee(5, 2), ieee(3, 12), ieee(6, 6),
    ieee(9, 26), ieee(9, 27), ieee(8, 51), ieee(8, 52), ieee(3, 53), ieee(10, 20), ieee(11, 40), ieee(11, 2),
    p3109(5, 2, False), p3109(5, 3), p3109(8, 3), p3109(8, 4, False), p3109(8, 5), p3109(15, 8),
    Format("finite_e3m2", 3, 3, 3, 0x1E, False, "above"),
)  # fmt: skip

EMBEDDED: tuple[Format, ...] = (*FORMATS.values(), *ODD_FORMATS)  #: all of them embedded in float64
HUGE: tuple[Format, ...] = (ieee(15, 113), ieee(12, 3), ieee(5, 60))  #: not embedded in float64


def formats(among: Sequence[Format] = EMBEDDED) -> st.SearchStrategy[Format]:
    """Formats embedded in float64, named and odd."""
    return st.sampled_from(among)


@lru_cache
def every_context(fmt: Format) -> tuple[Context, ...]:
    """All rounding contexts of a format."""
    rules = [
        rule
        for rule in Overflow
        if (rule is not Overflow.INFINITY or fmt.has_infinity) and (rule is not Overflow.NAN or fmt.has_nan)
    ]
    return tuple(Context(fmt, mode, rule, subnormals) for mode in Mode for rule in rules for subnormals in Subnormals)


def contexts(among: Sequence[Format] = EMBEDDED) -> st.SearchStrategy[Context]:
    """Rounding contexts of these formats, every rule."""
    return formats(among).flatmap(lambda fmt: st.sampled_from(every_context(fmt)))


def landmarks(fmt: Format) -> list[Float]:
    """Zeros, the ends of the subnormals and of the format, one and its neighbours, infinities and NaN."""
    one = min(fmt.bias << fmt.fraction_bits, fmt.largest_code - 1)
    last = (1 << fmt.fraction_bits) - 1
    places = {1, 2, last, last + 1, last + 2, one - 1, one, one + 1, fmt.largest_code - 1}
    found = [zero(fmt), zero(fmt, negative=True), largest(fmt), largest(fmt, negative=True)]
    for place in sorted(p for p in places if 0 < p <= fmt.largest_code):
        found += [from_ordinal(fmt, place), from_ordinal(fmt, -place)]
    if fmt.has_infinity:
        found += [infinity(fmt), infinity(fmt, negative=True)]
    if fmt.has_nan:
        found.append(nan(fmt))
    return list(dict.fromkeys(found))


@lru_cache
def finite_floats(fmt: Format) -> st.SearchStrategy[Float]:
    """Finite values: any, near a power of two, near one, subnormal, or near the largest."""
    top, fb = fmt.largest_code, fmt.fraction_bits
    near = st.integers(-2, 2)
    places = st.one_of(
        st.integers(0, top),
        st.builds(lambda field, d: (field << fb) + d, st.integers(0, top >> fb), near),
        st.builds(lambda d: (fmt.bias << fb) + d, st.integers(-(3 << fb), 3 << fb)),
        st.integers(0, 1 << fb),
        st.builds(lambda d: top + d, near),
    )

    def value(place: int, negative: bool) -> Float:
        place = min(max(place, 0), top)
        return zero(fmt, negative) if place == 0 else Float(fmt, place | (fmt.sign_mask if negative else 0))

    return st.builds(value, places, st.booleans())


@lru_cache
def floats(fmt: Format) -> st.SearchStrategy[Float]:
    """Values of a format, special ones often."""
    return st.one_of(st.sampled_from(landmarks(fmt)), finite_floats(fmt), finite_floats(fmt))


@st.composite
def reals_near(draw: st.DrawFn, fmt: Format) -> Fraction:
    """Rationals at the decisions of rounding: values, midpoints, thresholds of overflow, and just beside them.

    The offset is exact, so no format holds these numbers unless it is zero.
    """
    x = draw(finite_floats(fmt)).fraction
    step = ulp(fmt, x)
    part = draw(st.sampled_from([Fraction(n, 12) for n in (0, 3, 4, 6, 12, -6)]))
    offset = draw(st.sampled_from([Fraction(0), pow2(-80), -pow2(-80), pow2(-2000)]))
    return x + step * part + step * offset


def rows(operands: Sequence[Format], size: int = 8) -> st.SearchStrategy[list[tuple[Float, ...]]]:
    """Lists of argument tuples, one value of each format."""
    return st.lists(st.tuples(*(floats(f) for f in operands)), min_size=1, max_size=size)


@st.composite
def cancelling_rows(draw: st.DrawFn, operands: Sequence[Format], size: int = 8) -> list[tuple[Float, ...]]:
    """Argument tuples of comparable size and opposite sign, so that sums cancel, tie and underflow."""
    row = st.tuples(*(finite_floats(f) for f in operands))
    found = []
    for values in draw(st.lists(row, min_size=1, max_size=size)):
        first = values[0]
        near = []
        for f, x in zip(operands, values):
            place = (first.magnitude + draw(st.integers(-3, 3))) if f == first.format else x.magnitude
            place = min(max(place, 1), f.largest_code)
            near.append(from_ordinal(f, place if draw(st.booleans()) else -place))
        found.append(tuple(near))
    return found
