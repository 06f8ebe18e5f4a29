"""Bounds on a sum over every tree, from what each leaf can be charged for roundings.

The a-priori bound (m − 1)·u·Σ|eᵢ| charges every node with the largest rounding error anywhere.  Here each leaf is
charged what it can really cost.  Setting: results round to nearest (ties any way) with gradual underflow; A is the
accumulator's format, its precision p, its least normal exponent emin; g(e) = 2^(e−p+1) is the distance of values in
binade e ≥ emin (for emin also below the normal range).  The *binade* of x is max(⌊log₂|x|⌋, emin).  A leaf brings in
a value x: a product or bias that is a value of A, or (fused, or kept exact) the exact product.  Leaves that are ±0
have no effect: a ⊕ ±0 = a as a number, fma too, so they are pruned from the tree; a product whose only companions are
zeros is rounded once on its own, one more way of bringing it in.

**Residuals.**  ρ(x, g) = x rounded to multiples of g, minus x; μ(x, g) = max(ρ, ρ′) with ρ′ the same for x + g/2: so
μ = ρ when ρ > 0, else ρ + g/2 (and g/2 in a tie).  When a is a multiple of g/2 and a + x is rounded to multiples of g,
the error is at most μ(x, g) upwards, and at most μ(−x, g) downwards.

**Claim.**  Upwards; downwards is the same for the negated leaves.  For each leaf i let c(i, e) ≥ 0 satisfy
  (1) c(i, e) = β·g(e) for e ≤ binade(xᵢ) + 1, where β = 1/2, or 3/4 when exact products may occur,
  (2) c(i, e) ≥ μ(xᵢ, g(e)) for other e,
  (3) c(i, e) ≥ c(i, l) + w(i, l)·(g(e) − g(l))/2 for emin ≤ l < e, where the *shares* w(i, l) ≥ 0 add up to at least
      1 over the leaves of every subtree with two or more leaves in which some node reaches binade l.
Let a node's exact result be s; say the subtree has level L when L is the largest binade of an s in it.  Then a subtree
S with at least two leaves has

    computed(S) ≤ Σ_{i∈S} (xᵢ + c(i, L)) − g(L)/2,  and the same with any larger L.

*Proof.*  The last part is (3): the right side grows by at least Σ_{i∈S} w(i, L)·(g(L′) − g(L))/2 − (g(L′) − g(L))/2
≥ 0.  Induction, at a node with binade e and level L ≥ e, error δ ≤ g(e)/2:

* Two subtrees: they bring two credits g(L)/2, one pays for δ, one is left.
* A subtree with result a, and a leaf x: δ ≤ c(x, L) is needed.  If |a| ≥ 2^(e−1), or e = emin, then a is a multiple of
  g(e)/2 (of g(emin) if e = emin), so δ ≤ μ(x, g(e)); if e > binade(x) + 1 that is at most c(x, e) by (2), else δ ≤
  g(e)/2 ≤ c(x, e) by (1).  Otherwise |x| ≥ 2^(e−1) because |a + x| ≥ 2^e: (1) again.  And c(x, e) ≤ c(x, L) by (3).
* Two leaves x, y, so L = e: δ ≤ c(x, e) + c(y, e) − g(e)/2 is needed.  Say |x| ≥ |y|; then e ≤ binade(x) + 1 and
  c(x, e) = β·g(e).  With exact products c(y, e) ≥ g(e)/4 (by (1), or by (3) from l = emin with w = 1/2) suffices.  Else
  x, y are values of A.  If e = emin the sum is exact.  If e ≤ binade(y) + 1, c(y, e) = g(e)/2 suffices.  Else x is a
  multiple of g(e)/2, so δ ≤ μ(y, g(e)) ≤ c(y, e).

**Shares.**  1/2 will always do.  By the claim with that, a node's s is at most Σ_{i∈S} uᵢ and at least Σ_{i∈S} dᵢ, for
upper ends uᵢ = xᵢ + c⁺ and lower ends dᵢ = xᵢ − c⁻.  So max(uᵢ, −dᵢ, 0)/2^l will do for l > emin; and so will 1/k, with
k the least number of leaves, at least 2, that leaf i and others need to reach 2^l with their uᵢ, or −2^l with their dᵢ.

**High nodes.**  Few nodes may reach the highest binades.  Fix a level L₀ and let nodes of binade above it be *high*:
their subtrees get level L₀ whatever they hold, and the part of δ that the credits at L₀ do not pay is put on top: at
most g(e)/2 − g(L₀)/4, since c(·, L₀) ≥ g(L₀)/4, a subtree's credit is g(L₀)/2, and of two leaves one has c ≥ g(L₀)/2.
How many nodes have |s| ≥ t = 2^e, e > L₀?  Let c₊ be the least number of leaves with Σu ≥ t (at least 2), and c₋ with
Σd ≤ −t.

* Only s ≥ t occurs: the subtrees maximal with this property hold, together, n leaves with Σu ≥ t, so n is at most the
  number of leaves with u ≥ 0 plus the most with u < 0 (least |u| first) that keep the sum of all at t.  They have fewer
  than n inner nodes, and below a minimal such node c₊ − 2 are not counted: at most n − c₊ + 1.  The same for s ≤ −t.
* Both occur: take a minimal node v with s ≥ t and a minimal w with s ≤ −t.  In the tree of w replace the maximal
  subtrees with s ≥ t by leaves: they bring in more than their credit, so the other leaves alone have Σd ≤ −t and are c₋
  at least; so c₋ − 2 inner nodes of w, outside those subtrees, are not counted.  Likewise c₊ − 2 for v.  The two sets
  are disjoint, whether v and w are apart or one in the other.  At most (m − 1) − (c₊ − 2) − (c₋ − 2).

**Intervals.**  A leaf that lies between two ends (an uncertain input): with binade(x) in (1) replaced by the largest
possible one, x + c(i, e) is a maximum of nondecreasing functions of x (x + ρ(x, g) is x rounded, and x + ρ′(x, g) is
x + g/2 rounded, minus g/2), so its maximum is at the upper end.  Raising the base in (1) keeps (2) and (3) true.  A
leaf that may be 0 in some execution adds at least c ≥ g(L)/4 ≥ 0 to the bound there, so counting it does no harm while
m ≥ 2.

All this runs in float64: x, ρ and μ are exact there for the formats accepted (`accepts`), sums carry a slack.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpsmt.floats import Context, Format, Subnormals, pow2
from fpsmt.floats.machine import jit

Array = NDArray[np.float64]

DEEP = 3  #: levels below the top where shares may be other than 1/2
LEVELS = 12  #: levels below the top at which leaves are looked at; what happens below costs 2^−12 of the top's
PLANS = 2  #: ways to share that are tried; with more, a share further down could exceed 1/2 (see `charge`)
SPARE = 2  #: levels below the highest that are tried as L₀
WAYS = 3  #: ways to bring in a leaf: rounded as a product, exact, rounded once to the accumulator


def accepts(acc: Context, factors: tuple[Format, ...]) -> bool:
    """Whether sums accumulated in this context, of products of these formats, can be bounded here."""
    fmt = acc.format
    fits = fmt.precision <= 26 and fmt.smallest >= pow2(-400) and fmt.largest < pow2(400)
    small = all(f.precision <= 26 and f.smallest >= pow2(-400) and f.largest < pow2(400) for f in factors)
    return fits and small and acc.mode.nearest and acc.subnormals is Subnormals.GRADUAL


class Charges(NamedTuple):
    """What bounds of sums rest on; arrays of shape (sums,), (sums, leaves) or (sums, leaves, DEEP).

    `low` and `high` bound the results; where they are not finite nothing is known.  For each side the level L₀ that
    was best, what high nodes may add, and the shares of (3) for the levels L₀ − 1, L₀ − 2, …  `kept`: the
    leaves that are not always 0; with fewer than two of them there are no levels and no charges.
    """

    low: Array
    high: Array
    level_low: NDArray[np.int64]
    level_high: NDArray[np.int64]
    extra_low: Array
    extra_high: Array
    binade: NDArray[np.int64]
    shares_low: Array
    shares_high: Array
    kept: NDArray[np.bool_]


def charged_sums(acc: Context, low: Array, high: Array, exact: bool) -> Charges:
    """Bounds for sums whose leaves lie in [low, high], arrays (sums, leaves, ways); NaN where a way does not exist.

    `exact`: values of the leaves need not be values of the accumulator.  The caller has checked `accepts`, and that
    all ends are finite.
    """
    fmt = acc.format
    sums, leaves = low.shape[:2]
    out = Charges(
        np.full(sums, -np.inf), np.full(sums, np.inf),
        np.zeros(sums, np.int64), np.zeros(sums, np.int64), np.zeros(sums), np.zeros(sums),
        np.zeros((sums, leaves), np.int64),
        np.full((sums, leaves, DEEP), 0.5), np.full((sums, leaves, DEEP), 0.5),
        np.zeros((sums, leaves), np.bool_),
    )  # fmt: skip
    _bound_all(np.ascontiguousarray(low), np.ascontiguousarray(high), 0.75 if exact else 0.5, fmt.precision, fmt.emin,
               float(fmt.largest), *out)  # fmt: skip
    return out


# -- charges ----------------------------------------------------------------------------------------------


@jit
def _binade(x: float, emin: int) -> int:
    if x == 0.0:
        return emin
    return max(math.frexp(x)[1] - 1, emin)


@jit
def _power(e: int) -> float:
    return math.ldexp(1.0, e)


@jit
def residual(x: float, g: float) -> float:
    """μ(x, g)."""
    rho = np.rint(x * (1.0 / g)) * g - x  # 1/g is exact
    return rho if rho > 0.0 else rho + 0.5 * g if rho > -0.5 * g else 0.5 * g


@jit
def charge(x: float, top: int, binade: int, base: float, precision: int, emin: int, shares: Any, work: Any) -> float:
    """c(i, top) for a leaf with value x (upwards) whose binade is at most `binade`; `shares` are the w of the levels
    below the top, nearest first, 1/2 further down; `work` has room for as many.  All but the first are at most 1/2.

    The base of (1) is raised to `LEVELS` below the top at least; a first share above 1 counts as 1 within the base,
    where (3) then holds because 2β ≥ 1.  Levels more than one below the base's last have shares of at most 1/2, and
    c(i, l) + (g(e) − g(l))/4 = (β − 1/4)·g(l) + g(e)/4 is largest for the highest of them.
    """
    last = max(min(binade + 1, top), top - LEVELS)
    start = max(emin, last - 1)
    deep = shares.shape[0]
    g = _power(start - precision + 1)
    # the largest c(i, l) − g(l)/4 for the levels l whose share is 1/2; below start at most (β − 1/4)·g(l)
    most = (base - 0.25) * 0.5 * g if start > emin else -math.inf
    c = base * g
    for e in range(start, top + 1):
        c = base * g
        if e > last:
            c = max(residual(x, g), most + 0.25 * g)
            for l in range(max(start, top - deep), e):
                half = 0.5 * (g - _power(l - precision + 1))
                c = max(c, work[top - l - 1] + half * shares[top - l - 1])
        if top - deep <= e < top:
            work[top - e - 1] = c
        else:
            most = max(most, c - 0.25 * g)
        g *= 2.0
    return c


@jit
def leaf_end(
    values: Any, sign: float, top: int, binade: int, base: float, precision: int, emin: int, shares: Any, work: Any
) -> float:
    """At least the largest of sign·x + c over the ways of bringing in a leaf: fewer than 32 roundings in float64."""
    best = -math.inf
    unit = _power(top - precision + 1)
    for way in range(values.shape[0]):
        if not math.isnan(values[way]):
            x = sign * values[way]
            end = x + charge(x, top, binade, base, precision, emin, shares, work)
            best = max(best, end + 2.0**-47 * (abs(x) + unit))
    return best


@jit
def _copy(source: Any, target: Any) -> None:
    """Of two dimensions, element by element: numba takes seconds to compile an assignment of slices."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@jit
