"""Named functions as analytic pieces: what Taylor expansions need beside the enclosures of `fpsmt.functions`.

Every name of the registry is known, and ``abs``, ``sign``, ``atanh`` and ``root(P)`` (the P-th root of x ≥ 0).
A function is cut at its kinks and jumps; on each closed piece between two cuts it agrees, inside, with one analytic
formula, written once for power series over balls.  At a cut itself the value is the registry's (``sign(0) = 0``); the
formulas of the two sides give the one-sided limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from flint import arb, arb_series, fmpq

from fpsmt.errors import UsageError
from fpsmt.functions import enclose, function_named
from fpsmt.functions.definitions import SELU_ALPHA, SELU_SCALE
from fpsmt.functions.function import Function, ball_of

S = Any  #: a power series over balls
Series = Callable[[arb_series], arb_series]


@dataclass(frozen=True, eq=False)
class Analytic:
    """A function: its cuts, the formula of each piece, and enclosures.

    `pieces` has one more element than `cuts`.  `ball` is as in `Function`: any ball, wide or across a cut.
    `range` encloses all values on a closed interval; `exact` is the value where it is known to be rational.
    """

    name: str
    cuts: tuple[Fraction, ...]
    pieces: tuple[Series, ...]
    ball: Callable[[arb], arb]
    range: Callable[[Fraction, Fraction, int], tuple[Fraction, Fraction]]
    exact: Callable[[Fraction], Fraction | None]
    #: for each piece the coefficients (c₀, c₁) where it is the line c₀ + c₁x
    lines: tuple[tuple[Fraction, Fraction] | None, ...] = ()

    @property
    def continuous(self) -> bool:
        """No jump at any cut."""
        return not self.cuts or self.name in CONTINUOUS or bool(re.fullmatch(r"leaky_relu(\(.*\))?", self.name))

    def piece(self, low: Fraction, high: Fraction) -> Series | None:
        """The formula that holds inside [low, high], or None when a cut lies inside."""
        for k, formula in enumerate(self.pieces):
            if (k == 0 or self.cuts[k - 1] <= low) and (k == len(self.cuts) or high <= self.cuts[k]):
                return formula
        return None

    def line(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction] | None:
        """(c₀, c₁) when the function is c₀ + c₁x inside [low, high]."""
        found = self.piece(low, high)
        return self.lines[self.pieces.index(found)] if found is not None and self.lines else None


def _q(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def _sigmoid(x: S) -> S:
    return 1 / (1 + (-x).exp())


def _phi(x: S) -> S:
    return (x * x / -2).exp() / (2 * arb.pi()).sqrt()


def _cdf(x: S) -> S:
    return (x / -arb(2).sqrt()).erfc() / 2


def _inner(x: S) -> S:
    return 2 * (2 / arb.pi()).sqrt() * (x + _q(Fraction(44715, 10**6)) * x * x * x)


def _inner_slope(x: S) -> S:
    return 2 * (2 / arb.pi()).sqrt() * (1 + _q(Fraction(134145, 10**6)) * x * x)


def _gelu_tanh_slope(x: S) -> S:
    s = _sigmoid(_inner(x))
    return s + x * _inner_slope(x) * s * (1 - s)


def _swish_slope(x: S) -> S:
    s = _sigmoid(x)
    return s + x * s * (1 - s)


def _mish_gate(x: S) -> S:
    e = x.exp()
    return 1 - 2 / (e * (e + 2) + 2)


def _mish_slope(x: S) -> S:
    g = _mish_gate(x)
    return g + x * (1 - g * g) * _sigmoid(x)


def _tanh(x: S) -> S:
    return 1 - 2 / ((2 * x).exp() + 1)


def _constant(c: Fraction | int) -> Series:
    return lambda x: x * 0 + _q(Fraction(c))


def _line(c: Fraction | int) -> Series:
    return lambda x: x * _q(Fraction(c))


def _expm1(scale: Fraction) -> Series:
    return lambda x: (x.exp() - 1) * _q(scale)


def _exp(scale: Fraction) -> Series:
    return lambda x: x.exp() * _q(scale)


ZERO, ONE, LOW = Fraction(0), Fraction(1), SELU_SCALE * SELU_ALPHA

#: Functions analytic on their whole domain.
SMOOTH: dict[str, Series] = {
    "identity": lambda x: x,
    "identity'": _constant(1),
    "sigmoid": _sigmoid,
    "sigmoid'": lambda x: _sigmoid(x) * _sigmoid(-x),
    "logsigmoid": lambda x: -(1 + (-x).exp()).log(),
    "logsigmoid'": lambda x: _sigmoid(-x),
    "tanh": _tanh,
    "tanh'": lambda x: 4 * _sigmoid(2 * x) * _sigmoid(-2 * x),
    "softplus": lambda x: (1 + x.exp()).log(),
    "gelu": lambda x: x * _cdf(x),
    "gelu'": lambda x: _cdf(x) + x * _phi(x),
    "gelu_tanh": lambda x: x * _sigmoid(_inner(x)),
    "gelu_tanh'": _gelu_tanh_slope,
    "swish": lambda x: x * _sigmoid(x),
    "swish'": _swish_slope,
    "mish": lambda x: x * _mish_gate(x),
    "mish'": _mish_slope,
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "cos'": lambda x: -x.sin(),
    "exp": lambda x: x.exp(),
    "expm1": lambda x: x.exp() - 1,
    "log": lambda x: x.log(),
    "log'": lambda x: 1 / x,
    "log1p": lambda x: (1 + x).log(),
    "log1p'": lambda x: 1 / (1 + x),
    "erf": lambda x: x.erf(),
    "erf'": lambda x: (x * x * -1).exp() * 2 / arb.pi().sqrt(),
    "erfc": lambda x: x.erfc(),
    "erfc'": lambda x: (x * x * -1).exp() * -2 / arb.pi().sqrt(),
    "sqrt": lambda x: x.sqrt(),
    "sqrt'": lambda x: 1 / (2 * x.sqrt()),
    "sqrt1p_square": lambda x: (1 + x * x).sqrt(),
    "sqrt1p_square'": lambda x: x / (1 + x * x).sqrt(),
    "cosh": lambda x: (x.exp() + (-x).exp()) / 2,
    "cosh'": lambda x: (x.exp() - (-x).exp()) / 2,
    "gaussian": lambda x: (x * x * -1).exp(),
    "gaussian'": lambda x: -2 * x * (x * x * -1).exp(),
}

#: Functions with one cut at 0: the formulas for x < 0 and for x > 0.
BROKEN: dict[str, tuple[Series, Series]] = {
    "relu": (_constant(0), _line(1)),
    "relu'": (_constant(0), _constant(1)),
    "step": (_constant(0), _constant(1)),
    "step'": (_constant(0), _constant(0)),
    "elu": (_expm1(ONE), _line(1)),
    "elu'": (_exp(ONE), _constant(1)),
    "celu": (_expm1(ONE), _line(1)),
    "celu'": (_exp(ONE), _constant(1)),
    "selu": (_expm1(LOW), _line(SELU_SCALE)),
    "selu'": (_exp(LOW), _constant(SELU_SCALE)),
}

#: Functions with a cut where both sides have one limit, the value.
CONTINUOUS = frozenset({"abs", "relu", "elu", "celu", "selu"})


@cache
def analytic(name: str) -> Analytic:
    """The function of this name; a usage error when there is none.

    >>> analytic("root(3)").exact(Fraction(8, 27)), analytic("sign").exact(Fraction(-2))
    (Fraction(2, 3), Fraction(-1, 1))
    """
    word = name.strip().replace("′", "'")
    if word == "abs":
        lines = ((ZERO, -ONE), (ZERO, ONE))
        return Analytic("abs", (ZERO,), (_line(-1), _line(1)), abs, _abs_range, abs, lines)
    if word == "sign":
        return Analytic(
            "sign", (Fraction(0),), (_constant(-1), _constant(1)), _sign_ball, lambda a, b, bits: (_sign(a), _sign(b)),
            _sign, ((-ONE, ZERO), (ONE, ZERO)),
        )  # fmt: skip
    if word == "atanh":
        return Analytic(
            "atanh", (), (lambda x: ((1 + x) / (1 - x)).log() / 2,), arb.atanh, _rising(arb.atanh),
            lambda x: Fraction(0) if x == 0 else None,
        )  # fmt: skip
    if match := re.fullmatch(r"root\((\d{1,4})\)", word):
        return _root(int(match[1]))
    try:
        function = function_named(word)
    except UsageError as error:
        raise UsageError(f"{error}; or abs, sign, atanh, root(P)") from None
    cuts: tuple[Fraction, ...] = ()
    if function.name in SMOOTH:
        pieces: tuple[Series, ...] = (SMOOTH[function.name],)
    else:
        cuts = (Fraction(0),)
        pieces = BROKEN[function.name] if function.name in BROKEN else _leaky(function.name)
    return Analytic(
        function.name, cuts, pieces, function.ball, lambda a, b, bits: enclose(function, a, b, bits), function.exact,
        _lines(function, cuts),
    )  # fmt: skip


def _lines(function: Function, cuts: tuple[Fraction, ...]) -> tuple[tuple[Fraction, Fraction] | None, ...]:
    """From the lines of the registry, which cover a whole piece or nothing of it."""
    found: list[tuple[Fraction, Fraction] | None] = []
    for low, high in zip((None, *cuts), (*cuts, None)):
        whole = [
            line for line in function.lines
            if (line.low is None or (low is not None and line.low <= low))
            and (line.high is None or (high is not None and high <= line.high))
        ]  # fmt: skip
        found.append((whole[0].offset, whole[0].slope) if whole else None)
    return tuple(found)


def _leaky(name: str) -> tuple[Series, Series]:
    """leaky_relu and its derivative, of any slope."""
    slope = function_named(name).exact(Fraction(-1))
    if slope is None or not name.startswith("leaky_relu"):
        raise UsageError(f"{name} has no analytic pieces here: add them to SMOOTH or BROKEN")
    return (_constant(slope), _constant(1)) if name.endswith("'") else (_line(-slope), _line(1))


def _sign(x: Fraction) -> Fraction:
    return Fraction((x > 0) - (x < 0))


def _sign_ball(x: arb) -> arb:
    return arb(1) if x > 0 else arb(-1) if x < 0 else arb(0) if x.is_zero() else arb(0, 1)


def _abs_range(low: Fraction, high: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def _rising(ball: Callable[[arb], arb]) -> Callable[[Fraction, Fraction, int], tuple[Fraction, Fraction]]:
    """The range of an increasing function, from its ends."""

    def of(low: Fraction, high: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        a, b = ball(ball_of(low, low, bits)), ball(ball_of(high, high, bits))
        if not (a.is_finite() and b.is_finite()):
            raise UsageError(f"[{low}, {high}] leaves the domain")
        return _exact(a.lower()), _exact(b.upper())

    return of


def _exact(x: arb) -> Fraction:
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _root(p: int) -> Analytic:
    if p < 1:
        raise UsageError("root(P) needs P ≥ 1")

    def exact(x: Fraction) -> Fraction | None:
        if x < 0:
            return None
        a, b = _integer_root(x.numerator, p), _integer_root(x.denominator, p)
        return None if a is None or b is None else Fraction(a, b)

    def ball(x: arb) -> arb:
        return x if p == 1 else x.root(p)

    def ends(low: Fraction, high: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        if low < 0:
            raise UsageError(f"[{low}, {high}] leaves the domain x ≥ 0 of root({p})")
        inner = _rising(ball)
        return Fraction(0) if low == 0 else inner(low, low, bits)[0], Fraction(0) if high == 0 else inner(
            high, high, bits
        )[1]

    return Analytic(f"root({p})", (), (lambda x: x if p == 1 else (x.log() / p).exp(),), ball, ends, exact)


def _integer_root(n: int, p: int) -> int | None:
    """The p-th root of n ≥ 0 when it is an integer."""
    low, high = 0, 1 << (n.bit_length() // p + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**p < n:
            low = middle + 1
        else:
            high = middle
    return low if low**p == n else None
