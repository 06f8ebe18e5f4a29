"""Rigorous enclosures of every value of a network over all allowed executions.

`enclosures` gives two arrays for each node.  Where both ends are finite, every allowed execution (order, fma,
accumulator, place of the bias, results of inexact activations) makes that value a finite number between them.
Where they are −inf and +inf nothing is said: it may overflow, be NaN, or be out of reach of the method.

**One sum.**  Its leaves are products and the bias; A is the accumulator's format, u = 2^−p in the nearest modes and
2^(1−p) in the directed ones, for A's precision p.  Four facts carry everything:

1. *Rounding is monotone*, in every mode, with saturation or infinities, and with flushed operands or results.  So ⊕,
   fma and the products of a fixed weight are monotone in each operand (up to its sign), and their extremes over boxes
   are at the ends.  An operation whose two extremes are finite has neither overflowed nor met a NaN in between.
2. *Small sums, exactly* (at most `MOST_LEAVES` leaves): the least value that a set of leaves can sum to is the least
   ⊕ (or fma) of the least values of its two parts, over all splits, by fact 1; likewise the greatest.  So a table over
   subsets gives the extremes over all trees; a smaller family has no more.  Fixed orders: the tree itself.
3. *Any number of leaves*, trees of height at most h (m − 1 for m leaves): with eᵢ the value that leaf i brings in
   (a rounded product, or the exact one where it is fused or kept exact: an interval holds both),

       |result − Σeᵢ| ≤ ((1+u)^h − 1)·Σ|eᵢ| + (m − 1)·η·(1+u)^h,

   when one addition z errs by at most u|z| + η.  Proof by induction on the tree: for a node over parts with sums
   S₁, S₂, sizes m₁, m₂ and heights below h, the errors of the parts add up and the node's rounding multiplies them by
   at most 1 + u, adds u|S₁ + S₂| ≤ u(Σ|eᵢ|) and η; and (1+u)·((1+u)^(h−1) − 1) + u = (1+u)^h − 1, while
   (m₁ − 1 + m₂ − 1)·η·(1+u)^h + η ≤ (m − 1)·η·(1+u)^h.
   Likewise no exact sum at a node exceeds (1+u)^h·(Σ|eᵢ| + (m − 1)η) in size; when that is at most Ω nothing overflows,
   else nothing is said.
4. *Underflow*, the values of η.  A sum of two values of A that is below the normal range is a multiple of ω, so with
   gradual underflow it is exact: η = 0.  With fused or exact products it need not be: η = ω/2 in the nearest modes, ω
   in the directed ones.  Flushed results err by at most the smallest normal value 2^emin more; flushed operands shift
   z by at most 2·2^emin, whose rounding adds at most as much again, so 4·2^emin more.

5. *Charges*, in the nearest modes with gradual underflow: `fpsmt.networks.charges` bounds the roundings of a sum by
   charging its leaves, which is tighter than fact 3 by a factor of three to six on sums of dozens of terms.  Leaves
   that are 0 do not count.  A bias that comes last is added to the bounds of the rest, by fact 1.

The final value is one of A's, so the bounds are rounded inwards to A before they are cast to the node's context.

**Arithmetic.**  Facts 1 and 2 use `fpsmt.floats.vector`.  Fact 3 runs in float64 with each operation rounded outwards
by one place (`nextafter` of a result rounded to nearest); numpy's sums of n terms are enclosed by fact 3 itself, with
n·2^−51·Σ|eᵢ|, at least twice what it says for float64 when n < 2^50.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Format, Mode, Overflow, Subnormals, from_ordinal, round_real, ulp, zero
from fpsmt.floats.vector import arithmetic, decode, embeds, encode, from_ordinals, round_array, to_floats, values
from fpsmt.functions import (
    Clamped,
    Contract,
    CorrectlyRounded,
    Function,
    Implementation,
    Piecewise,
    Table,
    WithinError,
    WithinFloats,
    WithinUlps,
    allowed_arrays,
    correctly_rounded_array,
    enclose,
    range_on,
)
from fpsmt.functions.implementations import farthest
from fpsmt.functions.refine import read_input
from fpsmt.networks import nodes
from fpsmt.networks.charges import WAYS, Charges, accepts, charged_sums
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.growth import sum_growth
from fpsmt.networks.interpreter import Executions, execution_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Input, Node, Select, checked_values
from fpsmt.networks.orders import FixedOrder, Union
from fpsmt.networks.trees import Tree, steps

Array = NDArray[np.float64]
Interval = tuple[Array, Array]  #: (low, high); (−inf, +inf) says nothing

MOST_LEAVES = 12  #: above this, the table over subsets is not tried
MOST_SPLITS = 30_000_000  #: splits × sums × inputs that the table over subsets may visit in one node
MOST_FIXED_TREES = 32  #: a family of fixed trees with more (places of the bias) is treated as any trees
MOST_BITS = 16  #: of an input format whose values between two ends may be listed
FEW = 256  #: neighbours that are listed in every format
BLOCK = 1 << 20  #: leaves × sums × inputs held at a time


def enclosures(
    network: Network,
    low: ArrayLike | Mapping[str, ArrayLike],
    high: ArrayLike | Mapping[str, ArrayLike] | None = None,
    executions: Executions = PAPER,
    charged: bool = True,
) -> dict[str, Interval]:
    """Bounds (low, high) of each node's values, arrays of shape (batch, size), over all allowed executions.

    `low` and `high`: arrays of shape (batch, size) of values of the inputs' formats, by name, or one array when there
    is one input; without `high` the inputs are points.  Without `charged` fact 5 is not used: faster, and wider.  ±inf
    and NaN among the inputs are allowed: nothing is said of what depends on them.  The two zeros are one number here.
    Raises `Unsupported` for formats that are not embedded in float64 and for contracts of activations it does not
    know, `UsageError` for inputs of a wrong shape or format, or with low > high.

    >>> net = Network.sequential("float16", 3, [([[2048, 1, 1]], [0.5])])
    >>> lo, hi = enclosures(net, [[1.0, 1.0, 1.0]])["affine1"]
    >>> lo.tolist(), hi.tolist()
    ([[2048.0]], [[2050.0]])
    """
    for node in network.nodes:
        if not embeds(node.format):
            raise Unsupported(f"bounds: {node.format} of node {node.name!r} is not embedded in float64")
    bottom, top = _named(network, low), _named(network, low if high is None else high)
    batch = len(next(iter(bottom.values()))) if bottom else 1
    found: dict[str, Interval] = {}
    for node in network.nodes:
        sources = [found[s] for s in node.sources]
        if isinstance(node, Input):
            made = _input(node, bottom[node.name], top[node.name])
        elif isinstance(node, Affine):
            how = execution_of(executions, node.name)
            made = _affine(node, sources[0], network.format_of(node.source), how, charged)
        elif isinstance(node, Activation):
            made = _activation(node, sources[0], network.format_of(node.source))
        else:
            made = _simple(network, node, sources, batch)
        found[node.name] = _settled(*made)
    return found


def _named(network: Network, given: ArrayLike | Mapping[str, ArrayLike]) -> dict[str, Array]:
    named = given if isinstance(given, Mapping) else {network.input.name: given}
    missing = [node.name for node in network.inputs if node.name not in named]
    if missing:
        raise UsageError(f"no values are given for the input {missing[0]!r}")
    return {
        node.name: checked_values(node.format, named[node.name], (None, node.size), f"input {node.name!r}")
        for node in network.inputs
    }


def _input(node: Input, low: Array, high: Array) -> Interval:
    if low.shape != high.shape or (low > high).any():
        raise UsageError(f"input {node.name!r}: the lower bounds are not all below the upper bounds")
    return low, high


def _settled(low: Array, high: Array) -> Interval:
    """Ends that are not finite on both sides say nothing."""
    good = np.isfinite(low) & np.isfinite(high)
    return np.where(good, low, -np.inf), np.where(good, high, np.inf)


def _safe(*ends: Array) -> tuple[NDArray[np.bool_], list[Array]]:
    """Where all ends are finite, and the ends with 0 elsewhere."""
    good = np.asarray(np.logical_and.reduce([np.isfinite(end) for end in ends]))
    return good, [np.where(good, end, 0.0) for end in ends]


def _unless(good: NDArray[np.bool_], low: Array, high: Array) -> Interval:
    return np.where(good, low, -np.inf), np.where(good, high, np.inf)


def _simple(network: Network, node: Node, sources: list[Interval], batch: int) -> Interval:
    if isinstance(node, Constant):
        fixed = np.broadcast_to(node.values, (batch, len(node.values)))
        return fixed, fixed
    if isinstance(node, Select):
        low, high = (np.stack([sources[k][side][:, i] for k, i in node.picks], axis=1) for side in (0, 1))
        return low, high
    if isinstance(node, nodes.Extremum):  # monotone in each element; one of which nothing is known leaves an infinity
        pick, groups = (np.min if node.least else np.max), [list(group) for group in node.groups]
        low, high = (np.stack([pick(end[:, group], axis=1) for group in groups], axis=1) for end in sources[0])
        return low, high
    if isinstance(node, Cast):
        good, ends = _safe(*sources[0])
        cast = arithmetic(node.context, network.format_of(node.source)).cast
        return _unless(good, cast(ends[0]), cast(ends[1]))
    if isinstance(node, Elementwise):
        good, (a, b, c, d) = _safe(*sources[0], *sources[1])
        if node.operation == "div":  # monotone in each operand only where the divisor keeps one sign
            good = np.asarray(good & ((c > 0) | (d < 0)))
            c, d = np.where(good, c, 1.0), np.where(good, d, 1.0)
        apply = getattr(arithmetic(node.context), node.operation)
        corners = np.stack([apply(x, y) for x in (a, b) for y in (c, d)])
        return _unless(good, corners.min(axis=0), corners.max(axis=0))
    raise Unsupported(f"bounds do not know nodes of class {type(node).__name__} ({node.name!r})")


# -- sums -------------------------------------------------------------------------------------------------


def _affine(node: Affine, source: Interval, fmt: Format, how: Execution, charged: bool) -> Interval:
    """Rows with equally many terms together, in blocks."""
    batch, rows = len(source[0]), len(node.weights)
    low, high = np.full((batch, rows), -np.inf), np.full((batch, rows), np.inf)
    groups: dict[int, list[int]] = {}
    for i in range(rows):
        groups.setdefault(len(node.columns(i)), []).append(i)
    for n, members in groups.items():
        step = max(1, BLOCK // max(1, n * batch))
        for at in range(0, len(members), step):
            some = np.array(members[at : at + step])
            columns = np.array([node.columns(i) for i in some], dtype=np.intp).reshape(len(some), n)
            good, ends = _safe(source[0][:, columns], source[1][:, columns])
            weights = node.weights[some[:, None], columns]
            bias = None if node.bias is None else node.bias[some]
            problem = _Sums(node.context, how, fmt, node.formats, weights, bias, ends[0], ends[1])
            low[:, some], high[:, some] = _unless(np.asarray(good.all(axis=2)), *problem.bounds(charged))
    return low, high


@dataclass(frozen=True)
class _Part:
    """The values that a set of leaves can sum to; `leaf` is the product it consists of, if it is one."""

    low: Array
    high: Array
    leaf: int | None = None


class _Sums:
    """Equally long sums in one context: `weights` (sums, n), `low` and `high` of the factors (batch, sums, n)."""

    def __init__(
        self, ctx: Context, how: Execution, source: Format, formats: tuple[Format, Format],
        weights: Array, bias: Array | None, low: Array, high: Array,
    ) -> None:  # fmt: skip
        self.ctx, self.how, self.acc = ctx, how, how.sum_context(ctx)
        self.n, self.has_bias = weights.shape[1], bias is not None
        self.weights, self.source, self.formats = weights, source, formats
        self.least = np.where(weights >= 0, low, high)  # the factor that makes the product least, and greatest
        self.most = np.where(weights >= 0, high, low)
        self.fuses, self.exact = how.fuses(True), how.products == "exact"
        self.add = arithmetic(self.acc)
        self.fma = arithmetic(self.acc, (formats[0], source, self.acc.format))
        self.pairs = arithmetic(self.acc, (formats[0], source, formats[0], source))
        self.may_be_exact = self.exact or self.fuses != "never"
        rounding = how.product_context(ctx) or self.acc
        times = arithmetic(rounding, (formats[0], source)).mul
        self.low = self._to_accumulator(times(weights, self.least), rounding.format)
        self.high = self._to_accumulator(times(weights, self.most), rounding.format)
        shape = low.shape[:2]
        self.bias = None if bias is None else np.array(np.broadcast_to(self._to_accumulator(bias, formats[1]), shape))

    def _to_accumulator(self, value: Array, fmt: Format) -> Array:
        return value if fmt == self.acc.format else arithmetic(self.acc, fmt).cast(value)

    @property
    def leaves(self) -> int:
        return self.n + self.has_bias

    def bounds(self, charged: bool) -> Interval:
        """Of the results in the node's context."""
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = self._total(charged)
            if self.acc != self.ctx:
                cast = arithmetic(self.ctx, self.acc.format).cast
                good, ends = _safe(low, high)
                low, high = _unless(good, cast(ends[0]), cast(ends[1]))
        return low, high

    def _total(self, charged: bool) -> Interval:
        trees = self._fixed_trees()
        if trees:
            parts = [self._walk(tree) for tree in trees]
            return np.minimum.reduce([p.low for p in parts]), np.maximum.reduce([p.high for p in parts])
        sums = self.low.shape[0] * self.low.shape[1]
        if self.leaves <= MOST_LEAVES and 3**self.leaves * sums <= MOST_SPLITS:
            return self._subsets()
        low, high = self._a_priori()
        if not (charged and self.chargeable):
            return low, high
        least, most = self._by_charges()
        return np.maximum(low, least), np.minimum(high, most)

    def _fixed_trees(self) -> list[Tree]:
        order = self.how.order
        parts = order.parts if isinstance(order, Union) else (order,)
        if self.leaves > 1 and not all(isinstance(part, FixedOrder) for part in parts):
            return []
        plain = Execution(order, bias=self.how.bias)
        trees = list(islice(plain.schedules(self.n, self.has_bias), MOST_FIXED_TREES + 1))
        return trees if len(trees) <= MOST_FIXED_TREES else []

    def _leaf(self, k: int) -> _Part:
        if k == self.n:
            assert self.bias is not None
            return _Part(self.bias, self.bias)
        return _Part(self.low[..., k], self.high[..., k], k)

    def _join(self, a: _Part, b: _Part) -> _Part:
        """All that one node can do with values of two parts."""
        i, j = a.leaf, b.leaf
        found: list[Interval] = []
        if self.exact and i is not None and j is not None:
            w, v = self.weights[:, i], self.weights[:, j]
            both = self.pairs.add_products
            return _Part(
                both(w, self.least[..., i], v, self.least[..., j]), both(w, self.most[..., i], v, self.most[..., j])
            )
        for leaf, other in ((i, b), (j, a)):
            if leaf is not None and self.may_be_exact:
                w = self.weights[:, leaf]
                found.append((self.fma.fma(w, self.least[..., leaf], other.low),
                              self.fma.fma(w, self.most[..., leaf], other.high)))  # fmt: skip
        if not found or (self.fuses == "any" and not self.exact):
            found.append((self.add.add(a.low, b.low), self.add.add(a.high, b.high)))
        return _Part(np.minimum.reduce([f[0] for f in found]), np.maximum.reduce([f[1] for f in found]))

    def _walk(self, tree: Tree) -> _Part:
        """One tree, every way of fusing."""
        program = steps(tree)
        parts: list[Any] = [None] * len(program)
        for k, (op, a, b) in enumerate(program):
            parts[k] = self._leaf(a) if op == "leaf" else self._join(parts[a], parts[b])
            if op != "leaf":
                parts[a] = parts[b] = None
        return parts[-1]  # type: ignore[no-any-return]

    def _subsets(self) -> Interval:
        """All trees, by the least and greatest values of all sets of leaves."""
        last = self.has_bias and self.how.bias == "last"
        count = self.leaves - last
        shape = (1 << count, *self.low.shape[:2])
        low, high = np.empty(shape), np.empty(shape)
        single = {1 << k: self._leaf(k) for k in range(count)}
        watch = self.may_be_exact
        for whole in range(1, 1 << count):
            if whole in single:
                low[whole], high[whole] = single[whole].low, single[whole].high
                continue
            splits = [s for s in _parts_of(whole) if s > whole ^ s]
            special = [s for s in splits if watch and (s in single or whole ^ s in single)]
            plain = np.array([s for s in splits if s not in special], dtype=np.intp)
            ends = [
                self._join(*(single.get(s) or _Part(low[s], high[s]) for s in (split, whole ^ split)))
                for split in special
            ]
            bottoms, tops = [p.low for p in ends], [p.high for p in ends]
            if plain.size:
                bottoms.append(self.add.add(low[plain], low[whole ^ plain]).min(axis=0))
                tops.append(self.add.add(high[plain], high[whole ^ plain]).max(axis=0))
            low[whole], high[whole] = np.minimum.reduce(bottoms), np.maximum.reduce(tops)
        total = _Part(low[-1], high[-1], 0 if count == 1 else None)
        if last:
            total = self._join(total, self._leaf(self.n))
        return total.low, total.high

    # -- any number of leaves -----------------------------------------------------------------------------

    def _a_priori(self) -> Interval:
        fmt, m = self.acc.format, self.leaves
        low, high = self._leaf_ends()
        growth, eta = self._growth()
        spread = m * 2.0**-51
        size = np.maximum(np.abs(low), np.abs(high)).sum(axis=-1)
        size = _up(size + _up(spread * size))
        slack = _up(spread * size)
        rest = _up(_up(m * eta) * _up(1.0 + growth))
        error = _up(_up(growth * size) + rest)
        peak = _up(_up(1.0 + growth) * _up(size + _up(m * eta)))
        bottom = _down(_down(low.sum(axis=-1) - slack) - error)
        top = _up(_up(high.sum(axis=-1) + slack) + error)
        good = (peak <= float(fmt.largest)) & np.isfinite(self.low).all(axis=-1) & np.isfinite(self.high).all(axis=-1)
        if self.bias is not None:
            good &= np.isfinite(self.bias)
        return self._inward(good, bottom, top)

    def _inward(self, good: NDArray[np.bool_], low: Array, high: Array) -> Interval:
        """The least and the greatest value of the accumulator between two numbers, where these are good."""
        fmt = self.acc.format
        largest = float(fmt.largest)
        good = np.asarray(good & np.isfinite(low) & np.isfinite(high))
        inward = [Context(fmt, mode, Overflow.SATURATE, Subnormals.GRADUAL) for mode in (Mode.RTP, Mode.RTN)]
        ends = [
            round_array(rule, np.clip(np.where(good, end, 0.0), -largest, largest))
            for rule, end in zip(inward, (low, high), strict=True)
        ]
        return _unless(good, *ends)

    # -- charges ------------------------------------------------------------------------------------------

    @property
    def chargeable(self) -> bool:
        """Whether `fpsmt.networks.charges` speaks about these sums."""
        return accepts(self.acc, (self.formats[0], self.source))

    @property
    def bias_apart(self) -> bool:
        """The bias is added last, to something that is not a single product."""
        return self.bias is not None and self.how.bias == "last" and (self.n > 1 or not self.may_be_exact)

    def ways(self, factors: Array) -> Array:
        """What each product brings in, for factors (batch, sums, n): (batch, sums, n, ways), NaN for no such way."""
        w, out = self.weights, np.full((*factors.shape, WAYS), np.nan)
        rounding = self.how.product_context(self.ctx) or self.acc
        product = arithmetic(rounding, (self.formats[0], self.source)).mul(w, factors)
        out[..., 0] = self._to_accumulator(product, rounding.format)
        if self.may_be_exact:
            out[..., 1] = w * factors
            out[..., 2] = arithmetic(self.acc, (self.formats[0], self.source)).mul(w, factors)
        return out

    def charges(self) -> tuple[Charges, NDArray[np.bool_]]:
        """For each (input, sum) in one row, without a bias that comes apart; and where all leaves are finite."""
        low, high = self.ways(self.least), self.ways(self.most)
        if self.bias is not None and not self.bias_apart:
            leaf = np.full((*self.bias.shape, 1, WAYS), np.nan)
            leaf[..., 0, 0] = self.bias
            low, high = (np.concatenate([end, leaf], axis=2) for end in (low, high))
        kept = WAYS if self.may_be_exact else 1
        low, high = (end.reshape(-1, *end.shape[2:])[:, :, :kept] for end in (low, high))
        good = np.asarray(np.isfinite(low[..., 0] + high[..., 0]).all(axis=1) & ~np.isinf(low + high).any(axis=(1, 2)))
        low, high = (np.where(good[:, None, None], end, 0.0) for end in (low, high))
        return charged_sums(self.acc, low, high, self.may_be_exact), good

    def _by_charges(self) -> Interval:
        found, good = self.charges()
        shape = self.low.shape[:2]
        low, high = self._inward(good.reshape(shape), found.low.reshape(shape), found.high.reshape(shape))
        if self.bias_apart:
            good, ends = _safe(low, high, self.bias)  # type: ignore[arg-type]
            low, high = _unless(good, self.add.add(ends[0], ends[2]), self.add.add(ends[1], ends[2]))
        return low, high

    def _leaf_ends(self) -> Interval:
        """Float64 bounds of what each leaf brings in: (batch, sums, leaves)."""
        low, high = self.low, self.high
        if self.may_be_exact:
            w, a, b = self.weights, self.least, self.most
            if self.acc.subnormals.inputs:
                w = _read(self.formats[0], w)
                a, b = _read(self.source, a), _read(self.source, b)
            first, second = w * a, w * b
            least, most = _down(np.minimum(first, second)), _up(np.maximum(first, second))
            low = least if self.exact else np.minimum(low, least)
            high = most if self.exact else np.maximum(high, most)
        if self.bias is None:
            return low, high
        return np.concatenate([low, self.bias[..., None]], -1), np.concatenate([high, self.bias[..., None]], -1)

    def _growth(self) -> tuple[float, float]:
        return sum_growth(self.acc, self.how, self.leaves, self.may_be_exact)


