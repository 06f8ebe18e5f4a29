"""A sum under a schedule by numpy scalars alone: one machine operation for each node.

Imports nothing of the package, because this text is pasted into reproducers.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def run(plan: dict[str, Any], schedule: str) -> Any:
    """The sum in this order.  ``"0 1 + 2 +"`` adds terms 0 and 1, then term 2; the bias is the term after the last."""
    value, product, total = (getattr(np, plan[name]) for name in ("format", "products", "accumulator"))
    terms: list[Any] = [*plan["terms"], plan["bias"]]
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for word in schedule.split():
            if word == "+":
                right, left = stack.pop(), stack.pop()
                stack.append(left + right)
            elif isinstance(terms[int(word)], str):
                stack.append(total(value(float.fromhex(terms[int(word)]))))
            else:
                w, x = (product(value(float.fromhex(number))) for number in terms[int(word)])
                stack.append(total(w * x))
        return value(stack.pop())


def bits_of(x: Any) -> str:
    """The bits of a numpy scalar, ``nan`` for every NaN."""
    if x != x:
        return "nan"
    code = int(np.asarray(x).view(f"u{x.dtype.itemsize}"))
    return f"{code:#0{2 + 2 * x.dtype.itemsize}x}"
