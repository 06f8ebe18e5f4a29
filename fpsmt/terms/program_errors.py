"""Rounding-error analysis of a float program on an interval of inputs, in balls.

For every node let v(x) be its float value, and r(x) the value of the same formula in the reals (with the constants as
they were rounded, and real functions).  `distance` bounds |v(x) − f(x)| for all floats x of an interval by
|v − r| + |r − f|:

* |v − r| by induction over the nodes.  With operands within A of a and B of b, the exact result of an operation on the
  floats is within A + B of a + b, A|b| + B|a| + AB of ab, and (A + |a/b|B)/(|b| − B) of a/b; a function g of a float
  within A of a is within A·sup|g′| of g(a), on the interval between them; √ is such a function.  Rounding to
  nearest moves a real of size at most s by at most ½ulp(s), because ulp grows with s (below 2^emin too); a function
  within K ulps moves by at most max(K, ½)·ulp(s): its correctly rounded value is always allowed.  Signs change exactly.
* |r − f| by a Taylor model: D = r − f is analytic on the interval (else its coefficients are not finite, and nothing is
  claimed), so that |D(x)| ≤ Σₖ |D⁽ᵏ⁾(m)/k!|·hᵏ + sup|D⁽ⁿ⁾/n!|·hⁿ with m the middle and h the half width; power series
  of balls give all coefficients.

A conditional is followed where its comparison is decided for all floats of the interval, or assumed to be; sizes must
stay below Ω.  Where something is not so, there is no bound, and a smaller interval may have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

import flint
from flint import arb, arb_series

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Format, Mode, Overflow, Subnormals, ulp
from fpsmt.functions import CorrectlyRounded, Function, WithinUlps
from fpsmt.functions.enclosures import enclose
from fpsmt.functions.function import ball_of
from fpsmt.terms.terms import Term

BITS = 160
ORDER = 8  #: terms of a Taylor model
PIECES = 64  #: of an interval whose results are bounded
BENT = 256  #: the outermost pieces are cut while what is not linear adds more than this part of all that is met
MOST_PARTS = 1 << 10  #: of an interval whose errors are bounded
SHORT = Fraction(1, 1 << 40)  #: an interval on which functions hardly change
MOST_ASSUMED = 3
HALF = Fraction(1, 2)
ZERO = Fraction(0)

Interval = tuple[Fraction, Fraction]
Series = Callable[[arb_series], arb_series]


class NoBound(Exception):
    """The interval is too wide for the analysis."""


class Undecided(NoBound):
    """A comparison holds at some floats of the interval, or this is not known."""

    def __init__(self, condition: Term) -> None:
        super().__init__()
        self.condition = condition


def _over(a: arb_series | int, b: arb_series) -> arb_series:
    if not (b[0] > 0 or b[0] < 0):
        raise NoBound
    return a / b


def _log(s: arb_series) -> arb_series:
    if not s[0] > 0:
        raise NoBound
    return s.log()


def _sqrt(s: arb_series) -> arb_series:
    if not s[0] > 0:
        raise NoBound
    return s.sqrt()


def _sigmoid(s: arb_series) -> arb_series:
    return _over(1, 1 + (-s).exp())


#: Power series of the functions that are analytic on the whole line or on their domain.
SERIES: dict[str, Series] = {
    "exp": lambda s: s.exp(),
    "expm1": lambda s: s.exp() - 1,
    "log": _log,
    "log1p": lambda s: _log(1 + s),
    "sqrt": _sqrt,
    "erf": lambda s: s.erf(),
    "erfc": lambda s: s.erfc(),
    "tanh": lambda s: 1 - _over(2, (2 * s).exp() + 1),
    "sigmoid": _sigmoid,
    "logsigmoid": lambda s: -_log(1 + (-s).exp()),
    "softplus": lambda s: _log(1 + s.exp()),
    "swish": lambda s: s * _sigmoid(s),
    "gelu": lambda s: s * (-s / arb(2).sqrt()).erfc() / 2,
    "gaussian": lambda s: (-(s * s)).exp(),
}


@dataclass(frozen=True)
class Node:
    """Over the interval: the series of r at its middle, the series on the whole of it, and |v − r| ≤ error."""

    middle: arb_series
    whole: arb_series
    error: arb
    sign: int = 0  #: v ≥ 0 (1) or v ≤ 0 (−1) where this is known, also where balls do not tell

    @property
    def real(self) -> arb:
        """An enclosure of r."""
        return self.whole[0]

    @property
    def floats(self) -> arb:
        """An enclosure of v."""
        return self.whole[0] + arb(0, self.error)


def distance(root: Term, function: Function, ctx: Context, low: Float, high: Float) -> Fraction | None:
    """An upper bound of |v(x) − f(x)| for every float x of [low, high], low < high finite; None where there is none.

    `root` is a compiled program (`programs.Program.compiled`), whose choices are ways to round one sum.
    `Unsupported` for contexts and programs that the analysis does not know.
    """
    _check(ctx)
    series = _series(function)
    with _working():
        return _distance(root, series, ctx, low.fraction, high.fraction)


def _distance(root: Term, series: Series, ctx: Context, low: Fraction, high: Fraction) -> Fraction | None:
    try:
        x = _input(low, high)
        found = _Analysis(x, ctx).node(root)
        differences = [s - series(t) for s, t in ((found.middle, x.middle), (found.whole, x.whole))]
        h, power, total = ball_of((high - low) / 2, (high - low) / 2, BITS), arb(1), found.error
        for k in range(ORDER):
            total = total + abs(differences[0][k]) * power
            power = power * h
        return _upper(total + abs(differences[1][ORDER]) * power)
    except (NoBound, ValueError, ZeroDivisionError):  # a ball that is divided by may hold 0
        return None


def offsets(root: Term, ctx: Context, low: Float, high: Float, slope: Fraction = ZERO) -> Interval | None:
    """Numbers a ≤ b with a ≤ v(x) − slope·x ≤ b for every float x of [low, high], finite; None where there are none.

    With slope 0 these are bounds of the results.  [low, high] is cut at 0 and halved, as real numbers, into at most
    `PIECES` pieces, until the part of r that is not linear is small where the bounds come from.  v − slope·x is within
    the error of r − slope·x, whose Taylor model has its extremes at the ends but for the terms from t² on.
    """
    _check(ctx)
    a, b = low.fraction, high.fraction
    todo = [(a, Fraction(0)), (Fraction(0), b)] if a < 0 < b else [(a, b)]
    done: list[_Piece] = []
    with _working():
        while todo:
            if len(todo) + len(done) > PIECES:
                return None
            piece = todo.pop()
            found = _piece(root, ctx, *piece, slope)
            if found is None and piece[0] < piece[1]:
                todo += _halves(piece)
            elif found is None:
                return None
            else:
                done.append(found)
        while len(done) < PIECES:
            least, most = min(done, key=lambda piece: piece.low), max(done, key=lambda piece: piece.high)
            worst = max(least, most, key=lambda piece: piece.bend)
            if worst.bend * BENT < most.high - least.low:
                break
            halves = [_piece(root, ctx, *half, slope) for half in _halves(worst.on)]
            if None in halves:
                break
            done.remove(worst)
            done += [half for half in halves if half is not None]
    return min(piece.low for piece in done), max(piece.high for piece in done)


def error_on(root: Term, function: Function, ctx: Context, low: Float, high: Float) -> Fraction | None:
    """An upper bound of |v(x) − f(x)| for every float x of [low, high], finite, from `distance` on parts of it; None
    where there is none.

    The part with the largest bound is halved while that makes it smaller.  Where f is not analytic, as at 0, the bound
    is the largest difference between results, by `offsets`, and values of f.
    """
    _check(ctx)
    series = _series(function)
    a, b = low.fraction, high.fraction

    def measured(part: Interval) -> tuple[Fraction | None, Interval]:
        found = _distance(root, series, ctx, *part)
        if found is None and part[1] - part[0] <= SHORT:
            found = _apart(root, function, ctx, *part)
        return found, part

    with _working():
        parts = [measured(part) for part in ([(a, ZERO), (ZERO, b)] if a < 0 < b else [(a, b)])]
        while len(parts) < MOST_PARTS:
            worst = max(range(len(parts)), key=lambda k: (parts[k][0] is None, parts[k][0] or ZERO))
            bound, part = parts[worst]
            if bound is None and part[1] - part[0] <= SHORT:
                return None
            halves = [measured(half) for half in _halves(part)]
            if bound is not None and not all(_less(half[0], bound) for half in halves):
                return bound
            parts[worst : worst + 1] = halves
        return None


def _less(bound: Fraction | None, other: Fraction) -> bool:
    """By more than a fifth."""
    return bound is not None and bound * 5 < other * 4


def _apart(root: Term, function: Function, ctx: Context, low: Fraction, high: Fraction) -> Fraction | None:
    piece = _piece(root, ctx, low, high, ZERO)
    if piece is None:
        return None
    try:
        least, most = enclose(function, low, high, BITS)
    except (Unsupported, UsageError):  # out of the domain
        return None
    return max(piece.high - least, most - piece.low)


@dataclass(frozen=True)
class _Piece:
    on: Interval
    low: Fraction
    high: Fraction
    bend: Fraction  #: how much the terms from t² on add to each end


def _halves(piece: Interval) -> list[Interval]:
    middle = (piece[0] + piece[1]) / 2
    return [(piece[0], middle), (middle, piece[1])]


def _piece(root: Term, ctx: Context, low: Fraction, high: Fraction, slope: Fraction) -> _Piece | None:
    x = _input(low, high)
    h = ball_of((high - low) / 2, (high - low) / 2, BITS)
    s = ball_of(slope, slope, BITS)
    lows, highs, bends = [], [], []
    try:
        for v in _ways(root, x, ctx, {}):
            bend, power = abs(v.whole[ORDER]) * h**ORDER, h
            for k in range(2, ORDER):
                power = power * h
                bend = bend + abs(v.middle[k]) * power
            centre = v.middle[0] - s * x.middle[0]
            reach = abs(v.middle[1] - s) * h + bend + v.error
            lows.append(-_upper(reach - centre))
            highs.append(_upper(centre + reach))
            bends.append(_upper(bend))
    except (NoBound, ValueError, ZeroDivisionError):
        return None
    return _Piece((low, high), min(lows), max(highs), max(bends))


def _ways(root: Term, x: Node, ctx: Context, assumed: Mapping[Term, bool]) -> list[Node]:
    """The result, one for each way to decide what the interval leaves open: each float goes one of these ways."""
    try:
        return [_Analysis(x, ctx, assumed).node(root)]
    except Undecided as open_one:
        if len(assumed) == MOST_ASSUMED:
            raise
        sides = [{**assumed, open_one.condition: side} for side in (True, False)]
    return [node for side in sides for node in _ways(root, x, ctx, side)]


def _check(ctx: Context) -> None:
    if (ctx.mode, ctx.overflow, ctx.subnormals) != (Mode.RNE, Overflow.INFINITY, Subnormals.GRADUAL):
        raise Unsupported(f"the error analysis knows rounding to nearest, infinities and subnormals, not {ctx}")


def _series(function: Function) -> Series:
    found = SERIES.get(function.name, function.series)
    if found is None:
        raise Unsupported(f"the error analysis has no power series of {function.name}")
    return found


def least_ulp(function: Function, fmt: Format, low: Float, high: Float) -> Fraction:
    """A lower bound of ulp(f(x)) for every x of [low, high]."""
    a, b = enclose(function, low.fraction, high.fraction, BITS)
    return ulp(fmt, Fraction(0)) if a <= 0 <= b else min(ulp(fmt, a), ulp(fmt, b))


@contextmanager
def _working() -> Iterator[None]:
    saved = flint.ctx.prec, flint.ctx.cap
    flint.ctx.prec, flint.ctx.cap = BITS, ORDER + 1
    try:
        yield
    finally:
        flint.ctx.prec, flint.ctx.cap = saved


def _input(low: Fraction, high: Fraction) -> Node:
    """x itself, on [low, high]."""
    middle = ball_of((low + high) / 2, (low + high) / 2, BITS)
    sign = 1 if low >= 0 else -1 if high <= 0 else 0
    return Node(_variable(middle), _variable(ball_of(low, high, BITS)), arb(0), sign)


def _variable(x: arb) -> arb_series:
    return arb_series([x, 1])


def _upper(x: arb) -> Fraction:
    if not x.is_finite():
        raise NoBound
    mantissa, exponent = (int(v) for v in x.upper().man_exp())
    if abs(exponent) > 1 << 16:
        raise NoBound
    return mantissa * Fraction(2) ** exponent


def _rounding(size: arb, fmt: Format, ulps: Fraction = HALF) -> arb:
    """How far a real of at most this size is moved; no bound where it may overflow."""
    s = _upper(abs(size))
    unit = ulps * ulp(fmt, s)
    if s + unit >= fmt.largest:
        raise NoBound
    return ball_of(unit, unit, BITS)


@dataclass
class _Analysis:
    """Nodes as they are needed, so that the branches not taken are not looked at."""

    x: Node
    ctx: Context
    assumed: Mapping[Term, bool] = field(default_factory=dict)  #: conditions; what is said is about floats where so
    known: dict[Term, Node] = field(default_factory=dict)

    def node(self, term: Term) -> Node:
        if term not in self.known:
            self.known[term] = self._value(term)
        return self.known[term]

    def _value(self, term: Term) -> Node:
        fmt, ctx = self.ctx.format, self.ctx
        if term.op == "var" and term.data == "x" and term.format == fmt:
            return self.x
        if term.op == "const" and term.data.is_finite:
            c = ball_of(term.data.fraction, term.data.fraction, BITS)
            return Node(arb_series([c]), arb_series([c]), arb(0))
        if term.op == "ite":
            return self.node(term.args[1 if self._holds(term.args[0]) else 2])
        if term.op == "choose":  # ways to round one and the same sum
            ways = [self.node(option) for option in term.args[1:]]
            return Node(ways[0].middle, ways[0].whole, reduce(arb.max, (way.error for way in ways)))
        if term.op in ("add", "mul", "div", "fma", "sqrt") and term.data != ctx:
            raise Unsupported("the error analysis knows programs of one context")
        args = [self.node(a) for a in term.args]
        if term.op == "neg":
            return Node(-args[0].middle, -args[0].whole, args[0].error, -args[0].sign)
        if term.op == "abs":
            (a,) = args
            if a.floats > 0 or a.sign > 0:
                return a
            if a.floats < 0 or a.sign < 0:
                return Node(-a.middle, -a.whole, a.error, 1)
            raise NoBound
        if term.op == "add":
            return _rounded(args[0].middle + args[1].middle, args[0].whole + args[1].whole, _sum(*args), fmt)
        if term.op == "mul":
            return _rounded(args[0].middle * args[1].middle, args[0].whole * args[1].whole, _product(*args), fmt)
        if term.op == "fma":
            one, two, three = args
            exact = _product(one, two) + three.error
            real = one.middle * two.middle + three.middle, one.whole * two.whole + three.whole
            return _rounded(*real, exact, fmt)
        if term.op == "div":
            return _quotient(args[0], args[1], fmt)
        if term.op == "sqrt":
            return _function("sqrt", args[0], HALF, fmt)
        if term.op == "apply":
            implementation, own, _ = term.data
            contract = implementation.contract
            if own != ctx or not isinstance(contract, CorrectlyRounded | WithinUlps):
                raise Unsupported(f"the error analysis does not know {implementation.text} in {own}")
            ulps = max(HALF, contract.ulps) if isinstance(contract, WithinUlps) else HALF
            return _function(implementation.function.name, args[0], ulps, fmt)
        raise Unsupported(f"the error analysis does not know the operator {term.op!r}")

    def _holds(self, condition: Term) -> bool:
        """Whether a condition on float values holds, the same for the whole interval."""
        if condition in self.assumed:
            return self.assumed[condition]
        if condition.op == "not":
            return not self._holds(condition.args[0])
        if condition.op in ("and", "or"):
            parts = [self._holds(part) for part in condition.args]
            return all(parts) if condition.op == "and" else any(parts)
        a, b = (self.node(arg).floats for arg in condition.args)
        if condition.op in ("lt", "le"):
            if (a < b) if condition.op == "lt" else (a <= b):
                return True
            if (a >= b) if condition.op == "lt" else (a > b):
                return False
        if condition.op == "eq" and (a < b or a > b):
            return False
        raise Undecided(condition)


def _sum(a: Node, b: Node) -> arb:
    return a.error + b.error


def _product(a: Node, b: Node) -> arb:
    return a.error * abs(b.real) + b.error * abs(a.real) + a.error * b.error


def _rounded(middle: arb_series, whole: arb_series, exact: arb, fmt: Format, ulps: Fraction = HALF) -> Node:
    """A node whose exact result, on floats, is within `exact` of r."""
    exact = _positive(exact)
    return Node(middle, whole, _positive(exact + _rounding(abs(whole[0]) + exact, fmt, ulps)))


def _positive(error: arb) -> arb:
    """The upper end of an error."""
    if not error.is_finite():
        raise NoBound
    return error.upper()


def _quotient(a: Node, b: Node, fmt: Format) -> Node:
    if not (b.floats > 0 or b.floats < 0):
        raise NoBound
    smallest = abs(b.real).lower() - b.error
    if not smallest > 0:
        raise NoBound
    whole = _over(a.whole, b.whole)
    return _rounded(_over(a.middle, b.middle), whole, (a.error + abs(whole[0]) * b.error) / smallest, fmt)


def _function(name: str, a: Node, ulps: Fraction, fmt: Format) -> Node:
    if name not in SERIES:
        raise Unsupported(f"the error analysis has no power series of {name}")
    g = SERIES[name]
    around = g(_variable(a.floats.union(a.real)))
    if not (around[0].is_finite() and around[1].is_finite()):
        raise NoBound
    return _rounded(g(a.middle), g(a.whole), a.error * abs(around[1]), fmt, ulps)