def _parts_of(whole: int) -> list[int]:
    """The nonempty proper subsets of a set, as bit masks."""
    found, part = [], (whole - 1) & whole
    while part:
        found.append(part)
        part = (part - 1) & whole
    return found


def _up(x: Any) -> Any:
    """Above the exact value of which x is the float64 nearest."""
    return np.nextafter(x, np.inf)


def _down(x: Any) -> Any:
    return np.nextafter(x, -np.inf)


def _read(fmt: Format, x: Array) -> Array:
    """Flushed operands, numerically; monotone, so the ends of an interval give its ends."""
    return np.where(np.abs(x) < float(fmt.smallest_normal), 0.0, x)


# -- activations ------------------------------------------------------------------------------------------


def _activation(node: Activation, source: Interval, fmt: Format) -> Interval:
    good, (low, high) = _safe(*source)
    use, ctx = node.implementation, node.context
    if isinstance(use.contract, CorrectlyRounded) and _never_falls(use.function):
        ends = [correctly_rounded_array(use.function, ctx, end, fmt) for end in (low, high)]
        return _unless(good, ends[0], ends[1])
    bottom, top = np.full(low.shape, -np.inf), np.full(low.shape, np.inf)
    known: dict[tuple[float, float], tuple[float, float]] = {}
    for place in zip(*np.nonzero(good)):
        key = float(low[place]), float(high[place])
        if key not in known:
            a, b = to_floats(fmt, list(key))
            ends_found = _allowed_on(use.contract, use.function, ctx, a, b)
            known[key] = (-np.inf, np.inf) if ends_found is None else (float(ends_found[0]), float(ends_found[1]))
        bottom[place], top[place] = known[key]
    return bottom, top


