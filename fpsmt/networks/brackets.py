"""Large sums: rigorous bounds over every allowed order, and the best orders that a search finds.

The answer to "what can this sum be?" for 10³ to 10⁶ terms is a *bracket*: [reached_low, reached_high] ⊆ truth ⊆
[low, high].  `a_priori` gives the outer interval, `bracket` both.

**Notation.**  m leaves (terms, and the bias); eᵢ is what leaf i brings in: its value in the accumulator A, or, where
products may be fused or are exact, anything between the rounded and the exact product.  u = 2^−p in the nearest
modes, 2^(1−p) in the directed ones, for A's precision p.  P_k and N_k are the sums of the k largest positive and the
k largest negative eᵢ (in size).  ufp(x) = 2^⌊log₂|x|⌋.  η bounds what underflow adds to the error of one addition:
0 with gradual underflow and no fused products, since sums below the normal range are exact; else as in
`fpsmt.networks.bounds`, fact 4.

**Partial sums.**  A computed sum of k leaves is at most F_k = max(P_k, N_k)·g_k + (k−1)·η·g_k in size, with
g_k = 1 + (k−1)u for nearest rounding of plain terms with gradual underflow, (1+u)^(k−1) otherwise.
*Proof.*  Replacing negative leaves by zeros does not lower any node, for rounding is monotone, and adding zero
changes nothing (or flushes, which η covers); so the positive leaves alone give an upper bound, and any tree over k
positive numbers computes at most g_k times their sum: for (1+u)^(k−1) by induction; for 1 + (k−1)u see next.

**Jeannerod and Rump** (Improved error bounds for inner products in floating-point arithmetic, SIAM J. Matrix Anal.
Appl. 34, 2013): for nearest rounding with any ties, any tree over m floats, no overflow, |result − Σeᵢ| ≤
(m−1)·u·Σ|eᵢ|, whatever m.  *Proof.*  By induction; let the root add parts of sizes a, b with Σ|eᵢ| = A, B and
computed values x, y.  Its error δ has |δ| ≤ u|x + y|, and |δ| ≤ min(|x|, |y|) as x and y are floats themselves; and
(a+b−1)(A+B) − (a−1)A − (b−1)B = bA + aB, so that |δ| ≤ u(bA + aB) is what is needed.  If B ≤ uA:
|δ| ≤ |y| ≤ (1 + (b−1)u)B ≤ (1 + (b−1)u)·uA ≤ ubA.  Likewise if A ≤ uB.  Else uA < B and uB < A:
|δ| ≤ u(1 + (a−1)u)A + u(1 + (b−1)u)B ≤ uA + (a−1)uB + uB + (b−1)uA = u(bA + aB).  ∎

**Errors, any tree.**  The root's error is at most Σ over nodes of u·ufp(F_k) + η, k the size of the node; a sum that is
a multiple of 2^q, as all leaves are, and at most 2^(p+q) in size is exact.  A tree of m leaves has at most m + 1 − k
nodes of size ≥ k (with t minimal such nodes and c others with one child among them: tk + c ≤ m, and there are
2t − 1 + c ≤ m − 1 − t(k − 2) of them), so that sizes are at worst 2, 3, …, m, and

    |result − Σeᵢ| ≤ E = Σ_{k=2…m} (u·ufp(F_k) + η).

The bound used is the least of E, (m−1)·u·Σ|eᵢ| (where its hypotheses hold), for trees of height h
((1+u)^h − 1)·Σ|eᵢ| + (m−1)·η·(1+u)^h (N. Higham, Accuracy and Stability of Numerical Algorithms, 2002, 4.2), and for
``contiguous`` (m−1)·(u·ufp(D + E) + η), D being the largest sum of consecutive terms in size.

**Overflow.**  If F_m ≤ Ω there is none.  Else, where P alone is too large, results are at least −N_m·g_m − … and may be
+inf (or Ω); where both are, nothing is known, and NaN may occur.

Sums of float64 numbers here are `math.fsum`'s (correctly rounded, then one place outwards) or are raised by
the factor 1 + (m + 64)·2^−52, at least twice what the theorem above says for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import floats
from fpsmt.errors import InternalError, UsageError
from fpsmt.floats import Context, Float, Mode, Overflow, infinity, largest, pow2, round_real
from fpsmt.networks import subset_tables as kernels
from fpsmt.networks.extreme_tables import Program, Table, WithLast
from fpsmt.networks.order_search import Found, search
from fpsmt.networks.orders import Contiguous, Depth, FixedOrder, Order, Union
from fpsmt.networks.packed import PackedSum, order_program

Array = NDArray[np.float64]

MOST_HEIGHT = 64  #: heights above this are treated as any tree


@dataclass(frozen=True)
class Outer:
    """Every result that is not NaN lies in [low, high]; `nan` says whether NaN is impossible (False) or may occur.

    low and high are None when every result is NaN.  `error` bounds |result − exact sum| before the result is rounded
    to the sum's own context; None where overflow leaves no bound.  `exact`: the ends are reached.
    """

    low: Float | None
    high: Float | None
    nan: bool
    method: str
    error: float | None = None
    exact: bool = False

    @property
    def bounded(self) -> bool:
        """Every result is a finite number."""
        ends = (self.low, self.high)
        return not self.nan and all(end is not None and end.is_finite for end in ends)


def a_priori(problem: PackedSum) -> Outer:
    """A rigorous interval for the result under every allowed schedule.

    Exact for one tree (and its fused forms); otherwise by the theorems of this module, which `method` names.
    Takes a few vector operations: about a second for 10⁶ terms.

    >>> from fpsmt.floats import context
    >>> from fpsmt.networks.executions import execution
    >>> ones = PackedSum.of(context("float16"), np.ones(4096))
    >>> found = a_priori(ones)
    >>> str(found.low), str(found.high)
    ('0.0', '10768.0')
    """
    order = problem.execution.order
    if isinstance(order, Union):
        parts = [a_priori(_with_order(problem, part)) for part in order.parts if _has(problem, part)]
        return _hull(parts)
    m = problem.n + (problem.bias is not None)
    if m == 1 or _is_one_tree(problem):
        return _one_tree(problem)
    special = _special(problem)
    return special if special is not None else _bounds(problem)


def _with_order(problem: PackedSum, order: Order) -> PackedSum:
    from dataclasses import replace

    return replace(problem, execution=replace(problem.execution, order=order))


def _has(problem: PackedSum, order: Order) -> bool:
    """The family has a tree for this sum."""
    if problem.bias is None or problem.execution.bias == "last":
        return order.has(problem.n)
    return order.has(problem.n + 1) or (problem.execution.bias == "any" and order.has(problem.n))


def _hull(parts: list[Outer]) -> Outer:
    if not parts:
        raise UsageError("the order has no tree of that many terms")
    numbers = [p for p in parts if p.low is not None and p.high is not None]
    errors = [p.error for p in parts]
    return Outer(
        min((p.low for p in numbers if p.low is not None), key=_number, default=None),
        max((p.high for p in numbers if p.high is not None), key=_number, default=None),
        any(p.nan for p in parts),
        "; ".join(dict.fromkeys(p.method for p in parts)),
        None if None in errors else max(e for e in errors if e is not None),
        all(p.exact for p in parts) and len(numbers) == len(parts),
    )


def _number(x: Float) -> Fraction | float:
    return float(x) if x.is_infinite else x.fraction


# -- one tree -----------------------------------------------------------------------------------------------


def _is_one_tree(problem: PackedSum) -> bool:
    placed = problem.bias is None or problem.execution.bias != "any"
    return isinstance(problem.execution.order, FixedOrder) and placed and problem.acc.overflow is not Overflow.NAN


def tree_table(problem: PackedSum) -> tuple[Table, int]:
    """The table of a fixed order (all fused forms of its tree), and its root."""
    leaves, n = problem.leaves(), problem.n
    order: Any = problem.execution.order
    if not isinstance(order, FixedOrder):
        raise UsageError(f"the order {order} is not one tree")
    first = problem.bias is not None and problem.execution.bias == "first"
    use = [n, *range(n)] if first else list(range(n))
    table = Program(leaves, use, *order_program(order, len(use)))
    if problem.bias is None or first:
        return table, table.root()
    return WithLast(leaves, table, table.root(), n), -1


def _one_tree(problem: PackedSum) -> Outer:
    if problem.n + (problem.bias is not None) == 1 and not isinstance(problem.execution.order, FixedOrder):
        value = problem.result(float(problem.values[0]))
        return Outer(None, None, True, "one term", None, True) if value.is_nan else Outer(
            value, value, False, "one term", 0.0, True
        )  # fmt: skip
    table, root = tree_table(problem)
    low, high, bad = table.ends(root)
    ends = [None if math.isnan(end) else problem.result(end) for end in (low, high)]
    if any(end is not None and end.is_nan for end in ends):
        return Outer(None, None, True, "overflow to NaN in the result's format")
    return Outer(ends[0], ends[1], bad, "every node of the tree", None, True)


# -- infinities and NaN among the terms -----------------------------------------------------------------------


def _special(problem: PackedSum) -> Outer | None:
    values = problem.values
    if np.isfinite(values).all():
        return None
    fmt = problem.context.format
    nan, up, down = (bool(each.any()) for each in (np.isnan(values), values == math.inf, values == -math.inf))
    unrounded = problem.mode != kernels.NEVER or problem.acc.overflow is Overflow.NAN
    if unrounded or not fmt.has_infinity:
        return Outer(*_everything(problem), True, "terms that are not finite")
    if nan or (up and down):
        return Outer(None, None, True, "NaN or opposite infinities among the terms", None, True)
    finite = np.where(np.isfinite(values), values, 0.0)
    side = np.maximum(-finite if up else finite, 0.0)
    safe = _grown(problem, np.sort(side)[::-1])[-1] <= float(problem.acc.format.largest)
    end = infinity(fmt, negative=down)
    return Outer(end, end, not safe, "one kind of infinity among the terms", None, safe)


def _everything(problem: PackedSum) -> tuple[Float, Float]:
    fmt = problem.context.format
    if fmt.has_infinity:
        return infinity(fmt, True), infinity(fmt)
    return largest(fmt, True), largest(fmt)


# -- any tree -------------------------------------------------------------------------------------------------


def _unit(acc: Context) -> Fraction:
    nearest = acc.mode.nearest
    return pow2(-acc.format.precision if nearest else 1 - acc.format.precision)


def _plain(problem: PackedSum) -> bool:
    """Additions of values of the accumulator, with gradual underflow."""
    acc = problem.acc
    return problem.mode == kernels.NEVER and not (acc.subnormals.inputs or acc.subnormals.outputs)


def _eta(problem: PackedSum) -> float:
    acc = problem.acc
    eta = Fraction(0)
    if problem.mode != kernels.NEVER:
        eta += acc.format.smallest
    if acc.subnormals.outputs:
        eta += acc.format.smallest_normal
    if acc.subnormals.inputs:
        formats = {acc.format, problem.format, problem.weight_format or problem.format}
        eta += 4 * max(f.smallest_normal for f in formats)
    return _above(eta)


def _above(x: Fraction) -> float:
    """A float64 that is not less."""
    y = float(x)
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)


def _raised(x: Any, m: int) -> Any:
    """What certainly exceeds the exact value of a sum of m positive float64 numbers, computed as x."""
    return x * (1.0 + (m + 64) * 2.0**-52) * (1.0 + 2.0**-50)


def _grown(problem: PackedSum, side: Array) -> Array:
    """For k = 1 … m: a bound of the computed sum of k terms of one sign, given their sizes in descending order."""
    m = side.size
    u, eta = float(_unit(problem.acc)), _eta(problem)
    count = np.arange(m, dtype=np.float64)
    with np.errstate(over="ignore"):
        nearest = problem.acc.mode.nearest
        growth = 1.0 + count * u if _plain(problem) and nearest else np.exp(count * u * (1.0 + 2.0**-40))
        total = np.cumsum(side)
        grown = (total + count * eta) * growth
        grown = np.where(total + count * eta == 0.0, 0.0, grown)
        return np.asarray(_raised(_raised(grown, m), m) + (0.0 if _plain(problem) else eta))


def _leaf_ends(problem: PackedSum) -> tuple[Array, Array]:
    """Intervals of what each leaf brings in."""
    values = problem.values
    if problem.mode == kernels.NEVER:
        return values, values
    w, x = problem.factors
    with np.errstate(all="ignore"):
        p = w * x
        narrow = all(
            f.precision <= 26 and f.smallest >= pow2(-480) and f.largest <= pow2(480)
            for f in (problem.format, problem.weight_format or problem.format)
        )
        low, high = (p, p) if narrow else (np.nextafter(p, -math.inf), np.nextafter(p, math.inf))
        # 0·x is exact, and so is nothing else that rounds to 0
        zero = (w == 0.0) | (x == 0.0)
        low, high = np.where(zero, 0.0, low), np.where(zero, 0.0, high)
    rounded = values[: problem.n]
    low, high = np.minimum(low, rounded), np.maximum(high, rounded)
    return np.concatenate([low, values[problem.n :]]), np.concatenate([high, values[problem.n :]])


def _grid(*arrays: Array) -> int | None:
    """q such that every number is a multiple of 2^q; None when all are zero."""
    found = []
    for x in arrays:
        x = x[x != 0.0]
        if x.size:
            significand, exponent = np.frexp(x)
            n = np.abs(np.ldexp(significand, 53)).astype(np.int64)
            lowest = (n & -n).astype(np.float64)
            found.append(int((np.frexp(lowest)[1] - 1 + exponent - 53).min()))
    return min(found, default=None)


def _ufp(x: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return np.where(x > 0.0, np.ldexp(1.0, np.frexp(x)[1] - 1), 0.0)


def _total(x: Array) -> tuple[Fraction, Fraction]:
    """Bounds of the exact sum, one place apart from what `math.fsum` rounds correctly."""
    total = math.fsum(x.tolist())
    return Fraction(math.nextafter(total, -math.inf)), Fraction(math.nextafter(total, math.inf))


def _bounds(problem: PackedSum) -> Outer:
    acc, order = problem.acc, problem.execution.order
    low, high = _leaf_ends(problem)
    m = low.size
    u, eta, top = float(_unit(acc)), _eta(problem), float(acc.format.largest)
    up = _grown(problem, np.sort(np.maximum(high, 0.0))[::-1])
    down = _grown(problem, np.sort(np.maximum(-low, 0.0))[::-1])
    overflows = bool(up[-1] > top), bool(down[-1] > top)
    if any(overflows):
        return _overflowing(problem, overflows, float(up[-1]), float(down[-1]))
    sizes = np.maximum(up, down)
    local = u * _ufp(sizes[1:])
    if _plain(problem):
        grid = _grid(low)
        scale = math.inf if grid is None else math.ldexp(1.0, min(acc.format.precision + grid, 1023))
        exact = max(float(acc.format.smallest_normal) * 2.0, scale)
        local[sizes[1:] <= exact] = 0.0
    with np.errstate(over="ignore"):
        errors = {"partial sums by size": _raised(float(local.sum()) + (m - 1) * eta, m)}
        total = _raised(float(np.maximum(np.abs(low), np.abs(high)).sum()), m)
    if _plain(problem) and acc.mode.nearest:
        errors["(n-1)·u·Σ|x| (Jeannerod and Rump)"] = _raised((m - 1) * u * total, 1)
    height = _height(order, m)
    if height is not None:
        growth = (1 + _unit(acc)) ** height
        errors[f"height {height}"] = _raised(_above(growth - 1) * total + (m - 1) * eta * _above(growth), 1)
    if isinstance(order, Contiguous) and problem.bias is None:
        window = _window(low, high, total, m)
        reach = _raised(window + errors["partial sums by size"], 1)
        errors["sums of consecutive terms"] = _raised((m - 1) * (u * float(_ufp(np.array(reach))) + eta), 1)
    method = min(errors, key=lambda name: errors[name])
    error = errors[method]
    if not math.isfinite(error):  # beyond float64, where the sums of each sign are the better bounds
        return _result(problem, -Fraction(float(down[-1])), Fraction(float(up[-1])), "sums of each sign", None)
    bottom = _total(low)
    ceiling = bottom if high is low else _total(high)
    least = max(bottom[0] - Fraction(error), -Fraction(float(down[-1])))
    most = min(ceiling[1] + Fraction(error), Fraction(float(up[-1])))
    return _result(problem, least, most, method, error)


def _window(low: Array, high: Array, total: float, m: int) -> float:
    """A bound of the size of every sum of consecutive terms."""
    slack = _raised(2.0 * (m + 1) * 2.0**-53 * total, m)
    found = 0.0
    for x in (low, high):
        prefix = np.concatenate([[0.0], np.cumsum(x)])
        found = max(
            found,
            float((prefix - np.minimum.accumulate(prefix)).max()),
            float((np.maximum.accumulate(prefix) - prefix).max()),
        )
    return _raised(found + 2.0 * slack, 1)


def _height(order: Order, m: int) -> int | None:
    if isinstance(order, Depth) and order.height <= MOST_HEIGHT:
        return order.height + 1
    return None


def _result(problem: PackedSum, least: Fraction, most: Fraction, method: str, error: float | None) -> Outer:
    """Values of the accumulator between two numbers, in the sum's context."""
    ends = []
    for bound, mode in ((least, Mode.RTP), (most, Mode.RTN)):
        fmt = problem.acc.format
        rule = Overflow.INFINITY if fmt.has_infinity else Overflow.SATURATE
        inwards = Context(fmt, mode, rule, floats.Subnormals.GRADUAL)
        value = round_real(inwards, max(min(bound, fmt.largest), -fmt.largest))
        ends.append(value if problem.acc == problem.context else floats.cast(problem.context, value))
    if ends[0].is_nan or ends[1].is_nan:
        return Outer(*_everything(problem), True, method + "; overflow to NaN in the result's format", error)
    return Outer(ends[0], ends[1], False, method, error)


