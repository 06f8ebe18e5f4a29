"""Rigorous lower bounds on the difference of two outputs of a network, over all executions.

Two outputs that read the same layer share its values: bounds of each output alone forget that.  Let the output node be
affine, xₖ its source's values, somewhere in their enclosures, and Tᵢ the sum of row i (without a bias that comes last).
By `fpsmt.networks.charges`, for whatever values xₖ an execution gives,

    Tᵢ ≥ Σₖ (pᵢₖ(xₖ) − c⁻ᵢₖ(xₖ)) + creditᵢ − extraᵢ,    Tⱼ ≤ Σₖ (pⱼₖ(xₖ) + c⁺ⱼₖ(xₖ)) − creditⱼ + extraⱼ,

with what a product brings in, p, and its charge, c, for the way that is worst.  So Tᵢ − Tⱼ is at least a sum over k of
the least value of a function of xₖ alone, which is found on a grid: the two parts of it are monotone in xₖ (in the
direction of the weight's sign), so between neighbouring grid points no value is below (the least of the first part at
the two points) − (the greatest of the second); and when no float lies between them the points themselves are all.
A bias that comes last, and the cast of the result to the node's context, cost at most their rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.floats import Context, Format, Mode, Overflow, Subnormals
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import from_ordinals, ordinals, round_array
from fpsmt.networks.bounds import Array, Interval, _Sums
from fpsmt.networks.charges import DEEP, Charges, leaf_end
from fpsmt.networks.executions import Execution
from fpsmt.networks.interpreter import Executions, execution_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Affine

POINTS = 49  #: of the grid for each value of the layer
ROWS = 1 << 21  #: products held at a time


def margins(
    network: Network,
    found: Mapping[str, Interval],
    executions: Executions,
    chosen: NDArray[np.intp],
    wanted: NDArray[np.bool_] | None = None,
) -> Array | None:
    """Lower bounds of output `chosen` − output j, for each input and j: shape (batch, outputs), 0 for j itself.

    `wanted`, of the result's shape, says where a bound is needed: it is −inf elsewhere.
    `found`: enclosures of all nodes (`fpsmt.networks.bounds.enclosures`), for a batch of inputs.  −inf says nothing:
    so it is where an output has no finite enclosure, which is what excludes overflow and NaN.
    None when the method does not apply: the output is not an affine node of all terms, directed rounding or flushed
    subnormals in its sums, formats of more than 26 bits of precision.
    """
    node = network.output
    if not isinstance(node, Affine) or node.mask is not None:
        return None
    low, high = found[node.source]
    how, source = execution_of(executions, node.name), network.format_of(node.source)
    rows, batch = len(node.weights), len(low)
    if not _problem(node, how, source, low[:1], high[:1]).chargeable or not _gradual(node.context):
        return None
    out = np.full((batch, rows), -np.inf)
    ends = np.concatenate([low, high, *found[node.name]], axis=1)
    bounded = np.flatnonzero(np.isfinite(ends).all(axis=1))
    asked = np.ones((batch, rows), dtype=bool) if wanted is None else wanted
    step = max(1, ROWS // (rows * low.shape[1] * POINTS))
    for at in range(0, len(bounded), step):
        some = bounded[at : at + step]
        out[some] = _margins(node, how, source, low[some], high[some], chosen[some], asked[some])
    return out


def _gradual(ctx: Context) -> bool:
    return ctx.subnormals is Subnormals.GRADUAL


def _problem(node: Affine, how: Execution, source: Format, low: Array, high: Array) -> _Sums:
    low, high = (np.where(np.isfinite(end), end, 0.0) for end in (low, high))
    shape = (len(low), *node.weights.shape)
    ends = [np.broadcast_to(end[:, None, :], shape) for end in (low, high)]
    return _Sums(node.context, how, source, node.formats, node.weights, node.bias, *ends)


def _margins(
    node: Affine, how: Execution, source: Format, low: Array, high: Array,
    chosen: NDArray[np.intp], asked: NDArray[np.bool_],
) -> Array:  # fmt: skip
    problem = _problem(node, how, source, low, high)
    batch, rows, n = len(low), problem.weights.shape[0], problem.n
    charges, good = problem.charges()
    points, whole = _grid(source, low, high)
    values = np.stack(
        [problem.ways(np.broadcast_to(points[:, None, :, t], (batch, rows, n))) for t in range(POINTS)], axis=3
    )
    bias, apart = np.zeros((batch, rows)), problem.bias is not None and problem.bias_apart
    if problem.bias is not None:
        bias = problem.bias
    good &= np.isfinite(charges.low) & np.isfinite(charges.high) & np.isfinite(bias).reshape(-1)
    acc, ctx = problem.acc, node.context
    fmt = acc.format
    parts = Charges(*(np.reshape(a, (batch, rows, *a.shape[1:])) for a in charges))
    out = np.empty((batch, rows))
    _differences(
        values, whole, good.reshape(batch, rows), bias, bool(apart), chosen.astype(np.int64), asked,
        0.75 if problem.may_be_exact else 0.5, fmt.precision, fmt.emin, parts, out,
    )  # fmt: skip
    if acc != ctx:
        out = np.nextafter(out - _cast_errors(acc, ctx, problem, parts, bias if apart else None, chosen), -np.inf)
    out[np.arange(batch), chosen] = 0.0
    return np.where(np.isnan(out), -np.inf, out)


def _cast_errors(
    acc: Context, ctx: Context, problem: _Sums, parts: Charges, bias: Array | None, chosen: NDArray[np.intp]
) -> Array:
    """At least |cast error of output `chosen`| + |that of output j|; infinite when a result may overflow."""
    size = np.maximum(np.abs(parts.low), np.abs(parts.high))
    if bias is not None:
        size = (size + np.abs(bias)) * (1 + 2.0 ** (2 - acc.format.precision)) + float(acc.format.smallest)
    fmt = ctx.format
    with np.errstate(invalid="ignore"):
        places = np.maximum(np.frexp(size)[1] - 1, fmt.emin) - (fmt.precision - 1)
    ulps = np.ldexp(0.5 if ctx.mode.nearest else 1.0, places)
    ulps = np.where(size <= float(fmt.largest), ulps, np.inf)
    return np.nextafter(ulps[np.arange(len(size)), chosen][:, None] + ulps, np.inf)


def _grid(fmt: Format, low: Array, high: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Points (batch, n, POINTS) of the format from low to high, and whether no float lies between one and the next."""
    share = np.linspace(0.0, 1.0, POINTS)
    rounding = Context(fmt, Mode.RNE, Overflow.SATURATE, Subnormals.GRADUAL)
    points = round_array(rounding, low[..., None] + (high - low)[..., None] * share)
    points = np.clip(points, low[..., None], high[..., None])
    points[..., 0], points[..., -1] = low, high  # which low + (high − low) need not be
    first, last = ordinals(fmt, low), ordinals(fmt, high)
    few = last - first < POINTS
    if few.any():
        places = np.minimum(first[few][:, None] + np.arange(POINTS), last[few][:, None])
        points[few] = from_ordinals(fmt, places)
    points.sort(axis=-1)
    places = ordinals(fmt, points)
    return points, np.asarray(places[..., 1:] - places[..., :-1] <= 1)


