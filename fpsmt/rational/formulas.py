"""Straight-line programs over the reals: rational pieces, arithmetic, and named functions.

Value 0 is x; step k computes value k + 1 from earlier values; the last value is the result.  A formula without `Call`
is a *rational network*: compositions of rationals that are never expanded, so that its size stays small where its
degree explodes.  One formula is evaluated over several rings: exact fractions, balls, Taylor models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import flint
from flint import arb, fmpq

from fpsmt.errors import Unsupported, UsageError
from fpsmt.rational.analytic import analytic
from fpsmt.rational.polynomials import to_fmpq, to_fraction
from fpsmt.rational.rational import Rational, read_exact

IDENTITY = Rational((Fraction(0), Fraction(1)))
MOST_STEPS = 100_000
MOST_EXACT = 1 << 12  #: degree of formulas that are evaluated exactly


@dataclass(frozen=True)
class Apply:
    """A rational of one earlier value."""

    rational: Rational
    at: int

    @property
    def reads(self) -> tuple[int, ...]:
        return (self.at,)


@dataclass(frozen=True)
class Affine:
    """constant + Σ weight·value."""

    constant: Fraction
    terms: tuple[tuple[Fraction, int], ...]

    @property
    def reads(self) -> tuple[int, ...]:
        return tuple(i for _, i in self.terms)


@dataclass(frozen=True)
class Product:
    left: int
    right: int

    @property
    def reads(self) -> tuple[int, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Quotient:
    above: int
    below: int

    @property
    def reads(self) -> tuple[int, ...]:
        return (self.above, self.below)


@dataclass(frozen=True)
class Call:
    """A named function (`analytic`) of one earlier value."""

    name: str
    at: int

    @property
    def reads(self) -> tuple[int, ...]:
        return (self.at,)


Step = Apply | Affine | Product | Quotient | Call


class Ring(Protocol):
    """What a formula is evaluated over.  Values are the ring's own."""

    def constant(self, c: Fraction) -> Any: ...
    def add(self, a: Any, b: Any) -> Any: ...
    def scale(self, c: Fraction, a: Any) -> Any: ...
    def multiply(self, a: Any, b: Any) -> Any: ...
    def divide(self, a: Any, b: Any) -> Any: ...
    def polynomial(self, coefficients: tuple[Fraction, ...], a: Any) -> Any: ...
    def call(self, name: str, a: Any, is_x: bool) -> Any: ...


