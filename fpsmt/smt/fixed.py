"""Floats on one grid as bit vectors: n·2^q with bounds on the integer n, so that nothing is aligned or normalised.

What is hard about float circuits is shifting by amounts that depend on the values.  Where the codes are known to lie
in one binade, or among the subnormals, a float is an integer in known units, and a sum of such floats is one of
integers.  It is rounded at the few places that the bounds of the sum leave open, or not at all.  The encoding declines
(`Unsupported`) where this does not do: it never approximates.

*Bounds* of bit vectors come from the formula itself.  A condition A ∧ B is decided under the assumption of each of its
conjuncts of the forms c < x, x < c, x = c, x ≠ c and x = y (x, y codes or parts of them): where one of them is false,
so is the whole, whatever the rest is taken for.  These conjuncts themselves are encoded without assuming anything.

What is lost is the sign of zero, so that `same` is only encoded where one side is never 0.  Products need a constant
factor, rounding is to nearest even with gradual underflow, and no infinity or NaN can arise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format, Mode, Subnormals, pow2
from fpsmt.smt import nodes as n
from fpsmt.smt.encoder import Encoder
from fpsmt.smt.nodes import Node
from fpsmt.terms.terms import BitsSort, FloatSort, Term

Bounds = tuple[int, int]


@dataclass(frozen=True)
class Fixed:
    """The number (low + node)·2^quantum with 0 ≤ node ≤ high − low."""

    node: Node
    low: int
    high: int
    quantum: int

    def at(self, quantum: int) -> Fixed:
        """The same number in smaller units."""
        s = self.quantum - quantum
        return _of(n.pad(self.node, self.node.width + s), self.low << s, self.high << s, quantum)

    def wide(self, width: int) -> Node:
        """node, of at least this width."""
        return n.widen(self.node, max(width, self.node.width))


def _width(span: int) -> int:
    return max(span.bit_length(), 1)


def _of(node: Node, low: int, high: int, quantum: int) -> Fixed:
    """With as many bits as the bounds need; the value of the node is within them."""
    return Fixed(_cut(node, _width(high - low)), low, high, quantum)


def _cut(node: Node, width: int) -> Node:
    return n.extract(node, width - 1, 0) if node.width > width else n.widen(node, width)


def conjuncts(condition: Term) -> Iterator[tuple[Term, bool]]:
    """(part, truth): parts that have this truth value wherever the condition is true."""
    todo = [(condition, True)]
    while todo:
        term, truth = todo.pop()
        if term.op == "not":
            todo.append((term.args[0], not truth))
        elif term.op == ("and" if truth else "or"):
            todo += [(arg, truth) for arg in reversed(term.args)]
        else:
            yield term, truth


class _Ranges:
    """Bounds of bit vectors where a condition is true."""

    def __init__(self, condition: Term) -> None:
        self.known: dict[Term, Bounds] = {}
        parts = [(t, truth) for t, truth in conjuncts(condition) if t.args and isinstance(t.args[0].sort, BitsSort)]
        for _ in range(2):  # equalities hand bounds on
            for part, truth in parts:
                self._learn(part, truth)

    def _learn(self, part: Term, truth: bool) -> None:
        if part.op == "bits_less":
            a, b = part.args
            (a_low, a_high), (b_low, b_high) = self(a), self(b)
            if truth:
                self._narrow(a, a_low, min(a_high, b_high - 1))
                self._narrow(b, max(b_low, a_low + 1), b_high)
            else:
                self._narrow(a, max(a_low, b_low), a_high)
                self._narrow(b, b_low, min(b_high, a_high))
        elif part.op == "same" and not truth:
            for a, b in (part.args, part.args[::-1]):
                (low, high), (value, other) = self(a), self(b)
                if value == other:
                    self._narrow(a, low + (value == low), high - (value == high))
        elif part.op == "same":
            a, b = part.args
            low, high = max(self(a)[0], self(b)[0]), min(self(a)[1], self(b)[1])
            self._narrow(a, low, high)
            self._narrow(b, low, high)

    def _narrow(self, term: Term, low: int, high: int) -> None:
        if term.op in ("var", "extract") and low <= high:
            self.known[term] = low, high

    def __call__(self, term: Term) -> Bounds:
        assert isinstance(term.sort, BitsSort)
        most = (1 << term.sort.width) - 1
        low, high = 0, most
        if term.op == "const":
            return term.data, term.data
        if term.op == "var":
            low, high = self._from_parts(term)
        elif term.op == "extract" and term.data[1] == 0:
            whole = self(term.args[0])
            low, high = whole if whole[1] <= most else (0, most)
        elif term.op == "concat":
            low = high = 0
            for part in term.args:
                assert isinstance(part.sort, BitsSort)
                a, b = self(part)
                low, high = low << part.sort.width | a, high << part.sort.width | b
        elif term.op in ("bits_add", "bits_sub"):
            (a, b), (c, d) = map(self, term.args)
            ends = (a + c, b + d) if term.op == "bits_add" else (a - d, b - c)
            low, high = ends if ends[0] >= 0 and ends[1] <= most else (0, most)
        known = self.known.get(term, (0, most))
        return max(low, known[0]), min(high, known[1])

    def _from_parts(self, variable: Term) -> Bounds:
        """From the top: parts with one value each, then one with bounds."""
        low = high = 0
        left = variable.sort.width  # type: ignore[union-attr]
        parts = {t.data[0]: (t, at) for t, at in self.known.items() if t.op == "extract" and t.args[0] is variable}
        while low == high and left - 1 in parts:
            part, (a, b) = parts[left - 1]
            width = part.data[0] - part.data[1] + 1
            low, high, left = low << width | a, high << width | b, part.data[1]
        return low << left, (high + 1 << left) - 1


def _trailing_zeros(term: Term) -> int:
    """Low bits that are always 0."""
    if term.op == "const":
        value: int = term.data
        return (value & -value).bit_length() - 1 if value else term.sort.width  # type: ignore[union-attr]
    if term.op == "concat":
        count = 0
        for part in reversed(term.args):
            zeros = _trailing_zeros(part)
            count += zeros
            if zeros < part.sort.width:  # type: ignore[union-attr]
                break
        return count
    return 0


class FixedEncoder(Encoder):
    """Encodes floats as integers in known units."""

    name = "fixed"

    def encode(self, root: Term) -> Node:
        self._ranges = _Ranges(root)
        return super().encode(root)

    def _one(self, term: Term, args: list[Any]) -> Any:
        if isinstance(term.sort, FloatSort):
            return self._number(term, args)
        if term.args and isinstance(term.args[0].sort, FloatSort):
            return self._test(term, args)
        return super()._one(term, args)

    # -- numbers --------------------------------------------------------------------------------------------

    def _number(self, term: Term, args: list[Any]) -> Fixed:
        if term.op == "const":
            return _constant(term.data)
        if term.op == "from_bits":
            return self._from_code(term, args[0])
        if term.op == "neg":
            return _negated(args[0])
        if term.op == "ite":
            a, b = _aligned(args[1], args[2])
            low, high = min(a.low, b.low), max(a.high, b.high)
            return _of(n.ite(args[0], _from(a, low, high), _from(b, low, high)), low, high, a.quantum)
        if term.op == "add":
            a, b = _aligned(*args)
            width = _width(a.high + b.high - a.low - b.low)
            total = n.add(a.wide(width), b.wide(width))
            return _rounded(term, _of(total, a.low + b.low, a.high + b.high, a.quantum))
        if term.op == "cast":
            return _rounded(term, args[0])
        if term.op == "mul":
            return _rounded(term, _product(term, *args))
        raise Unsupported(f"numbers on a grid have no encoding for {term.op}")

    def _from_code(self, term: Term, code: Node) -> Fixed:
        """Codes within one binade, or within the subnormals and the first binade, are linear in the value."""
        fmt, p = term.format, term.format.fraction_bits
        low, high = self._ranges(term.args[0])
        negative = low >= fmt.sign_mask and fmt.has_signed_zero
        if negative:
            low, high = low - fmt.sign_mask, high - fmt.sign_mask
        if high <= min(2 << p, fmt.largest_code):
            offset, quantum = 0, fmt.emin - p
        elif low >> p >= 1 and high <= min(((low >> p) + 1) << p, fmt.largest_code):
            field = low >> p
            offset, quantum = (1 << p) - (field << p), field - fmt.bias - p
        else:
            raise Unsupported(f"codes from {low:#x} to {high:#x} of {fmt} are not within one binade")
        zeros = min(_trailing_zeros(term.args[0]), p)
        low, high = -(-low >> zeros), high >> zeros
        if low > high:
            raise Unsupported("no code is possible here")
        node = n.extract(code, fmt.bits - 2, zeros)
        span = _width(high - low)
        if low % (1 << span):
            node = n.sub(node, n.number(node.width, low))
        offset >>= zeros
        size = _of(node, low + offset, high + offset, quantum + zeros)
        return _negated(size) if negative else size

    # -- comparisons ----------------------------------------------------------------------------------------

    def _test(self, term: Term, args: list[Any]) -> Node:
        if term.op in ("is_nan", "is_infinite", "is_finite"):
            return n.truth(term.op == "is_finite")
        if term.op not in ("same", "eq", "lt", "le"):
            raise Unsupported(f"numbers on a grid have no encoding for {term.op}")
        if term.op == "same" and not any(x.low > 0 or x.high < 0 for x in args):
            raise Unsupported("numbers on a grid do not tell the zeros apart")
        a, b = _aligned(*args)
        low, high = min(a.low, b.low), max(a.high, b.high)
        x, y = _from(a, low, high), _from(b, low, high)
        if term.op == "lt":
            return n.less(x, y)
        return n.less_equal(x, y) if term.op == "le" else n.equal(x, y)


def _from(x: Fixed, low: int, high: int) -> Node:
    """How far the number is above low ≤ x.low, for high ≥ x.high."""
    width = _width(high - low)
    return n.add(x.wide(width), n.number(width, x.low - low))


def _aligned(a: Fixed, b: Fixed) -> tuple[Fixed, Fixed]:
    """In one unit, the smaller one; a constant zero has no unit of its own."""
    quantum = min((x.quantum for x in (a, b) if x.low or x.high), default=0)
    first, second = (x.at(quantum) if x.low or x.high else Fixed(n.number(1, 0), 0, 0, quantum) for x in (a, b))
    return first, second


def _constant(value: Float) -> Fixed:
    if not value.is_finite:
        raise Unsupported(f"{value} is not a number")
    m, e = value.dyadic
    while m and m % 2 == 0:
        m, e = m // 2, e + 1
    return Fixed(n.number(1, 0), m, m, e)


def _negated(x: Fixed) -> Fixed:
    width = x.node.width
    return Fixed(n.sub(n.number(width, x.high - x.low), x.node), -x.high, -x.low, x.quantum)


def _product(term: Term, a: Fixed, b: Fixed) -> Fixed:
    """The exact product with a constant factor."""
    for factor, x in ((a, b), (b, a)):
        if factor.low == factor.high:
            c = factor.low
            quantum = x.quantum + factor.quantum
            if c < 0:
                x, c = _negated(x), -c
            width = _width((x.high - x.low) * c)
            node = n.mul(x.wide(width), n.number(max(width, x.node.width), c))
            return _of(node, x.low * c, x.high * c, quantum)
    raise Unsupported(f"{term!r} multiplies two variables")


def _rounded(term: Term, exact: Fixed) -> Fixed:
    """The exact number, rounded once.

    Numbers of size below 2^(precision + k) units, and not below half of that for k > 0, are rounded to multiples of
    2^k units; k is at least what makes these multiples of the smallest positive value.  Nearest even is the same for n
    and −n, so that a shift downwards does, after a multiple of 2·2^k is added that makes n positive.
    """
    ctx: Context = term.data
    fmt = ctx.format
    if ctx.mode is not Mode.RNE or ctx.subnormals is not Subnormals.GRADUAL:
        raise Unsupported("numbers on a grid are rounded to nearest even, with gradual underflow")
    least = max(0, fmt.emin - fmt.fraction_bits - exact.quantum)
    most = max(_place(fmt, exact.low, least), _place(fmt, exact.high, least))
    ends = [_nearest(x, _place(fmt, x, least)) for x in (exact.low, exact.high)]
    if Fraction(max(map(abs, ends))) * pow2(exact.quantum) > fmt.largest:
        raise Unsupported(f"{term.op} may overflow: values up to {max(map(abs, ends))}·2^{exact.quantum} in {fmt}")
    if most == 0:
        return exact
    first = least
    if exact.low > 0 or exact.high < 0:
        first = min(_place(fmt, exact.low, least), _place(fmt, exact.high, least))
    low, high = ends
    result: Node | None = None
    for k in range(most, first - 1, -1):
        here = _at_place(exact, k, low)
        width = max(_width(high - low), 1)
        node = _cut(here, width)
        result = node if result is None else n.ite(_below(exact, 1 << (fmt.precision + k)), node, result)
    assert result is not None
    return _of(result, low, high, exact.quantum)


def _place(fmt: Format, x: int, least: int) -> int:
    """k of `_rounded` for the integer x."""
    return max(least, abs(x).bit_length() - fmt.precision)


def _nearest(x: int, k: int) -> int:
    """The multiple of 2^k nearest to x, ties to even multiples."""
    quotient, rest = x >> k, x & ((1 << k) - 1)
    half = 1 << k >> 1
    up = k > 0 and (rest > half or (rest == half and quotient & 1))
    return (quotient + up) << k


def _at_place(x: Fixed, k: int, low: int) -> Node:
    """How far x, rounded to a multiple of 2^k, is above `low`, modulo a power of two that is large enough."""
    lift = (-x.low >> (k + 1)) + 1 << (k + 1) if x.low < 0 else 0
    top = x.high + lift + (2 << k)
    width = top.bit_length() + 1
    value = n.add(x.wide(width), n.number(width, x.low + lift))
    if k:
        kept = n.extract(value, width - 1, k)
        rest = n.extract(value, k - 1, 0)
        half = n.number(k, 1 << (k - 1))
        up = n.either(n.less(half, rest), n.both(n.equal(rest, half), n.bit(kept, 0)))
        kept = n.add(kept, n.widen(n.as_bit(up), kept.width))
        value = n.concat(kept, n.number(k, 0))
    return n.sub(value, n.number(width, low + lift))


def _below(x: Fixed, bound: int) -> Node:
    """|x| < bound, for bound > 0."""
    width = _width(max(x.high, bound) - min(x.low, -bound))
    shifted = n.add(x.wide(width), n.number(width, x.low - min(x.low, -bound)))
    low = -bound - min(x.low, -bound)
    return n.both(
        n.less(n.number(width, low), shifted),
        n.less(shifted, n.number(width, bound - min(x.low, -bound))),
    )
