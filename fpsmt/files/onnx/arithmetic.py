"""Operators on each element: arithmetic, casts, activations.

What each computes is one rounding of its real result, as IEEE 754 and the standard's formula have it, unless said
otherwise; a formula of several operations rounds each.  An activation is one node; how far an implementation of it may
be off is its contract, which the caller may give for each operator.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np

from fpsmt.files.onnx.graph import Call, Live, Value, operator
from fpsmt.files.onnx.tensors import Fixed, checked_shape, rounded
from fpsmt.floats import Context, Format, Overflow, Subnormals, nearest_context
from fpsmt.floats.vector import Carriers, arithmetic
from fpsmt.functions import Clamped, CorrectlyRounded, Implementation, function_named

OPERATIONS = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
MAX_SLOPES = 4096  #: of a PRelu
INTEGER_OPERATIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}


# -- arithmetic -----------------------------------------------------------------------------------------------


@operator(*OPERATIONS)
def _arithmetic(call: Call) -> list[Value]:
    a, b = call.value(0), call.value(1)
    if isinstance(a, Fixed) and isinstance(b, Fixed) and a.format is b.format is None:
        return [_integers(call, a, b)]
    return [combine(call, OPERATIONS[call.op], a, b)]


def _integers(call: Call, a: Fixed, b: Fixed) -> Fixed:
    checked_shape(np.broadcast_shapes(a.shape, b.shape), "its result")
    if call.op == "Div":
        if (b.values == 0).any():
            call.refuse("it divides an integer by 0")
        sign = np.sign(a.values) * np.sign(b.values)
        return Fixed(None, sign * (np.abs(a.values) // np.abs(b.values)))
    return Fixed(None, INTEGER_OPERATIONS[call.op](a.values, b.values))


def combine(call: Call, operation: str, a: Value, b: Value, name: str | None = None) -> Value:
    """Elementwise, with broadcasting; constants are folded, rounded once in their type."""
    fmt = call.check_float(a, b)
    shape = checked_shape(np.broadcast_shapes(a.shape, b.shape), "its result")
    if isinstance(a, Fixed) and isinstance(b, Fixed):
        return Fixed(fmt, fold(nearest_context(fmt), operation, a.values, b.values))
    for x, y, swapped in ((a, b, False), (b, a, True)):
        if isinstance(y, Fixed) and x.shape == shape and _changes_nothing(operation, y.values, swapped):
            return x
        if operation == "add" and call.graph.bias_from_add and isinstance(x, Live) and isinstance(y, Fixed):
            fused = call.graph.with_bias(x, y.values, name or call.name) if x.shape == shape else None
            if fused is not None:
                return fused
    left, right = (_stretched(call, v, shape) for v in (a, b))
    return call.graph.elementwise(operation, left, right, name or call.name)


def fold(ctx: Context, operation: str, a: Carriers, b: Carriers) -> Carriers:
    made: Carriers = getattr(arithmetic(ctx), operation)(*np.broadcast_arrays(a, b))
    return made


def _changes_nothing(operation: str, constant: Carriers, left: bool) -> bool:
    """x − (+0), x + (−0), x·1 and x/1 are x, for every x, whatever the rounding (subnormals are gradual here)."""
    negative = np.signbit(constant)
    if operation == "add":
        return bool(((constant == 0) & negative).all())
    if operation == "sub" and not left:
        return bool(((constant == 0) & ~negative).all())
    return bool((operation == "mul" or (operation == "div" and not left)) and (constant == 1).all())


def _stretched(call: Call, value: Value, shape: tuple[int, ...]) -> Live:
    moved = call.apply(value, lambda a: np.broadcast_to(a, shape))
    return call.graph.live(moved, call.name)


@operator("Sum")
def _sum(call: Call) -> list[Value]:
    """Two terms are added; more of them are a sum of ones times terms, in any order that the execution allows."""
    from fpsmt.files.onnx.sums import total

    values = [call.value(k) for k in range(len(call.inputs))]
    if len(values) <= 2:
        return [reduce(lambda a, b: combine(call, "add", a, b), values)]
    call.check_float(*values)
    shape = checked_shape(np.broadcast_shapes(*(v.shape for v in values)), "its result")
    parts = [_stretched(call, v, shape) for v in values]
    stacked = Live(parts[0].format, np.stack([p.ids for p in parts], axis=-1))
    return [total(call, stacked, (len(shape),), keep=False)]


@operator("Neg")
def _negated(call: Call) -> list[Value]:
    x = call.value(0)
    if x.format is None and isinstance(x, Fixed):
        return [Fixed(None, -x.values)]
    return [negative(call, x)]


def negative(call: Call, x: Value) -> Value:
    """−x, exactly, as −1·x."""
    return combine(call, "mul", x, Fixed(x.format, np.full((), -1.0)), f"{call.name}.negative")


@operator("Abs")
def _absolute(call: Call) -> list[Value]:
    """max(x, −x) ⊕ (+0): of the two zeros the maximum may be −0, which |x| never is."""
    x = absolute(call, call.value(0))
    return [combine(call, "add", x, Fixed(x.format, np.zeros(())), f"{call.name}.sum") if isinstance(x, Live) else x]


def absolute(call: Call, x: Value) -> Value:
    """max(x, −x), which is |x| but for the sign of a zero."""
    if isinstance(x, Fixed):
        return Fixed(x.format, np.abs(x.values))
    return extreme(call, [x, negative(call, x)], least=False)


@operator("Reciprocal")
def _reciprocal(call: Call) -> list[Value]:
    x = call.value(0)
    return [combine(call, "div", Fixed(x.format, np.ones(())), x)]


@operator("Max", "Min")
def _extremes(call: Call) -> list[Value]:
    values = [call.value(k) for k in range(len(call.inputs))]
    return [extreme(call, values, call.op == "Min")]


def extreme(call: Call, values: list[Value], least: bool) -> Value:
    """The greatest or least of several tensors, elementwise."""
    if all(isinstance(v, Fixed) for v in values):
        if len({v.format for v in values}) > 1:
            call.refuse("its inputs have elements of different types")
        pick = np.minimum if least else np.maximum
        return Fixed(values[0].format, reduce(pick, [v.values for v in values]))  # type: ignore[union-attr]
    call.check_float(*values)
    shape = checked_shape(np.broadcast_shapes(*(v.shape for v in values)), "its result")
    parts = [_stretched(call, v, shape) for v in values]
    if len(parts) == 1:
        return parts[0]
    stacked = Live(parts[0].format, np.stack([p.ids for p in parts], axis=-1))
    places = np.arange(stacked.ids.size).reshape(-1, len(parts))
    return call.graph.extremum(stacked, places, least, call.name, shape)


@operator("Pow")
def _power(call: Call) -> list[Value]:
    """x² = x·x, rounded once; √x; x itself.  Other powers have no formula here."""
    x, exponent = call.value(0), call.fixed(1, "exponent").values
    powers = set(exponent.reshape(-1).tolist())
    if powers == {2} and exponent.size == 1:
        return [combine(call, "mul", x, x)]
    if powers == {0.5} and exponent.size == 1:
        return [activate(call, x, Implementation(function_named("sqrt")))]
    if powers == {1} and exponent.size == 1:
        return [x]
    call.refuse(f"the power {sorted(powers)[:3]} is not supported: only 2, 1 and 1/2 are")


# -- casts ------------------------------------------------------------------------------------------------------


def cast(call: Call, x: Value, to: Format) -> Value:
    """To another float type, rounded once.  `saturate` (the standard's default for 8 bits): beyond the range, and
    at ±inf, the largest value; without it infinity, or NaN where the type has no infinities."""
    if x.format == to:
        return x
    saturate = bool(call.attribute("saturate", 1)) and to.bits <= 8
    overflow = Overflow.SATURATE if saturate else Overflow.INFINITY if to.has_infinity else Overflow.NAN
    ctx = Context(to, nearest_context(to).mode, overflow, Subnormals.GRADUAL)
    if isinstance(x, Fixed) and x.format is None:
        if (np.abs(x.values.astype(object)) > 1 << 53).any():
            call.refuse("an integer is too large")
        return Fixed(to, rounded(to, x.values.astype(np.float64)))
    assert x.format is not None
    if isinstance(x, Fixed):
        values = arithmetic(ctx, x.format).cast(x.values)
        top = float(to.largest)
        return Fixed(to, np.clip(values, -top, top) if saturate else values)
    if saturate and to.has_infinity:  # an infinity stays one in a saturating context: clamp it
        clamp = Clamped(CorrectlyRounded(), -to.largest, to.largest)
        return call.graph.activation(Implementation(function_named("identity"), clamp), x, call.name, ctx)
    return call.graph.cast(x, ctx, call.name)


# -- activations --------------------------------------------------------------------------------------------------

PLAIN = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Softplus": "softplus", "Mish": "mish", "Erf": "erf",
    "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Sin": "sin", "Cos": "cos", "Cosh": "cosh",
}  # fmt: skip

#: Functions that are exact, or that IEEE 754 rounds correctly.
EXACT = ("relu", "leaky_relu", "sqrt", "identity")


def activate(call: Call, x: Value, use: Implementation, name: str | None = None) -> Live:
    """An activation node; the contract that the caller gave for this operator instead of correct rounding, if any, and
    the function, if it is not the identity."""
    graph = call.graph
    given = graph.implementations.get(call.op)
    if given is not None and given.function.name != "identity":
        use = given
        graph.notes[f"{call.op} is read as {given.text}"] = None
    elif given is not None:
        use = Implementation(use.function, given.contract, given.single_valued, given.monotone)
    elif not use.function.name.startswith(EXACT):
        graph.notes[f"{call.op} is taken to be correctly rounded: say what it is with --activation {call.op}=…"] = None
    return graph.activation(use, graph.live(x, call.name), name or call.name)


@operator(*PLAIN)
def _plain(call: Call) -> list[Value]:
    call.check_float(call.value(0))
    return [activate(call, call.value(0), Implementation(function_named(PLAIN[call.op])))]


@operator("LeakyRelu")
def _leaky(call: Call) -> list[Value]:
    x = call.value(0)
    slope = call.number("alpha", 0.01, call.check_float(x))
    return [activate(call, x, _leaky_relu(call, slope.fraction if slope.is_finite else None))]


def _leaky_relu(call: Call, slope: Fraction | None) -> Implementation:
    """x for x ≥ 0, else slope·x rounded once."""
    if slope is None or not 0 <= slope < 1:
        call.refuse("a slope below 0, or not below 1, is not supported")
    return Implementation(function_named(f"leaky_relu({slope})"))


@operator("PRelu")
def _prelu(call: Call) -> list[Value]:
    """An activation for each slope."""
    x, slopes = call.live(0), call.fixed(1, "slope")
    call.check_float(x, slopes)
    each = np.broadcast_to(slopes.values, x.shape)
    ids, distinct = np.empty(x.shape, dtype=np.int64), np.unique(slopes.values)
    if distinct.size > MAX_SLOPES:
        call.refuse(f"it has {distinct.size} different slopes: at most {MAX_SLOPES} are read")
    for slope in distinct:
        here = each == slope
        use = _leaky_relu(call, Fraction(float(slope)) if np.isfinite(slope) else None)
        ids[here] = activate(call, Live(x.format, x.ids[here]), use).ids
    return [Live(x.format, ids)]


@operator("Elu", "Selu", "Celu")
def _elu(call: Call) -> list[Value]:
    x = call.value(0)
    fmt = call.check_float(x)
    alpha = call.number("alpha", 1.67326319217681884765625 if call.op == "Selu" else 1.0, fmt)
    scale = call.number("gamma", 1.05070102214813232421875, fmt)
    if not (alpha.is_finite and scale.is_finite and alpha.fraction > 0 and scale.fraction > 0):
        call.refuse("its constants are not positive numbers")
    if call.op == "Celu" and alpha.fraction != 1:
        call.refuse("alpha other than 1 is not supported")
    constants = f"{alpha.fraction},{scale.fraction}" if call.op == "Selu" else f"{alpha.fraction}"
    return [activate(call, x, Implementation(function_named(f"{call.op.lower().replace('celu', 'elu')}({constants})")))]


@operator("Gelu")
def _gelu(call: Call) -> list[Value]:
    forms = {b"none": "gelu", b"tanh": "gelu_tanh"}
    form = call.attributes.get("approximate", b"none")
    if form not in forms:
        call.refuse(f"its attribute approximate is {form!r:.30}: none or tanh are supported")
    return [activate(call, call.value(0), Implementation(function_named(forms[form])))]


@operator("Swish")
def _swish(call: Call) -> list[Value]:
    if call.attribute("alpha", 1.0) != 1.0:
        call.refuse("alpha other than 1 is not supported")
    return [activate(call, call.value(0), Implementation(function_named("swish")))]


@operator("Softsign")
def _softsign(call: Call) -> list[Value]:
    """x ⊘ (1 ⊕ |x|)."""
    x = call.value(0)
    below = combine(call, "add", Fixed(x.format, np.ones(())), absolute(call, x), f"{call.name}.below")
    return [combine(call, "div", x, below)]


@operator("HardSigmoid", "HardSwish")
def _hard(call: Call) -> list[Value]:
    """max(0, min(1, α·x + β)), the product and the sum as one term and a bias of a sum; HardSwish: x ⊗ that."""
    from fpsmt.files.onnx.sums import scaled

    x = call.live(0)
    swish = call.op == "HardSwish"
    alpha = float(call.number("alpha", float(np.float32(1 / 6)) if swish else 0.2, x.format))
    beta = float(call.number("beta", 0.5, x.format))
    line = scaled(call, x, alpha, beta, f"{call.name}.line")
    gate = call.graph.activation(clamp(Fraction(0), Fraction(1)), line, f"{call.name}.gate" if swish else call.name)
    return [combine(call, "mul", x, gate)] if swish else [gate]


def clamp(low: Fraction | None, high: Fraction | None) -> Implementation:
    return Implementation(function_named("identity"), Clamped(CorrectlyRounded(), low, high))


@operator("Clip")
def _clip(call: Call) -> list[Value]:
    x = call.value(0)
    fmt = call.check_float(x)
    ends: list[Fraction | None] = []
    for k, name in ((1, "min"), (2, "max")):
        if call.has(k):
            given = call.fixed(k, name)
            if given.format != fmt or given.values.size != 1:
                call.refuse(f"its {name} is not one number of the type of its data")
            value = float(given.values.reshape(())[()])
        else:
            top = np.inf if call.opset >= 11 else float(np.finfo(np.float32).max)  # so an infinity is clipped before 11
            value = float(call.number(name, top if k == 2 else -top, fmt))
        if np.isnan(value) or value == (np.inf if k == 1 else -np.inf):
            call.refuse(f"its {name} is {value}")
        ends.append(Fraction(value) if np.isfinite(value) else None)
    low, high = ends
    if low is None and high is None:
        return [x]
    if low is not None and high is not None and low > high:
        call.refuse(f"its min {float(low)} is above its max {float(high)}")
    return [call.graph.activation(clamp(low, high), call.graph.live(x, call.name), call.name)]


