"""The interpreter's twin on arrays: many inputs at once under one execution, bit for bit the same values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, Format
from fpsmt.floats.vector import Carriers, arithmetic, embeds, encode, to_floats
from fpsmt.functions import allowed_arrays, correctly_rounded_array
from fpsmt.functions.implementations import ALWAYS_ALLOW_ROUNDED
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.interpreter import (
    ActivationOutputs,
    Executions,
    Schedules,
    _extremum,
    check_schedules,
    execution_of,
)
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import (
    Activation,
    Affine,
    Cast,
    Constant,
    Elementwise,
    Extremum,
    Input,
    Node,
    Select,
    checked_values,
)
from fpsmt.networks.sums import SumFormats, evaluate_tree_batch
from fpsmt.networks.trees import Tree, canonical, tree_text

BATCH_VALUES = 1 << 22  #: at most about this many values of one term at a time


def run_batch(
    network: Network,
    inputs: ArrayLike | Mapping[str, ArrayLike],
    executions: Executions = PAPER,
    schedules: Schedules | None = None,
    outputs: ActivationOutputs | None = None,
) -> dict[str, Carriers]:
    """The values of all nodes for a batch: arrays of shape (batch, size) of values, by node.

    `inputs`: arrays of shape (batch, size) of values of the inputs' formats, by name, or one array when there is
    one input.  The other arguments are those of `interpreter.run`, the same for the whole batch, and so are
    the results, element by element, and the errors.  `outputs` for monotone implementations are unsupported.

    >>> net = Network.sequential("float16", 2, [([[1, 2048]], [0.5]), "relu"])
    >>> run_batch(net, [[1.0, 1.0], [-1.0, float("inf")]])["activation1"].tolist()
    [[2048.0], [inf]]
    """
    schedules, outputs = schedules or {}, outputs or {}
    given = _named_arrays(network, inputs)
    batch = len(next(iter(given.values()))) if given else 1
    check_schedules(network, executions, schedules)
    values: dict[str, Carriers] = {}
    for node in network.nodes:
        sources = [values[s] for s in node.sources]
        if isinstance(node, Input):
            values[node.name] = given[node.name]
        elif isinstance(node, Affine):
            source_format = network.format_of(node.source)
            values[node.name] = _affine(node, sources[0], source_format, execution_of(executions, node.name), schedules)
        elif isinstance(node, Activation):
            values[node.name] = _activate(node, sources[0], network.format_of(node.source), outputs)
        else:
            values[node.name] = _simple(network, node, sources, batch)
    return values


def _simple(network: Network, node: Node, sources: list[Carriers], batch: int) -> Carriers:
    if isinstance(node, Constant):
        return np.broadcast_to(node.values, (batch, len(node.values)))
    if isinstance(node, Elementwise):
        return getattr(arithmetic(node.context), node.operation)(*sources)  # type: ignore[no-any-return]
    if isinstance(node, Cast):
        return arithmetic(node.context, network.format_of(node.source)).cast(sources[0])
    if isinstance(node, Select):
        return np.stack([sources[k][:, element] for k, element in node.picks], axis=1)
    if isinstance(node, Extremum):
        return np.stack([extremum_batch(sources[0][:, list(group)], node.least) for group in node.groups], axis=1)
    raise UsageError(f"the interpreter does not know nodes of class {type(node).__name__} ({node.name!r})")


def extremum_batch(values: Carriers, least: bool) -> Carriers:
    """The first least or greatest value of each row, NaN where there is a NaN (numpy's first such index is that)."""
    if values.dtype == object:
        made = np.empty(len(values), dtype=object)
        made[:] = [_extremum(list(row), least) for row in values]
        return made
    chosen = (np.argmin if least else np.argmax)(values, axis=1)
    return values[np.arange(len(values)), chosen]  # type: ignore[no-any-return]


def _named_arrays(network: Network, inputs: ArrayLike | Mapping[str, ArrayLike]) -> dict[str, Carriers]:
    named: Mapping[str, ArrayLike] = inputs if isinstance(inputs, Mapping) else {network.input.name: inputs}
    out: dict[str, Carriers] = {}
    for node in network.inputs:
        if node.name not in named:
            raise UsageError(f"no values are given for the input {node.name!r}")
        out[node.name] = checked_values(node.format, named[node.name], (None, node.size), f"input {node.name!r}")
    if unknown := named.keys() - out.keys():
        raise UsageError(f"{sorted(unknown)[0]!r} is not an input: the inputs are {', '.join(out)}")
    if len({len(x) for x in out.values()}) > 1:
        raise UsageError(f"the inputs have batches of different lengths: {sorted({len(x) for x in out.values()})}")
    return out


def grouped(
    lines: list[tuple[int, Any]], default: Any, chosen: Mapping[int, Tree]
) -> list[tuple[Tree, list[int], Any]]:
    """Sums that run alike: (tree, indices of the sums, their columns), so that each tree is walked once.

    `lines` has for each sum its index and the positions of its terms; `default(n)` is the tree of a sum of
    n terms that has none chosen.
    """
    groups: dict[Any, tuple[Tree, list[int], list[Any]]] = {}
    defaults: dict[int, Tree] = {}
    for i, columns in lines:
        n = len(columns)
        if i in chosen:
            tree = canonical(chosen[i])
            key: Any = (n, tree_text(tree))
        else:
            if n not in defaults:
                defaults[n] = default(n)
            tree, key = defaults[n], (n, None)
        _, members, places = groups.setdefault(key, (tree, [], []))
        members.append(i)
        places.append(columns)
    return [(tree, members, np.array(places, dtype=np.intp)) for tree, members, places in groups.values()]


def _affine(node: Affine, x: Carriers, source: Format, how: Execution, schedules: Schedules) -> Carriers:
    chosen = {i: tree for (name, i), tree in schedules.items() if name == node.name}
    lines = [(i, node.columns(i)) for i in range(len(node.weights))]
    has_bias = node.bias is not None
    out = np.empty((len(x), len(lines)), dtype=np.float64 if embeds(node.format) else object)
    formats = SumFormats(source, *node.formats)
    for tree, members, columns in grouped(lines, lambda n: how.default_schedule(n, has_bias), chosen):
        shared = node.mask is None  # then every row has the same terms: broadcast instead of gathering them
        step = max(1, BATCH_VALUES // max(1, len(x) * (1 if shared else columns.shape[1])))
        for at in range(0, len(members), step):
            rows, places = np.array(members[at : at + step]), columns[at : at + step]
            terms = x.T[:, :, None] if shared else np.moveaxis(x[:, places], 2, 0)  # (terms, batch, rows)
            weights = node.weights[rows[:, None], places].T[:, None, :]
            bias = None if node.bias is None else np.broadcast_to(node.bias[rows], (len(x), len(rows)))
            out[:, rows] = evaluate_tree_batch(node.context, tree, terms, weights, bias, how, formats)
    return out


def _activate(node: Activation, x: Carriers, source: Format, outputs: ActivationOutputs) -> Carriers:
    use = node.implementation
    y = correctly_rounded_array(use.function, node.context, x, source)
    if not isinstance(use.contract, ALWAYS_ALLOW_ROUNDED):
        y = _moved_inside(node, x, y, source)
    tables: dict[str, dict[int, Float]] = defaultdict(dict)
    for (text, site, at), value in outputs.items():
        if text == use.text and at.format == source:
            tables[site][at.code] = value
    if not tables:
        return y
    if use.monotone:
        raise Unsupported(
            f"activation {node.name!r}: outputs of a monotone implementation must be checked against each other, "
            "which a batch does not do; use interpreter.run"
        )
    codes, y = encode(source, x), np.array(y)
    for index in range(x.shape[1]):
        site = "" if use.single_valued else f"{node.name}[{index}]"
        for code, value in tables.get(site, {}).items():
            here = codes[:, index] == code
            if here.any():
                at = Float(source, code)
                if value.format != node.format or not use.contains(node.context, at, value):
                    raise UsageError(
                        f"activation {node.name!r}, element {index}: the output given {value} at {at} is not one "
                        f"that {use.text} allows"
                    )
                y[here, index] = float(value) if embeds(node.format) else value
    return y


def _moved_inside(node: Activation, x: Carriers, y: Carriers, source: Format) -> Carriers:
    """`Implementation.default` on arrays: −0 counts as below +0."""
    if not (embeds(source) and embeds(node.format)):
        moved = np.empty(x.shape, dtype=np.float64 if embeds(node.format) else object)
        for index in np.ndindex(x.shape):
            at = to_floats(source, np.array([x[index]], dtype=x.dtype))[0]
            value = node.implementation.default(node.context, at)
            moved[index] = float(value) if embeds(node.format) else value
        return moved
    low, high = allowed_arrays(node.implementation, node.context, x, source)

    def below(a: Carriers, b: Carriers) -> Any:
        return (a < b) | ((a == 0) & (b == 0) & np.signbit(a) & ~np.signbit(b))

    y = np.where(below(y, low) | np.isnan(y) | np.isnan(low), low, y)
    return np.where(below(high, y), high, y)
