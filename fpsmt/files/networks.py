"""Reproducers of disagreeing executions of a network, and the same code as a second opinion.

What `script` writes needs numpy, and ml_dtypes for its formats; where neither has a format, exact fractions are used.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from fpsmt.claims.predictions import OutputsClose, OverExecutions, predicted
from fpsmt.errors import InternalError, Unsupported
from fpsmt.files import exact_networks, exact_sums
from fpsmt.files.reproduce import _format_rules, _literal, _plain, _rules, _source, schedule_words
from fpsmt.floats.values import short_hex
from fpsmt.floats.vector import to_floats
from fpsmt.functions import CorrectlyRounded
from fpsmt.networks.interpreter import Executions, execution_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Extremum, Input, Node, Select


def network_plan(network: Network, executions: Executions) -> dict[str, Any]:
    """The network and how it runs, as literals for `exact_networks.run_network`."""
    formats = {node.format.name: node.format for node in network.nodes}
    for node in network.of_kind(Affine):
        formats |= {fmt.name: fmt for fmt in node.formats}
    return {
        "formats": {name: _format_rules(fmt) for name, fmt in formats.items()},
        "nodes": [_node(network, node, executions) for node in network.nodes],
        "output": network.output.name,
    }


def _hexes(fmt: Any, values: Any) -> list[str]:
    return [short_hex(x.hex) for x in to_floats(fmt, values)]


def _node(network: Network, node: Node, executions: Executions) -> dict[str, Any]:
    out: dict[str, Any] = {"name": node.name}
    if isinstance(node, Input):
        return out | {"kind": "input", "format": node.format.name}
    if isinstance(node, Constant):
        return out | {"kind": "constant", "format": node.format.name, "values": _hexes(node.format, node.values)}
    out["context"] = _rules(node.context)
    if isinstance(node, Affine):
        how = execution_of(executions, node.name)
        product = how.product_context(node.context)
        columns = [node.columns(i).tolist() for i in range(len(node.weights))]
        has_bias = node.bias is not None
        return out | {
            "kind": "affine",
            "source": node.source,
            "accumulator": _rules(how.sum_context(node.context)),
            "products": None if product is None else _rules(product),
            "weight_format": node.formats[0].name,
            "bias_format": node.formats[1].name,
            "weights": [_hexes(node.formats[0], row) for row in node.weights],
            "bias": None if node.bias is None else _hexes(node.formats[1], node.bias),
            "columns": None if node.mask is None else columns,
            "default": {
                str(n): schedule_words(how.default_schedule(n, has_bias)) for n in sorted({len(c) for c in columns})
            },
        }
    if isinstance(node, Activation):
        use = node.implementation
        plain = use.function.name == "relu" and isinstance(use.contract, CorrectlyRounded)
        return out | {"kind": "relu" if plain else "recorded", "source": node.source}
    if isinstance(node, Cast):
        return out | {"kind": "cast", "source": node.source}
    if isinstance(node, Select):
        return out | {"kind": "select", "nodes": list(node.nodes), "picks": [list(pick) for pick in node.picks]}
    if isinstance(node, Extremum):
        groups = [list(group) for group in node.groups]
        return out | {"kind": "extremum", "source": node.source, "groups": groups, "least": node.least}
    if isinstance(node, Elementwise):
        return out | {"kind": node.operation, "left": node.left, "right": node.right}
    raise Unsupported(f"reproducers do not know nodes of class {type(node).__name__} ({node.name!r})")


def execution_records(claim: OverExecutions, counterexample: Any) -> dict[str, Any]:
    """A counterexample as literals: the input, and for both executions schedules, recorded values, outputs, class.

    The outputs are those of the reference interpreter.
    """
    index, schedules, outputs = claim.read_counterexample(counterexample)
    recorded = [node["name"] for node in network_plan(claim.network, claim.executions)["nodes"]
                if node["kind"] == "recorded"]  # fmt: skip
    runs = []
    for chosen, results in zip(schedules, outputs, strict=True):
        trace = claim.execute(index, chosen, results)
        runs.append(
            {
                "schedules": {f"{name}:{i}": schedule_words(tree) for (name, i), tree in chosen.items()},
                "activations": {name: [short_hex(y.hex) for y in trace.values[name]] for name in recorded},
                "outputs": ["nan" if y.is_nan else y.bits for y in trace.output],
                "prediction": predicted(trace.output),
            }
        )
    return {"input": [short_hex(x.hex) for x in claim.inputs[index]], "executions": runs}


def second_opinion(plan: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether both executions give the recorded outputs, bit for bit, without fpsmt's arithmetic; and what was used."""
    exact_sums.METHODS.clear()
    same = True
    for run in record["executions"]:
        values = exact_networks.run_network(dict(plan), record["input"], run["schedules"], run["activations"])
        same &= [exact_sums.bits_of(y) for y in values] == run["outputs"]
        same &= exact_networks.prediction(values) == run["prediction"]
    return same, ", ".join(sorted(exact_sums.METHODS))


def confirm(claim: OverExecutions, counterexample: Any) -> tuple[dict[str, Any], str]:
    """The records of a counterexample, after its second replay; and what that used."""
    record = execution_records(claim, counterexample)
    same, how = second_opinion(network_plan(claim.network, claim.executions), record)
    if not same:
        raise InternalError(f"the second opinion ({how}) does not reproduce the reference interpreter")
    return record, how


def script(claim: OverExecutions, records: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """A Python program that runs both executions of each record again and asserts their outputs, bit for bit.

    `records`: pairs of the place of the input in the user's file, and what `execution_records` gives.
    """
    plan = network_plan(claim.network, claim.executions)
    own = _source(exact_networks)
    own = own[own.index("INF = ") :].strip()
    note = []
    if any(node["kind"] == "recorded" for node in plan["nodes"]):
        note = ["", "Results of activations other than ReLU are recorded, not computed: they are among those allowed."]
    close = isinstance(claim, OutputsClose)
    lines = [
        '"""Runs a network twice on each of these inputs, in two orders of its sums: the outputs differ.',
        "",
        *textwrap.wrap(_plain(claim.text), 112),
        *note,
        "",
        "Needs Python, numpy, and ml_dtypes where a format is one of its own (without it: exact fractions).",
        "It stops with an AssertionError if an output is not reproduced bit for bit.",
        '"""',
        "",
        _source(exact_sums),
        "",
        own,
        "",
        "",
        "#: the network; numbers as hex floats, schedules in postfix form",
        f"PLAN = {_literal(plan)}",
        "",
        "#: place of the input, the input, two executions",
        "CASES: list = [",
        *(f"    ({place}, {dict(record)!r})," for place, record in records),
        "]",
        "",
        'if __name__ == "__main__":',
        "    for place, case in CASES:",
        "        classes, numbers = [], []",
        '        for run in case["executions"]:',
        '            outputs = run_network(PLAN, case["input"], run["schedules"], run["activations"])',
        "            found = [bits_of(y) for y in outputs]",
        '            assert found == run["outputs"], f"input {place}: {found} instead of {run[\'outputs\']}"',
        "            classes.append(prediction(outputs))",
        "            numbers.append([float(y.number) for y in outputs])",
        '        print(f"input {place}: class {classes[0]} and class {classes[1]}")',
        "        for row in numbers:",
        '            print("   ", *(f"{y:g}" for y in row))',
    ]
    if close:
        lines.append("        assert numbers[0] != numbers[1]")
    else:
        lines.append("        assert classes[0] != classes[1] or None in classes")
    lines += ['    print(f"all {len(CASES)} inputs reproduced")', ""]
    return "\n".join(lines)
