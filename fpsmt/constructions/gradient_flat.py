"""Networks with the values and executed gradients of a whole table, for elu, gelu, swish, sigmoid and tanh: Theorem 3.1
of arXiv 2605.01702.  Every finite float is an input.

At every input each neuron is flat (σ′ = 0), or it reads nothing but flat ones, or it is on the path of the gradient,
whose neurons are at 0, where σ′ is a power of two.  With `low` = σ(−∞), `zero` = σ(0), and for each point z:

    layer 1   f± = σ(±W ⊗ x ∓ W ⊗ z), W as large as W ⊗ z allows;  a = σ(V ⊗ x ⊖ V ⊗ z), V = 1 or 2
    layer 2   b, c = σ(A ⊗ f± ⊖ A ⊗ zero ⊖ θ): both are `low` and flat at z; elsewhere one is large (1 if σ is bounded)
    gates     from b and c, then one from the other: flat and `low` at z, and large elsewhere
    path      σ unbounded: a′ = σ(−τ ⊗ a), which is bounded;  n = σ(w₃ ⊗ a′ ⊖ b ⊖ c …) and k = σ(⊖ b ⊖ c …), equal
              everywhere;  n = σ(w₄ ⊗ n ⊖ w₄ ⊗ k) = zero everywhere
              σ bounded: n = σ(w₃ ⊗ a …), n = σ(w₄ ⊗ n …): what they are beside z does not matter
    last      n = σ(w₅ ⊗ n ⊖ gate …) and k, the same without w₅: equal everywhere, and flat but at z
    output    Σ u ⊗ n ⊖ u ⊗ k, then values Σ w ⊗ m with m = σ(y ⊖ gate), which is 0 but at z

so that f is Σ w ⊗ m and the gradient u, w₅, w₄, w₃, τ, V times slopes: w₅ and w₄ make a power of two of h, and w₃ is g
over it.  An upstream gradient meets weights of size 1, or few that are as large as h allows, before all that is not z's
is flat.  Sums of layer 1 may be ±∞ far from z, and what reads them, where σ has its limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.gradient_curves import Curve, curve
from fpsmt.constructions.gradient_tables import Block, factors, layer_of, rows_of
from fpsmt.constructions.sparse import Layer, SparseNetwork, constructed
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, pow2
from fpsmt.floats.vector import Carriers, arithmetic, from_ordinals, ordinals, round_array

ACTIVATIONS = ("elu", "gelu", "swish", "sigmoid", "tanh")

# -- constants of an activation in a format ---------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """Weight and bias of b and c, of the first gate and of the next ones, and of the values' m.

    `steady`: what the last n gets at z beside its gate, where σ′ is `slope`; `identity`: from there on σ(y) = y (∞ if
    σ is bounded); `unit`: (y, σ(y)) with σ(y) a power of two, at most 1; `echo`: h ⊗ w is multiplied by at most this.
    """

    curve: Curve
    detect: tuple[float, float]
    first: tuple[float, float]
    again: tuple[float, float]
    level: tuple[float, float]
    steady: float
    slope: float
    identity: float
    unit: tuple[float, float]
    echo: float

    @property
    def least_layers(self) -> int:
        return 5 if self.curve.bounded else 6

    @property
    def outer(self) -> float:
        """u: with σ′ at the last n it is 1."""
        return 1.0 / self.slope

    @property
    def mixed(self) -> bool:
        """Values take two layers: σ is unbounded, and not 0 where it is flat."""
        return not self.curve.bounded and self.curve.low != 0.0


@lru_cache(maxsize=16)
def plan(ctx: Context, name: str) -> Plan:
    """`Unsupported` where the format or the activation does not do."""
    c = curve(ctx, name)
    if np.isinf(c.floor):
        raise Unsupported(f"{name} is not flat at −∞ in {ctx.format}")
    if np.frexp(c.slope0)[0] != 0.5:
        raise Unsupported(f"the derivative {c.slope0:g} of {name} at 0 is not a power of two")
    return _bounded(c) if c.bounded else _unbounded(c)


def _unbounded(c: Curve) -> Plan:
    fmt, depth, most = c.format, -c.floor, float(pow2(c.format.emax))
    positive = c.line > 0.0
    same = (c.outputs == c.line) & (c.slopes <= 1.0) & positive
    identity = float(c.line[len(same) - int(np.argmin(same[::-1]))])
    steady = 0.0
    if c.slope0 != 1.0:
        good = same & (c.slopes == 1.0) & (np.frexp(c.line)[0] == 0.5) & (c.line >= identity)
        if not good.any():
            raise Unsupported(f"the derivative of {c.name} in {fmt} is 1 nowhere that serves")
        steady = float(c.line[int(np.argmax(good))])
    units = positive & (c.outputs <= 1.0) & (np.frexp(c.outputs)[0] == 0.5)
    at = int(np.flatnonzero(units)[-1])
    first, again = ((most, -depth), (most, -depth)) if c.low == 0.0 else ((most / 2, 0.0), (most, 0.0))
    return Plan(
        c, (float(fmt.largest), -depth), first, again, (1.0, 0.0), steady, float(c.slope(steady)), identity,
        (float(c.line[at]), float(c.outputs[at])), 1.0,
    )  # fmt: skip


def _bounded(c: Curve) -> Plan:
    ceiling = (c.outputs == c.high) & (c.slopes == 0.0)
    top = float(c.line[len(ceiling) - int(np.argmin(ceiling[::-1]))])
    deep = 2.0 ** np.ceil(np.log2(max(-c.floor, top)))
    if c.low == 0.0:
        gate, again, level, echo = (2 * deep, -deep), (2 * deep, -deep), (2 * deep, deep), 1.0
    else:
        sizes = 2.0 ** np.arange(c.format.emin, c.format.emax)
        small = float(sizes[int(np.argmax(c.value(2 * sizes) == c.high))])
        gate, again, level, echo = (deep, deep), (deep, 0.0), (small, small), max(small, 1.0)
    return Plan(c, _detect(c, top), gate, again, level, 0.0, c.slope0, np.inf, (0.0, 0.0), echo)


def _detect(c: Curve, top: float) -> tuple[float, float]:
    """(A, −θ) with A ⊗ σ(±r) ⊖ A ⊗ σ(0) ⊖ θ ≥ `top` for the `least_reach` r and one sign, and θ ≥ −floor.

    Near ½ the floats are denser below: there A < 0.
    """
    fmt, v = c.format, c.vector
    sign = -1.0 if c.zero else 1.0
    on = c.value(sign * least_reach(c.context))
    for a in (float(fmt.largest), *(m * float(pow2(fmt.emax - k)) for k in range(3) for m in (1.75, 1.5, 1.25, 1.0))):
        rise = float(v.add(v.mul(sign * a, on), -v.mul(sign * a, c.zero)))
        middle = ordinals(fmt, round_array(c.context, rise / 2)) + np.arange(-4, 5)
        theta = from_ordinals(fmt, np.clip(middle, -fmt.largest_code, fmt.largest_code))
        good = (theta >= -c.floor) & (v.add(rise, -theta) >= top)
        if good.any():
            return sign * a, -float(theta[int(np.argmax(good))])
    raise Unsupported(f"{fmt} has not enough exponents to tell neighbours near 0 apart by {c.name}")


# -- numbers of a table -----------------------------------------------------------------------------------


def steep_weights(ctx: Context, z: Carriers) -> tuple[Carriers, Carriers]:
    """W for each z, and how far W ⊗ x then is from W ⊗ z at the neighbours x of z at least."""
    fmt, v = ctx.format, arithmetic(ctx)
    line, last = ordinals(fmt, z), fmt.largest_code
    beside = [from_ordinals(fmt, np.clip(line + by, -last, last)) for by in (-1, 1)]
    ends = [line == -last, line == last]
    best, reach = np.zeros(z.shape), np.zeros(z.shape)
    scale = np.ldexp(1.0, fmt.emax + 1 - np.frexp(np.maximum(np.abs(z), 1.0))[1])
    for m in (float(fmt.largest) / float(pow2(fmt.emax)), 1.75, 1.5, 1.25, 1.0):
        w = round_array(ctx, m * scale)
        centre = v.mul(w, z)
        safe = np.where(np.isfinite(centre), centre, 0.0)
        away = [np.where(end, np.inf, np.abs(v.add(v.mul(w, x), -safe))) for x, end in zip(beside, ends, strict=True)]
        moved = np.where(np.isfinite(centre), np.minimum(*away), 0.0)
        best, reach = np.where(moved > reach, w, best), np.maximum(reach, moved)
    return best, reach


@lru_cache(maxsize=16)
def least_reach(ctx: Context) -> float:
    """Of all finite floats."""
    last = ctx.format.largest_code
    return float(steep_weights(ctx, from_ordinals(ctx.format, np.arange(-last, last + 1)))[1].min())


@dataclass(frozen=True)
class Levels:
    """Values as sums: element `owner` is Σ weight ⊗ σ(y), the terms of one owner in this order."""

    owner: NDArray[np.int64]
    y: Carriers
    weight: Carriers


def levels(plan: Plan, values: Carriers, upstream: float) -> Levels:
    """Weights that the greatest loss derivative `upstream` allows; no terms for 0."""
    fmt, owner = plan.curve.format, np.flatnonzero(values)
    v = values[owner]
    size = np.abs(v)
    if plan.curve.bounded:
        cap = float(fmt.largest) / (max(upstream, 1.0) * plan.echo)
        part = 2.0 ** np.floor(np.log2(cap))
        count = np.where(size <= cap, 0, np.floor(size / part)).astype(np.int64)
        if count.max(initial=0) > 2 << fmt.fraction_bits:
            raise Unsupported(f"loss derivatives of size {upstream:g} leave {plan.curve.name} too little for values")
        rest = size - count * part
        many = np.repeat(np.arange(len(v)), count + (rest > 0.0))
        last = np.append(many[1:] != many[:-1], True) if len(many) else np.zeros(0, bool)
        weight = np.where(last & (rest[many] > 0.0), rest[many], part)
        return Levels(owner[many], np.full(len(many), plan.level[1]), np.sign(v)[many] * weight)
    steps = np.zeros(len(v), np.int64)
    if plan.identity > fmt.smallest:
        steps = np.maximum(int(np.ceil(np.log2(plan.identity))) + 1 - np.frexp(size)[1], 0)
    scale, (y, unit) = np.ldexp(1.0, -steps), plan.unit
    tiny = scale < float(fmt.smallest)
    return Levels(owner, np.where(tiny, y, np.ldexp(size, steps)), np.where(tiny, v / unit, np.sign(v) * scale))


@dataclass(frozen=True)
class Near:
    """What makes |g| of a power of two, A: w₃, τ, V and whether there are two a."""

    target: Carriers
    w3: Carriers
    tau: Carriers
    v: Carriers
    two: NDArray[np.bool_]


@dataclass(frozen=True)
class Far:
    """What makes A of |h|: w₄, w₅, the weight of a layer between them, and the gate's; NaN where there is none."""

    w4: Carriers
    w5: Carriers
    between: Carriers
    gate: Carriers