@dataclass(frozen=True)
class Formula:
    """A straight-line program; see the module.

    >>> cube = Rational((0, 0, 0, 1))
    >>> f = Formula((Apply(cube, 0), Product(0, 1), Affine(Fraction(1), ((Fraction(-2), 2),))))
    >>> f(Fraction(3)), f.depth, f.degree, f.parameters
    (Fraction(-161, 1), 3, 4, 4)
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= MOST_STEPS:
            raise UsageError(f"a formula has between 1 and {MOST_STEPS} steps")
        for k, step in enumerate(self.steps):
            if not all(0 <= i <= k for i in step.reads):
                raise UsageError(f"step {k + 1} of a formula reads a value that is not computed yet")
            if isinstance(step, Call):
                analytic(step.name)

    # -- evaluation -----------------------------------------------------------------------------------------

    def over(self, ring: Ring, x: Any) -> Any:
        """The result over a ring, for the ring's value x."""
        values = [x]
        for step in self.steps:
            values.append(self._step(ring, step, values))
        return values[-1]

    @staticmethod
    def _step(ring: Ring, step: Step, values: list[Any]) -> Any:
        match step:
            case Apply(rational, at):
                top = ring.polynomial(rational.numerator, values[at])
                if rational.denominator == (1,):
                    return top
                return ring.divide(top, ring.polynomial(rational.denominator, values[at]))
            case Affine(constant, terms):
                total = ring.constant(constant)
                for weight, i in terms:
                    total = ring.add(total, values[i] if weight == 1 else ring.scale(weight, values[i]))
                return total
            case Product(left, right):
                return ring.multiply(values[left], values[right])
            case Quotient(above, below):
                return ring.divide(values[above], values[below])
            case Call(name, at):
                return ring.call(name, values[at], at == 0)

    def __call__(self, x: Fraction | int) -> Fraction:
        """The exact value; `Unsupported` when a named function has no known rational value there, or when the degree
        is so high that the value may have very many digits."""
        if self._size > MOST_EXACT:
            raise Unsupported(f"the exact value of {self} may have very many digits")
        return to_fraction(self.over(EXACT, to_fmpq(Fraction(x))))

    def ball(self, x: Fraction, bits: int) -> arb:
        """A ball around the value at one point; without finite bounds where a division by zero is not excluded."""
        saved = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            return self.over(Balls(x), arb(to_fmpq(x)))
        finally:
            flint.ctx.prec = saved

    # -- what it is -----------------------------------------------------------------------------------------

    @cached_property
    def is_rational(self) -> bool:
        return not any(isinstance(step, Call) for step in self.steps)

    @property
    def as_constant(self) -> Fraction | None:
        """The number, when the formula is one rational of type (0, 0)."""
        (step, *more) = self.steps
        if more or not isinstance(step, Apply) or step.rational.type != (0, 0):
            return None
        return step.rational(0)

    @property
    def parameters(self) -> int:
        """Coefficients of the rational pieces and of the affine steps that are not 0."""
        numbers: list[Fraction] = []
        for step in self.steps:
            if isinstance(step, Apply):
                numbers += [*step.rational.numerator, *step.rational.denominator]
            elif isinstance(step, Affine):
                numbers += [step.constant, *(weight for weight, _ in step.terms)]
        return sum(c != 0 for c in numbers)

    @property
    def depth(self) -> int:
        """The longest chain of steps."""
        depths = [0]
        for step in self.steps:
            depths.append(1 + max((depths[i] for i in step.reads), default=0))
        return depths[-1]

    @property
    def degree(self) -> int:
        """A bound on the degrees of numerator and denominator if the result were expanded; rational networks only."""
        if not self.is_rational:
            raise UsageError(f"{self} is not rational and has no degree")
        return self._size

    @cached_property
    def _size(self) -> int:
        """The degree, where functions count as lines; from bounds for numerators and denominators."""
        degrees = [(1, 0)]
        for step in self.steps:
            read = [degrees[i] for i in step.reads]
            match step:
                case Apply(rational, _):
                    ((a, b),), top = read, max(rational.type)
                    degrees.append((*(n * a + (top - n) * b if a >= b else top * b for n in rational.type),))  # type: ignore[arg-type]
                case Affine():
                    below = sum(b for _, b in read)
                    degrees.append((max([below, *(a + below - b for a, b in read)]), below))
                case Product():
                    degrees.append((read[0][0] + read[1][0], read[0][1] + read[1][1]))
                case Quotient():
                    degrees.append((read[0][0] + read[1][1], read[0][1] + read[1][0]))
                case Call():
                    degrees.append(read[0])
        return max(degrees[-1])

    def expand(self, most: int = 200) -> Rational:
        """One quotient of polynomials; `Unsupported` when its degree may exceed `most`."""
        if self.degree > most:
            raise Unsupported(f"the expanded rational may have degree {self.degree}, more than {most}")
        result: Rational = self.over(EXPANDED, Rational((Fraction(0), Fraction(1))))
        return result.reduced()

    def then(self, outer: Formula) -> Formula:
        """outer(self(x)), not expanded."""
        build = Builder()
        return build.formula(build.include(outer, build.include(self, 0)))

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """The named functions, in the order of the steps."""
        return tuple(step.name for step in self.steps if isinstance(step, Call))

    def with_calls(self, calls: Mapping[int, Formula]) -> Formula:
        """The formula with its k-th named function (from 0) replaced by calls[k].

        >>> f = named("tanh").with_calls({0: rational(Rational((0, 1)))})
        >>> str(f)
        'x'
        """
        build = Builder()
        return build.formula(build.include(self, 0, calls))

    # -- text and files -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        if len(self.steps) == 1:
            (step,) = self.steps
            if isinstance(step, Call):
                return f"{step.name}(x)"
            if isinstance(step, Apply):
                text = str(step.rational)
                return text if len(text) <= 100 else f"a rational of type {step.rational.type}"
        kind = f"a rational network of degree {_short(self.degree)}" if self.is_rational else "a formula"
        return f"{kind} with {len(self.steps)} steps"

    def to_json(self) -> list[Any]:
        return [_step_to_json(step) for step in self.steps]

    @staticmethod
    def from_json(data: Any) -> Formula:
        if not isinstance(data, Sequence) or isinstance(data, str):
            raise UsageError("a formula is a list of steps")
        return Formula(tuple(_step_from_json(step) for step in data))


