"""Reverse mode as executed: D^AD, bit for bit.

Start from the derivative of the loss at each output.  Going backwards through the nodes,

* an affine node returns to element j of its source the sum Σᵢ gᵢ ⊗ Aᵢⱼ over its rows i (only those whose mask
  has column j), with an execution and schedules of its own: the papers add from left to right;
* an activation returns gᵢ ⊗ I′(xᵢ), xᵢ its input, as its `DerivativeRule` says;
* ``add`` returns g to both sides, ``sub`` g and −g; ``mul`` returns g ⊗ right and g ⊗ left; ``div`` returns
  g ⊘ right and −(g ⊗ (value ⊘ right));
* a cast returns g cast to its source's context; a selection returns each gᵢ to the element it picked.

Each of these is rounded in the context of the source that it goes to.  The contributions to one element are
added left to right in the order in which they arrive: readers of the node from the last to the first in the
network's order (an output's loss derivative before all of them), and within one reader by its left, then
right source, and ascending element.  An element that nothing reads has gradient +0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fpsmt import floats
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, read_number, round_real, zero
from fpsmt.floats.vector import to_floats
from fpsmt.functions import Function, correctly_rounded
from fpsmt.functions.refine import read_input
from fpsmt.networks.executions import PAPER_BACKWARD, Execution
from fpsmt.networks.interpreter import Trace
from fpsmt.networks.nodes import Activation, Affine, Cast, Elementwise, Node, Select
from fpsmt.networks.sums import SumTrace, evaluate_tree
from fpsmt.networks.trees import Tree


@dataclass(frozen=True)
class Local:
    """What a derivative rule may use at one element: g, the input x, the output y, and the contexts.

    `ctx` is that of the activation, where its derivative is rounded; `to` is that of its source, where the
    product with g is rounded.
    """

    function: Function
    g: Float
    x: Float
    y: Float
    ctx: Context
    to: Context


@dataclass(frozen=True)
class DerivativeRule:
    """How an activation's backward step is computed: a name, what it means, and the step itself.

    New rules are new records; nothing else needs to know them.
    """

    name: str
    meaning: str
    step: Callable[[Local], Float]


def _correctly_rounded(at: Local) -> Float:
    return floats.mul(at.to, at.g, correctly_rounded(at.function.derivative, at.ctx, at.x))


@dataclass(frozen=True)
class SlopeAtKinks:
    """g ⊗ ⌈σ′⌋(x), with `value` for σ′ where σ′ jumps: at 0 for ReLU, leaky ReLU and SELU."""

    value: Fraction

    def __call__(self, at: Local) -> Float:
        x = read_input(at.ctx, at.x)
        if x.is_finite and x.fraction in at.function.derivative.jumps:
            return floats.mul(at.to, at.g, round_real(at.ctx, self.value))
        return _correctly_rounded(at)


def _one(ctx: Context) -> Float:
    return floats.exactly(ctx.format, 1)


def _from_output(at: Local) -> Float:
    y, ctx = at.y, at.ctx
    if at.function.name == "sigmoid":
        slope = floats.mul(ctx, y, floats.sub(ctx, _one(ctx), y))
    elif at.function.name == "tanh":
        slope = floats.sub(ctx, _one(ctx), floats.mul(ctx, y, y))
    elif at.function.name == "relu":
        slope = _one(ctx) if floats.less(zero(y.format), y) else zero(ctx.format)
    elif at.function.name == "exp":
        slope = y
    elif at.function.name == "identity":
        slope = _one(ctx)
    else:
        raise Unsupported(
            f"the derivative rule 'from-output' has no formula for {at.function.name}: it knows sigmoid, tanh, relu, "
            "exp and identity; use 'correctly-rounded' or a DerivativeRule of your own"
        )
    return floats.mul(at.to, at.g, slope)


def _framework(at: Local, fused: bool = False) -> Float:
    y, ctx = at.y, at.to
    if at.function.name == "sigmoid":
        return floats.mul(ctx, floats.mul(ctx, at.g, floats.sub(ctx, _one(ctx), y)), y)
    if at.function.name == "relu":
        passes = at.x.is_nan or floats.less(zero(at.x.format), read_input(at.ctx, at.x))
        if not passes:
            return zero(ctx.format)
        return at.g if at.g.format == ctx.format else floats.cast(ctx, at.g)
    if at.function.name == "tanh":
        rest = floats.fma(ctx, -y, y, _one(ctx)) if fused else floats.sub(ctx, _one(ctx), floats.mul(ctx, y, y))
        return floats.mul(ctx, at.g, rest)
    raise Unsupported(
        f"the derivative rules of frameworks have no formula for {at.function.name}: they know sigmoid, tanh and relu; "
        "use 'correctly-rounded' or a DerivativeRule of your own"
    )


CORRECTLY_ROUNDED = DerivativeRule(
    "correctly-rounded",
    "g ⊗ ⌈σ′⌋(x), with the derivative's record for σ′ at kinks (relu′(0) = 0)",
    _correctly_rounded,
)

FROM_OUTPUT = DerivativeRule(
    "from-output",
    "g ⊗ I′ with I′ computed from the output y: sigmoid y⊗(1⊖y), tanh 1⊖(y⊗y), relu 1 if y > 0 else 0, exp y",
    _from_output,
)

FRAMEWORK = DerivativeRule(
    "framework",
    "as deep-learning libraries compute it: sigmoid (g⊗(1⊖y))⊗y, tanh g⊗(1⊖(y⊗y)), relu g where x > 0 or x is "
    "NaN, else +0 (a selection: 0 even where g is infinite or NaN)",
    _framework,
)

FRAMEWORK_FMA = DerivativeRule(
    "framework-fma",
    "as framework, but 1 − y·y of tanh is rounded once, as in libraries compiled for processors with fma",
    lambda at: _framework(at, fused=True),
)

RULES: dict[str, DerivativeRule] = {
    rule.name: rule for rule in (CORRECTLY_ROUNDED, FROM_OUTPUT, FRAMEWORK, FRAMEWORK_FMA)
}
KINKS = "correctly-rounded:kinks"


def rule_named(name: str) -> DerivativeRule:
    """A derivative rule by name; ``correctly-rounded:kinks=V`` has σ′ = V, a number, where σ′ jumps.

    >>> rule_named("correctly-rounded:kinks=1/2").name
    'correctly-rounded:kinks=1/2'
    """
    if name in RULES:
        return RULES[name]
    base, _, value = name.partition(":kinks=")
    if base != CORRECTLY_ROUNDED.name or not value:
        raise UsageError(f"unknown derivative rule {name!r}: write one of {', '.join(RULES)}, {KINKS}=V")
    slope = read_number(value)
    if isinstance(slope, float):
        raise UsageError(f"derivative rule {name!r}: the slope at kinks is a finite number")
    return DerivativeRule(f"{KINKS}={slope}", f"g ⊗ ⌈σ′⌋(x), with σ′ = {slope} where σ′ jumps", SlopeAtKinks(slope))


#: The tree of a backward sum, by affine node and column.  Its leaves are the rows of the column, in order.
BackwardSchedules = Mapping[tuple[str, int], Tree]


@dataclass(frozen=True)
class GradientTrace:
    """Every value of one backward run.

    `gradients[name]` is the gradient that arrived at a node (for the output, the loss derivative);
    `sums[name, j]` is what happened in the backward sum of an affine node for column j.
    """

    forward: Trace
    gradients: Mapping[str, tuple[Float, ...]]
    sums: Mapping[tuple[str, int], SumTrace]

    @property
    def gradient(self) -> tuple[Float, ...]:
        """The gradient at the only input; a usage error when there are several."""
        return self.gradients[self.forward.network.input.name]


def gradient(
    forward: Trace,
    loss: Sequence[Float] | Mapping[str, Sequence[Float]],
    executions: Execution | Mapping[str, Execution] = PAPER_BACKWARD,
    schedules: BackwardSchedules | None = None,
    rules: DerivativeRule | Mapping[str, DerivativeRule] = CORRECTLY_ROUNDED,
) -> GradientTrace:
    """D^AD of a network at the inputs of a forward run, from the loss derivative at its outputs.

    `loss` has a value of the output's format for each element of the output (by name, when there are several
    outputs).  Executions are by affine node (missing ones run as the paper's, left to right), rules by activation
    (missing ones are correctly rounded).  NaN and infinities propagate, e.g. an infinite g at a relu's flat
    side gives ∞ ⊗ 0 = NaN.

    >>> from fpsmt.floats import exactly, float16
    >>> from fpsmt.networks import Network, run
    >>> net = Network.sequential("float16", 2, [([[1, -3]], [0]), "relu"])
    >>> forward = run(net, [exactly(float16, 4), exactly(float16, 1)])
    >>> [x.decimal for x in gradient(forward, [exactly(float16, 2)]).gradient]
    ['2.0', '-6.0']
    """
    network = forward.network
    schedules = schedules or {}
    arrived = _Arrived(forward)
    for name, values in _named_loss(forward, loss).items():
        for k, value in enumerate(values):
            arrived.add(name, k, value)
    sums: dict[tuple[str, int], SumTrace] = {}
    used: set[tuple[str, int]] = set()
    gradients: dict[str, tuple[Float, ...]] = {}
    for node in reversed(network.nodes):
        g = arrived.at(node)
        gradients[node.name] = g
        if isinstance(node, Affine):
            how = executions if isinstance(executions, Execution) else executions.get(node.name, PAPER_BACKWARD)
            used |= _affine(node, g, how, schedules, arrived, sums)
        elif isinstance(node, Activation):
            rule = rules if isinstance(rules, DerivativeRule) else rules.get(node.name, CORRECTLY_ROUNDED)
            to = network.node(node.source).context
            f = node.implementation.function
            for k, (x, y) in enumerate(zip(forward.values[node.source], forward.values[node.name], strict=True)):
                arrived.add(node.source, k, rule.step(Local(f, g[k], x, y, node.context, to)))
        else:
            _simple(forward, node, g, arrived)
    if unknown := schedules.keys() - used:
        name, j = sorted(unknown)[0]
        raise UsageError(f"a backward schedule is given for column {j} of {name!r}, which is not a backward sum")
    return GradientTrace(forward, {n.name: gradients[n.name] for n in network.nodes}, sums)


class _Arrived:
    """Gradients on their way: contributions are added as they arrive, in the receiving node's context."""

    def __init__(self, forward: Trace) -> None:
        self.network = forward.network
        self.sums: dict[str, list[Float | None]] = {n: [None] * k for n, k in self.network.sizes.items()}

    def add(self, name: str, element: int, g: Float) -> None:
        before = self.sums[name][element]
        self.sums[name][element] = g if before is None else floats.add(self.network.node(name).context, before, g)

    def at(self, node: Node) -> tuple[Float, ...]:
        return tuple(zero(node.format) if g is None else g for g in self.sums[node.name])


def _named_loss(
    forward: Trace, loss: Sequence[Float] | Mapping[str, Sequence[Float]]
) -> dict[str, Sequence[Float]]:
    network = forward.network
    named = dict(loss) if isinstance(loss, Mapping) else {network.output.name: loss}
    for name, values in named.items():
        if name not in network.outputs:
            raise UsageError(f"a loss derivative is given for {name!r}, which is not an output of the network")
        if len(values) != network.sizes[name]:
            raise UsageError(f"the output {name!r} has {network.sizes[name]} values, its loss derivative {len(values)}")
        for k, g in enumerate(values):
            if not isinstance(g, Float) or g.format != network.format_of(name):
                raise UsageError(f"loss derivative {k} of {name!r}: {g} is not a value of {network.format_of(name)}")
    return named


def _affine(
    node: Affine,
    g: tuple[Float, ...],
    how: Execution,
    schedules: BackwardSchedules,
    arrived: _Arrived,
    sums: dict[tuple[str, int], SumTrace],
) -> set[tuple[str, int]]:
    """The backward sums of one node; returns those that ran."""
    ctx = arrived.network.node(node.source).context
    ran = set()
    for j in range(node.weights.shape[1]):
        rows = node.rows(j)
        if not len(rows):
            continue
        weights = to_floats(node.formats[0], node.weights[rows, j])
        terms = [(g[i], a) for i, a in zip(rows.tolist(), weights, strict=True)]
        key = (node.name, j)
        tree = schedules.get(key)
        if tree is None:
            tree = how.default_schedule(len(terms))
        elif not how.allows(tree, len(terms)):
            raise UsageError(
                f"the backward schedule of column {j} of {node.name!r} is not one that its execution ({how}) allows"
            )
        sums[key] = evaluate_tree(ctx, tree, terms, None, how)
        ran.add(key)
        arrived.add(node.source, j, sums[key].result)
    return ran


def _simple(forward: Trace, node: Node, g: tuple[Float, ...], arrived: _Arrived) -> None:
    context_of = arrived.network.node
    if isinstance(node, Cast):
        to = context_of(node.source).context
        for k, each in enumerate(g):
            arrived.add(node.source, k, floats.cast(to, each))
    elif isinstance(node, Select):
        for k, (source, element) in enumerate(node.picks):
            arrived.add(node.nodes[source], element, g[k])
    elif isinstance(node, Elementwise):
        left, right = forward.values[node.left], forward.values[node.right]
        to_left, to_right = context_of(node.left).context, context_of(node.right).context
        for k, each in enumerate(g):
            if node.operation in ("add", "sub"):
                a, b = each, each if node.operation == "add" else -each
            elif node.operation == "mul":
                a, b = floats.mul(to_left, each, right[k]), floats.mul(to_right, each, left[k])
            else:
                a = floats.div(to_left, each, right[k])
                ratio = floats.div(to_right, forward.values[node.name][k], right[k])
                b = -floats.mul(to_right, each, ratio)
            arrived.add(node.left, k, a)
            arrived.add(node.right, k, b)
    elif node.sources:
        raise Unsupported(f"reverse mode does not know nodes of class {type(node).__name__} ({node.name!r})")
