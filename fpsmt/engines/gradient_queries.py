"""Questions about gradients over a box of inputs: for every execution, or some; with a value too; of free weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fpsmt.claims.formulas import ForAll, assignment_from_json
from fpsmt.claims.gradient_targets import Target
from fpsmt.claims.gradients import problem_text
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options
from fpsmt.errors import InternalError, Unsupported
from fpsmt.floats import Float
from fpsmt.floats.vector import to_carrier, to_floats
from fpsmt.kernel import Refuted, Verdict
from fpsmt.networks.autodiff import GradientTrace
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Affine, Node
from fpsmt.networks.reach import GradientProblem, GradientRun
from fpsmt.networks.real_gradients import real_gradient
from fpsmt.smt.unrolling import Unrolled, UnrolledGradient, input_variables, unroll, unroll_gradient
from fpsmt.terms import Assignment, Term, all_of, const, implies, le, negation, var

Ends = tuple[Float, Float]


@dataclass(frozen=True)
class Query:
    """Is the gradient as `target` says, and the value as `value` says, at every x of the box, or (`some`) at some x?

    `problem` is the network at the low ends of the box, with everything that says how it runs; over all its executions.
    A target is given for each element of the gradient asked for; `value`, if any, for each output.  With `free`, the
    weights and biases of all affine nodes, finite and from one end to the other, are quantified as x is.
    """

    problem: GradientProblem
    box: tuple[Ends, ...]
    target: tuple[Target, ...]
    value: tuple[Target, ...] | None = None
    some: bool = False
    free: Ends | None = None

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        return self._text(self.some, self.some)

    @property
    def statement(self) -> str:
        """The claim whose verdict answers: with `some` the negation of the question."""
        return self._text(False, self.some)

    def _text(self, exists: bool, some: bool) -> str:
        each = "∃" if exists else "∀"
        wanted = f"gradient {_list(self.target)}" + (f", value {_list(self.value)}" if self.value else "")
        where = ", ".join(f"{a} ≤ x{k} ≤ {b}" if a != b else f"x{k} = {a}" for k, (a, b) in enumerate(self.box))
        weights = "" if self.free is None else f" {each} parameters from {self.free[0]} to {self.free[1]}"
        wanted = wanted if exists == some else f"not ({wanted})"
        return f"{each} {where}{weights} {each} execution: {wanted}; {problem_text(self.problem, inputs=False)}"


@dataclass(frozen=True)
class Witness:
    """An execution that decides: the problem at the point found, with the parameters found, and its schedules."""

    problem: GradientProblem
    run: GradientRun

    @property
    def trace(self) -> GradientTrace:
        return self.problem.execute(self.run)


@dataclass(frozen=True)
class Answer:
    """The verdict on the claim; with a counterexample to it, the execution."""

    verdict: Verdict
    witness: Witness | None


def wrong_sign(query: Query) -> tuple[Target, ...]:
    """For each element asked for the sign that the real derivative does not have, anywhere in the box.

    `Unsupported` where the derivative in real numbers may be 0 or of either sign.
    """
    problem = query.problem
    found = real_gradient(problem.network, query.box, problem.loss[problem.network.output.name])
    chosen = found if problem.component is None else [found[problem.component]]
    targets = []
    for k, (low, high) in enumerate(chosen):
        if low <= 0 <= high:
            ends = f"between {float(low):g} and {float(high):g}"
            raise Unsupported(f"the real derivative, element {k}, is {ends}: it has no one sign here; narrow the box")
        targets.append(Target("negative" if low > 0 else "positive"))
    return tuple(targets)


def ask(query: Query, options: Options) -> Answer:
    """Decides by the engines for formulas; a counterexample is executed by the reference interpreter.

    >>> from fpsmt.floats import exactly, float8_e4m3
    >>> net = Network.sequential("float8_e4m3", 1, [([[2], [-2]], None), "relu", ([[1, 1]], None)])
    >>> one = exactly(float8_e4m3, 1)
    >>> problem = GradientProblem(net, [-one], [one])
    >>> ask(Query(problem, ((-one, one),), (Target("finite"),)), Options()).verdict.name
    'proved'
    >>> found = ask(Query(problem, ((-one, one),), (Target("zero"),), some=True), Options()).witness
    >>> [str(g) for g in found.problem.value(found.trace)]
    ['0.0']
    """
    problem, network = query.problem, query.problem.network
    points = [const(a) if a == b else x for (a, b), x in zip(query.box, input_variables(network)[network.input.name])]
    inside = [part for (a, b), x in zip(query.box, points) if a != b for part in (le(const(a), x), le(x, const(b)))]
    weights, biases = _parameters(network) if query.free else ({}, {})
    rows = [*(row for matrix in weights.values() for row in matrix), *biases.values()]
    if query.free is not None:
        low, high = (const(end) for end in query.free)
        inside += [part for row in rows for v in row if v.op == "var" for part in (le(low, v), le(v, high))]
    run = unroll(network, points, problem.forward, weights=weights, biases=biases)
    loss = {name: [const(y) for y in values] for name, values in problem.loss.items()}
    back = unroll_gradient(run, loss, problem.backward, problem.rules)
    gradient: Sequence[Term] = back.gradients[problem.at]
    chosen = gradient if problem.component is None else [gradient[problem.component]]
    parts = [t.term(g) for t, g in zip(query.target, chosen, strict=True)]
    if query.value is not None:
        parts += [t.term(y) for t, y in zip(query.value, run.output, strict=True)]
    wanted = all_of(*parts)
    condition = implies(all_of(*inside, run.valid, back.valid), negation(wanted) if query.some else wanted)
    claim = ForAll(query.statement, condition)
    verdict = decide(claim, options)
    if not isinstance(verdict, Refuted):
        return Answer(verdict, None)
    found = assignment_from_json(condition, verdict.counterexample)
    witness = _witness(query, run, back, points, Assignment(dict(found.values), found.outputs))
    _check(query, witness)
    return Answer(verdict, witness)


def _list(targets: Sequence[Target]) -> str:
    return str(targets[0]) if len(targets) == 1 else f"({', '.join(map(str, targets))})"


def _parameters(network: Network) -> tuple[dict[str, list[list[Term]]], dict[str, list[Term]]]:
    """A variable for each weight that is read, and each bias."""
    weights, biases = {}, {}
    for node in network.of_kind(Affine):
        fmt, rows = node.formats[0], len(node.weights)
        matrix = [[const(w) for w in to_floats(fmt, row)] for row in node.weights]
        for i in range(rows):
            for j in node.columns(i).tolist():
                matrix[i][j] = var(f"{node.name}.weight[{i},{j}]", fmt)
        weights[node.name] = matrix
        if node.bias is not None:
            biases[node.name] = [var(f"{node.name}.bias[{i}]", node.formats[1]) for i in range(rows)]
    return weights, biases


def _witness(
    query: Query, run: Unrolled, back: UnrolledGradient, points: Sequence[Term], found: Assignment
) -> Witness:
    """What does not occur in the condition has no influence, and gets a value that is allowed."""
    values: dict[str, Any] = dict(found.values)
    for choice in (*run.choices, *back.choices):
        values.setdefault(str(choice.data), 0)
    x = tuple(
        a if point.op == "const" else values.get(str(point.data), a) for point, (a, _) in zip(points, query.box)
    )
    network = _with_parameters(run, query, values) if query.free else query.problem.network
    problem = replace(query.problem, network=network, inputs={network.input.name: x})
    one = GradientRun(run.schedules(values), back.schedules(values), run.outputs(replace(found, values=values)))
    return Witness(problem, one)


def _with_parameters(run: Unrolled, query: Query, values: Mapping[str, Any]) -> Network:
    assert query.free is not None

    def number(term: Term) -> Float:
        return values.get(str(term.data), query.free[0]) if term.op == "var" else term.data  # type: ignore[index]

    nodes: list[Node] = []
    for node in run.network.nodes:
        if isinstance(node, Affine):
            weights = np.array([to_carrier([number(w) for w in row]) for row in run.weights[node.name]])
            bias = None if node.bias is None else to_carrier([number(b) for b in run.biases[node.name]])
            node = replace(node, weights=weights, bias=bias)
        nodes.append(node)
    return Network(tuple(nodes), run.network.outputs)


def _check(query: Query, witness: Witness) -> None:
    trace = witness.trace
    gradient = witness.problem.value(trace)
    good = all(t.holds(g) for t, g in zip(query.target, gradient, strict=True))
    if query.value is not None:
        output = trace.forward.values[witness.problem.network.output.name]
        good = good and all(t.holds(y) for t, y in zip(query.value, output, strict=True))
    if good != query.some:
        raise InternalError("the execution of a counterexample does not have the gradient of its formula")
