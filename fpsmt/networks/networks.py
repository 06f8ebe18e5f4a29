"""Networks: directed acyclic graphs of nodes, checked when they are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Format, context
from fpsmt.functions import Function, Implementation, implementation_named
from fpsmt.networks.nodes import Activation, Affine, Cast, Input, Node

N = TypeVar("N", bound=Node)


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes in an order in which each comes after its sources, and the names of the output nodes.

    Nodes may be given in any order.  Usage errors: names that are not unique or empty, an unknown source, a
    cycle, sizes that do not fit, a source of another format (where only `Cast`, `Affine` and `Activation`
    may change it), no output.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        by_name: dict[str, Node] = {}
        for node in self.nodes:
            if not node.name or not isinstance(node.name, str):
                raise UsageError(f"a node needs a name: {node.describe()} has {node.name!r}")
            if node.name in by_name:
                raise UsageError(f"two nodes have the name {node.name!r}: names must be unique")
            by_name[node.name] = node
        for node in self.nodes:
            for source in node.sources:
                if source not in by_name:
                    raise UsageError(
                        f"node {node.name!r} reads {source!r}, which is not a node: the nodes are {_list(by_name)}"
                    )
        if not self.outputs:
            raise UsageError("a network needs at least one output")
        for output in self.outputs:
            if output not in by_name:
                raise UsageError(f"the output {output!r} is not a node: the nodes are {_list(by_name)}")
        object.__setattr__(self, "nodes", tuple(_sorted(by_name)))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        for node in self.nodes:
            self._check_formats(node, [by_name[s] for s in node.sources])
        _ = self.sizes

    @staticmethod
    def _check_formats(node: Node, sources: list[Node]) -> None:
        if isinstance(node, Affine | Activation | Cast):
            return
        for source in sources:
            if source.format != node.format:
                raise UsageError(
                    f"{node.describe()} {node.name!r} is in {node.format}, but its source {source.name!r} is in "
                    f"{source.format}: put a cast between them"
                )

    # -- looking up -----------------------------------------------------------------------------------

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The length of each node's value."""
        sizes: dict[str, int] = {}
        for node in self.nodes:
            sizes[node.name] = node.size_from([sizes[s] for s in node.sources])
        return sizes

    def node(self, name: str) -> Node:
        """The node of this name."""
        if name not in self.by_name:
            raise UsageError(f"the network has no node {name!r}: its nodes are {_list(self.by_name)}")
        return self.by_name[name]

    def format_of(self, name: str) -> Format:
        return self.node(name).format

    def of_kind(self, kind: type[N]) -> list[N]:
        """The nodes of a class, in order."""
        return [node for node in self.nodes if isinstance(node, kind)]

    @property
    def inputs(self) -> list[Input]:
        return self.of_kind(Input)

    @property
    def input(self) -> Input:
        """The only input; a usage error when there are several or none."""
        if len(self.inputs) != 1:
            names = _list(node.name for node in self.inputs)
            raise UsageError(f"the network has {len(self.inputs)} inputs, not one: {names}")
        return self.inputs[0]

    @property
    def output(self) -> Node:
        """The only output; a usage error when there are several."""
        if len(self.outputs) != 1:
            raise UsageError(f"the network has {len(self.outputs)} outputs, not one: {_list(self.outputs)}")
        return self.by_name[self.outputs[0]]

    @cached_property
    def consumers(self) -> Mapping[str, tuple[str, ...]]:
        """For each node, the nodes that read it, in order."""
        out: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for source in dict.fromkeys(node.sources):
                out[source].append(node.name)
        return {name: tuple(readers) for name, readers in out.items()}

    def sums(self) -> Iterator[tuple[str, int, int, bool]]:
        """Each sum of the forward pass: node, output index, number of products, whether there is a bias."""
        for node in self.of_kind(Affine):
            for i in range(len(node.weights)):
                yield node.name, i, len(node.columns(i)), node.bias is not None

    @property
    def parameters(self) -> int:
        """How many weights and biases."""
        total = 0
        for node in self.of_kind(Affine):
            total += node.weights.size if node.mask is None else int(node.mask.sum())
            total += 0 if node.bias is None else len(node.bias)
        return total

    # -- making ---------------------------------------------------------------------------------------

    @staticmethod
    def sequential(
        ctx: Context | Format | str,
        inputs: int,
        layers: Iterable[Any],
    ) -> Network:
        """A chain of layers in one context: pairs (weights, bias or None), activations, and contexts to cast to.

        Activations are implementations, functions (then correctly rounded), or text such as ``"relu"`` and
        ``"tanh:ulps=2"``.  After a context, the layers that follow are in it.

        >>> net = Network.sequential("float16", 2, [([[1, -1]], [0.5]), "relu"])
        >>> net.sizes
        {'input': 2, 'affine1': 1, 'activation1': 1}
        """
        here = context(ctx)
        nodes: list[Node] = [Input(name="input", context=here, size=inputs)]
        affine = activation = 0
        for layer in layers:
            before = nodes[-1].name
            if isinstance(layer, Context):
                here = layer
                nodes.append(Cast(name=f"cast{len(nodes)}", context=here, source=before))
            elif isinstance(layer, tuple | list):
                if len(layer) != 2:
                    raise UsageError(f"an affine layer is a pair (weights, bias or None), not {len(layer)} things")
                affine += 1
                nodes.append(
                    Affine(name=f"affine{affine}", context=here, source=before, weights=layer[0], bias=layer[1])
                )
            else:
                use = as_implementation(layer)
                activation += 1
                nodes.append(
                    Activation(name=f"activation{activation}", context=here, source=before, implementation=use)
                )
        return Network(tuple(nodes), (nodes[-1].name,))

    # -- files ----------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """See `fpsmt.networks.serial.network_to_json`; large networks: `save_arrays`."""
        from fpsmt.networks.serial import network_to_json

        return network_to_json(self)

    @staticmethod
    def from_json(data: Any) -> Network:
        """Reads `to_json`."""
        from fpsmt.networks.serial import network_from_json

        return network_from_json(data)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything in the network, as hex."""
        from fpsmt.networks.serial import network_digest

        return network_digest(self)

    # -- display --------------------------------------------------------------------------------------

    def table(self) -> str:
        """One line for each node: name, what it does, size, context, sources.

        >>> print(Network.sequential("float16", 2, [([[1, -1]], [0.5])]).table())
        node     does        size  context  reads
        input    input       2     float16
        affine1  affine 1×2  1     float16  input
        output: affine1; 3 parameters
        """
        rows = [("node", "does", "size", "context", "reads")]
        for n in self.nodes:
            rows.append((n.name, n.describe(), str(self.sizes[n.name]), str(n.context), ", ".join(n.sources)))
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
        many = "outputs" if len(self.outputs) > 1 else "output"
        return "\n".join([*lines, f"{many}: {', '.join(self.outputs)}; {self.parameters} parameters"])

    def __repr__(self) -> str:
        return f"<network of {len(self.nodes)} nodes, {self.parameters} parameters, output {', '.join(self.outputs)}>"


def as_implementation(layer: str | Implementation | Function) -> Implementation:
    """An implementation from itself, from text, or from a function (then correctly rounded)."""
    if isinstance(layer, str):
        return implementation_named(layer)
    return Implementation(layer) if isinstance(layer, Function) else layer


def _list(names: Iterable[str]) -> str:
    some = list(names)
    return ", ".join(some[:12]) + (f", … ({len(some)})" if len(some) > 12 else "")


def _sorted(by_name: dict[str, Node]) -> list[Node]:
    """Sources first, else in the order given."""
    done: dict[str, Node] = {}
    for start in by_name:
        path: list[tuple[str, Iterator[str]]] = [] if start in done else [(start, iter(by_name[start].sources))]
        open_: set[str] = {start}
        while path:
            name, rest = path[-1]
            source = next(rest, None)
            if source is None:
                path.pop()
                open_.discard(name)
                done[name] = by_name[name]
            elif source in open_:
                names = [n for n, _ in path]
                cycle = [*names[names.index(source) :], source]
                raise UsageError(f"the network has a cycle: {' reads '.join(map(repr, cycle))}")
            elif source not in done:
                path.append((source, iter(by_name[source].sources)))
                open_.add(source)
    return list(done.values())


