"""The meaning of bit-vector nodes on numpy arrays: a circuit on many inputs at once, without a solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported
from fpsmt.smt.nodes import BOOL, Node, postorder

Array = NDArray[Any]


def interpret(root: Node, values: Mapping[str, Array | int]) -> Array:
    """The values of a Boolean or bit-vector node (no float operators) for arrays of variable values.

    Arrays are int64 while every width is at most 62 bits, else Python integers; Booleans are bool.
    """
    order = list(postorder([root]))
    wide = any(isinstance(node.sort, int) and node.sort > 62 for node in order)
    dtype: Any = object if wide else np.int64
    found: dict[Node, Array] = {}
    for node in order:
        if node.op == "var":
            raw = np.asarray(values[str(node.value)])
            found[node] = raw.astype(bool) if node.sort == BOOL else raw.astype(dtype)
        elif node.op == "const":
            found[node] = np.asarray(bool(node.value)) if node.sort == BOOL else np.asarray(node.value, dtype=dtype)
        else:
            found[node] = _apply(node, [found[arg] for arg in node.args], dtype)
    return found[root]


def _apply(node: Node, args: list[Array], dtype: Any) -> Array:
    op = node.op
    if op == "ite":
        return np.where(args[0], args[1], args[2])
    if op == "not":
        return ~args[0]
    if op in ("and", "or"):
        reduce = np.logical_and if op == "and" else np.logical_or
        result = args[0]
        for arg in args[1:]:
            result = reduce(result, arg)
        return result
    if op == "=":
        return np.asarray(args[0] == args[1], dtype=bool)
    if op.startswith("(_ extract "):
        low = int(op[:-1].split()[3])
        return (args[0] >> low) & _mask(node.width)
    if op == "concat":
        return (args[0] << node.args[1].width) | args[1]
    width = node.args[0].width
    return _vector(node, op, width, args, dtype)


def _mask(width: int) -> int:
    return (1 << width) - 1


def _vector(node: Node, op: str, width: int, args: list[Array], dtype: Any) -> Array:
    a = args[0]
    b = args[1] if len(args) > 1 else a
    if op in ("bvult", "bvule", "bvslt", "bvsle"):
        if op[2] == "s":
            sign = 1 << (width - 1)
            a, b = a ^ sign, b ^ sign
        return np.asarray(a < b if op.endswith("lt") else a <= b, dtype=bool)
    if op in ("bvshl", "bvlshr"):
        inside = np.asarray(b < width, dtype=bool)
        amount = np.where(inside, b, 0)
        moved = a << amount if op == "bvshl" else a >> amount
        return np.where(inside, moved, 0) & _mask(width)
    if op in ("bvudiv", "bvurem"):
        divisor = np.where(np.asarray(b == 0, dtype=bool), 1, b)
        empty = np.asarray(b == 0, dtype=bool)
        if op == "bvudiv":
            return np.where(empty, _mask(width), a // divisor)
        return np.where(empty, a, a % divisor)
    simple = {
        "bvadd": lambda: a + b,
        "bvsub": lambda: a - b,
        "bvmul": lambda: a * b,
        "bvneg": lambda: -a,
        "bvnot": lambda: ~a,
        "bvand": lambda: a & b,
        "bvor": lambda: a | b,
        "bvxor": lambda: a ^ b,
    }
    if op not in simple:
        raise Unsupported(f"the interpretation of circuits does not know {op!r}")
    with np.errstate(over="ignore"):
        return np.asarray(simple[op]() & _mask(width), dtype=dtype)
