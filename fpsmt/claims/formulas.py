"""∀ claims over terms: for every value of the variables, the condition holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, format_named
from fpsmt.networks.monotone import check_continuable, check_monotone
from fpsmt.terms import (
    BOOL,
    Assignment,
    FloatSort,
    Sort,
    Term,
    evaluate_all,
    term_from_json,
    term_to_json,
    variables,
)
from fpsmt.terms.text import texts

LONGEST = 160  #: characters of a sub-term that a replay shows


@claim_kind
@dataclass(frozen=True)
class ForAll(Claim):
    """For all values of the variables of `condition` (each over its whole sort), `condition` holds.

    Inexact implementations inside the condition are universally quantified too: every function that meets
    the contract.  `statement` is what people read; the condition is what is decided.
    """

    kind = "for-all"
    statement: str
    condition: Term

    def __post_init__(self) -> None:
        if self.condition.sort != BOOL:
            raise UsageError(f"a condition is Boolean, not of sort {self.condition.sort}")
        sorts: dict[str, Sort] = {}
        for v in variables(self.condition):
            if sorts.setdefault(v.data, v.sort) != v.sort:
                raise UsageError(f"the variable {v.data!r} has two sorts, {sorts[v.data]} and {v.sort}: rename one")

    @property
    def text(self) -> str:
        names = ", ".join(f"{v.data}: {v.sort}" for v in variables(self.condition))
        return f"∀ {names}. {self.statement}" if names else self.statement

    def fields(self) -> dict[str, Json]:
        return {"statement": self.statement, "condition": term_to_json(self.condition)}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> ForAll:
        return cls(str(data["statement"]), term_from_json(data["condition"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"values": {name: code or number}, "outputs": [[implementation, context, site, x, y] …]}.

        x and y are [format, code].  The outputs of an implementation that promises to be monotone are checked to be so.
        """
        assignment = assignment_from_json(self.condition, counterexample)
        values = evaluate_all(self.condition, assignment)
        _check_monotone(values)
        lines = [f"{v.data} = {values[v]!r}" for v in variables(self.condition)]
        words = texts(self.condition, LONGEST)
        lines += [
            f"{words[term]} = {value!r}"
            for term, value in values.items()
            if isinstance(value, Float) and term.op not in ("var", "const") and len(words[term]) <= LONGEST
        ]
        holds = bool(values[self.condition])
        lines.append(f"the condition is {'true' if holds else 'false'}")
        return Replay(not holds, tuple(lines), {str(v.data): repr(values[v]) for v in variables(self.condition)})


def _check_monotone(values: Mapping[Term, Any]) -> None:
    """A usage error when outputs of an implementation that promises to be monotone are not."""
    used: dict[Any, list[tuple[Float, Float]]] = {}
    for term, y in values.items():
        if term.op == "apply" and term.data[0].monotone:
            used.setdefault(term.data, []).append((values[term.args[0]], y))
    for (implementation, ctx, _), pairs in used.items():
        check_monotone(implementation, pairs)
        check_continuable(implementation, ctx, pairs)


def assignment_to_json(assignment: Assignment) -> Json:
    """The JSON form of a counterexample to a `ForAll`."""
    values = {
        name: value.bits if isinstance(value, Float) else int(value) if not isinstance(value, bool) else value
        for name, value in assignment.values.items()
    }
    outputs = [
        [implementation, str(ctx), site, [x.format.name, x.bits], [y.format.name, y.bits]]
        for (implementation, ctx, site, x), y in assignment.outputs.items()
    ]
    return {"values": values, "outputs": outputs}


def assignment_from_json(condition: Term, data: Json) -> Assignment:
    """Reads what `assignment_to_json` wrote, for the variables of this condition."""
    try:
        values = {}
        for v in variables(condition):
            given = data["values"][v.data]
            values[v.data] = Float(v.format, int(given, 16)) if isinstance(v.sort, FloatSort) else given
        outputs = {}
        for implementation, ctx, site, x, y in data.get("outputs", []):
            outputs[str(implementation), context(ctx), str(site), _value(x)] = _value(y)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the counterexample cannot be read: {error!r}") from error
    return Assignment(values, outputs)


def _value(pair: Json) -> Float:
    fmt, code = pair
    return Float(format_named(fmt), int(code, 16))
