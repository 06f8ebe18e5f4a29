"""Sizes of networks: a rational neuron that GELU networks need log(1/error) parameters for."""

from __future__ import annotations

from fractions import Fraction

from fpsmt.claims import Case, Identity, NetworkWithin, Nonnegative, SizeNeeded, SupNorm, cases, spec
from fpsmt.claims.absorption import CURVATURE_LEFT, SECOND_DIFFERENCE
from fpsmt.rational import Rational, constant, named, rational
from fpsmt.rational.activations import network
from fpsmt.rational.layers import Layer, plan

SOURCE = "rational activations (2026): rationals that other networks need many parameters for"


@spec("second-difference", source=SOURCE, cases=[Case({})])
def second_difference() -> Identity:
    """h⁻²·(R(h) − 2R(0) + R(−h)) = −h⁻⁴ for R(x) = 1/(x² + h²)."""
    return Identity(*SECOND_DIFFERENCE)


@spec("curvature-left", source=SOURCE, cases=[Case({})])
def curvature_left() -> Nonnegative:
    """h⁻⁴ − 4ε/h² ≥ 1/(2ε) for h⁴ ≤ ε ≤ 1/4, with s = √ε, v = h², times 2εh⁴."""
    return Nonnegative(*CURVATURE_LEFT)


@spec("slope-of-gelu", source="derivatives of GELU", cases=cases(name=["gelu'", "gelu_tanh'"]))
def slope_of_gelu(name: str) -> SupNorm:
    """|σ′| ≤ 1.13 on [−8, 8]."""
    return SupNorm(constant(0), named(name), ((Fraction(-8), Fraction(8)),), Fraction("1.13"))


@spec(
    "gelu-size-needed",
    source=SOURCE,
    cases=[
        Case({"error": "1e-8", "size": 10}),
        Case({"error": "1e-50", "size": 70}),
        Case({"error": "1e-100", "size": 140}),
        Case({"error": "1e-300", "size": 423}),
    ],
)
def gelu_size_needed(error: str, size: int) -> SizeNeeded:
    """1/(x² + η²) is one rational neuron; GELU networks with weights in [−1, 1] need more parameters than this.

    |GELU′| ≤ 1.13 and |GELU″| ≤ 0.8.  The size grows as log(1/error).
    """
    return SizeNeeded(Fraction(error), size, Fraction(1), Fraction("1.13"), Fraction("0.8"))


@spec("one-rational-neuron", source=SOURCE, cases=cases(error=["1e-8", "1e-100"]))
def one_rational_neuron(error: str) -> SupNorm:
    """With η² a rational number below √error, 1/(x² + η²) is a rational of type (0, 2), without an error."""
    digits = int(error.split("-")[1])
    r = rational(Rational((Fraction(1),), (Fraction(1, 10 ** (digits // 2)), Fraction(0), Fraction(1))))
    return SupNorm(r, r, ((Fraction(-1), Fraction(1)),), Fraction(0))


def block(name: str, gated: bool) -> tuple[Layer, ...]:
    """An MLP block of four, eight and two values with weights k/8, the first layer gated or not."""

    def matrix(rows: int, columns: int, step: int) -> list[list[Fraction]]:
        return [[Fraction((step * (i * columns + j)) % 9 - 4, 8) for j in range(columns)] for i in range(rows)]

    gate = (matrix(8, 4, 5), [Fraction(1, 2)] * 8) if gated else None
    return Layer.of(matrix(8, 4, 2), [Fraction(1, 8)] * 8, name, gate), Layer.of(matrix(2, 8, 7), [0, 0])


@spec(
    "block-of-rationals",
    source="rational activations (2026): lifting to networks, gated units",
    cases=[
        *cases(name=["gelu_tanh", "swish", "relu"], gated=[False, True], digits=[8]),
        *cases(quick=False, name=["gelu_tanh"], gated=[True], digits=[50]),
    ],
)
def block_of_rationals(name: str, gated: bool, digits: int) -> NetworkWithin:
    """An MLP block with rational networks for its activations is within 10^−digits of it on [−1, 1]⁴."""
    layers, box, error = block(name, gated), ((Fraction(-1), Fraction(1)),) * 4, Fraction(1, 10**digits)
    nets = tuple((other, network(other, size, e)) for other, (size, e) in plan(layers, box, error).items())
    return NetworkWithin(layers, box, nets, error)
