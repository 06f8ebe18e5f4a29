"""Claims about gradients as executed: what reverse mode can return over all forward and backward executions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.network_runs import OfNetwork, network_records
from fpsmt.claims.sums import value_from_json, value_to_json
from fpsmt.errors import UsageError
from fpsmt.floats import Float
from fpsmt.networks.autodiff import CORRECTLY_ROUNDED, DerivativeRule, GradientTrace, rule_named
from fpsmt.networks.executions import PAPER, PAPER_BACKWARD, Execution
from fpsmt.networks.interpreter import Executions
from fpsmt.networks.networks import Network
from fpsmt.networks.reach import GradientProblem, GradientRun, Rules, Vector
from fpsmt.networks.sums import SumTrace
from fpsmt.networks.trees import Tree, render, steps, tree_from_json, tree_to_json
from fpsmt.smt.unrolling import Encoding, unroll, unroll_gradient
from fpsmt.terms import Term, all_of, const, implies, le

MOST_SHOWN = 12  #: values of one node, and terms of a sum, that a replay shows


# -- the problem in words and in JSON ---------------------------------------------------------------------


def executions_to_json(how: Executions) -> Json:
    if isinstance(how, Execution):
        return how.to_json()
    return {"nodes": {name: each.to_json() for name, each in how.items()}}


def executions_from_json(data: Json) -> Executions:
    if "nodes" in data:
        return {str(name): Execution.from_json(each) for name, each in data["nodes"].items()}
    return Execution.from_json(data)


def _rule_name(rule: DerivativeRule) -> str:
    if rule_named(rule.name) != rule:
        raise UsageError(f"the derivative rule {rule.name!r} is another one by its name: a claim stores the name")
    return rule.name


def problem_to_json(problem: GradientProblem) -> dict[str, Json]:
    """The JSON form; derivative rules by name, so `networks.rule_named` must know them."""
    rules: Any = problem.rules
    single = isinstance(rules, DerivativeRule)
    return {
        "network": problem.network.to_json(),
        "inputs": {name: [value_to_json(x) for x in values] for name, values in problem.inputs.items()},
        "loss": {name: [value_to_json(x) for x in values] for name, values in problem.loss.items()},
        "forward": executions_to_json(problem.forward),
        "backward": executions_to_json(problem.backward),
        "rules": _rule_name(rules) if single else {name: _rule_name(rule) for name, rule in rules.items()},
        "at": problem.at,
        "component": problem.component,
    }


def problem_from_json(data: Mapping[str, Json]) -> GradientProblem:
    rules = data["rules"]
    return GradientProblem(
        Network.from_json(data["network"]),
        {str(name): tuple(value_from_json(x) for x in values) for name, values in data["inputs"].items()},
        {str(name): tuple(value_from_json(x) for x in values) for name, values in data["loss"].items()},
        executions_from_json(data["forward"]),
        executions_from_json(data["backward"]),
        rule_named(rules) if isinstance(rules, str) else {str(n): rule_named(r) for n, r in rules.items()},
        data["at"],
        data["component"],
    )


def problem_text(problem: GradientProblem, inputs: bool = True) -> str:
    """The problem in one line, with or without its inputs."""
    net = problem.network
    what = f"{len(net.nodes)} nodes, {net.parameters} parameters in {net.node(problem.at).format}"
    rules = problem.rules
    named = rules.name if isinstance(rules, DerivativeRule) else "; ".join(f"{n}: {r.name}" for n, r in rules.items())
    words = [
        f"N of {what}, sha256 {net.digest[:12]}",
        *([", ".join(f"{name} = {_vector(v)}" for name, v in problem.inputs.items())] if inputs else []),
        "loss derivative " + ", ".join(_vector(v) for v in problem.loss.values()),
        f"forward {_executions(problem.forward, PAPER)}",
        f"backward {_executions(problem.backward, PAPER_BACKWARD)}",
        f"derivatives {named or CORRECTLY_ROUNDED.name}",
    ]
    return "; ".join(words)


def _executions(how: Executions, default: Execution) -> str:
    if isinstance(how, Execution):
        return str(how)
    return ", ".join(f"{name}: {each}" for name, each in how.items()) or str(default)


def _gradient(problem: GradientProblem) -> str:
    return f"∂N/∂{problem.at}" + ("" if problem.component is None else f"[{problem.component}]")


def _vector(values: Sequence[Float]) -> str:
    some = ", ".join(map(str, values[:MOST_SHOWN])) + (f", … ({len(values)})" if len(values) > MOST_SHOWN else "")
    return some if len(values) == 1 else f"({some})"


# -- executions in JSON -----------------------------------------------------------------------------------


def run_to_json(one: GradientRun) -> dict[str, Json]:
    """One execution: trees by ``"node:index"``, and outputs of inexact activations."""
    data: dict[str, Json] = {
        "forward": {f"{name}:{i}": tree_to_json(tree) for (name, i), tree in one.forward.items()},
        "backward": {f"{name}:{j}": tree_to_json(tree) for (name, j), tree in one.backward.items()},
    }
    if one.outputs:
        data["outputs"] = [
            [text, site, value_to_json(x), value_to_json(y)] for (text, site, x), y in one.outputs.items()
        ]
    return data


def run_from_json(data: Json) -> GradientRun:
    """An execution; a gradient listed beside it is not read."""
    if not isinstance(data, Mapping) or not data.keys() <= {"forward", "backward", "outputs", "gradient"}:
        raise UsageError('an execution is {"forward": {"node:output": tree}, "backward": {"node:column": tree}}')
    try:
        outputs = {
            (str(text), str(site), value_from_json(x)): value_from_json(y)
            for text, site, x, y in data.get("outputs", [])
        }
    except (TypeError, ValueError, IndexError) as error:
        raise UsageError(f"activation outputs are lists of [implementation, site, x, y]: {error}") from None
    return GradientRun(_trees(data.get("forward", {})), _trees(data.get("backward", {})), outputs)


def _trees(data: Json) -> dict[tuple[str, int], Tree]:
    if not isinstance(data, Mapping):
        raise UsageError('the schedules of a pass are an object {"node:index": tree, …}')
    found = {}
    for key, tree in data.items():
        name, colon, place = str(key).rpartition(":")
        if not colon or not place.isdecimal():
            raise UsageError(f"{key!r} does not name a sum: write node:index, e.g. affine1:0")
        found[name, int(place)] = tree_from_json(tree)
    return found


# -- the claims -------------------------------------------------------------------------------------------


class _GradientClaim(OfNetwork):
    problem: GradientProblem

    @cached_property
    def _records(self) -> list[Any]:
        """What the JSON only names: contexts, formats, implementations, rules; and the values with their formats."""
        problem = self.problem
        given = [dict(problem.inputs), dict(problem.loss), problem.forward, problem.backward, problem.rules]
        return [network_records(problem.network), given, getattr(self, "outcomes", ())]

    def executed(self, data: Json, title: str) -> tuple[Vector, list[str]]:
        """One execution, run by the reference interpreter: the gradient, and what happened in both passes."""
        one = run_from_json(data)
        trace = self.problem.execute(one)
        value = self.problem.value(trace)
        lines = [f"{title}: {_gradient(self.problem)} = {_vector(value)} ({', '.join(x.bits for x in value)})"]
        return value, [*lines, *(f"  {line}" for line in trace_lines(trace, one))]


@claim_kind
@dataclass(frozen=True, eq=False)
class GradientOutcomes(_GradientClaim):
    """The gradients that reverse mode can return over all allowed forward and backward executions are exactly these.

    *Executions*: every schedule of both passes that `problem.forward` and `problem.backward` allow, and every output
    that the contracts of the activations allow.  `outcomes` are vectors, of one element when the problem asks for a
    component.  NaN is one value, the zeros are two.
    """

    kind = "gradient-outcomes"
    problem: GradientProblem
    outcomes: tuple[Vector, ...]

    def __post_init__(self) -> None:
        node, component = self.problem.network.node(self.problem.at), self.problem.component
        size = self.problem.network.sizes[node.name] if component is None else 1
        object.__setattr__(self, "outcomes", tuple(tuple(v) for v in self.outcomes))
        for v in self.outcomes:
            if len(v) != size or any(not isinstance(x, Float) or x.format != node.format for x in v):
                raise UsageError(f"the gradient {_vector(v)} is not a vector of {size} values of {node.format}")

    @property
    def text(self) -> str:
        values = ", ".join(map(_vector, self.outcomes))
        return f"{{{_gradient(self.problem)} : ∃ execution}} = {{{values}}} for {problem_text(self.problem)}"

    def fields(self) -> dict[str, Json]:
        return {
            "problem": problem_to_json(self.problem),
            "outcomes": [[value_to_json(x) for x in v] for v in self.outcomes],
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> GradientOutcomes:
        return cls(problem_from_json(data["problem"]), _vectors(data["outcomes"]))

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """That an outcome of the claim is never reached needs a proof of the whole set."""
        if "outcomes" not in counterexample:
            return []
        return [GradientOutcomes(self.problem, _vectors(counterexample["outcomes"]))]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"execution": {…}} with another gradient, or {"outcomes": the proved set}.

        An execution has "forward" and "backward" schedules, trees by ``"node:index"`` (sums that are left out run by
        the default of their execution), and "outputs", a list of [implementation, site, x, y].
        """
        if "outcomes" in counterexample:
            actual = set(_vectors(counterexample["outcomes"]))
            never = [_vector(v) for v in self.outcomes if v not in actual]
            return Replay(bool(never), (f"never returned: {', '.join(never)}",))
        if "execution" not in counterexample:
            raise UsageError('a counterexample to a set of gradients is {"execution": …} or {"outcomes": [vector, …]}')
        value, lines = self.executed(counterexample["execution"], "executed")
        return Replay(value not in self.outcomes, tuple(lines), {"gradient": [x.hex for x in value]})


