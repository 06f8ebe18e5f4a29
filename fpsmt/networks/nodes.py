"""The nodes of a network: what is computed at each, and in which rounding context.

A node's value is a vector of values of its context's format.  Arrays of parameters are *carriers*, as in
`fpsmt.floats.vector`: float64 arrays for formats embedded in float64, object arrays of `Float` for others.
They are checked to be values of their format, never rounded, and frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import floats
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format
from fpsmt.floats.vector import Carriers, embeds, encode
from fpsmt.functions import Implementation

#: The operations of `Elementwise` nodes, correctly rounded.
OPERATIONS: dict[str, Callable[[Context, Float, Float], Float]] = {
    "add": floats.add,
    "sub": floats.sub,
    "mul": floats.mul,
    "div": floats.div,
}


def checked_values(fmt: Format, data: Any, shape: tuple[int | None, ...], where: str) -> Carriers:
    """The data as a frozen array of values of the format, of this shape (None: any length).

    `data` is anything numpy reads: numbers, arrays, nested lists of `Float`.  A usage error names the first
    element that is not a value of the format, or the wrong shape.
    """
    array = np.array(data, dtype=object) if _holds_floats(data) else np.array(data)
    if array.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape)):
        wanted = " × ".join("any" if k is None else str(k) for k in shape)
        got = " × ".join(map(str, array.shape)) or "a single number"
        raise UsageError(f"{where}: the shape should be {wanted}, not {got}")
    if embeds(fmt):
        if array.dtype == object:
            flat = array.reshape(-1).tolist()
            plain = [x if isinstance(x, float) else float(_in_format(fmt, x, where)) for x in flat]
            array = np.array(plain, dtype=np.float64).reshape(array.shape)
        elif array.dtype.kind not in "iufbV":
            raise UsageError(f"{where}: {array.dtype} is not a type of numbers")
        elif array.dtype.kind in "bV":
            array = array.astype(np.float64)
        try:
            encode(fmt, array)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        array = array.astype(np.float64)
        if not fmt.has_signed_zero:
            array = array + 0.0  # −0 becomes the one zero there is
    else:
        flat = [_in_format(fmt, x, where) for x in array.reshape(-1).tolist()]
        array = np.empty(array.shape, dtype=object)
        array.reshape(-1)[:] = flat
    array.setflags(write=False)
    return array


def _holds_floats(data: Any) -> bool:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return isinstance(data, Float) or (isinstance(data, np.ndarray) and data.dtype == object)


def _in_format(fmt: Format, x: Any, where: str) -> Float:
    try:
        if not isinstance(x, Float):
            return floats.exactly(fmt, x)
        if x.format == fmt:
            return x
        return floats.exactly(fmt, float(x) if x.is_zero or not x.is_finite else x.fraction)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """A named node of a network and the context that its results are rounded in."""

    name: str
    context: Context

    @property
    def format(self) -> Format:
        return self.context.format

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the nodes that this one reads."""
        return ()

    def size_from(self, sizes: list[int]) -> int:
        """The length of its value, from those of its sources; a usage error when they do not fit."""
        raise NotImplementedError

    def describe(self) -> str:
        """A few words for the layer table."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class Input(Node):
    """A free input of `size` values of the context's format."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"input {self.name!r}: the size is at least 1, not {self.size}")

    def size_from(self, sizes: list[int]) -> int:
        return self.size

    def describe(self) -> str:
        return "input"


@dataclass(frozen=True, eq=False, kw_only=True)
class Constant(Node):
    """Fixed values."""

    values: Carriers

    def __post_init__(self) -> None:
        values = checked_values(self.format, self.values, (None,), f"constant {self.name!r}")
        if not values.size:
            raise UsageError(f"constant {self.name!r} has no values")
        object.__setattr__(self, "values", values)

    def size_from(self, sizes: list[int]) -> int:
        return len(self.values)

    def describe(self) -> str:
        return "constant"


@dataclass(frozen=True, eq=False, kw_only=True)
class Affine(Node):
    """Σⱼ wᵢⱼxⱼ + bᵢ for each row i; how the sum runs is its `Execution`, its order a schedule.

    `weights` has a row for each output and a column for each element of the source, `bias` one value for each
    output.  `weight_format` and `bias_format` default to the context's.  `mask`, of the shape of the weights,
    says which terms exist at all (a convolution's row has few): a term that is masked out is not a zero
    product, it is absent, and its weight is read as +0.  Leaf k of row i's trees is its k-th existing column,
    in increasing order.
    """

    source: str
    weights: Carriers
    bias: Carriers | None = None
    weight_format: Format | None = None
    bias_format: Format | None = None
    mask: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        where = f"affine {self.name!r}"
        put = object.__setattr__
        put(self, "weight_format", self.weight_format or self.format)
        put(self, "bias_format", self.bias_format or self.format)
        weights = checked_values(self.formats[0], self.weights, (None, None), f"{where}, weights")
        rows = len(weights)
        if rows == 0:
            raise UsageError(f"{where} has no rows, so no outputs")
        if self.bias is not None:
            put(self, "bias", checked_values(self.formats[1], self.bias, (rows,), f"{where}, bias"))
        if self.mask is not None:
            mask = np.array(self.mask, dtype=bool)
            if mask.shape != weights.shape:
                raise UsageError(f"{where}: the mask's shape {mask.shape} is not that of the weights, {weights.shape}")
            mask.setflags(write=False)
            put(self, "mask", None if mask.all() else mask)
            weights = weights.copy()
            weights[~mask] = 0.0 if embeds(self.formats[0]) else floats.zero(self.formats[0])
            weights.setflags(write=False)
        put(self, "weights", weights)
        used = np.full(rows, weights.shape[1] > 0) if self.mask is None else self.mask.any(axis=1)
        if self.bias is None and not used.all():
            raise UsageError(f"{where}: row {int(np.argmin(used))} has neither terms nor a bias, so nothing to add")

    @property
    def formats(self) -> tuple[Format, Format]:
        """Those of the weights and of the bias."""
        return self.weight_format or self.format, self.bias_format or self.format

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    def size_from(self, sizes: list[int]) -> int:
        if sizes[0] != self.weights.shape[1]:
            raise UsageError(
                f"affine {self.name!r} has weights of {self.weights.shape[1]} columns, "
                f"but {self.source!r} has {sizes[0]} values"
            )
        return len(self.weights)

    def columns(self, row: int) -> NDArray[np.intp]:
        """The columns whose products row `row` adds."""
        return np.arange(self.weights.shape[1]) if self.mask is None else np.flatnonzero(self.mask[row])

    def rows(self, column: int) -> NDArray[np.intp]:
        """The rows that use a column: the terms of the backward sum."""
        return np.arange(len(self.weights)) if self.mask is None else np.flatnonzero(self.mask[:, column])

    def describe(self) -> str:
        rows, columns = self.weights.shape
        words = [f"affine {rows}×{columns}"]
        if self.bias is None:
            words.append("no bias")
        if self.mask is not None:
            words.append(f"{int(self.mask.sum())} terms")
        if self.weight_format != self.format:
            words.append(f"weights {self.weight_format}")
        if self.bias is not None and self.bias_format != self.format:
            words.append(f"bias {self.bias_format}")
        return ", ".join(words)


