"""ReLU networks of several inputs with the values and executed gradients of a table: Theorem 3.1 of arXiv 2605.01702.

Seven layers for d inputs, by the parts of `gradient_tables` for each coordinate of each point:

    layer 1, 2   hat and t for each number that occurs as a coordinate: γ there, 0 at every other float
    layer 3      n = 1, for each point and each coordinate in which its gradient is not 0, by w₃;  s′ = t ⊗ C = 2^−k
    layer 4      n;  s = ReLU(Σ 2^k ⊗ s′ − (d − 1)), over the d coordinates of a point: 1 there, 0 elsewhere
    layer 5, 6   w₄, w₅ and the gates as for one input: at its point n is β, elsewhere 0; m is |c|
    last         Σ ± n ± m: from left to right the n of a point add up to β, or to 0 if they are even in number.

At a point the gradient of coordinate i comes back through its n alone, and passes hat unchanged to the input i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.gradient_tables import (
    climb,
    end_layer,
    factors,
    gate_layer,
    layer_of,
    places,
    rows_of,
    split,
    targets,
)
from fpsmt.constructions.sparse import Layer, SparseNetwork, constructed
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, pow2
from fpsmt.floats.vector import Carriers

LAYERS = 7


def vector_network(
    ctx: Context, xs: Carriers, values: Carriers, upstream: Carriers, gradients: Carriers
) -> SparseNetwork:
    """The network for distinct points xs of shape (n, d), with gradients of that shape, which are 0 where h = 0.

    `Unsupported` where a coordinate is outside [−M, M], M = 2^(emax − 2), or the format's exponents do not suffice.
    """
    most = float(pow2(ctx.format.emax - 2))
    if (np.abs(xs) > most).any():
        raise Unsupported(f"a coordinate is outside [−M, M] with M = 2^(emax − 2) = {most:g}")
    build = _Vectors(ctx, xs, np.asarray(values, float) + 0.0, upstream, gradients)
    layers = (build.first(), build.second(), build.third(), build.fourth(), build.gates(), build.ends(), build.last())
    return constructed(ctx, xs.shape[1], "relu", layers)


class _Vectors:
    """`axis` lists the numbers of each coordinate; `place[p, i]` is where point p has its coordinate i there."""

    def __init__(self, ctx: Context, xs: Carriers, values: Carriers, upstream: Carriers, gradients: Carriers) -> None:
        self.fmt, (self.n, self.d) = ctx.format, xs.shape
        found = [np.unique(xs[:, i], return_inverse=True) for i in range(self.d)]
        starts = np.cumsum([0, *(len(line) for line, _ in found)])
        self.place = np.stack([start + inverse for start, (_, inverse) in zip(starts, found)], axis=1)
        self.coordinate = np.repeat(np.arange(self.d), [len(line) for line, _ in found])
        self.here, self.axis = places(ctx, np.concatenate([line for line, _ in found])), int(starts[-1])
        self.scale, self.doublings = climb(self.fmt, self.here.gap)
        self.point, which = np.nonzero(gradients)
        self.at, self.m = self.place[self.point, which], len(which)
        g, h = gradients[self.point, which], upstream[self.point]
        target, w3 = targets(self.fmt, self.here.gap[self.at], g)
        self.w5, self.w4 = factors(ctx, h, target)
        if np.isnan(self.w5).any():
            raise Unsupported(f"no two weights of {self.fmt} make a power of two of {h[np.argmax(np.isnan(self.w5))]}")
        counts = np.bincount(self.point, minlength=self.n)
        rank = np.arange(self.m) - np.repeat(np.cumsum(counts) - counts, counts)
        self.sign = np.where(rank % 2 == 0, 1.0, -1.0)
        self.w3 = np.where((g < 0.0) != (h < 0.0), -w3, w3) * self.here.sign[self.at] * self.sign
        beta, left = split(ctx, values)
        left = np.where(counts % 2 == 1, left, values)
        self.beta, self.level = beta[self.point], np.flatnonzero(left != 0.0)
        self.left = left[self.level]

    @property
    def ns(self) -> NDArray[np.int64]:
        return np.arange(self.m)

    def first(self) -> Layer:
        """a, b, c for each number of the axes."""
        s, z, c = self.here.sign, self.here.z, self.coordinate
        return layer_of([
            rows_of([(c, s)], -self.here.below, self.axis),
            rows_of([(c, 2.0 * s)], -2.0 * z, self.axis),
            rows_of([(c, -s)], z, self.axis),
        ])  # fmt: skip

    def second(self) -> Layer:
        """hat, 1, t."""
        k, axis = np.arange(self.axis), self.axis
        return layer_of([
            rows_of([(k, 1.0), (axis + k, -1.0)], 0.0, axis),
            rows_of([], 1.0, 1),
            rows_of([(axis + k, -1.0), (2 * axis + k, -1.0)], self.here.gap, axis),
        ])  # fmt: skip

    def third(self) -> Layer:
        """n, 1, s′."""
        t = self.axis + 1 + np.arange(self.axis)
        return layer_of([
            rows_of([(self.at, self.w3), (t[self.at], -self.w3)], 1.0, self.m),
            rows_of([], 1.0, 1),
            rows_of([(t, self.scale)], 0.0, self.axis),
        ])  # fmt: skip

    def fourth(self) -> Layer:
        """n, 1, s."""
        terms = [(self.m + 1 + self.place[:, i], np.exp2(self.doublings[self.place[:, i]])) for i in range(self.d)]
        return layer_of([
            rows_of([(self.ns, 1.0)], 0.0, self.m), rows_of([], 1.0, 1), rows_of(terms, 1.0 - self.d, self.n)
        ])  # fmt: skip

    def gates(self) -> Layer:
        return gate_layer(self.fmt, self.n, self.point, self.level, self.w4)

    def ends(self) -> Layer:
        return end_layer(self.w5, self.beta, self.left)

    def last(self) -> Layer:
        weights = np.concatenate([self.sign, np.sign(self.left)])
        return Layer(np.array([0, len(weights)]), np.arange(len(weights)), weights, np.zeros(1))
