"""Networks with given values and executed gradients at some points, and value 0 and gradient ±0 at all others.

f₂ # f₁ of arXiv 2605.01702, Theorem 3.1, for ReLU and one input: the blocks of `constructions.gradient_blocks` side by
side, their last rows joined into one sum from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fpsmt.constructions.gradient_blocks import copies_needed, damping, ladder, threshold_at
from fpsmt.constructions.indicators import Indicator
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, exactly, from_ordinal
from fpsmt.floats.vector import to_carrier
from fpsmt.networks.executions import Execution, parse_execution
from fpsmt.networks.networks import Network, as_implementation
from fpsmt.networks.nodes import Activation, Affine, Input
from fpsmt.terms import Term, evaluate

Row = tuple[dict[int, Float], Float | None]  #: weights by column, and the bias

#: How the sums of these networks run, in both passes.
LEFT_TO_RIGHT: Execution = parse_execution("left-to-right")


@dataclass(frozen=True)
class Point:
    """An input of [−M, M), the value there, and the gradient there for the loss derivative `upstream` ≠ 0."""

    at: Float
    value: Float
    gradient: Float
    upstream: Float


@dataclass(frozen=True)
class Block:
    """Layers of rows with ReLU between them; the last has one row, which is added to those of other blocks."""

    layers: tuple[tuple[Row, ...], ...]

    @property
    def depth(self) -> int:
        return len(self.layers)


def _numbers(block: Indicator) -> Indicator:
    def known(term: Term) -> Float:
        value = evaluate(term, {})
        assert isinstance(value, Float)
        return value

    parts = (known(t) for t in (block.shift, block.slope, block.bias1, block.bias2, block.scale))
    return Indicator(block.sign, *parts)  # type: ignore[arg-type]


def indicator_layers(ctx: Context, z: Float, mirrored: bool) -> list[tuple[Row, ...]]:
    """The four layers of 1[x = z]; mirrored: those of 1[x = −z] read at −x."""
    fmt = ctx.format
    place = -z.ordinal if mirrored else z.ordinal
    ends = [_numbers(threshold_at(ctx, from_ordinal(fmt, n))) for n in (place, place + 1)]
    one = exactly(fmt, 1)
    signs = [exactly(fmt, -e.sign if mirrored else e.sign) for e in ends]
    first = tuple(({0: s}, e.shift) for s, e in zip(signs, ends))
    second = tuple(({k: -e.slope}, b) for k, e in enumerate(ends) for b in (e.bias1, e.bias2))  # type: ignore[operator]
    third = tuple(({2 * k: e.scale, 2 * k + 1: -e.scale}, None) for k, e in enumerate(ends))  # type: ignore[operator]
    return [first, second, third, (({0: one, 1: -one}, None),)]  # type: ignore[list-item]


def value_block(ctx: Context, z: Float, value: Float, mirrored: bool = False) -> Block:
    """f₁ for one point: the indicator through as many gradient killers as the format needs, then the value."""
    fmt = ctx.format
    one, steps = exactly(fmt, 1), ladder(fmt)
    ones: tuple[Row, ...] = tuple(({}, one) for _ in steps)
    layers = indicator_layers(ctx, z, mirrored)
    for _ in range(copies_needed(fmt)):
        layers[-1] = layers[-1] + ones
        layers.append((({0: one, **dict(enumerate(steps, 1))}, None),))
        layers.append((({0: exactly(fmt, damping(fmt))}, None),))
    return Block((*layers, (({0: value}, None),)))


def gradient_blocks(ctx: Context, point: Point) -> list[Block]:
    """f₂ for one point: the block with the slope, and f₁ with the negative of its value.

    At z > 0 that are the last floats of their binades, and at −2^k, the block for −z is read at −x.
    """
    fmt, z = ctx.format, point.at
    if point.gradient.is_zero:
        return []
    if point.upstream.is_zero:
        raise UsageError(f"the gradient at {z} cannot be {point.gradient} for the upstream gradient 0: it is 0 there")
    ratio = abs(point.gradient.fraction / point.upstream.fraction)
    mirrored = _flat(ctx, z)
    place = -z.ordinal if mirrored else z.ordinal
    unit = exactly(fmt, abs(from_ordinal(fmt, place).fraction - from_ordinal(fmt, place - 1).fraction))
    weight = exactly(fmt, ratio)
    negative = (point.gradient.negative != point.upstream.negative) != mirrored
    level = exactly(fmt, ratio * unit.fraction)
    one = exactly(fmt, -1 if negative else 1)
    layers = [*indicator_layers(ctx, z, mirrored), (({0: unit}, None),), (({0: weight}, None),), (({0: one}, None),)]
    return [Block(tuple(layers)), value_block(ctx, z, level if negative else -level, mirrored)]


def _flat(ctx: Context, z: Float) -> bool:
    """The first layer of 1[x ≥ z] is not active at z."""
    shift = evaluate(threshold_at(ctx, z).shift, {})
    assert isinstance(shift, Float)
    return abs(shift.fraction) == abs(z.fraction)


def joined(ctx: Context, blocks: Sequence[Block]) -> Network:
    """The blocks side by side, shorter ones continued by identities (their values are not negative); one output."""
    if not blocks:
        raise UsageError("no blocks to join")
    depth, one = max(b.depth for b in blocks), exactly(ctx.format, 1)
    padded = [(*b.layers[:-1], *(((({0: one}, None),)) for _ in range(depth - b.depth)), b.layers[-1]) for b in blocks]
    nodes: list[Input | Affine | Activation] = [Input(name="input", context=ctx, size=1)]
    width, starts = 1, [0] * len(blocks)
    for level in range(depth):
        rows: list[Row] = []
        following = []
        for start, layers in zip(starts, padded, strict=True):
            following.append(len(rows))
            rows += [({start + c: w for c, w in weights.items()}, bias) for weights, bias in layers[level]]
        if level == depth - 1:
            rows = [({c: w for weights, _ in rows for c, w in weights.items()}, None)]
        nodes.append(_affine(ctx, f"affine{level + 1}", nodes[-1].name, rows, width))
        if level < depth - 1:
            name = f"activation{level + 1}"
            nodes.append(
                Activation(name=name, context=ctx, source=nodes[-1].name, implementation=as_implementation("relu"))
            )
        width, starts = len(rows), following
    return Network(tuple(nodes), (nodes[-1].name,))


def _affine(ctx: Context, name: str, source: str, rows: Sequence[Row], width: int) -> Affine:
    zero = exactly(ctx.format, 0)
    weights = np.full((len(rows), width), to_carrier([zero])[0])
    mask = np.zeros((len(rows), width), dtype=bool)
    for i, (row, _) in enumerate(rows):
        for c, w in row.items():
            weights[i, c], mask[i, c] = to_carrier([w])[0], True
    bias = to_carrier(zero if b is None else b for _, b in rows)
    biased = any(b is not None for _, b in rows)
    return Affine(name=name, context=ctx, source=source, weights=weights, mask=mask, bias=bias if biased else None)


def network_of(ctx: Context, points: Sequence[Point]) -> Network:
    """f₂ # f₁ with these values and gradients at these points.

    >>> from fpsmt.floats import context, float8_e5m2
    >>> from fpsmt.networks import gradient, run
    >>> at, value, slope, one = (exactly(float8_e5m2, v) for v in (3.0, -2.5, 0.25, 1.0))
    >>> net = network_of(context("float8_e5m2"), [Point(at, value, slope, one)])
    >>> trace = run(net, [at], LEFT_TO_RIGHT)
    >>> str(trace.output[0]), str(gradient(trace, [one], LEFT_TO_RIGHT).gradient[0])
    ('-2.5', '0.25')
    """
    blocks = [b for p in points for b in gradient_blocks(ctx, p)]
    blocks += [value_block(ctx, p.at, p.value) for p in points]
    return joined(ctx, blocks)
