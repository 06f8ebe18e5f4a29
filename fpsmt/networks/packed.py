"""Sums with very many fixed terms: arrays instead of values, and trees as arrays of additions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Format
from fpsmt.floats.compiled import embeds, parameters
from fpsmt.floats.vector import arithmetic, decode, encode, to_floats
from fpsmt.floats.wide import Parameters
from fpsmt.networks import subset_tables as kernels
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.extreme_tables import Leaves, program
from fpsmt.networks.orders import Blocks, FixedOrder, Lanes, LeftToRight, Pairwise, RightToLeft
from fpsmt.networks.outcomes import Sum

Array = NDArray[Any]


def _width(fmt: Format) -> str:
    """The numpy type of a code."""
    if not embeds(fmt):
        raise Unsupported(f"large sums: {fmt} is not embedded in float64")
    return f"<u{next(k for k in (1, 2, 4, 8) if fmt.bits <= 8 * k)}"


@dataclass(frozen=True)
class PackedSum:
    """Σ x, or Σ w·x, (+ bias) in a context, run by an execution.

    x and w are codes in the bytes of little-endian arrays.  Equal sums are equal objects.  Formats are embedded in
    float64, `Unsupported` else.
    """

    context: Context
    format: Format
    codes: bytes
    weight_format: Format | None = None
    weight_codes: bytes = b""
    bias: Float | None = None
    execution: Execution = PAPER

    def __post_init__(self) -> None:
        acc = self.execution.sum_context(self.context).format
        for fmt in {self.context.format, acc, self.format, self.weight_format or self.format}:
            if not embeds(fmt):
                raise Unsupported(f"large sums: {fmt} is not embedded in float64")
        if self.n < 1:
            raise UsageError("a sum needs at least one term (an empty sum is +0 and has no order)")
        if self.is_dot and len(self.weights) != self.n:
            raise UsageError(f"{len(self.weights)} weights for {self.n} terms")

    @staticmethod
    def of(
        ctx: Context, terms: ArrayLike, weights: ArrayLike | None = None, bias: Float | None = None,
        execution: Execution = PAPER, format: Format | None = None, weight_format: Format | None = None,
    ) -> PackedSum:  # fmt: skip
        """From carriers (float64 arrays of values) of the formats, by default the context's.

        >>> from fpsmt.floats import context
        >>> PackedSum.of(context("float16"), [2048.0, 1.0, 1.0]).n
        3
        """
        fmt = format or ctx.format
        codes = encode(fmt, np.asarray(terms, dtype=np.float64)).astype(_width(fmt)).tobytes()
        if weights is None:
            return PackedSum(ctx, fmt, codes, None, b"", bias, execution)
        kind = weight_format or ctx.format
        packed = encode(kind, np.asarray(weights, dtype=np.float64)).astype(_width(kind)).tobytes()
        return PackedSum(ctx, fmt, codes, kind, packed, bias, execution)

    @staticmethod
    def pack(problem: Sum) -> PackedSum:
        """The same sum; `Unsupported` when its terms are not all of one format."""
        terms: list[Any] = [t if isinstance(t, tuple) else (t,) for t in problem.terms]
        formats = [{t[i].format for t in terms} for i in range(len(terms[0]))] if terms else [set()]
        if any(len(f) != 1 for f in formats):
            raise Unsupported("large sums: the terms are of several formats, or there are none")
        parts = [
            (f, np.array([t[i].code for t in terms], dtype=_width(f)).tobytes())
            for i, (f,) in enumerate(formats)
        ]
        (weight, packed), (fmt, codes) = parts[0] if len(parts) == 2 else (None, b""), parts[-1]
        return PackedSum(problem.context, fmt, codes, weight, packed, problem.bias, problem.execution)

    def unpack(self) -> Sum:
        """The same sum with a `Float` for each term."""
        x = to_floats(self.format, self.terms)
        if not self.is_dot:
            return Sum(self.context, tuple(x), self.bias, self.execution)
        w = to_floats(self.weight_format, self.weights)  # type: ignore[arg-type]
        return Sum(self.context, tuple(zip(w, x, strict=True)), self.bias, self.execution)

    @property
    def n(self) -> int:
        return len(self.codes) // np.dtype(_width(self.format)).itemsize

    @property
    def is_dot(self) -> bool:
        return self.weight_format is not None

    @property
    def acc(self) -> Context:
        """Where additions round."""
        return self.execution.sum_context(self.context)

    @property
    def mode(self) -> int:
        """The rule for fused nodes, as `subset_tables` numbers them."""
        if self.is_dot and self.execution.products == "exact":
            return kernels.EXACT
        return {"never": kernels.NEVER, "any": kernels.ANY, "always": kernels.ALWAYS}[self.execution.fuses(self.is_dot)]

    @cached_property
    def terms(self) -> Array:
        """Carriers of x."""
        return decode(self.format, np.frombuffer(self.codes, dtype=_width(self.format)))

    @cached_property
    def weights(self) -> Array:
        """Carriers of w."""
        assert self.weight_format is not None
        return decode(self.weight_format, np.frombuffer(self.weight_codes, dtype=_width(self.weight_format)))

    @cached_property
    def values(self) -> Array:
        """What each leaf brings in when it is rounded on its own, the bias last: carriers of the accumulator."""
        acc = self.acc
        if self.is_dot:
            rounding = self.execution.product_context(self.context) or acc
            made = arithmetic(rounding, (self.weight_format or self.format, self.format)).mul(self.weights, self.terms)
            fmt = rounding.format
        else:
            made, fmt = self.terms, self.format
        made = made if fmt == acc.format else arithmetic(acc, fmt).cast(made)
        if self.bias is not None:
            last = arithmetic(acc, self.bias.format).cast([float(self.bias)])
            last = np.array([float(self.bias)]) if self.bias.format == acc.format else last
            made = np.concatenate([made, last])
        return np.ascontiguousarray(made)

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """w and x as the accumulator reads them: subnormals are zeros where it flushes operands."""
        read = []
        for fmt, values in ((self.weight_format or self.format, self.weights), (self.format, self.terms)):
            tiny = (np.abs(values) < float(fmt.smallest_normal)) & self.acc.subnormals.inputs
            read.append(np.where(tiny, 0.0, values))
        return read[0], read[1]

    @property
    def rules(self) -> tuple[int, Parameters, Parameters, Parameters]:
        """mode, and the parameters of additions, fused additions and sums of two products."""
        acc, w, x = self.acc, self.weight_format or self.format, self.format
        return self.mode, parameters(acc), parameters(acc, (w, x, acc.format)), parameters(acc, (w, x, w, x))

    @cached_property
    def rows(self) -> Array:
        """The leaves for the kernels of `subset_tables`, the bias last."""
        rows = np.zeros((len(self.values), len(kernels.LEAF)))
        rows[:, kernels.LOW] = rows[:, kernels.HIGH] = self.values
        rows[:, kernels.NAN] = np.isnan(self.values)
        if self.is_dot:
            n = self.n
            w, x = self.factors
            with np.errstate(all="ignore"):
                infinite = w * x
            finite = np.isfinite(w) & np.isfinite(x)
            infinite[finite] = 0.0
            rows[:n, kernels.PRODUCT] = 1.0
            rows[:n, kernels.WL] = rows[:n, kernels.WH] = w
            rows[:n, kernels.XL] = rows[:n, kernels.XH] = x
            rows[:n, kernels.LEAST] = rows[:n, kernels.GREATEST] = infinite
            rows[:n, kernels.PRODUCT_NAN] = np.isnan(infinite)
        return rows

    def leaves(self) -> Leaves:
        mode, k, kf, kp = self.rules
        return Leaves(self.rows, list(range(len(self.rows))), mode, self.acc, k, kf, kp)

    def result(self, value: float) -> Float:
        """A value of the accumulator in the sum's context."""
        fmt = self.context.format
        if self.acc == self.context:
            return to_floats(fmt, [value])[0]
        return to_floats(fmt, arithmetic(self.context, self.acc.format).cast([value]))[0]

    @property
    def text(self) -> str:
        """The sum in one line."""
        few = self.terms[:6].tolist()
        words = [repr(x) for x in few]
        if self.is_dot:
            words = [f"{w!r}·{x!r}" for w, x in zip(self.weights[:6].tolist(), few)]
        if self.n > 6:
            words.append(f"… ({self.n} terms)")
        if self.bias is not None:
            words.append(f"bias {self.bias}")
        return f"{' + '.join(words)} in {self.context}, {self.execution}"


