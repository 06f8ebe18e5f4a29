"""Values and executed gradients of sparse ReLU networks of one input, at many inputs, through the neurons that matter.

Trusted.  Every hidden neuron from the third layer on has a *default*: its value where no neuron below differs from its
own.  At one input few differ, and only the sums that read one of those are computed again.  Backwards, a gradient
passes where the neuron is not zero; everything else receives ±0.  Why nothing else is needed:

* v ⊗ ±0 = ±0 for finite v, and z ⊕ ±0 = z for z ≠ 0 in every rounding mode, as subnormals are kept.  So a sum is that
  of its products that are not zero, in the same order; one or two have one order, three have three trees;
* ReLU(x) > 0 if and only if x > 0, and then g ⊗ ReLU′(x) = g ⊗ 1 = g; else g ⊗ 0 = ±0, g being finite;
* a row that receives ±0 returns ±0 ⊗ w = ±0 to everything it reads, its weights being finite; so does one that nothing
  reads, if its sum is not NaN;
* a neuron of the first layer reads the input once, so that it is monotone in it, because rounding is; those of the
  second layer are bounded on intervals of inputs from the ends (each ⊗ and ⊕ is monotone in each argument), and
  intervals are divided until the neuron is 0 on all of one, or one input is left.

Every product, partial sum and gradient that is looked at is finite, or the result is an error.  The zeros of a sum may
have either sign, and results are compared as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.errors import Unsupported
from fpsmt.floats import Context
from fpsmt.floats.compiled import add, mul, parameters
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import Carriers, arithmetic

OK, INFINITE, ORDER, FULL = 0, 1, 2, 3  #: what a compiled loop says
MOST_TERMS = 4096  #: of one hidden sum
MOST_PLACES = 64  #: inputs at which a neuron of the second layer is not zero, on average

REASONS = {
    INFINITE: "a sum, product or gradient is not finite",
    ORDER: "a result may depend on the order of a sum",
    FULL: "neurons of the second layer are not zero at too many inputs",
}


@dataclass(frozen=True)
class Traces:
    """Output by input, gradient in the shape of the loss derivatives.

    `reason` is empty, or says what is not known at input number `at`.
    """

    output: Carriers
    gradient: Carriers
    reason: str
    at: int


def traces(network: SparseNetwork, inputs: Carriers, upstream: Carriers, any_order: bool) -> Traces:
    """N(x), and D^AD of N at x for the loss derivatives y of the same row of `upstream` (one, or a row of several).

    The sums of both passes run from left to right, or with `any_order` each in an order of its own (the results are
    then those of all orders).  `Unsupported` for networks of another form: ReLU correctly rounded, one input, one
    output, three layers or more; one product in each sum of the first layer; terms in ascending order.
    """
    _check_form(network)
    xs = np.ascontiguousarray(inputs, float)
    layers, values = network.layers, _Values(network, any_order)
    several = np.ascontiguousarray(np.reshape(upstream, (len(xs), -1)), float)
    output, gradient = np.full(len(xs), np.nan), np.full(several.shape, np.nan)
    _check_unread(network, xs)
    seen = second_layer(network.context, layers[0], layers[1], xs, any_order)
    if seen.reason:
        return Traces(output, gradient.reshape(np.shape(upstream)), seen.reason, seen.at)
    last = layers[-1]
    weight = np.zeros(layers[-2].size)
    weight[last.columns] = last.weights
    most = float(np.abs(last.weights).max(initial=0.0))
    status, at = _trace(
        xs, several, np.searchsorted(seen.point, np.arange(len(xs) + 1)), seen.neuron, seen.value, *_first(layers[0]),
        *values.arrays, weight, float(last.bias[0]), most, any_order, parameters(network.context), output, gradient,
    )  # fmt: skip
    return Traces(output, gradient.reshape(np.shape(upstream)), REASONS.get(status, ""), at if status else -1)


@dataclass(frozen=True)
class Seen:
    """The neurons of the second layer that are not zero, constants apart: by point, then by neuron."""

    point: NDArray[np.int64]
    neuron: NDArray[np.int64]
    value: Carriers
    reason: str
    at: int


def second_layer(ctx: Context, first: Layer, second: Layer, inputs: Carriers, any_order: bool) -> Seen:
    """At distinct inputs.  `reason` is empty, or says what is not known at input number `at`."""
    order = np.argsort(inputs, kind="stable")
    found = np.empty((MOST_PLACES * max(len(inputs), second.size) + 64, 3))
    count, status, at = _second(
        *_first(first), *_arrays(second), np.diff(second.starts) == 0, inputs[order], any_order, parameters(ctx), found
    )  # fmt: skip
    found = found[:count]
    point, neuron = order[found[:, 0].astype(np.int64)], found[:, 1].astype(np.int64)
    sorted_ = np.lexsort((neuron, point))
    reason = REASONS.get(status, "")
    return Seen(point[sorted_], neuron[sorted_], found[sorted_, 2], reason, int(order[at]) if reason else -1)


def _check_form(network: SparseNetwork) -> None:
    layers = network.layers
    if network.implementation.text != "relu" or network.inputs != 1 or network.outputs != 1 or len(layers) < 3:
        raise Unsupported("traces are for correctly rounded ReLU, one input, one output, and two hidden layers or more")
    if (np.diff(layers[0].starts) > 1).any() or (layers[0].weights == 0.0).any():
        raise Unsupported("a sum of the first layer has several products, or a weight that is zero")
    for layer in layers:
        inner = np.ones(max(len(layer.columns) - 1, 0), bool)
        inner[layer.starts[1:-1][(layer.starts[1:-1] > 0) & (layer.starts[1:-1] < len(layer.columns))] - 1] = False
        if (np.diff(layer.columns)[inner] <= 0).any():
            raise Unsupported("the terms of a sum are not in the order of the elements that they read")
    if max(int(np.diff(layer.starts).max()) for layer in layers[:-1]) > MOST_TERMS:
        raise Unsupported(f"a hidden sum has more than {MOST_TERMS} terms")


def _check_unread(network: SparseNetwork, xs: Carriers) -> None:
    """A neuron of the first layer that nothing reads returns 0 ⊗ ReLU′ too, which is NaN where its sum is; by
    monotony, at an end of the inputs."""
    weight, bias = _first(network.layers[0])
    vector, ends = arithmetic(network.context), np.array([xs.min(), xs.max()])
    unread = np.ones(len(bias), bool)
    unread[network.layers[1].columns] = False
    if np.isnan(vector.add(vector.mul(weight[unread, None], ends), bias[unread, None])).any():
        raise Unsupported("a sum of the first layer that nothing reads may be NaN")


def _arrays(layer: Layer) -> tuple[NDArray[np.int64], NDArray[np.int64], Carriers, Carriers]:
    return layer.starts, layer.columns, layer.weights, layer.bias


def _first(layer: Layer) -> tuple[Carriers, Carriers]:
    """Weight (0 for a constant) and bias of each neuron of the first layer."""
    weight = np.zeros(layer.size)
    weight[np.diff(layer.starts) == 1] = layer.weights
    return weight, layer.bias


class _Values:
    """The hidden layers from the second on in flat arrays, with the defaults of their neurons."""

    def __init__(self, network: SparseNetwork, any_order: bool) -> None:
        hidden = network.layers[1:-1]
        offsets = np.concatenate([[0], np.cumsum([layer.size for layer in hidden])]).astype(np.int64)
        lengths = np.concatenate([np.diff(layer.starts) for layer in hidden])
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        columns = np.concatenate([layer.columns for layer in hidden])
        weights = np.concatenate([layer.weights for layer in hidden])
        bias = np.concatenate([layer.bias for layer in hidden])
        readers = [_transposed(layer, before.size) for before, layer in pairwise(hidden)]
        reader_starts = np.concatenate([[0], np.cumsum([n for counts, _ in readers for n in counts])]).astype(np.int64)
        reader_rows = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in readers)])
        default = np.zeros(len(bias))
        second = hidden[0]
        constant = np.diff(second.starts) == 0
        default[: second.size][constant] = np.maximum(second.bias[constant], 0.0)
        status = _defaults(
            offsets, starts, columns, weights, bias, default, any_order, parameters(network.context)
        )
        if status != OK:
            raise Unsupported(f"{REASONS[status]}, where every neuron of the second layer has its default")
        kept = offsets[-2] + np.flatnonzero(default[offsets[-2] :])
        self.arrays = (offsets, starts, columns, weights, bias, reader_starts, reader_rows, default, kept)


def _transposed(layer: Layer, size: int) -> tuple[Sequence[int], NDArray[np.int64]]:
    """For each element of the layer before how many sums read it, and which."""
    rows = np.repeat(np.arange(layer.size), np.diff(layer.starts))
    order = np.argsort(layer.columns, kind="stable")
    return np.bincount(layer.columns, minlength=size).tolist(), rows[order]


# -- compiled ---------------------------------------------------------------------------------------------


@jit
def _finite(x: float) -> bool:
    return math.isfinite(x)


@jit
def _plus(a: float, b: float, k: Any) -> float:
    """a ⊕ b, where zeros are neutral."""
    if a == 0.0:
        return b
    return a if b == 0.0 else add(a, b, k)


@jit
def _affine(w: float, x: float, b: float, k: Any) -> float:
    """w ⊗ x ⊕ b; b where there is no product."""
    return b if w == 0.0 else _plus(mul(w, x, k), b, k)


@jit
def _second(
    w1: Any, b1: Any, starts: Any, columns: Any, weights: Any, bias: Any, constant: Any, xs: Any, any_order: bool,
    k: Any, found: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """Where neurons of the second layer are not zero: (place of the input, neuron, value); then (count, status, place).

    xs ascends.  The neurons of `constant` have no terms and are left out.
    """
    count = 0
    stack = np.empty((128, 2), np.int64)
    for j in range(len(bias)):
        if constant[j]:
            continue
        if any_order and starts[j + 1] - starts[j] > 2:
            return count, 2, 0
        stack[0, 0], stack[0, 1] = 0, len(xs) - 1
        depth = 1
        while depth > 0:
            depth -= 1
            a, b = stack[depth, 0], stack[depth, 1]
            low, high, known = 0.0, 0.0, True
            for t in range(starts[j], starts[j + 1]):
                c, w = columns[t], weights[t]
                p, q = _affine(w1[c], xs[a], b1[c], k), _affine(w1[c], xs[b], b1[c], k)
                known = known and _finite(p) and _finite(q)
                p, q = mul(w, max(p, 0.0), k), mul(w, max(q, 0.0), k)
                low, high = _plus(low, min(p, q), k), _plus(high, max(p, q), k)
                known = known and _finite(p) and _finite(q) and _finite(low) and _finite(high)
            low, high = _plus(low, bias[j], k), _plus(high, bias[j], k)
            known = known and _finite(low) and _finite(high)
            if known and high <= 0.0:
                continue
            if a == b:
                if not known:
                    return count, 1, a
                if count == len(found):
                    return count, 3, a
                found[count, 0], found[count, 1], found[count, 2] = a, j, high
                count += 1
                continue
            middle = (a + b) // 2
            stack[depth, 0], stack[depth, 1] = a, middle
            stack[depth + 1, 0], stack[depth + 1, 1] = middle + 1, b
            depth += 2
    return count, 0, -1


@jit
def _sum(
    row: int, starts: Any, columns: Any, weights: Any, bias: Any, base: int, values: Any, any_order: bool, k: Any
) -> tuple[float, int]:
    """ReLU of one sum over values[base + column], and a status."""
    total, count, a, b, c = 0.0, 0, 0.0, 0.0, 0.0
    for t in range(starts[row], starts[row + 1]):
        v = values[base + columns[t]]
        if v == 0.0:
            continue
        p = mul(weights[t], v, k)
        if not _finite(p):
            return 0.0, 1
        if p == 0.0:
            continue
        a, b, c = b, c, p  # the last three products
        count += 1
        total = _plus(total, p, k)
        if not _finite(total):
            return 0.0, 1
    result = _plus(total, bias[row], k)
    if not _finite(result):
        return 0.0, 1
    result = max(result, 0.0)
    if any_order and count > 2:
        if count > 3:
            return 0.0, 2
        for p, q, r in ((a, b, c), (a, c, b), (b, c, a)):
            part = _plus(p, q, k)
            other = _plus(part, r, k)
            last = _plus(other, bias[row], k)
            if not (_finite(part) and _finite(other) and _finite(last)):
                return 0.0, 1
            if max(last, 0.0) != result:
                return 0.0, 2
    return result, 0


@jit
def _defaults(
    offsets: Any, starts: Any, columns: Any, weights: Any, bias: Any, default: Any, any_order: bool, k: Any
) -> int:
    """Fills the defaults of the third hidden layer and those above it."""
    for level in range(1, len(offsets) - 1):
        for row in range(offsets[level], offsets[level + 1]):
            value, status = _sum(row, starts, columns, weights, bias, offsets[level - 1], default, any_order, k)
            if status != 0:
                return status
            default[row] = value
    return 0


@jit
def _sort(rows: Any, count: int) -> None:
    """Ascending, by insertion: lists are short."""
    for i in range(1, count):
        row = rows[i]
        j = i - 1
        while j >= 0 and rows[j] > row:
            rows[j + 1] = rows[j]
            j -= 1
        rows[j + 1] = row


@jit
def _merged(rows: Any, kept: Any, seen: Any, mark: int) -> Any:
    """The rows and those of `kept` that `seen` does not mark, ascending; both ascend."""
    if len(kept) == 0:
        return rows.copy()
    out = np.empty(len(rows) + len(kept), np.int64)
    count = i = 0
    for row in kept:
        while i < len(rows) and rows[i] < row:
            out[count] = rows[i]
            count, i = count + 1, i + 1
        if seen[row] != mark:
            out[count] = row
            count += 1
    while i < len(rows):
        out[count] = rows[i]
        count, i = count + 1, i + 1
    return out[:count]


@jit
def _backward(
    x: float, y: float, top: Any, values: Any, w1: Any, b1: Any, offsets: Any, starts: Any, columns: Any, weights: Any,
    last: Any, most: float, any_order: bool, k: Any, room: Any, first_room: Any, rows: Any, below: Any,
) -> tuple[float, int]:  # fmt: skip
    """D^AD at x for y, and a status.  `room` and `first_room` hold gradients that arrive, and how many did (0 between
    calls); `rows` lists the neurons of a layer whose gradient is not zero."""
    levels, status, count = len(offsets) - 1, 0, 0
    if not (_finite(mul(y, most, k)) and _finite(mul(-y, most, k))):  # directed rounding tells the signs apart
        status = 1
    for row in top:
        g = mul(y, last[row - offsets[levels - 1]], k)
        if values[row] > 0.0 and g != 0.0:
            room[row, 0] = g
            rows[count] = row
            count += 1
    for level in range(levels - 1, -1, -1):
        reached, lowest = 0, level == 0
        base = 0 if lowest else offsets[level - 1]
        into = first_room if lowest else room
        _sort(rows, count)
        for i in range(count):
            row = rows[i]
            for t in range(starts[row], starts[row + 1]):
                p = mul(room[row, 0], weights[t], k)
                if p == 0.0:
                    continue
                c = base + columns[t]
                if into[c, 1] == 0.0:
                    below[reached] = c
                    reached += 1
                    into[c, 0] = 0.0
                into[c, 1] += 1.0
                into[c, 0] = _plus(into[c, 0], p, k)
                if not (_finite(p) and _finite(into[c, 0])):
                    status = 1
                if any_order and into[c, 1] > 2.0:
                    status = 2
        count = 0
        for i in range(reached):
            c = below[i]
            into[c, 1] = 0.0
            if lowest:
                active = w1[c] != 0.0 and _affine(w1[c], x, b1[c], k) > 0.0
            else:
                active = values[c] > 0.0
            if active and into[c, 0] != 0.0:
                rows[count] = c
                count += 1
    _sort(rows, count)
    result, products = 0.0, 0
    for i in range(count):
        p = mul(first_room[rows[i], 0], w1[rows[i]], k)
        products += p != 0.0
        result = _plus(result, p, k)
        if not (_finite(p) and _finite(result)):
            status = 1
    return result, 2 if any_order and products > 2 and status == 0 else status


@jit
def _trace(
    xs: Any, upstream: Any, begin: Any, neurons: Any, sizes: Any, w1: Any, b1: Any, offsets: Any, starts: Any,
    columns: Any, weights: Any, bias: Any, reader_starts: Any, reader_rows: Any, default: Any, kept: Any, last: Any,
    last_bias: float, most: float, any_order: bool, k: Any, output: Any, gradient: Any,
) -> tuple[int, int]:  # fmt: skip
    """Both passes at every input; then (status, input).  Rows are numbered from the second hidden layer on."""
    levels, total, n = len(offsets) - 1, len(bias), len(xs)
    values, seen = default.copy(), np.full(total, -1)
    room, first_room = np.zeros((total, 2)), np.zeros((len(w1), 2))
    changed, ends = np.empty(total, np.int64), np.empty(levels + 1, np.int64)
    rows, below = np.empty(max(total, len(w1)), np.int64), np.empty(max(total, len(w1)), np.int64)
    for x in range(n):
        # `changed` lists the rows that differ from their defaults, layer by layer
        count = 0
        for i in range(begin[x], begin[x + 1]):
            values[neurons[i]] = sizes[i]
            changed[count] = neurons[i]
            count += 1
        ends[0], ends[1] = 0, count
        for level in range(1, levels):
            reading = 0
            for i in range(ends[level - 1], ends[level]):
                row = changed[i]
                for t in range(reader_starts[row], reader_starts[row + 1]):
                    above = offsets[level] + reader_rows[t]
                    if seen[above] != x:
                        seen[above] = x
                        rows[reading] = above
                        reading += 1
            for i in range(reading):
                row = rows[i]
                value, status = _sum(row, starts, columns, weights, bias, offsets[level - 1], values, any_order, k)
                if status != 0:
                    return status, x
                if value != default[row]:
                    values[row] = value
                    changed[count] = row
                    count += 1
            ends[level + 1] = count
        # the last layer reads the neurons that are not zero: those that changed, and `kept`, which are not by default
        reading = 0
        for i in range(ends[levels - 1], ends[levels]):
            rows[reading] = changed[i]
            reading += 1
            seen[changed[i]] = n + x
        _sort(rows, reading)
        top = _merged(rows[:reading], kept, seen, n + x)
        result, products = 0.0, 0
        for row in top:
            p = mul(last[row - offsets[levels - 1]], values[row], k)
            products += p != 0.0
            result = _plus(result, p, k)
            if not (_finite(p) and _finite(result)):
                return 1, x
        output[x] = _plus(result, last_bias, k)
        if not _finite(output[x]):
            return 1, x
        if any_order and products > 2:
            return 2, x
        for c in range(upstream.shape[1]):
            gradient[x, c], status = _backward(
                xs[x], upstream[x, c], top, values, w1, b1, offsets, starts, columns, weights, last, most, any_order, k,
                room, first_room, rows, below,
            )  # fmt: skip
            if status != 0:
                return status, x
        for i in range(ends[levels]):
            values[changed[i]] = default[changed[i]]
    return 0, -1