@jit
def _differences(
    values: Any, whole: Any, good: Any, bias: Any, apart: bool, chosen: Any, asked: Any,
    base: float, precision: int, emin: int, parts: Any, out: Any,
) -> None:  # fmt: skip
    batch, rows, n, points, _ = values.shape
    work = np.empty(DEEP)
    first, second = np.empty((n, points)), np.empty((n, points))
    for s in range(batch):
        i = chosen[s]
        out[s, :] = -math.inf
        if not good[s, i]:
            continue
        lower, size_i = _row(values[s, i], parts.kept[s, i], -1.0, parts.level_low[s, i], parts.extra_low[s, i],
                             parts.binade[s, i], parts.shares_low[s, i], bias[s, i], apart,
                             parts.low[s, i], parts.high[s, i], base, precision, emin, first, work)  # fmt: skip
        for j in range(rows):
            if j == i or not good[s, j] or not asked[s, j]:
                continue
            upper, size_j = _row(values[s, j], parts.kept[s, j], 1.0, parts.level_high[s, j], parts.extra_high[s, j],
                                 parts.binade[s, j], parts.shares_high[s, j], bias[s, j], apart,
                                 parts.low[s, j], parts.high[s, j], base, precision, emin, second, work)  # fmt: skip
            # first holds −(p − c) of row i, second p + c of row j: the difference is −(first + second)
            total, size = lower + upper, size_i + size_j
            for k in range(n):
                worst = -math.inf
                for t in range(points):
                    worst = max(worst, first[k, t] + second[k, t])
                    if t > 0 and not whole[s, k, t - 1]:
                        worst = max(worst, max(first[k, t - 1], first[k, t]) + max(second[k, t - 1], second[k, t]))
                total += worst
            out[s, j] = -(total + (8.0 * n + 64.0) * 2.0**-52 * size)


@jit
def _row(
    values: Any, inside: Any, sign: float, level: int, extra: float, binades: Any, shares: Any,
    bias: float, apart: bool, low: float, high: float, base: float, precision: int, emin: int, ends: Any, work: Any,
) -> Any:  # fmt: skip
    """Fills ends[k, t] with the leaves' ends at the grid points; returns what comes on top, and the size of it all."""
    n, points, ways = values.shape
    count, size = inside.sum(), 0.0
    alone = not apart and bias != 0.0  # the bias is a leaf like others
    for k in range(n):
        largest = 0.0
        for t in range(points):
            if not inside[k]:
                ends[k, t] = 0.0
            elif count >= 2:
                ends[k, t] = leaf_end(values[k, t], sign, level, binades[k], base, precision, emin, shares[k], work)
            else:
                best = -math.inf
                for way in range(ways):
                    if not math.isnan(values[k, t, way]):
                        best = max(best, sign * values[k, t, way])
                ends[k, t] = best
            largest = max(largest, abs(ends[k, t]))
        size += largest
    total = 0.0
    if count >= 2:
        unit = math.ldexp(1.0, level - precision + 1)
        total += extra - 0.5 * unit
        size += extra + unit
    if alone:
        if count >= 2:
            leaf = np.full(1, bias)
            total += leaf_end(leaf, sign, level, binades[n], base, precision, emin, shares[n], work)
        else:
            total += sign * bias
        size += abs(total)
    elif bias != 0.0:
        most = max(abs(low + bias), abs(high + bias)) * (1.0 + 2.0**-50)
        place = emin if most == 0.0 else max(math.frexp(most)[1] - 1, emin)
        total += sign * bias + math.ldexp(0.5, place - precision + 1)
        size += abs(total)
    return total, size
