"""The reference meaning of terms: one assignment, exact arithmetic, every operation rounded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fpsmt import floats
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float
from fpsmt.functions import Implementation
from fpsmt.terms.terms import BitsSort, ChoiceSort, FloatSort, Term, postorder

Value = Float | int | bool


@dataclass(frozen=True)
class Assignment:
    """Values of the variables by name, and the outputs that an inexact implementation takes.

    `outputs` maps (implementation text, context, site, input) to the output; where it is silent the implementation
    is correctly rounded, or as near to that as its contract allows.  An output outside the contract is a usage error.
    """

    values: Mapping[str, Value]
    outputs: Mapping[tuple[str, Context, str, Float], Float] = field(default_factory=dict)


def evaluate(root: Term, assignment: Assignment | Mapping[str, Value]) -> Value:
    """The value of a term: a Float, an int (bits, choices) or a bool.

    >>> from fpsmt.terms import add, const, var, same
    >>> from fpsmt.floats import context, float16, nearest
    >>> x = var("x", float16)
    >>> evaluate(add(context("float16"), x, x), {"x": nearest(float16, 60000)})
    <float16 inf = inf = 0x7c00>
    """
    return evaluate_all(root, assignment)[root]


def evaluate_all(root: Term, assignment: Assignment | Mapping[str, Value]) -> dict[Term, Value]:
    """The values of a term and all its sub-terms."""
    if not isinstance(assignment, Assignment):
        assignment = Assignment(assignment)
    values: dict[Term, Value] = {}
    for term in postorder(root):
        args = [values[arg] for arg in term.args]
        if term.op == "var":
            values[term] = _variable(term, assignment)
        elif term.op == "apply":
            values[term] = _apply(term, args[0], assignment)
        else:
            values[term] = operate(term, args)
    return values


def operate(term: Term, args: list[Any]) -> Value:
    """The value of a node that is neither a variable nor an activation, from the values of its arguments."""
    if term.op == "const":
        value: Value = term.data
        return value
    if term.op in _ROUNDED:
        return _ROUNDED[term.op](term.data, *args)
    if term.op in _PLAIN:
        return _PLAIN[term.op](term, *args)
    raise Unsupported(f"the reference evaluation does not know the operator {term.op!r}")


def _variable(term: Term, assignment: Assignment) -> Value:
    if term.data not in assignment.values:
        raise UsageError(f"no value is given for the variable {term.data!r}")
    value = assignment.values[term.data]
    sort = term.sort
    if isinstance(sort, FloatSort):
        good = isinstance(value, Float) and value.format == sort.format
    elif isinstance(sort, BitsSort):
        good = type(value) is int and 0 <= value < (1 << sort.width)
    elif isinstance(sort, ChoiceSort):
        good = type(value) is int and 0 <= value < sort.size
    else:
        good = isinstance(value, bool)
    if not good:
        raise UsageError(f"{value!r} is not a value of sort {sort} for the variable {term.data!r}")
    return value


def _apply(term: Term, x: Any, assignment: Assignment) -> Float:
    implementation: Implementation
    implementation, ctx, site = term.data
    y = assignment.outputs.get((implementation.text, ctx, site, x))
    if y is None:
        return implementation.default(ctx, x)
    if not implementation.contains(ctx, x, y):
        raise UsageError(f"{implementation.text} does not allow {y} at {x}")
    return y


_ROUNDED: dict[str, Callable[..., Float]] = {
    "add": floats.add,
    "mul": floats.mul,
    "fma": floats.fma,
    "add_products": floats.add_products,
    "div": floats.div,
    "sqrt": floats.sqrt,
    "cast": floats.cast,
}


def _concat(term: Term, *parts: Any) -> int:
    value = 0
    for arg, part in zip(term.args, parts, strict=True):
        assert isinstance(arg.sort, BitsSort)
        value = (value << arg.sort.width) | part
    return value


def _modulus(term: Term) -> int:
    assert isinstance(term.sort, BitsSort)
    return 1 << term.sort.width


_PLAIN: dict[str, Callable[..., Value]] = {
    "neg": lambda term, a: -a,
    "abs": lambda term, a: abs(a),
    "from_bits": lambda term, a: Float(term.format, a),
    "ite": lambda term, c, a, b: a if c else b,
    "choose": lambda term, c, *options: options[c],
    "choice_is": lambda term, c: c == term.data,
    "same": lambda term, a, b: a == b,
    "eq": lambda term, a, b: floats.equal(a, b),
    "lt": lambda term, a, b: floats.less(a, b),
    "le": lambda term, a, b: floats.less_equal(a, b),
    "is_nan": lambda term, a: a.is_nan,
    "is_infinite": lambda term, a: a.is_infinite,
    "is_finite": lambda term, a: a.is_finite,
    "is_zero": lambda term, a: a.is_zero,
    "is_negative": lambda term, a: a.negative,
    "and": lambda term, *parts: all(parts),
    "or": lambda term, *parts: any(parts),
    "not": lambda term, a: not a,
    "bits_add": lambda term, a, b: (a + b) % _modulus(term),
    "bits_sub": lambda term, a, b: (a - b) % _modulus(term),
    "bits_less": lambda term, a, b: a < b,
    "bits_and": lambda term, a, b: a & b,
    "shift_left": lambda term, a, b: (a << b) % _modulus(term) if b < _modulus(term).bit_length() else 0,
    "concat": _concat,
    "extract": lambda term, a: (a >> term.data[1]) & ((1 << (term.data[0] - term.data[1] + 1)) - 1),
}
