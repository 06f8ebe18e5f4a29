"""Reads an ONNX file into a network.  Files are not trusted: whatever is in one, there is a network or one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from fpsmt.errors import Unsupported, UsageError
from fpsmt.files.limits import read_at_most
from fpsmt.files.onnx import arithmetic, normalising, shaping, sums
from fpsmt.files.onnx.graph import OPERATORS, Call, Graph, Live, Value
from fpsmt.files.onnx.tensors import FLOATS, TYPE_NAMES, checked_shape, read_tensor, type_name
from fpsmt.floats import Format, nearest_context
from fpsmt.functions import Implementation
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Node

MIN_OPSET, MAX_OPSET = 7, 28
MAX_BYTES = 1 << 30
MAX_OPERATORS = 20_000
DOMAINS = ("", "ai.onnx")
LONG = 80  #: characters of a name that are shown

#: The modules that register operators.
READERS = (arithmetic, normalising, shaping, sums)

#: What may be raised while a file of a wrong shape is read.
SHAPE_ERRORS = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, AssertionError)


@dataclass(frozen=True)
class Port:
    """An input or output of the model: its name, its element type, its shape, and where it is in the network's."""

    name: str
    format: Format
    shape: tuple[int, ...]
    start: int = 0

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def type(self) -> str:
        """The element type as ONNX and VNN-LIB name it."""
        return TYPE_NAMES[self.format]


@dataclass(frozen=True, eq=False)
class Model:
    """A network with one input and one output, in which the model's inputs and outputs come one after the other,
    row-major.  `notes`: what was assumed."""

    network: Network
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    opset: int
    notes: tuple[str, ...] = ()

    def about(self, path: Path | str) -> str:
        """A line about the model, and its notes."""
        ports = " and ".join(f"{p.name} {p.type} {list(p.shape)}" for p in (*self.inputs, *self.outputs))
        words = f"{path}: ONNX, operator set {self.opset}, {len(self.network.nodes)} nodes, {ports}"
        return "; ".join([words, *self.notes])


def operators() -> list[str]:
    """The names of the operators that are read."""
    assert all(READERS)
    return sorted(OPERATORS)


def read_onnx(
    path: Path | str,
    implementations: Mapping[str, Implementation] | None = None,
    external: bool = False,
    bias_from_add: bool = False,
) -> Model:
    """The network in an ONNX file, of the default operator set in its versions 7 to 28.

    Each operator becomes the nodes that the standard's text describes, in the types that the file declares.
    `implementations` gives, by the name of an operator, what its activations may return: the contract is used, with the
    function that the operator names, or with another one that takes its place, unless that is the identity; those left
    out are correctly rounded.  `external` allows tensors in files in
    the folder of the model.  `bias_from_add` reads the ``Add`` of a constant after a ``MatMul`` as the bias of one
    sum, as runtimes that optimise graphs compute it; without it the two are rounded one after the other.  A first
    dimension without a size is 1.

    Usage errors, one line with the node and its operator: what cannot be read, is too large, or is not supported.
    """
    path = Path(path)
    model = _parsed(path)
    try:
        return _read(model, Graph(implementations or {}, bias_from_add), path.parent if external else None)
    except UsageError as error:
        raise UsageError(f"{path}: {_line(error)}") from None
    except MemoryError:
        raise UsageError(f"{path}: the model needs more memory than there is") from None
    except SHAPE_ERRORS as error:
        raise UsageError(f"{path}: the model is malformed: {type(error).__name__} {_line(error)}") from None


def _line(error: BaseException) -> str:
    text = " ".join("".join(c if c.isprintable() else "?" for c in str(error)).split())
    return text if len(text) < 1000 else text[:1000] + " …"


def _parsed(path: Path) -> Any:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise UsageError(f"{path}: reading ONNX needs the package onnx: pip install onnx") from None
    data = read_at_most(path, MAX_BYTES)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RecursionError):
        raise UsageError(f"{path} is not an ONNX model: truncated, or another kind of file") from None
    if not model.HasField("graph"):
        raise UsageError(f"{path} is not an ONNX model: it has no graph")
    return model


def _read(model: Any, made: Graph, folder: Path | None) -> Model:
    graph = model.graph
    opset = _opset(model)
    if len(graph.node) > MAX_OPERATORS:
        raise UsageError(f"the model has {len(graph.node)} operators: at most {MAX_OPERATORS} are read")
    if model.functions:
        raise UsageError(f"the model defines functions ({_name(model.functions[0].name)}): inline them first")
    if graph.sparse_initializer:
        raise UsageError("the model has sparse tensors, which are not supported")
    for name in made.implementations:
        if name not in OPERATORS:
            raise UsageError(f"{name!r} is not an operator that is read: write one of {', '.join(operators())}")
    values: dict[str, Value] = {}
    for tensor in graph.initializer:
        values[tensor.name] = read_tensor(tensor, f"the tensor {_name(tensor.name)}", folder)
        made.count(values[tensor.name], [])
    inputs = _inputs(graph, made, values)
    for node in graph.node:
        _run(node, made, values, opset)
    network, outputs = _finished(graph, made, values)
    return Model(network, inputs, outputs, opset, tuple(made.notes))


def _opset(model: Any) -> int:
    opsets = [o.version for o in model.opset_import if o.domain in DOMAINS]
    opset = int(opsets[0]) if opsets else 1
    if not MIN_OPSET <= opset <= MAX_OPSET:
        raise UsageError(f"the model uses operator set {opset}: {MIN_OPSET} to {MAX_OPSET} are supported")
    return opset


