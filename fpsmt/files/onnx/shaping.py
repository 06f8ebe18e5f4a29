"""Operators that only move elements, and those that compute shapes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.files.onnx.graph import Call, Live, Value, operator
from fpsmt.files.onnx.tensors import FLOATS, Fixed, checked_shape, read_tensor, rounded, type_name
from fpsmt.floats import float32


@operator("Identity")
def _identity(call: Call) -> list[Value]:
    return [call.value(0)]


@operator("Dropout")
def _dropout(call: Call) -> list[Value]:
    """At inference nothing is dropped."""
    if call.has(2) and call.fixed(2, "training_mode").values.any():
        call.refuse("it is in training mode")
    if call.outputs > 1:
        call.refuse("its mask is used")
    return [call.value(0)]


@operator("Constant")
def _constant(call: Call) -> list[Value]:
    for name, value in call.attributes.items():
        if name == "value":
            return [read_tensor(value, "its value")]
        if name in ("value_float", "value_floats"):
            return [Fixed(float32, rounded(float32, value))]
        if name in ("value_int", "value_ints"):
            return [Fixed(None, np.array(value, dtype=np.int64))]
    call.refuse("it has no value that is supported")


@operator("ConstantOfShape")
def _constant_of_shape(call: Call) -> list[Value]:
    shape = checked_shape(call.fixed(0, "shape").values.reshape(-1), "its result")
    value = Fixed(float32, np.zeros(1))
    if "value" in call.attributes:
        value = read_tensor(call.attributes["value"], "its value")
    if value.values.size != 1:
        call.refuse("its value is not one number")
    return [Fixed(value.format, np.full(shape, value.values.reshape(-1)[0]))]


@operator("Shape")
def _shape(call: Call) -> list[Value]:
    shape = np.array(call.value(0).shape, dtype=np.int64)
    end = call.attributes.get("end")
    return [Fixed(None, shape[call.attribute("start", 0) : end])]


@operator("Size")
def _size(call: Call) -> list[Value]:
    return [Fixed(None, np.array(prod(call.value(0).shape), dtype=np.int64))]


@operator("Range")
def _range(call: Call) -> list[Value]:
    ends = [call.fixed(k, "range") for k in range(3)]
    if any(end.format is not None or end.values.size != 1 for end in ends):
        call.refuse("a range of floats is not supported")
    start, stop, step = (int(end.values.reshape(-1)[0]) for end in ends)
    if step == 0:
        call.refuse("its step is 0")
    checked_shape([len(range(start, stop, step))], "its result")
    return [Fixed(None, np.arange(start, stop, step, dtype=np.int64))]


@operator("Cast", "CastLike")
def _cast(call: Call) -> list[Value]:
    from fpsmt.files.onnx.arithmetic import cast

    x = call.value(0)
    if call.op == "CastLike":
        like = call.value(1).format
        to = next((number for number, (_, fmt) in FLOATS.items() if fmt == like), 0)
    else:
        to = call.attribute("to", 0)
    if isinstance(x, Fixed) and to in (6, 7, 9):
        if x.format is not None and not (np.isfinite(x.values) & (np.abs(x.values) < 2.0**31)).all():
            call.refuse("a constant is beyond the range of integers")
        return [Fixed(None, np.trunc(x.values).astype(np.int64) if to != 9 else x.values != 0)]
    if to not in FLOATS:
        call.refuse(f"a cast to {type_name(to)} is not supported")
    return [cast(call, x, FLOATS[to][1])]


# -- one tensor ---------------------------------------------------------------------------------------------


@operator("Flatten")
def _flatten(call: Call) -> list[Value]:
    x = call.value(0)
    rank = len(x.shape)
    axis = call.attribute("axis", 1)
    axis = axis if axis == rank else call.axis(axis, rank)
    return [call.apply(x, lambda a: a.reshape(prod(a.shape[:axis]), -1) if a.size else a.reshape(0, 0))]


@operator("Reshape")
def _reshape(call: Call) -> list[Value]:
    x = call.value(0)
    wanted = call.integers(1, "shape")
    if wanted is None:
        call.refuse("it has no shape")
    zeros = call.attribute("allowzero", 0)
    shape = [x.shape[k] if d == 0 and not zeros and k < len(x.shape) else d for k, d in enumerate(wanted)]
    known = prod(d for d in shape if d != -1)
    if shape.count(-1) > 1 or any(d < -1 for d in shape) or (known == 0 and -1 in shape):
        call.refuse(f"the shape {wanted} does not fit one of {list(x.shape)}")
    if prod(x.shape) != known * (prod(x.shape) // known if -1 in shape else 1):
        call.refuse(f"the shape {wanted} does not fit one of {list(x.shape)}")
    return [call.apply(x, lambda a: a.reshape(shape))]


@operator("Transpose")
def _transpose(call: Call) -> list[Value]:
    x = call.value(0)
    perm = call.attribute("perm", list(range(len(x.shape)))[::-1])
    if sorted(perm) != list(range(len(x.shape))):
        call.refuse(f"the permutation {perm} does not fit the shape {list(x.shape)}")
    return [call.apply(x, lambda a: a.transpose(perm))]


@operator("Squeeze")
def _squeeze(call: Call) -> list[Value]:
    x = call.value(0)
    axes = call.integers(1, "axes")
    rank = len(x.shape)
    chosen = {k for k in range(rank) if x.shape[k] == 1} if axes is None else {call.axis(a, rank) for a in axes}
    if any(x.shape[k] != 1 for k in chosen):
        call.refuse(f"it removes a dimension that is not 1: axes {axes} of {list(x.shape)}")
    return [call.apply(x, lambda a: a.reshape([d for k, d in enumerate(a.shape) if k not in chosen]))]


@operator("Unsqueeze")
def _unsqueeze(call: Call) -> list[Value]:
    x = call.value(0)
    axes = call.integers(1, "axes")
    if axes is None:
        call.refuse("it has no axes")
    rank = len(x.shape) + len(axes)
    chosen = {call.axis(a, rank) for a in axes}
    if len(chosen) != len(axes):
        call.refuse(f"the axes {axes} are not distinct")
    rest = iter(x.shape)
    shape = [1 if k in chosen else next(rest) for k in range(rank)]
    return [call.apply(x, lambda a: a.reshape(shape))]


@operator("Expand")
def _expand(call: Call) -> list[Value]:
    x = call.value(0)
    wanted = call.integers(1, "shape") or []
    checked_shape(wanted, "its result")
    shape = np.broadcast_shapes(x.shape, tuple(wanted))
    checked_shape(shape, "its result")
    return [call.apply(x, lambda a: np.broadcast_to(a, shape))]


@operator("Tile")
def _tile(call: Call) -> list[Value]:
    x = call.value(0)
    repeats = call.integers(1, "repeats") or []
    if len(repeats) != len(x.shape):
        call.refuse(f"{len(repeats)} repeats do not fit the shape {list(x.shape)}")
    checked_shape([d * r for d, r in zip(x.shape, repeats)], "its result")
    return [call.apply(x, lambda a: np.tile(a, repeats))]


@operator("Slice")
def _slice(call: Call) -> list[Value]:
    x = call.value(0)
    rank = len(x.shape)
    starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
    if starts is None or ends is None:
        call.refuse("it has no starts or no ends")
    axes = call.integers(3, "axes", list(range(len(starts))))
    steps = call.integers(4, "steps", [1] * len(starts))
    assert axes is not None and steps is not None
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        call.refuse(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit")
    cuts = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis = call.axis(axis, rank)
        size = x.shape[axis]
        first = min(max(start + size if start < 0 else start, 0), size if step > 0 else size - 1)
        last = end + size if end < 0 else end
        last = min(max(last, 0), size) if step > 0 else min(max(last, -1), size - 1)
        cuts[axis] = slice(first, None if last < 0 else last, step)
    return [call.apply(x, lambda a: a[tuple(cuts)])]


@operator("Gather")
def _gather(call: Call) -> list[Value]:
    x, which = call.value(0), call.fixed(1, "indices")
    axis = call.axis(call.attribute("axis", 0), len(x.shape))
    if which.format is not None or not x.shape:
        call.refuse("its indices are not integers, or its data have no dimension")
    size = x.shape[axis]
    if which.values.size and not (-size <= which.values.min() and which.values.max() < size):
        call.refuse(f"an index is not below {size}")
    checked_shape([*x.shape[:axis], *which.shape, *x.shape[axis + 1 :]], "its result")
    return [call.apply(x, lambda a: np.take(a, which.values % max(size, 1), axis=axis))]


@operator("Split")
def _split(call: Call) -> list[Value]:
    x = call.value(0)
    axis = call.axis(call.attribute("axis", 0), len(x.shape))
    size, parts = x.shape[axis], call.attribute("num_outputs", call.outputs)
    sizes = call.integers(1, "split")
    if sizes is None:
        if not 0 < parts <= 10_000:
            call.refuse(f"it has {parts} parts")
        each = -(-size // parts)
        sizes = [min(each, size - k * each) for k in range(parts)]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        call.refuse(f"the sizes {sizes} do not fit {size} elements")
    ends = np.cumsum([0, *sizes]).tolist()

    def part(low: int, high: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
        return lambda a: a[(slice(None),) * axis + (slice(low, high),)]

    return [call.apply(x, part(low, high)) for low, high in pairwise(ends)]


# -- several tensors ----------------------------------------------------------------------------------------


@operator("Concat")
def _concat(call: Call) -> list[Value]:
    values = [call.value(k) for k in range(len(call.inputs))]
    if not values or not values[0].shape:
        call.refuse("it has no inputs with dimensions")
    axis = call.axis(call.attribute("axis", 0), len(values[0].shape))
    if len({len(v.shape) for v in values}) > 1:
        call.refuse("its inputs do not have equally many dimensions")
    checked_shape(
        [*values[0].shape[:axis], sum(v.shape[axis] for v in values), *values[0].shape[axis + 1 :]], "its result"
    )
    if all(isinstance(v, Fixed) for v in values):
        formats = {v.format for v in values}
        if len(formats) > 1:
            call.refuse("its inputs have elements of different types")
        return [Fixed(values[0].format, np.concatenate([v.values for v in values], axis))]  # type: ignore[union-attr]
    fmt = call.check_float(*values)
    parts = [call.graph.live(v, call.name).ids for v in values if prod(v.shape)]
    return [Live(fmt, np.concatenate(parts, axis))]


@operator("Pad")
def _pad(call: Call) -> list[Value]:
    x = call.value(0)
    rank = len(x.shape)
    pads = call.integers(1, "pads")
    axes = call.integers(3, "axes", list(range(rank)))
    mode = call.attributes.get("mode", b"constant")
    if pads is None or axes is None or len(pads) != 2 * len(axes) or min(pads, default=0) < 0:
        call.refuse(f"the pads {pads} do not fit, or take elements away")
    if mode not in (b"constant", b"reflect", b"edge"):
        call.refuse(f"its mode {mode!r:.30} is not supported")
    widths = [(0, 0)] * rank
    for k, axis in enumerate(axes):
        widths[call.axis(axis, rank)] = pads[k], pads[k + len(axes)]
    shape = checked_shape([d + sum(w) for d, w in zip(x.shape, widths)], "its result")
    if mode != b"constant":
        return [call.apply(x, lambda a: np.pad(a, widths, mode=mode.decode()))]  # type: ignore[call-overload]
    fill = np.zeros(())
    if call.has(2):
        given = call.fixed(2, "constant_value")
        if given.format != x.format or given.values.size != 1:
            call.refuse("its constant_value is not one number of the type of its data")
        fill = given.values.reshape(())
    elif "value" in call.attributes:
        fill = np.array(float(call.number("value", 0.0, call.check_float(x))))
    if isinstance(x, Fixed):
        return [Fixed(x.format, np.pad(x.values, widths, constant_values=fill.astype(x.values.dtype)))]
    constant = call.graph.live(Fixed(x.format, fill.reshape(1)), call.name).ids[0]
    made = np.pad(x.ids, widths, constant_values=constant)
    assert made.shape == shape
    return [Live(x.format, made)]
