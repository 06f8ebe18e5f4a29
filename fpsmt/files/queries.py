"""A VNN-LIB query and its networks as one claim of safety.

Several networks become one, whose input has the inputs of all and whose output the outputs of all.  The same network
declared twice then runs twice, each time in an execution of its own.  Comparisons that involve inputs, other than
bounds of one input, look at the inputs as further outputs.  Input variables that the query asserts to be equal become
one where no network can tell the two zeros apart, which are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.claims.properties import Polytope, Property, Query, Safe, values_between
from fpsmt.errors import UsageError
from fpsmt.files.onnx import Model, Port
from fpsmt.files.vnnlib import Case, Declaration, Row, Specification, Tensor, check_bits
from fpsmt.floats import Float, Format
from fpsmt.functions import Clamped, CorrectlyRounded
from fpsmt.networks.interpreter import Executions
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Constant, Elementwise, Input, Node, Select, renamed

Picks = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Problem:
    """The claim that no execution satisfies the query, and where its variables are.

    `places`: for each variable, in order, whether it is an input, and its element of the network's input or output.
    `empty`: how many boxes of the query were left out because no value of the input's format is in them.
    """

    claim: Safe
    tensors: tuple[Tensor, ...]
    formats: tuple[Format, ...]
    places: tuple[tuple[bool, int], ...]
    empty: int = 0

    def values(self, tensor: Tensor, inputs: Sequence[Float], outputs: Sequence[Float]) -> list[Float]:
        """The elements of a tensor in an execution."""
        found = self.places[tensor.start : tensor.start + tensor.size]
        return [inputs[k] if is_input else outputs[k] for is_input, k in found]


def ask(spec: Specification, models: Mapping[str, Model], executions: Executions) -> Problem:
    """The claim about these models, by the names of the declared networks (those that are equal to another left out).

    Usage errors: models that are missing or not declared, types or shapes that do not match, several formats.
    """
    declared = {d.name for d in spec.networks if d.same is None}
    if missing := [name for name in declared if name not in models]:
        raise UsageError(f"no model is given for the network {missing[0]!r}: write --network {missing[0]}=FILE.onnx")
    if unknown := [name for name in models if name not in declared]:
        raise UsageError(f"a model is given for {unknown[0]!r}, and the query declares {', '.join(declared)}")
    used = [(d, models[_original(spec, d)]) for d in spec.networks]
    formats = {m.network.input.format for _, m in used} | {m.network.output.format for _, m in used}
    if len(used) > 1 and len(formats) > 1:
        raise UsageError(f"the networks are of several formats, {', '.join(map(str, formats))}: that is not supported")
    variables: list[tuple[bool, int]] = []
    inputs, outputs = 0, 0
    for declaration, model in used:
        for role, ports, start in (("input", model.inputs, inputs), ("output", model.outputs, outputs)):
            for tensor in declaration.of(role):
                port = _port(tensor, declaration.of(role), ports, spec)
                variables += [(role == "input", start + port.start + k) for k in range(port.size)]
        inputs += model.network.input.size
        outputs += model.network.sizes[model.network.output.name]
    slots = list(range(inputs))
    if all(_blind_to_zeros(model.network) for _, model in used):
        slots = _slots(spec.base, variables, inputs)
    variables = [(is_input, slots[k] if is_input else k) for is_input, k in variables]
    size = max(slots) + 1
    rows = [_resolved(row, variables) for row in spec.base]
    cases = [tuple(_resolved(row, variables) for row in case) for case in spec.cases]
    mixed = any(_kind(row) == "mixed" for case in (rows, *cases) for row in case)
    network = used[0][1].network
    if len(used) > 1 or size != network.input.size or mixed:
        network = _joined(used, slots, size, mixed)
    property_, empty = _property(rows, cases, network.input, outputs)
    tensors = tuple(t for d in spec.networks for t in d.tensors)
    typed = tuple(
        (m.network.input if t.role == "input" else m.network.output).format for d, m in used for t in d.tensors
    )
    return Problem(Safe(network, executions, property_), tensors, typed, tuple(variables), empty)


def _original(spec: Specification, declaration: Declaration) -> str:
    by_name = {d.name: d for d in spec.networks}
    while declaration.same is not None:
        declaration = by_name[declaration.same]
    return declaration.name


def _port(tensor: Tensor, among: list[Tensor], ports: tuple[Port, ...], spec: Specification) -> Port:
    """The model's input or output that a declared tensor is."""
    what = f"{tensor.role} {tensor.name}"
    if len(among) != len(ports):
        names = ", ".join(p.name for p in ports)
        raise UsageError(f"the query declares {len(among)} {tensor.role}s, and the model has {len(ports)}: {names}")
    if tensor.onnx_name is None:
        port = ports[among.index(tensor)]
    else:
        named = [p for p in ports if p.name == tensor.onnx_name]
        if not named:
            raise UsageError(f"the {what} is {tensor.onnx_name!r}, which is no {tensor.role} of the model")
        port = named[0]
    if tensor.type not in ("real", port.type):
        raise UsageError(f"the {what} is declared as {tensor.type}, and the model's {port.name} is {port.type}")
    if spec.version == "1.0" and tensor.size != port.size:
        raise UsageError(f"the query has {tensor.size} variables {tensor.name}_i, the model's {port.name} {port.size}")
    if spec.version != "1.0" and tensor.shape != port.shape:
        raise UsageError(
            f"the {what} has shape {list(tensor.shape)}, and the model's {port.name} has {list(port.shape)}"
        )
    return port


