"""Claims about one sum or dot product: its set of outcomes, and that there is only one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, format_named
from fpsmt.networks.executions import Execution
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.sums import evaluate_tree
from fpsmt.networks.trees import Tree, tree_from_json, tree_text


def value_to_json(x: Float) -> Json:
    return [x.format.name, x.hex]


def value_from_json(data: Json) -> Float:
    return read_value(format_named(data[0]), data[1])


def sum_to_json(problem: Sum) -> dict[str, Json]:
    terms = [
        [value_to_json(v) for v in term] if isinstance(term, tuple) else value_to_json(term) for term in problem.terms
    ]
    return {
        "context": str(problem.context),
        "products": problem.is_dot,
        "terms": terms,
        "bias": None if problem.bias is None else value_to_json(problem.bias),
        "execution": problem.execution.to_json(),
    }


def sum_from_json(data: Mapping[str, Json]) -> Sum:
    if not isinstance(data["products"], bool):
        raise UsageError(f"products is true or false, not {data['products']!r:.100}")
    if data["products"]:
        terms = tuple((value_from_json(w), value_from_json(x)) for w, x in data["terms"])
    else:
        terms = tuple(value_from_json(t) for t in data["terms"])  # type: ignore[misc]
    bias = None if data["bias"] is None else value_from_json(data["bias"])
    return Sum(context(data["context"]), terms, bias, Execution.from_json(data["execution"]))


def replay_schedule(problem: Sum, schedule: Json) -> tuple[Float, Tree, list[str]]:
    """Runs one schedule by reference: the result, the tree, and the tree with the value at each node."""
    tree = tree_from_json(schedule, problem.n + (problem.bias is not None))
    if not problem.allows(tree):
        raise UsageError(f"{tree_text(tree)} is not a schedule of {problem.execution}")
    trace = evaluate_tree(problem.context, tree, problem.terms, problem.bias, problem.execution)
    terms = [f"{t[0]}·{t[1]}" if isinstance(t, tuple) else str(t) for t in problem.terms]
    if problem.bias is not None:
        terms.append(f"bias {problem.bias}")
    lines = [f"{tree_text(tree)} = {trace.result!r}", *trace.text(terms).splitlines()]
    return trace.result, tree, lines


@claim_kind
@dataclass(frozen=True)
class SumOutcomes(Claim):
    """The results that the sum's execution can reach are exactly these."""

    kind = "sum-outcomes"
    problem: Sum
    outcomes: tuple[Float, ...]

    @property
    def text(self) -> str:
        values = ", ".join(map(str, self.outcomes))
        return f"{{result : ∃ schedule}} = {{{values}}} for {self.problem.text}"

    def fields(self) -> dict[str, Json]:
        return {"problem": sum_to_json(self.problem), "outcomes": [value_to_json(v) for v in self.outcomes]}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SumOutcomes:
        return cls(sum_from_json(data["problem"]), tuple(value_from_json(v) for v in data["outcomes"]))

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """That an outcome of the claim is never reached needs a proof of the whole set."""
        if "outcomes" not in counterexample:
            return []
        return [SumOutcomes(self.problem, tuple(value_from_json(v) for v in counterexample["outcomes"]))]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"schedule": tree} reaching another result, or {"outcomes": the proved set}."""
        if "outcomes" in counterexample:
            actual = {value_from_json(v) for v in counterexample["outcomes"]}
            never = sorted(str(v) for v in set(self.outcomes) - actual)
            return Replay(bool(never), (f"never reached: {', '.join(never)}",))
        result, _, lines = replay_schedule(self.problem, counterexample["schedule"])
        return Replay(result not in self.outcomes, tuple(lines), {"result": result.hex})


@claim_kind
@dataclass(frozen=True)
class SumInvariant(Claim):
    """Every allowed schedule gives one and the same result (NaN is one result, the zeros are two)."""

    kind = "sum-invariant"
    problem: Sum

    @property
    def text(self) -> str:
        return f"∀ schedules s, t: result under s = result under t for {self.problem.text}"

    def fields(self) -> dict[str, Json]:
        return {"problem": sum_to_json(self.problem)}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SumInvariant:
        return cls(sum_from_json(data["problem"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"schedules": [tree, tree]} with different results."""
        lines: list[str] = []
        results = []
        for schedule in counterexample["schedules"][:2]:
            result, _, more = replay_schedule(self.problem, schedule)
            results.append(result)
            lines += more
        different = len(results) == 2 and results[0] != results[1]
        return Replay(different, tuple(lines), {"results": [r.hex for r in results]})
