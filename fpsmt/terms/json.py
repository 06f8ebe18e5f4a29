"""Terms as JSON: the nodes in postorder, arguments by position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, format_named
from fpsmt.functions import implementation_from_json
from fpsmt.terms.terms import BOOL, BitsSort, ChoiceSort, FloatSort, Sort, Term, postorder

MAX_NODES = 5_000_000


def sort_to_json(sort: Sort) -> Any:
    return str(sort) if not isinstance(sort, FloatSort) else {"float": sort.format.name}


def sort_from_json(data: Any) -> Sort:
    if isinstance(data, dict):
        return FloatSort(format_named(data["float"]))
    if data == "bool":
        return BOOL
    for prefix, kind in (("bits[", BitsSort), ("choice[", ChoiceSort)):
        if isinstance(data, str) and data.startswith(prefix) and data.endswith("]"):
            return kind(int(data[len(prefix) : -1]))
    raise UsageError(f"{data!r} is not a sort")


def _data_to_json(term: Term) -> Any:
    if isinstance(term.data, Float):
        return term.data.bits
    if term.op == "apply":
        implementation, ctx, site = term.data
        return [implementation.to_json(), str(ctx), site]
    if term.op in _CONTEXTS:
        return str(term.data)
    return list(term.data) if isinstance(term.data, tuple) else term.data


_CONTEXTS = {"add", "mul", "fma", "add_products", "div", "sqrt", "cast"}


def _data_from_json(op: str, sort: Sort, data: Any) -> Any:
    if op == "const" and isinstance(sort, FloatSort):
        return Float(sort.format, int(data, 16))
    if op == "apply":
        return implementation_from_json(data[0]), context(data[1]), data[2]
    if op in _CONTEXTS:
        return context(data)
    return tuple(data) if isinstance(data, list) else data


def term_to_json(root: Term) -> list[Any]:
    """The term as a list of [operator, sort, argument positions, data]; the root is last."""
    position: dict[Term, int] = {}
    nodes: list[Any] = []
    for term in postorder(root):
        position[term] = len(nodes)
        nodes.append([term.op, sort_to_json(term.sort), [position[a] for a in term.args], _data_to_json(term)])
    return nodes


def term_from_json(nodes: Any) -> Term:
    """The term written by `term_to_json`; a usage error when the list is not one."""
    if not isinstance(nodes, list) or not 0 < len(nodes) <= MAX_NODES:
        raise UsageError(f"a term is a list of 1 to {MAX_NODES} nodes")
    terms: list[Term] = []
    for place, node in enumerate(nodes):
        try:
            op, sort_data, args, data = node
            sort = sort_from_json(sort_data)
            if any(not 0 <= a < place for a in args):
                raise UsageError("an argument comes after its use")
            terms.append(_rebuild(op, sort, tuple(terms[a] for a in args), _data_from_json(op, sort, data)))
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise UsageError(f"node {place} of the term cannot be read: {error}") from error
    return terms[-1]


def _rebuild(op: str, sort: Sort, args: tuple[Term, ...], data: Any) -> Term:
    """The node, checked by the constructor that builds it in Python."""
    from fpsmt.terms import terms as t

    if op in ("var", "const"):
        return Term(op, sort, args, data)
    builders: dict[str, Callable[[], Term]] = {
        **{name: (lambda name=name: getattr(t, name)(data, *args)) for name in _CONTEXTS},  # type: ignore[misc]
        "apply": lambda: t.apply(data[0], data[1], args[0], data[2]),
        "neg": lambda: t.neg(*args),
        "abs": lambda: t.absolute(*args),
        "from_bits": lambda: t.from_bits(t.var("", sort).format, *args),
        "choose": lambda: t.choose(args[0], args[1:]),
        "choice_is": lambda: t.choice_is(args[0], data),
        "and": lambda: t.all_of(*args),
        "or": lambda: t.any_of(*args),
        "not": lambda: t.negation(*args),
        "extract": lambda: t.extract(args[0], data[0], data[1]),
    }
    plain = {"ite", "same", "eq", "lt", "le", "is_nan", "is_infinite", "is_finite", "is_zero", "is_negative",
             "bits_add", "bits_sub", "bits_less", "bits_and", "shift_left", "concat"}  # fmt: skip
    if op in plain:
        built: Term = getattr(t, op)(*args)
    elif op in builders:
        built = builders[op]()
    else:
        raise UsageError(f"unknown operator {op!r}")
    if built.sort != sort:
        raise UsageError(f"{op} has sort {built.sort}, not {sort}")
    return built