def _short(n: int) -> str:
    return str(n) if n < 10**9 else f"about 10^{len(str(n)) - 1}"


def _step_to_json(step: Step) -> dict[str, Any]:
    match step:
        case Apply(rational, at):
            return {"step": "rational", "at": at, **rational.to_json()}
        case Affine(constant, terms):
            return {"step": "affine", "constant": str(constant), "terms": [[str(w), i] for w, i in terms]}
        case Product(left, right):
            return {"step": "product", "of": [left, right]}
        case Quotient(above, below):
            return {"step": "quotient", "of": [above, below]}
        case Call(name, at):
            return {"step": "function", "at": at, "name": name}


def _step_from_json(data: Mapping[str, Any]) -> Step:
    kind = data["step"]
    if kind == "rational":
        return Apply(Rational.from_json(data), int(data["at"]))
    if kind == "affine":
        (constant,) = read_exact([data["constant"]])
        return Affine(constant, tuple((Fraction(str(w)), int(i)) for w, i in data["terms"]))
    if kind in ("product", "quotient"):
        first, second = (int(i) for i in data["of"])
        return Product(first, second) if kind == "product" else Quotient(first, second)
    if kind == "function":
        return Call(str(data["name"]), int(data["at"]))
    raise UsageError(f"unknown step {kind!r}: the steps are rational, affine, product, quotient, function")


def _moved(step: Step, place: Sequence[int] | Mapping[int, int]) -> Step:
    """The step with value i at place[i]."""
    match step:
        case Apply(rational, i):
            return Apply(rational, place[i])
        case Affine(constant, terms):
            return Affine(constant, tuple((w, place[i]) for w, i in terms))
        case Product(i, j):
            return Product(place[i], place[j])
        case Quotient(i, j):
            return Quotient(place[i], place[j])
        case Call(name, i):
            return Call(name, place[i])


# -- building -------------------------------------------------------------------------------------------------


