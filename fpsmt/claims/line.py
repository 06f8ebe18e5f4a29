"""Monotone activations in formats of at most 16 bits: exactly which inputs no affine map tells apart.

Rounding is monotone, so that σ(w⊗x⊕b) is monotone in x: what no map tells apart are intervals, and neighbours decide.
For neighbours x < x⁺ and a weight, w⊗x and w⊗x⁺ are the ends of some *gaps* of the line, pairs of consecutive floats
u < u⁺.  A gap is told by a bias b where σ jumps at some η (σ(η⁻) ≠ σ(η)) with u⊕b < η ≤ u⁺⊕b: the biases that do so are
a run of floats for each η, and these runs go up with η.  Which biases are admissible with a weight is a run around 0.
So a gap needs two numbers: the least bias ≥ 0 and the greatest bias ≤ 0 that tell it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.distinguishability import Reading, Setting, setting_from_json
from fpsmt.claims.functions import read_value
from fpsmt.claims.partition import labels
from fpsmt.claims.places import MAX_BITS, listed
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, exactly
from fpsmt.floats import compiled as kernel
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import arithmetic, encode, values

Interval = tuple[Float, Float]


@claim_kind
@dataclass(frozen=True)
class LineClasses(Claim):
    """Two inputs x < x′ of the domain are told apart by no admissible map exactly when a class [a, b] holds both."""

    kind = "line-classes"
    setting: Setting
    classes: tuple[Interval, ...]  #: first and last input, in increasing order

    def __post_init__(self) -> None:
        of = self.setting
        if of.reading is Reading.FINITE_ON_PAIR or not of.single:
            raise UsageError("being told apart by no map is no equivalence here: there are no classes")
        ends = [end.ordinal for interval in self.classes for end in interval]
        if ends != sorted(set(ends)) or (ends and not of.low.ordinal <= ends[0] <= ends[-1] <= of.high.ordinal):
            raise UsageError("classes are disjoint intervals of two inputs or more, in increasing order, in the domain")

    @property
    def together(self) -> int:
        """Inputs that are not told apart from every other one."""
        return sum(b.ordinal - a.ordinal + 1 for a, b in self.classes)

    @property
    def text(self) -> str:
        inside = " ∪ ".join(f"[{a}, {b}]²" for a, b in self.classes[:4]) or "∅"
        more = f" ∪ … ({len(self.classes)} classes)" if len(self.classes) > 4 else ""
        return (
            f"∀ x ≠ x′: (∀ w, b: {self.setting.name}(w⊗x⊕b) = {self.setting.name}(w⊗x′⊕b)) ⇔ (x, x′) ∈ "
            f"{inside}{more} ({self.setting})"
        )

    def fields(self) -> dict[str, Json]:
        return {"setting": self.setting.to_json(), "classes": [[a.hex, b.hex] for a, b in self.classes]}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> LineClasses:
        setting = setting_from_json(data["setting"])
        fmt = setting.context.format
        return cls(setting, tuple((read_value(fmt, a), read_value(fmt, b)) for a, b in data["classes"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {}: computes the classes."""
        found = line_classes(self.setting)
        return Replay(found != self.classes, (f"{len(found)} classes of two inputs or more",))


def line_classes(setting: Setting) -> tuple[Interval, ...]:
    """The classes of two inputs or more, as intervals, in increasing order."""
    apart, fmt = told_apart(setting), setting.context.format
    x = _inputs(setting)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], apart, [True]]).astype(np.int8)))
    return tuple(
        (exactly(fmt, float(x[first])), exactly(fmt, float(x[last])))
        for first, last in edges.reshape(-1, 2).tolist()
    )  # fmt: skip


@lru_cache(maxsize=4)
def told_apart(setting: Setting) -> NDArray[np.bool_]:
    """Whether some admissible map tells the i-th input of the domain from the next one, for each i.

    `Unsupported` for activations that are not monotone, other readings, and formats of more than 16 bits.
    """
    ctx, fmt = setting.context, setting.context.format
    if not listed(fmt):
        raise Unsupported(f"the values of {fmt} are too many to list as float64 numbers: the limit is {MAX_BITS} bits")
    if setting.reading is not Reading.FINITE_ON_DOMAIN or not setting.single:
        raise Unsupported("maps are monotone where they are finite, and activations where there is no choice")
    line = numbers(setting)
    step = np.diff(labels(setting.implementation, ctx)[encode(fmt, line)])
    if (step < 0).any() and (step > 0).any():
        raise Unsupported(f"{setting.name} is not monotone in {ctx}")
    k = kernel.parameters(ctx)
    above, below = np.zeros(len(line), np.int64), np.zeros(len(line), np.int64)
    tell_gaps(line, line[1:][step != 0], k, fmt.emin, fmt.fraction_bits, absorbs(ctx), above, below)
    products = np.sort(arithmetic(ctx).mul(line[:, None], np.array([[float(setting.low), float(setting.high)]])))
    finite = np.isfinite(products).all(axis=1)  # of the weights
    weights, products = line[finite], products[finite]
    steepest = np.argsort(-np.abs(weights), kind="stable")
    x = _inputs(setting)
    apart = np.zeros(len(x) - 1, bool)
    _pairs(line, x, weights[steepest], products[steepest], above, below, apart, k, fmt.emin, fmt.fraction_bits)
    apart.flags.writeable = False
    return apart


def numbers(setting: Setting) -> NDArray[np.float64]:
    """All finite numbers of the format."""
    return np.unique(values(setting.context.format, finite=True) + 0.0)


