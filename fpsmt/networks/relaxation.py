"""Linear bounds of a network's outputs on boxes of inputs, over all allowed executions (backward substitution).

A network is read as *steps*: x ↦ relu(W x + b) as it is executed.  For a box of inputs and a row c of the outputs,
`Relaxation.minorants` gives a linear function a·x + k with

    c·N(x; s) ≥ a·x + k   for all inputs x of the box and all executions s,

and says that all values of these executions are finite numbers; or it says nothing (k = −∞).

**One step.**  Its executed value is z = W h + b + ε for the executed h, with |ε| ≤ E for every order, fma and place of
the bias: fact 3 of `fpsmt.networks.bounds` for the rounded products (each off by at most p|w h| + η′) and their sum,
with |h| ≤ H; then, for each later rounding, u·M + η with M ≥ |what is rounded|.  When no value that may be met there is
above Ω nothing overflows.  H comes from the bounds of the steps before.

**Backward.**  Let c·y ≥ A·z + k be proved for the executed z of a step.  Then A·z ≥ A W h + A·b − |A|·E.  For h =
relu(z′) with z′ in [l, u]: h = 0 if u ≤ 0, h = z′ if l ≥ 0, and else αz′ ≤ h ≤ s z′ + t for any α of {0, 1}, any s of
[0, 1] and t ≥ max(−s l, (1 − s)u), because h − s z′ is convex in z′ and is at most that at both ends.  A coefficient
A_j ≥ 0 takes the lower line, another one the upper line.  At the inputs a·x ≥ a·c − |a|·r on a box [c − r, c + r].

**Signs.**  A box may come with signs of some units: what is said is then about the pairs (x, s) of an input of the box
and an execution in which z ≤ 0, or z ≥ 0, at each of these units.  0 is then one of the unit's bounds.  A minorant of
z (of −z) is ≤ 0 for all such pairs, which excludes inputs like a row of an unsafe polytope does.  A unit is named by
its number among all units with a relu, a sign by 2·unit + (1 for z ≥ 0), −1 for no sign.

**Arithmetic.**  All this runs in float64, in any order of summation, with or without fma.  ν = (n + 8)·2^−52 bounds the
relative error of sums of n products: |computed − exact| ≤ ν·Σ|terms| (+ underflow), with twice the room that is needed.

* The product A W errs by ν·|A||W| in each column, and its value by at most ν·|A|·(|W|H); A·b errs by ν·|A|·|b|.  Both
  are paid by putting ν(|W|H + |b|) on top of E.
* Sums Σ|A|E and Σ min(A, 0)·t of terms of one sign are short of the exact ones by a factor 1 − ν at most: E and t are
  multiplied by 1 + 2ν beforehand.  Fewer than 64 operations on numbers ≥ 0 err by less than 2^−46 of the result,
  which a factor 1 + 2^−40 pays.
* A_j·1 and A_j·0 are exact.  A_j·s is A_j·s′ for an s′ = s(1 + θ), |θ| ≤ 2^−53: t is taken for all such s′.
* k is a sum of fewer than 2^10 numbers; each addition errs by 2^−53 of its result: twice that is kept and subtracted.
* Underflow: at most 2^−1022 for each operation, also where results are flushed.  A coefficient that errs so acts on a
  value of at most 2^200 (else nothing is said), and there are fewer than 2^100 of them: 2^−600 in all.
* Coefficients that overflow give k that is not finite, and then nothing is said: an infinity stays one or becomes NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Format, Mode, Overflow, Subnormals, pow2
from fpsmt.floats.vector import arithmetic, embeds, from_ordinals, ordinals, round_array
from fpsmt.functions import CorrectlyRounded
from fpsmt.networks.executions import Execution
from fpsmt.networks.growth import float_up, sum_growth
from fpsmt.networks.interpreter import Executions, execution_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Input, Node, Select

Array = NDArray[np.float64]
Bounds = list[tuple[Array, Array]]  #: for each step (low, high) of what its activation reads, (boxes, size)

LARGEST = 2.0**200  #: values above this are not spoken of
ROOM = 1.0 + 2.0**-40
TINY = 2.0**-600
MOST_LINES = 16  #: inputs for which shares are found by line searches too
CHUNK = 1 << 20  #: coefficients of a matrix held at a time
COARSE = 12  #: with so few bits or fewer, the outputs' own bounds are worth having for their last rounding


def nu(n: int) -> float:
    """ν for sums of n products."""
    return (n + 8) * 2.0**-52


@dataclass(frozen=True)
class Rounding:
    """A value v (after adding `shift`) is rounded to within u|v| + eta, in `context`; overflow is above `largest`."""

    context: Context
    u: float
    eta: float
    largest: float
    shift: Array | None = None


@dataclass(frozen=True)
class Step:
    """x ↦ relu(W x + b): W None is the identity; `product` (p, η′), `growth` (γ, η″) of the sum of `leaves` leaves.

    `inner`: roundings after the sum but the last, `last`: the last one.  `bias` is the leaf's; b = bias + its shift.
    """

    size: int
    weights: Array | None
    bias: Array
    product: tuple[float, float]
    growth: tuple[float, float]
    leaves: int
    largest: float
    inner: tuple[Rounding, ...] = ()
    last: Rounding | None = None
    relu: bool = False

    @property
    def b(self) -> Array:
        """The bias or the shift: `extend` makes sure that one of them is zero."""
        shifts = [r.shift for r in (*self.inner, self.last) if r is not None and r.shift is not None]
        return shifts[0] if shifts else self.bias


def _unit(ctx: Context) -> float:
    nearest = ctx.mode in (Mode.RNE, Mode.RNA)
    return float(pow2(-ctx.format.precision if nearest else 1 - ctx.format.precision))


def _eta(ctx: Context) -> Fraction:
    return ctx.format.smallest / (2 if ctx.mode in (Mode.RNE, Mode.RNA) else 1)


def _rounding(ctx: Context, exact_below: bool, shift: Array | None = None) -> Rounding:
    eta = 0.0 if exact_below else float_up(_eta(ctx))
    return Rounding(ctx, _unit(ctx), eta, min(float(ctx.format.largest), LARGEST), shift)


def _plain(ctx: Context, name: str) -> None:
    if not embeds(ctx.format) or ctx.subnormals is not Subnormals.GRADUAL:
        raise Unsupported(f"linear bounds need gradual underflow and formats embedded in float64: {ctx} of {name!r}")


def _affine(node: Affine, source: Format, how: Execution) -> Step:
    """The step of an affine node alone."""
    ctx, acc = node.context, how.sum_context(node.context)
    rounding = how.product_context(ctx)
    for context in (ctx, acc, rounding or acc):
        _plain(context, node.name)
    n, has_bias = node.weights.shape[1], node.bias is not None
    u, eta = Fraction(_unit(acc)), _eta(acc)  # of a product rounded once into the accumulator
    if rounding is not None and rounding.format == acc.format:
        u, eta = max(u, Fraction(_unit(rounding))), max(eta, _eta(rounding))
    elif rounding is not None:  # rounded as a product, then cast
        v = Fraction(_unit(rounding))
        u, eta = (1 + u) * (1 + v) - 1, eta + _eta(rounding) * (1 + u)
    bias = np.zeros(len(node.weights))
    if node.bias is not None:
        bias = np.asarray(arithmetic(acc, node.formats[1]).cast(node.bias), dtype=np.float64)
        if not np.isfinite(bias).all():
            raise Unsupported(f"linear bounds: a bias of {node.name!r} is not finite in the accumulator")
    if not np.isfinite(node.weights).all():
        raise Unsupported(f"linear bounds: a weight of {node.name!r} is not finite")
    leaves = n + has_bias
    exact = how.products == "exact" or how.fuses(True) != "never"
    largest = min(float(f.format.largest) for f in (acc, rounding or acc))
    last = None if acc == ctx else _rounding(ctx, exact_below=False)
    return Step(
        len(node.weights), np.asarray(node.weights, dtype=np.float64), bias, (float_up(u), float_up(eta)),
        sum_growth(acc, how, leaves, exact), leaves, min(largest, LARGEST), (), last,
    )  # fmt: skip


def _identity(size: int) -> Step:
    return Step(size, None, np.zeros(size), (0.0, 0.0), (0.0, 0.0), 1, LARGEST)


def _extended(step: Step, rounding: Rounding) -> Step:
    """One more rounding at the end."""
    inner = step.inner if step.last is None else (*step.inner, step.last)
    return Step(step.size, step.weights, step.bias, step.product, step.growth, step.leaves, step.largest, inner,
                rounding, step.relu)  # fmt: skip


def read_steps(network: Network, executions: Executions) -> list[Step]:
    """The network as steps; `Unsupported` names the first node that is not understood."""
    steps: list[Step] = []
    current = ""
    constants = {node.name: node for node in network.of_kind(Constant)}
    for node in network.nodes:
        if isinstance(node, Constant):
            continue
        others = [s for s in node.sources if s not in constants]
        if isinstance(node, Input):
            _plain(node.context, node.name)
            current = node.name
            continue
        if others != [current]:
            raise Unsupported(f"linear bounds are for chains of layers: {node.name!r} reads {', '.join(node.sources)}")
        _read(network, node, executions, constants, steps)
        current = node.name
    if current != network.output.name:
        raise Unsupported("linear bounds are for networks whose last node is the output")
    if not steps or steps[-1].relu:  # rows are of the last step's z, before a relu of its own
        steps.append(_identity(network.sizes[network.output.name]))
    return steps


def _read(
    network: Network, node: Node, executions: Executions, constants: dict[str, Constant], steps: list[Step]
) -> None:
    _plain(node.context, node.name)
    size = network.sizes[node.name]
    if isinstance(node, Affine):
        steps.append(_affine(node, network.format_of(node.source), execution_of(executions, node.name)))
        return
    if isinstance(node, Activation):
        use, source = node.implementation, network.node(node.source).context
        if use.function.name != "relu" or not isinstance(use.contract, CorrectlyRounded):
            raise Unsupported(f"linear bounds know correctly rounded relu, not {use.text} ({node.name!r})")
        if source.format != node.format:
            raise Unsupported(f"linear bounds: {node.name!r} is of another format than its source")
        if not steps or steps[-1].relu:
            steps.append(_identity(size))
        last = steps.pop()
        steps.append(Step(**{**last.__dict__, "relu": True}))
        return
    if isinstance(node, Select):
        steps += _selected(node, network, constants)
        return
    if isinstance(node, Elementwise) and node.operation in ("add", "sub"):
        left = node.left in constants
        if left and node.operation == "sub":
            raise Unsupported(f"linear bounds do not know constant − value ({node.name!r})")
        shift = np.array(constants[node.left if left else node.right].values, dtype=np.float64)
        if not np.isfinite(shift).all():
            raise Unsupported(f"linear bounds: a constant of {node.name!r} is not finite")
        rounding = _rounding(node.context, exact_below=True, shift=shift if node.operation == "add" else -shift)
        if not shift.any():
            return  # v + 0 is v
        if not steps or steps[-1].relu or steps[-1].b.any():
            steps.append(_identity(size))
        steps.append(_extended(steps.pop(), rounding))
        return
    if isinstance(node, Cast):
        if not steps or steps[-1].relu:
            steps.append(_identity(size))
        steps.append(_extended(steps.pop(), _rounding(node.context, exact_below=False)))
        return
    raise Unsupported(f"linear bounds do not know {node.describe()} ({node.name!r})")


def _selected(node: Select, network: Network, constants: dict[str, Constant]) -> list[Step]:
    """Elements of one node and of constants, as rows with one 1, or none and a bias; nothing when all stay in place."""
    sizes = [0 if source in constants else network.sizes[source] for source in node.sources]
    if node.picks == tuple((k, i) for k, size in enumerate(sizes) for i in range(size)):
        return []
    weights, bias = np.zeros((len(node.picks), sum(sizes))), np.zeros(len(node.picks))
    for row, (k, i) in enumerate(node.picks):
        if node.sources[k] in constants:
            bias[row] = float(constants[node.sources[k]].values[i])
        else:
            weights[row, i] = 1.0
    if not np.isfinite(bias).all():
        raise Unsupported(f"linear bounds: a constant of {node.name!r} is not finite")
    return [Step(len(bias), weights, bias, (0.0, 0.0), (0.0, 0.0), 1, LARGEST)]


@dataclass
class State:
    """What is known of some boxes: ends of the inputs, of each step (before its relu), and its lines and errors."""

    low: Array
    high: Array
    bounds: Bounds
    lines: list[tuple[Array, Array, Array]]  #: of each relu: α, s, t
    errors: list[Array]  #: E with what float64 needs on top, enlarged
    good: NDArray[np.bool_]  #: where nothing overflows

    def part(self, which: NDArray[np.intp]) -> State:
        """Some boxes, as far as minorants need it."""
        return State(self.low[which], self.high[which], [], [], [], self.good[which])

    @property
    def centre(self) -> Array:
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Array:
        """At least the distance from the centre to either end."""
        c = self.centre
        return np.nextafter(np.maximum(self.high - c, c - self.low), np.inf)


@dataclass(frozen=True)
class Minorants:
    """a·x + k below rows of outputs: `slopes` (boxes, rows, inputs), `constants` (boxes, rows); −∞ says nothing.

    `through`: the coefficients that reach each step's relu, for choosing where to split.
    """

    slopes: Array
    constants: Array
    through: list[Array]


class Relaxation:
    """Linear bounds of one network under its executions."""

    def __init__(self, network: Network, executions: Executions) -> None:
        self.steps = read_steps(network, executions)
        self.inputs = network.input.size
        self.sizes = [self.inputs, *(step.size for step in self.steps)]
        self.first = np.cumsum([0, *(step.size if step.relu else 0 for step in self.steps)])  #: unit of each step
        self.absolute = [None if step.weights is None else np.abs(step.weights) for step in self.steps]

    # -- one box after the other --------------------------------------------------------------------------

    def state(self, low: Array, high: Array, known: Bounds | None = None) -> State:
        """The bounds of every step, for boxes (boxes, inputs) of finite ends; `known` bounds are kept where they are
        tighter (they must hold for the inputs that are meant: those of the box, or of some part of it)."""
        boxes = len(low)
        state = State(low, high, [], [], [], np.ones(boxes, dtype=bool))
        size = np.maximum(np.abs(low), np.abs(high))
        state.good &= np.asarray((size <= LARGEST).all(axis=1))
        for k, step in enumerate(self.steps):
            before, above, fits = self._sum_error(k, size)
            state.good &= fits
            if k == len(self.steps) - 1 and not step.relu and not _coarse(step):
                state.errors.append(self._enlarged(k, _last(step, before, above), size))
                break
            if known is not None:
                bottom, top = (np.array(end) for end in known[k])
            else:
                bottom, top = np.full((boxes, step.size), -np.inf), np.full((boxes, step.size), np.inf)
            state.errors.append(self._enlarged(k, before, size))
            self._tighten(state, k, bottom, top)
            state.bounds.append((bottom, top))
            most = np.maximum(np.abs(bottom), np.abs(top))
            state.errors[k] = self._enlarged(k, _last(step, before, above, most), size)
            state.lines.append(_lines(bottom, top, nu(step.size)) if step.relu else _through(bottom))
            size = np.maximum(top, 0.0) if step.relu else most
            state.good &= np.asarray((np.isfinite(bottom) & np.isfinite(top)).all(axis=1))
            state.good &= np.asarray((size <= LARGEST).all(axis=1))
            size = np.where(state.good[:, None], size, 0.0)
        return state

    def signed(self, known: Bounds | None, signs: NDArray[np.int64]) -> Bounds | None:
        """Known bounds of boxes with the signs (boxes, any number) of their units."""
        if not (signs >= 0).any():
            return known
        boxes = len(signs)
        if known is None:
            shapes = [(boxes, step.size) for step in self.steps]
            known = [(np.full(shape, -np.inf), np.full(shape, np.inf)) for shape in shapes]
        out = [(low.copy(), high.copy()) for low, high in known]
        for k, box, at in self._places(signs):
            (low, high), unit, positive = out[k], signs[box, at] // 2 - self.first[k], signs[box, at] % 2 == 1
            low[box[positive], unit[positive]] = np.maximum(low[box[positive], unit[positive]], 0.0)
            high[box[~positive], unit[~positive]] = np.minimum(high[box[~positive], unit[~positive]], 0.0)
        return out

    def _places(self, signs: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """For each step that has some: where the signs (boxes, any number) of its units are."""
        for k, step in enumerate(self.steps):
            unit = signs // 2 - self.first[k]
            box, at = np.nonzero((signs >= 0) & (unit >= 0) & (unit < step.size) & step.relu)
            if len(box):
                yield k, box, at

    def sign_minorants(self, state: State, signs: NDArray[np.int64]) -> Minorants:
        """Below z where z ≤ 0, and below −z where z ≥ 0, for each sign (boxes, signs); −∞ where there is none."""
        boxes, count = signs.shape
        slopes, constants = np.zeros((boxes, count, self.inputs)), np.full((boxes, count), -np.inf)
        for k, box, at in self._places(signs):
            rows = np.zeros((len(box), self.steps[k].size))
            unit, positive = signs[box, at] // 2 - self.first[k], signs[box, at] % 2 == 1
            rows[np.arange(len(box)), unit] = np.where(positive, -1.0, 1.0)
            a, constant, size = self._back(state, k, rows, box, None)
            good = state.good[box] & np.isfinite(a).all(axis=1)
            slopes[box, at] = np.where(good[:, None], a, 0.0)
            constants[box, at] = np.where(good, _sure(constant, size), -np.inf)
        return Minorants(slopes, constants, [])

    def _tighten(self, state: State, k: int, bottom: Array, top: Array) -> None:
        """Bounds of the values of step k whose sign is open."""
        step = self.steps[k]
        open_ = (bottom < 0) & (top > 0) if step.relu else bottom < top
        open_ |= ~(np.isfinite(bottom) & np.isfinite(top))
        box, unit = np.nonzero(open_ & state.good[:, None])
        if not len(box):
            return
        step_size = max(1, CHUNK // (2 * max(self.sizes)))
        for at in range(0, len(box), step_size):
            b, i = box[at : at + step_size], unit[at : at + step_size]
            rows = np.zeros((2 * len(b), step.size))
            rows[np.arange(len(b)), i] = 1.0
            rows[np.arange(len(b), 2 * len(b)), i] = -1.0
            low = self._lower(state, k, rows, np.concatenate([b, b]))
            least, most = low[: len(b)], -low[len(b) :]
            if step.last is not None:  # rounding is monotone
                least, most = round_array(step.last.context, least), round_array(step.last.context, most)
            bottom[b, i] = np.fmax(bottom[b, i], least)
            top[b, i] = np.fmin(top[b, i], most)

    def _lower(self, state: State, k: int, rows: Array, box: NDArray[np.intp]) -> Array:
        """Lower bounds of rows·z for the values z of step k (before its last rounding)."""
        slopes, constant, size = self._back(state, k, rows, box, None)
        c, r = state.centre, state.radius
        wide = r * (1 + 2 * nu(self.inputs)) + nu(self.inputs) * (np.abs(c) + r)
        at = np.einsum("rn,rn->r", slopes, c[box])
        off = np.einsum("rn,rn->r", np.abs(slopes), wide[box])
        low = constant + at
        size = size + np.abs(low)
        low = low - off
        size = size + np.abs(low)
        return _sure(low, size)

    def _back(
        self, state: State, k: int, rows: Array, box: NDArray[np.intp], through: list[Array] | None
    ) -> tuple[Array, Array, Array]:
        """(a, k, size): rows·z ≥ a·x + k − 2^−52·size for the values z of step k before its last rounding, whose error
        is in `state.errors[k]` if it is to be counted."""
        constant, size = np.zeros(len(rows)), np.zeros(len(rows))

        def add(term: Array) -> None:
            nonlocal constant, size
            constant = constant + term
            size = size + np.abs(constant)

        while True:
            step = self.steps[k]
            if step.b.any():
                add(rows @ step.b)
            add(-np.einsum("rn,rn->r", np.abs(rows), state.errors[k][box]))
            if step.weights is not None:
                rows = rows @ step.weights
            if k == 0:
                return rows, constant, size
            k -= 1
            if self.steps[k].relu:
                lower, upper, top = state.lines[k]
                if through is not None:
                    through[k] = rows
                add(np.einsum("rn,rn->r", np.minimum(rows, 0.0), top[box]))
                rows = np.where(rows >= 0, lower[box], upper[box]) * rows

    # -- rows of the outputs ------------------------------------------------------------------------------

    def minorants(self, state: State, rows: Array) -> Minorants:
        """Below each row (rows, outputs) times the outputs, on each box."""
        boxes, count = len(state.low), len(rows)
        through: list[Array] = [np.zeros((0, 0))] * len(self.steps)
        box = np.repeat(np.arange(boxes), count)
        a, k, size = self._back(state, len(self.steps) - 1, np.tile(rows, (boxes, 1)), box, through)
        k = _sure(k, size)
        k = np.where(state.good[box] & np.isfinite(a).all(axis=1), k, -np.inf)
        shape = (boxes, count)
        return Minorants(a.reshape(*shape, -1), k.reshape(shape), [t.reshape(*shape, -1) for t in through if t.size])

    # -- errors -------------------------------------------------------------------------------------------

    def _sum_error(self, k: int, size: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """(E, M, good) after all roundings but the last: |error| ≤ E, |value| ≤ M, and nothing overflows so far."""
        step, n = self.steps[k], self.sizes[k]
        absolute = self.absolute[k]
        terms = (size if absolute is None else size @ absolute.T) * (1 + 2 * nu(n))
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
        v = nu(max(step.size, self.sizes[k]))
        terms = (inputs if absolute is None else inputs @ absolute.T) * (1 + 2 * v) + np.abs(step.b)
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


def _lines(low: Array, high: Array, v: float) -> tuple[Array, Array, Array]:
    """α, s and t of the relu of each value; t enlarged so that the sums Σ A t are not short."""
    open_ = (low < 0) & (high > 0) & np.isfinite(low) & np.isfinite(high)
    l, u = np.where(open_, low, -1.0), np.where(open_, high, 1.0)
    s = u / (u - l)
    t = np.maximum(s * -l, (1.0 - s) * u) * ROOM + s * (u - l) * 2.0**-50 + 2.0**-1000
    stable = np.where(low >= 0, 1.0, 0.0)
    return (
        np.where(open_, np.where(u > -l, 1.0, 0.0), stable),
        np.where(open_, s, stable),
        np.where(open_, t * (1 + 2 * v), 0.0),
    )


def _through(low: Array) -> tuple[Array, Array, Array]:
    return np.ones_like(low), np.ones_like(low), np.zeros_like(low)


def _sure(low: Array, size: Array) -> Array:
    """k with its own rounding errors subtracted; −∞ where it is not finite."""
    with np.errstate(invalid="ignore"):
        low = low - (2.0**-51 * size * ROOM + TINY)
    return np.where(np.isfinite(low) & np.isfinite(size), low, -np.inf)


def least_values(state: State, slopes: Array, constants: Array, shares: Array) -> Array:
    """For each box and each of the combinations `shares` (boxes, combinations, rows ≥ 0) of minorants a·x + k, a number
    that no combination is below anywhere in the box.  −∞ says nothing."""
    c, r = state.centre, state.radius
    v = nu(slopes.shape[1] + slopes.shape[2])
    good = np.isfinite(constants)
    k = np.where(good, constants, 0.0)
    at = np.einsum("brn,bn->br", slopes, c) + k
    size = np.einsum("brn,bn->br", np.abs(slopes), np.abs(c) + r) + np.abs(k)  # of everything in a row
    mixed = np.einsum("bjr,brn->bjn", shares, slopes)
    low = np.einsum("bjr,br->bj", shares, at) - np.einsum("bjn,bn->bj", np.abs(mixed), r)
    slack = 8 * v * np.einsum("bjr,br->bj", shares, size) * ROOM + TINY
    silent = (np.where(good[:, None, :], 0.0, shares) > 0).any(axis=2)
    low = low - slack
    return np.where(silent | ~np.isfinite(low), -np.inf, low)


def halves(fmt: Format, low: Array, high: Array) -> tuple[Array, Array]:
    """(m, m⁺) with low ≤ m < m⁺ ≤ high, values of the format and neighbours, where low < high: no value is lost."""
    down = Context(fmt, Mode.RTN, Overflow.SATURATE, Subnormals.GRADUAL)
    middle = round_array(down, low / 2 + high / 2)
    middle = np.where((middle >= low) & (middle < high), middle, low)
    return middle, np.asarray(from_ordinals(fmt, ordinals(fmt, middle) + 1), dtype=np.float64)


def good_shares(state: State, slopes: Array, constants: Array, start: Array, rounds: int) -> Array:
    """Shares (boxes, rows ≥ 0) that make the least value of the combination of minorants large, by multiplicative
    ascent from `start`.  Any shares ≥ 0 are right: these need not be the best."""
    r = state.radius
    heard = np.isfinite(constants)
    k = np.where(heard, constants, 0.0)
    at = np.einsum("brn,bn->br", slopes, state.centre) + k
    spread = slopes * r[:, None, :]
    scale = np.abs(at) + np.abs(spread).sum(axis=2) + 2.0**-200
    at, spread = at / scale, spread / scale[:, :, None]
    share = np.where(heard, 0.5 * start * scale + 0.5 / heard.sum(axis=1, keepdims=True).clip(1), 0.0)
    best, chosen = np.full(len(r), -np.inf), share
    for number in range(rounds):
        share = share / share.sum(axis=1, keepdims=True).clip(2.0**-200)
        mixed = np.einsum("br,brn->bn", share, spread)
        value = (share * at).sum(axis=1) - np.abs(mixed).sum(axis=1)
        better = value > best
        best = np.where(better, value, best)
        chosen = np.where(better[:, None], share, chosen)
        slope = at - np.einsum("brn,bn->br", spread, np.sign(mixed))
        share = share * np.exp(np.clip(slope, -4.0, 4.0) * (4.0 / (1.0 + 0.3 * number)))
    if slopes.shape[2] <= MOST_LINES:
        _polish(chosen, at, spread, heard)
    return np.where(np.isfinite(chosen) & heard, chosen / scale, 0.0)


def _polish(share: Array, at: Array, spread: Array, heard: NDArray[np.bool_]) -> None:
    """Line searches in place, one share after the other: the value is concave and piecewise linear in it, so that the
    best is 0 or where some slope of the mixture vanishes."""
    boxes = np.arange(len(share))
    for row in [*range(share.shape[1])] * 2:
        slope = spread[:, row]
        rest = np.einsum("br,brn->bn", share, spread) - share[:, row, None] * slope
        base = (share * at).sum(axis=1) - share[:, row] * at[:, row]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            tried = np.clip(np.nan_to_num(-rest / slope, posinf=0.0, neginf=0.0), 0.0, 2.0**40)
        tried = np.concatenate([tried, share[:, row, None]], axis=1)
        mixed = rest[:, None, :] + tried[:, :, None] * slope[:, None, :]
        value = base[:, None] + tried * at[:, row, None] - np.abs(mixed).sum(axis=2)
        # a larger scale is no better: compare at the same sum of shares
        value /= (share.sum(axis=1) - share[:, row])[:, None] + tried + 2.0**-200
        best = tried[boxes, value.argmax(axis=1)]
        share[:, row] = np.where(heard[:, row], best, 0.0)
