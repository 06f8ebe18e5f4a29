"""Exact extremes of a sum over every allowed schedule, with terms that may vary in boxes.

**Statement.**  Let V(S) be the set of results of all allowed trees over the leaves S, for all values of the terms in
their boxes; lo(S) and hi(S) its least and greatest element that is not NaN, and nan(S) whether NaN is in it.  Zeros
count as one number.  For a node over A and B (disjoint: each leaf occurs once, so that the values of A and B are
chosen independently), and fl the rounding of the accumulator:

* lo(A ∘ B) = fl(lo(A) + lo(B)), unless these are opposite infinities; if lo(A) = −inf and lo(B) = +inf, it is +inf
  when hi(A) > −inf, and otherwise there is no value; likewise with A and B exchanged.  hi is its mirror image.
* nan(A ∘ B) iff nan(A), or nan(B), or hi(A) = +inf and lo(B) = −inf, or the reverse.
* lo(S) is the least lo(A ∘ B) over the splits that the family allows, and so on.

*Proof.*  (x, y) ↦ fl(x + y) does not decrease in x or in y wherever it is not NaN: the exact sum does not, and every
rounding is monotone: each mode (RNE, RNA, RTP, RTN, RTZ), overflow to ±inf, to ±Ω in directed modes, and saturation;
flushing operands or results to zero is monotone too, as it maps (−2^emin, 2^emin) to 0 and leaves the rest.  NaN arises
only from a NaN operand or from opposite infinities.  If lo(A) + lo(B) is not of that kind, it is a reachable pair and
no other pair gives less.  If lo(A) = −inf and lo(B) = +inf, all values of B that are not NaN are +inf, so that the node
gives +inf with every a > −inf, NaN with a = −inf.  The least of a union is the least of the leasts.  A fused node has
fl(w·x + y) with the exact product in place of x, whose least and greatest values are at corners of the box of (w, x)
(`_corners`); with exact products a node of two leaves has fl(w·x + w′·x′).  By induction on the tree, the extremes of
both ends are exact, and taking the end of each leaf that the choice names reaches them: `witness` gives that schedule
and those terms, and has run it with `fpsmt.networks.sums`.

An overflow rule that turns overflow into NaN is not monotone.  Then the table is computed with ±inf instead, and the
answer stands when no infinity occurs in it (nothing overflows anywhere); else this raises `Unsupported`.

Work for n terms: ``any`` 3ⁿ/2 splits (fewer with equal terms), ``sequential`` 2ⁿ·n, ``contiguous`` n³/6, ``depth:H``
3ⁿ·H/2, one tree n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from fpsmt import floats
from fpsmt.errors import InternalError, Unsupported, UsageError
from fpsmt.floats import Context, Float, Overflow, zero
from fpsmt.floats.compiled import embeds, parameters
from fpsmt.floats.vector import to_floats
from fpsmt.floats.wide import Parameters
from fpsmt.networks import subset_tables as tables
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.extreme_tables import Leaves, Table, WithLast, factor_parameters, family
from fpsmt.networks.orders import Order, Union
from fpsmt.networks.outcomes import Sum, sum_text
from fpsmt.networks.trees import Tree

WANT = ("low", "high", "nan")


@dataclass(frozen=True)
class Box:
    """All values of a format from low to high, ends included; zeros of either sign when 0 is inside."""

    low: Float
    high: Float

    def __post_init__(self) -> None:
        if self.low.is_nan or self.high.is_nan:
            raise UsageError("the ends of a box are numbers or infinities, not NaN")
        if self.low.format != self.high.format or number(self.low) > number(self.high):
            raise UsageError(f"[{self.low}, {self.high}] is not a box: low ≤ high, both of one format")

    def __contains__(self, x: Float) -> bool:
        return x.format == self.low.format and not x.is_nan and number(self.low) <= number(x) <= number(self.high)

    def __str__(self) -> str:
        return f"[{self.low}, {self.high}]"


Range = Float | Box  #: a fixed value (NaN allowed), or all values of a box
Term = Range | tuple[Range, Range]


def number(x: Float) -> Fraction | float:
    """The value of a number or infinity, for comparisons; the zeros are equal."""
    return float(x) if x.is_infinite else x.fraction


def ends(x: Range) -> tuple[Float, Float]:
    return (x.low, x.high) if isinstance(x, Box) else (x, x)


@dataclass(frozen=True)
class BoxSum:
    """Σ terms (+ bias) where each term, each factor of a product, and the bias is a value or a `Box`."""

    context: Context
    terms: tuple[Range, ...] | tuple[tuple[Range, Range], ...]
    bias: Range | None = None
    execution: Execution = PAPER

    def __post_init__(self) -> None:
        if not self.terms and self.bias is None:
            raise UsageError("a sum needs at least one term (an empty sum is +0 and has no order)")
        if len({isinstance(t, tuple) for t in self.terms}) > 1:
            raise UsageError("the terms of a sum are values or boxes, or all of them pairs (w, x) of these")

    @staticmethod
    def of(problem: Sum) -> BoxSum:
        """The same sum, with every term fixed."""
        return BoxSum(problem.context, problem.terms, problem.bias, problem.execution)

    @property
    def is_dot(self) -> bool:
        return bool(self.terms) and isinstance(self.terms[0], tuple)

    @property
    def n(self) -> int:
        return len(self.terms)

    @property
    def fixed(self) -> bool:
        """Nothing varies but the schedule."""
        leaves = [r for t in self.terms for r in (t if isinstance(t, tuple) else (t,))]
        return all(isinstance(r, Float) for r in [*leaves, *([] if self.bias is None else [self.bias])])

    def admits(self, inputs: Sum) -> bool:
        """Are these fixed terms in the boxes, and all else the same?"""
        same = (inputs.context, inputs.execution, inputs.n) == (self.context, self.execution, self.n)
        if not same or (inputs.bias is None) != (self.bias is None) or (self.n and inputs.is_dot != self.is_dot):
            return False
        mine = [*self.terms, *([] if self.bias is None else [self.bias])]
        theirs = [*inputs.terms, *([] if inputs.bias is None else [inputs.bias])]
        return all(
            all(_admits(r, v) for r, v in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,)))
            for a, b in zip(mine, theirs, strict=True)
        )

    @property
    def text(self) -> str:
        """The sum in one line."""
        return sum_text(self.context, self.terms, self.bias, self.execution)


def _admits(mine: Range, value: Float) -> bool:
    return value in mine if isinstance(mine, Box) else value == mine


@dataclass(frozen=True)
class Witness:
    """A schedule and the terms with which it reaches a result."""

    schedule: Tree
    inputs: Sum
    result: Float


@dataclass(frozen=True)
class Extremes:
    """The least and greatest result that is not NaN (None when NaN is all there is), and whether NaN is reached.

    Exact: both ends are reached, and `witness` says by which schedule ("low", "high", "nan").  The sign of a zero
    end is that of its witness, and not a claim.
    """

    low: Float | None
    high: Float | None
    nan: bool
    witness: Mapping[str, Witness] = field(compare=False, repr=False)
    splits: int = field(default=0, compare=False)  #: how many splits were looked at


def extremes(problem: BoxSum | Sum) -> Extremes:
    """The exact extremes over every allowed schedule and all terms in their boxes.

    Raises `Unsupported` when the terms are too many for the family (about 22 for ``any``), for formats not embedded
    in float64, and where overflow to NaN is possible; `UsageError` as the reference does, when NaN is reached in
    a format without it.

    >>> from fpsmt.floats import context, exactly, float16
    >>> x = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> found = extremes(Sum(context("float16"), x))
    >>> str(found.low), str(found.high), found.witness["high"].schedule
    ('2048.0', '2050.0', (0, (1, 2)))
    """
    return _extremes(BoxSum.of(problem) if isinstance(problem, Sum) else problem)


@lru_cache(maxsize=8)
def _extremes(problem: BoxSum) -> Extremes:
    program = _Program(problem)
    best: dict[str, tuple[float, Table, int]] = {}
    splits = 0
    for table, root in program.tables(problem.execution.order):
        low, high, bad = table.ends(root)
        splits += table.splits
        if program.nan_overflow and table.infinite():
            raise Unsupported(
                f"some sums may overflow to NaN in {program.acc}: extremes need rounding that is monotone; "
                "ask for the set of outcomes, or for overflow 'saturate'"
            )
        if low < best.get("low", (math.inf,))[0] or (low == math.inf and "low" not in best):
            best["low"] = (low, table, root)
        if high > best.get("high", (-math.inf,))[0] or (high == -math.inf and "high" not in best):
            best["high"] = (high, table, root)
        if bad and "nan" not in best:
            best["nan"] = (math.nan, table, root)
    if "nan" in best and not problem.context.format.has_nan:
        raise UsageError(f"the result is NaN, and {problem.context.format} has none")
    witness = {name: program.witness(table, root, name) for name, (_, table, root) in best.items()}
    for name in ("low", "high"):
        if name in witness and witness[name].result.is_nan:
            raise Unsupported(f"a result may overflow to NaN in {problem.context}: ask for the set of outcomes")
    low_end, high_end = (witness[name].result if name in witness else None for name in ("low", "high"))
    return Extremes(low_end, high_end, "nan" in best, witness, splits)


# -- leaves -------------------------------------------------------------------------------------------------


def _near_ends(x: Range) -> list[Float]:
    """The ends of a box and the values beside them that are inside."""
    low, high = ends(x)
    if not isinstance(x, Box) or number(low) == number(high):
        return [low]
    found = [low, high]
    for end, inner in ((low, low.next_up), (high, high.next_down)):
        if inner in x and number(inner) != number(end):
            found.append(inner)
    return found


def _corners(w: Range, x: Range) -> list[tuple[Float, Float]]:
    """Pairs (w, x) among which are the least and the greatest product that is not NaN, and one that is NaN if any is.

    A product of finite numbers is monotone in each factor, so its extremes are at ends of the finite parts of the
    boxes: ends, or values beside infinite ends.  A product with an infinite factor is ±inf by the sign of the other,
    which is taken at an end of its box if the box has it at all; and it is NaN where the other is 0: zeros are added.
    """
    left, right = _near_ends(w), _near_ends(x)
    for side, box in ((left, w), (right, x)):
        nil = zero(box.low.format) if isinstance(box, Box) else None
        if nil is not None and isinstance(box, Box) and nil in box:
            side.append(nil)
    return list(product(left, right))


class _Program:
    """One sum, prepared: its leaves as rows of numbers, and the tables of its families."""

    def __init__(self, problem: BoxSum) -> None:
        self.problem = problem
        ctx, execution = problem.context, problem.execution
        self.acc = execution.sum_context(ctx)
        self.products = execution.product_context(ctx) or self.acc
        dot = problem.is_dot
        exact = dot and execution.products == "exact"
        rule = {"never": tables.NEVER, "any": tables.ANY, "always": tables.ALWAYS}[execution.fuses(dot)]
        self.mode = tables.EXACT if exact else rule
        self.ranges: list[Term] = [*problem.terms, *([] if problem.bias is None else [problem.bias])]
        formats = {v.format for t in self.ranges for r in (t if isinstance(t, tuple) else (t,)) for v in ends(r)}
        for fmt in {*formats, self.acc.format, self.products.format, ctx.format}:
            if not embeds(fmt):
                raise Unsupported(f"extremes: {fmt} is not embedded in float64; ask for the set of outcomes")
        self.nan_overflow = self.acc.overflow is Overflow.NAN
        self.k = self._rules(parameters(self.acc))
        self.kf = self._rules(factor_parameters(self.acc, formats, True))
        self.kp = self._rules(factor_parameters(self.acc, formats, False))
        self.picks: list[dict[str, Any]] = []
        rows = np.array([self._row(t) for t in self.ranges], dtype=np.float64)
        kinds = [self.ranges.index(t) for t in self.ranges]
        if problem.bias is not None:
            kinds[-1] = problem.n
        self.leaves = Leaves(rows, kinds, self.mode, self.acc, self.k, self.kf, self.kp)

    def _rules(self, k: Parameters) -> Parameters:
        """With overflow to NaN replaced by overflow to infinity."""
        if not self.nan_overflow:
            return k
        return k._replace(above=math.inf, below=-math.inf, infinite=math.inf)

    # -- one leaf ------------------------------------------------------------------------------------------

    def _row(self, term: Term) -> list[float]:
        pairs = _corners(*term) if isinstance(term, tuple) else [(v,) for v in _near_ends(term)]
        rounded = [(self._rounded(p, len(pairs) == 1), p) for p in pairs]
        picks: dict[str, Any] = {}
        row = [math.nan] * len(tables.LEAF)
        self._note(picks, row, rounded, "", tables.LOW, tables.HIGH, tables.NAN)
        row[tables.PRODUCT] = float(isinstance(term, tuple))
        row[tables.PRODUCT_NAN] = 0.0
        if isinstance(term, tuple):
            exact = [(_product(self.acc, *p), p) for p in pairs]
            self._note(picks, row, exact, "p", tables.LEAST, tables.GREATEST, tables.PRODUCT_NAN)
            for w, x, name in (
                (tables.WL, tables.XL, "plow"),
                (tables.WH, tables.XH, "phigh"),
            ):
                if name in picks:
                    row[w], row[x] = (float(_read(self.acc, v)) for v in picks[name])
        self.picks.append(picks)
        return row

    @staticmethod
    def _note(
        picks: dict[str, Any], row: list[float], found: list[tuple[Any, Any]], prefix: str,
        low: int, high: int, nan: int,
    ) -> None:  # fmt: skip
        """Writes the least, the greatest and the NaN value of these into the row and remembers where they come from."""
        numbers = [(v, p) for v, p in found if v is not None]
        row[nan] = float(len(numbers) < len(found))
        if len(numbers) < len(found):
            picks[prefix + "nan"] = next(p for v, p in found if v is None)
        if numbers:
            for place, best, name in ((low, min, "low"), (high, max, "high")):
                value, picks[prefix + name] = best(numbers, key=lambda item: item[0])
                row[place] = value if isinstance(value, float) else 0.0 if prefix else float(value)

    def _rounded(self, factors: tuple[Float, ...], only: bool) -> Fraction | float | None:
        """What the leaf brings in when it is rounded on its own; None is NaN."""
        value = factors[0] if len(factors) == 1 else floats.mul(self.products, *factors)
        if value.format != self.acc.format:
            value = floats.cast(self.acc, value)
        if value.is_nan and not only and Overflow.NAN in (self.acc.overflow, self.products.overflow):
            raise Unsupported("a term overflows to NaN before it is added: ask for the set of outcomes")
        return None if value.is_nan else number(value)

    # -- families ------------------------------------------------------------------------------------------

    def tables(self, order: Order) -> Iterator[tuple[Table, int]]:
        """(table, its root state) for each way the families place the bias, as `Execution.schedules` has them."""
        n, has_bias = self.problem.n, self.problem.bias is not None
        place = self.problem.execution.bias if has_bias and n else "last"
        last, mixed = place != "first", place != "last"
        if isinstance(order, Union):
            for part in order.parts:
                if (last and part.has(max(n, 1))) or (mixed and part.has(n + 1)):
                    yield from self.tables(part)
            return
        if n == 0:
            yield family(self.leaves, order, [0])
            return
        if mixed and order.has(n + 1):
            for at in [0] if place == "first" or order.symmetric else range(n + 1):
                yield family(self.leaves, order, [*range(at), n, *range(at, n)])
        elif mixed and not last:
            raise UsageError(f"the order {order} has no tree of {n + 1} terms")
        if last and (order.has(n) or not mixed or not order.has(n + 1)):
            table, root = family(self.leaves, order, list(range(n)))
            yield (WithLast(self.leaves, table, root, n), -1) if has_bias else (table, root)

    # -- witnesses -----------------------------------------------------------------------------------------

    def witness(self, table: Table, root: int, want: str) -> Witness:
        """A schedule and terms that reach this end, executed by reference."""
        low, high, _ = table.ends(root)
        tree, picks = self._schedule(table, root, want)
        ranges = [self._pick(i, picks[i]) for i in range(len(self.ranges))]
        terms = ranges[: self.problem.n]
        bias = None if self.problem.bias is None else ranges[-1][0]
        fixed: Any = tuple(t if self.problem.is_dot else t[0] for t in terms)
        inputs = Sum(self.problem.context, fixed, bias, self.problem.execution)
        result = inputs.evaluate(tree)
        expected = {"low": low, "high": high, "nan": math.nan}[want]
        if want == "nan":
            good = result.is_nan
        else:
            rounded = to_floats(self.acc.format, [expected])[0]
            if self.acc != self.problem.context:
                rounded = floats.cast(self.problem.context, rounded)
            good = result.is_nan == rounded.is_nan and (result.is_nan or number(result) == number(rounded))
        if not good or not inputs.allows(tree):
            what = f"the schedule for the {want} end of {self.problem.text}"
            raise InternalError(f"{what} gives {result}, not {expected}")
        return Witness(tree, inputs, result)

    def _pick(self, leaf: int, name: str) -> tuple[Float, ...]:
        picks = self.picks[leaf]
        if name not in picks:
            name = next(iter(picks))
        return picks[name]  # type: ignore[no-any-return]

    def _schedule(self, table: Table, root: int, want: str) -> tuple[Tree, dict[int, str]]:
        """The tree, and for each leaf which of its values."""
        todo: list[tuple[Any, ...]] = [("state", root, want)]
        done: list[Tree] = []
        picks: dict[int, str] = {}
        pools = table.pools()
        while todo:
            what, *more = todo.pop()
            if what == "join":
                right, left = done.pop(), done.pop()
                done.append((left, right) if not more[0] else ("fma", left, right))
                continue
            if what == "leaf":
                leaf = pools[more[0]].pop(0)
                picks[leaf] = more[1]
                done.append(leaf)
                continue
            state, name = more
            kind = int(table.lookup(np.array([state]))[0][0])
            if kind >= 0:
                todo.append(("leaf", kind, name))
                continue
            a, b, how, names = self._split(table, state, name)
            kinds = [int(i) for i in table.lookup(np.array([a, b]))[0]]
            if how == tables.FUSE_RIGHT:
                a, b, kinds, names = b, a, kinds[::-1], names[::-1]
            todo.append(("join", how in (tables.FUSE_LEFT, tables.FUSE_RIGHT) and self.mode != tables.EXACT))
            for s, kind, each in ((b, kinds[1], names[1]), (a, kinds[0], names[0])):
                todo.append(("leaf", kind, each) if each.startswith("p") else ("state", s, each))
        return done[0], picks

    def _split(self, table: Table, state: int, want: str) -> tuple[int, int, int, list[str]]:
        """The two parts of a state that give the end, how they are added, and which end of each is taken."""
        left, right = table.candidates(state)
        a, b = table.lookup(left), table.lookup(right)
        low, high, _ = table.ends(state)
        code = WANT.index(want)
        target = (low, high, 1.0)[code]
        at, how = tables.first_match(
            code, target, *a, *b, table.leaf, self.mode, self.k, self.kf, self.kp
        )  # fmt: skip
        if at < 0:
            raise InternalError(f"no split of state {state} gives its {want} end {target}")
        sides = []
        for (kinds, lows, highs, nans), fused in (
            (a, how in (tables.FUSE_LEFT, tables.PAIR)),
            (b, how in (tables.FUSE_RIGHT, tables.PAIR)),
        ):
            row = table.leaf[int(kinds[at])]
            if fused:
                sides.append((row[tables.LEAST], row[tables.GREATEST], row[tables.PRODUCT_NAN] == 1.0, "p"))
            else:
                sides.append((lows[at], highs[at], bool(nans[at]), ""))
        return int(left[at]), int(right[at]), how, _names(sides, want)


def _names(sides: list[tuple[float, float, bool, str]], want: str) -> list[str]:
    """Which end of each side gives the wanted end of their sum."""
    (low1, high1, nan1, p1), (low2, high2, nan2, p2) = sides
    some = ["nan" if math.isnan(low) else "low" for low in (low1, low2)]
    if want == "nan":
        if nan1 or nan2:
            names = ["nan" if nan1 else some[0], "nan" if nan2 and not nan1 else some[1]]
        else:
            names = ["high", "low"] if high1 == math.inf and low2 == -math.inf else ["low", "high"]
    else:
        one, two = (low1, low2) if want == "low" else (high1, high2)
        names = [want, want]
        if math.isinf(one) and one == -two:  # the infinity on the wrong side gives way
            wrong = 0 if (one < 0) == (want == "low") else 1
            names[wrong] = "high" if want == "low" else "low"
    return [p1 + names[0], p2 + names[1]]


def _product(ctx: Context, w: Float, x: Float) -> Fraction | float | None:
    """The exact product of the operands as the context reads them; None is NaN."""
    w, x = _read(ctx, w), _read(ctx, x)
    if w.is_nan or x.is_nan or (w.is_infinite and x.is_zero) or (w.is_zero and x.is_infinite):
        return None
    if w.is_infinite or x.is_infinite:
        return -math.inf if w.negative != x.negative else math.inf
    return w.fraction * x.fraction


def _read(ctx: Context, x: Float) -> Float:
    return zero(x.format, x.negative) if ctx.subnormals.inputs and x.is_subnormal else x