# -- trees as arrays ----------------------------------------------------------------------------------------


def order_program(order: FixedOrder, n: int) -> tuple[Array, Array]:
    """`extreme_tables.program` of the order's tree, without building the tree.

    >>> from fpsmt.networks.orders import PAIRWISE
    >>> [each.tolist() for each in order_program(PAIRWISE, 3)]
    [[0, 3], [1, 2]]
    """
    if n < 1 or not order.has(n):
        order.default_tree(n)
    build: Callable[[Any, int, list[int], list[int]], int] | None = _BUILDERS.get(type(order))
    if build is None:
        return program(order.default_tree(n), n)
    left: list[int] = []
    right: list[int] = []
    build(order, n, left, right)
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)


def _fold(slots: list[int] | range, n: int, left: list[int], right: list[int]) -> int:
    """Adds these slots one after the other; the slot of the sum."""
    acc = slots[0]
    for slot in slots[1:]:
        left.append(acc)
        right.append(slot)
        acc = n + len(left) - 1
    return acc


def _left_to_right(order: FixedOrder, n: int, left: list[int], right: list[int]) -> int:
    left += [0, *range(n, 2 * n - 2)][: n - 1]
    right += range(1, n)
    return 2 * n - 2


def _right_to_left(order: FixedOrder, n: int, left: list[int], right: list[int]) -> int:
    acc = n - 1
    for slot in range(n - 2, -1, -1):
        left.append(slot)
        right.append(acc)
        acc = n + len(left) - 1
    return acc


