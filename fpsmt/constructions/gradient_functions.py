"""ReLU networks whose gradient is any odd function of the loss derivative: Theorem 3.2 of arXiv 2605.01702.

The paper needs L ≥ 2^(E + 1) + 2M + 9 layers; these have twelve or more, in float16 thirteen.  Reverse mode through
neurons that are always active is a linear program with roundings, and its input is the loss derivative y.  For each
float y₀ > 0 a *circuit* returns sign(y)·A where |y| = y₀ and 0 for every other y, from three effects of rounding:

* threshold: u = y ⊗ … ⊗ w is 0 below y₀, because less than or half of ω rounds to 0, and ω at y₀.  u⁺ is that of the
  next float;
* absorption: (K ⊗ u⁺ ⊕ u) ⊖ K ⊗ u⁺ is u where u⁺ = 0, that is at y₀ alone, and 0 where u is too small beside K ⊗ u⁺;
* for the least y₀, where K ⊗ u⁺ would overflow at y = Ω, large y are taken away first: y ⊖ (y ⊗ 2^−k) ⊗ 2^k is y below
  2^(k−1)·ω, and 0 from 2^k·2^emin on; what is left between is absorbed in the same way.

Weights do not matter to the forward pass: each neuron of a circuit is ReLU(w ⊗ n ⊖ w ⊗ 1 ⊕ … ⊕ 1) = 1, with a constant
beside every n.  The lowest neurons of the circuits read hat and t of each point (`gradient_tables`) in the same way,
ReLU(… w ⊗ hat ⊖ w ⊗ t … ⊕ 1) with w = g(x, y₀) / A; so at x the gradient of x is g(x, y₀) for y = ±y₀.  Sums run from
left to right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpsmt.constructions.gradient_tables import Builder, ladder
from fpsmt.constructions.sparse import Layer, Rows, SparseNetwork, constructed
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Format, pow2
from fpsmt.floats.vector import Carriers, are_numbers, arithmetic, from_ordinals

LAYERS = 12
APART = 3  #: the layers 1, 2 and the last are not part of a circuit, whose levels count from the loss derivative on

Node = tuple[tuple[int, float], ...]  #: (place in the level above, weight), added from left to right
Level = tuple[Node, ...]


def positive(fmt: Format) -> Carriers:
    """Every finite float above 0, ascending."""
    return from_ordinals(fmt, np.arange(1, fmt.largest_code + 1))


def scales(fmt: Format) -> tuple[float, float]:
    """The two numbers A that circuits return: 1, and the largest gap between floats of the domain."""
    return 1.0, float(pow2(max(fmt.emax - 3 - fmt.fraction_bits, 0)))


def least_layers(fmt: Format) -> int:
    """Thirteen where the format's exponents are few for its precision: one more level then splits a weight."""
    return LAYERS + (3 * fmt.fraction_bits + 5 > 2 * fmt.emax)


def run_circuit(ctx: Context, circuit: Sequence[Level], y: Carriers) -> list[Carriers]:
    """What reverse mode brings to the nodes of each level: the first level reads y itself."""
    vector = arithmetic(ctx)
    above, found = np.asarray(y, float)[None, :], []
    for level in circuit:
        rows = []
        for node in level:
            total = np.zeros(above.shape[1])
            for k, (i, w) in enumerate(node):
                p = vector.mul(above[i], w)
                total = vector.add(total, p) if k else p
            rows.append(total)
        above = np.array(rows)
        found.append(above)
    return found