def greatest_w3(plan: Plan) -> float:
    """Of σ unbounded: beside the point b or c make n flat."""
    c, v = plan.curve, plan.curve.vector
    on = float(c.value(v.add(v.mul(plan.detect[0], c.value(least_reach(c.context))), plan.detect[1])))
    if on + c.floor <= 0.0:
        raise Unsupported(f"{c.format} has not enough exponents to tell neighbours near 0 apart by {c.name}")
    if largest_a(plan) == 0.0:
        raise Unsupported(f"{c.name} is 0 below 0 in {c.format}: it passes no gradient on there")
    return min(0.75 * (on + c.floor) / float(largest_a(plan)), float(c.format.largest))


def largest_a(plan: Plan) -> Carriers:
    """The greatest |σ(−τ ⊗ a)|."""
    c = plan.curve
    tau = 1.0 / c.slope0**2
    least = float(c.outputs.min())
    return np.maximum(-least, c.most(c.vector.mul(tau, -least)))


def near(plan: Plan, gradients: Carriers) -> Near:
    c = plan.curve
    s, size = c.slope0, np.abs(gradients)
    two = (size >= float(pow2(c.format.emin)) / s) & (s < 1.0)
    ones = np.ones(size.shape)
    if c.bounded:
        tau, v, most = ones, np.where(two, 0.5 / s, 1.0), float(pow2(c.format.emax))
        product = np.where(two, size, size / s)
    else:
        tau, v, most = np.where(two, 1.0 / s, 1.0), ones, greatest_w3(plan)
        product = np.where(two, size, size / s**2)
    with np.errstate(divide="ignore"):
        target = np.exp2(np.maximum(np.ceil(np.log2(product / most)), 0.0))
    return Near(target, product / target, tau, v, two)