def _blind_to_zeros(network: Network) -> bool:
    """Whether the sign of a zero cannot make two numbers differ: no division by what varies, no free activation."""
    for node in network.nodes:
        divides = isinstance(node, Elementwise) and node.operation == "div"
        if divides and not isinstance(network.node(node.sources[1]), Constant):
            return False
        if isinstance(node, Activation):
            contract = node.implementation.contract
            inner = contract.inner if isinstance(contract, Clamped) else contract
            if not isinstance(inner, CorrectlyRounded):
                return False
    return True


def _slots(base: Case, variables: list[tuple[bool, int]], inputs: int) -> list[int]:
    """For each input element its number when those asserted to be equal are one."""
    parent = list(range(inputs))

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    below = set()
    for row in base:
        if row.bound == 0 and not row.strict and len(row.terms) == 2:
            (v, a), (w, b) = row.terms
            if a == -b and variables[v][0] and variables[w][0]:
                below.add((v, w) if a > 0 else (w, v))
    for v, w in below:
        if v < w and (w, v) in below:
            parent[max(root(variables[v][1]), root(variables[w][1]))] = min(
                root(variables[v][1]), root(variables[w][1])
            )
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(k), len(numbers)) for k in range(inputs)]


Resolved = tuple[dict[tuple[bool, int], Fraction], Fraction, bool]


def _resolved(row: Row, variables: list[tuple[bool, int]]) -> Resolved:
    """A row over (is input, element)."""
    terms: dict[tuple[bool, int], Fraction] = {}
    for variable, a in row.terms:
        terms[variables[variable]] = check_bits(terms.get(variables[variable], Fraction(0)) + a)
    return {place: a for place, a in terms.items() if a}, row.bound, row.strict


def _kind(row: Resolved) -> str:
    """Of outputs alone, a bound of one input, or mixed."""
    inputs = sum(is_input for is_input, _ in row[0])
    return "output" if not inputs else "bound" if len(row[0]) == 1 else "mixed"