def threshold(ctx: Context, place: int, scaled: bool) -> tuple[float, float, float]:
    """(a, b, c) with ((y ⊗ a) ⊗ b) ⊗ c = 0 below the float y₀ of this ordinal, and ω at y₀.

    Rounding is monotone, so that the float below y₀ speaks for all below.  a·b brings a normal y₀ near 2^emin; a = 1
    unless `scaled`.
    """
    fmt, vector = ctx.format, arithmetic(ctx)
    p, omega = fmt.fraction_bits, float(fmt.smallest)
    pair = from_ordinals(fmt, np.array([place - 1, place]))
    down = max(int(np.frexp(pair[1])[1]) - 1 - fmt.emin, 0)
    a, factor = (float(pow2(down // 2 - down)), float(pow2(-(down // 2)))) if scaled else (1.0, float(pow2(-down)))
    start, fractions = vector.mul(pair, a), 1.0 + np.arange(1 << p) / (1 << p)
    numbers = fractions * factor
    for b in numbers[are_numbers(fmt, numbers)]:
        low, high = vector.mul(start, b)
        size = int(np.frexp(high)[1]) - 1
        for shift in (0, -1):
            c = fractions * float(pow2(fmt.emin - p - 1 - size + shift))
            good = (vector.mul(low, c) == 0.0) & (vector.mul(high, c) == omega) & are_numbers(fmt, c)
            if good.any():
                return a, float(b), float(c[np.argmax(good)])
    raise Unsupported(f"no weights are 0 below {pair[1]} and ω there in {fmt}")


def circuit(ctx: Context, place: int) -> tuple[Level, ...]:
    """The circuit of the float y₀ of this ordinal; its last level has a node for each of `scales`."""
    fmt = ctx.format
    p, last = fmt.fraction_bits, place == fmt.largest_code
    small = place < 4 << p  # y₀ < 2^(p + 3)·ω
    a, b, c = threshold(ctx, place, not small)
    passed: Level = (((0, 1.0),),)
    levels: list[Level] = [passed] * (least_layers(fmt) - LAYERS + 3)
    if last:
        levels += [(((0, a),),), (((0, b),),), (((0, c),),), passed]
    else:
        a2, b2, c2 = threshold(ctx, place + 1, not small)
        k = float(pow2(p + 3))
        if small:
            levels = [*without_large(fmt), (((0, b2),), ((0, b),))]
        else:
            levels += [(((0, a2),), ((0, a),)), (((0, b2),), ((1, b),))]
        levels += [(((0, c2),), ((1, c),), ((0, c2),)), (((0, k), (1, 1.0), (2, -k)),)]
    up = float(pow2(fmt.emax))
    return (*levels, (((0, up),),), tuple(((0, scale / (up * float(fmt.smallest))),) for scale in scales(fmt)))


def without_large(fmt: Format) -> list[Level]:
    """Four levels, or five: y where y ≤ 2^(p + 3)·ω, and 0 above.

    Q = y ⊖ (y ⊗ 2^−k) ⊗ 2^k, k = p + 4, is y there, 0 from 2^k·2^emin on, and at most 2^(k−1)·ω between, where
    v = y ⊗ 2^−k is at least ω and at most 2^p·ω: so v ⊖ (v ⊗ 2^−k′) ⊗ 2^k′ with k′ = p + 1 is v, and absorbs Q.
    """
    p = fmt.fraction_bits
    k, k2, total = float(pow2(p + 4)), float(pow2(p + 1)), 2 * p + 4
    part = float(pow2(max(total - fmt.emax, 0)))
    strong, split = float(pow2(total)) / part, least_layers(fmt) > LAYERS
    v: Node = ((1, 1.0), (2, -k2)) if split else ((1, part), (2, -part * k2))
    scaled: list[Level] = [(((0, part),), ((1, 1.0),), ((2, part),))] * split
    return [
        (((0, 1.0),), ((0, 1 / k),)),
        (((0, 1.0), (1, -k)), ((1, 1.0),), ((1, 1 / k2),)),
        (v, ((0, 1.0),), v),
        *scaled,
        (((0, strong), (1, 1.0), (2, -strong)),),
    ]


# -- networks ---------------------------------------------------------------------------------------------


def lowest_weights(fmt: Format, gap: Carriers, gradient: Carriers) -> tuple[Carriers, Carriers]:
    """(which of `scales`, |g| / A), so that the product with γ is finite."""
    small = (gap <= 1.0) | (np.abs(gradient) <= float(pow2(fmt.emax)) / gap)
    return np.where(small, 0, 1), np.where(small, np.abs(gradient), np.abs(gradient) / scales(fmt)[1])


def function_network(
    ctx: Context, xs: Carriers, values: Carriers, gradients: Carriers, size: int | None = None
) -> SparseNetwork:
    """The network for distinct points xs: `gradients[i, j]` is g(xs[i], y) for the j-th float y > 0, and g is odd in y.

    `Unsupported` where the format's exponents do not suffice for a circuit, and for fewer than `least_layers`.
    """
    least = least_layers(ctx.format)
    if size is not None and size < least:
        raise Unsupported(f"{size} layers are too few: {least} are needed")
    build = _Functions(ctx, xs, values, gradients, (size or least) - least)
    hidden = [build.level(k) for k in range(build.levels - 1, -1, -1)]
    layers = (build.base.first(), build.base.second(), *hidden, build.last())
    return constructed(ctx, 1, "relu", layers)


class _Functions:
    """Layers 3 … 11 are the levels of the circuits from the last to the first; the values of the points go beside."""

    def __init__(self, ctx: Context, xs: Carriers, values: Carriers, gradients: Carriers, extra: int) -> None:
        fmt, ones = ctx.format, np.ones(len(xs))
        any_ = (gradients != 0.0).any(axis=1)
        self.fmt, self.n = fmt, len(xs)
        self.base = Builder(ctx, xs, np.zeros(len(xs)), ones, np.where(any_, 1.0, 0.0), False)
        self.level_points = np.flatnonzero(values != 0.0)
        self.values = values[self.level_points]
        used = np.flatnonzero((gradients != 0.0).any(axis=0))
        passed: Level = (((0, 1.0),),)
        self.levels = least_layers(fmt) - APART + extra
        self.circuits = [(passed,) * extra + circuit(ctx, int(j) + 1) for j in used]
        steep = self.base.steep
        which, weight = lowest_weights(fmt, self.base.here.gap[steep, None], gradients[np.ix_(steep, used)])
        self.which = which
        self.weight = weight * np.sign(gradients[np.ix_(steep, used)]) * self.base.here.sign[steep, None]
        self.starts = [self.offsets(k) for k in range(self.levels)]

    def offsets(self, k: int) -> list[int]:
        """Where the nodes of each circuit begin in level k, counted in nodes; the last entry is their number."""
        return np.concatenate([[0], np.cumsum([len(c[k]) for c in self.circuits])]).astype(int).tolist()

    def level(self, k: int) -> Layer:
        """Node i is neuron 2i, and a constant 1 is neuron 2i + 1; then what the values need."""
        rows = Rows()
        for number, each in enumerate(self.circuits):
            for i in range(len(each[k])):
                rows.add(self.readings(number, k, i), 1.0, again=True)
                rows.add([], 1.0, again=True)
        base, below = 2 * self.starts[k][-1], 2 * self.starts[k + 1][-1] if k + 1 < self.levels else 0
        assert base == len(rows.bias)
        self.add_values(rows, self.levels - 1 - k, below)
        return rows.layer()

    def readings(self, number: int, k: int, i: int) -> list[tuple[int, float]]:
        """What the i-th node of a circuit's level reads in the layer below: those to which it brings gradients."""
        if k == self.levels - 1:
            mine = np.flatnonzero((self.which[:, number] == i) & (self.weight[:, number] != 0.0))
            w, t = self.weight[mine, number], len(self.base.steep) + 1 + self.base.steep[mine]
            return [*zip(mine.tolist(), w.tolist()), *zip(t.tolist(), (-w).tolist())]
        begin, found = self.starts[k + 1][number], []
        for j, node in enumerate(self.circuits[number][k + 1]):
            for above, w in node:
                if above == i:
                    found += [(2 * (begin + j), w), (2 * (begin + j) + 1, -w)]
        return found

    def add_values(self, rows: Rows, step: int, below: int) -> None:
        """s in layer 3, the gates in layer 4, |f| behind its gate in layer 5, and that again above."""
        base, most = self.base, float(self.fmt.largest)
        t, size = len(base.steep) + 1, np.abs(self.values)
        for i, point in enumerate(self.level_points.tolist()):
            if step == 0:
                first = 2 * int(base.most - base.doublings[point])
                steps = ladder(self.fmt, base.most)
                terms = [(t + point, float(base.scale[point]))]
                terms += [(t + self.n + k, steps[k]) for k in range(first, len(steps))]
                rows.add(terms, 0.0, again=True)
            elif step == 1:
                rows.add([(below + i, -most)], most, again=True)
            elif step == 2:
                rows.add([(below + i, -1.0)], float(size[i]), again=True)
            else:
                rows.add([(below + i, 1.0)], 0.0, again=True)

    def last(self) -> Layer:
        rows, terms = Rows(), []
        for number, each in enumerate(self.circuits):
            for j, node in enumerate(each[0]):
                place = 2 * (self.starts[0][number] + j)
                terms += [(place, node[0][1]), (place + 1, -node[0][1])]
        base = 2 * self.starts[0][-1]
        rows.add([*terms, *((base + i, float(np.sign(v))) for i, v in enumerate(self.values))], 0.0)
        return rows.layer()