def _halve(shares: Any) -> None:
    """Every share 1/2."""
    for i in range(shares.shape[0]):
        for j in range(shares.shape[1]):
            shares[i, j] = 0.5


@jit
def _leaf_ends(
    values: Any, sign: float, top: int, binades: Any, base: float, precision: int, emin: int, shares: Any, work: Any,
    out: Any,
) -> None:  # fmt: skip
    """`leaf_end` of each leaf: one place, because each call is compiled anew."""
    for i in range(out.size):
        out[i] = leaf_end(values[i], sign, top, binades[i], base, precision, emin, shares[i], work)


@jit
def _above(x: float, m: int) -> float:
    """Above the exact sum of m numbers ≥ 0 that add up to x in float64, or the exact product of fewer factors."""
    return x * (1.0 + (m + 8.0) * 2.0**-51)


# -- counting high nodes ----------------------------------------------------------------------------------


@jit
def _needed(ends: Any, t: float) -> int:
    """The least number of leaves whose upper ends add up to t, at least 2; 0 when all together do not."""
    total = 0.0
    ordered = np.sort(ends)
    for at in range(ordered.size - 1, -1, -1):
        if ordered[at] <= 0.0:
            break
        total += ordered[at]
        if _above(total, ordered.size) >= t:
            return max(2, ordered.size - at)
    return 0


