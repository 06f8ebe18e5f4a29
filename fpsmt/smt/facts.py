"""What is certain about an activation's output, as solver facts about the codes of its input and output.

Inputs and outputs are ordered by *place*: the line of floats with −0 just below +0.  An allowed set of outputs is
an interval of places, or NaN alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from fpsmt.errors import FpsmtError, Unsupported
from fpsmt.floats import (
    Context,
    Float,
    Format,
    Mode,
    Overflow,
    Subnormals,
    from_ordinal,
    infinity,
    nan,
    pow2,
    round_real,
    ulp,
    zero,
)
from fpsmt.floats.vector import encode
from fpsmt.functions import (
    Clamped,
    Contract,
    CorrectlyRounded,
    Function,
    Implementation,
    Piecewise,
    WithinError,
    WithinFloats,
    WithinUlps,
    allowed_tables,
    correctly_rounded,
    enclose,
    range_on,
)
from fpsmt.functions.enclosures import place
from fpsmt.functions.implementations import farthest
from fpsmt.smt import nodes as n
from fpsmt.smt.circuit import ordinal, total_order_key
from fpsmt.smt.nodes import Node
from fpsmt.smt.unpacked import is_nan

MAX_RUNS = 4096  #: longest table that is written out; longer ones are refined lazily

Ends = tuple[Float, Float]


@dataclass(frozen=True)
class Run:
    """Inputs low … high (in places) that share one allowed interval of outputs."""

    low: Float
    high: Float
    outputs: Ends


def line(fmt: Format) -> list[Float]:
    """Every value but NaN, by place."""
    top = fmt.largest_code + fmt.has_infinity
    below = [Float(fmt, fmt.sign_mask | m) for m in range(top, 0, -1)]
    if fmt.has_signed_zero:
        below.append(zero(fmt, True))
    return below + [Float(fmt, m) for m in range(top + 1)]


@lru_cache(maxsize=64)
def runs(implementation: Implementation, ctx: Context, fmt: Format) -> tuple[tuple[Run, ...], Ends | None] | None:
    """The table of a format of at most 16 bits as runs, and the outputs at NaN; None when it is too long."""
    if fmt.bits > 16:
        return None
    low, high = (encode(ctx.format, side) for side in allowed_tables(implementation, ctx, fmt))
    inputs = line(fmt)
    codes = np.array([x.code for x in inputs])
    pairs = np.stack([np.asarray(low)[codes], np.asarray(high)[codes]]).astype(np.uint64)
    changes = np.flatnonzero((pairs[:, 1:] != pairs[:, :-1]).any(axis=0))
    if len(changes) >= MAX_RUNS:
        return None
    starts, stops = [0, *(int(i) + 1 for i in changes)], [*(int(i) for i in changes), len(inputs) - 1]
    found = tuple(
        Run(inputs[i], inputs[j], (Float(ctx.format, int(pairs[0, i])), Float(ctx.format, int(pairs[1, i]))))
        for i, j in zip(starts, stops)
    )
    at_nan = None
    if fmt.nan_code is not None:
        at_nan = (Float(ctx.format, int(low[fmt.nan_code])), Float(ctx.format, int(high[fmt.nan_code])))
    return found, at_nan


def _code(x: Float) -> Node:
    return n.number(x.format.bits, x.code)


def _key(x: Float) -> Node:
    return total_order_key(x.format, _code(x))


def within(y: Node, ends: Ends) -> Node:
    """The output is allowed."""
    low, high = ends
    fmt = low.format
    if low.is_nan:
        return is_nan(fmt, y)
    if low == high:
        return n.equal(y, _code(low))
    key = total_order_key(fmt, y)
    return n.both(n.no(is_nan(fmt, y)), n.signed_less_equal(_key(low), key), n.signed_less_equal(key, _key(high)))


def between(x: Node, low: Float, high: Float) -> Node:
    """low ≤ x ≤ high in places; not NaN."""
    fmt = low.format
    if low == high:
        return n.equal(x, _code(low))
    key = total_order_key(fmt, x)
    return n.both(n.no(is_nan(fmt, x)), n.signed_less_equal(_key(low), key), n.signed_less_equal(key, _key(high)))


def _tree(x: Node, table: Sequence[Run], end: int) -> Node:
    """The code of one end of the outputs, by binary search on the place of x."""
    if len(table) == 1 or all(run.outputs[end] == table[0].outputs[end] for run in table):
        return _code(table[0].outputs[end])
    middle = len(table) // 2
    fmt = table[0].low.format
    below = n.signed_less(total_order_key(fmt, x), _key(table[middle].low))
    return n.ite(below, _tree(x, table[:middle], end), _tree(x, table[middle:], end))


def table_fact(x: Node, y: Node, fmt: Format, table: tuple[Run, ...], at_nan: Ends | None, out: Format) -> Node:
    """The output is what the whole table allows at the input."""
    low, high = _tree(x, table, 0), _tree(x, table, 1)
    at_input = is_nan(fmt, x)
    if low is high:
        if at_nan is not None and at_nan[0] == at_nan[1]:
            return n.equal(y, n.ite(at_input, _code(at_nan[0]), low))
        fact = n.equal(y, low)
    else:
        key = total_order_key(out, y)
        inside = n.both(
            n.no(is_nan(out, y)),
            n.signed_less_equal(total_order_key(out, low), key),
            n.signed_less_equal(key, total_order_key(out, high)),
        )
        fact = n.ite(is_nan(out, low), is_nan(out, y), inside)
    return fact if at_nan is None else n.ite(at_input, within(y, at_nan), fact)


# -- lazy facts -----------------------------------------------------------------------------------------


def point_fact(x: Node, y: Node, implementation: Implementation, ctx: Context, point: Float) -> Node:
    """At this input the output is allowed."""
    return n.implies(n.equal(x, _code(point)), within(y, implementation.allowed(ctx, point)))


def range_fact(x: Node, y: Node, implementation: Implementation, ctx: Context, low: Float, high: Float) -> Node:
    """A certified interval of outputs for all inputs between two finite ones; nothing when none is known."""
    ends = known_range(implementation, ctx, low, high)
    return n.TRUE if ends is None else n.implies(between(x, low, high), within(y, ends))


def known_range(implementation: Implementation, ctx: Context, low: Float, high: Float) -> Ends | None:
    """`allowed_range`, or None where an end lies outside the domain or results are NaN."""
    try:
        return allowed_range(implementation.contract, implementation, ctx, low, high)
    except FpsmtError:
        return None


def allowed_range(
    contract: Contract, implementation: Implementation, ctx: Context, low: Float, high: Float
) -> Ends | None:
    """Floats around everything the contract allows on the inputs low … high, both finite; None when unknown."""
    function = implementation.function
    if isinstance(contract, Clamped):
        inner = allowed_range(contract.inner, implementation, ctx, low, high)
        return None if inner is None else (contract._clamp(ctx, inner[0]), contract._clamp(ctx, inner[1]))
    if isinstance(contract, Piecewise):
        ends = [allowed_range(piece.contract, implementation, ctx, low, high) for piece in contract.pieces]
        known = [pair for pair in ends if pair is not None]
        if len(known) < len(ends):
            return None
        return min((a for a, _ in known), key=place), max((b for _, b in known), key=place)
    least, most = range_on(function, ctx, low, high)
    if isinstance(contract, CorrectlyRounded):
        return least, most
    if isinstance(contract, WithinFloats):
        fmt = ctx.format
        top = fmt.largest_code + fmt.has_infinity
        down = from_ordinal(fmt, max(least.ordinal - contract.count, -top))
        return (zero(fmt, True) if down.is_zero else down), from_ordinal(fmt, min(most.ordinal + contract.count, top))
    if isinstance(contract, WithinUlps | WithinError):
        return _by_distance(contract, implementation, ctx, (low, high), (least, most))
    return None


def _by_distance(
    contract: WithinUlps | WithinError, implementation: Implementation, ctx: Context, inputs: Ends, rounded: Ends
) -> Ends:
    """Floats around y ± distance(y) for all y = f(x).

    On the side away from zero, where f is monotone, the extreme is at an end of the inputs: y + K·ulp(y) grows with
    y ≥ 0 and y − K·ulp(y) with y ≤ 0; an absolute error keeps both orders.  On the side towards zero, for K ≤ 2^(p−3)
    and y ≥ y₁ > 0: y − K·ulp(y) ≥ y·(1 − K·2^(1−p)) ≥ y₁ − 2K·ulp(y₁), also among subnormals, where the ulp is one.
    Elsewhere the largest ulp bounds.
    """
    function = implementation.function
    a, b = inputs[0].fraction, inputs[1].fraction
    if ctx.subnormals.inputs:
        a, b = min(a, Fraction(0)), max(b, Fraction(0))
    low, high = _enclosed(function, ctx, inputs, a, b)
    least, most = _around(contract, ctx, low, high)
    if _monotone_between(function, a, b):
        at_ends = [contract.allowed(function, ctx, x) for x in inputs]
        absolute = isinstance(contract, WithinError)
        if absolute or (high is not None and high <= 0):
            least = min((pair[0] for pair in at_ends), key=place)
        if absolute or (low is not None and low >= 0):
            most = max((pair[1] for pair in at_ends), key=place)
    return min(least, rounded[0], key=place), max(most, rounded[1], key=place)


def _around(contract: WithinUlps | WithinError, ctx: Context, low: Fraction | None, high: Fraction | None) -> Ends:
    fmt = ctx.format
    line = line_ends(fmt)
    if isinstance(contract, WithinError):
        return (
            line[0] if low is None else farthest(ctx, low - contract.error, -1),
            line[1] if high is None else farthest(ctx, high + contract.error, 1),
        )
    few = contract.ulps <= pow2(fmt.precision - 3)
    least, most = line
    if few and low is not None and low > 0:
        least = farthest(ctx, low - 2 * contract.ulps * ulp(fmt, low), -1)
    if few and high is not None and high < 0:
        most = farthest(ctx, high + 2 * contract.ulps * ulp(fmt, high), 1)
    if low is not None and high is not None:
        distance = contract.ulps * max(ulp(fmt, low), ulp(fmt, high))
        least = max(least, farthest(ctx, low - distance, -1), key=place)
        most = min(most, farthest(ctx, high + distance, 1), key=place)
    return least, most


def _enclosed(
    function: Function, ctx: Context, inputs: Ends, a: Fraction, b: Fraction
) -> tuple[Fraction | None, Fraction | None]:
    """Bounds of f on [a, b]; None where it exceeds every rational that is written out, e.g. exp far out."""
    try:
        return enclose(function, a, b)
    except Unsupported:
        if not _monotone_between(function, a, b):
            raise
    values: list[Fraction | None] = []
    for x in (a, b):
        try:
            values += enclose(function, x, x)
        except Unsupported:
            values.append(None)
    known = [y for y in values if y is not None]
    signs = {_huge_sign(function, ctx, x) for x in inputs} - {0}
    huge = 2 * ctx.format.largest
    low = None if -1 in signs else min(known, default=huge)
    high = None if 1 in signs else max(known, default=-huge)
    return low, high


def _huge_sign(function: Function, ctx: Context, x: Float) -> int:
    """0 where f(x) can be written out, else its sign."""
    try:
        enclose(function, x.fraction, x.fraction)
    except Unsupported:
        return -1 if correctly_rounded(function, ctx, x).negative else 1
    return 0


def _monotone_between(function: Function, a: Fraction, b: Fraction) -> bool:
    """No turning point or jump of f lies strictly inside [a, b], nor a jump at its ends."""
    if function.period_phase is not None:
        return False
    for point in function.turning:
        low, high = point.enclosure(Fraction(1, 1 << 200))
        outside = high < a or low > b if point.limits else high <= a or low >= b
        if not outside:
            return False
    return True


def special_points(fmt: Format) -> list[Float]:
    """Inputs whose facts are given from the start."""
    points = [zero(fmt), zero(fmt, True)]
    if fmt.has_infinity:
        points += [infinity(fmt), infinity(fmt, True)]
    if fmt.has_nan:
        points.append(nan(fmt))
    return list(dict.fromkeys(points))


def first_knots(fmt: Format) -> list[Float]:
    """Finite inputs that cut the line into the ranges of the first facts: ± powers of two and ±Ω, sparse far out."""
    exponents = sorted({*range(-8, 9), -16, 16, -64, 64, fmt.emin, fmt.emax, (fmt.emin - 8) // 2})
    codes = {0, 1, fmt.largest_code}
    for e in exponents:
        if fmt.emin <= e <= fmt.emax:
            codes.add(min((e + fmt.bias) << fmt.fraction_bits, fmt.largest_code))
    positive = [Float(fmt, code) for code in sorted(codes)]
    return [-x for x in reversed(positive) if x.magnitude] + positive


# -- monotone implementations -----------------------------------------------------------------------------


def pieces(implementation: Implementation, fmt: Format) -> list[tuple[Float, Float, int]]:
    """Places low … high on which the function is monotone, and the direction.

    The places beside a jump belong to their side; a turning point that is no jump belongs to both.
    """
    function = implementation.function
    if function.period_phase is not None:
        raise Unsupported(f"monotone pieces of {function.name} are not encoded: leave out ':monotone'")
    ends = line_ends(fmt)
    cuts: list[tuple[Float, Float]] = []
    for point in function.turning:
        a, b = point.enclosure(Fraction(1, 1 << 200))
        below, above = _floor(fmt, a), _ceiling(fmt, b)
        if a == b and below == above and point.limits:
            raise Unsupported(f"{function.name} jumps at {a}: monotone pieces are not encoded there")
        cuts.append((below, above))
    lows = [ends[0], *(above for _, above in cuts)]
    highs = [*(below for below, _ in cuts), ends[1]]
    return [(a, b, d) for a, b, d in zip(lows, highs, function.directions) if d and place(a) < place(b)]


def line_ends(fmt: Format) -> Ends:
    """The lowest and the highest value, infinities included."""
    top = fmt.largest_code + fmt.has_infinity
    return from_ordinal(fmt, -top), from_ordinal(fmt, top)


def _floor(fmt: Format, x: Fraction) -> Float:
    rule = Overflow.INFINITY if fmt.has_infinity else Overflow.SATURATE
    return round_real(Context(fmt, Mode.RTN, rule, Subnormals.GRADUAL), x)


def _ceiling(fmt: Format, x: Fraction) -> Float:
    return -_floor(fmt, -x)


def monotone_fact(
    x: tuple[Node, Node], y: tuple[Node, Node], implementation: Implementation, fmt: Format, out: Format
) -> Node:
    """Two uses of a monotone implementation keep the order of their inputs on every monotone piece."""
    facts = []
    for low, high, direction in pieces(implementation, fmt):
        on_piece = n.both(*(between(node, low, high) for node in x), *(n.no(is_nan(out, node)) for node in y))
        for i, j in ((0, 1), (1, 0)):
            up = n.signed_less_equal(ordinal(fmt, x[i]), ordinal(fmt, x[j]))
            a, b = (y[i], y[j]) if direction > 0 else (y[j], y[i])
            facts.append(n.implies(n.both(on_piece, up), n.signed_less_equal(ordinal(out, a), ordinal(out, b))))
    return n.both(*facts)


def keeps_monotone(implementation: Implementation, fmt: Format, chosen: Sequence[tuple[Float, Float]]) -> bool:
    """The same on chosen (input, output) pairs."""
    for low, high, direction in pieces(implementation, fmt):
        on = [(x, y) for x, y in chosen if not x.is_nan and not y.is_nan and place(low) <= place(x) <= place(high)]
        for x, y in on:
            for other, image in on:
                if x.ordinal <= other.ordinal and direction * (image.ordinal - y.ordinal) < 0:
                    return False
    return True
