"""A network read as steps x ↦ σ(W x + b), for the linear bounds of `fpsmt.networks.relaxation`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Format, Subnormals, pow2
from fpsmt.floats.vector import arithmetic, embeds
from fpsmt.functions import CorrectlyRounded
from fpsmt.networks.curves import Curve, Relu
from fpsmt.networks.executions import Execution
from fpsmt.networks.growth import float_up, sum_growth
from fpsmt.networks.interpreter import Executions, execution_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Input, Node, Select
from fpsmt.networks.program_curves import Analysed
from fpsmt.networks.smooth_curves import Smooth

Array = NDArray[np.float64]

LARGEST = 2.0**200  #: values above this are not spoken of


def _relu(node: Activation, source: Format) -> Curve:
    if source != node.format:
        raise Unsupported(f"linear bounds: {node.name!r} is of another format than its source")
    if not isinstance(node.implementation.contract, CorrectlyRounded):
        return _smooth(node, source)
    return Relu()


def _smooth(node: Activation, source: Format) -> Curve:
    use = node.implementation
    if use.contract.analysed:
        if source != node.format:
            raise Unsupported(f"linear bounds: {node.name!r} is of another format than its source")
        return Analysed(use, node.context)
    return Smooth(use.function, use.contract, node.context)


#: how lines of activations are found, by the name of the function; `_smooth` for all others
CURVES: dict[str, Callable[[Activation, Format], Curve]] = {"relu": _relu}


@dataclass(frozen=True)
class Rounding:
    """A value v (after adding `shift`) is rounded to within u|v| + eta, in `context`; overflow is above `largest`."""

    context: Context
    u: float
    eta: float
    largest: float
    shift: Array | None = None


@dataclass(frozen=True)
class Step:
    """x ↦ σ(W x + b): W None is the identity; σ is `curve`, or the identity.

    `product` (p, η′), `growth` (γ, η″) of the sum of `leaves` leaves.  `inner`: roundings after the sum but the last,
    `last`: the last one.  `bias` is the leaf's; b = bias + its shift.
    """

    size: int
    weights: Array | None
    bias: Array
    product: tuple[float, float]
    growth: tuple[float, float]
    leaves: int
    largest: float
    inner: tuple[Rounding, ...] = ()
    last: Rounding | None = None
    curve: Curve | None = None

    @property
    def b(self) -> Array:
        """The bias or the shift: `extend` makes sure that one of them is zero."""
        shifts = [r.shift for r in (*self.inner, self.last) if r is not None and r.shift is not None]
        return shifts[0] if shifts else self.bias


def _unit(ctx: Context) -> float:
    nearest = ctx.mode.nearest
    return float(pow2(-ctx.format.precision if nearest else 1 - ctx.format.precision))


def _eta(ctx: Context) -> Fraction:
    return ctx.format.smallest / (2 if ctx.mode.nearest else 1)


def _rounding(ctx: Context, exact_below: bool, shift: Array | None = None) -> Rounding:
    eta = 0.0 if exact_below else float_up(_eta(ctx))
    return Rounding(ctx, _unit(ctx), eta, min(float(ctx.format.largest), LARGEST), shift)


def _plain(ctx: Context, name: str) -> None:
    if not embeds(ctx.format) or ctx.subnormals is not Subnormals.GRADUAL:
        raise Unsupported(f"linear bounds need gradual underflow and formats embedded in float64: {ctx} of {name!r}")


def _affine(node: Affine, source: Format, how: Execution) -> Step:
    """The step of an affine node alone."""
    ctx, acc = node.context, how.sum_context(node.context)
    rounding = how.product_context(ctx)
    for context in (ctx, acc, rounding or acc):
        _plain(context, node.name)
    n, has_bias = node.weights.shape[1], node.bias is not None
    u, eta = Fraction(_unit(acc)), _eta(acc)  # of a product rounded once into the accumulator
    if rounding is not None and rounding.format == acc.format:
        u, eta = max(u, Fraction(_unit(rounding))), max(eta, _eta(rounding))
    elif rounding is not None:  # rounded as a product, then cast
        v = Fraction(_unit(rounding))
        u, eta = (1 + u) * (1 + v) - 1, eta + _eta(rounding) * (1 + u)
    bias = np.zeros(len(node.weights))
    if node.bias is not None:
        bias = np.asarray(arithmetic(acc, node.formats[1]).cast(node.bias), dtype=np.float64)
        if not np.isfinite(bias).all():
            raise Unsupported(f"linear bounds: a bias of {node.name!r} is not finite in the accumulator")
    if not np.isfinite(node.weights).all():
        raise Unsupported(f"linear bounds: a weight of {node.name!r} is not finite")
    leaves = n + has_bias
    exact = how.products == "exact" or how.fuses(True) != "never"
    largest = min(float(f.format.largest) for f in (acc, rounding or acc))
    last = None if acc == ctx else _rounding(ctx, exact_below=False)
    return Step(
        len(node.weights), np.asarray(node.weights, dtype=np.float64), bias, (float_up(u), float_up(eta)),
        sum_growth(acc, how, leaves, exact), leaves, min(largest, LARGEST), (), last,
    )  # fmt: skip


def _identity(size: int) -> Step:
    return Step(size, None, np.zeros(size), (0.0, 0.0), (0.0, 0.0), 1, LARGEST)


def _extended(step: Step, rounding: Rounding) -> Step:
    """One more rounding at the end."""
    inner = step.inner if step.last is None else (*step.inner, step.last)
    return replace(step, inner=inner, last=rounding)


def read_steps(network: Network, executions: Executions) -> list[Step]:
    """The network as steps; `Unsupported` names the first node that is not understood."""
    steps: list[Step] = []
    current = ""
    constants = {node.name: node for node in network.of_kind(Constant)}
    for node in network.nodes:
        if isinstance(node, Constant):
            continue
        others = [s for s in node.sources if s not in constants]
        if isinstance(node, Input):
            _plain(node.context, node.name)
            current = node.name
            continue
        if others != [current]:
            raise Unsupported(f"linear bounds are for chains of layers: {node.name!r} reads {', '.join(node.sources)}")
        _read(network, node, executions, constants, steps)
        current = node.name
    if current != network.output.name:
        raise Unsupported("linear bounds are for networks whose last node is the output")
    if not steps or steps[-1].curve is not None:  # rows are of the last step's z, before an activation of its own
        steps.append(_identity(network.sizes[network.output.name]))
    return steps


def _read(
    network: Network, node: Node, executions: Executions, constants: dict[str, Constant], steps: list[Step]
) -> None:
    _plain(node.context, node.name)
    size = network.sizes[node.name]
    if isinstance(node, Affine):
        steps.append(_affine(node, network.format_of(node.source), execution_of(executions, node.name)))
        return
    if isinstance(node, Activation):
        curve = CURVES.get(node.implementation.function.name, _smooth)(node, network.format_of(node.source))
        if not steps or steps[-1].curve is not None:
            steps.append(_identity(size))
        steps.append(replace(steps.pop(), curve=curve))
        return
    if isinstance(node, Select):
        steps += _selected(node, network, constants)
        return
    if isinstance(node, Elementwise) and node.operation in ("add", "sub"):
        left = node.left in constants
        if left and node.operation == "sub":
            raise Unsupported(f"linear bounds do not know constant − value ({node.name!r})")
        shift = np.array(constants[node.left if left else node.right].values, dtype=np.float64)
        if not np.isfinite(shift).all():
            raise Unsupported(f"linear bounds: a constant of {node.name!r} is not finite")
        rounding = _rounding(node.context, exact_below=True, shift=shift if node.operation == "add" else -shift)
        if not shift.any():
            return  # v + 0 is v
        if not steps or steps[-1].curve is not None or steps[-1].b.any():
            steps.append(_identity(size))
        steps.append(_extended(steps.pop(), rounding))
        return
    if isinstance(node, Cast):
        if not steps or steps[-1].curve is not None:
            steps.append(_identity(size))
        steps.append(_extended(steps.pop(), _rounding(node.context, exact_below=False)))
        return
    raise Unsupported(f"linear bounds do not know {node.describe()} ({node.name!r})")


def _selected(node: Select, network: Network, constants: dict[str, Constant]) -> list[Step]:
    """Elements of one node and of constants, as rows with one 1, or none and a bias; nothing when all stay in place."""
    sizes = [0 if source in constants else network.sizes[source] for source in node.sources]
    if node.picks == tuple((k, i) for k, size in enumerate(sizes) for i in range(size)):
        return []
    weights, bias = np.zeros((len(node.picks), sum(sizes))), np.zeros(len(node.picks))
    for row, (k, i) in enumerate(node.picks):
        if node.sources[k] in constants:
            bias[row] = float(constants[node.sources[k]].values[i])
        else:
            weights[row, i] = 1.0
    if not np.isfinite(bias).all():
        raise Unsupported(f"linear bounds: a constant of {node.name!r} is not finite")
    return [Step(len(bias), weights, bias, (0.0, 0.0), (0.0, 0.0), 1, LARGEST)]
