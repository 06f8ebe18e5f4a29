"""Claims about approximation of real functions: sup norms, and how well any rational of a type can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.errors import UsageError
from fpsmt.rational import Formula, Interval, Problem, number_text


def _exact(text: Json) -> Fraction:
    if not isinstance(text, str):
        raise UsageError(f"a number of a claim is text, not {text!r}")
    return Fraction(text)


def domain_to_json(domain: Sequence[Interval]) -> Json:
    return [[str(a), str(b)] for a, b in domain]


def domain_from_json(data: Json) -> tuple[Interval, ...]:
    return tuple((_exact(a), _exact(b)) for a, b in data)


def domain_text(domain: Sequence[Interval]) -> str:
    return " ∪ ".join(f"[{number_text(a)}, {number_text(b)}]" for a, b in domain)


@claim_kind
@dataclass(frozen=True)
class SupNorm(Claim):
    """|f(x) − g(x)| ≤ bound for every x of the domain, a union of closed intervals; with `relative`, ≤ bound·|f(x)|.

    f is the target and g the approximation; both are defined on the whole domain.  Everything is a real number: nothing
    is rounded.
    """

    kind = "sup-norm"
    target: Formula
    approximation: Formula
    domain: tuple[Interval, ...]
    bound: Fraction
    relative: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", self.problem.domain)
        object.__setattr__(self, "bound", Fraction(self.bound))

    @property
    def problem(self) -> Problem:
        return Problem(self.target, self.approximation, self.domain, self.relative)

    @staticmethod
    def of(problem: Problem, bound: Fraction) -> SupNorm:
        return SupNorm(problem.target, problem.approximation, problem.domain, bound, problem.relative)

    @property
    def text(self) -> str:
        f, g = str(self.target), str(self.approximation)
        where = [f"{short} = {long}" for short, long in (("f", f), ("r", g)) if len(long) > 30]
        f, g = (f if len(f) <= 30 else "f(x)"), (g if len(g) <= 30 else "r(x)")
        bound = number_text(self.bound) + (f"·|{f}|" if self.relative else "")
        tail = "".join(f", {words}" for words in where)
        return f"∀ x ∈ {domain_text(self.domain)}: |{f} − {g if ' ' not in g else f'({g})'}| ≤ {bound}{tail}"

    def fields(self) -> dict[str, Json]:
        return {
            "target": self.target.to_json(),
            "approximation": self.approximation.to_json(),
            "domain": domain_to_json(self.domain),
            "bound": str(self.bound),
            "relative": self.relative,
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SupNorm:
        target, approximation = (Formula.from_json(data[name]) for name in ("target", "approximation"))
        return cls(
            target, approximation, domain_from_json(data["domain"]), _exact(data["bound"]), bool(data["relative"])
        )

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"x": exact number}, a point of the domain where balls, or exact values, exceed the bound."""
        x = _exact(counterexample["x"])
        inside = any(a <= x <= b for a, b in self.domain)
        fails = inside and self.problem.fails_at(self.bound, x) is True
        f, g = self.target.ball(x, 128), self.approximation.ball(x, 128)
        lines = (
            f"x = {number_text(x)}" + ("" if inside else ", outside the domain"),
            f"f(x) = {f.str(20)}",
            f"r(x) = {g.str(20)}",
            f"|f(x) − r(x)| = {abs(f - g).str(10)}",
        )
        return Replay(fails, lines, {"x": str(x)})


@claim_kind
@dataclass(frozen=True)
class BestError(Claim):
    """Every rational of type (m, n) without a pole on the domain has an error of at least `bound` at some point of it.

    So the best approximation of this type cannot be better.  A relative error is |f − r|/|f|, at points with f ≠ 0.
    """

    kind = "best-error"
    target: Formula
    domain: tuple[Interval, ...]
    type: tuple[int, int]
    bound: Fraction
    relative: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", tuple((Fraction(a), Fraction(b)) for a, b in self.domain))
        object.__setattr__(self, "bound", Fraction(self.bound))
        m, n = self.type
        object.__setattr__(self, "type", (int(m), int(n)))
        if m < 0 or n < 0:
            raise UsageError("the type of a rational is a pair of degrees")

    @property
    def text(self) -> str:
        error = f"|{self.target} − r(x)|" + (f"/|{self.target}|" if self.relative else "")
        where = domain_text(self.domain)
        return f"∀ r of type {self.type} ∃ x ∈ {where}: {error} ≥ {number_text(self.bound)}"

    def fields(self) -> dict[str, Json]:
        return {
            "target": self.target.to_json(),
            "domain": domain_to_json(self.domain),
            "type": list(self.type),
            "bound": str(self.bound),
            "relative": self.relative,
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> BestError:
        m, n = (int(d) for d in data["type"])
        target, domain = Formula.from_json(data["target"]), domain_from_json(data["domain"])
        return cls(target, domain, (m, n), _exact(data["bound"]), bool(data["relative"]))

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """A better rational needs a proof of its sup norm."""
        return [self._better(counterexample)]

    def _better(self, counterexample: Json) -> SupNorm:
        r = Formula.from_json(counterexample["approximation"])
        return SupNorm(self.target, r, self.domain, _exact(counterexample["bound"]), self.relative)

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"approximation", "bound"}: one rational of the type, whose smaller sup norm is proved."""
        better = self._better(counterexample)
        r = better.approximation.expand()
        fits = all(have <= allowed for have, allowed in zip(r.type, self.type))
        return Replay(fits and better.bound < self.bound, (f"proved: {better.text}",))
