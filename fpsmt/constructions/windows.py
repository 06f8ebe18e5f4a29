"""Detectors by rounding alone: for the identity, and for bounded activations such as sin.

A feature u(x) takes a value u* at x* only.  Two sums with constants K < K′ that are neighbours round alike at every
value of the feature but u*, so that the difference of the two is 0 except at x*:

* bounded: h = I((s⊗u ⊕ K) ⊕ η), u = I(W⊗x ⊕ B), K from a constant neuron; s⊗u* ⊕ K is at the boundary of rounding
  beside η, whose spacing g is four times the binade of s⊗u*.  The pattern repeats at the distance g/s; where u* has an
  odd last significand bit, larger floats do not hit it, or few do.
* cancelling (identity): h = (t ⊕ η) ⊖ (t ⊕ K), t = W⊗x: t ⊕ η is η near t* and cancels t far from it, so that the sum
  stays bounded and its difference can be scaled up to 1 by the third layer.
* amplified (identity): as bounded; the difference is small, and a fourth hidden layer scales it up.

Where a window differs is computed for all values of the format, and a feature is used for x* only if it takes none of
the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from fpsmt.constructions.ending import finish, returns
from fpsmt.constructions.shape import Shape, remembered
from fpsmt.constructions.sparse import Layer, Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, round_array

SMALL_BITS = 8  #: formats in which all windows are tried
MOST_DIFFERENCES = 16
MOST_WINDOWS = 64  #: that are kept for one value


@dataclass(frozen=True)
class Window:
    """Two sums that differ at u* only, among a feature's values: constants low and high, η, spacing g, weight s."""

    s: float
    low: float
    high: float
    eta: float
    gap: float


@dataclass
class Windows:
    """Windows by u*, with the other values of the format at which they differ."""

    shape: Shape
    cancelling: bool
    reach: float  #: features stay within it
    fixed_eta: float | None = None  #: with its spacing, for all windows
    fixed_gap: float = 0.0
    known: dict[float, list[tuple[Window, Carriers]]] = field(default_factory=dict)

    def at(self, u: float) -> list[tuple[Window, Carriers]]:
        if self.shape.format.bits <= SMALL_BITS:
            if not self.known:
                self._try_all()
            return self.known.get(u, [])
        if u not in self.known:
            self.known[u] = [pair for w in self._tried(u) if (pair := self._checked(u, w)) is not None]
        return self.known[u]

    def _tried(self, u: float) -> Iterator[Window]:
        fmt = self.shape.format
        e = max(int(np.frexp(u)[1]) - 1, fmt.emin)
        ulp = float(np.ldexp(1.0, e - fmt.fraction_bits))
        gap = float(np.ldexp(1.0, e + 2)) if self.fixed_eta is None else self.fixed_gap
        s = 1.0 if self.fixed_eta is None else gap / float(np.ldexp(1.0, e + 2))
        odd = 2.0 ** (fmt.precision - 1) + 2.0 ** (fmt.precision - 2) - 1
        etas = [odd * gap, (odd - 1) * gap, -odd * gap, (1 - odd) * gap]
        for eta in etas if self.fixed_eta is None else [self.fixed_eta]:
            for before in (s * ulp, 0.0):  # ties at η go up, or down
                low = gap / 2 - s * u - before
                yield Window(s, low, low + s * ulp, eta, gap)

    def _try_all(self) -> None:
        """Every η and every two neighbouring constants; those that differ at few values."""
        shape, fmt = self.shape, self.shape.format
        line = shape.line[np.abs(shape.line) <= self.reach]
        ks = shape.line[np.abs(shape.line) < np.inf]
        etas = ks[np.abs(ks) >= 2.0**fmt.emin] if self.fixed_eta is None else np.array([self.fixed_eta])
        scales = [1.0] if self.fixed_eta is None else np.ldexp(1.0, np.arange(fmt.emin, fmt.emax + 1)).tolist()
        for s in scales:
            moved = shape.mul(s, line)[None, :]
            shifted = shape.add(moved, ks[:, None])
            for eta in etas.tolist():
                sums = shape.add(shape.add(moved, eta), -shifted) if self.cancelling else shape.add(shifted, eta)
                finite = np.isfinite(sums)
                differ = (sums[1:] != sums[:-1]) | ~finite[1:] | ~finite[:-1]
                for i in np.flatnonzero(differ.any(axis=1) & (differ.sum(axis=1) <= MOST_DIFFERENCES)).tolist():
                    window = Window(s, float(ks[i]), float(ks[i + 1]), eta, 0.0)
                    self._keep(line, sums[i], sums[i + 1], differ[i], window)
        for pairs in self.known.values():
            pairs.sort(key=lambda pair: len(pair[1]))
            del pairs[MOST_WINDOWS:]

    def _keep(self, line: Carriers, one: Carriers, other: Carriers, differ: Carriers, w: Window) -> None:
        for at in np.flatnonzero(differ).tolist():
            if not (np.isfinite(one[at]) and np.isfinite(other[at])):
                continue
            gap = abs(float(other[at] - one[at]))
            if not 0 < gap < np.inf or 2 / gap > self.shape.largest or np.frexp(gap)[0] != 0.5:
                continue
            if self.fixed_eta is not None and (one[at], other[at]) != (w.eta, w.eta + self.fixed_gap):
                continue
            others = line[differ & (np.arange(len(line)) != at)]
            self.known.setdefault(float(line[at]), []).append((w, others))

    def _checked(self, u: float, w: Window) -> tuple[Window, Carriers] | None:
        shape = self.shape
        parameters = np.array([w.s, w.low, w.high, w.eta])
        exact = np.abs(parameters) <= shape.largest
        if not exact.all() or (round_array(shape.context, parameters) != parameters).any():
            return None
        line = shape.line[np.abs(shape.line) <= self.reach]
        one, other = (self.sums(line, k, w) for k in (w.low, w.high))
        differ = (one != other) | ~np.isfinite(one) | ~np.isfinite(other)
        at = int(np.searchsorted(line, u))
        if not differ[at] or abs(one[at] - other[at]) != w.gap:
            return None
        if self.fixed_eta is not None and {float(one[at]), float(other[at])} != {w.eta, w.eta + w.gap}:
            return None
        differ[at] = False
        return w, line[differ]

    def sums(self, u: Carriers, k: float, w: Window) -> Carriers:
        shape = self.shape
        if self.cancelling:
            return shape.add(shape.add(u, w.eta), -shape.add(u, k))
        return shape.add(shape.add(shape.mul(w.s, u), k), w.eta)


