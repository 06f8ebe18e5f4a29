"""Layered networks over the reals, with gated units, and how far they move when activations are replaced.  Trusted.

A layer maps a vector v to σ(Wv + b), or σ(Wv + b)·(Vv + c) entry by entry (a gated unit: GEGLU, SwiGLU, …), σ a named
function or nothing.  Errors are carried from layer to layer by the bookkeeping of `propagation`, so that they
telescope: an error of one activation grows by the Lipschitz constants and weights of what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from fpsmt.errors import Unsupported, UsageError
from fpsmt.rational.analytic import analytic
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import Interval, to_fmpq
from fpsmt.rational.propagation import Moved, Moves, NoBound, Replacement
from fpsmt.rational.supnorm import upper_fraction

Matrix = tuple[tuple[Fraction, ...], ...]
Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class Layer:
    """weights (outputs × inputs) and bias; the activation by name, or None; the gate's weights and bias, or None."""

    weights: Matrix
    bias: Vector
    activation: str | None = None
    gate: tuple[Matrix, Vector] | None = None

    @staticmethod
    def of(weights: Any, bias: Any, activation: str | None = None, gate: tuple[Any, Any] | None = None) -> Layer:
        """From nested sequences or arrays of numbers, taken exactly."""
        other = None if gate is None else (_matrix(gate[0]), _vector(gate[1]))
        return Layer(_matrix(weights), _vector(bias), activation, other)

    def __post_init__(self) -> None:
        if self.activation is not None:
            object.__setattr__(self, "activation", analytic(self.activation).name)
        for weights, bias in self.maps:
            width = {len(row) for row in weights}
            if not weights or len(width) != 1 or len(bias) != len(weights) or len(weights) != len(self.bias):
                raise UsageError("a layer has a matrix of weights, and one bias for each of its rows")

    @property
    def maps(self) -> list[tuple[Matrix, Vector]]:
        return [(self.weights, self.bias), *([] if self.gate is None else [self.gate])]

    @property
    def inputs(self) -> int:
        return len(self.weights[0])

    def to_json(self) -> dict[str, Any]:
        maps = [{"weights": [[str(w) for w in row] for row in m], "bias": [str(c) for c in b]} for m, b in self.maps]
        return {"maps": maps, "activation": self.activation}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Layer:
        maps = [([[Fraction(str(w)) for w in row] for row in m["weights"]], m["bias"]) for m in data["maps"]]
        first, *gate = [(m, [Fraction(str(c)) for c in b]) for m, b in maps]
        return Layer.of(*first, data["activation"], *gate)


def _vector(values: Any) -> Vector:
    return tuple(Fraction(v) if isinstance(v, Fraction | int | str) else Fraction(float(v)) for v in values)


def _matrix(rows: Any) -> Matrix:
    return tuple(_vector(row) for row in rows)


def check_layers(layers: Sequence[Layer], box: Sequence[Interval]) -> None:
    """The sizes fit; a usage error else."""
    sizes = [len(box), *(len(layer.bias) for layer in layers)]
    rows = [(len(row), size) for layer, size in zip(layers, sizes) for m, _ in layer.maps for row in m]
    if not layers or any(width != size for width, size in rows):
        raise UsageError("each layer reads as many values as the one before it gives, the first as many as the box")


def carried(
    layers: Sequence[Layer],
    box: Sequence[Interval],
    replaced: Mapping[str, Replacement],
    bits: int = 96,
    ranges: dict[str, list[arb]] | None = None,
) -> arb | None:
    """An upper bound of the distance of any output on the box; None where nothing follows.

    `ranges`, where given, is filled with the balls in which each activation is evaluated.

    >>> near = {"tanh": Replacement(((Fraction(-9), Fraction(9)),), Fraction(1, 1000))}
    >>> layers = [Layer.of([[1, 2]], [0], "tanh"), Layer.of([[3]], [0])]
    >>> print(carried(layers, [(Fraction(-1), Fraction(1))] * 2, near).str(3, radius=False))
    0.00300
    """
    check_layers(layers, box)
    with working(bits, 2):
        ring = Moves({})
        values = [Moved(arb(to_fmpq(a)).union(arb(to_fmpq(b))), arb(0)) for a, b in box]
        try:
            for layer in layers:
                sums = [[_affine(ring, row, c, values) for row, c in zip(m, b, strict=True)] for m, b in layer.maps]
                values = sums[0]
                if layer.activation is not None:
                    if ranges is not None:
                        ranges.setdefault(layer.activation, []).extend(v.both for v in values)
                    known = {0: replaced[layer.activation]} if layer.activation in replaced else {}
                    values = [Moves(known).call(layer.activation, v, False) for v in values]
                if layer.gate is not None:
                    values = [ring.multiply(a, b) for a, b in zip(values, sums[1], strict=True)]
        except NoBound:
            return None
        most = arb(0)
        for v in values:
            most = arb.max(most, v.error)
        return most.upper() if most.is_finite() else None


def _affine(ring: Moves, row: Vector, constant: Fraction, values: Sequence[Moved]) -> Moved:
    total = ring.constant(constant)
    for weight, value in zip(row, values, strict=True):
        total = ring.add(total, ring.scale(weight, value))
    return total


def plan(layers: Sequence[Layer], box: Sequence[Interval], error: Fraction) -> dict[str, tuple[Fraction, Fraction]]:
    """For each activation ±size that holds its inputs, and an error so small that all outputs move by error/2 at most.

    How much an error of one activation grows is found by carrying a tiny one through.  Untrusted.
    """
    line = ((Fraction(-(1 << 4096)), Fraction(1 << 4096)),)
    names = sorted({layer.activation for layer in layers if layer.activation is not None})
    tiny = error / (1 << 20)
    errors: dict[str, Fraction] = {}
    for name in names:
        grown = carried(layers, box, {name: Replacement(line, tiny)})
        if grown is None:
            raise Unsupported(f"errors of {name} cannot be carried through the network")
        errors[name] = error * tiny / (2 * len(names) * max(upper_fraction(grown), tiny / (1 << 20)))
    ranges: dict[str, list[arb]] = {}
    carried(layers, box, {name: Replacement(line, e) for name, e in errors.items()}, ranges=ranges)
    sizes = {name: max(upper_fraction(abs(v)) for v in ranges[name]) * (1 + Fraction(1, 1 << 20)) for name in names}
    return {name: (sizes[name], errors[name]) for name in names}
