"""Terms as JSON: the nodes in postorder, arguments by position."""

from __future__ import annotations

import re
from typing import Any

from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, format_named
from fpsmt.functions import implementation_from_json
from fpsmt.terms.build import CONTEXTS, build
from fpsmt.terms.terms import BOOL, BitsSort, ChoiceSort, FloatSort, Sort, Term, postorder

MAX_NODES = 5_000_000


def sort_to_json(sort: Sort) -> Any:
    return str(sort) if not isinstance(sort, FloatSort) else {"float": sort.format.name}


def sort_from_json(data: Any) -> Sort:
    if isinstance(data, dict):
        return FloatSort(format_named(data["float"]))
    if data == "bool":
        return BOOL
    if isinstance(data, str) and (match := re.fullmatch(r"(bits|choice)\[([0-9]{1,12})\]", data)):
        return (BitsSort if match[1] == "bits" else ChoiceSort)(int(match[2]))
    raise UsageError(f"{data!r} is not a sort")


def _data_to_json(term: Term) -> Any:
    if isinstance(term.data, Float):
        return term.data.bits
    if term.op == "apply":
        implementation, ctx, site = term.data
        return [implementation.to_json(), str(ctx), site]
    if term.op in CONTEXTS:
        return str(term.data)
    return list(term.data) if isinstance(term.data, tuple) else term.data


def _data_from_json(op: str, sort: Sort, data: Any) -> Any:
    if op == "const" and isinstance(sort, FloatSort):
        return Float(sort.format, int(data, 16))
    if op == "apply":
        return implementation_from_json(data[0]), context(data[1]), data[2]
    if op in CONTEXTS:
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
            if not isinstance(args, list) or any(type(a) is not int or not 0 <= a < place for a in args):
                raise UsageError("its arguments are not positions of nodes before it")
            terms.append(build(op, sort, tuple(terms[a] for a in args), _data_from_json(op, sort, data)))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
            raise UsageError(f"node {place} of the term cannot be read: {error}") from error
    return terms[-1]