def _property(
    base: list[Resolved], cases: list[tuple[Resolved, ...]], node: Input, outputs: int
) -> tuple[Property, int]:
    """Boxes and polytopes, cases with the same box together; and how many boxes hold no value of the format."""
    fmt = node.format
    whole = [(-fmt.largest, fmt.largest)] * node.size
    _narrow(whole, base, fmt)
    always = _rows(base, outputs)
    grouped: dict[tuple[tuple[int, tuple[Fraction, Fraction]], ...], list[Polytope]] = {}
    for case in cases:
        own = {k for row in case if _kind(row) == "bound" for _, k in row[0]}
        sides = list(whole) if own else whole
        _narrow(sides, case, fmt)
        key = tuple((k, sides[k]) for k in sorted(own))
        grouped.setdefault(key, []).append(Polytope.of([*always, *_rows(case, outputs)]))
    queries, empty = [], 0
    for key, unsafe in grouped.items():
        box = list(whole)
        for k, side in key:
            box[k] = side
        if any(values_between(fmt, *side) is None for side in set(box)):
            empty += 1
        else:
            queries.append(Query(tuple(box), tuple(dict.fromkeys(unsafe))))
    return Property(tuple(queries)), empty


def _rows(rows: Sequence[Resolved], outputs: int) -> list[tuple[dict[int, Fraction], Fraction, bool]]:
    """Those that are no bounds of inputs; inputs come after the outputs."""
    return [
        ({k + outputs * is_input: a for (is_input, k), a in terms.items()}, bound, strict)
        for terms, bound, strict in rows
        if _kind((terms, bound, strict)) != "bound" and (terms or bound < 0 or (bound == 0 and strict))
    ]


def _narrow(sides: list[tuple[Fraction, Fraction]], rows: Sequence[Resolved], fmt: Format) -> None:
    """Bounds of single inputs; a strict one becomes the next value of the format, beyond which there is nothing."""
    for row in rows:
        if _kind(row) != "bound":
            continue
        ((_, k), a), = row[0].items()
        end, (low, high) = row[1] / a, sides[k]
        if a > 0:
            sides[k] = low, min(high, _beside(fmt, end, -1) if row[2] else end)
        else:
            sides[k] = max(low, _beside(fmt, end, 1) if row[2] else end), high


def _beside(fmt: Format, end: Fraction, side: int) -> Fraction:
    """The greatest value below a number (side −1), or the least above; a number beyond the range when there is none."""
    beyond = side * (fmt.largest + 1)
    found = values_between(fmt, -fmt.largest, end) if side < 0 else values_between(fmt, end, fmt.largest)
    if found is None:
        return beyond
    nearest = found[1] if side < 0 else found[0]
    if nearest.fraction != end:
        return nearest.fraction
    moved = nearest.next_down if side < 0 else nearest.next_up
    return moved.fraction if moved.is_finite else beyond


# -- several networks as one ------------------------------------------------------------------------------------


def _joined(used: list[tuple[Declaration, Model]], slots: list[int], size: int, with_inputs: bool) -> Network:
    fmt = used[0][1].network.input
    nodes: list[Node] = [Input(name="inputs", context=fmt.context, size=size)]
    names: list[str] = []
    picks: Picks = []
    start = 0
    for declaration, model in used:
        network, prefix = model.network, f"{declaration.name}/" if declaration.name else "model/"
        names_of = {node.name: prefix + node.name for node in network.nodes}
        for node in network.nodes:
            if isinstance(node, Input):
                mine = tuple((0, slots[start + k]) for k in range(node.size))
                nodes.append(Select(name=prefix + node.name, context=node.context, nodes=("inputs",), picks=mine))
            else:
                nodes.append(renamed(node, names_of))
        output = network.output
        picks += [(len(names), k) for k in range(network.sizes[output.name])]
        names.append(prefix + output.name)
        start += network.input.size
    last = used[0][1].network.output
    if with_inputs:
        if last.format != fmt.format:
            raise UsageError(f"the query compares inputs, of {fmt.format}, with outputs, of {last.format}")
        picks += [(len(names), k) for k in range(size)]
        names.append("inputs")
    nodes.append(Select(name="outputs", context=last.context, nodes=tuple(names), picks=tuple(picks)))
    return Network(tuple(nodes), ("outputs",))
