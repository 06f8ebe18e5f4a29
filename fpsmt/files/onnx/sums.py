"""Operators that add: matrix products, convolutions, pooling, reductions.

ONNX fixes neither the order of a sum, nor the use of fma, nor the format of its accumulator: those are the execution's.

* A matrix product is a sum of its products and nothing else; an ``Add`` after it is an operation of its own.
* The bias of ``Gemm`` and ``Conv`` is one more term of each sum: where it enters is the execution's choice of the bias.
  Runtimes begin with it, end with it, or add it to the first block of a long sum.
* ``Gemm`` with other factors than 1 is the standard's formula, alpha·(A·B) + beta·C, each operation rounded.
* The padding of a convolution or a pooling has no terms.
* A mean is the sum (of 1·x, which is exact) divided by the number of terms.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from fpsmt.files.onnx.arithmetic import combine
from fpsmt.files.onnx.graph import MAX_WEIGHTS, Call, Ids, Live, Value, operator
from fpsmt.files.onnx.tensors import MAX_ELEMENTS, Fixed, checked_shape, rounded
from fpsmt.floats.vector import Carriers

# -- matrix products -------------------------------------------------------------------------------------------


@operator("MatMul")
def _matmul(call: Call) -> list[Value]:
    a, b = call.value(0), call.value(1)
    call.check_float(a, b)
    if not a.shape or not b.shape:
        call.refuse("a factor has no dimensions")
    left = call.apply(a, lambda v: v[None, :]) if len(a.shape) == 1 else a
    right = call.apply(b, lambda v: v[:, None]) if len(b.shape) == 1 else b
    made = product(call, left, right, None, call.name)
    call.graph.products.add(call.graph.node_of(made, call.name))
    shape = list(made.shape)
    if len(b.shape) == 1:
        shape.pop(-1)
    if len(a.shape) == 1:
        shape.pop(-1 if len(b.shape) == 1 else -2)
    return [call.apply(made, lambda v: v.reshape(shape))]


def product(call: Call, a: Value, b: Value, bias: Carriers | None, name: str) -> Live:
    """a (…, M, K) times b (…, K, N), at most one of which depends on the inputs; `bias` broadcasts to the result."""
    if isinstance(a, Live) and isinstance(b, Live):
        call.refuse("both factors depend on the network's inputs; only products by constants are supported")
    if a.shape[-1] != b.shape[-2] or a.shape[-1] == 0:
        call.refuse(f"factors of shapes {list(a.shape)} and {list(b.shape)} do not fit, or their sums have no terms")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (m, k), n = a.shape[-2:], b.shape[-1]
    shape = checked_shape((*batch, m, n), "its result")
    if prod(shape) == 0:
        call.refuse("its result has no elements")
    count = prod(batch)
    if isinstance(b, Live):  # row (i, j) of the result reads column j of b, each element times one of row i of a
        values = np.broadcast_to(a.values, (*batch, m, k)).reshape(count, m, k)  # type: ignore[union-attr]
        x = Live(b.format, np.broadcast_to(b.ids, (*batch, k, n)))
    else:
        values = np.broadcast_to(b.values, (*batch, k, n)).reshape(count, k, n)
        a = call.graph.live(a, name)
        x = Live(a.format, np.broadcast_to(a.ids, (*batch, m, k)))
    flat = None if bias is None else np.ascontiguousarray(np.broadcast_to(bias, shape)).reshape(-1)
    if count == 1 and (n if isinstance(b, Live) else m) == 1:
        weights = values[0] if isinstance(b, Live) else values[0].T
        return call.graph.dense(x, weights, flat, name, shape)
    sums = prod(shape)
    if sums * k > MAX_ELEMENTS or sums * x.ids.size > MAX_WEIGHTS:
        call.refuse(f"it unrolls to {sums} sums over {x.ids.size} values: at most {MAX_WEIGHTS} weights are held")
    positions = np.arange(x.ids.size)
    if isinstance(b, Live):
        places = np.broadcast_to(positions.reshape(count, 1, k, n).swapaxes(2, 3), (count, m, n, k))
        weights = np.broadcast_to(values[:, :, None, :], (count, m, n, k))
    else:
        places = np.broadcast_to(positions.reshape(count, m, 1, k), (count, m, n, k))
        weights = np.broadcast_to(values.swapaxes(1, 2)[:, None], (count, m, n, k))
    return call.graph.sparse(x, places.reshape(sums, k), weights.reshape(sums, k), flat, name, shape)


@operator("Gemm")
def _gemm(call: Call) -> list[Value]:
    a, b = call.value(0), call.value(1)
    fmt = call.check_float(a, b)
    if len(a.shape) != 2 or len(b.shape) != 2:
        call.refuse(f"factors of shapes {list(a.shape)} and {list(b.shape)} are not matrices")
    a, b = (
        call.apply(v, lambda m: m.T) if call.attribute(name, 0) else v for v, name in ((a, "transA"), (b, "transB"))
    )
    alpha, beta = call.number("alpha", 1.0, fmt), call.number("beta", 1.0, fmt)
    c = call.value(2) if call.has(2) else None
    if c is not None:
        call.check_float(a, c)
        shape = (a.shape[0], b.shape[1])
        if np.broadcast_shapes(c.shape, shape) != shape:
            call.refuse(f"its C of shape {list(c.shape)} does not fit a result of shape {list(shape)}")
    if isinstance(c, Fixed) and alpha.fraction == beta.fraction == 1:
        return [product(call, a, b, c.values, call.name)]
    made: Value = product(call, a, b, None, call.name if alpha.fraction == 1 and c is None else f"{call.name}.product")
    made = combine(call, "mul", made, Fixed(fmt, np.array(float(alpha))), f"{call.name}.scaled" if c else None)
    if c is not None:
        made = combine(call, "add", made, combine(call, "mul", c, Fixed(fmt, np.array(float(beta)))))
    return [made]


# -- windows ---------------------------------------------------------------------------------------------------


def windows(call: Call, size: tuple[int, ...], kernel: list[int]) -> tuple[Ids, tuple[int, ...]]:
    """Where each window reads: (windows, elements of the kernel) of places in the flattened space, −1 for padding;
    and the shape of the windows.  By the attributes strides, dilations, pads, auto_pad and ceil_mode."""
    rank = len(size)
    strides, dilations = call.attribute("strides", [1] * rank), call.attribute("dilations", [1] * rank)
    pads = call.attribute("pads", [0] * (2 * rank))
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank or min(pads) < 0:
        given = f"kernel {kernel}, strides {strides}, dilations {dilations} and pads {pads}"
        call.refuse(f"{given} do not fit {list(size)}")
    if min(*kernel, *strides, *dilations) < 1:
        call.refuse(f"kernel {kernel}, strides {strides} and dilations {dilations} should be positive")
    auto = call.attributes.get("auto_pad", b"NOTSET")
    if auto not in (b"NOTSET", b"VALID", b"SAME_UPPER", b"SAME_LOWER"):
        call.refuse(f"its auto_pad is {auto!r:.30}")
    if auto in (b"SAME_UPPER", b"SAME_LOWER") and max(dilations) > 1:
        call.refuse("runtimes do not agree what auto_pad does where there are dilations: write pads")
    places: Ids = np.zeros((1, 1), dtype=np.int64)
    shape: list[int] = []
    for d in range(rank):
        reach = (kernel[d] - 1) * dilations[d] + 1
        before, after = (0, 0) if auto == b"VALID" else (pads[d], pads[rank + d])
        if auto in (b"SAME_UPPER", b"SAME_LOWER"):
            both = max((-(-size[d] // strides[d]) - 1) * strides[d] + reach - size[d], 0)
            before = both // 2 if auto == b"SAME_UPPER" else both - both // 2
            after = both - before
        room = size[d] + before + after - reach
        if room < 0:
            call.refuse(f"its kernel {kernel} is larger than the space {list(size)}")
        if call.attribute("ceil_mode", 0) and room % strides[d]:
            call.refuse("its ceil_mode adds windows that end in nothing, which is not supported")
        count = room // strides[d] + 1
        checked_shape([*shape, count, len(places[0]) * kernel[d]], "its windows")
        at = np.arange(count)[:, None] * strides[d] + np.arange(kernel[d]) * dilations[d] - before
        inside = (at >= 0) & (at < size[d])
        joined = places[:, None, :, None] * size[d] + at[None, :, None, :]
        joined = np.where((places[:, None, :, None] < 0) | ~inside[None, :, None, :], -1, joined)
        places = joined.reshape(len(places) * count, -1)
        shape.append(count)
    return places, tuple(shape)


@operator("Conv")
def _conv(call: Call) -> list[Value]:
    x, kernels = call.live(0), call.fixed(1, "kernel")
    call.check_float(x, kernels)
    if len(x.shape) < 3 or len(kernels.shape) != len(x.shape):
        call.refuse(f"a kernel of shape {list(kernels.shape)} does not fit data of shape {list(x.shape)}")
    (batch, channels), space = x.shape[:2], x.shape[2:]
    out, each = kernels.shape[:2]
    groups = call.attribute("group", 1)
    if groups < 1 or channels != each * groups or out % groups or prod(x.shape) == 0 or prod(kernels.shape) == 0:
        call.refuse(f"a kernel of shape {list(kernels.shape)} in {groups} groups does not fit {list(x.shape)}")
    if call.attribute("kernel_shape", list(kernels.shape[2:])) != list(kernels.shape[2:]):
        call.refuse("its kernel_shape is not that of its kernel")
    bias = None
    if call.has(2):
        given = call.fixed(2, "bias")
        call.check_float(x, given)
        if given.shape != (out,):
            call.refuse(f"a bias of shape {list(given.shape)} does not fit {out} channels")
        bias = given.values
    inner, shape = windows(call, space, list(kernels.shape[2:]))
    count, terms = len(inner), each * inner.shape[1]
    if batch * out * count * terms > MAX_ELEMENTS or batch * out * count * x.ids.size > MAX_WEIGHTS:
        call.refuse(
            f"it unrolls to {batch * out * count} sums over {x.ids.size} values: at most {MAX_WEIGHTS} weights are held"
        )
    first = (np.arange(batch)[:, None] * channels + np.arange(out)[None, :] // (out // groups) * each) * prod(space)
    offset = first[:, :, None, None, None] + (np.arange(each) * prod(space))[None, None, None, :, None]
    places = np.where(inner[None, None, :, None, :] < 0, -1, offset + inner[None, None, :, None, :])
    weights = np.broadcast_to(kernels.values.reshape(1, out, 1, terms), (batch, out, count, terms))
    sums = batch * out * count
    places, weights = places.reshape(sums, terms), weights.reshape(sums, terms)
    bias = None if bias is None else np.broadcast_to(bias[None, :, None], (batch, out, count)).reshape(-1)
    if bias is None and not (places >= 0).any(axis=1).all():
        call.refuse("a window lies in the padding alone")
    return [call.graph.sparse(x, places, weights, bias, call.name, (batch, out, *shape))]


def _spread(call: Call, x: Live, inner: Ids, shape: tuple[int, ...]) -> tuple[Ids, tuple[int, ...]]:
    """The same windows for each of the first two dimensions."""
    planes, space = prod(x.shape[:2]), prod(x.shape[2:])
    if planes * inner.size > MAX_ELEMENTS:
        call.refuse(f"its windows have more than {MAX_ELEMENTS} elements")
    places = np.where(inner[None] < 0, -1, np.arange(planes)[:, None, None] * space + inner[None])
    if not (inner >= 0).any(axis=1).all():
        call.refuse("a window lies in the padding alone")
    return places.reshape(-1, inner.shape[1]), (*x.shape[:2], *shape)


@operator("MaxPool", "AveragePool")
def _pool(call: Call) -> list[Value]:
    x = call.live(0)
    kernel = call.attribute("kernel_shape", list[int]())
    if len(x.shape) < 3 or not kernel:
        call.refuse(f"data of shape {list(x.shape)} or a kernel {kernel} cannot be pooled")
    if call.outputs > 1:
        call.refuse("its indices are used")
    inner, shape = windows(call, x.shape[2:], kernel)
    places, full = _spread(call, x, inner, shape)
    if call.op == "MaxPool":
        return [call.graph.extremum(x, places, False, call.name, full)]
    counts = np.full(len(inner), inner.shape[1])
    if not call.attribute("count_include_pad", 0):
        counts = (inner >= 0).sum(axis=1)
    return [_mean(call, x, places, np.broadcast_to(counts.reshape(shape), full), full)]


@operator("GlobalMaxPool", "GlobalAveragePool")
def _global_pool(call: Call) -> list[Value]:
    x = call.live(0)
    if len(x.shape) < 3 or prod(x.shape) == 0:
        call.refuse(f"data of shape {list(x.shape)} cannot be pooled")
    full = (*x.shape[:2], *(1,) * (len(x.shape) - 2))
    places = np.arange(x.ids.size).reshape(prod(x.shape[:2]), -1)
    if call.op == "GlobalMaxPool":
        return [call.graph.extremum(x, places, False, call.name, full)]
    return [_mean(call, x, places, np.full(full, places.shape[1]), full)]


def _mean(call: Call, x: Live, places: Ids, counts: NDArray[np.int64], shape: tuple[int, ...]) -> Value:
    total = _ones(call, x, places, f"{call.name}.sum", shape)
    return combine(call, "div", total, Fixed(x.format, rounded(x.format, counts.astype(np.float64))))


def _ones(call: Call, x: Live, places: Ids, name: str, shape: tuple[int, ...]) -> Live:
    """The sums of the elements at these places."""
    return call.graph.sparse(x, places, np.ones(places.shape), None, name, shape)


# -- reductions ------------------------------------------------------------------------------------------------


def _reduced(call: Call, x: Live) -> tuple[tuple[int, ...], bool] | None:
    """The axes and whether they are kept; None when nothing is reduced."""
    axes = call.integers(1, "axes")
    rank = len(x.shape)
    if not axes:
        if call.attribute("noop_with_empty_axes", 0):
            return None
        axes = list(range(rank))
    return tuple(sorted({call.axis(a, rank) for a in axes})), bool(call.attribute("keepdims", 1))


def grouped(call: Call, x: Live, axes: tuple[int, ...], keep: bool) -> tuple[Ids, tuple[int, ...]]:
    """The places of each group along the axes, and the shape of the groups."""
    rest = [k for k in range(len(x.shape)) if k not in axes]
    if prod(x.shape) == 0:
        call.refuse("it reduces no elements")
    places = np.arange(x.ids.size).reshape(x.shape).transpose(*rest, *axes)
    shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape) if keep or k not in axes)
    return places.reshape(prod(x.shape[k] for k in rest), -1), shape


def total(call: Call, x: Live, axes: tuple[int, ...], keep: bool, name: str | None = None) -> Live:
    """The sums along axes."""
    places, shape = grouped(call, x, axes, keep)
    return _ones(call, x, places, name or call.name, shape)


def mean(call: Call, x: Live, axes: tuple[int, ...], keep: bool, name: str) -> Value:
    """The sums along axes, each divided by how many terms it has."""
    places, _ = grouped(call, x, axes, keep)
    count = rounded(x.format, np.array(float(places.shape[1])))
    return combine(call, "div", total(call, x, axes, keep, f"{name}.sum"), Fixed(x.format, count), name)


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")
def _reduce(call: Call) -> list[Value]:
    value = call.value(0)
    if isinstance(value, Fixed) and value.format is None:
        call.refuse("a reduction of integers is not supported")
    x = call.live(0)
    found = _reduced(call, x)
    if found is None:
        return [x]
    axes, keep = found
    if call.op == "ReduceSum":
        return [total(call, x, axes, keep)]
    if call.op == "ReduceMean":
        return [mean(call, x, axes, keep, call.name)]
    places, shape = grouped(call, x, axes, keep)
    return [call.graph.extremum(x, places, call.op == "ReduceMin", call.name, shape)]


def scaled(call: Call, x: Live, factor: float, offset: float, name: str) -> Live:
    """factor·x + offset for each element: sums of one term and a bias."""
    places = np.arange(x.ids.size)[:, None]
    factors, offsets = np.full((x.ids.size, 1), factor), np.full(x.ids.size, offset)
    return call.graph.sparse(x, places, factors, offsets, name, x.shape)