@dataclass
class Chosen:
    """For each input: its feature (W, B), u* and the window."""

    weight: Carriers
    bias: Carriers
    value: Carriers
    window: list[Window | None]


def choose(
    shape: Shape, axis: Carriers, windows: Windows, pairs: Iterator[tuple[float, float]], wanted: float
) -> Chosen:
    """A feature and a window for every input; `wanted` is the exponent up to which u* is preferred."""
    n = len(axis)
    out = Chosen(np.zeros(n), np.zeros(n), np.zeros(n), [None] * n)
    left = np.ones(n, bool)
    later: list[tuple[float, float]] = []
    for attempt in (0, 1):
        for w, b in pairs if attempt == 0 else later:
            if not left.any():
                return out
            later += [(w, b)] if attempt == 0 else []
            z = shape.add(shape.mul(w, axis), b)
            if not np.isfinite(z).all():
                continue
            u = shape.apply(z)
            values, first, counts = np.unique(u, return_index=True, return_counts=True)
            fit = left[first] & (counts == 1) & (values != 0) & np.isfinite(values)
            if windows.cancelling and shape.format.bits > SMALL_BITS:
                fit &= values > 0
            size = np.abs(np.where(fit, values, 1.0))
            e = np.maximum(np.frexp(size)[1] - 1, shape.format.emin)
            if shape.format.bits > SMALL_BITS:
                fit &= np.ldexp(size, shape.format.fraction_bits - e) % 2 == 1
                if attempt == 0:
                    fit &= e <= wanted
            for j in np.flatnonzero(fit).tolist():
                i, value = int(first[j]), float(values[j])
                mirrored = windows.fixed_eta is not None and value < 0  # by the sign of s
                for window, others in windows.at(-value if mirrored else value):
                    mine = -others if mirrored else others
                    places = np.searchsorted(values, mine)
                    if not (values[np.minimum(places, len(values) - 1)] == mine).any():
                        out.weight[i], out.bias[i], out.value[i], out.window[i] = w, b, value, window
                        left[i] = False
                        break
    if left.any():
        raise Unsupported(
            f"{shape.implementation.text} in {shape.format}: no feature singles out {axis[int(np.argmax(left))]} by "
            f"rounding ({int(left.sum())} of {n} inputs are left)"
        )
    return out