class Builder:
    """Writes formulas: each method adds a step and returns the index of its value; 0 is x."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps)

    def rational(self, r: Rational, at: int) -> int:
        return self._add(Apply(r, at))

    def affine(self, constant: Fraction | int, *terms: tuple[Fraction | int, int]) -> int:
        return self._add(Affine(Fraction(constant), tuple((Fraction(w), i) for w, i in terms)))

    def product(self, left: int, right: int) -> int:
        return self._add(Product(left, right))

    def quotient(self, above: int, below: int) -> int:
        return self._add(Quotient(above, below))

    def call(self, name: str, at: int) -> int:
        return self._add(Call(name, at))

    def include(self, formula: Formula, at: int, calls: Mapping[int, Formula] | None = None) -> int:
        """A copy of a formula whose x is the value `at`, without steps that change nothing; with `calls`, its k-th
        named function (from 0) is replaced by the formula calls[k]."""
        place, count = [at], 0
        for step in formula.steps:
            if isinstance(step, Call):
                other, count = (calls or {}).get(count), count + 1
                if other is not None:
                    place.append(self.include(other, place[step.at]))
                    continue
            if step == Apply(IDENTITY, step.reads[0] if step.reads else 0):
                place.append(place[step.reads[0]])
            else:
                place.append(self._add(_moved(step, place)))
        return place[-1]

    def formula(self, result: int) -> Formula:
        """The formula whose result is this value; steps it does not need are left out."""
        needed = {result}
        for k in range(len(self.steps), 0, -1):
            if k in needed:
                needed.update(self.steps[k - 1].reads)
        kept = sorted(needed - {0})
        if not kept:
            return Formula((Apply(IDENTITY, 0),))
        place = {0: 0, **{k: n for n, k in enumerate(kept, 1)}}
        steps = [_moved(self.steps[k - 1], place) for k in kept]
        return Formula(tuple(steps))


def named(name: str) -> Formula:
    """The function of this name (`analytic`) as a formula.

    >>> str(named("tanh"))
    'tanh(x)'
    """
    return Formula((Call(analytic(name).name, 0),))


def constant(c: Fraction | int) -> Formula:
    """A number as a formula."""
    return rational(Rational((Fraction(c),)))


def rational(r: Rational) -> Formula:
    """One rational as a formula."""
    return Formula((Apply(r, 0),))


# -- rings ----------------------------------------------------------------------------------------------------


class _Exact:
    """Exact rationals (fmpq)."""

    def constant(self, c: Fraction) -> fmpq:
        return to_fmpq(c)

    def add(self, a: fmpq, b: fmpq) -> fmpq:
        return a + b

    def scale(self, c: Fraction, a: fmpq) -> fmpq:
        return to_fmpq(c) * a

    def multiply(self, a: fmpq, b: fmpq) -> fmpq:
        return a * b

    def divide(self, a: fmpq, b: fmpq) -> fmpq:
        if b == 0:
            raise UsageError("a formula divides by 0 at this point")
        return a / b

    def polynomial(self, coefficients: tuple[Fraction, ...], a: fmpq) -> fmpq:
        total = fmpq(0)
        for c in reversed(coefficients):
            total = total * a + to_fmpq(c)
        return total

    def call(self, name: str, a: fmpq, is_x: bool) -> fmpq:
        value = analytic(name).exact(to_fraction(a))
        if value is None:
            raise Unsupported(f"{name}({to_fraction(a)}) is not known to be rational")
        return to_fmpq(value)


EXACT = _Exact()


@dataclass(frozen=True)
class Balls:
    """Balls around one point x, at python-flint's current precision."""

    x: Fraction

    def constant(self, c: Fraction) -> arb:
        return arb(to_fmpq(c))

    def add(self, a: arb, b: arb) -> arb:
        return a + b

    def scale(self, c: Fraction, a: arb) -> arb:
        return arb(to_fmpq(c)) * a

    def multiply(self, a: arb, b: arb) -> arb:
        return a * b

    def divide(self, a: arb, b: arb) -> arb:
        return a / b

    def polynomial(self, coefficients: tuple[Fraction, ...], a: arb) -> arb:
        total = arb(0)
        for c in reversed(coefficients):
            total = total * a + to_fmpq(c)
        return total

    def call(self, name: str, a: arb, is_x: bool) -> arb:
        function = analytic(name)
        exact = function.exact(self.x) if is_x else None
        return function.ball(a) if exact is None else arb(to_fmpq(exact))


class Expanded:
    """Quotients of polynomials in x."""

    def constant(self, c: Fraction) -> Rational:
        return Rational((c,))

    def add(self, a: Rational, b: Rational) -> Rational:
        return a + b

    def scale(self, c: Fraction, a: Rational) -> Rational:
        return a.scaled(c)

    def multiply(self, a: Rational, b: Rational) -> Rational:
        return a * b

    def divide(self, a: Rational, b: Rational) -> Rational:
        return a / b

    def polynomial(self, coefficients: tuple[Fraction, ...], a: Rational) -> Rational:
        return Rational(coefficients).compose(a)

    def call(self, name: str, a: Rational, is_x: bool) -> Rational:
        raise UsageError(f"{name} is not rational")


EXPANDED = Expanded()
