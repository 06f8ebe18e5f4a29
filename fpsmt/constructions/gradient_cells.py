"""What makes the networks of `gradient_tables` right for every table, computed: facts about the format alone.

Trusted, for rounding to nearest even.  `Cells.checks` names each fact, and says where it fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.constructions.gradient_circuits import first_wrong
from fpsmt.constructions.gradient_functions import APART, circuit, least_layers, lowest_weights, positive, scales
from fpsmt.constructions.gradient_tables import LEAST_LAYERS, Builder, climb, domain, factors, ladder, split, targets
from fpsmt.constructions.gradient_traces import second_layer
from fpsmt.floats import Context, pow2
from fpsmt.floats.vector import Carriers, are_numbers, arithmetic, values


class Cells:
    """The gaps γ of the domain, and the facts."""

    def __init__(self, ctx: Context, any_order: bool) -> None:
        self.ctx, self.any_order, self.vector = ctx, any_order, arithmetic(ctx)
        self.xs = domain(ctx.format)
        ones = np.ones(len(self.xs))
        self.build = Builder(ctx, self.xs, ones, ones, ones, any_order)
        self.gaps = np.unique(self.build.here.gap)
        self.late = self.build.late
        self.layers = LEAST_LAYERS + self.late
        numbers = values(ctx.format, finite=True)
        self.numbers = numbers[numbers != 0.0]
        self.gate = float(pow2(ctx.format.emax - 1))
        self.points = len(self.xs)

    def checks(self) -> Iterator[tuple[str, str]]:
        """(fact, "" or where it fails)."""
        yield "the first two layers", self.detectors()
        yield "the indicator", self.indicator()
        yield "values", self.values()
        yield "gradients as w₃ times a power of two", self.targets()
        yield "powers of two of the loss derivative", self.factors()

    def are_floats(self, weights: ArrayLike) -> NDArray[np.bool_]:
        """Where a network may have these weights."""
        return are_numbers(self.ctx.format, weights)

    def detectors(self) -> str:
        """hat and t are γ at z and 0 at the other inputs; at z, a is active, b and c are flat."""
        first, second, here, n = self.build.first(), self.build.second(), self.build.here, len(self.xs)
        seen = second_layer(self.ctx, first, second, self.xs, self.any_order)
        if seen.reason:
            return f"{seen.reason} at {self.xs[seen.at]}"
        both = np.stack([np.arange(n), n + 1 + np.arange(n)], axis=1).ravel()
        good = len(seen.point) == 2 * n and (seen.neuron == both).all() and (seen.point == np.repeat(range(n), 2)).all()
        if not (good and (seen.value == np.repeat(here.gap, 2)).all()):
            return "a neuron is not what it should be"
        x = np.tile(self.xs, 3)
        a, b, c = np.split(self.vector.add(self.vector.mul(first.weights, x), first.bias), 3)
        parameters = np.concatenate([first.weights, first.bias, second.weights, second.bias])
        if not self.are_floats(parameters).all():
            return "a parameter is not a float"
        return _where(self.xs, (a > 0.0) & (b == 0.0) & (c == 0.0) & (first.weights[:n] == here.sign))

    def indicator(self) -> str:
        """s from γ and from 0; the gates from s."""
        fmt, vector = self.ctx.format, self.vector
        scale, doublings = climb(fmt, self.gaps)
        good = self.are_floats(scale)
        for start, wanted in ((self.gaps, 1.0), (np.zeros(len(self.gaps)), 0.0)):
            s = vector.mul(start, scale)
            if self.late:
                good &= self.are_floats(np.exp2(doublings))
                s = vector.mul(s, np.exp2(doublings))
            else:
                steps = ladder(fmt, int(doublings.max(initial=0)))
                good &= self.are_floats(steps).all()
                for k, step in enumerate(steps):
                    s = np.where(k >= len(steps) - 2 * doublings, vector.add(s, step), s)
                    good &= np.isfinite(s)
            good &= s == wanted
            for gate in (self.gate, float(fmt.largest)):
                good &= vector.add(vector.mul(s, -gate), gate) == gate * (1.0 - wanted)
        return _where(self.gaps, good)

    def values(self) -> str:
        return self.values_at(self.numbers)

    def values_at(self, v: Carriers) -> str:
        """β ⊕ c = v, also for v = 0, and what holds β, |c| or |v| is 0 with its gate on."""
        vector, most = self.vector, float(self.ctx.format.largest)
        beta, c = split(self.ctx, v)
        off = (vector.add(-self.gate, beta) <= 0.0) & (vector.add(-most, np.abs(c)) <= 0.0)
        alone = vector.add(-most, np.abs(v)) <= 0.0
        zero_beta, zero_c = split(self.ctx, np.zeros(1))
        at_zero = vector.add(zero_beta, zero_c) == 0.0
        return _where(v, off & alone & (beta > 0.0) & (vector.add(beta, c) == v) & at_zero)

    def targets(self) -> str:
        vector, g = self.vector, self.numbers
        for gap in self.gaps:
            target, w3 = targets(self.ctx.format, np.full(g.shape, gap), g)
            good = np.isfinite(vector.mul(w3, gap)) & (vector.mul(target, w3) == np.abs(g)) & self.are_floats(w3)
            if where := _where(g, good & ((target == 1.0) | (target == gap))):
                return f"gap {gap}, {where}"
        return ""

    def factors(self) -> str:
        vector, h = self.vector, self.numbers[self.numbers > 0.0]
        for target in np.unique(np.maximum(self.gaps, 1.0)):
            w5, w4 = factors(self.ctx, h, np.full(h.shape, target))
            middle = vector.mul(h, w5)
            good = (w5 <= self.gate / 4) & np.isfinite(middle) & (vector.mul(middle, w4) == target)
            if where := _where(h, good & self.are_floats(w5) & self.are_floats(w4)):
                return f"A = {target}, {where}"
        return ""


class Circuits(Cells):
    """The facts about `gradient_functions`: what the first layers and the values share with the networks of tables."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx, any_order=False)
        self.layers, self.positive = least_layers(ctx.format), positive(ctx.format)

    def checks(self) -> Iterator[tuple[str, str]]:
        yield "the first two layers", self.detectors()
        yield "the indicator", self.indicator()
        yield "values", self.values()
        yield "gradients as a weight times a number of a circuit", self.weights()
        for place in range(1, self.ctx.format.largest_code + 1):
            yield "the circuits", self.circuit(place)

    def weights(self) -> str:
        vector, g, numbers = self.vector, self.numbers, np.array(scales(self.ctx.format))
        for gap in self.gaps:
            which, w = lowest_weights(self.ctx.format, np.full(g.shape, gap), g)
            good = np.isfinite(vector.mul(w, gap)) & (vector.mul(numbers[which], w) == np.abs(g)) & self.are_floats(w)
            if where := _where(g, good):
                return f"gap {gap}, {where}"
        return ""

    def circuit(self, place: int) -> str:
        """At every y > 0: finite on every level, and in the end A at y₀ and 0 elsewhere; loss derivatives times ≤ 1."""
        y = self.positive
        levels = circuit(self.ctx, place)
        weights = [w for level in levels for node in level for _, w in node]
        good = bool(self.are_floats(weights).all()) and len(levels) == self.layers - APART and len(levels[-1]) == 2
        good = good and all(len(node) == 1 and abs(node[0][1]) <= 1.0 for node in levels[0])
        if not (good and first_wrong(self.ctx, levels, y, place - 1, scales(self.ctx.format)) < 0):
            return f"at y₀ = {y[place - 1]}"
        return ""


def _where(at: Carriers, good: Carriers) -> str:
    return "" if good.all() else f"at {at[int(np.argmin(good))]}"