def _never_falls(function: Function) -> bool:
    """Nondecreasing and without jumps, by its record."""
    jumps = any(point.limits for point in function.turning)
    return function.period_phase is None and not jumps and all(d >= 0 for d in function.directions)


def _allowed_on(
    contract: Contract, function: Function, ctx: Context, low: Float, high: Float
) -> tuple[Float, Float] | None:
    """The least and the greatest result allowed anywhere on [low, high], or values beyond them; None: not known.

    For a distance of K ulps: y ↦ K·ulp(y) is largest where |y| is, so y − K·ulp(y) ≥ a − K·ulp(max(|a|, |b|)) for all
    y of [a, b]; the float farthest from y within a limit is monotone in the limit.
    """
    fmt = ctx.format
    low = zero(low.format, True) if low.is_zero else low
    high = zero(high.format) if high.is_zero else high
    if isinstance(contract, Clamped):
        inner = _allowed_on(contract.inner, function, ctx, low, high)
        return None if inner is None else (contract._clamp(ctx, inner[0]), contract._clamp(ctx, inner[1]))
    if isinstance(contract, Piecewise):
        met = [
            _allowed_on(piece.contract, function, ctx, low, high)
            for piece in contract.pieces
            if (piece.low is None or piece.low <= high.fraction) and (piece.high is None or low.fraction <= piece.high)
        ]
        return None if None in met else _hull([end for pair in met if pair is not None for end in pair])
    if isinstance(contract, Table):
        if low.format != contract.input or fmt != contract.output:
            return None
        x = values(low.format, finite=True)
        x = x[(x >= float(low)) & (x <= float(high))]
        return _hull(to_floats(fmt, decode(fmt, np.array(contract.outputs)[encode(low.format, x).astype(np.intp)])))
    if not isinstance(contract, CorrectlyRounded | WithinFloats | WithinUlps | WithinError):
        return _allowed_at_all(Implementation(function, contract), ctx, low, high)
    try:
        near = range_on(function, ctx, low, high)
    except (UsageError, Unsupported):  # it leaves the domain, overflows to NaN, or meets a pole
        return None
    if isinstance(contract, CorrectlyRounded) or not all(end.is_finite for end in near):
        return near
    if isinstance(contract, WithinFloats):
        top = fmt.largest_code + (ctx.overflow is Overflow.INFINITY)
        return (
            from_ordinal(fmt, max(near[0].ordinal - contract.count, -top)),
            from_ordinal(fmt, min(near[1].ordinal + contract.count, top)),
        )
    a, b = enclose(function, read_input(ctx, low).fraction, read_input(ctx, high).fraction)
    if isinstance(contract, WithinUlps):
        distance = contract.ulps * ulp(fmt, max(abs(a), abs(b)))
    else:
        distance = contract.error
    ends = [farthest(ctx, a - distance, -1), farthest(ctx, b + distance, 1), *near]
    return _hull([*ends, round_real(ctx, a), round_real(ctx, b)])