def far(plan: Plan, upstream: Carriers, target: Carriers, spare: bool) -> Far:
    """((|h| ⊗ w₅) ⊗ w₄) · 2^t = A, slopes apart; t = 0 unless there is a layer to `spare`."""
    c, h = plan.curve, np.abs(upstream)
    w5, w4, steps = np.full(h.shape, np.nan), np.full(h.shape, np.nan), np.zeros(h.shape, np.int64)
    for t in range(c.format.emax if spare else 1):
        for more in (-1,) if c.bounded else (-1, 0):
            left = np.flatnonzero(np.isnan(w5))
            if len(left):
                w5[left], w4[left] = factors(c.context, h[left], target[left] / c.slope0**2 / 2.0**t, more)
                steps[left] = t
    gate = np.ones(h.shape)
    if c.bounded:
        reach = 1.25 * w5 * max(c.high - c.zero, c.zero - c.low) - 2 * c.floor
        gate = np.exp2(np.ceil(np.log2(reach / (c.high - c.low))))
    return Far(w4, w5, np.ldexp(1.0, steps) / c.slope0, gate)


# -- layers -----------------------------------------------------------------------------------------------


def flat_network(
    ctx: Context, name: str, xs: Carriers, values: Carriers, upstream: Carriers, gradients: Carriers,
    layers: int | None = None,
) -> SparseNetwork:  # fmt: skip
    """The network for distinct points xs, with h = `upstream` finite and g = 0 where h = 0; sums from left to right.

    `Unsupported` where the format's exponents do not suffice, or where `layers` are too few.
    """
    made, table = plan(ctx, name), (xs, values, upstream, gradients)
    least = made.least_layers
    if layers is None:
        try:
            built = Builder(made, *table, spare=False).layers(least)
        except Unsupported:
            built = Builder(made, *table, spare=True).layers(least + 1)
    elif layers < least:
        raise Unsupported(f"{layers} layers are too few: {least} are needed")
    else:
        built = Builder(made, *table, spare=layers > least).layers(layers)
    return constructed(ctx, 1, name, built)


