"""Claims of exact algebra: two expressions are equal; a polynomial is nowhere negative under assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.errors import UsageError
from fpsmt.rational import number_text
from fpsmt.rational.symbols import read, symbols_of, value_at

SHORT = 120  #: characters of an expression that is shown


def _short(text: str) -> str:
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


def _values(counterexample: Json) -> dict[str, Fraction]:
    return {str(name): Fraction(str(value)) for name, value in counterexample["values"].items()}


@claim_kind
@dataclass(frozen=True)
class Identity(Claim):
    """left = right for all real values of the symbols for which both sides are defined.

    Expressions are quotients of polynomials (`fpsmt.rational.symbols`).  `statement` is what people read; the two
    expressions are what is decided.
    """

    kind = "identity"
    left: str
    right: str
    statement: str = ""

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            read(side)

    @property
    def symbols(self) -> tuple[str, ...]:
        return symbols_of(self.left, self.right)

    @property
    def text(self) -> str:
        names = ", ".join(self.symbols)
        return f"∀ {names}. " * bool(names) + (self.statement or f"{_short(self.left)} = {_short(self.right)}")

    def fields(self) -> dict[str, Json]:
        return {"left": self.left, "right": self.right, "statement": self.statement}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Identity:
        return cls(data["left"], data["right"], str(data["statement"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"values": {symbol: exact number}}, where both sides are defined and differ."""
        values = _values(counterexample)
        left, right = value_at(self.left, values), value_at(self.right, values)
        lines = [f"{name} = {number_text(x)}" for name, x in values.items()]
        lines += [f"{side} = {'undefined' if x is None else x}" for side, x in (("left", left), ("right", right))]
        return Replay(left is not None and right is not None and left != right, tuple(lines))


@claim_kind
@dataclass(frozen=True)
class Nonnegative(Claim):
    """value ≥ 0 for all real values of the symbols for which every assumption is ≥ 0; all are polynomials."""

    kind = "nonnegative"
    value: str
    assumptions: tuple[str, ...]
    statement: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        for expression in (self.value, *self.assumptions):
            read(expression)

    @property
    def symbols(self) -> tuple[str, ...]:
        return symbols_of(self.value, *self.assumptions)

    @property
    def text(self) -> str:
        given = ", ".join(f"{_short(g)} ≥ 0" for g in self.assumptions)
        return f"∀ {', '.join(self.symbols)}. " + (self.statement or f"{given} ⇒ {_short(self.value)} ≥ 0")

    def fields(self) -> dict[str, Json]:
        return {"value": self.value, "assumptions": list(self.assumptions), "statement": self.statement}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Nonnegative:
        if not isinstance(data["assumptions"], list):
            raise UsageError("assumptions are a list of expressions")
        return cls(data["value"], tuple(data["assumptions"]), str(data["statement"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"values": {symbol: exact number}}, where the assumptions hold and the value is negative."""
        values = _values(counterexample)
        given = [value_at(g, values) for g in self.assumptions]
        value = value_at(self.value, values)
        lines = [f"{name} = {number_text(x)}" for name, x in values.items()] + [f"value = {value}"]
        holds = all(g is not None and g >= 0 for g in given)
        return Replay(holds and value is not None and value < 0, tuple(lines))
