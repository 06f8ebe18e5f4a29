"""Activations as rational networks, on [−size, size]: formulas of tanh, log and ReLU, with networks in their place.

Each activation has a *reference*, a formula of named functions; the network is the reference with a network for each
of them (`elementary`, `zolotarev`), so accurate that the errors, carried through the formula (`propagation`), add up to
half of what is asked.  Smooth activations need a network whose size is polylogarithmic in log(1/error); so do the
broken ones, through |x|.  GELU in its erf form is the exception: erf is entire and has no addition theorem, and is a
polynomial of degree O(log(1/error)) here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from fpsmt.errors import Unsupported, UsageError
from fpsmt.functions.definitions import LEAKY_SLOPE, SELU_ALPHA, SELU_SCALE
from fpsmt.rational.elementary import EIGHTH, bits_of, log, small_tanh
from fpsmt.rational.formulas import IDENTITY, Builder, Formula, rational
from fpsmt.rational.models import working
from fpsmt.rational.propagation import Moved, Moves, NoBound, Replacement, parts_of, propagated
from fpsmt.rational.rational import Rational
from fpsmt.rational.rounding import evaluated, rounded
from fpsmt.rational.steps import HALF, relu_step
from fpsmt.rational.supnorm import lower_fraction, upper_fraction
from fpsmt.rational.zolotarev import Sign, balanced_ell, composed_sign, maps_for

MOST_PARTS = 1 << 12
WHOLE_LINE = ((Fraction(-(1 << 4096)), Fraction(1 << 4096)),)

# -- references -----------------------------------------------------------------------------------------------


def _exp(build: Builder, at: int) -> int:
    """(1 + t)/(1 − t), t = tanh(x/2)."""
    return build.rational(Rational.make((1, 1), (1, -1)), build.call("tanh", build.affine(0, (HALF, at))))


def _sigmoid(build: Builder, at: int) -> int:
    return build.affine(HALF, (HALF, build.call("tanh", build.affine(0, (HALF, at)))))


def _gelu_tanh(build: Builder, bits: int) -> int:
    cubic = Fraction(44715, 10**6)
    (scale,) = (rounded(x, bits) for x in evaluated(lambda: [(2 / arb.pi()).sqrt()], bits))
    gate = build.call("tanh", build.rational(Rational.make((0, scale, 0, scale * cubic)), 0))
    return build.product(0, build.affine(HALF, (HALF, gate)))


def _softplus(build: Builder, at: int) -> int:
    """log(1 + eˣ)."""
    return build.call("log", build.affine(1, (1, _exp(build, at))))


def _mish(build: Builder, bits: int) -> int:
    """x·n/(n + 2) with n = eˣ(eˣ + 2)."""
    return build.product(0, build.rational(Rational.make((0, 2, 1), (2, 2, 1)), _exp(build, 0)))


def _exponential(scale: Fraction, alpha: Fraction) -> Callable[[Builder, int], int]:
    """scale·(x for x ≥ 0, α(eˣ − 1) below): scale·(R(x) + alpha·(exp(−R(−x)) − 1)), R = ReLU; R(−x) = R(x) − x."""

    def make(build: Builder, bits: int) -> int:
        right = build.call("relu", 0)
        below = build.affine(0, (1, 0), (-1, right))  # −R(−x)
        return build.affine(-scale * alpha, (scale, right), (scale * alpha, _exp(build, below)))

    return make


def _negated_softplus(build: Builder, bits: int) -> int:
    return build.affine(0, (-1, _softplus(build, build.affine(0, (-1, 0)))))


REFERENCES: dict[str, Callable[[Builder, int], int]] = {
    "abs": lambda build, bits: build.affine(0, (2, build.call("relu", 0)), (-1, 0)),
    "celu": _exponential(Fraction(1), Fraction(1)),
    "elu": _exponential(Fraction(1), Fraction(1)),
    "exp": lambda build, bits: _exp(build, 0),
    "gelu_tanh": _gelu_tanh,
    "leaky_relu": lambda build, bits: build.affine(0, (LEAKY_SLOPE, 0), (1 - LEAKY_SLOPE, build.call("relu", 0))),
    "logsigmoid": _negated_softplus,
    "mish": _mish,
    "selu": _exponential(SELU_SCALE, SELU_ALPHA),
    "sigmoid": lambda build, bits: _sigmoid(build, 0),
    "softplus": lambda build, bits: _softplus(build, 0),
    "swish": lambda build, bits: build.product(0, _sigmoid(build, 0)),
}

#: Built without a reference.
DIRECT = ("gelu", "identity", "relu", "tanh")
NETWORKS = tuple(sorted([*REFERENCES, *DIRECT]))


def reference(name: str, size: Fraction, error: Fraction) -> Formula | None:
    """The activation as a formula of tanh, log and ReLU, with constants that are good for the error.

    tanh itself beyond ±1/8 is tanh(x/2ᵈ) doubled d times by t ← 2t/(1 + t²).
    """
    build = Builder()
    if name == "tanh" and size > EIGHTH:
        doublings = 0
        while size > EIGHTH * 2**doublings:
            doublings += 1
        t = build.call("tanh", build.affine(0, (Fraction(1, 1 << doublings), 0)))
        for _ in range(doublings):
            t = build.rational(Rational.make((0, 2), (1, 0, 1)), t)
        return build.formula(t)
    make = REFERENCES.get(name)
    return None if make is None else build.formula(make(build, bits_of(error) + 32))


# -- designs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A function that a network stands for, on [low, high], within about `error`."""

    name: str
    low: Fraction
    high: Fraction
    error: Fraction

    @property
    def size(self) -> Fraction:
        return max(abs(self.low), abs(self.high))

    @property
    def formula(self) -> Formula:
        if self.name == "log":
            return log(self.low, self.high, self.error)
        return network(self.name, self.size, self.error)


