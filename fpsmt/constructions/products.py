"""Detectors of several coordinates from exact detectors of one, by absorption, for any activation that has the latter.

Let u_k be c·g at one value of coordinate k and exactly 0 at the others, where g is the spacing at B and
(d−1)·c < ½ < d·c.  Then (u_1 ⊕ … ⊕ u_d) ⊕ B is rounded to B unless all are there, and to B + g if they are, in every
order of the sum.  J = I of this takes two values, and I(A⊗J ⊖ A⊗I(B) ⊕ z₀) is I(z₀) = 0 but at the point.  Two affine
maps more than the detectors of one coordinate have; for the identity the layer that scales these up is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.bumps import bumps, factors_and_results, useful_results, zeros_of
from fpsmt.constructions.ending import Detectors, network_layers
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import Layer, Rows
from fpsmt.constructions.windows import shifted_windows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, are_numbers, round_array


def product(shape: Shape, points: Carriers, needed: NDArray[np.bool_]) -> Detectors:
    """Detectors of all points, of two or more inputs; for six affine maps in most cases."""
    if points.shape[1] < 2:
        raise Unsupported("for one input there is nothing to join")
    reasons = ["the activation does not tell B from B + g for any B"]
    for scaled in (False, True) if shape.implementation.text == "identity" else (True,):
        for base, gap, choices, zero in _joints(shape):
            try:
                return _product(shape, points, base, gap, choices, zero, scaled)
            except Unsupported as reason:
                reasons.append(str(reason))
    raise Unsupported(reasons[-1])


def _joints(shape: Shape) -> Iterator[tuple[float, float, list[tuple[float, float]], float]]:
    """(B, g, the factors A with what they make, z₀), those with the most useful results first."""
    fmt, found, aims = shape.format, [], useful_results(shape)
    for exponent in range(fmt.emax - 1, fmt.emin, -1):
        base = float(np.ldexp(1.0, exponent))
        gap = float(np.ldexp(1.0, exponent - fmt.fraction_bits))
        ends = shape.apply([base + gap, base])
        if np.isfinite(ends).all() and ends[0] != ends[1]:
            for zero in zeros_of(shape)[:2]:
                choices = factors_and_results(shape, aims, ends, float(np.abs(ends).max()), zero)
                if choices:
                    exact = any(abs(r) == 1.0 for _, r in choices)
                    found.append((not exact, abs(exponent), base, gap, choices, zero))
    for _, _, base, gap, choices, zero in sorted(found, key=lambda each: each[:2])[:8]:
        yield base, gap, choices, zero


def _product(
    shape: Shape, points: Carriers, base: float, gap: float, choices: list[tuple[float, float]], zero: float,
    scaled: bool,
) -> Detectors:  # fmt: skip
    d = points.shape[1]
    share = float(round_array(shape.context, [gap / (2 * d - 1)])[0])  # between ½/d and ½/(d − 1) of the spacing
    if not gap / (2 * d) < share < gap / (2 * d - 2):
        raise Unsupported(f"{shape.format} has no number between {gap}/{2 * d} and {gap}/{2 * d - 2}")
    columns = [np.unique(c) for c in points.T]
    parts = [_one(shape, axis, share, scaled) for axis in columns]
    depth = max(len(layers) for layers, _ in parts)
    if any(len(layers) != depth for layers, _ in parts):
        raise Unsupported("the detectors of the coordinates have different depths")
    below: list[Rows] = []
    sizes = [0] * d
    for level in range(depth):
        rows, new = Rows(), []
        for k, (layers, _) in enumerate(parts):
            layer = layers[level]
            new.append(len(rows.bias))
            for i in range(layer.size):
                terms = [(k if level == 0 else sizes[k] + j, w) for j, w in layer.terms(i)]
                rows.add(terms, float(layer.bias[i]), again=True)
        sizes = new
        below.append(rows)
    joint, top = Rows(), Rows()
    constant = joint.add([], base)
    index = np.stack([np.searchsorted(a, c) for a, c in zip(columns, points.T, strict=True)], axis=1)

    def detector(point: int, choice: int, again: bool) -> int:
        terms = [
            (sizes[k] + j, w) for k, i in enumerate(index[point].tolist()) for j, w in parts[k][1][i]
        ]  # fmt: skip
        a = choices[choice][0]
        return top.add([(constant, -a), (joint.add(sorted(terms), base), a)], zero, again)

    return Detectors.alike([r for _, r in choices], detector, (*below, joint, top), len(points))


def _one(
    shape: Shape, axis: Carriers, share: float, scaled: bool
) -> tuple[tuple[Layer, ...], list[list[tuple[int, float]]]]:
    """Hidden layers, and for each value of the axis the terms that are `share` there and 0 elsewhere.

    Of the identity without its layer of factors unless `scaled`.
    """
    points, wanted = axis[:, None], np.full((len(axis), 1), share)
    identity = shape.implementation.text == "identity"
    found = (shifted_windows if identity else bumps)(shape, points, np.ones(len(axis), bool))
    layers = network_layers(shape, found, wanted)
    if identity and not scaled:
        layers = _unscaled(shape, layers)
    terms = layers[-1].terms(0)  # in the order of the points, as many for each
    each, rest = divmod(len(terms), len(axis))
    if rest:
        raise Unsupported("the detectors of one coordinate return different values")
    return layers[:-1], [terms[i : i + each] for i in range(0, len(terms), each)]


def _unscaled(shape: Shape, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Of the identity: without the last hidden layer where it only scales, its factors in the last layer's weights."""
    *below, scaling, last = layers
    if (np.diff(scaling.starts) != 1).any() or (scaling.bias != 0).any():
        return layers
    weights = last.weights * scaling.weights[last.columns]
    exact = are_numbers(shape.format, weights)
    if not exact.all():
        raise Unsupported(f"a weight of {weights[np.argmin(exact)]} is not a number of {shape.format}")
    return (*below, Layer(last.starts, scaling.columns[last.columns], weights, last.bias))
