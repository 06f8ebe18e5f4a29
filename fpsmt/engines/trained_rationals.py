"""What is proved about a trained rational: its distance from a function, and how many of its directions are flat."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq_mat

from fpsmt.engines.approximation import certified_sup_norm
from fpsmt.engines.engine import Options
from fpsmt.errors import UsageError
from fpsmt.kernel import Proved
from fpsmt.rational import Problem, Trainable, named, rational
from fpsmt.rational.polynomials import to_fmpq


@dataclass(frozen=True)
class Distance:
    """|f − r| ≤ high everywhere on the domain, and is at least `low` at the point `at`; a proof for each piece."""

    low: Fraction
    high: Fraction
    at: Fraction
    proofs: tuple[Proved, ...]


def distance(
    r: Trainable,
    name: str,
    low: Fraction,
    high: Fraction,
    gap: Fraction = Fraction(1, 100),
    options: Options | None = None,
) -> Distance:
    """How far a trained rational is from the named function on [low, high], piece by piece.

    >>> found = distance(Trainable("A", (Fraction(0), Fraction(1)), (Fraction(0),)), "relu", Fraction(-1), Fraction(2))
    >>> str(found.low), found.high < Fraction(102, 100), len(found.proofs)
    ('1', True, 2)
    """
    bounds, proofs = [], []
    for interval, piece in r.pieces(low, high):
        if piece is None:
            raise UsageError("form B has a kink at an irrational point: a distance is for forms A and unsafe")
        found, proof = certified_sup_norm(Problem(named(name), rational(piece), (interval,)), gap, options)
        bounds.append(found)
        proofs.append(proof)
    worst = max(bounds, key=lambda b: b.low)
    return Distance(worst.low, max(b.high for b in bounds if b.high is not None), worst.at, tuple(proofs))


def flat_directions(r: Trainable, scale: Fraction, shift: Fraction) -> int:
    """How many directions of (γ, θ, a, b) leave the function r(γu + θ; a, b) of the unsafe form unchanged, to first
    order: the parameters less the rank of the derivatives, which is exact.

    r is in lowest terms, or more directions are flat.

    >>> flat_directions(Trainable("unsafe", (Fraction(0), Fraction(1), Fraction(1)), (Fraction(1, 2), Fraction(1))),
    ...                 Fraction(2), Fraction(1, 3))
    2
    """
    if r.version != "unsafe" or scale == 0:
        raise UsageError("flat directions are counted for the unsafe form, with a scale that is not 0")
    m, n = r.type
    rows = []
    for k in range(m + n + 8):  # more points than the function has degrees of freedom
        u = Fraction(2 * k + 1, 7)
        x = scale * u + shift
        p = sum((c * x**i for i, c in enumerate(r.a)), Fraction(0))
        q = 1 + sum((c * x**j for j, c in enumerate(r.b, 1)), Fraction(0))
        if q == 0:
            continue
        dp = sum((i * c * x ** (i - 1) for i, c in enumerate(r.a) if i), Fraction(0))
        dq = sum((j * c * x ** (j - 1) for j, c in enumerate(r.b, 1)), Fraction(0))
        slope = (dp * q - p * dq) / q**2
        row = [slope * u, slope, *(x**i / q for i in range(m + 1)), *(-p * x**j / q**2 for j in range(1, n + 1))]
        rows.append([to_fmpq(v) for v in row])
    return int(m + n + 3 - fmpq_mat(rows).rank())