@jit
def _alone(ends: Any, t: float, needed: int) -> int:
    """How many nodes reach t at most, when none reaches −t."""
    total, count = 0.0, 0
    for x in ends:
        if x >= 0.0:
            total += x
            count += 1
    ordered, lost = np.sort(ends), 0.0
    for at in range(ordered.size - 1 - count, -1, -1):
        lost -= ordered[at]
        if _above(total, ends.size) - lost / _above(1.0, ends.size) < t / _above(1.0, 0):
            break
        count += 1
    return max(0, min(ends.size - 1, count - needed + 1))


@jit
def _high_nodes(up: Any, down: Any, t: float) -> int:
    """How many nodes have |s| ≥ t at most; `down` are the negated lower ends."""
    above, below = _needed(up, t), _needed(down, t)
    most = 0
    if above > 0:
        most = max(most, _alone(up, t, above))
    if below > 0:
        most = max(most, _alone(down, t, below))
    if above > 0 and below > 0:
        most = max(most, up.size - 1 - (above - 2) - (below - 2))
    return most


@jit
def _shares(up: Any, down: Any, level: int, emin: int, plan: int, shares: Any) -> None:
    """The w of (3) for each leaf and the levels below `level`: by size for the first `plan` (0 or 1), else 1/k."""
    m = up.size
    _halve(shares)
    for below in range(shares.shape[1]):
        if level - 1 - below <= emin:  # a subtree of that level need not reach anything
            continue
        t = _power(level - 1 - below) / _above(1.0, 0)
        if below < plan:
            for i in range(m):
                shares[i, below] = _above(max(up[i], down[i], 0.0) / t, 0)
            continue
        for side in range(2):
            ends = up if side == 0 else down
            ordered, total = np.sort(ends), 0.0
            sums = np.zeros(m)
            for at in range(m):
                total += max(0.0, ordered[m - 1 - at])
                sums[at] = _above(total, m)
            for i in range(m):
                rest, size = t - max(ends[i], 0.0), 2
                if rest > 0.0:
                    size = max(2, 2 + np.searchsorted(sums, rest))
                share = _above(1.0 / size, 0)
                shares[i, below] = share if side == 0 else max(share, shares[i, below])


