"""ReLU networks of one input with the values and executed gradients of a whole table: Theorem 3.1 of arXiv 2605.01702.

The paper needs L ≥ 7 affine layers, its released code thirteen; these networks have L ≥ 6 for sums from left to right,
and L ≥ 7 for sums in every order.  For each point z, read as z or, at the powers of two below zero, as −z:

    layer 1   a = ReLU(x ⊖ z⁻), b = ReLU(2x ⊖ 2z), c = ReLU(z ⊖ x)
    layer 2   hat = ReLU(a ⊖ b), t = ReLU(γ ⊖ b ⊖ c), γ = z − z⁻:  both are γ at z and 0 at every other float.
              At z, b and c are flat: the gradient of t is 0; a is not: that of hat passes unchanged to x
    layer 3   n = ReLU(w₃ ⊗ hat ⊖ w₃ ⊗ t ⊕ 1), which is 1 everywhere: w₃ acts on gradients only
              s = ReLU(t ⊗ 1/γ) = 1[x = z].  Where 1/γ exceeds 2^emax, fewer than p pairs ⊕ a_k ⊖ a_k follow from
              left to right, each of which doubles a power of two by a tie to even; or there is one layer more
    layer 4   n = ReLU(w₄ ⊗ n ⊖ w₄ ⊗ 1 ⊕ 1);  gates ReLU(B ⊖ B ⊗ s), which are 0 and flat at z, and B elsewhere
    layer 5   n = ReLU(w₅ ⊗ n ⊖ w₅ ⊗ 1 ⊖ gate ⊕ β), which is β at z and 0 elsewhere;  m = ReLU(|c| ⊖ gate)
    last      Σ n ± m.

At z the value is β ⊕ c = f(z), β = ω or 2ω, and the gradient ((h ⊗ w₅) ⊗ w₄) ⊗ w₃ = g: w₅ and w₄ make a power of two
of h, and w₃ is g over it.  The value m has no gradient, because what depends on x is flat there.  Every weight that an
upstream gradient meets before a flat neuron is 1, so that h may be as large as Ω.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.sparse import Layer, SparseNetwork, constructed
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Format, exactly, pow2
from fpsmt.floats.vector import Carriers, arithmetic, from_ordinals, ordinals

LEAST_LAYERS = 6


def domain(fmt: Format) -> Carriers:
    """X = [−M, M] with M = 2^(emax − 2), every float once (zero as +0), ascending."""
    most = exactly(fmt, pow2(fmt.emax - 2)).ordinal
    return from_ordinals(fmt, np.arange(-most, most + 1))


# -- numbers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """For each point: the sign it is read with, z in that reading, and γ = z − z⁻ ≤ z⁺ − z, a power of two."""

    sign: Carriers
    z: Carriers
    below: Carriers
    gap: Carriers


def places(ctx: Context, xs: Carriers) -> Places:
    fmt = ctx.format
    line = ordinals(fmt, xs)
    step = arithmetic(ctx)
    outer = step.sub(xs, from_ordinals(fmt, line - 1)) > step.sub(from_ordinals(fmt, line + 1), xs)
    sign = np.where(outer, -1.0, 1.0)
    z = sign * xs + 0.0
    below = from_ordinals(fmt, ordinals(fmt, z) - 1)
    gap = step.sub(z, below)
    if not (gap > 0.0).all():
        raise Unsupported(f"in {ctx} the difference of neighbours is 0 at {xs[int(np.argmin(gap > 0.0))]:g}")
    return Places(sign, z, below, gap)


def targets(fmt: Format, gap: Carriers, gradient: Carriers) -> tuple[Carriers, Carriers]:
    """(A, w₃): a power of two and a weight with A ⊗ w₃ = |g| and w₃ ⊗ γ finite.

    A = 1 where |g|·γ is at most 2^emax, else γ, for which |g| / γ is a normal number.
    """
    size = np.abs(gradient)
    with np.errstate(over="ignore"):
        small = (gap <= 1.0) | (size <= float(pow2(fmt.emax)) / gap)
        return np.where(small, 1.0, gap), np.where(small, size, size / gap)


def factors(ctx: Context, upstream: Carriers, target: Carriers, more: int = -3) -> tuple[Carriers, Carriers]:
    """(w₅, w₄) with (|h| ⊗ w₅) ⊗ w₄ = A, each at most 2^(emax + more) and 2^emax; NaN where none was found.

    With h = m·2^k, w₅ is 1 or ¾ times a power of two, so that the significand of q = h ⊗ w₅ is at most 1.5; and the
    floats near A / q are then so dense that the product of one of them with q rounds to A.
    """
    fmt, vector = ctx.format, arithmetic(ctx)
    m, k = np.frexp(np.abs(upstream))
    steps = np.log2(target).astype(np.int64) - (k - 1)
    half = np.floor_divide(steps - 1, 2) + (more == 0)
    first = np.ldexp(np.where(2 * m > 1.5, 0.75, 1.0), half)
    q = vector.mul(np.abs(upstream), first)
    middle = ordinals(fmt, vector.div(target, q))
    second = np.full(q.shape, np.nan)
    for shift in (0, -1, 1, -2, 2):
        w = from_ordinals(fmt, np.clip(middle + shift, 0, fmt.largest_code))
        good = np.isnan(second) & (vector.mul(q, w) == target)
        second = np.where(good, w, second)
    allowed = (first <= float(pow2(fmt.emax + more))) & (second <= float(pow2(fmt.emax)))
    return np.where(allowed, first, np.nan), np.where(allowed, second, np.nan)


def split(ctx: Context, values: Carriers) -> tuple[Carriers, Carriers]:
    """(β, c) with β ⊕ c = v and β > 0 as small as can be: ω, or 2ω where v has an odd last bit worth 2ω."""
    least, vector = float(ctx.format.smallest), arithmetic(ctx)
    exact = np.where(vector.add(values, least) == values, values, vector.sub(values, least))
    small = vector.add(exact, least) == values
    return np.where(small, least, 2 * least), np.where(small, exact, vector.sub(values, 2 * least))


# -- layers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """Rows of one layer: `columns`, `weights` and `kept` (which terms there are) of shape (rows, terms)."""

    columns: NDArray[np.int64]
    weights: Carriers
    bias: Carriers
    kept: NDArray[np.bool_]


def rows_of(terms: Sequence[tuple[Any, Any]], bias: Any, size: int) -> Block:
    """`size` rows from columns and weights, each an array or one number."""
    columns, weights, biases = np.empty((size, len(terms)), np.int64), np.empty((size, len(terms))), np.empty(size)
    for t, (column, weight) in enumerate(terms):
        columns[:, t], weights[:, t] = column, weight
    biases[:] = bias
    return Block(columns, weights, biases, np.ones(columns.shape, bool))


def layer_of(parts: Sequence[Block]) -> Layer:
    return Layer(
        np.concatenate([[0], np.cumsum(np.concatenate([p.kept.sum(axis=1) for p in parts]))]),
        np.concatenate([p.columns[p.kept] for p in parts]),
        np.concatenate([p.weights[p.kept] for p in parts]),
        np.concatenate([p.bias for p in parts]),
    )


def climb(fmt: Format, gap: Carriers) -> tuple[Carriers, NDArray[np.int64]]:
    """(C, d): C ⊗ γ = 2^−d with d as small as a weight C ≤ 2^emax allows."""
    most = float(pow2(fmt.emax))
    with np.errstate(over="ignore"):
        scale = np.minimum(1.0 / gap, most)
    return scale, -np.log2(scale * gap).astype(np.int64)


def ladder(fmt: Format, doublings: int) -> list[float]:
    """a, −a, … that take 2^−doublings to 1 from left to right: a_k = (2^k)⁺ for k = p + 1 − doublings … p."""
    p = fmt.fraction_bits
    steps = [float(pow2(k) + pow2(k - p)) for k in range(p + 1 - doublings, p + 1)]
    return [s for a in steps for s in (a, -a)]


def gate_layer(fmt: Format, points: int, steep: NDArray[np.int64], level: NDArray[np.int64], w4: Carriers) -> Layer:
    """n, 1, and the gates of the n's and of the m's, from n, 1 and s: of the points of each."""
    m, strong, most = len(steep), float(pow2(fmt.emax - 1)), float(fmt.largest)
    s = m + 1 + np.arange(points)
    return layer_of([
        rows_of([(np.arange(m), w4), (m, -w4)], 1.0, m),
        rows_of([], 1.0, 1),
        rows_of([(s[steep], -strong)], strong, m),
        rows_of([(s[level], -most)], most, len(level)),
    ])  # fmt: skip


def end_layer(w5: Carriers, beta: Carriers, left: Carriers) -> Layer:
    """n and m, from n, 1 and gates; if there are none, a zero."""
    m = len(w5)
    gate = m + 1 + np.arange(m + len(left))
    n = rows_of([(np.arange(m), w5), (m, -w5), (gate[:m], -1.0)], beta, m)
    values = rows_of([(gate[m:], -1.0)], np.abs(left), len(left))
    return layer_of([n, values] if len(gate) else [rows_of([], 0.0, 1)])


def needs_order(ctx: Context, xs: Carriers) -> bool:
    """In six layers some sum over these points has to run from left to right."""
    return bool((climb(ctx.format, places(ctx, xs).gap)[1] > 0).any())


def gradient_network(
    ctx: Context,
    xs: Carriers,
    values: Carriers,
    upstream: Carriers,
    gradients: Carriers,
    layers: int = LEAST_LAYERS,
    any_order: bool = False,
) -> SparseNetwork:
    """The network for distinct points xs, with h = `upstream` finite and g = 0 where h = 0.

    `Unsupported` where the format's exponents do not suffice, or where `layers` are too few.
    """
    fmt = ctx.format
    most = float(pow2(fmt.emax - 2))
    far = np.abs(xs) > most
    if far.any():
        raise Unsupported(f"x = {xs[np.argmax(far)]} is outside [−M, M] with M = 2^(emax − 2) = {most:g}")
    build = Builder(ctx, xs, values, upstream, gradients, any_order)
    least = LEAST_LAYERS + build.late
    if layers < least:
        raise Unsupported(f"{layers} layers are too few: {least} are needed")
    built = [build.first(), build.second(), build.third()]
    if build.late:
        built.append(build.fourth())
    built += [build.gates(), build.ends()]
    while len(built) < layers - 1:
        size = built[-1].size
        built.append(layer_of([rows_of([(np.arange(size), 1.0)], 0.0, size)]))
    built.append(build.last())
    return constructed(ctx, 1, "relu", tuple(built))


class Builder:
    """The layers; in each, first the n's of the points with a gradient, then the constant 1, then the rest."""

    def __init__(
        self,
        ctx: Context,
        xs: Carriers,
        values: Carriers,
        upstream: Carriers,
        gradients: Carriers,
        any_order: bool,
    ) -> None:
        self.fmt, self.here, self.n = ctx.format, places(ctx, xs), len(xs)
        self.scale, self.doublings = climb(self.fmt, self.here.gap)
        self.most = int(self.doublings.max())
        self.late = any_order and self.most > 0  #: one more layer makes s
        self.steep = np.flatnonzero(gradients != 0.0)
        self.m = len(self.steep)
        g, h = gradients[self.steep], upstream[self.steep]
        target, w3 = targets(self.fmt, self.here.gap[self.steep], g)
        self.w5, self.w4 = factors(ctx, h, target)
        if np.isnan(self.w5).any():
            lost = h[np.argmax(np.isnan(self.w5))]
            raise Unsupported(f"no two weights of {self.fmt} make a power of two of {lost}")
        self.w3 = np.where((g < 0.0) != (h < 0.0), -w3, w3) * self.here.sign[self.steep]
        left = np.array(values, float) + 0.0
        self.beta, left[self.steep] = split(ctx, left[self.steep])
        self.level = np.flatnonzero(left != 0.0)
        self.left = left[self.level]

    @property
    def ns(self) -> NDArray[np.int64]:
        return np.arange(self.m)

    def first(self) -> Layer:
        """a for the points with a gradient, then b and c for all."""
        s, z = self.here.sign, self.here.z
        return layer_of([
            rows_of([(0, s[self.steep])], -self.here.below[self.steep], self.m),
            rows_of([(0, 2.0 * s)], -2.0 * z, self.n),
            rows_of([(0, -s)], z, self.n),
        ])  # fmt: skip

    def second(self) -> Layer:
        """hat, 1, t, and as many more constants as the longest ladder has steps: no sum reads one twice."""
        b = self.m + np.arange(self.n)
        return layer_of([
            rows_of([(self.ns, 1.0), (b[self.steep], -1.0)], 0.0, self.m),
            rows_of([], 1.0, 1),
            rows_of([(b, -1.0), (b + self.n, -1.0)], self.here.gap, self.n),
            rows_of([], 1.0, 0 if self.late else 2 * self.most),
        ])  # fmt: skip

    def third(self) -> Layer:
        """n, 1, s."""
        t = self.m + 1 + np.arange(self.n)
        terms: list[tuple[Any, Any]] = [(t, self.scale)]
        if not self.late:
            terms += [(self.m + 1 + self.n + k, a) for k, a in enumerate(ladder(self.fmt, self.most))]
        s = rows_of(terms, 0.0, self.n)
        if not self.late:
            s.kept[:, 1:] = np.arange(2 * self.most) >= 2 * (self.most - self.doublings[:, None])
        return layer_of([rows_of([(self.ns, self.w3), (t[self.steep], -self.w3)], 1.0, self.m), rows_of([], 1.0, 1), s])

    def fourth(self) -> Layer:
        """The same, where s is 2^−d until here."""
        s = self.m + 1 + np.arange(self.n)
        return layer_of([
            rows_of([(self.ns, 1.0)], 0.0, self.m),
            rows_of([], 1.0, 1),
            rows_of([(s, np.exp2(self.doublings))], 0.0, self.n),
        ])  # fmt: skip

    def gates(self) -> Layer:
        return gate_layer(self.fmt, self.n, self.steep, self.level, self.w4)

    def ends(self) -> Layer:
        return end_layer(self.w5, self.beta, self.left)

    def last(self) -> Layer:
        weights = np.concatenate([np.ones(self.m), np.sign(self.left)])
        return Layer(np.array([0, len(weights)]), np.arange(len(weights)), weights, np.zeros(1))