@dataclass(frozen=True)
class Design:
    """A formula of named functions on some intervals, and a part for each function."""

    reference: Formula
    parts: tuple[Part, ...]
    cuts: int  #: equal parts of an interval in which errors are carried through

    @property
    def formula(self) -> Formula:
        return self.reference.with_calls({k: part.formula for k, part in enumerate(self.parts)})


class _Ranges(Moves):
    """Moves that remember where functions are evaluated."""

    def __init__(self, replaced: dict[int, Replacement], ranges: list[arb]) -> None:
        super().__init__(replaced)
        self.ranges = ranges

    def call(self, name: str, a: Moved, is_x: bool) -> Moved:
        if self.count == len(self.ranges):
            self.ranges.append(a.both)
        else:
            self.ranges[self.count] = self.ranges[self.count].union(a.both)
        return super().call(name, a, is_x)


def design(formula: Formula, low: Fraction, high: Fraction, error: Fraction) -> Design:
    """Parts for the named functions of a formula on [low, high], so that their errors add up to at most error/2.

    How much an error of one function grows is found by carrying a tiny one through.
    """
    tiny = Replacement(WHOLE_LINE, error / (1 << 20))
    cuts = 16
    while cuts <= MOST_PARTS:
        each = [propagated(formula, {k: tiny}, [(low, high)], cuts, 64) for k in range(len(formula.calls))]
        more = [propagated(formula, {k: tiny}, [(low, high)], 2 * cuts, 64) for k in range(len(formula.calls))]
        if all(a is not None and b is not None and a < 2 * b for a, b in zip(each, more)):
            break
        cuts *= 2
    else:
        raise Unsupported(f"errors cannot be carried through {formula} on [{low}, {high}]")
    growth = [upper_fraction(a) / tiny.bound for a in each if a is not None]
    errors = [error / (2 * len(growth) * max(g, Fraction(1, 1 << 20)) * (1 + Fraction(1, 1 << 10))) for g in growth]
    ranges: list[arb] = []
    with working(64, 2):
        for x in parts_of((low, high), cuts):
            try:
                replaced = {k: Replacement(WHOLE_LINE, e) for k, e in enumerate(errors)}
                formula.over(_Ranges(replaced, ranges), Moved(x, arb(0)))
            except NoBound:
                raise Unsupported(f"errors cannot be carried through {formula} on [{low}, {high}]") from None
    parts = []
    for name, values, e in zip(formula.calls, ranges, errors):
        a, b = lower_fraction(values), upper_fraction(values)
        room = (b - a) / (1 << 20) + e
        parts.append(Part(name, a - room, b + room, _short(e)))
    return Design(formula, tuple(parts), cuts)


def _short(error: Fraction) -> Fraction:
    """A power of two that is at most the error."""
    return Fraction(1, 1 << bits_of(error))


# -- networks -------------------------------------------------------------------------------------------------


def sign_for(size: Fraction, error: Fraction) -> Sign:
    """The sign from which ReLU on [−size, size] is made."""
    maps = max(1, maps_for(error / size))
    bits = 2 * bits_of(error / size) + 64
    return composed_sign(maps, balanced_ell(3**maps, bits), bits)


def _gelu(size: Fraction, error: Fraction) -> Formula:
    """x/2 + x²·Σ (−1)ⁿx²ⁿ/(√(2π)·2ⁿ·n!·(2n + 1)): the terms fall once n > size²/2."""
    bits = bits_of(error) + 32
    scale = rounded(evaluated(lambda: [1 / (2 * arb.pi()).sqrt()], bits)[0], bits)
    terms, c, n, square = [Fraction(0), HALF], scale, 0, size * size
    while True:
        terms += [c / (2 * n + 1), Fraction(0)]
        if n > square and abs(c) * square ** (n + 1) < error / 4:
            return rational(Rational(tuple(terms)))
        n += 1
        c = -c / (2 * n)


def network(name: str, size: Fraction, error: Fraction) -> Formula:
    """A rational network for the named function on [−size, size] with an absolute error of about `error`, mostly less.

    >>> net = network("tanh", Fraction(1), Fraction(1, 10**8))
    >>> net.is_rational, round(float(net.ball(Fraction(1, 2), 64)), 7)
    (True, 0.4621172)
    """
    if name not in NETWORKS:
        raise UsageError(f"no construction for {name!r}: there is one for {', '.join(NETWORKS)}")
    size, error = Fraction(size), Fraction(error)
    if size <= 0 or not 0 < error < 1:
        raise UsageError("the size is positive and the error lies between 0 and 1")
    if (formula := reference(name, size, error)) is not None:
        return design(formula, -size, size, error).formula
    if name == "tanh":
        return small_tanh(error)
    if name == "relu":
        return relu_step(sign_for(size, error).formula, size)
    return rational(IDENTITY) if name == "identity" else _gelu(size, error)
