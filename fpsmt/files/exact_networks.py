"""A whole network under fixed schedules, every rounding done by numpy, ml_dtypes or exact fractions.

Uses the functions of `exact_sums` and nothing else of the package, because both texts are pasted into reproducers.
"""

from __future__ import annotations

from fractions import Fraction
from math import isinf
from typing import Any

from fpsmt.files.exact_sums import (
    Rules,
    Value,
    as_read,
    beyond,
    is_negative,
    not_a_number,
    read,
    round_sum,
    sum_of,
    zero,
)

INF = float("inf")


def relu(x: Value, rules: Rules) -> Value:
    """max(x, 0), rounded into the rules."""
    if x.number != x.number:
        return not_a_number(rules)
    if isinstance(x.number, float) or x.number < 0:
        if isinstance(x.number, float) and isinf(x.number) and x.number > 0:
            return beyond(rules, False, finite=False)
        return zero(rules, False)
    return round_sum(rules, (x,))


def negated(x: Value) -> Value:
    return zero(x.rules, not is_negative(x.number)) if x.number == 0 else Value(-x.number, x.rules)


def elementwise(operation: str, rules: Rules, a: Value, b: Value) -> Value:
    if operation == "mul":
        return round_sum(rules, (a, b))
    if operation in ("add", "sub"):
        return round_sum(rules, (a,), (b if operation == "add" else negated(b),))
    x, y = as_read(a, rules), as_read(b, rules)
    negative = is_negative(x) != is_negative(y)
    if x != x or y != y or (x == 0 and y == 0) or (x in (INF, -INF) and y in (INF, -INF)):
        return not_a_number(rules)
    if x == 0 or y in (INF, -INF):
        return zero(rules, negative)
    if y == 0 or x in (INF, -INF):
        return beyond(rules, negative, finite=False)
    return round_sum(rules, (Value(Fraction(x) / Fraction(y), a.rules),))


def extremum(values: list[Value], least: bool) -> Value:
    """The first least or greatest value, or the first NaN."""
    best = values[0]
    for x in values:
        if x.number != x.number:
            return x
        if x.number < best.number if least else x.number > best.number:
            best = x
    return best


def run_network(
    plan: dict[str, Any], inputs: list[str], schedules: dict[str, str], activations: dict[str, list[str]]
) -> list[Value]:
    """The outputs; numbers are hex floats.  Sums without a schedule run by the default one of their length.

    `activations` are recorded values of activations other than ReLU: the outputs that this execution has there.
    """
    values: dict[str, list[Value]] = {}
    formats: dict[str, Rules] = plan["formats"]
    for node in plan["nodes"]:
        name, kind = node["name"], node["kind"]
        if kind == "input":
            values[name] = [read(x, formats[node["format"]]) for x in inputs]
        elif kind == "constant":
            values[name] = [read(x, formats[node["format"]]) for x in node["values"]]
        elif kind == "affine":
            source, out = values[node["source"]], []
            for i, row in enumerate(node["weights"]):
                columns = node["columns"][i] if node["columns"] else range(len(row))
                leaves: list[tuple[Value, ...]] = [
                    (read(row[j], formats[node["weight_format"]]), source[j]) for j in columns
                ]
                if node["bias"] is not None:
                    leaves.append((read(node["bias"][i], formats[node["bias_format"]]),))
                default = node["default"][str(len(columns))]
                out.append(sum_of(node, leaves, schedules.get(f"{name}:{i}", default)))
            values[name] = out
        elif kind == "relu":
            values[name] = [relu(x, node["context"]) for x in values[node["source"]]]
        elif kind == "recorded":
            values[name] = [read(x, node["context"]) for x in activations[name]]
        elif kind == "cast":
            values[name] = [round_sum(node["context"], (x,)) for x in values[node["source"]]]
        elif kind == "select":
            values[name] = [values[node["nodes"][k]][i] for k, i in node["picks"]]
        elif kind == "extremum":
            source = values[node["source"]]
            values[name] = [extremum([source[i] for i in group], node["least"]) for group in node["groups"]]
        else:
            pairs = zip(values[node["left"]], values[node["right"]])
            values[name] = [elementwise(kind, node["context"], a, b) for a, b in pairs]
    return values[plan["output"]]


def prediction(outputs: list[Value]) -> int | None:
    """The first index of the greatest output; None when one is NaN."""
    numbers = [y.number for y in outputs]
    if any(y != y for y in numbers):
        return None
    return max(range(len(numbers)), key=lambda k: (numbers[k], -k))
