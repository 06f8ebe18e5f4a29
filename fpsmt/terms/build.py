"""Nodes from their parts, through the constructors that check and simplify them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpsmt.errors import UsageError
from fpsmt.floats import Float
from fpsmt.terms import terms as t
from fpsmt.terms.terms import BitsSort, BoolSort, FloatSort, Sort, Term

#: Operators whose data is the context that they round into.
CONTEXTS = frozenset({"add", "mul", "fma", "add_products", "div", "sqrt", "cast"})

_PLAIN = frozenset(
    {"ite", "same", "eq", "lt", "le", "is_nan", "is_infinite", "is_finite", "is_zero", "is_negative", "bits_add",
     "bits_sub", "bits_less", "bits_and", "shift_left", "concat"}
)  # fmt: skip


def build(op: str, sort: Sort, args: tuple[Term, ...], data: Any) -> Term:
    """The node of this operator, as the function that builds it in Python makes it; a usage error when it has none.

    Two terms with the same parts are one term, whether they were written in Python, read from JSON or made by
    substitution.
    """
    built = _leaf(op, sort, args, data) if op in ("var", "const") else _inner(op, sort, args, data)
    if built.sort != sort:
        raise UsageError(f"{op} has sort {built.sort}, not {sort}")
    return built


def _leaf(op: str, sort: Sort, args: tuple[Term, ...], data: Any) -> Term:
    if args:
        raise UsageError(f"{op} has no arguments")
    if op == "var":
        return t.var(data, sort)
    good = (
        isinstance(data, Float) and data.format == sort.format
        if isinstance(sort, FloatSort)
        else type(data) is bool
        if isinstance(sort, BoolSort)
        else isinstance(sort, BitsSort) and type(data) is int and 0 <= data < (1 << sort.width)
    )
    if not good:
        raise UsageError(f"{data!r} is not a constant of sort {sort}")
    return t.bits(sort.width, data) if isinstance(sort, BitsSort) else t.const(data)


def _one(op: str, args: tuple[Term, ...]) -> Term:
    if len(args) != 1:
        raise UsageError(f"{op} has one argument, not {len(args)}")
    return args[0]


def _inner(op: str, sort: Sort, args: tuple[Term, ...], data: Any) -> Term:
    if op in CONTEXTS:
        made: Term = getattr(t, op)(data, *args)
        return made
    makers: dict[str, Callable[[], Term]] = {
        "apply": lambda: t.apply(data[0], data[1], _one(op, args), data[2]),
        "neg": lambda: t.neg(*args),
        "abs": lambda: t.absolute(*args),
        "from_bits": lambda: t.from_bits(t.var("", sort).format, *args),
        "choose": lambda: t.choose(_one(op, args[:1]), args[1:]),
        "choice_is": lambda: t.choice_is(_one(op, args), data),
        "and": lambda: t.all_of(*args),
        "or": lambda: t.any_of(*args),
        "not": lambda: t.negation(*args),
        "extract": lambda: t.extract(_one(op, args), data[0], data[1]),
    }
    if op in makers:
        return makers[op]()
    if op not in _PLAIN:
        raise UsageError(f"unknown operator {op!r}")
    plain: Term = getattr(t, op)(*args)
    return plain