def _overflowing(problem: PackedSum, overflows: tuple[bool, bool], up: float, down: float) -> Outer:
    acc, ctx = problem.acc, problem.context
    fmt = acc.format
    sides = " and ".join(name for name, over in zip(("positive", "negative"), overflows) if over)
    method = f"the {sides} terms may overflow"
    if acc.overflow is Overflow.NAN or not (fmt.has_infinity or acc.overflow is Overflow.SATURATE):
        return Outer(*_everything(problem), True, method)
    infinite = acc.overflow is Overflow.INFINITY
    ends = []
    for bound, over, negative in ((down, overflows[1], True), (up, overflows[0], False)):
        size = fmt.largest if over else min(Fraction(bound), fmt.largest)
        end = infinity(fmt, negative) if over and infinite else None
        if end is None:
            inwards = Context(fmt, Mode.RTP if negative else Mode.RTN, acc.overflow, floats.Subnormals.GRADUAL)
            end = round_real(inwards, -size if negative else size)
        ends.append(end if acc == ctx else floats.cast(ctx, end))
    nan = all(overflows) and infinite
    if ends[0].is_nan or ends[1].is_nan:
        return Outer(*_everything(problem), True, method)
    return Outer(ends[0], ends[1], nan, method)


# -- both ends ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bracket:
    """reached ⊆ truth ⊆ outer: bounds that hold for every schedule, and results that some schedules reach."""

    problem: PackedSum
    outer: Outer
    found: Found

    @property
    def reached_low(self) -> Float | None:
        return None if self.found.low is None else self.found.low[0]

    @property
    def reached_high(self) -> Float | None:
        return None if self.found.high is None else self.found.high[0]

    @property
    def ratio(self) -> float:
        """Width of the bounds over width of what is reached: 1 when they are equal, inf when one is unbounded or
        nothing but one result is reached."""
        ends = (self.outer.low, self.outer.high, self.reached_low, self.reached_high)
        if any(end is None or not end.is_finite for end in ends):
            return 1.0 if ends[0] == ends[2] and ends[1] == ends[3] else math.inf
        low, high, reached_low, reached_high = (end.fraction for end in ends if end is not None)
        if high - low == reached_high - reached_low:
            return 1.0
        return math.inf if reached_high == reached_low else float((high - low) / (reached_high - reached_low))

    @property
    def exact(self) -> bool:
        """Both ends are reached, and whether NaN occurs is known."""
        ends = [self.outer.low, self.outer.high, self.reached_low, self.reached_high]
        keys = [None if end is None else _number(end) for end in ends]
        return keys[:2] == keys[2:] and self.outer.nan == (self.found.nan is not None)


def bracket(problem: PackedSum, effort: int = 1, seed: int = 0, deadline: float = math.inf) -> Bracket:
    """Bounds for every schedule and the farthest results found; the search stops at the deadline
    (`time.monotonic`) when that comes first.

    >>> from fpsmt.floats import context
    >>> found = bracket(PackedSum.of(context("float16"), np.array([2048.0, 1, 1, -2048])))
    >>> str(found.outer.low), str(found.reached_low), str(found.reached_high), str(found.outer.high)
    ('-1.0', '0.0', '2.0', '5.0')
    """
    found = search(problem, effort, seed, deadline)
    outer = a_priori(problem)
    for end in (found.low, found.high):
        inside = outer.low is not None and outer.high is not None and end is not None
        if end is not None and not (inside and _number(outer.low) <= _number(end[0]) <= _number(outer.high)):  # type: ignore[arg-type]
            raise InternalError(f"{end[1]} gives {end[0]}, outside of its bounds, for {problem.text}")
    if found.nan is not None and not outer.nan:
        raise InternalError(f"{found.nan} gives NaN, which the bounds exclude, for {problem.text}")
    return Bracket(problem, outer, found)