@dataclass(frozen=True, eq=False, kw_only=True)
class Activation(Node):
    """An implementation of a real function, applied to each value of the source."""

    source: str
    implementation: Implementation

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    def size_from(self, sizes: list[int]) -> int:
        return sizes[0]

    def describe(self) -> str:
        return str(self.implementation)


@dataclass(frozen=True, eq=False, kw_only=True)
class Elementwise(Node):
    """``add``, ``sub``, ``mul`` or ``div`` of two nodes of one size, correctly rounded."""

    operation: str
    left: str
    right: str

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise UsageError(
                f"elementwise {self.name!r}: unknown operation {self.operation!r}; write one of {', '.join(OPERATIONS)}"
            )

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.left, self.right)

    def size_from(self, sizes: list[int]) -> int:
        if sizes[0] != sizes[1]:
            raise UsageError(
                f"elementwise {self.name!r}: {self.left!r} has {sizes[0]} values and {self.right!r} has {sizes[1]}"
            )
        return sizes[0]

    def describe(self) -> str:
        return self.operation


@dataclass(frozen=True, eq=False, kw_only=True)
class Cast(Node):
    """Each value of the source, rounded once into this context (so a cast to the same format may still flush)."""

    source: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    def size_from(self, sizes: list[int]) -> int:
        return sizes[0]

    def describe(self) -> str:
        return "cast"


@dataclass(frozen=True, eq=False, kw_only=True)
class Select(Node):
    """Elements of other nodes, unchanged: concatenation, slicing, permutation, repetition.

    `picks` has a pair (position in `nodes`, element) for each element of the value.  The sources must have
    this node's format.
    """

    nodes: tuple[str, ...]
    picks: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.picks:
            raise UsageError(f"select {self.name!r} picks nothing")

    @property
    def sources(self) -> tuple[str, ...]:
        return self.nodes

    def size_from(self, sizes: list[int]) -> int:
        for node, element in self.picks:
            if not (0 <= node < len(sizes) and 0 <= element < sizes[node]):
                raise UsageError(f"select {self.name!r}: there is no element {element} of source {node} ({sizes=})")
        return len(self.picks)

    def describe(self) -> str:
        return "select"


@dataclass(frozen=True, eq=False, kw_only=True)
class Extremum(Node):
    """For each group of elements of the source the greatest of them, or with `least` the least: one of them, unchanged.

    NaN when one of them is NaN.  Of equal numbers (the two zeros among them) it is the one listed first.  The source
    must have this node's format.
    """

    source: str
    groups: tuple[tuple[int, ...], ...]
    least: bool = False

    def __post_init__(self) -> None:
        if not self.groups or not all(self.groups):
            raise UsageError(f"extremum {self.name!r} has no groups, or an empty one")

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    def size_from(self, sizes: list[int]) -> int:
        for group in self.groups:
            if min(group) < 0 or max(group) >= sizes[0]:
                raise UsageError(f"extremum {self.name!r}: {self.source!r} has {sizes[0]} values, none at {max(group)}")
        return len(self.groups)

    def describe(self) -> str:
        return "minimum" if self.least else "maximum"


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """The node with new names, of itself and of what it reads."""
    changes: dict[str, Any] = {"name": names[node.name]}
    if isinstance(node, Select):
        changes["nodes"] = tuple(names[s] for s in node.nodes)
    elif isinstance(node, Elementwise):
        changes |= {"left": names[node.left], "right": names[node.right]}
    elif node.sources:
        changes["source"] = names[node.sources[0]]
    return replace(node, **changes)


def free_name(wanted: str, taken: Collection[str]) -> str:
    """This name, or one like it that is not taken."""
    name, k = wanted, 1
    while name in taken:
        k += 1
        name = f"{wanted}.{k}"
    return name


NODE_KINDS: dict[str, type[Node]] = {
    "input": Input,
    "constant": Constant,
    "affine": Affine,
    "activation": Activation,
    "elementwise": Elementwise,
    "cast": Cast,
    "select": Select,
    "extremum": Extremum,
}