def _allowed_at_all(use: Implementation, ctx: Context, low: Float, high: Float) -> tuple[Float, Float] | None:
    """The same for any contract: from its results at every input between, where these are few or the format has at
    most 16 bits; else by a way of its own, if it has one."""
    if low.format.bits > MOST_BITS and high.ordinal - low.ordinal >= FEW:
        found = use.contract.offsets(use.function, ctx, low, high)
        if found is not None:
            ends = (round_real(ctx.with_mode(mode), end) for mode, end in zip((Mode.RTP, Mode.RTN), found))
            return _hull(list(ends))
        raise Unsupported(f"bounds do not know the contract of {use.text} on intervals of {low.format}")
    x = from_ordinals(low.format, np.arange(low.ordinal, high.ordinal + 1))
    if low.ordinal <= 0 <= high.ordinal:
        x = np.append(x, -0.0)
    least, most = allowed_arrays(use, ctx, x, low.format)
    if np.isnan(least).any() or np.isnan(most).any():
        return None
    return _hull(to_floats(ctx.format, [float(least.min()), float(most.max())]))


def _hull(ends: list[Float]) -> tuple[Float, Float] | None:
    if not ends or any(end.is_nan for end in ends):
        return None
    return min(ends, key=lambda v: v.ordinal), max(ends, key=lambda v: v.ordinal)
