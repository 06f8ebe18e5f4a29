"""Networks and their gradients as terms.

`unroll` writes every value of a network as a term in its inputs; the order of each sum, its fused nodes and the place
of its bias are choice variables, and the outputs of inexact activations are free within their contract.
`unroll_gradient` does the same for reverse mode.  For every assignment of the choices that makes `valid` true the terms
have, bit for bit, the values of `networks.run` and `networks.gradient` under the schedules that the assignment means.
So whatever can be said about a network in terms can go to every engine and solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from fpsmt import terms as t
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Format, exactly, nan, round_real, zero
from fpsmt.floats.vector import to_floats
from fpsmt.functions import CorrectlyRounded, Function, Implementation
from fpsmt.networks.autodiff import CORRECTLY_ROUNDED, DerivativeRule, SlopeAtKinks
from fpsmt.networks.executions import PAPER, PAPER_BACKWARD, Execution
from fpsmt.networks.interpreter import Executions, execution_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Input, Node, Select
from fpsmt.networks.trees import Tree
from fpsmt.smt.orders import FreeSum, Product, enumerated_sum, ordered_sum
from fpsmt.terms import Assignment, Term
from fpsmt.terms.evaluate import Value

Encoding = Literal["variable", "enumerate", "auto"]
Vector = Sequence[Term]
Place = tuple[str, int]

FEW = 16  #: schedules that `auto` enumerates


@dataclass(frozen=True)
class _Choices:
    """What is free in some sums."""

    sums: Mapping[Place, FreeSum]

    @property
    def valid(self) -> Term:
        """The choices describe schedules: assert it together with whatever is asked."""
        return t.all_of(*(each.valid for each in self.sums.values()))

    @property
    def choices(self) -> tuple[Term, ...]:
        """The choice variables."""
        return tuple(choice for each in self.sums.values() for choice in each.choices)

    def schedules(self, assignment: Assignment | Mapping[str, Value]) -> dict[Place, Tree]:
        """The tree of each sum that these values of the choices mean."""
        values = assignment.values if isinstance(assignment, Assignment) else assignment
        return {place: each.schedule(values) for place, each in self.sums.items()}


@dataclass(frozen=True)
class Unrolled(_Choices):
    """A network as terms.

    `values[name]` are those of a node, `sums[name, i]` the i-th sum of an affine node.  They mean something only
    where `valid` holds.  `weights[name]` and `biases[name]` are the parameters of an affine node as terms.
    """

    network: Network
    values: Mapping[str, tuple[Term, ...]]
    weights: Mapping[str, tuple[tuple[Term, ...], ...]]
    biases: Mapping[str, tuple[Term, ...]]
    prefix: str
    encoding: Encoding

    @property
    def output(self) -> tuple[Term, ...]:
        """The terms of the only output; a usage error when there are several."""
        return self.values[self.network.output.name]

    @cached_property
    def inputs(self) -> dict[str, tuple[Term, ...]]:
        """The terms of the inputs, by name."""
        return {node.name: self.values[node.name] for node in self.network.inputs}

    def outputs(self, assignment: Assignment) -> dict[tuple[str, str, Float], Float]:
        """What inexact activations return under this assignment, as `networks.run` takes it.

        Unsupported where one implementation is used in two contexts with different outputs at one input.
        """
        found: dict[tuple[str, str, Float], Float] = {}
        for (text, _, site, x), y in assignment.outputs.items():
            if not site or site.startswith(self.prefix):
                key = text, site.removeprefix(self.prefix), x
                if found.setdefault(key, y) != y:
                    raise Unsupported(f"{text} returns {found[key]} and {y} at {x} in two contexts of one network")
        return found


def input_variables(network: Network, prefix: str = "") -> dict[str, tuple[Term, ...]]:
    """A variable ``name[k]`` for each element of each input.

    >>> net = Network.sequential("float16", 2, ["relu"])
    >>> input_variables(net)
    {'input': (input[0], input[1])}
    """
    return {
        node.name: tuple(t.var(f"{prefix}{node.name}[{k}]", node.format) for k in range(node.size))
        for node in network.inputs
    }


def unroll(
    network: Network,
    inputs: Vector | Mapping[str, Vector] | None = None,
    executions: Executions = PAPER,
    *,
    weights: Mapping[str, Sequence[Vector]] | None = None,
    biases: Mapping[str, Vector] | None = None,
    encoding: Encoding = "auto",
    prefix: str = "",
) -> Unrolled:
    """Every value of the network as a term in its inputs.

    `inputs`: terms by the name of the input, or just the terms when there is one; default `input_variables`.
    `weights` and `biases` replace the parameters of affine nodes by terms of the same formats and shapes (a weight that
    is masked out is not read).  Each sum's choices are variables named ``prefix`` + ``node[i]``; two unrollings with
    different prefixes are two executions.  A single-valued inexact activation is one function for the whole query,
    so also for both executions; the others are free at each ``prefix`` + ``node[i]``.

    `encoding` of the sums: ``variable`` (`smt.orders.ordered_sum`), ``enumerate`` (`smt.orders.enumerated_sum`, which
    raises `Unsupported` beyond 20,000 schedules), or ``auto``: enumerate up to 16 schedules.

    NaN, infinities, both zeros and subnormals are values like others.  Usage errors: terms of other formats or
    shapes than the network's.

    >>> from fpsmt.floats import exactly, float16
    >>> net = Network.sequential("float16", 3, [([[1, 1, 1]], None)])
    >>> free = unroll(net)
    >>> [(choice, str(choice.sort)) for choice in free.choices]
    [(affine1[0], 'choice[3]')]
    >>> x = {f"input[{k}]": exactly(float16, v) for k, v in enumerate((2048, 1, 1))}
    >>> [t.evaluate(free.output[0], {**x, "affine1[0]": k}).decimal for k in range(3)]
    ['2050.0', '2048.0', '2048.0']
    >>> free.schedules({"affine1[0]": 0})
    {('affine1', 0): (0, (1, 2))}
    """
    given = _named_inputs(network, inputs, prefix)
    _check_executions(network, executions)
    matrices, offsets = _parameters(network, weights or {}, biases or {})
    values: dict[str, tuple[Term, ...]] = {}
    sums: dict[Place, FreeSum] = {}
    for node in network.nodes:
        sources = [values[s] for s in node.sources]
        if isinstance(node, Input):
            values[node.name] = given[node.name]
        elif isinstance(node, Affine):
            how = execution_of(executions, node.name)
            for i in range(len(node.weights)):
                products = [(matrices[node.name][i][j], sources[0][j]) for j in node.columns(i).tolist()]
                bias = None if node.bias is None else offsets[node.name][i]
                name = f"{prefix}{node.name}[{i}]"
                sums[node.name, i] = free_sum(node.context, products, bias, how, name, encoding)
            values[node.name] = tuple(sums[node.name, i].value for i in range(len(node.weights)))
        elif isinstance(node, Activation):
            values[node.name] = tuple(_activation(node, k, x, prefix) for k, x in enumerate(sources[0]))
        else:
            values[node.name] = _simple(node, sources)
    return Unrolled(sums, network, values, matrices, offsets, prefix, encoding)


def free_sum(
    ctx: Context, products: Sequence[Product], bias: Term | None, how: Execution, name: str, encoding: Encoding
) -> FreeSum:
    """One sum of products with its schedule free, in this encoding."""
    if encoding not in ("variable", "enumerate", "auto"):
        raise UsageError(f"encoding={encoding!r}: write variable, enumerate or auto")
    if encoding == "auto":
        some = list(islice(how.schedules(len(products), bias is not None), FEW + 1))
        encoding = "enumerate" if len(some) <= FEW else "variable"
    build = enumerated_sum if encoding == "enumerate" else ordered_sum
    return build(ctx, products, bias, how, name)


# -- checked arguments ----------------------------------------------------------------------------------


def _check_executions(network: Network, executions: Executions) -> None:
    if isinstance(executions, Mapping):
        for name in executions:
            if not isinstance(network.node(name), Affine):
                raise UsageError(f"an execution is given for {name!r}, which is not an affine node")


def _named_inputs(
    network: Network, inputs: Vector | Mapping[str, Vector] | None, prefix: str
) -> dict[str, tuple[Term, ...]]:
    if inputs is None:
        return input_variables(network, prefix)
    named: Mapping[str, Vector] = inputs if isinstance(inputs, Mapping) else {network.input.name: inputs}
    out = {}
    for node in network.inputs:
        if node.name not in named:
            raise UsageError(f"no terms are given for the input {node.name!r}")
        out[node.name] = _vector(named[node.name], node.size, node.format, f"input {node.name!r}")
    if unknown := named.keys() - out.keys():
        raise UsageError(f"{sorted(unknown)[0]!r} is not an input: the inputs are {', '.join(out)}")
    return out


def _vector(given: Vector, size: int, fmt: Format, where: str) -> tuple[Term, ...]:
    if len(given) != size:
        raise UsageError(f"{where} has {size} values, and {len(given)} terms are given")
    for k, term in enumerate(given):
        if not isinstance(term, Term) or term.format != fmt:
            what = f"of sort {term.sort}" if isinstance(term, Term) else f"a {type(term).__name__}"
            raise UsageError(f"{where}, element {k}: {what}, not a term of {fmt}")
    return tuple(given)


def _constants(fmt: Format, values: Any) -> tuple[Term, ...]:
    return tuple(t.const(x) for x in to_floats(fmt, values))


def _parameters(
    network: Network, weights: Mapping[str, Sequence[Vector]], biases: Mapping[str, Vector]
) -> tuple[dict[str, tuple[tuple[Term, ...], ...]], dict[str, tuple[Term, ...]]]:
    matrices: dict[str, tuple[tuple[Term, ...], ...]] = {}
    offsets: dict[str, tuple[Term, ...]] = {}
    for node in network.of_kind(Affine):
        (weight_format, bias_format), (rows, columns) = node.formats, node.weights.shape
        if node.name in weights:
            matrix = weights[node.name]
            where = f"the weights of {node.name!r}"
            if len(matrix) != rows:
                raise UsageError(f"{where} have {rows} rows, and {len(matrix)} are given")
            matrices[node.name] = tuple(
                _vector(row, columns, weight_format, f"row {i} of {where}") for i, row in enumerate(matrix)
            )
        else:
            matrices[node.name] = tuple(_constants(weight_format, row) for row in node.weights)
        if node.bias is None:
            if node.name in biases:
                raise UsageError(f"a bias is given for {node.name!r}, which has none")
        elif node.name in biases:
            offsets[node.name] = _vector(biases[node.name], rows, bias_format, f"the bias of {node.name!r}")
        else:
            offsets[node.name] = _constants(bias_format, node.bias)
    for name in (*weights, *biases):
        if name not in matrices:
            raise UsageError(f"parameters are given for {name!r}, which is not an affine node of the network")
    return matrices, offsets


# -- forward --------------------------------------------------------------------------------------------


def _simple(node: Node, sources: list[tuple[Term, ...]]) -> tuple[Term, ...]:
    if isinstance(node, Constant):
        return _constants(node.format, node.values)
    if isinstance(node, Elementwise):
        apply = {"add": t.add, "sub": t.sub, "mul": t.mul, "div": t.div}[node.operation]
        return tuple(apply(node.context, a, b) for a, b in zip(*sources, strict=True))
    if isinstance(node, Cast):
        return tuple(t.cast(node.context, x) for x in sources[0])
    if isinstance(node, Select):
        return tuple(sources[k][element] for k, element in node.picks)
    raise Unsupported(f"nodes of class {type(node).__name__} ({node.name!r}) have no term")


def _activation(node: Activation, index: int, x: Term, prefix: str) -> Term:
    use = node.implementation
    if isinstance(use.contract, CorrectlyRounded):
        return rounded(use.function, node.context, x)
    return t.apply(use, node.context, x, "" if use.single_valued else f"{prefix}{node.name}[{index}]")


def rounded(function: Function, ctx: Context, x: Term) -> Term:
    """The correctly rounded function: a plain formula where it is piecewise linear, else ``apply``.

    >>> from fpsmt.floats import context, float8_e4m3fn
    >>> from fpsmt.functions import relu
    >>> rounded(relu.derivative, context("float8_e4m3fn:saturate"), t.var("x", float8_e4m3fn))
    (nan if is_nan(x) else (1.0 if (0.0 < x) else 0.0))
    """
    if function.name in _PIECEWISE and (ctx.format.has_nan or not x.format.has_nan):
        return _PIECEWISE[function.name](ctx, x)
    return t.apply(Implementation(function), ctx, x)


def _read(ctx: Context, x: Term) -> Term:
    """The input as an activation reads it: subnormals may be flushed."""
    if not ctx.subnormals.inputs:
        return x
    tiny = t.lt(t.absolute(x), t.const(Float(x.format, 1 << x.format.fraction_bits)))
    return t.ite(tiny, t.const(zero(x.format)), x)


def _into(ctx: Context, x: Term) -> Term:
    plain = x.format == ctx.format and not (ctx.subnormals.inputs or ctx.subnormals.outputs)
    return x if plain else t.cast(ctx, x)


def _step(ctx: Context, x: Term, condition: Term, high: Any, low: Any) -> Term:
    value = t.ite(condition, t.const(round_real(ctx, high)), t.const(round_real(ctx, low)))
    return t.ite(t.is_nan(x), t.const(nan(ctx.format)), value) if x.format.has_nan else value


def _positive(x: Term) -> Term:
    return t.lt(t.const(zero(x.format)), x)


_PIECEWISE: dict[str, Callable[[Context, Term], Term]] = {
    "identity": _into,
    "identity'": lambda ctx, x: _step(ctx, x, t.TRUE, 1, 1),
    "relu": lambda ctx, x: _into(ctx, t.relu(x)),
    "relu'": lambda ctx, x: _step(ctx, x, _positive(_read(ctx, x)), 1, 0),
    "step": lambda ctx, x: _step(ctx, x, t.le(t.const(zero(x.format)), _read(ctx, x)), 1, 0),
    "step'": lambda ctx, x: _step(ctx, x, t.TRUE, 0, 0),
}


# -- reverse mode ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LocalTerms:
    """What a derivative rule may use at one element, as `networks.autodiff.Local`, in terms."""

    function: Function
    g: Term
    x: Term
    y: Term
    ctx: Context
    to: Context


def _one(ctx: Context) -> Term:
    return t.const(round_real(ctx, 1))


def _from_output(at: LocalTerms) -> Term:
    y, ctx = at.y, at.ctx
    formulas: dict[str, Callable[[], Term]] = {
        "sigmoid": lambda: t.mul(ctx, y, t.sub(ctx, _one(ctx), y)),
        "tanh": lambda: t.sub(ctx, _one(ctx), t.mul(ctx, y, y)),
        "relu": lambda: t.ite(_positive(y), _one(ctx), t.const(zero(ctx.format))),
        "exp": lambda: y,
        "identity": lambda: _one(ctx),
    }
    if at.function.name not in formulas:
        raise Unsupported(f"the derivative rule 'from-output' has no formula for {at.function.name}")
    return t.mul(at.to, at.g, formulas[at.function.name]())


def _framework(at: LocalTerms, fused: bool = False) -> Term:
    y, ctx, g = at.y, at.to, at.g
    if at.function.name == "sigmoid":
        return t.mul(ctx, t.mul(ctx, g, t.sub(ctx, _one(ctx), y)), y)
    if at.function.name == "tanh":
        rest = t.fma(ctx, t.neg(y), y, _one(ctx)) if fused else t.sub(ctx, _one(ctx), t.mul(ctx, y, y))
        return t.mul(ctx, g, rest)
    if at.function.name == "relu":
        passes = _positive(_read(at.ctx, at.x))
        passes = t.any_of(passes, t.is_nan(at.x)) if at.x.format.has_nan else passes
        return t.ite(passes, g if g.format == ctx.format else t.cast(ctx, g), t.const(zero(ctx.format)))
    raise Unsupported(f"the derivative rules of frameworks have no formula for {at.function.name}")


#: The derivative rules of `networks.autodiff` as terms, by name; a rule of one's own goes here too.
TERM_RULES: dict[str, Callable[[LocalTerms], Term]] = {
    "correctly-rounded": lambda at: t.mul(at.to, at.g, rounded(at.function.derivative, at.ctx, at.x)),
    "from-output": _from_output,
    "framework": _framework,
    "framework-fma": lambda at: _framework(at, fused=True),
}


def _local_gradient(rule: DerivativeRule, at: LocalTerms) -> Term:
    if isinstance(rule.step, SlopeAtKinks):
        x, plain = _read(at.ctx, at.x), TERM_RULES["correctly-rounded"](at)
        kinks = [t.eq(x, t.const(exactly(x.format, jump))) for jump in at.function.derivative.jumps]
        return t.ite(t.any_of(*kinks), t.mul(at.to, at.g, t.const(round_real(at.ctx, rule.step.value))), plain)
    if rule.name not in TERM_RULES:
        raise Unsupported(
            f"the derivative rule {rule.name!r} has no form in terms: put one into unrolling.TERM_RULES"
        )
    return TERM_RULES[rule.name](at)


@dataclass(frozen=True)
class UnrolledGradient(_Choices):
    """Reverse mode as terms.

    `gradients[name]` is what arrives at a node, `sums[name, j]` the backward sum of an affine node for column j.
    `valid` speaks of the backward choices only; the forward ones have their own.
    """

    forward: Unrolled
    gradients: Mapping[str, tuple[Term, ...]]

    @property
    def gradient(self) -> tuple[Term, ...]:
        """The gradient at the only input; a usage error when there are several."""
        return self.gradients[self.forward.network.input.name]


def unroll_gradient(
    forward: Unrolled,
    loss: Vector | Mapping[str, Vector],
    executions: Execution | Mapping[str, Execution] = PAPER_BACKWARD,
    rules: DerivativeRule | Mapping[str, DerivativeRule] = CORRECTLY_ROUNDED,
    *,
    encoding: Encoding | None = None,
    prefix: str = "back.",
) -> UnrolledGradient:
    """`networks.gradient` as terms, from the loss derivative at the outputs (terms, by name when there are several).

    The choices of the backward sums are named ``prefix`` + ``node[j]`` (after the forward prefix).  Rules that
    `TERM_RULES` does not have are unsupported.

    >>> from fpsmt.floats import exactly, float16
    >>> net = Network.sequential("float16", 1, [([[2]], None), "relu"])
    >>> back = unroll_gradient(unroll(net), [t.const(exactly(float16, 3))])
    >>> [t.evaluate(back.gradient[0], {"input[0]": exactly(float16, x)}).decimal for x in (1, 0, -1)]
    ['6.0', '0.0', '0.0']
    """
    network = forward.network
    _check_executions(network, executions)
    pass_ = _Backward(forward, executions, encoding or forward.encoding, forward.prefix + prefix)
    for name, values in _named_loss(network, loss).items():
        for k, value in enumerate(values):
            pass_.add(name, k, value)
    gradients: dict[str, tuple[Term, ...]] = {}
    for node in reversed(network.nodes):
        gradients[node.name] = pass_.at(node)
        rule = rules if isinstance(rules, DerivativeRule) else rules.get(node.name, CORRECTLY_ROUNDED)
        pass_.step(node, gradients[node.name], rule)
    return UnrolledGradient(pass_.sums, forward, {n.name: gradients[n.name] for n in network.nodes})


def _named_loss(network: Network, loss: Vector | Mapping[str, Vector]) -> dict[str, tuple[Term, ...]]:
    named: Mapping[str, Vector] = loss if isinstance(loss, Mapping) else {network.output.name: loss}
    for name in named:
        if name not in network.outputs:
            raise UsageError(f"a loss derivative is given for {name!r}, which is not an output of the network")
    return {
        name: _vector(values, network.sizes[name], network.format_of(name), f"the loss derivative of {name!r}")
        for name, values in named.items()
    }


class _Backward:
    """Gradients on their way, as `networks.autodiff` adds them up."""

    def __init__(self, forward: Unrolled, executions: Executions, encoding: Encoding, prefix: str) -> None:
        self.forward, self.network = forward, forward.network
        self.executions, self.encoding, self.prefix = executions, encoding, prefix
        self.sums: dict[Place, FreeSum] = {}
        self.arrived: dict[str, list[Term | None]] = {n: [None] * k for n, k in self.network.sizes.items()}

    def add(self, name: str, element: int, g: Term) -> None:
        before = self.arrived[name][element]
        ctx = self.network.node(name).context
        self.arrived[name][element] = g if before is None else t.add(ctx, before, g)

    def at(self, node: Node) -> tuple[Term, ...]:
        return tuple(t.const(zero(node.format)) if g is None else g for g in self.arrived[node.name])

    def step(self, node: Node, g: tuple[Term, ...], rule: DerivativeRule) -> None:
        values, context_of = self.forward.values, self.network.node
        if isinstance(node, Affine):
            self._affine(node, g)
        elif isinstance(node, Activation):
            function, to = node.implementation.function, context_of(node.source).context
            for k, (x, y) in enumerate(zip(values[node.source], values[node.name], strict=True)):
                at = LocalTerms(function, g[k], x, y, node.context, to)
                self.add(node.source, k, _local_gradient(rule, at))
        elif isinstance(node, Cast):
            to = context_of(node.source).context
            for k, each in enumerate(g):
                self.add(node.source, k, t.cast(to, each))
        elif isinstance(node, Select):
            for k, (source, element) in enumerate(node.picks):
                self.add(node.nodes[source], element, g[k])
        elif isinstance(node, Elementwise):
            self._elementwise(node, g)
        elif node.sources:
            raise Unsupported(f"reverse mode does not know nodes of class {type(node).__name__} ({node.name!r})")

    def _affine(self, node: Affine, g: tuple[Term, ...]) -> None:
        ctx = self.network.node(node.source).context
        how = PAPER_BACKWARD
        if isinstance(self.executions, Execution):
            how = self.executions
        elif node.name in self.executions:
            how = self.executions[node.name]
        for j in range(node.weights.shape[1]):
            products = [(g[i], self.forward.weights[node.name][i][j]) for i in node.rows(j).tolist()]
            if products:
                total = free_sum(ctx, products, None, how, f"{self.prefix}{node.name}[{j}]", self.encoding)
                self.sums[node.name, j] = total
                self.add(node.source, j, total.value)

    def _elementwise(self, node: Elementwise, g: tuple[Term, ...]) -> None:
        values, context_of = self.forward.values, self.network.node
        left, right = values[node.left], values[node.right]
        to_left, to_right = context_of(node.left).context, context_of(node.right).context
        for k, each in enumerate(g):
            if node.operation in ("add", "sub"):
                a, b = each, each if node.operation == "add" else t.neg(each)
            elif node.operation == "mul":
                a, b = t.mul(to_left, each, right[k]), t.mul(to_right, each, left[k])
            else:
                a = t.div(to_left, each, right[k])
                b = t.neg(t.mul(to_right, each, t.div(to_right, values[node.name][k], right[k])))
            self.add(node.left, k, a)
            self.add(node.right, k, b)