def _pairs(shape: Shape, biases: list[float]) -> Iterator[tuple[float, float]]:
    """Features: all weights of a small format; else numbers of few bits times powers of two, of both signs."""
    fmt = shape.format
    zero = float(shape.smallest * (2**fmt.precision - 1))
    yield 1.0, zero
    if fmt.bits <= SMALL_BITS:
        line = shape.line[(shape.line > 0) & (shape.line <= 1.0)][::-1].tolist()
    else:
        p = fmt.precision
        near = [1 - 2.0**-j for j in range(p, 1, -1)] + [1 + 2.0**-j for j in range(p - 1, 0, -1)]
        mantissas = [1.0, *near, *(m / 16 for m in range(17, 32, 2))]
        line = [m * 2.0**-k for m in mantissas[: p // 2 + 2] for k in range(fmt.emax - fmt.emin + p)]
        line += [m * 2.0**-k for m in mantissas[p // 2 + 2 :] for k in range(fmt.emax - fmt.emin + p)]
        line = [w for w in line if w <= 1.0 and float(round_array(shape.context, [w])[0]) == w and w > 0]
    for b in biases:
        for w in line:
            yield w, b
            yield -w, b


def identity_windows(shape: Shape, points: Carriers, values: Carriers) -> tuple[Layer, ...]:
    """Four layers for the identity and one input; five where four are not enough: at 0, and in small formats."""
    axis = _one_input(shape, points)
    if not np.array_equal(shape.apply(axis), axis):
        raise Unsupported(f"{shape.implementation.text} is not the identity on the inputs")
    if (values[axis == 0] == 0).all():
        try:
            return _identity(shape, axis, values, True)
        except Unsupported:
            pass
    return _identity(shape, axis, values, False)


def _identity(shape: Shape, axis: Carriers, values: Carriers, cancelling: bool) -> tuple[Layer, ...]:
    fmt = shape.format
    windows = Windows(shape, cancelling, float(np.abs(axis).max()))
    needed = axis != 0 if cancelling else np.ones(len(axis), bool)
    pairs = ((w, b) for w, b in _pairs(shape, [0.0]) if b == 0.0 or not cancelling)
    chosen = remembered(
        (shape.key(axis[needed]), cancelling), lambda: choose(shape, axis[needed], windows, pairs, 2 - fmt.precision)
    )
    place = np.cumsum(needed) - 1
    first, second, third, top = Rows(), Rows(), Rows(), Rows()
    one = None if cancelling else first.add([], 1.0)

    def detector(point: int, choice: int, again: bool) -> int:
        i = int(place[point])
        window, w, b = chosen.window[i], float(chosen.weight[i]), float(chosen.bias[i])
        assert window is not None
        if one is None:
            near = first.add([(0, w)], window.eta)
            pair = [second.add([(near, 1.0), (first.add([(0, w)], k), -1.0)]) for k in (window.low, window.high)]
        else:
            u = first.add([(0, w)], b)
            pair = [second.add([(one, k), (u, 1.0)], window.eta) for k in (window.low, window.high)]
        ends = [float(windows.sums(np.array([chosen.value[i]]), k, window)[0]) for k in (window.low, window.high)]
        a = (1.0, 2.0)[choice] / (ends[1] - ends[0])
        if cancelling:
            return top.add(sorted([(pair[0], -a), (pair[1], a)]), 0.0, again)
        return top.add([(third.add(sorted([(pair[0], -1.0), (pair[1], 1.0)])), a)], 0.0, again)

    last = finish(shape, values, [1.0, 2.0], detector, len(axis))
    hidden = [first, second, top] if cancelling else [first, second, third, top]
    return (*(rows.layer() for rows in hidden), last)


def bounded_windows(shape: Shape, points: Carriers, values: Carriers) -> tuple[Layer, ...]:
    """Four layers for one input and a bounded activation."""
    axis = _one_input(shape, points)
    inner = shape.outputs[np.isfinite(shape.line)]
    if not np.isfinite(inner).all() or np.abs(inner).max() > 8.0 or float(shape.apply(0.0)) != 0.0:
        raise Unsupported(f"{shape.implementation.text} is not bounded by a small number and 0 at 0")
    beta = _constant(shape)
    reasons = ["there is no separation point"]
    for eta, gap in _separations(shape)[:3]:
        try:
            return _bounded(shape, axis, values, eta, gap, beta, float(np.abs(inner).max()))
        except Unsupported as reason:
            reasons.append(str(reason))
    raise Unsupported(reasons[-1])


def _bounded(
    shape: Shape, axis: Carriers, values: Carriers, eta: float, gap: float, beta: float, reach: float
) -> tuple[Layer, ...]:
    fmt = shape.format
    windows = Windows(shape, False, reach, eta, gap)
    steps = (1.0, 1.25, 1.5, 1.75) if fmt.bits <= SMALL_BITS else (1.0, 1.5)
    biases = [0.0, *(s * m * 2.0**e for e in range(0, -4, -1) for m in steps for s in (1.0, -1.0))]
    factors = shape.line[(shape.line > 0) & np.isfinite(shape.mul(shape.line, max(reach, 1.0)))]
    back = shape.add(shape.mul(factors, shape.apply(eta + gap)), -shape.mul(factors, shape.apply(eta)))
    inputs, which = np.unique(back, return_index=True)
    choices = returns(shape, inputs)
    if not choices:
        raise Unsupported(f"{shape.implementation.text}: no factor of the third layer gives a usable result")
    finish(shape, values, [r for _, r in choices], lambda point, choice, again: point, len(axis))  # are they enough?
    chosen = remembered((shape.key(axis), eta), lambda: choose(shape, axis, windows, _pairs(shape, biases), -6))
    factor = {z: float(factors[i]) for z, i in zip(inputs.tolist(), which.tolist(), strict=True)}
    first, second, top = Rows(), Rows(), Rows()
    constant, c = float(shape.apply(beta)), first.add([], beta)

    def detector(point: int, choice: int, again: bool) -> int:
        window = chosen.window[point]
        assert window is not None
        u = first.add([(0, float(chosen.weight[point]))], float(chosen.bias[point]))
        s = window.s * float(np.sign(chosen.value[point]))
        pair = [second.add([(c, k / constant), (u, s)] if k else [(u, s)], eta) for k in (window.low, window.high)]
        a = factor[choices[choice][0]]
        return top.add(sorted([(pair[0], -a), (pair[1], a)]), 0.0, again)

    last = finish(shape, values, [r for _, r in choices], detector, len(axis))
    return first.layer(), second.layer(), top.layer(), last


def _one_input(shape: Shape, points: Carriers) -> Carriers:
    if points.shape[1] != 1:
        raise Unsupported("this construction is for one input")
    if not shape.listed:
        raise Unsupported(f"{shape.format} has too many values to compare windows at all of them")
    return points[:, 0]


def _constant(shape: Shape) -> float:
    """β with I(β) = β a power of two, or another power of two."""
    line = shape.line[(shape.line > 0) & (shape.line <= 4.0)][::-1]
    results = shape.apply(line)
    exact = np.flatnonzero((np.frexp(np.where(results > 0, results, 3.0))[0] == 0.5) & (results > 0))
    if not len(exact):
        raise Unsupported("the activation never returns a power of two, which constants are made of")
    return float(line[exact[0]])


def _separations(shape: Shape) -> list[tuple[float, float]]:
    """(η, spacing): I differs at η and the next float; η has an odd significand, inside a binade."""
    fmt, found = shape.format, []
    for e in (-1, 0, 1, -2):
        gap = float(np.ldexp(1.0, e - fmt.fraction_bits))
        line = np.ldexp(1.0, e) + gap * (2 * np.arange(0, 1 << (fmt.precision - 2)) + 1)
        rise = shape.apply(line + gap) - shape.apply(line)
        good = np.flatnonzero(rise > 0)
        found += [(float(line[i]), gap) for i in good[np.argsort(np.abs(rise[good] - gap), kind="stable")][:1]]
    return found