class Builder:
    """`steep`: the points with a gradient, m of them; `levels`: of the values, p terms; gates for both."""

    def __init__(
        self, plan: Plan, xs: Carriers, values: Carriers, upstream: Carriers, gradients: Carriers, spare: bool
    ) -> None:
        self.plan, self.curve, fmt = plan, plan.curve, plan.curve.format
        most = float(np.abs(upstream).max(initial=0.0))  # met at the other points too
        used = (values != 0.0) | (gradients != 0.0)
        used[:1] |= not used.any()
        values, upstream, gradients = values[used], upstream[used], gradients[used]
        self.xs, self.n = xs[used] + 0.0, int(used.sum())
        self.levels = levels(plan, values, most)
        self.steep = np.flatnonzero(gradients)
        g, h = gradients[self.steep], upstream[self.steep]
        self.m, self.p = len(self.steep), len(self.levels.owner)
        self.near = near(plan, g)
        self.far = far(plan, h, self.near.target, spare)
        lost = np.isnan(self.far.w5)
        if lost.any():
            i = int(np.argmax(lost))
            raise Unsupported(f"{fmt} has no weights for {self.curve.name} that take {h[i]:g} to {g[i]:g}")
        sign = np.where((g < 0.0) != (h < 0.0), -1.0, 1.0)
        self.w3 = self.near.w3 * (sign if self.curve.bounded else -sign)
        outside = np.abs(self.xs[self.steep]) * self.near.v > float(fmt.largest)
        if outside.any():
            x, most = self.xs[self.steep][np.argmax(outside)], float(fmt.largest) * self.curve.slope0 * 2
            raise Unsupported(f"x = {x:g} has a gradient beyond {most:g} in size, too far out for {self.curve.name}")

    def layers(self, count: int) -> tuple[Layer, ...]:
        built = [self.first(), self.second(), self.third()]
        while len(built) < count - 2:
            built.append(self.carry(len(built) + 1, len(built) == count - 3))
        return (*built, self.ends(), self.last())

    @property
    def ns(self) -> NDArray[np.int64]:
        return np.arange(self.m)

    def times(self, weight: Carriers, value: float) -> Carriers:
        return np.asarray(self.curve.vector.mul(weight, value)) + 0.0

    def first(self) -> Layer:
        """a, `zero`, the second a's; f₊ and f₋."""
        z, v, two = self.xs[self.steep], self.near.v, self.near.two
        w = steep_weights(self.curve.context, self.xs)[0]
        centre = self.curve.vector.mul(w, self.xs)
        return layer_of([
            rows_of([(0, v)], -v * z + 0.0, self.m),
            rows_of([], 0.0, 1),
            rows_of([(0, v[two])], -(v * z)[two] + 0.0, int(two.sum())),
            rows_of([(0, w)], -centre + 0.0, self.n),
            rows_of([(0, -w)], centre, self.n),
        ])  # fmt: skip

    def second(self) -> Layer:
        """a′, or n of a bounded σ; b and c."""
        two, f = self.near.two, self.m + 1 + int(self.near.two.sum())
        w, again = self.w3 if self.curve.bounded else -self.near.tau, self.m + np.cumsum(two)
        n = rows_of([(self.ns, w), (self.m, -w), (again, w)], -self.times(w, self.curve.zero), self.m)
        n.kept[~two, 1:] = False
        a, theta = self.plan.detect
        centre = [(self.m, -a)] if self.curve.zero else []
        sides = (f + np.arange(self.n), f + self.n + np.arange(self.n))
        return layer_of([n, *(rows_of([*centre, (side, a)], theta, self.n) for side in sides)])

    @property
    def gated(self) -> NDArray[np.int64]:
        """The points of the gates, one for each n and each term of a value."""
        return np.concatenate([self.steep, self.levels.owner])

    def third(self) -> Layer:
        """n; then k of σ unbounded; a constant `low`; gates."""
        low = self.curve.low
        b, c = self.m + self.gated, self.m + self.n + self.gated
        weight, bias = self.plan.first
        gates = rows_of([(b, weight), (c, weight)], bias, len(self.gated))
        if self.curve.bounded:
            return layer_of([self.scaled(self.far.w4), self.constant(), gates])
        off = [(b[: self.m], -1.0), (c[: self.m], -1.0)]
        n = rows_of([(self.ns, self.w3), *off], 2 * low, self.m)
        return layer_of([n, rows_of(off, 2 * low, self.m), self.constant(), gates])

    def scaled(self, w: Carriers) -> Block:
        """n = σ(w ⊗ n ⊖ w ⊗ zero)."""
        return rows_of([(self.ns, w)], -self.times(w, self.curve.zero), self.m)

    def constant(self) -> Block:
        return rows_of([], self.curve.floor, 1)

    def carry(self, place: int, last: bool) -> Layer:
        """Layer number `place`: n, `low`, gates; in the `last` one, where values take two layers, y and 0 for them."""
        opened = 2 * self.m if place == 4 and not self.curve.bounded else self.m  #: where gates start, less 1
        if opened > self.m:
            n = rows_of([(self.ns, self.far.w4), (self.m + self.ns, -self.far.w4)], 0.0, self.m)
        else:
            first = place == (4 if self.curve.bounded else 5)
            n = self.scaled(self.far.between if first else np.full(self.m, 1.0 / self.curve.slope0))
        weight, bias = self.plan.again
        gates = opened + 1 + np.arange(self.m + self.p)
        if not (last and self.plan.mixed):
            return layer_of([n, self.constant(), rows_of([(gates, weight)], bias, len(gates))])
        off = [(opened, 1.0), (gates[self.m :], -1.0)]
        return layer_of([
            n, self.constant(), rows_of([(gates[: self.m], weight)], bias, self.m),
            rows_of(off, self.levels.y, self.p), rows_of(off, 0.0, self.p),
        ])  # fmt: skip

    def ends(self) -> Layer:
        """n and k in turn, then m."""
        low, gate, at = self.curve.low, np.repeat(self.far.gate, 2), np.repeat(self.ns, 2)
        w5, odd = np.repeat(self.far.w5, 2), np.arange(2 * self.m) % 2 == 1
        bias = self.plan.steady + gate * low - np.where(odd, 0.0, self.times(w5, self.curve.zero))
        pairs = rows_of([(at, w5), (self.m + 1 + at, -gate)], bias, 2 * self.m)
        pairs.kept[odd, 0] = False
        m = 2 * self.m + 1 + np.arange(self.p)
        if self.plan.mixed:
            values = rows_of([(m, 1.0), (m + self.p, -1.0)], 0.0, self.p)
        else:
            values = rows_of([(m, -self.plan.level[0])], self.levels.y, self.p)
        return layer_of([pairs, values] if self.m + self.p else [self.constant()])

    def last(self) -> Layer:
        pairs = np.tile([self.plan.outer, -self.plan.outer], self.m)
        weights = np.concatenate([pairs, self.levels.weight])
        return Layer(np.array([0, len(weights)]), np.arange(len(weights)), weights, np.zeros(1))
