"""Operators made of several steps: batch and layer normalisation, softmax.  The steps are those of the standard."""

from __future__ import annotations

import numpy as np

from fpsmt.files.onnx.arithmetic import activate, cast, combine
from fpsmt.files.onnx.graph import Call, Live, Value, operator
from fpsmt.files.onnx.sums import grouped, mean, total
from fpsmt.files.onnx.tensors import FLOATS, Fixed, rounded
from fpsmt.floats import Format, nearest_context
from fpsmt.floats.vector import arithmetic
from fpsmt.functions import Implementation, function_named


def _epsilon(call: Call, fmt: Format) -> Fixed:
    return Fixed(fmt, np.array(float(call.number("epsilon", 1e-5, fmt))))


@operator("BatchNormalization")
def _batch_norm(call: Call) -> list[Value]:
    """(x ⊖ mean) ⊘ √(variance ⊕ epsilon) ⊗ scale ⊕ bias, for each channel.  Runtimes may fold the constants."""
    x = call.value(0)
    fmt = call.check_float(x)
    if call.attribute("training_mode", 0) or call.outputs > 1 or not call.attribute("spatial", 1):
        call.refuse("it is in training mode, or not spatial")
    if len(x.shape) < 2:
        call.refuse(f"data of shape {list(x.shape)} have no channels")
    parts = []
    for k, name in enumerate(("scale", "bias", "mean", "variance"), start=1):
        part = call.fixed(k, name)
        if part.format != fmt or part.shape != (x.shape[1],):
            call.refuse(f"its {name} does not have {x.shape[1]} elements of the type of its data")
        parts.append(Fixed(fmt, part.values.reshape(-1, *(1,) * (len(x.shape) - 2))))
    scale, bias, average, variance = parts
    shifted = combine(call, "add", variance, _epsilon(call, fmt))
    assert isinstance(shifted, Fixed)
    deviation = Fixed(fmt, arithmetic(nearest_context(fmt)).sqrt(shifted.values))
    made = combine(call, "sub", x, average, f"{call.name}.centred")
    made = combine(call, "div", made, deviation, f"{call.name}.normal")
    made = combine(call, "mul", made, scale, f"{call.name}.scaled")
    return [combine(call, "add", made, bias)]


@operator("Softmax")
def _softmax(call: Call) -> list[Value]:
    """exp(x ⊖ max) ⊘ Σ exp(x ⊖ max), along an axis (before opset 13 along all axes from it on)."""
    x = call.live(0)
    rank = len(x.shape)
    axis = call.axis(call.attribute("axis", -1 if call.opset >= 13 else 1), rank)
    axes = (axis,) if call.opset >= 13 else tuple(range(axis, rank))
    places, shape = grouped(call, x, axes, keep=True)
    greatest = call.graph.extremum(x, places, False, f"{call.name}.greatest", shape)
    below = combine(call, "sub", x, greatest, f"{call.name}.below")
    powers = activate(call, below, Implementation(function_named("exp")), f"{call.name}.exp")
    return [combine(call, "div", powers, total(call, powers, axes, True, f"{call.name}.sum"))]


@operator("LayerNormalization")
def _layer_norm(call: Call) -> list[Value]:
    """The standard's function body, computed in the type `stash_type` (float32) up to the scale:
    (x ⊖ μ) ⊘ √(mean(x ⊗ x) ⊖ μ ⊗ μ ⊕ epsilon) with μ = mean(x), then ⊗ scale ⊕ bias in the type of x."""
    given = call.live(0)
    fmt = call.check_float(given, call.value(1), *([call.value(2)] if call.has(2) else []))
    stash = call.attribute("stash_type", 1)
    if stash not in FLOATS or call.outputs > 1:
        call.refuse("its stash_type is no float type, or its mean or deviation is used")
    axis = call.axis(call.attribute("axis", -1), len(given.shape))
    axes = tuple(range(axis, len(given.shape)))
    inner = FLOATS[stash][1]
    x = cast(call, given, inner)
    assert isinstance(x, Live)
    average = mean(call, x, axes, True, f"{call.name}.mean")
    squares = combine(call, "mul", x, x, f"{call.name}.squares")
    spread = mean(call, _live(squares), axes, True, f"{call.name}.meansquare")
    variance = combine(
        call, "sub", spread, combine(call, "mul", average, average, f"{call.name}.squaredmean"), f"{call.name}.variance"
    )
    epsilon = Fixed(inner, rounded(inner, np.float32(call.attribute("epsilon", float(np.float32(1e-5))))))
    shifted = combine(call, "add", variance, epsilon, f"{call.name}.shifted")
    deviation = activate(call, shifted, Implementation(function_named("sqrt")), f"{call.name}.deviation")
    centred = combine(call, "sub", x, average, f"{call.name}.centred")
    normal = cast(call, combine(call, "div", centred, deviation, f"{call.name}.normal"), fmt)
    made = combine(call, "mul", normal, call.value(1), f"{call.name}.scaled" if call.has(2) else None)
    return [combine(call, "add", made, call.value(2)) if call.has(2) else made]


def _live(value: Value) -> Live:
    assert isinstance(value, Live)
    return value