def _blocks(order: Blocks, n: int, left: list[int], right: list[int]) -> int:
    length = -(-n // order.blocks)
    return _fold(
        [_fold(range(at, min(at + length, n)), n, left, right) for at in range(0, n, length)], n, left, right
    )


def _lanes(order: Lanes, n: int, left: list[int], right: list[int]) -> int:
    sums = {lane: _fold(range(lane, n, order.lanes), n, left, right) for lane in range(min(n, order.lanes))}
    m = order.lanes
    while m > 1:
        h = (m + 1) // 2
        for j in [lane - h for lane in sums if lane >= h]:
            high = sums.pop(j + h)
            sums[j] = _fold([sums[j], high], n, left, right) if j in sums else high
        m = h
    return sums[0]


def _pairwise(order: Pairwise, n: int, left: list[int], right: list[int]) -> int:
    def add(*slots: int) -> int:
        return _fold(list(slots), n, left, right)

    def part(start: int, size: int) -> int:
        if size < 8:
            return _fold(range(start, start + size), n, left, right)
        if size > 128:
            half = size // 2 - size // 2 % 8
            return add(part(start, half), part(start + half, size - half))
        whole = size - size % 8
        r = [_fold(range(start + lane, start + whole, 8), n, left, right) for lane in range(8)]
        lanes = add(add(add(r[0], r[1]), add(r[2], r[3])), add(add(r[4], r[5]), add(r[6], r[7])))
        return _fold([lanes, *range(start + whole, start + size)], n, left, right)

    return part(0, n)


_BUILDERS: dict[type, Any] = {
    LeftToRight: _left_to_right,
    RightToLeft: _right_to_left,
    Blocks: _blocks,
    Lanes: _lanes,
    Pairwise: _pairwise,
}