def _name(text: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return repr(shown if len(shown) <= LONG else shown[:LONG] + "…")


def _port(info: Any, what: str) -> tuple[Format, tuple[int, ...]]:
    """The element type and the shape that an input or output declares."""
    name = _name(info.name)
    if not info.type.HasField("tensor_type"):
        raise UsageError(f"the {what} {name} is not a tensor")
    tensor = info.type.tensor_type
    if tensor.elem_type not in FLOATS:
        raise UsageError(f"the {what} {name} has elements of type {type_name(tensor.elem_type)}: floats are needed")
    if not tensor.HasField("shape"):
        raise UsageError(f"the {what} {name} has no shape")
    dims = []
    for k, dim in enumerate(tensor.shape.dim):
        if not dim.HasField("dim_value") or dim.dim_value <= 0:
            if k > 0:
                size = _name(dim.dim_param) if dim.dim_param else "unknown"
                raise UsageError(f"the {what} {name} has a dimension {k} of size {size}: export it with fixed sizes")
            dims.append(1)
        else:
            dims.append(dim.dim_value)
    return FLOATS[tensor.elem_type][1], checked_shape(dims, f"the {what} {name}")


def _inputs(graph: Any, made: Graph, values: dict[str, Value]) -> tuple[Port, ...]:
    """One node for all inputs, of one type."""
    ports: list[Port] = []
    for info in graph.input:
        if info.name not in values:  # older files list their constants as inputs too
            fmt, shape = _port(info, "input")
            ports.append(Port(info.name, fmt, shape, sum(p.size for p in ports)))
    if not ports:
        raise UsageError("the model has no inputs")
    if len({p.format for p in ports}) > 1:
        raise UsageError(f"the model has inputs of several types: {', '.join(p.type for p in ports)}")
    if len({p.name for p in ports}) < len(ports):
        raise UsageError("two inputs of the model have the same name")
    whole = sum(p.size for p in ports)
    name = ports[0].name if len(ports) == 1 else "inputs"
    live = made.input(name, nearest_context(ports[0].format), checked_shape((whole,), "the input"))
    for p in ports:
        values[p.name] = Live(live.format, live.ids[p.start : p.start + p.size].reshape(p.shape))
    return tuple(ports)


def _run(node: Any, made: Graph, values: dict[str, Value], opset: int) -> None:
    """One operator."""
    import onnx

    outputs = list(node.output)
    name = next((n for n in outputs if n), "")
    where = f"node {_name(node.name or name)} ({_name(node.op_type)[1:-1]})"
    if node.domain not in DOMAINS or node.op_type not in OPERATORS:
        domain = "" if node.domain in DOMAINS else f" of the domain {_name(node.domain)}"
        raise UsageError(f"{where}: this operator{domain} is not supported; fpsmt supports --onnx-operators has a list")
    try:
        inputs = []
        for source in node.input:
            if source and source not in values:
                raise UsageError(f"it reads {_name(source)}, which nothing before it writes")
            inputs.append(values[source] if source else None)
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes = {k: list(v) if isinstance(v, tuple) else v for k, v in attributes.items()}
        call = Call(made, node.op_type, name, inputs, attributes, opset, sum(bool(n) for n in outputs))
        results = OPERATORS[node.op_type](call)
        for value in results:
            made.count(value, inputs)
        for k, output in enumerate(outputs):
            if output and k >= len(results):
                raise UsageError(f"its output {k} is used, which is not supported")
            if output in values:
                raise UsageError(f"it writes {_name(output)}, which is written before")
            if output:
                values[output] = results[k]
    except (UsageError, Unsupported) as error:
        raise UsageError(f"{where}: {_line(error)}") from None
    except SHAPE_ERRORS as error:
        raise UsageError(f"{where} is malformed: {type(error).__name__} {_line(error)}") from None


def _finished(graph: Any, made: Graph, values: dict[str, Value]) -> tuple[Network, tuple[Port, ...]]:
    """The network of what the outputs need; one output, in which they come one after the other."""
    ports: list[Port] = []
    parts: list[Live] = []
    for info in graph.output:
        if info.name not in values:
            raise UsageError(f"the output {_name(info.name)} is written by no operator")
        value = values[info.name]
        if value.format is None or prod(value.shape) == 0:
            raise UsageError(f"the output {_name(info.name)} has no floats")
        if info.type.HasField("tensor_type") and info.type.tensor_type.elem_type:
            declared = info.type.tensor_type.elem_type
            if FLOATS.get(declared, ("", None))[1] != value.format:
                raise UsageError(
                    f"the output {_name(info.name)} is declared as {type_name(declared)}, but it is computed in "
                    f"{TYPE_NAMES[value.format]}"
                )
        ports.append(Port(info.name, value.format, value.shape, sum(p.size for p in ports)))
        parts.append(made.live(value, info.name))
    if not ports:
        raise UsageError("the model has no outputs")
    if len({p.format for p in ports}) > 1:
        raise UsageError(f"the model has outputs of several types: {', '.join(p.type for p in ports)}")
    whole = Live(ports[0].format, np.concatenate([p.ids.reshape(-1) for p in parts]))
    output = made.node_of(whole, ports[0].name if len(ports) == 1 else "outputs")
    return Network(tuple(_needed(made.nodes, output)), (output,)), tuple(ports)


def _needed(nodes: list[Node], output: str) -> list[Node]:
    """The nodes that the output depends on, and the input."""
    needed = {output, nodes[0].name}
    for node in reversed(nodes):
        if node.name in needed:
            needed.update(node.sources)
    return [node for node in nodes if node.name in needed]
