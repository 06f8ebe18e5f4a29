"""How the size of a rational network grows as its error falls, beside polynomials and ReLU networks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, arb_series

from fpsmt.engines.engine import Options
from fpsmt.engines.rational_networks import certified_network
from fpsmt.errors import Unsupported
from fpsmt.kernel import Proved
from fpsmt.rational.activations import network
from fpsmt.rational.analytic import analytic
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import to_fmpq
from fpsmt.rational.supnorm import log2

DIGITS = (2, 4, 8, 16, 32, 64, 100, 200, 300)
MOST_TERMS = 1 << 11
CELLS = 16


@dataclass(frozen=True)
class Size:
    """The network for an error of 10^−digits, and what others need.

    `proof` is None when it was not found in time.  `polynomial`: about the least degree of a polynomial (from the
    Chebyshev coefficients; None when the function has a kink).  `relu`: no ReLU network with fewer units has this error
    (0 when nothing is known).
    """

    digits: int
    parameters: int
    steps: int
    depth: int
    degree: int
    proof: Proved | None
    polynomial: int | None
    relu: int


def sizes(name: str, size: Fraction, digits: Sequence[int] = DIGITS, options: Options | None = None) -> list[Size]:
    """One row for each error; proofs until the time of the options is spent.

    >>> [row.parameters for row in sizes("relu", Fraction(1), (2, 4, 8, 16))]
    [10, 14, 18, 26]
    """
    options = options or Options()
    degrees = polynomial_degrees(name, size, digits)
    start, rows = time.monotonic(), []
    for n in digits:
        error = Fraction(1, 10**n)
        net = network(name, size, error)
        left = options.timeout - (time.monotonic() - start)
        proof = None
        if left > 1:
            with suppress(Unsupported):
                proof = certified_network(name, size, error, replace(options, timeout=left))
        shape = net.parameters, len(net.steps), net.depth, net.degree
        rows.append(Size(n, *shape, proof, degrees[n], relu_units(name, size, error)))
    return rows


def exponent(rows: Sequence[Size], least: int = 8) -> float:
    """The slope of log(parameters) over log(log(log(1/error))), by least squares for errors of 10^−least and below."""
    points = [(math.log(math.log(row.digits * math.log(10))), math.log(row.parameters)) for row in rows]
    points = [p for p, row in zip(points, rows) if row.digits >= least]
    if len(points) < 2:
        return math.nan
    x, y = (sum(values) / len(points) for values in zip(*points))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def polynomial_degrees(name: str, size: Fraction, digits: Sequence[int]) -> dict[int, int | None]:
    """About the least degree for each error: the rest of the Chebyshev coefficients is below it.

    An estimate, from interpolation in twice as many points with balls.
    """
    function = analytic(name)
    found: dict[int, int | None] = dict.fromkeys(digits)
    if function.cuts:
        return found
    terms = 16
    waiting = sorted(digits)
    while waiting and terms <= MOST_TERMS:
        with working(2 * terms + 64, 1):
            tails = _chebyshev_tails(function.ball, size, terms)
        while waiting and tails[-1] < -waiting[0] * math.log2(10) - 8:
            goal = -waiting.pop(0) * math.log2(10)
            found[round(-goal / math.log2(10))] = next(k for k, tail in enumerate(tails) if tail <= goal)
        terms *= 2
    return found


def _chebyshev_tails(ball: object, size: Fraction, terms: int) -> list[float]:
    """log₂ of the greatest of the coefficients after each degree up to terms/2."""
    angles = [arb.pi() * (2 * j + 1) / (2 * terms) for j in range(terms)]
    cosines = [(arb.pi() * j / (2 * terms)).cos() for j in range(4 * terms)]
    values = [ball(a.cos() * to_fmpq(size)) for a in angles]  # type: ignore[operator]
    tails: list[float] = []
    most = -math.inf
    for k in range(terms // 2, 0, -1):
        c = abs(sum((v * cosines[k * (2 * j + 1) % (4 * terms)] for j, v in enumerate(values)), arb(0)) * 2 / terms)
        if c.upper() > 0:
            most = max(most, log2(c.upper()))
        tails.append(most)
    return tails[::-1]


def relu_units(name: str, size: Fraction, error: Fraction) -> int:
    """No ReLU network of one input with fewer units is within the error on [−size, size]; 0 when nothing is known.

    One line is not within e of f on an interval of length h where |f″| ≥ m, if mh² > 16e: the second difference of
    f over the half h/2 is at least mh²/4, that of f minus a line at most 4e.  So at least L·√(m/(16e)) pieces are
    needed on an interval of length L, and n units make at most 2ⁿ pieces: each unit at most doubles their number.
    """
    function, best = analytic(name), 0
    for k in range(CELLS):
        low, high = (size * (2 * Fraction(j, CELLS) - 1) for j in (k, k + 1))
        piece = function.piece(low, high)
        if piece is None:
            continue
        with working(96, 4):
            x = arb(to_fmpq(low)).union(arb(to_fmpq(high)))
            try:
                bend = 2 * abs(piece(arb_series([x, arb(1)], 3))[2]).lower()
            except (ValueError, ZeroDivisionError):
                continue
            if bend.is_finite() and bend > 0:
                pieces = to_fmpq(high - low) * (bend / (16 * to_fmpq(error))).sqrt()
                best = max(best, math.ceil(log2(pieces.lower())))
    return best
