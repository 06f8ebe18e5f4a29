"""A network under construction: every tensor of an ONNX graph as elements of nodes, so that reshaping costs no node."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import UsageError
from fpsmt.files.onnx.tensors import TYPE_NAMES, Fixed, checked_shape, rounded
from fpsmt.floats import Context, Float, Format, exactly, nearest_context
from fpsmt.floats.vector import Carriers
from fpsmt.functions import Implementation
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
    free_name,
)

MAX_NODES = 100_000
MAX_MOVED = 5_000_000  #: elements that one node picks or compares
MAX_COMPUTED = 1 << 27  #: elements of constants and results together, as far as these are no parts of others
MAX_WEIGHTS = 1 << 25  #: rows × columns of one affine node, absent terms included

Ids = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Live:
    """A tensor that depends on the inputs: for each of its elements the number of an element of a node."""

    format: Format
    ids: Ids

    @property
    def shape(self) -> tuple[int, ...]:
        return self.ids.shape


Value = Fixed | Live


def _array(value: Value) -> NDArray[Any]:
    return value.values if isinstance(value, Fixed) else value.ids


@dataclass
class Graph:
    """Nodes made so far.  Element k of the j-th node has number starts[j] + k."""

    implementations: Mapping[str, Implementation] = field(default_factory=dict)  #: by the name of the operator
    bias_from_add: bool = False  #: whether a constant that is added to a matrix product is its bias
    nodes: list[Node] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: int = 0
    names: set[str] = field(default_factory=set)
    selected: dict[bytes, str] = field(default_factory=dict)
    products: set[str] = field(default_factory=set)  #: nodes that are matrix products, without a bias
    notes: dict[str, None] = field(default_factory=dict)  #: what was assumed, each once
    computed: int = 0  #: elements of results so far

    def free_name(self, wanted: str) -> str:
        """This name, or one like it that no node has."""
        return free_name(wanted if wanted and wanted.isprintable() else "node", self.names)

    def add(self, node: Node, sizes: list[int], shape: tuple[int, ...] | None = None) -> Live:
        """A new node; its value as a tensor of this shape."""
        if len(self.nodes) >= MAX_NODES:
            raise UsageError(f"the network would have more than {MAX_NODES} nodes")
        size = node.size_from(sizes)
        if shape is not None and prod(shape) != size:
            raise UsageError(f"{node.name!r} has {size} values, which is not what the shape {list(shape)} needs")
        start = self.ends
        self.nodes.append(node)
        self.starts.append(start)
        self.names.add(node.name)
        self.ends += size
        ids = np.arange(start, start + size)
        return Live(node.format, ids if shape is None else ids.reshape(shape))

    def count(self, value: Value, sources: list[Value | None]) -> None:
        """Counts the elements of a result, unless it is another view of a source; refuses too many."""
        array = _array(value)
        sizes = [_array(s).size for s in sources if s is not None and np.may_share_memory(_array(s), array)]
        self.computed += array.size if array.size > max(sizes, default=0) else 0
        if self.computed > MAX_COMPUTED:
            raise UsageError(f"constants and results before the end have more than {MAX_COMPUTED} elements together")

    def place(self, number: int) -> tuple[int, int]:
        """(node, element) of an element's number."""
        k = bisect_right(self.starts, number) - 1
        return k, number - self.starts[k]

    def node_of(self, value: Live, name: str) -> str:
        """The name of a node whose value is this tensor, row-major: the node it is, or a new one that selects."""
        flat = np.ascontiguousarray(value.ids.reshape(-1))
        if not flat.size:
            raise UsageError(f"{name!r} has no elements: its shape is {list(value.shape)}")
        k, element = self.place(int(flat[0]))
        end = self.starts[k + 1] if k + 1 < len(self.starts) else self.ends
        if element == 0 and flat.size == end - self.starts[k] and np.array_equal(flat, np.arange(flat[0], end)):
            return self.nodes[k].name
        if flat.size > MAX_MOVED:
            raise UsageError(f"{name!r} picks {flat.size} elements: at most {MAX_MOVED} are moved")
        key = flat.tobytes()
        if key not in self.selected:
            starts = np.array(self.starts)
            owners = np.searchsorted(starts, flat, side="right") - 1
            used = list(dict.fromkeys(owners.tolist()))
            position = {owner: at for at, owner in enumerate(used)}
            picks = tuple(zip((position[o] for o in owners.tolist()), (flat - starts[owners]).tolist(), strict=True))
            names = tuple(self.nodes[owner].name for owner in used)
            sizes = [(self.starts[o + 1] if o + 1 < len(self.starts) else self.ends) - self.starts[o] for o in used]
            made = self.free_name(f"{name}.select")
            self.add(Select(name=made, context=nearest_context(value.format), nodes=names, picks=picks), sizes)
            self.selected[key] = made
        return self.selected[key]

    # -- making nodes -------------------------------------------------------------------------------------

    def input(self, name: str, ctx: Context, shape: tuple[int, ...]) -> Live:
        return self.add(Input(name=self.free_name(name), context=ctx, size=prod(shape)), [], shape)

    def live(self, value: Value, name: str) -> Live:
        """A constant as a node; what depends on the inputs as it is."""
        if isinstance(value, Live):
            return value
        if value.format is None:
            raise UsageError(f"{name!r} has integers or booleans where floats are needed")
        if value.values.size > MAX_MOVED:
            raise UsageError(f"{name!r} reads a constant of {value.values.size} elements: at most {MAX_MOVED} are read")
        made = self.free_name(f"{name}.constant")
        node = Constant(name=made, context=nearest_context(value.format), values=value.values.reshape(-1))
        return self.add(node, [], value.shape)

    def elementwise(self, operation: str, a: Live, b: Live, name: str) -> Live:
        """Of two tensors of one shape."""
        left, right = self.node_of(a, name), self.node_of(b, name)
        node = Elementwise(
            name=self.free_name(name), context=nearest_context(a.format), operation=operation, left=left, right=right
        )
        return self.add(node, [a.ids.size, b.ids.size], a.shape)

    def activation(self, use: Implementation, x: Live, name: str, ctx: Context | None = None) -> Live:
        node = Activation(
            name=self.free_name(name), context=ctx or nearest_context(x.format), source=self.node_of(x, name),
            implementation=use,
        )  # fmt: skip
        return self.add(node, [x.ids.size], x.shape)

    def with_bias(self, x: Live, bias: Carriers, name: str) -> Live | None:
        """x plus a constant as one sum with a bias, if x is a matrix product as a whole."""
        k, element = self.place(int(x.ids.reshape(-1)[0]))
        node = self.nodes[k]
        if node.name not in self.products or element or self.node_of(x, name) != node.name:
            return None
        assert isinstance(node, Affine)
        made = replace(node, name=self.free_name(name), bias=np.broadcast_to(bias, x.shape).reshape(-1))
        return self.add(made, [node.weights.shape[1]], x.shape)

    def cast(self, x: Live, ctx: Context, name: str) -> Live:
        node = Cast(name=self.free_name(name), context=ctx, source=self.node_of(x, name))
        return self.add(node, [x.ids.size], x.shape)

    def extremum(self, x: Live, places: Ids, least: bool, name: str, shape: tuple[int, ...]) -> Live:
        """Of the elements of x at these places (groups × members, −1: none)."""
        if places.size > MAX_MOVED:
            raise UsageError(f"{name!r} compares {places.size} elements: at most {MAX_MOVED} are compared")
        groups = tuple(tuple(k for k in row if k >= 0) for row in places.tolist())
        node = Extremum(
            name=self.free_name(name), context=nearest_context(x.format), source=self.node_of(x, name), groups=groups,
            least=least,
        )  # fmt: skip
        return self.add(node, [x.ids.size], shape)

    def dense(self, x: Live, weights: Carriers, bias: Carriers | None, name: str, shape: tuple[int, ...]) -> Live:
        """Sums over all elements of x: weights (sums, elements)."""
        return self._affine(x, weights, bias, None, name, shape)

    def sparse(
        self, x: Live, places: Ids, weights: Carriers, bias: Carriers | None, name: str, shape: tuple[int, ...]
    ) -> Live:
        """Sums over the elements of x at these places (sums × terms, −1: absent), increasing in each row."""
        rows, columns = len(places), x.ids.size
        if rows * columns > MAX_WEIGHTS:
            raise UsageError(
                f"{name!r} unrolls to {rows} sums over {columns} values: at most {MAX_WEIGHTS} weights are held"
            )
        full, mask = np.zeros((rows, columns)), np.zeros((rows, columns), dtype=bool)
        row, term = np.nonzero(places >= 0)
        mask[row, places[row, term]] = True
        full[row, places[row, term]] = weights[row, term]
        return self._affine(x, full, bias, mask, name, shape)

    def _affine(
        self, x: Live, weights: Carriers, bias: Carriers | None, mask: NDArray[np.bool_] | None, name: str,
        shape: tuple[int, ...],
    ) -> Live:  # fmt: skip
        if weights.size > MAX_WEIGHTS:
            raise UsageError(f"{name!r} has {weights.size} weights: at most {MAX_WEIGHTS} are read")
        node = Affine(
            name=self.free_name(name), context=nearest_context(x.format), source=self.node_of(x, name), weights=weights,
            bias=bias, mask=mask,
        )  # fmt: skip
        return self.add(node, [x.ids.size], shape)


