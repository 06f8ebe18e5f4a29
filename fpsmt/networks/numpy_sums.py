"""How ``numpy.sum`` runs: which order and accumulator, by the format and by how the array lies in memory.

Observed, and tested bit for bit in ``tests/networks/test_numpy_sums.py``; numpy documents pairwise summation "along the
fast axis in memory" only (``numpy.sum``, Notes).

* float32 and float64, the axis with the smallest stride among those longer than 1: `Pairwise`.
* float16 there: `Pairwise` in float32, rounded to float16 once at the end.
* Along every other axis rows are added to an array of results: left to right, each addition rounded to the format, for
  float16 too.
* The formats of ml_dtypes have no pairwise loop: left to right along every axis, each addition rounded.

A view sums its terms in the view's order whatever its strides, so ``x[::2]`` and ``x[::-1]`` are `Pairwise` over their
own elements.  All results are +0 plus the sum: where every term is −0 numpy gives +0, and the tree −0.  An empty
axis gives +0 and has no order.

Not covered: ``axis=None`` and several axes of an array whose elements are not in one stretch of memory, ``where=``, and
arrays that numpy copies through a buffer because they are byte-swapped, unaligned or cast by ``dtype=``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Format, context, float16, float32, float64
from fpsmt.networks.executions import Execution
from fpsmt.networks.orders import LEFT_TO_RIGHT, PAIRWISE

#: The formats for which numpy has a pairwise loop, and where it adds.
ACCUMULATORS: dict[Format, Context | None] = {float16: context("float32"), float32: None, float64: None}


def numpy_sum_execution(
    fmt: Format, shape: Sequence[int], axis: int | None = 0, order: Literal["C", "F"] = "C"
) -> Execution:
    """The execution of each sum of ``x.sum(axis)``, for an array of this format and shape in C or Fortran order.

    Terms are numbered along the axis; with ``axis=None`` through the whole array as it lies in memory.

    >>> from fpsmt.floats import bfloat16
    >>> [str(numpy_sum_execution(float16, (50, 60), axis)) for axis in (0, 1)]
    ['left-to-right', 'pairwise accumulator=float32']
    >>> str(numpy_sum_execution(float32, (50, 60), 0, "F")), str(numpy_sum_execution(bfloat16, (50,)))
    ('pairwise', 'left-to-right')
    """
    if order not in ("C", "F"):
        raise UsageError(f"order={order!r}: write 'C' or 'F'")
    if axis is not None and not -len(shape) <= axis < len(shape):
        raise UsageError(f"axis {axis}: an array of shape {tuple(shape)} has the axes 0…{len(shape) - 1}")
    if prod(shape) == 0:
        raise UsageError(f"an array of shape {tuple(shape)} has no elements: an empty sum is +0 and has no order")
    if fmt not in ACCUMULATORS:
        return Execution(LEFT_TO_RIGHT)
    if axis is not None:
        fast = [k for k in (range(len(shape)) if order == "F" else range(len(shape) - 1, -1, -1)) if shape[k] > 1]
        if fast and axis % len(shape) != fast[0]:  # along an axis of length 1 there is nothing to add
            return Execution(LEFT_TO_RIGHT)
    return Execution(PAIRWISE, accumulator=ACCUMULATORS[fmt])