@claim_kind
@dataclass(frozen=True, eq=False)
class GradientInvariant(_GradientClaim):
    """Every allowed forward and backward execution returns one and the same gradient, bit for bit."""

    kind = "gradient-invariant"
    problem: GradientProblem

    @property
    def text(self) -> str:
        name = _gradient(self.problem)
        return f"∀ executions s, t: {name} under s = {name} under t for {problem_text(self.problem)}"

    def fields(self) -> dict[str, Json]:
        return {"problem": problem_to_json(self.problem)}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> GradientInvariant:
        return cls(problem_from_json(data["problem"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"executions": [E, F]} with different gradients; executions as for `GradientOutcomes`."""
        both = counterexample.get("executions") if isinstance(counterexample, Mapping) else None
        if not isinstance(both, Sequence) or len(both) != 2:
            raise UsageError('a counterexample to an invariant gradient is {"executions": [E, F]}')
        (one, first), (two, second) = (self.executed(e, f"under {n}") for e, n in zip(both, "st"))
        values = {"gradients": [[x.hex for x in v] for v in (one, two)]}
        return Replay(one != two, (*first, *second), values)


def _vectors(data: Json) -> tuple[Vector, ...]:
    return tuple(tuple(value_from_json(x) for x in v) for v in data)


def trace_lines(trace: GradientTrace, one: GradientRun) -> list[str]:
    """Forward values, then gradients from the loss on, with the trees of the sums whose schedules are given."""
    lines = []
    nodes = trace.forward.network.nodes
    for node in nodes:
        lines.append(f"{node.name} = {_vector(trace.forward.values[node.name])}")
        for (name, i), made in trace.forward.sums.items():
            if name == node.name and (name, i) in one.forward:
                lines += _tree(made, f"{name}[{i}]")
    for (text, site, x), y in one.outputs.items():
        lines.append(f"{text}{'@' + site if site else ''}({x}) = {y}")
    for node in reversed(nodes):
        for (name, j), made in trace.sums.items():
            if node.name in trace.forward.network.node(name).sources and (name, j) in one.backward:
                lines += _tree(made, f"{name}, backward column {j}")
        lines.append(f"gradient at {node.name} = {_vector(trace.gradients[node.name])}")
    return lines


def _tree(made: SumTrace, title: str) -> list[str]:
    leaves = sum(step.op == "leaf" for step in steps(made.tree))
    if not 2 < leaves <= MOST_SHOWN:
        return []
    return [f"  {title}:", *(f"    {line}" for line in render(made.tree, made.values).splitlines())]


# -- formulas ---------------------------------------------------------------------------------------------


def gradient_formula(
    network: Network,
    condition: Callable[[list[Term]], Term],
    statement: str,
    *,
    loss: Sequence[Float | Term] | Mapping[str, Sequence[Float | Term]],
    domain: tuple[Float, Float] | Callable[[list[Term]], Term] | None = None,
    forward: Executions = PAPER,
    backward: Executions = PAPER_BACKWARD,
    rules: Rules = CORRECTLY_ROUNDED,
    at: str = "",
    encoding: Encoding = "auto",
) -> ForAll:
    """∀ inputs in the domain, ∀ forward and backward executions: the gradient meets the condition.

    `condition` gets the terms of the gradient at the node `at` (default: the only input) and returns a Boolean term.
    `domain` is a pair of ends for every input element (NaN is then outside), or a Boolean term of all input elements;
    None: every value of the format, NaN and infinities included.  Elements of `loss` that are terms are quantified too.
    The claim's variables are ``node[k]`` for inputs and the choices of `smt.unrolling`.

    >>> from fpsmt.claims import gradient_formula
    >>> from fpsmt.floats import exactly, float8_e4m3
    >>> from fpsmt.engines import decide
    >>> from fpsmt.terms import is_nan, negation
    >>> net = Network.sequential("float8_e4m3", 1, [([[2], [-2]], None), "relu", ([[1, 1]], None)])
    >>> one = exactly(float8_e4m3, 1)
    >>> print(decide(gradient_formula(net, lambda g: negation(is_nan(g[0])), "no NaN", loss=[one])).name)
    refuted
    >>> inside = (-one, one)
    >>> print(decide(gradient_formula(net, lambda g: negation(is_nan(g[0])), "no NaN", loss=[one], domain=inside)).name)
    proved
    """
    run = unroll(network, None, forward, encoding=encoding)
    elements = [x for values in run.inputs.values() for x in values]
    named = loss if isinstance(loss, Mapping) else {network.output.name: loss}
    derivatives = {name: [x if isinstance(x, Term) else const(x) for x in values] for name, values in named.items()}
    back = unroll_gradient(run, derivatives, backward, rules)
    inside: list[Term] = []
    if callable(domain):
        inside = [domain(elements)]
    elif domain is not None:
        low, high = (const(end) for end in domain)
        inside = [part for x in elements for part in (le(low, x), le(x, high))]
    gradient: Any = back.gradients[at or network.input.name]
    return ForAll(statement, implies(all_of(*inside, run.valid, back.valid), condition(list(gradient))))
