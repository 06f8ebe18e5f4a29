"""What makes the networks of `gradient_flat` right for every table, computed: facts about a format and an activation.

Trusted, for rounding to nearest even and formats of at most 16 bits.  `FlatCells.checks` names each fact, and says
where it fails.  Beside a point only bounds are known: the inputs on either side of z are run through at its two
neighbours, since ⊗ and ⊕ are monotone, and σ is bounded on half-lines by its list.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.constructions.gradient_flat import Far, Near, far, levels, near, plan, steep_weights
from fpsmt.floats import Context
from fpsmt.floats.vector import Carriers, are_numbers, arithmetic, from_ordinals


class FlatCells:
    """Of networks of this many layers, for the inputs |x| ≤ `most` and loss derivatives |h| ≤ `upstream`."""

    def __init__(self, ctx: Context, name: str, layers: int, most: float, upstream: float) -> None:
        self.plan = plan(ctx, name)
        self.curve, self.vector, fmt = self.plan.curve, arithmetic(ctx), ctx.format
        self.upstream, self.layers, self.pads = upstream, layers, layers - self.plan.least_layers
        line = from_ordinals(fmt, np.arange(-fmt.largest_code, fmt.largest_code + 1))
        self.xs, self.numbers = line[np.abs(line) <= most], line[line > 0.0]
        #: least that b or c is beside a point, and that a gate is there, in layer 3 and in each after it
        self.on = np.inf
        self.gates: list[float] = []

    def checks(self) -> Iterator[tuple[str, str]]:
        """(fact, "" or where it fails).  In this order: later ones use what earlier ones found."""
        yield "slopes", "" if np.isfinite(self.curve.slopes).all() else "a derivative is not finite"
        yield "b and c", self.detectors()
        yield "gates", self.gating()
        yield "values", self.values()
        yield "gradients as w₃ times a power of two", self.scaling()
        yield "powers of two of the loss derivative", self.normalising()

    # -- shorter names ------------------------------------------------------------------------------------

    def sum(self, *terms: ArrayLike) -> Carriers:
        """From left to right."""
        total = np.asarray(terms[0], float)
        for term in terms[1:]:
            total = self.vector.add(total, term)
        return np.asarray(total)

    def times(self, *factors: ArrayLike) -> Carriers:
        """From left to right."""
        total = np.asarray(factors[0], float)
        for factor in factors[1:]:
            total = self.vector.mul(total, factor)
        return np.asarray(total)

    def flat(self, pre: ArrayLike) -> NDArray[np.bool_]:
        """Where σ = low and σ′ = 0 at this sum and at all below it."""
        return np.asarray(np.asarray(pre) <= self.curve.floor)

    def are_floats(self, *weights: ArrayLike) -> bool:
        return all(bool(are_numbers(self.curve.format, w).all()) for w in weights)

    # -- facts --------------------------------------------------------------------------------------------

    def detectors(self) -> str:
        """b and c are `low` and flat at z; at other inputs one of them is `low`, and the other at least `on`."""
        c, xs = self.curve, self.xs
        w = steep_weights(c.context, xs)[0]
        centre = self.times(w, xs)
        a, theta = self.plan.detect
        if not (self.are_floats(w, centre, a, theta) and (w > 0.0).all() and a != 0.0):
            return "a parameter is not a float, or has the wrong sign"

        def read(f: Carriers | float) -> Carriers:
            """The sum of b or c."""
            return self.sum(*([-self.times(a, c.zero)] if c.zero else []), self.times(a, f), theta)

        if not self.flat(read(c.zero)).all():
            return "b is not flat at its point"
        most, others = slice(0, -1), slice(1, None)
        for here, there, sign in ((most, others, 1.0), (others, most, -1.0)):  # inputs right of z, and left of z
            above = c.least(self.sum(self.times(sign * w[here], xs[there]), -sign * centre[here]))
            below = c.most(self.sum(self.times(-sign * w[here], xs[there]), sign * centre[here]))
            up, down = (read(above), read(below)) if a > 0.0 else (read(below), read(above))
            if not self.flat(down).all():
                return f"b or c is not flat at {xs[here][int(np.argmin(self.flat(down)))]}"
            self.on = min(self.on, float(c.least(up).min()))
        return "" if self.on > c.low else "neighbours are not told apart"

    def gating(self) -> str:
        """A gate is `low` and flat at z; elsewhere at least `gates`, and there it is flat as well if σ is bounded."""
        c = self.curve
        (a, bias), (again, later) = self.plan.first, self.plan.again
        if not (self.are_floats(a, bias, again, later) and a > 0.0 and again > 0.0):
            return "a parameter is not a float"
        at = self.sum(self.times(a, c.low), self.times(a, c.low), bias)
        ways = [self.sum(*(self.times(a, v) for v in both), bias) for both in ((self.on, c.low), (c.low, self.on))]
        beside = min(map(float, ways))
        for _ in range(3, self.layers - 1):
            if not self.flat(at).all():
                return "a gate is not flat at its point"
            there = c.line >= beside
            if c.bounded and not ((c.outputs[there] == c.high).all() and (c.slopes[there] == 0.0).all()):
                return "a gate is not flat beside its point"
            self.gates.append(float(c.least(beside)))
            at = self.sum(self.times(again, c.low), later)
            beside = float(self.sum(self.times(again, self.gates[-1]), later))
        return ""

    def values(self) -> str:
        """Σ w ⊗ m = v from left to right for every v > 0, and all m are 0 beside z, with gradients that end as ±0."""
        c, (b, _) = self.curve, self.plan.level
        found = levels(self.plan, self.numbers, self.upstream)
        y, w = found.y, found.weight
        if not self.are_floats(y, w, b) or b < 0.0 or not len(w):
            return "a parameter is not a float"
        if self.plan.mixed:
            gate = self.gates[self.layers - 6]  # of layer L − 3
            at = self.sum(c.low, -c.low, y)
            high, dark = c.value(at), self.sum(c.low, -gate, y)
            top = self.sum(high, -c.zero)
            off = self.flat(dark) & self.flat(self.sum(c.low, -gate)) & (c.zero == 0.0)
            back = self.times(self.upstream, w, np.maximum(c.slope(top), c.slope0), np.maximum(c.slope(at), c.slope0))
        else:
            gate = self.gates[-1]
            top, dark = self.sum(self.times(-b, c.low), y), self.sum(self.times(-b, gate), y)
            still = self.flat(dark) & (c.low == 0.0)
            off = still | (c.bounded & (c.value(dark) == 0.0))  # a bounded gate has one value there
            back = self.times(self.upstream, w, np.maximum(c.slope(top), np.where(still, 0.0, c.slope(dark))), b)
        if not off.all():
            return f"a value is not 0 elsewhere, for {self.numbers[found.owner[int(np.argmin(off))]]}"
        if not (np.isfinite(self.times(self.upstream, w)) & np.isfinite(back)).all():
            return "a gradient is not finite"
        products, total = self.times(w, c.value(top)), np.zeros(len(self.numbers))
        starts, counts = np.unique(found.owner, return_index=True, return_counts=True)[1:]
        if len(starts) != len(self.numbers) or (np.diff(found.owner) < 0).any():
            return "a value has no terms"
        for k in range(int(counts.max())):
            some = counts > k
            total[some] = self.vector.add(total[some], products[starts[some] + k])
        good = total == self.numbers
        return "" if good.all() else f"at {self.numbers[int(np.argmin(good))]}"

    def scaling(self) -> str:
        """At z, A is taken to |g| by w₃ and what follows; the n that reads it is finite, or flat beside z."""
        c, g = self.curve, self.numbers
        found = near(self.plan, g)
        if not self.are_floats(found.w3, found.tau, found.v):
            return "a parameter is not a float"
        if not np.isfinite(self.times(found.v, np.abs(self.xs).max())).all():
            return "a product of layer 1 is not finite at its point"
        after = self.times(found.target, found.w3, c.slope0)
        if c.bounded:
            good, back = self.bounded(found), self.times(after, found.v)
        else:
            good, back = self.unbounded(found), self.times(after, found.tau, c.slope0, found.v)
        back = np.where(found.two, self.sum(back, back), back)
        good &= (back == g) & np.isfinite(self.times(found.target, found.w3))
        return "" if good.all() else f"at {g[int(np.argmin(good))]}"

    def bounded(self, found: Near) -> NDArray[np.bool_]:
        """All sums of n = σ(w₃ ⊗ a ⊖ w₃ ⊗ zero ⊕ w₃ ⊗ a ⊖ w₃ ⊗ zero) are finite, and it is 0 where a = zero."""
        c, w = self.curve, found.w3
        off, good = self.times(w, c.zero), np.ones(w.shape, bool)
        for a in (c.outputs.min(), c.outputs.max(), c.zero):
            one = self.times(w, a)
            first = self.sum(one, -off)
            second = np.where(found.two, self.sum(first, one), first)
            total = np.where(found.two, self.sum(second, -off), first)
            good &= np.isfinite(first) & np.isfinite(second) & np.isfinite(total) & ((total == 0.0) | (a != c.zero))
        return good

    def unbounded(self, found: Near) -> NDArray[np.bool_]:
        """a′ is bounded, so that b or c makes n and k flat beside z; at z all of them are 0."""
        c = self.curve
        least = float(c.outputs.min())
        one = self.times(found.tau, -least)
        large = c.most(np.where(found.two, self.sum(one, one), one))
        reach, good = self.times(found.w3, np.maximum(large, -least)), np.full(found.w3.shape, c.zero == 0.0)
        for both in ((self.on, c.low), (c.low, self.on)):
            for start in (reach, np.zeros(reach.shape)):
                good &= np.isfinite(start) & self.flat(self.sum(start, *(-v for v in both), 2 * c.low))
        return good & (float(self.sum(0.0, -c.low, -c.low, 2 * c.low)) == 0.0)

    def normalising(self) -> str:
        """For every h and every A that occurs: at z, h is taken to A; beside z the last n and k are flat."""
        h = self.numbers[self.numbers <= self.upstream]
        for target in np.unique(near(self.plan, self.numbers).target):
            good = self.normalised(h, far(self.plan, h, np.full(h.shape, target), self.pads > 0), float(target))
            if not good.all():
                return f"A = {target}, at {h[int(np.argmin(good))]}"
        return ""

    def normalised(self, h: Carriers, found: Far, target: float) -> NDArray[np.bool_]:
        c, gate, steady, u = self.curve, found.gate, self.plan.steady, self.plan.outer
        weights = [found.between] * min(self.pads, 1) + [np.full(h.shape, 1.0 / c.slope0)] * max(self.pads - 1, 0)
        good = np.ones(h.shape, bool)
        for w in (found.w4, found.w5, gate, *weights):
            good &= are_numbers(c.format, w)
        good &= self.are_floats(u) and bool(np.isfinite(self.times(u, [c.low, float(c.value(steady))])).all())
        # forwards
        bias = steady + gate * c.low - self.times(found.w5, c.zero)
        alone = steady + gate * c.low
        good &= are_numbers(c.format, bias) & are_numbers(c.format, alone) & (gate > 0.0)
        ends = (c.outputs.min(), c.outputs.max(), c.zero) if c.bounded else (c.zero,)
        for n in ends:
            for w in (found.w4, *weights):
                moved = self.sum(self.times(w, n), -self.times(w, c.zero))
                good &= np.isfinite(moved) & ((moved == 0.0) | (n != c.zero))
            good &= self.flat(self.sum(self.times(found.w5, n), self.times(-gate, self.gates[-1]), bias))
        good &= self.flat(self.sum(self.times(-gate, self.gates[-1]), alone))
        if not c.bounded:  # n and k are `low` together
            good &= np.isfinite(self.times(found.w4, c.low))
        good &= self.sum(self.times(found.w5, c.zero), self.times(-gate, c.low), bias) == steady
        good &= self.sum(self.times(-gate, c.low), alone) == steady
        # backwards
        top = self.times(h, u, float(c.slope(steady)))
        chain = self.times(top, found.w5)
        for w in reversed(weights):
            chain = self.times(chain, c.slope0, w)
        chain = self.times(chain, c.slope0, found.w4, c.slope0)
        return good & np.isfinite(self.times(h, u)) & np.isfinite(self.times(top, gate)) & (chain == target)