# -- bounds -----------------------------------------------------------------------------------------------


@jit
def _one(
    low: Any, high: Any, base: float, precision: int, emin: int, largest: float,
    binades: Any, shares_low: Any, shares_high: Any, result: Any, levels: Any,
) -> None:  # fmt: skip
    """One sum of m ≥ 2 leaves that are not all zero.  `result`: low, high, extra low, extra high; `levels` two."""
    m = low.shape[0]
    work = np.empty(DEEP)
    up, down, final_up, final_down = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    two = np.empty((m, shares_low.shape[1]))
    _halve(two)
    size = 0.0
    for i in range(m):
        most = 0.0
        for way in range(low.shape[1]):
            if not math.isnan(low[i, way]):
                most = max(most, abs(low[i, way]), abs(high[i, way]))
        binades[i] = _binade(most, emin)
        size += most
    # every node is at most (1 + u)^(m−1)·(Σ|x| + (m−1)·ω/2) in size, and (1 + u)^m ≤ e^(mu)
    growth = m * _power(-precision)
    if growth > 64.0:
        return
    peak = _above(math.exp(growth) * 1.0625 * (size + m * _power(emin - precision + 1)), m)
    if not peak <= largest:
        return
    for _ in range(6):
        top = _binade(peak, emin)
        for negative in range(2):
            ends, sign, out = (low, -1.0, down) if negative else (high, 1.0, up)
            _leaf_ends(ends, sign, top, binades, base, precision, emin, two, work, out)
        above, below = 0.0, 0.0
        for i in range(m):
            above += max(0.0, up[i])
            below += max(0.0, down[i])
        found = _above(max(above, below), m)
        if not found < peak:
            break
        peak = found
        if _binade(peak, emin) == top:
            break
    top = _binade(peak, emin)
    for negative in range(2):
        ends, sign, out = (low, -1.0, down) if negative else (high, 1.0, up)
        _leaf_ends(ends, sign, top, binades, base, precision, emin, two, work, out)
    slack = (16.0 * m + 64.0) * 2.0**-52 * (size + m * _power(top - precision + 2))
    result[0], result[1] = -math.inf, math.inf
    shares = np.empty((m, shares_low.shape[1]))
    for spare in range(SPARE + 1):
        level = top - spare
        if level < emin:
            break
        extra = 0.0
        if spare > 0:
            before = 0.25 * _power(level - precision + 1)
            for e in range(level + 1, top + 1):
                half = 0.5 * _power(e - precision + 1)
                extra += _high_nodes(up, down, _power(e)) * (half - before)
                before = half
        extra = _above(extra, 8)
        credit = 0.5 * _power(level - precision + 1)
        for plan in range(PLANS):
            _shares(up, down, level, emin, plan, shares)
            for negative in range(2):
                ends, sign, out = (low, -1.0, final_down) if negative else (high, 1.0, final_up)
                _leaf_ends(ends, sign, level, binades, base, precision, emin, shares, work, out)
            above, below = 0.0, 0.0
            for i in range(m):
                above += final_up[i]
                below += final_down[i]
            if above - credit + extra + slack < result[1]:
                result[1] = above - credit + extra + slack
                result[3] = extra
                levels[1] = level
                _copy(shares, shares_high)
            if -(below - credit + extra + slack) > result[0]:
                result[0] = -(below - credit + extra + slack)
                result[2] = extra
                levels[0] = level
                _copy(shares, shares_low)