def _inputs(setting: Setting) -> NDArray[np.float64]:
    line = numbers(setting)
    return line[(line >= float(setting.low)) & (line <= float(setting.high))]


def absorbs(ctx: Context) -> float:
    """2^(p + 2), p the precision, under rounding to nearest: for |b| > 2^(p + 1)·|u| the sum u⊕b is b, since |u| is
    less than half the spacing on either side of b.  So u⊕b and v⊕b differ by more than signs only where they are at
    most 2^(p + 2)·max(|u|, |v|) in size.  Infinity under directed rounding, where every u moves b."""
    return 2.0 ** (ctx.format.precision + 2) if ctx.mode.nearest else np.inf


@jit
def _reaches(u: float, b: float, eta: float, k: Any) -> bool:
    """u⊕b ≥ η; a sum that overflows to NaN is beyond, on the side of b."""
    total = kernel.add(u, b, k)
    return total >= eta or (total != total and b > 0.0)


@jit
def _least(line: Any, u: float, eta: float, k: Any, emin: int, bits: int) -> int:
    """The index of the least b with u⊕b ≥ η, line.size if there is none: it is near η ⊖ u, and found from there."""
    near = kernel.add(eta, -u, k)
    high = line.size // 2
    if near == near:
        high += kernel.ordinal(near, emin, bits, line.size)
    high, step = max(0, min(high, line.size - 1)), 1
    while high < line.size and not _reaches(u, line[high], eta, k):
        high, step = high + step, 2 * step
    high = min(high, line.size)
    low, step = high - 1, 1
    while low >= 0 and _reaches(u, line[low], eta, k):
        high, low, step = low, low - step, 2 * step
    low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        if _reaches(u, line[middle], eta, k):
            high = middle
        else:
            low = middle
    return high


@jit
def tell_gaps(line: Any, jumps: Any, k: Any, emin: int, bits: int, far: float, above: Any, below: Any) -> None:
    """For each gap the index of the least bias ≥ 0 that tells it, or line.size; of the greatest one ≤ 0, or −1.

    A run of biases goes beyond 0 where u⊕0 < η, and begins at 0 or before where η ≤ u⁺⊕0.  No η farther than
    far·max(|u|, |u⁺|) from 0 is looked at (`absorbs`).
    """
    above[line.size - 1], below[line.size - 1] = line.size, -1
    zero = line.size // 2
    for i in range(line.size - 1):
        u, v = line[i], line[i + 1]
        above[i], below[i] = line.size, -1
        limit = far * max(abs(u), abs(v))
        for t in range(np.searchsorted(jumps, kernel.add(u, 0.0, k), side="right"), jumps.size):
            if jumps[t] > limit:
                break
            first = max(_least(line, v, jumps[t], k, emin, bits), zero)
            if first < _least(line, u, jumps[t], k, emin, bits):
                above[i] = first
                break
        for t in range(np.searchsorted(jumps, kernel.add(v, 0.0, k), side="right") - 1, -1, -1):
            if jumps[t] < -limit:
                break
            last = min(_least(line, u, jumps[t], k, emin, bits) - 1, zero)
            if last >= _least(line, v, jumps[t], k, emin, bits):
                below[i] = last
                break


@jit
def farthest(line: Any, end: float, zero: int, by: int, k: Any) -> int:
    """The index of the last bias from 0 upwards (by = 1) or downwards (by = −1) with a finite sum with `end`."""
    good, bad = 0, line.size - zero if by > 0 else zero + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if np.isfinite(kernel.add(end, line[zero + by * middle], k)):
            good = middle
        else:
            bad = middle
    return zero + by * good


@jit
def place(y: float, emin: int, bits: int, zero: int) -> int:
    """The index of a finite number among `numbers`, of which 0 has the index `zero`."""
    return zero + kernel.ordinal(y, emin, bits, zero)


@jit
def told_before(above: Any, below: Any) -> Any:
    """How many of the gaps before each place some bias tells, by what `tell_gaps` found."""
    told = np.zeros(above.size + 1, np.int64)
    for gap in range(above.size):
        told[gap + 1] = told[gap] + (above[gap] < above.size or below[gap] >= 0)
    return told


@jit
def _pairs(
    line: Any, x: Any, weights: Any, ends: Any, above: Any, below: Any, apart: Any, k: Any, emin: int, bits: int
) -> None:
    """Marks x[i] where some weight and an admissible bias tell it from x[i + 1]; ends[g]: least and greatest w⊗x."""
    zero = line.size // 2
    told = told_before(above, below)
    first, last = 0, apart.size
    for g in range(weights.size):
        while first < last and apart[first]:
            first += 1
        while first < last and apart[last - 1]:
            last -= 1
        a = place(kernel.mul(weights[g], x[first], k), emin, bits, zero)
        b = place(kernel.mul(weights[g], x[last], k), emin, bits, zero)
        if told[max(a, b)] == told[min(a, b)]:
            continue
        most, least = farthest(line, ends[g, 1], zero, 1, k), farthest(line, ends[g, 0], zero, -1, k)
        known, at = -1, 0
        for i in range(first, last):
            if apart[i]:
                continue
            if known != i:
                at = place(kernel.mul(weights[g], x[i], k), emin, bits, zero)
            following = place(kernel.mul(weights[g], x[i + 1], k), emin, bits, zero)
            for gap in range(min(at, following), max(at, following)):
                if above[gap] <= most or below[gap] >= least:
                    apart[i] = True
                    break
            known, at = i + 1, following