Reader = Callable[["Call"], list[Value]]

#: How each operator becomes nodes, by its name.
OPERATORS: dict[str, Reader] = {}


def operator(*names: str) -> Callable[[Reader], Reader]:
    """Decorator: registers the reader of operators."""

    def register(read: Reader) -> Reader:
        OPERATORS.update(dict.fromkeys(names, read))
        return read

    return register


@dataclass
class Call:
    """One node of an ONNX graph with its inputs: what the operators' readers see."""

    graph: Graph
    op: str
    name: str  #: of its first output
    inputs: list[Value | None]
    attributes: Mapping[str, Any]
    opset: int
    outputs: int  #: how many outputs have a name

    def refuse(self, why: str) -> NoReturn:
        raise UsageError(why)

    def value(self, k: int) -> Value:
        """Input k, which must be there."""
        if k >= len(self.inputs) or (found := self.inputs[k]) is None:
            self.refuse(f"its input {k} is missing")
        return found

    def has(self, k: int) -> bool:
        return k < len(self.inputs) and self.inputs[k] is not None

    def live(self, k: int) -> Live:
        return self.graph.live(self.value(k), self.name)

    def fixed(self, k: int, what: str) -> Fixed:
        value = self.value(k)
        if not isinstance(value, Fixed):
            self.refuse(f"its {what} (input {k}) depends on the network's inputs: it must be a constant")
        return value

    def attribute(self, name: str, default: T) -> T:
        """An attribute of the default's type."""
        value = self.attributes.get(name, default)
        if default is not None and type(value) is not type(default):
            self.refuse(f"its attribute {name} is {value!r:.60}, which is not of the right type")
        return value  # type: ignore[no-any-return]

    def integers(self, k: int, name: str, default: list[int] | None = None) -> list[int] | None:
        """Whole numbers from input k, or (as in older opsets) from an attribute."""
        if self.has(k):
            found = self.fixed(k, name)
            if found.format is not None or found.values.ndim > 1:
                self.refuse(f"its {name} should be a list of integers")
            return [int(v) for v in found.values.reshape(-1)]
        return self.attribute(name, list[int]()) if name in self.attributes else default

    def number(self, name: str, default: float, fmt: Format) -> Float:
        """A float attribute as the standard reads it: a float32, rounded into the format of the node."""
        value = self.attribute(name, float(default))
        return exactly(fmt, float(rounded(fmt, np.float32(value))))

    def apply(self, value: Value, move: Callable[[NDArray[Any]], NDArray[Any]]) -> Value:
        """A rearrangement of elements."""
        moved = move(value.values if isinstance(value, Fixed) else value.ids)
        checked_shape(moved.shape, "its result")
        return Fixed(value.format, moved) if isinstance(value, Fixed) else Live(value.format, moved)

    def check_float(self, *values: Value) -> Format:
        """The format of tensors that must all have the same one."""
        formats = {value.format for value in values}
        if len(formats) != 1 or None in formats:
            names = sorted("integers" if f is None else TYPE_NAMES[f] for f in formats)
            self.refuse(f"its inputs have elements of {' and '.join(names)}, where floats of one type are needed")
        (fmt,) = formats
        assert fmt is not None
        return fmt

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= axis < max(rank, 1):
            self.refuse(f"axis {axis} does not exist: the tensor has {rank} dimensions")
        return axis % rank if rank else 0
