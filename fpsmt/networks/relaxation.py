"""Linear bounds of a network's outputs on boxes of inputs, over all allowed executions (backward substitution).

A network is read as *steps*: x ↦ σ(W x + b) as it is executed.  For a box of inputs and a row c of the outputs,
`Relaxation.minorants` gives a linear function a·x + k with

    c·N(x; s) ≥ a·x + k   for all inputs x of the box and all executions s,

and says that all values of these executions are finite numbers; or it says nothing (k = −∞).

**One step.**  Its executed value is z = W h + b + ε for the executed h, with |ε| ≤ E for every order, fma and place of
the bias: fact 3 of `fpsmt.networks.bounds` for the rounded products (each off by at most p|w h| + η′) and their sum,
with |h| ≤ H; then, for each later rounding, u·M + η with M ≥ |what is rounded|.  When no value that may be met there is
above Ω nothing overflows.  H comes from the bounds of the steps before.

**Backward.**  Let c·y ≥ A·z + k be proved for the executed z of a step.  Then A·z ≥ A W h + A·b − |A|·E.  For what an
activation makes of z′ in [l, u], αz′ + d ≤ h ≤ s z′ + t by the lines of `fpsmt.networks.curves`.  A coefficient A_j ≥ 0
takes the lower line, another one the upper line.  At the inputs a·x ≥ a·c − |a|·r on a box [c − r, c + r].

**Signs.**  A box may come with signs of some units: what is said is then about the pairs (x, s) of an input of the box
and an execution in which z ≤ 0, or z ≥ 0, at each of these units.  0 is then one of the unit's bounds.  A minorant of
z (of −z) is ≤ 0 for all such pairs, which excludes inputs like a row of an unsafe polytope does.  A unit is named by
its number among the values of all steps, a sign by 2·unit + (1 for z ≥ 0), −1 for no sign.

**Arithmetic.**  All this runs in float64, in any order of summation, with or without fma.  ν = (n + 8)·2^−52 bounds the
relative error of sums of n products: |computed − exact| ≤ ν·Σ|terms| (+ underflow), with twice the room that is needed.

* The product A W errs by ν·|A||W| in each column, and its value by at most ν·|A|·(|W|H); A·b errs by ν·|A|·|b|.  Both
  are paid by putting ν(|W|H + |b|) on top of E.
* Σ|A|E is short of the exact sum by a factor 1 − ν at most, and Σ max(A, 0)·d + min(A, 0)·t errs by ν·Σ|A|·(|d| or
  |t|): E is multiplied by 1 + 2ν beforehand, and 2ν|d| and 2ν|t| are taken from d and put on t.  Fewer than 64
  operations on numbers ≥ 0 err by less than 2^−46 of the result, which a factor 1 + 2^−40 pays.
* A_j·1 and A_j·0 are exact.  A_j·s is A_j·s′ for an s′ = s(1 + θ), |θ| ≤ 2^−53: the lines hold for all such s′.
* A coefficient of z to which something was added errs by 2^−53|A|, hence its value by 2^−53|A|(|W|H + |b| + E), for
  which the above has room.
* k is a sum of fewer than 2^10 numbers; each addition errs by 2^−53 of its result: twice that is kept and subtracted.
* Underflow: at most 2^−1022 for each operation, also where results are flushed.  A coefficient that errs so acts on a
  value of at most 2^200 (else nothing is said), and there are fewer than 2^100 of them: 2^−600 in all.
* Coefficients that overflow give k that is not finite, and then nothing is said: an infinity stays one or becomes NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fpsmt.floats import Context, Format, Mode, Overflow, Subnormals
from fpsmt.floats.vector import from_ordinals, ordinals, round_array
from fpsmt.networks.backward import chain, product, substitute
from fpsmt.networks.curves import ROOM, Relu
from fpsmt.networks.interpreter import Executions
from fpsmt.networks.networks import Network
from fpsmt.networks.relaxation_steps import LARGEST, Rounding, Step, read_steps

Array = NDArray[np.float64]
Bounds = tuple[Array, Array]  #: (low, high) of the values of all steps, before their activations: (boxes, units)

TINY = 2.0**-600
CHUNK = 1 << 20  #: coefficients of a matrix held at a time
COARSE = 12  #: with so few bits or fewer, the outputs' own bounds are worth having for their last rounding


def nu(n: int) -> float:
    """ν for sums of n products."""
    return (n + 8) * 2.0**-52


@dataclass
class Box:
    """Boxes of inputs: ends (boxes, inputs)."""

    low: Array
    high: Array

    @cached_property
    def centre(self) -> Array:
        return (self.low + self.high) / 2

    @cached_property
    def radius(self) -> Array:
        """At least the distance from the centre to either end."""
        c = self.centre
        return np.nextafter(np.maximum(self.high - c, c - self.low), np.inf)

    @cached_property
    def reach(self) -> Array:
        """The radius with what float64 needs on top in sums over the inputs."""
        v = nu(self.low.shape[1])
        return np.asarray(self.radius * (1 + 2 * v) + v * (np.abs(self.centre) + self.radius))


@dataclass
class State(Box):
    """What is known of some boxes: for all units (boxes, units) bounds of the values of each step before its
    activation, the lines lower·z + bottom and upper·z + top of the activation, and errors."""

    bounds: Bounds
    lower: Array
    bottom: Array
    upper: Array
    top: Array
    errors: Array  #: E with what float64 needs on top, enlarged
    good: NDArray[np.bool_]  #: where nothing overflows
    outputs: Array  #: at least the sizes of the outputs

    def part(self, which: NDArray[np.intp]) -> State:
        """Some boxes."""
        arrays = {f.name: getattr(self, f.name)[which] for f in fields(self) if f.name != "bounds"}
        return State(bounds=(self.bounds[0][which], self.bounds[1][which]), **arrays)


@dataclass(frozen=True)
class Minorants:
    """a·x + k below rows of outputs: `slopes` (boxes, rows, inputs), `constants` (boxes, rows); −∞ says nothing.

    `through`: the coefficients of what the activation of each unit makes, (boxes, rows, units), for choosing where to
    split.
    """

    slopes: Array
    constants: Array
    through: Array


class Relaxation:
    """Linear bounds of one network under its executions."""

    def __init__(self, network: Network, executions: Executions) -> None:
        self.steps = read_steps(network, executions)
        self.inputs = network.input.size
        self.chain = chain(self.inputs, [(step.weights, step.b) for step in self.steps])
        self.units = int(self.chain.units[-1])
        self.relus = np.repeat([isinstance(s.curve, Relu) for s in self.steps], [s.size for s in self.steps])
        self.turned = [None if s.weights is None else np.ascontiguousarray(s.weights.T) for s in self.steps]
        self.absolute = [None if weights is None else np.abs(weights) for weights in self.turned]

    def of(self, k: int) -> slice:
        """The units of step k."""
        return slice(int(self.chain.units[k]), int(self.chain.units[k + 1]))

    # -- one box after the other --------------------------------------------------------------------------

    def state(
        self, low: Array, high: Array, known: Bounds | None = None, fresh: NDArray[np.int64] | None = None
    ) -> State:
        """The bounds of every step, for boxes (boxes, inputs) of finite ends; `known` bounds are kept where they are
        tighter (they must hold for the inputs that are meant: those of the box, or of some part of it).  Those of the
        steps before `fresh` (boxes) are taken as they are."""
        shape = len(low), self.units
        ends = known or (np.full(shape, -np.inf), np.full(shape, np.inf))
        state = State(low, high, (ends[0].copy(), ends[1].copy()), np.ones(shape), np.zeros(shape), np.ones(shape),
                      np.zeros(shape), np.zeros(shape), np.ones(len(low), dtype=bool),
                      np.zeros((len(low), 0)))  # fmt: skip
        size = np.maximum(np.abs(low), np.abs(high))
        state.good &= np.asarray((size <= LARGEST).all(axis=1))
        for k, step in enumerate(self.steps):
            of = self.of(k)
            before, above, fits = self._sum_error(k, size)
            state.good &= fits
            if k == len(self.steps) - 1 and step.curve is None and not _coarse(step):
                state.errors[:, of] = self._enlarged(k, _last(step, before, above), size)
                size = above if step.last is None else _rounded(step.last, above)[1]
                break
            state.errors[:, of] = self._enlarged(k, before, size)
            self._tighten(state, k, None if fresh is None else fresh <= k)
            bottom, top = (end[:, of] for end in state.bounds)
            np.maximum(top, bottom, out=top)  # no execution has these signs: whatever is said holds
            state.good &= np.asarray((np.isfinite(bottom) & np.isfinite(top)).all(axis=1))
            most = np.maximum(np.abs(bottom), np.abs(top))
            state.errors[:, of] = self._enlarged(k, _last(step, before, above, most), size)
            size = most
            if step.curve is not None:
                v = 2 * nu(step.size)
                lines = step.curve.lines(bottom, top)
                state.lower[:, of], state.bottom[:, of] = lines.lower, lines.bottom - v * np.abs(lines.bottom)
                state.upper[:, of], state.top[:, of] = lines.upper, lines.top + v * np.abs(lines.top)
                size = np.maximum(np.abs(lines.least), np.abs(lines.most))
            state.good &= np.asarray((size <= LARGEST).all(axis=1))  # no NaN either
            size = np.where(state.good[:, None], size, 0.0)
        state.outputs = size
        return state

    def after(self, unit: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first step whose values depend on a unit's activation; 0 for unit −1."""
        return np.searchsorted(self.chain.units, unit, side="right")

    def signed(self, known: Bounds | None, signs: NDArray[np.int64]) -> Bounds | None:
        """Known bounds of boxes with the signs (boxes, any number) of their units."""
        box, at = np.nonzero(signs >= 0)
        if not len(box):
            return known
        shape = len(signs), self.units
        low, high = (np.full(shape, -np.inf), np.full(shape, np.inf)) if known is None else map(np.copy, known)
        unit, positive = signs[box, at] // 2, signs[box, at] % 2 == 1
        np.maximum.at(low, (box[positive], unit[positive]), 0.0)
        np.minimum.at(high, (box[~positive], unit[~positive]), 0.0)
        return low, high

    def sign_minorants(self, state: State, signs: NDArray[np.int64]) -> Minorants:
        """Below z where z ≤ 0, and below −z where z ≥ 0, for each sign (boxes, signs); −∞ where there is none."""
        boxes, count = signs.shape
        slopes, constants = np.zeros((boxes, count, self.inputs)), np.full((boxes, count), -np.inf)
        for k in range(len(self.steps)):
            first = int(self.chain.units[k])
            box, at = np.nonzero((signs >= 2 * first) & (signs < 2 * int(self.chain.units[k + 1])))
            if not len(box):
                continue
            rows = np.zeros((len(box), self.steps[k].size))
            unit, positive = signs[box, at] // 2 - first, signs[box, at] % 2 == 1
            rows[np.arange(len(box)), unit] = np.where(positive, -1.0, 1.0)
            slopes[box, at], constants[box, at] = self.below(state, k, rows, box)
        return Minorants(slopes, constants, np.zeros((boxes, count, 0)))

    def _tighten(self, state: State, k: int, wanted: NDArray[np.bool_] | None) -> None:
        """Bounds of the values of step k that may be tighter, on the wanted boxes: with an activation, those whose sign
        is open or whose lines depend on more than the sign."""
        step = self.steps[k]
        bottom, top = (end[:, self.of(k)] for end in state.bounds)
        open_ = bottom < top
        if isinstance(step.curve, Relu):
            open_ = (bottom < 0) & (top > 0)
        open_ |= ~(np.isfinite(bottom) & np.isfinite(top))
        box, unit = np.nonzero(open_ & (state.good if wanted is None else state.good & wanted)[:, None])
        if not len(box):
            return
        step_size = max(1, CHUNK // (2 * int(self.chain.sizes.max())))
        for at in range(0, len(box), step_size):
            b, i = box[at : at + step_size], unit[at : at + step_size]
            rows = np.zeros((len(b), 2, step.size))
            rows[np.arange(len(b)), 0, i] = 1.0
            rows[np.arange(len(b)), 1, i] = -1.0
            low = self._lower(state, k, rows.reshape(-1, step.size), np.repeat(b, 2))
            least, most = low[::2], -low[1::2]
            if step.last is not None:  # rounding is monotone
                least, most = round_array(step.last.context, least), round_array(step.last.context, most)
            bottom[b, i] = np.fmax(bottom[b, i], least)
            top[b, i] = np.fmin(top[b, i], most)

    def _lower(self, state: State, k: int, rows: Array, box: NDArray[np.intp]) -> Array:
        """Lower bounds of rows·z for the values z of step k (before its last rounding)."""
        slopes, constant, size = self._back(state, k, rows, box)
        at = np.einsum("rn,rn->r", slopes, state.centre[box])
        off = np.einsum("rn,rn->r", np.abs(slopes), state.reach[box])
        low = constant + at
        size = size + np.abs(low)
        low = low - off
        size = size + np.abs(low)
        return _sure(low, size)

    def _back(
        self, state: State, k: int, rows: Array, box: NDArray[np.intp], through: Array | None = None,
        added: Array | None = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """(a, k, size): rows·z ≥ a·x + k − 2^−52·size for the values z of step k before its last rounding, whose error
        is in `state.errors` if it is to be counted; `added`·z of all units is part of what is bounded."""
        added = np.zeros((0, self.units)) if added is None else added
        through = np.zeros((0, self.units)) if through is None else through
        lines = state.lower, state.bottom, state.upper, state.top
        found = np.zeros((len(rows), self.inputs)), np.zeros(len(rows)), np.zeros(len(rows))
        substitute(np.ascontiguousarray(rows), box, k, *self.chain, state.errors, *lines, through, added, *found)
        return found

    # -- rows of the outputs ------------------------------------------------------------------------------

    def minorants(self, state: State, rows: Array) -> Minorants:
        """Below each row (rows, outputs) times the outputs, on each box: those of three choices of the lower lines of
        relus whose least value on the box is greatest."""
        open_ = self.relus & (state.top > 0.0)  # any slope of [0, 1] is right
        lower = state.lower, np.where(open_, 0.0, state.lower), np.where(open_, 1.0, state.lower)
        found = [self._minorants(replace(state, lower=each), rows) for each in lower]
        c, r = state.centre, state.radius
        least = [m.constants + np.einsum("brn,bn->br", m.slopes, c) - np.einsum("brn,bn->br", np.abs(m.slopes), r)
                 for m in found]  # fmt: skip
        best = np.stack(least).argmax(axis=0)[:, :, None]
        slopes, constants, through = (
            np.where(best == 0, each[0], np.where(best == 1, each[1], each[2]))
            for each in ([m.slopes for m in found], [m.constants[:, :, None] for m in found],
                         [m.through for m in found])
        )  # fmt: skip
        return Minorants(slopes, constants[:, :, 0], through)

    def _minorants(self, state: State, rows: Array) -> Minorants:
        boxes, count = len(state.low), len(rows)
        through = np.zeros((boxes * count, self.units))
        box = np.repeat(np.arange(boxes), count)
        a, k = self.below(state, len(self.steps) - 1, np.tile(rows, (boxes, 1)), box, through)
        shape = (boxes, count)
        return Minorants(a.reshape(*shape, -1), k.reshape(shape), through.reshape(*shape, -1))

    def below(
        self, state: State, k: int, rows: Array, box: NDArray[np.intp], through: Array | None = None,
        added: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(a, k) with rows·z + added·(all z) ≥ a·x + k for the values z of step k, on the box of each row; k = −∞ says
        nothing.  `through` (rows, units) receives coefficients, as in `Minorants`."""
        a, constant, size = self._back(state, k, rows, box, through, added)
        good = state.good[box] & np.isfinite(a).all(axis=1)
        return np.where(good[:, None], a, 0.0), np.where(good, _sure(constant, size), -np.inf)

    # -- errors -------------------------------------------------------------------------------------------

    def _sum_error(self, k: int, size: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """(E, M, good) after all roundings but the last: |error| ≤ E, |value| ≤ M, and nothing overflows so far."""
        step, n = self.steps[k], int(self.chain.sizes[k])
        absolute = self.absolute[k]
        terms = (size if absolute is None else product(size, absolute)) * (1 + 2 * nu(n))
        p, tiny = step.product
        growth, eta = step.growth
        leaves = (1 + p) * terms + np.abs(step.bias) + n * tiny
        rest = step.leaves * eta * (1 + growth)
        error = (p * terms + n * tiny + growth * leaves + rest) * ROOM + 2.0**-1000
        most = (leaves * (1 + growth) + rest) * ROOM + 2.0**-1000
        good = (most <= step.largest).all(axis=1)
        for rounding in step.inner:
            more, most = _rounded(rounding, most)
            error = (error + more) * ROOM
            good &= (most <= rounding.largest).all(axis=1)
        if step.last is not None:
            good &= (_rounded(step.last, most)[1] <= step.last.largest).all(axis=1)
        return error, most, np.asarray(good)

    def _enlarged(self, k: int, error: Array, inputs: Array) -> Array:
        """E with ν(|W|H + |b|) on top, and enlarged so that the sums Σ|A|E are not short."""
        step, absolute = self.steps[k], self.absolute[k]
        v = nu(max(step.size, int(self.chain.sizes[k])))
        terms = (inputs if absolute is None else product(inputs, absolute)) * (1 + 2 * v) + np.abs(step.b)
        return (error + v * terms) * ROOM * (1 + 2 * v) + 2.0**-1000


def _coarse(step: Step) -> bool:
    return step.last is not None and step.last.context.format.precision <= COARSE


def _rounded(rounding: Rounding, size: Array) -> tuple[Array, Array]:
    """The error of a rounding of values of at most this size, and a bound of the results."""
    before = size if rounding.shift is None else size + np.abs(rounding.shift)
    error = (rounding.u * before + rounding.eta) * ROOM
    return error, (before + error) * ROOM


def _last(step: Step, error: Array, size: Array, result: Array | None = None) -> Array:
    """E with the last rounding, of something of at most this size before its shift, and with results of at most this
    size: v with |v| > 2η rounds to at least (1 − u)|v| − η, so that |v| ≤ (result + η)/(1 − u) ≤ (result + η)(1 + 4u)
    for u ≤ 1/2."""
    if step.last is None:
        return error
    more, _ = _rounded(step.last, size)
    if result is not None:
        before = (result + step.last.eta) * (1 + 4 * step.last.u) * ROOM
        more = np.minimum(more, (step.last.u * before + step.last.eta) * ROOM)
    return (error + more) * ROOM


def _sure(low: Array, size: Array) -> Array:
    """k with its own rounding errors subtracted; −∞ where it is not finite."""
    with np.errstate(invalid="ignore"):
        low = low - (2.0**-51 * size * ROOM + TINY)
    return np.where(np.isfinite(low) & np.isfinite(size), low, -np.inf)


def halves(fmt: Format, low: Array, high: Array) -> tuple[Array, Array]:
    """(m, m⁺) with low ≤ m < m⁺ ≤ high, values of the format and neighbours, where low < high: no value is lost."""
    down = Context(fmt, Mode.RTN, Overflow.SATURATE, Subnormals.GRADUAL)
    middle = round_array(down, low / 2 + high / 2)
    middle = np.where((middle >= low) & (middle < high), middle, low)
    return middle, np.asarray(from_ordinals(fmt, ordinals(fmt, middle) + 1), dtype=np.float64)
