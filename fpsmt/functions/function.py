"""A real function as a record: formula, certified ball enclosure, exact values, shape, limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import flint
from flint import arb, fmpq

from fpsmt.errors import InternalError, UsageError

Ball = Callable[[arb], arb]
Limit = Fraction | float  #: a rational, ±inf, or NaN when there is no limit


@dataclass(frozen=True)
class Line:
    """f(x) = slope·x + offset exactly on the closed interval [low, high]; None is unbounded.

    Where two lines share an end the first one listed gives the value there.
    """

    low: Fraction | None
    high: Fraction | None
    slope: Fraction
    offset: Fraction

    def covers(self, x: Fraction) -> bool:
        return (self.low is None or self.low <= x) and (self.high is None or x <= self.high)


@dataclass(frozen=True)
class StrictBound:
    """f(x) < slope·x + offset (side −1) or > (side +1), strictly, for rational x in the open interval (low, high).

    These inequalities decide what balls of any precision cannot when f(x) is closer to a rounding breakpoint
    than the precision, e.g. tanh x < x for x = 2^−1074.
    """

    low: Fraction | None
    high: Fraction | None
    slope: Fraction
    offset: Fraction
    side: Literal[-1, 1]

    def applies(self, x: Fraction) -> bool:
        return (self.low is None or self.low < x) and (self.high is None or x < self.high)


@dataclass(frozen=True)
class Tail:
    """For |x| ≥ 64 on one side: f(x) − (slope·x + offset) has the sign `side`; its size falls to 0 monotonically."""

    slope: Fraction
    offset: Fraction
    side: Literal[-1, 1]


TAIL_START = 64  #: every `Tail` and every exponential growth holds from here on


@dataclass(frozen=True, eq=False)
class TurningPoint:
    """A point where the direction of a function changes or where it jumps.

    Either an exact rational (low == high) or the only root of `sign` in (low, high), a continuous function
    of which balls certify opposite signs at the ends.
    """

    low: Fraction
    high: Fraction
    sign: Ball | None = None
    limits: tuple[Fraction, ...] = ()  #: one-sided limits at a jump

    @property
    def exact(self) -> bool:
        return self.sign is None

    def enclosure(self, width: Fraction) -> tuple[Fraction, Fraction]:
        """Rationals low ≤ point ≤ high with high − low ≤ width, by bisection with certified signs."""
        low, high = _BRACKETS.get(self, (self.low, self.high))
        if self.sign is None or high - low <= width:
            return low, high
        at_low = certified_sign(self.sign, low)
        if (low, high) == (self.low, self.high) and at_low == certified_sign(self.sign, high):
            raise InternalError(f"no change of sign between {low} and {high}")
        while high - low > width:
            middle = (low + high) / 2
            if certified_sign(self.sign, middle) == at_low:
                low = middle
            else:
                high = middle
        _BRACKETS[self] = (low, high)
        return low, high


_BRACKETS: dict[TurningPoint, tuple[Fraction, Fraction]] = {}


def certified_sign(f: Ball, x: Fraction) -> int:
    """The sign of f(x), which must not be zero, from a ball that excludes zero."""
    bits = 64
    while bits <= 1 << 20:
        y = evaluate(f, ball_of(x, x, bits), bits)
        if y > 0:
            return 1
        if y < 0:
            return -1
        bits *= 2
    raise InternalError(f"no ball of up to a million bits excludes zero at {x}")


def ball_of(low: Fraction, high: Fraction, bits: int) -> arb:
    """A ball that contains [low, high]."""
    saved = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        a = arb(fmpq(low.numerator, low.denominator))
        return a if low == high else a.union(arb(fmpq(high.numerator, high.denominator)))
    finally:
        flint.ctx.prec = saved


def ends(y: arb, bits: int) -> tuple[arb, arb]:
    """Exact dyadics around a finite ball, of about this many bits."""
    saved = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        return y.lower(), y.upper()
    finally:
        flint.ctx.prec = saved


def evaluate(f: Ball, x: arb, bits: int) -> arb:
    """f on a ball at this working precision."""
    saved = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        return f(x)
    finally:
        flint.ctx.prec = saved


@dataclass(frozen=True, eq=False, repr=False)
class Function:
    """A real function of one real variable, with everything needed to round it correctly.

    `ball` maps a ball to a ball that contains the image, at python-flint's current precision; balls may be
    wide and may straddle kinks and jumps, and a ball without finite bounds means no information (e.g. a
    logarithm over a ball that contains 0).  `directions` are +1, −1 or 0 for the pieces between the
    `turning` points: on each open piece the function is monotone that way.  `period_phase` is for sine and
    cosine: their turning points are (k + phase)·π.  `range` is a closed hull of all values.

    *Infinities and NaN*: the value at ±inf is the limit (`at_minus_infinity`, `at_plus_infinity`), NaN when
    there is none or when it lies outside the domain; NaN gives NaN; outside the domain x ≥ `lowest` the value
    is NaN; at x = `lowest` with a pole (`pole` = ±1) it is the infinity of that sign for both zeros.

    *Zeros*: an exact zero at input ±0 has the sign of the input (`keep`), the opposite sign (`flip`), or is +0
    (`positive`); an exact zero at any other input is +0; a nonzero value that rounds to zero keeps its sign.
    """

    name: str
    formula: str
    ball: Ball
    directions: tuple[int, ...]
    at_minus_infinity: Limit
    at_plus_infinity: Limit
    derivative_name: str | None
    turning: tuple[TurningPoint, ...] = ()
    parity: Literal["odd", "even", "none"] = "none"
    rational: Callable[[Fraction], Fraction | None] = field(default=lambda x: None)
    lines: tuple[Line, ...] = ()
    bounds: tuple[StrictBound, ...] = ()
    left_tail: Tail | None = None
    right_tail: Tail | None = None
    grows: tuple[int, int] = (0, 0)  #: sign of exponential growth at −inf and +inf, 0 where there is none
    zero_sign: Literal["keep", "flip", "positive"] = "positive"
    lowest: Fraction | None = None
    pole: int = 0
    range: tuple[Fraction | None, Fraction | None] = (None, None)
    period_phase: Fraction | None = None

    def exact(self, x: Fraction) -> Fraction | None:
        """f(x) when it is a rational that is known; None otherwise (see `definitions` for why it is irrational)."""
        for line in self.lines:
            if line.covers(x):
                return line.slope * x + line.offset
        return self.rational(x)

    def defined_at(self, x: Fraction) -> bool:
        """x is in the domain and not a pole."""
        return self.lowest is None or x > self.lowest or (x == self.lowest and not self.pole)

    @property
    def derivative(self) -> Function:
        """The derivative, with the value at each kink that reverse mode uses (part of its record).

        >>> from fpsmt.functions import relu, sigmoid
        >>> relu.derivative.exact(Fraction(0)), sigmoid.derivative.exact(Fraction(0))
        (Fraction(0, 1), Fraction(1, 4))
        """
        from fpsmt.functions.registry import function_named

        if self.derivative_name is None:
            raise UsageError(f"{self.name} has no derivative in the registry: only first derivatives are defined")
        return function_named(self.derivative_name)

    @property
    def jumps(self) -> tuple[Fraction, ...]:
        """Where the function is not continuous.

        >>> from fpsmt.functions import elu, relu
        >>> relu.derivative.jumps, elu.derivative.jumps
        ((Fraction(0, 1),), ())
        """
        return tuple(point.low for point in self.turning if point.limits)

    def __call__(self, x: arb, bits: int = 80) -> arb:
        """The ball enclosure of f on a ball, at this working precision."""
        return evaluate(self.ball, x, bits)

    def __repr__(self) -> str:
        return f"<function {self.name}: {self.formula}>"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        from fpsmt.functions.registry import function_named

        return function_named, (self.name,)
