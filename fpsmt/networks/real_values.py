"""A network over the real numbers, exactly: what its executions approximate."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from fpsmt.errors import Unsupported
from fpsmt.floats import Float
from fpsmt.floats.vector import to_floats
from fpsmt.functions import Clamped, CorrectlyRounded
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Extremum, Input, Node, Select

Vector = tuple[Fraction, ...]


def real_outputs(network: Network, inputs: Sequence[Float]) -> Vector:
    """The values of the only output when nothing is rounded, for one input and finite parameters.

    Raises `Unsupported` for activations whose values are not rational, divisions by 0, and values that are no numbers.

    >>> from fpsmt.floats import exactly, float16
    >>> net = Network.sequential("float16", 2, [([[2048, 1]], [0.5]), "relu"])
    >>> real_outputs(net, [exactly(float16, 1), exactly(float16, 1)])
    (Fraction(4099, 2),)
    """
    values: dict[str, Vector] = {}
    for node in network.nodes:
        if isinstance(node, Input):
            values[node.name] = _numbers(inputs)
        else:
            values[node.name] = _value(node, [values[s] for s in node.sources])
    return values[network.output.name]


def _numbers(floats: Sequence[Float]) -> Vector:
    if not all(x.is_finite for x in floats):
        raise Unsupported("an infinity or NaN has no place among the real numbers")
    return tuple(x.fraction for x in floats)


def _value(node: Node, sources: list[Vector]) -> Vector:
    if isinstance(node, Constant):
        return _numbers(to_floats(node.format, node.values))
    if isinstance(node, Affine):
        return _affine(node, sources[0])
    if isinstance(node, Activation):
        return tuple(_activation(node, x) for x in sources[0])
    if isinstance(node, Cast):
        return sources[0]
    if isinstance(node, Select):
        return tuple(sources[k][i] for k, i in node.picks)
    if isinstance(node, Extremum):
        return tuple((min if node.least else max)(sources[0][i] for i in group) for group in node.groups)
    if isinstance(node, Elementwise):
        return tuple(_operation(node, a, b) for a, b in zip(*sources, strict=True))
    raise Unsupported(f"nodes of class {type(node).__name__} ({node.name!r}) have no real value here")


def _affine(node: Affine, x: Vector) -> Vector:
    out = []
    for i in range(len(node.weights)):
        columns = node.columns(i)
        weights = _numbers(to_floats(node.formats[0], node.weights[i][columns]))
        total = sum((w * x[j] for w, j in zip(weights, columns.tolist(), strict=True)), Fraction(0))
        if node.bias is not None:
            total += _numbers(to_floats(node.formats[1], node.bias[i : i + 1]))[0]
        out.append(total)
    return tuple(out)


def _activation(node: Activation, x: Fraction) -> Fraction:
    contract = node.implementation.contract
    inner = contract.inner if isinstance(contract, Clamped) else contract
    y = node.implementation.function.exact(x) if isinstance(inner, CorrectlyRounded) else None
    if y is None:
        raise Unsupported(f"{node.implementation.text} at {x} is not a rational that is known")
    if isinstance(contract, Clamped):
        y = y if contract.low is None else max(y, contract.low)
        y = y if contract.high is None else min(y, contract.high)
    return y


def _operation(node: Elementwise, a: Fraction, b: Fraction) -> Fraction:
    if node.operation == "div" and b == 0:
        raise Unsupported(f"{node.name!r} divides by 0")
    return {"add": a.__add__, "sub": a.__sub__, "mul": a.__mul__, "div": a.__truediv__}[node.operation](b)
