"""Every gradient that reverse mode can return at one input, over all forward and backward executions.

A *state* is what later steps can still see of an execution: values of nodes that somebody reads, and of each activation
what its derivative rule needs.  States go through the network forwards, then backwards; at each sum a state becomes one
state for each reachable result (`outcomes.reachable`), so nothing that the execution allows is left out.  What cannot
influence the gradient asked for is not computed: in a network whose loss derivative is given, the last sums do not
matter.  States that agree are merged, and each keeps one execution that leads to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any

from fpsmt import floats
from fpsmt.errors import InternalError, Unsupported, UsageError
from fpsmt.floats import Context, Float, from_ordinal, zero
from fpsmt.floats.vector import to_floats
from fpsmt.functions import CorrectlyRounded, Implementation, correctly_rounded
from fpsmt.functions.enclosures import place
from fpsmt.networks.autodiff import (
    CORRECTLY_ROUNDED,
    FRAMEWORK,
    FROM_OUTPUT,
    BackwardSchedules,
    DerivativeRule,
    GradientTrace,
    Local,
    gradient,
)
from fpsmt.networks.executions import PAPER, PAPER_BACKWARD, Execution
from fpsmt.networks.interpreter import ActivationOutputs, Executions, Schedules, execution_of, run, site_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import OPERATIONS, Activation, Affine, Cast, Constant, Elementwise, Input, Node, Select
from fpsmt.networks.orders import AnyOrder, Contiguous, Depth, Order, Sequential, Union
from fpsmt.networks.outcomes import Sum, reachable
from fpsmt.networks.trees import Tree
from fpsmt.networks.zeros import without_zeros

MAX_STATES = 200_000  #: states after one node
MAX_SPLITS = 2_000_000  #: splits of the terms of one sum
MAX_WORK = 20_000_000  #: splits of all sums together
NARROW = "narrow the orders, or ask for one component"

Vector = tuple[Float, ...]
Named = Any  #: values by name, or just the values when there is one name; a mapping from names to tuples once checked
Rules = DerivativeRule | Mapping[str, DerivativeRule]


@dataclass(frozen=True)
class GradientRun:
    """One execution of a `GradientProblem`: schedules of both passes, and what inexact activations return."""

    forward: Schedules
    backward: BackwardSchedules
    outputs: ActivationOutputs


@dataclass(frozen=True, eq=False)
class GradientProblem:
    """D^AD of a network at one input: from the loss derivative at the outputs to the gradient at a node.

    `inputs` and `loss` are values by the name of the input or output, or just the values when there is one.
    `forward` and `backward` say how the sums of the two passes run, `rules` how derivatives are computed.
    The gradient is that of the node `at`, by default the only input; of all its elements, or of `component` alone.

    NaN and infinities are values like others.  Usage errors: as `networks.run` and `networks.gradient`; no such
    node or component.
    """

    network: Network
    inputs: Named
    loss: Named
    forward: Executions = PAPER
    backward: Executions = PAPER_BACKWARD
    rules: Rules = CORRECTLY_ROUNDED
    at: str = ""
    component: int | None = None

    def __post_init__(self) -> None:
        put, network = object.__setattr__, self.network
        for name, default in (("inputs", lambda: network.input), ("loss", lambda: network.output)):
            given: Any = getattr(self, name)
            named = given if isinstance(given, Mapping) else {default().name: given}
            put(self, name, MappingProxyType({k: tuple(v) for k, v in named.items()}))
        put(self, "at", self.at or network.input.name)
        size = network.sizes[network.node(self.at).name]
        if self.component is not None and not 0 <= self.component < size:
            raise UsageError(f"{self.at!r} has {size} elements: there is no component {self.component}")
        for name, of in (("forward", self.forward), ("backward", self.backward)):
            for key in of if isinstance(of, Mapping) else ():
                if not isinstance(network.node(key), Affine):
                    raise UsageError(f"a {name} execution is given for {key!r}, which is not an affine node")
        for key in self.rules if isinstance(self.rules, Mapping) else ():
            if not isinstance(network.node(key), Activation):
                raise UsageError(f"a derivative rule is given for {key!r}, which is not an activation")
        self.execute(GradientRun({}, {}, {}))

    def execute(self, one: GradientRun) -> GradientTrace:
        """One execution by the reference interpreter; a usage error where it is not allowed."""
        forward = run(self.network, self.inputs, self.forward, one.forward, one.outputs)
        return gradient(forward, self.loss, self.backward, one.backward, self.rules)

    def value(self, trace: GradientTrace) -> Vector:
        """The gradient asked for."""
        whole = trace.gradients[self.at]
        return whole if self.component is None else (whole[self.component],)

    def rule(self, name: str) -> DerivativeRule:
        """The derivative rule of an activation."""
        return self.rules if isinstance(self.rules, DerivativeRule) else self.rules.get(name, CORRECTLY_ROUNDED)

    def backward_of(self, name: str) -> Execution:
        """How the backward sums of an affine node run."""
        how = self.backward
        return how if isinstance(how, Execution) else how.get(name, PAPER_BACKWARD)


@lru_cache(maxsize=16)
def reachable_gradients(problem: GradientProblem) -> Mapping[Vector, GradientRun]:
    """Each reachable gradient with one execution that returns it, in ascending order, NaN last.

    `Unsupported`, saying what is too large, beyond the limits of this module; also for inexact activations that
    promise to be monotone.  Every execution found is replayed by the interpreter.

    >>> from fpsmt.floats import exactly, float16
    >>> net = Network.sequential("float16", 1, [([[1], [1], [1]], None)])
    >>> half = lambda *xs: tuple(exactly(float16, x) for x in xs)
    >>> problem = GradientProblem(net, half(1), half(2048, 1, -2048), backward=PAPER)
    >>> [str(g) for (g,) in reachable_gradients(problem)]
    ['0.0', '1.0']
    """
    search = _Search(problem)
    states = search.backward(search.forward())
    found = {}
    for vector, chain in sorted(states.items(), key=lambda item: [_rank(g) for g in item[0]]):
        one = _unchain(chain)
        if problem.value(problem.execute(one)) != vector:
            raise InternalError(f"the execution found for the gradient {', '.join(map(str, vector))} gives another one")
        found[vector] = one
    return MappingProxyType(found)


def _rank(x: Float) -> tuple[bool, int, bool]:
    return (True, 0, False) if x.is_nan else (False, x.ordinal, not x.negative)


# -- executions, as they grow -----------------------------------------------------------------------------

Choice = tuple[str, Any, Any]  # kind, key, what is chosen
Chain = tuple[Any, tuple[Choice, ...]] | None  # what was chosen before, and last
State = tuple[Any, ...]
States = dict[State, Chain]


def _unchain(chain: Chain) -> GradientRun:
    parts: dict[str, dict[Any, Any]] = {"forward": {}, "backward": {}, "output": {}}
    while chain is not None:
        chain, choices = chain
        for kind, key, value in choices:
            parts[kind][key] = value
    return GradientRun(parts["forward"], parts["backward"], parts["output"])


# -- what a derivative rule needs -------------------------------------------------------------------------


def _all_of_it(use: Implementation, ctx: Context, x: Float, y: Float) -> Any:
    return x, y


def _slope(use: Implementation, ctx: Context, x: Float, y: Float) -> Any:
    return correctly_rounded(use.function.derivative, ctx, x)


def _output(use: Implementation, ctx: Context, x: Float, y: Float) -> Any:
    return floats.less(zero(y.format), y) if use.function.name == "relu" else y


def _selected(use: Implementation, ctx: Context, x: Float, y: Float) -> Any:
    return x.is_nan or floats.less(zero(x.format), x) if use.function.name == "relu" else y


#: For a rule, something that settles its step for every g; pairs (x, y) with one key behave alike.
_KEYS: dict[DerivativeRule, Callable[[Implementation, Context, Float, Float], Any]] = {
    CORRECTLY_ROUNDED: _slope,
    FROM_OUTPUT: _output,
    FRAMEWORK: _selected,
}


# -- what matters -----------------------------------------------------------------------------------------


class _Plan:
    """Which values of the network can influence the gradient asked for, and until when they are needed.

    `onward`: the node asked for and its descendants, whose gradients flow to it.  `needed`: nodes whose forward
    values matter.  `steps`: the nodes to go through forwards.  `fused`: sums that only one exact activation reads;
    they are done together with it, so that their results need not be told apart unless its output or slope does.
    """

    def __init__(self, network: Network, at: str) -> None:
        self.network, self.at = network, at
        self.onward = {at}
        for node in network.nodes:
            if self.onward.intersection(node.sources):
                self.onward.add(node.name)
        self.needed = {name for node in network.nodes for name in self.kept(node)}
        for node in reversed(network.nodes):
            if node.name in self.needed:
                self.needed.update(node.sources)
        steps = [node for node in network.nodes if node.name in self.needed or self.kept(node)]
        self.fused: dict[str, Affine] = {}
        for node in steps:
            if isinstance(node, Activation) and is_exact(node):
                source = network.node(node.source)
                if isinstance(source, Affine) and sum(source.name in self._reads(n) for n in steps) == 1:
                    self.fused[node.name] = source
        hidden = {source.name for source in self.fused.values()}
        self.steps = [node for node in steps if node.name not in hidden]
        self.last = {name: k for k, node in enumerate(self.steps) for name in self._reads(node)}
        choosing = [k for k, n in enumerate(self.steps) if isinstance(n, Activation) and not is_exact(n)]
        self.last_choice = max(choosing, default=-1)

    def kept(self, node: Node) -> list[str]:
        """The nodes whose values the backward step of this node reads."""
        if node.name not in self.onward or node.name == self.at:
            return []
        if isinstance(node, Activation):
            return [node.source, node.name]
        if isinstance(node, Elementwise) and node.operation in ("mul", "div"):
            of_right = node.right in self.onward
            kept = [node.right] if node.left in self.onward or node.operation == "div" else []
            return [*kept, node.left if node.operation == "mul" else node.name] if of_right else kept
        return []

    def _reads(self, node: Node) -> set[str]:
        """The nodes whose values must be there when this one is done."""
        if node.name in self.fused:
            return {self.fused[node.name].source}
        return ({*node.sources} if node.name in self.needed else {*self.kept(node)}) - {node.name}

    def lives(self, name: str, step: int) -> bool:
        """Whether a later step reads the value."""
        return self.last.get(name, -1) > step

    def slots(self, before: Sequence[str], step: int) -> list[str]:
        """What a state holds after a step."""
        node = self.steps[step]
        slots = [s for s in before if s.startswith("kept:") or self.lives(s.removeprefix("value:"), step)]
        slots += [f"value:{node.name}"] * self.lives(node.name, step) + [f"kept:{node.name}"] * bool(self.kept(node))
        return [*slots, *(["chosen:"] if self.last_choice > step else [])]


def is_exact(node: Activation) -> bool:
    """Correctly rounded: one output for each input."""
    return isinstance(node.implementation.contract, CorrectlyRounded)


# -- the search -------------------------------------------------------------------------------------------


class _Search:
    """Both passes over the states of one problem."""

    def __init__(self, problem: GradientProblem) -> None:
        self.problem, self.network = problem, problem.network
        self.plan = _Plan(problem.network, problem.at)
        self.work = 0
        self.sums: dict[Any, list[tuple[Float, Tree]]] = {}
        self.likeness: dict[Any, tuple[Float, Float]] = {}
        self.slots: list[str] = []

    def results(
        self, ctx: Context, terms: Sequence[tuple[Float, Float]], bias: Float | None, how: Execution, where: str
    ) -> list[tuple[Float, Tree]]:
        """The reachable results of one sum, each with a schedule."""
        key = (ctx, tuple(terms), bias, how)
        if key not in self.sums:
            problem = Sum(ctx, _plain(ctx, terms, how), bias, how)
            problem, whole = without_zeros(problem) or (problem, None)
            self.work += (splits := _splits(problem.terms, bias is not None, how.order))
            if splits > MAX_SPLITS or self.work > MAX_WORK:
                raise Unsupported(
                    f"the sum {where} has {len(terms)} terms and too many schedules under {how} "
                    f"({splits} splits; at most {MAX_SPLITS} for one sum and {MAX_WORK} for all): {NARROW}"
                )
            try:
                found = reachable(problem).items()
            except Unsupported as error:
                raise Unsupported(f"the sum {where}: {error}") from error
            self.sums[key] = [(value, whole(tree) if whole else tree) for value, tree in found]
        return self.sums[key]

    def _merged(self, states: Iterable[tuple[State, Chain]], name: str) -> States:
        """The states without repeats; refused when they are too many."""
        out: States = {}
        for state, chain in states:
            if state not in out:
                out[state] = chain
                if len(out) > MAX_STATES:
                    raise Unsupported(f"more than {MAX_STATES} combinations of values after {name!r}: {NARROW}")
        return out

    def _bounded(self, options: Sequence[Sequence[Any]], name: str) -> None:
        if math.prod(map(len, options)) > MAX_STATES:
            counts = " × ".join(str(len(o)) for o in options)
            raise Unsupported(f"{name!r} can have {counts} combinations of values, more than {MAX_STATES}: {NARROW}")

    # -- forward --------------------------------------------------------------------------------------

    def forward(self) -> States:
        """The states after the forward pass: what the backward steps read."""
        states: States = {(): None}
        for step, node in enumerate(self.plan.steps):
            after = self.plan.slots(self.slots, step)
            states = self._merged(self._forward_step(states, node, step, after), node.name)
            self.slots = after
        return states

    def _forward_step(
        self, states: States, node: Node, step: int, after: Sequence[str]
    ) -> Iterator[tuple[State, Chain]]:
        for state, chain in states.items():
            here = {"chosen:": frozenset(), **dict(zip(self.slots, state, strict=True))}
            for new, choices in self._options(node, step, here):
                merged = {**here, **new}
                yield tuple(merged[s] for s in after), (chain, choices) if choices else chain

    def _options(
        self, node: Node, step: int, here: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], tuple[Choice, ...]]]:
        """What a node adds to a state, for each way it may run: values and choices."""
        if isinstance(node, Activation):
            yield from self._exact(node, step, here) if is_exact(node) else self._inexact(node, here)
        elif isinstance(node, Affine):
            rows = self._rows(node, here)
            self._bounded(rows, node.name)
            for row in product(*rows):
                yield {f"value:{node.name}": tuple(y for y, _ in row)}, _choices(node, row)
        else:
            new = {}
            if node.name in self.plan.needed:
                new[f"value:{node.name}"] = self._simple(node, [here[f"value:{s}"] for s in node.sources])
            if kept := self.plan.kept(node):
                new[f"kept:{node.name}"] = tuple({**here, **new}[f"value:{k}"] for k in kept)
            yield new, ()

    def _rows(self, node: Affine, here: Mapping[str, Any]) -> list[list[tuple[Float, Tree]]]:
        """The reachable results of each sum."""
        how, x = execution_of(self.problem.forward, node.name), here[f"value:{node.source}"]
        count = len(node.weights)
        biases = [None] * count if node.bias is None else to_floats(node.formats[1], node.bias)
        out = []
        for i in range(count):
            columns = node.columns(i)
            terms = [(w, x[j]) for w, j in zip(to_floats(node.formats[0], node.weights[i][columns]), columns.tolist())]
            out.append(self.results(node.context, terms, biases[i], how, f"{node.name}[{i}]"))
        return out

    def _simple(self, node: Node, sources: list[Vector]) -> Vector:
        if isinstance(node, Input):
            return self.problem.inputs[node.name]
        if isinstance(node, Constant):
            return tuple(to_floats(node.format, node.values))
        if isinstance(node, Elementwise):
            return tuple(OPERATIONS[node.operation](node.context, a, b) for a, b in zip(*sources, strict=True))
        if isinstance(node, Cast):
            return tuple(floats.cast(node.context, x) for x in sources[0])
        if isinstance(node, Select):
            return tuple(sources[k][element] for k, element in node.picks)
        raise Unsupported(f"nodes of class {type(node).__name__} ({node.name!r}) are not known here")

    def _like(self, node: Activation, x: Float, y: Float) -> tuple[Float, Float] | None:
        """One pair (input, output) for all that behave alike in the backward step; None without one."""
        if not self.plan.kept(node):
            return None
        rule = self.problem.rule(node.name)
        key = (node.name, _KEYS.get(rule, _all_of_it)(node.implementation, node.context, x, y))
        return self.likeness.setdefault(key, (x, y))

    def _exact(
        self, node: Activation, step: int, here: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], tuple[Choice, ...]]]:
        source, lives = self.plan.fused.get(node.name), self.plan.lives(node.name, step)
        if source is None:
            rows: list[list[tuple[Float, Any]]] = [[(x, None)] for x in here[f"value:{node.source}"]]
        else:
            rows = self._rows(source, here)
        options = []  # for each element what can be told apart: output, pair, and the schedule
        for row in rows:
            seen: dict[Any, tuple[Float, Any]] = {}
            for x, tree in row:
                y = correctly_rounded(node.implementation.function, node.context, x)
                seen.setdefault((y if lives else None, self._like(node, x, y)), (x, tree))
            options.append([(*told, chosen) for told, chosen in seen.items()])
        self._bounded(options, node.name)
        for picked in product(*options):
            new = {f"value:{node.name}": tuple(y for y, _, _ in picked)} if lives else {}
            if self.plan.kept(node):
                new[f"kept:{node.name}"] = tuple(pair for _, pair, _ in picked)
            yield new, () if source is None else _choices(source, [chosen for _, _, chosen in picked])

    def _inexact(
        self, node: Activation, here: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], tuple[Choice, ...]]]:
        use, xs = node.implementation, here[f"value:{node.source}"]
        if use.monotone:
            raise Unsupported(f"{use.text} promises to be monotone: all such implementations are not listed here")
        for other in self.network.of_kind(Activation):
            if other.implementation.text == use.text and other.context != node.context:
                raise Unsupported(f"{use.text} is used in two contexts, {node.context} and {other.context}")
        partial: list[tuple[frozenset[Any], Vector, tuple[Choice, ...]]] = [(here["chosen:"], (), ())]
        for k, x in enumerate(xs):
            key = (use.text, site_of(node, k), x)
            grown = []
            for chosen, ys, choices in partial:
                known = dict(chosen).get(key) if use.single_valued else None
                for y in _allowed(use, node.context, x) if known is None else [known]:
                    mark = chosen | {(key, y)} if use.single_valued else chosen
                    grown.append((mark, (*ys, y), (*choices, ("output", key, y))))
            if len(grown) > MAX_STATES:
                raise Unsupported(f"{node.name!r} can return more than {MAX_STATES} combinations of outputs")
            partial = grown
        for chosen, ys, choices in partial:
            pairs = tuple(self._like(node, x, y) for x, y in zip(xs, ys, strict=True))
            yield {f"value:{node.name}": ys, "chosen:": chosen, f"kept:{node.name}": pairs}, choices

    # -- backward -------------------------------------------------------------------------------------

    def backward(self, states: States) -> dict[Vector, Chain]:
        """The gradients at the node asked for."""
        network, problem = self.network, self.problem
        first = tuple((n, self._only(n, v)) for n, v in sorted(problem.loss.items()) if n in self.plan.onward)
        kept = [i for i, s in enumerate(self.slots) if s.startswith("kept:")]
        self.slots = [*(self.slots[i] for i in kept), "arrived:"]
        begin = [((*(state[i] for i in kept), first), chain) for state, chain in states.items()]
        states = self._merged(begin, "the loss")
        for node in reversed(network.nodes):
            if node.name == problem.at:
                break
            if node.name in self.plan.onward:
                states = self._merged(self._backward_step(states, node), node.name)
                self.slots = [s for s in self.slots if s != f"kept:{node.name}"]
        found: dict[Vector, Chain] = {}
        target, size = network.node(problem.at), network.sizes[problem.at]
        for state, chain in states.items():
            arrived = dict(state[-1]).get(problem.at, (None,) * size)
            whole = tuple(zero(target.format) if g is None else g for g in arrived)
            found.setdefault(whole if problem.component is None else (whole[problem.component],), chain)
        return found

    def _backward_step(self, states: States, node: Node) -> Iterator[tuple[State, Chain]]:
        rest = [i for i, s in enumerate(self.slots[:-1]) if s != f"kept:{node.name}"]
        for state, chain in states.items():
            here = dict(zip(self.slots, state, strict=True))
            arrived = dict(here["arrived:"])
            g = tuple(
                zero(node.format) if x is None else x
                for x in arrived.pop(node.name, (None,) * self.network.sizes[node.name])
            )
            for contributions, choices in self._contributions(node, g, here.get(f"kept:{node.name}", ())):
                after = {name: list(values) for name, values in arrived.items()}
                for name, element, x in contributions:
                    self._add(after, name, element, x)
                packed = tuple((name, tuple(values)) for name, values in sorted(after.items()))
                yield (*(state[i] for i in rest), packed), (chain, choices) if choices else chain

    def _only(self, name: str, values: Vector) -> tuple[Float | None, ...]:
        """The values at the node asked for, those of other components left out."""
        if name != self.problem.at or self.problem.component is None:
            return values
        return tuple(x if k == self.problem.component else None for k, x in enumerate(values))

    def _add(self, after: dict[str, list[Float | None]], name: str, element: int, x: Float) -> None:
        if name not in self.plan.onward:
            return
        if name == self.problem.at and self.problem.component not in (None, element):
            return
        values = after.setdefault(name, [None] * self.network.sizes[name])
        before = values[element]
        values[element] = x if before is None else floats.add(self.network.node(name).context, before, x)

    def _contributions(
        self, node: Node, g: Vector, kept: Sequence[Any]
    ) -> Iterator[tuple[list[tuple[str, int, Float]], tuple[Choice, ...]]]:
        """What a node sends to its sources, for each way its sums may run."""
        context_of = self.network.node
        if isinstance(node, Affine):
            yield from self._backward_sums(node, g)
        elif isinstance(node, Activation):
            rule, f, to = self.problem.rule(node.name), node.implementation.function, context_of(node.source).context
            steps = [rule.step(Local(f, each, x, y, node.context, to)) for each, (x, y) in zip(g, kept, strict=True)]
            yield [(node.source, k, x) for k, x in enumerate(steps)], ()
        elif isinstance(node, Cast):
            to = context_of(node.source).context
            yield [(node.source, k, floats.cast(to, each)) for k, each in enumerate(g)], ()
        elif isinstance(node, Select):
            yield [(node.nodes[source], element, g[k]) for k, (source, element) in enumerate(node.picks)], ()
        elif isinstance(node, Elementwise):
            yield self._elementwise(node, g, dict(zip(self.plan.kept(node), kept, strict=True))), ()
        else:
            raise Unsupported(f"reverse mode does not know nodes of class {type(node).__name__} ({node.name!r})")

    def _elementwise(self, node: Elementwise, g: Vector, values: Mapping[str, Vector]) -> list[tuple[str, int, Float]]:
        to_left, to_right = (self.network.node(n).context for n in (node.left, node.right))
        out = []
        for k, each in enumerate(g):
            if node.left in self.plan.onward:
                if node.operation in ("add", "sub"):
                    a = each
                else:
                    a = (floats.mul if node.operation == "mul" else floats.div)(to_left, each, values[node.right][k])
                out.append((node.left, k, a))
            if node.right in self.plan.onward:
                if node.operation in ("add", "sub"):
                    b = each if node.operation == "add" else -each
                elif node.operation == "mul":
                    b = floats.mul(to_right, each, values[node.left][k])
                else:
                    ratio = floats.div(to_right, values[node.name][k], values[node.right][k])
                    b = -floats.mul(to_right, each, ratio)
                out.append((node.right, k, b))
        return out

    def _backward_sums(
        self, node: Affine, g: Vector
    ) -> Iterator[tuple[list[tuple[str, int, Float]], tuple[Choice, ...]]]:
        ctx, how = self.network.node(node.source).context, self.problem.backward_of(node.name)
        wanted = range(node.weights.shape[1])
        if node.source == self.problem.at and self.problem.component is not None:
            wanted = range(self.problem.component, self.problem.component + 1)
        columns, options = [], []
        for j in wanted:
            rows = node.rows(j)
            if len(rows):
                weights = to_floats(node.formats[0], node.weights[rows, j])
                terms = [(g[i], a) for i, a in zip(rows.tolist(), weights, strict=True)]
                columns.append(j)
                options.append(self.results(ctx, terms, None, how, f"{node.name}, backward column {j}"))
        self._bounded(options, node.name)
        for row in product(*options):
            choices = tuple(("backward", (node.name, j), tree) for j, (_, tree) in zip(columns, row, strict=True))
            yield [(node.source, j, x) for j, (x, _) in zip(columns, row, strict=True)], choices


def _choices(node: Affine, rows: Sequence[tuple[Float, Any]]) -> tuple[Choice, ...]:
    return tuple(("forward", (node.name, i), tree) for i, (_, tree) in enumerate(rows))


def _allowed(use: Implementation, ctx: Context, x: Float) -> list[Float]:
    """Every output that the contract allows."""
    low, high = use.allowed(ctx, x)
    if low.is_nan:
        return [low]
    if place(high) - place(low) > MAX_STATES:
        raise Unsupported(f"{use.text} allows more than {MAX_STATES} outputs at {x}")
    found = []
    for ordinal in range(low.ordinal, high.ordinal + 1):
        y = from_ordinal(ctx.format, ordinal)
        found += [-y, y] if y.is_zero and ctx.format.has_signed_zero else [y]
    return [y for y in found if place(low) <= place(y) <= place(high)]


def _plain(ctx: Context, terms: Sequence[tuple[Float, Float]], how: Execution) -> tuple[Any, ...]:
    """Products that are rounded in any case as plain terms: equal ones are then one kind of term."""
    if how.products == "exact" or how.fma != "never":
        return tuple(terms)
    acc = how.sum_context(ctx)
    values = [floats.mul(how.product_context(ctx) or acc, w, x) for w, x in terms]
    return tuple(v if v.format == acc.format else floats.cast(acc, v) for v in values)


def _splits(terms: Sequence[Any], bias: bool, order: Order) -> int:
    """About how many splits of a state into two `reachable` looks at."""
    if isinstance(order, Union):
        return sum(_splits(terms, bias, part) for part in order.parts)
    counts = [terms.count(kind) for kind in dict.fromkeys(terms)] + [1] * bias
    if isinstance(order, Sequential):
        return len(terms) * math.prod(c + 1 for c in counts)
    if isinstance(order, AnyOrder | Depth):
        return math.prod((c + 1) * (c + 2) // 2 for c in counts)
    return len(terms) ** 3 if isinstance(order, Contiguous) else len(terms)