@jit
def _bound_all(
    low: Any, high: Any, base: float, precision: int, emin: int, largest: float,
    out_low: Any, out_high: Any, level_low: Any, level_high: Any, extra_low: Any, extra_high: Any,
    binades: Any, shares_low: Any, shares_high: Any, keeps: Any,
) -> None:  # fmt: skip
    sums, leaves, ways = low.shape
    for s in range(sums):
        kept = np.empty(leaves, np.int64)
        m = 0
        for i in range(leaves):
            for way in range(ways):
                if not (high[s, i, way] == 0.0 and low[s, i, way] == 0.0) and not math.isnan(low[s, i, way]):
                    kept[m] = i
                    keeps[s, i] = True
                    m += 1
                    break
        if m == 0:
            out_low[s], out_high[s] = 0.0, 0.0
            continue
        if m == 1:
            i = kept[0]
            out_low[s], out_high[s] = np.nanmin(low[s, i]), np.nanmax(high[s, i])
            continue
        some_low, some_high = np.empty((m, ways)), np.empty((m, ways))
        for at in range(m):
            for way in range(ways):
                some_low[at, way] = low[s, kept[at], way]
                some_high[at, way] = high[s, kept[at], way]
        result = np.zeros(4)
        result[0], result[1] = -math.inf, math.inf
        levels = np.zeros(2, np.int64)
        own = np.zeros(m, np.int64)
        deep = shares_low.shape[2]
        first, second = np.empty((m, deep)), np.empty((m, deep))
        _halve(first)
        _halve(second)
        _one(some_low, some_high, base, precision, emin, largest, own, first, second, result, levels)
        out_low[s], out_high[s] = result[0], result[1]
        extra_low[s], extra_high[s] = result[2], result[3]
        level_low[s], level_high[s] = levels[0], levels[1]
        for at in range(m):
            binades[s, kept[at]] = own[at]
            for below in range(deep):
                shares_low[s, kept[at], below] = first[at, below]
                shares_high[s, kept[at], below] = second[at, below]
