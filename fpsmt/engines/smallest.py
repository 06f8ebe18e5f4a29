"""Rationals and rational networks that reach an error, by every method, and the smallest of them.

`METHODS` are functions of a `Question`; each gives a `Candidate`, whose error is proved, or says why there is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from fpsmt import kernel
from fpsmt.claims.approximation import BestError, SupNorm
from fpsmt.engines.approximation import Best, certified_minimax, certified_sup_norm
from fpsmt.engines.engine import Options
from fpsmt.engines.rational_networks import certified_network
from fpsmt.errors import Unsupported, UsageError
from fpsmt.kernel import Proved
from fpsmt.rational import Formula, Interval, Problem, Rational, SupNormBounds, rational, sup_norm
from fpsmt.rational.aaa import aaa
from fpsmt.rational.activations import network
from fpsmt.rational.remez import Minimax, minimax
from fpsmt.rational.supnorm import GAP, error_at, lower_fraction

MOST_DEGREE = 40  #: of numerator and denominator
LARGE = Fraction(1, 10**9)  #: errors of networks that one enclosure reaches in seconds


@dataclass(frozen=True)
class Question:
    """A function on an interval, an error that is asked for, absolute or relative, and how near its bounds shall be."""

    target: Formula
    interval: Interval
    error: Fraction
    relative: bool = False
    gap: Fraction = GAP

    def problem(self, approximation: Formula) -> Problem:
        return Problem(self.target, approximation, (self.interval,), self.relative)


@dataclass(frozen=True)
class Candidate:
    """What a method found: bounds of its error and the proof; for a best rational of its type also that it is one.

    `fewer`: the proof that no rational of a smaller degree reaches the error.
    """

    bounds: SupNormBounds
    proof: Proved
    best: Best | None = None
    fewer: Proved | None = None

    @property
    def formula(self) -> Formula:
        return self.bounds.problem.approximation

    @property
    def rational(self) -> Rational:
        """The only step, expanded."""
        return self.formula.expand() if self.best is None else self.best.rational

    @property
    def parameters(self) -> int:
        return self.formula.parameters

    @property
    def degree(self) -> int:
        return self.formula.degree


def by_minimax(question: Question, options: Options, square: bool = True) -> Candidate:
    """The first best rational that reaches the error, of types (1, 1), (2, 2), …; with `square` False also of the types
    (n, n − 1) and (n − 1, n) between them, and with the proof that no rational of degree n − 1 reaches it."""
    clock, reasons, last = _Clock(options), list[str](), None
    for n in range(1, MOST_DEGREE + 1):
        for type in [(n, n)] if square else [(n, n - 1), (n - 1, n), (n, n)]:
            found = _minimax(question, type, clock, reasons)
            if found is None or found.levelled > question.error:
                continue
            best = _reached(question, type, options, reasons)
            if best is not None:
                fewer = None if square or last is None else _fewer(question, (n - 1, n - 1), last)
                return Candidate(best.bounds, best.upper, best, fewer)
        last = found
    raise Unsupported(_none(reasons, f"no type up to ({MOST_DEGREE}, {MOST_DEGREE}) has this error"))


def by_polynomials(question: Question, options: Options) -> Candidate:
    """The first best polynomial that reaches the error."""
    clock, reasons = _Clock(options), list[str]()
    for n in range(2 * MOST_DEGREE):
        found = _minimax(question, (n, 0), clock, reasons)
        if found is None or found.levelled > question.error:
            continue
        best = _reached(question, (n, 0), options, reasons)
        if best is not None:
            return Candidate(best.bounds, best.upper, best)
    raise Unsupported(_none(reasons, f"no degree below {2 * MOST_DEGREE} has this error"))


def by_aaa(question: Question, options: Options) -> Candidate:
    """Rationals through values of the function, certified afterwards."""
    clock, reasons = _Clock(options), list[str]()
    for n in range(1, MOST_DEGREE + 1):
        clock(f"{question.target}: AAA of type {n},{n}")
        try:
            found = rational(aaa(question.target, question.interval, n))
            quick = sup_norm(question.problem(found), goal=question.error, seconds=options.timeout / 10)
            if quick.high is None or quick.high > question.error:
                continue
            bounds, proof = certified_sup_norm(question.problem(found), question.gap, options)
        except Unsupported as reason:
            reasons.append(f"type {n},{n}: {reason}")
            continue
        if bounds.high is not None and bounds.high <= question.error:
            return Candidate(bounds, proof)
    raise Unsupported(_none(reasons, f"no type up to ({MOST_DEGREE}, {MOST_DEGREE}) has this error"))


def by_network(question: Question, options: Options) -> Candidate:
    """A composition.  Its error is enclosed between two bounds where one enclosure is enough, and proved part by part
    elsewhere: the upper bound is then the error that was asked for."""
    if question.relative or len(question.target.steps) != 1 or not question.target.calls:
        raise Unsupported("networks are for absolute errors of named functions")
    size, name, error = max(map(abs, question.interval)), question.target.calls[0], question.error
    formula = network(name, size, error)
    if error >= LARGE:
        bounds, proof = certified_sup_norm(question.problem(formula), question.gap, options)
    else:
        proof = certified_network(name, size, error, options)
        assert isinstance(proof.claim, SupNorm)
        problem = proof.claim.problem
        places = [size * k / 4 for k in range(-4, 5)]
        low, at = max((lower_fraction(error_at(problem, x, 20)), x) for x in places)
        bounds = SupNormBounds(problem, max(low, Fraction(0)), error, at, (), 0, 0, 0)
    if bounds.high is None or bounds.high > error:
        raise Unsupported("the network has a larger error than asked for")
    return Candidate(bounds, proof)


def near_square(question: Question, options: Options) -> Candidate:
    """Best rationals of types (n, n), (n, n − 1) and (n − 1, n)."""
    return by_minimax(question, options, square=False)


Method = Callable[[Question, Options], Candidate]

METHODS: dict[str, Method] = {
    "minimax": near_square,
    "polynomial": by_polynomials,
    "aaa": by_aaa,
    "network": by_network,
}
SIZES: dict[str, Callable[[Candidate], int]] = {"parameters": lambda c: c.parameters, "degree": lambda c: c.degree}


def candidates(question: Question, options: Options | None = None) -> Iterator[tuple[str, Candidate | str]]:
    """By method, what it found or why it found nothing; each has an equal part of the time, and one part is left.

    >>> from fpsmt.rational import named
    >>> question = Question(named("exp"), (Fraction(-1), Fraction(1)), Fraction(1, 1000))
    >>> [(name, c.parameters, c.degree) for name, c in candidates(question) if isinstance(c, Candidate)][:3]
    [('minimax', 6, 2), ('polynomial', 6, 4), ('aaa', 6, 2)]
    """
    options = options or Options()
    share = options.timeout / (len(METHODS) + 1)
    for name, method in METHODS.items():
        try:
            yield name, method(question, options.within(share))
        except (Unsupported, UsageError) as reason:
            yield name, str(reason)


# -- parts ----------------------------------------------------------------------------------------------------


def _minimax(question: Question, type: tuple[int, int], clock: _Clock, reasons: list[str]) -> Minimax | None:
    clock(f"{question.target}: type {type[0]},{type[1]}")
    try:
        return minimax(question.target, question.interval, type, question.relative, report=clock)
    except Unsupported as reason:
        reasons.append(str(reason))
        return None


def _reached(question: Question, type: tuple[int, int], options: Options, reasons: list[str]) -> Best | None:
    """The best rational of the type, where it is proved to reach the error."""
    try:
        found = certified_minimax(question.target, question.interval, type, question.relative, question.gap, options)
    except Unsupported as reason:
        reasons.append(str(reason))
        return None
    return found if found.bounds.high is not None and found.bounds.high <= question.error else None


def _fewer(question: Question, type: tuple[int, int], found: Minimax) -> Proved | None:
    """No rational of the type reaches the error: its own alternation shows it."""
    claim = BestError(question.target, (question.interval,), type, question.error, question.relative)
    data = {"approximation": rational(found.rational).to_json(), "points": [str(x) for x in found.points]}
    verdict = kernel.apply("alternation", claim, data)
    return verdict if isinstance(verdict, Proved) else None


class _Clock:
    """Reports what goes on, until the time is up."""

    def __init__(self, options: Options) -> None:
        self.options, self.until = options, time.monotonic() + options.timeout

    def __call__(self, line: str) -> None:
        self.options.report(line)
        if time.monotonic() > self.until:
            raise Unsupported(f"not reached in {self.options.timeout:.3g} s")


def _none(reasons: list[str], otherwise: str) -> str:
    return "; ".join([otherwise, *reasons[-1:]])
