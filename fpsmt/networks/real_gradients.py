"""The gradient of a network in real numbers, enclosed: what reverse mode as executed approximates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from fpsmt.errors import Unsupported
from fpsmt.floats import Float
from fpsmt.floats.vector import to_floats
from fpsmt.functions import enclose
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Input, Node, Select

Interval = tuple[Fraction, Fraction]
ZERO: Interval = (Fraction(0), Fraction(0))


def real_gradient(network: Network, box: Sequence[tuple[Float, Float]], loss: Sequence[Float]) -> list[Interval]:
    """For each input element an interval with Σ yᵢ·∂Nᵢ/∂x, y the loss derivative, wherever in the box it exists.

    Nothing is rounded, and activations are the functions that they implement.  At a kink the interval holds the
    derivatives of both sides.  One input and one output; ends and parameters are finite.
    Raises `Unsupported` for other nodes, and for a division by an interval with 0.

    >>> from fpsmt.floats import exactly, float16
    >>> net = Network.sequential("float16", 1, [([[3], [-1]], None), "relu", ([[1, 2]], None)])
    >>> x, one = exactly(float16, 1), exactly(float16, 1)
    >>> [[str(end) for end in each] for each in real_gradient(net, [(x, x)], [one])]
    [['3', '3']]
    >>> [[str(end) for end in each] for each in real_gradient(net, [(-x, x)], [one])]
    [['-2', '3']]
    """
    values: dict[str, list[Interval]] = {}
    for node in network.nodes:
        values[node.name] = _forward(node, values, box)
    arrived = {name: [ZERO] * size for name, size in network.sizes.items()}
    arrived[network.output.name] = [(y, y) for y in _numbers(loss)]
    for node in reversed(network.nodes):
        for name, k, g in _backward(node, values, arrived[node.name]):
            arrived[name][k] = _add(arrived[name][k], g)
    return arrived[network.input.name]


def _forward(node: Node, values: dict[str, list[Interval]], box: Sequence[tuple[Float, Float]]) -> list[Interval]:
    sources = [values[s] for s in node.sources]
    if isinstance(node, Input):
        return [(a, b) for a, b in (_numbers(pair) for pair in box)]
    if isinstance(node, Constant):
        return [(v, v) for v in _numbers(to_floats(node.format, node.values))]
    if isinstance(node, Affine):
        bias = [Fraction(0)] * len(node.weights)
        if node.bias is not None:
            bias = _numbers(to_floats(node.formats[1], node.bias))
        return [
            _sum([(b, b), *(_mul((w, w), sources[0][j]) for j, w in _row(node, i))]) for i, b in enumerate(bias)
        ]
    if isinstance(node, Activation):
        return [enclose(node.implementation.function, *x) for x in sources[0]]
    if isinstance(node, Cast):
        return sources[0]
    if isinstance(node, Select):
        return [sources[k][i] for k, i in node.picks]
    if isinstance(node, Elementwise):
        return [_operation(node.operation, a, b) for a, b in zip(*sources, strict=True)]
    raise Unsupported(f"the real derivative of {type(node).__name__} nodes ({node.name!r}) is not known here")


def _backward(
    node: Node, values: dict[str, list[Interval]], g: Sequence[Interval]
) -> Iterable[tuple[str, int, Interval]]:
    if isinstance(node, Affine):
        for i, each in enumerate(g):
            for j, w in _row(node, i):
                yield node.source, j, _mul((w, w), each)
    elif isinstance(node, Activation):
        slope = node.implementation.function.derivative
        for k, x in enumerate(values[node.source]):
            yield node.source, k, _mul(g[k], enclose(slope, *x))
    elif isinstance(node, Cast):
        for k, each in enumerate(g):
            yield node.source, k, each
    elif isinstance(node, Select):
        for each, (source, k) in zip(g, node.picks, strict=True):
            yield node.nodes[source], k, each
    elif isinstance(node, Elementwise):
        pairs = zip(values[node.left], values[node.right], g, strict=True)
        for k, (a, b, each) in enumerate(pairs):
            one = (Fraction(1), Fraction(1))
            sides = {"add": (one, one), "sub": (one, (-one[0], -one[1])), "mul": (b, a)}
            if node.operation == "div":
                inverse = _operation("div", one, b)
                sides["div"] = (inverse, _mul((Fraction(-1), Fraction(-1)), _mul(a, _mul(inverse, inverse))))
            left, right = sides[node.operation]
            yield node.left, k, _mul(each, left)
            yield node.right, k, _mul(each, right)


def _row(node: Affine, i: int) -> list[tuple[int, Fraction]]:
    columns = node.columns(i)
    weights = _numbers(to_floats(node.formats[0], node.weights[i][columns]))
    return list(zip(columns.tolist(), weights, strict=True))


def _numbers(floats: Sequence[Float]) -> list[Fraction]:
    if not all(x.is_finite for x in floats):
        raise Unsupported("an infinity or NaN has no place among the real numbers")
    return [x.fraction for x in floats]


# -- intervals --------------------------------------------------------------------------------------------


def _add(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _sum(parts: Sequence[Interval]) -> Interval:
    return sum((a for a, _ in parts), Fraction(0)), sum((b for _, b in parts), Fraction(0))


def _mul(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _operation(name: str, a: Interval, b: Interval) -> Interval:
    if name == "div":
        if b[0] <= 0 <= b[1]:
            raise Unsupported("a division by an interval that holds 0 has no real bounds")
        return _mul(a, (1 / b[1], 1 / b[0]))
    if name == "mul":
        return _mul(a, b)
    return _add(a, b if name == "add" else (-b[1], -b[0]))
