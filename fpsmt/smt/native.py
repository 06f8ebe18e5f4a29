"""Float terms in SMT-LIB's theory of floating point.

Only IEEE layouts with gradual subnormals and IEEE overflow are taken; everything else is declined with the
reason, and the circuit takes it.  Operands of another format are first converted exactly into the result's
format, so that each operation rounds once; where that is impossible the term is declined.
"""

from __future__ import annotations

from collections.abc import Sequence

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format, Overflow, Subnormals
from fpsmt.smt import nodes as n
from fpsmt.smt.encoder import Encoder, Positions
from fpsmt.smt.nodes import Node
from fpsmt.terms.terms import Term

_OPERATORS = {"add": "fp.add", "mul": "fp.mul", "fma": "fp.fma", "div": "fp.div", "sqrt": "fp.sqrt"}
_PREDICATES = {
    "eq": "fp.eq", "lt": "fp.lt", "le": "fp.leq", "is_nan": "fp.isNaN", "is_infinite": "fp.isInfinite",
    "is_zero": "fp.isZero", "is_negative": "fp.isNegative",
}  # fmt: skip


def decline_format(fmt: Format) -> str | None:
    """Why a format has no usable SMT-LIB sort, or None.

    z3 answers ``unknown`` where there are more exponent bits than significand bits, and solvers have had wrong
    answers with two exponent bits.
    """
    if not fmt.is_ieee:
        return f"{fmt} is not laid out as IEEE 754"
    if fmt.exponent_bits < 3 or fmt.exponent_bits > fmt.precision:
        return f"solvers are not reliable on (_ FloatingPoint {fmt.exponent_bits} {fmt.precision})"
    return None


def decline_context(ctx: Context) -> str | None:
    """Why a rounding context has no counterpart in SMT-LIB, or None."""
    if ctx.overflow is not Overflow.INFINITY:
        return f"SMT-LIB has no overflow rule {ctx.overflow.value!r}"
    if ctx.subnormals is not Subnormals.GRADUAL:
        return f"SMT-LIB has no subnormal rule {ctx.subnormals.value!r}"
    return decline_format(ctx.format)


def contains(wide: Format, narrow: Format) -> bool:
    """Every value of one IEEE format is a value of the other."""
    return (
        wide.precision >= narrow.precision
        and wide.emax >= narrow.emax
        and wide.emin - wide.fraction_bits <= narrow.emin - narrow.fraction_bits
    )


def _sort(fmt: Format) -> tuple[int, int]:
    return fmt.exponent_bits, fmt.precision


class NativeEncoder(Encoder):
    """Encodes floats as SMT-LIB floats."""

    name = "native"

    def __init__(self) -> None:
        super().__init__()
        self._position = Positions()
        self._codes: dict[Node, Node] = {}

    def _check(self, reason: str | None) -> None:
        if reason is not None:
            raise Unsupported(f"the native encoder declines: {reason}")

    def constant(self, value: Float) -> Node:
        self._check(decline_format(value.format))
        node = n.float_constant(*_sort(value.format), value.code)
        self._codes[node] = n.number(value.format.bits, value.code)
        return node

    def from_code(self, fmt: Format, code: Node, canonical: bool) -> Node:
        self._check(decline_format(fmt))
        eb, sb = _sort(fmt)
        node = n.float_operation(f"(_ to_fp {eb} {sb})", (eb, sb), code)
        if canonical:
            self._codes[node] = code
        return node

    def to_code(self, fmt: Format, value: Node) -> Node:
        if value not in self._codes:
            code = self.symbol("code", fmt.bits)
            self._canonical(fmt, code)
            self.side.append(n.equal(self.from_code(fmt, code, canonical=False), value))
            self._codes[value] = code
        return self._codes[value]

    def operation(self, term: Term, args: Sequence[Node]) -> Node:
        if term.op in _PREDICATES:
            operands = sorted(args, key=self._position) if term.op == "eq" else args
            return n.float_operation(_PREDICATES[term.op], n.BOOL, *operands)
        if term.op == "is_finite":
            nan, infinite = (n.float_operation(op, n.BOOL, *args) for op in ("fp.isNaN", "fp.isInfinite"))
            return n.no(n.either(nan, infinite))
        if term.op in ("neg", "abs"):
            return n.float_operation(f"fp.{term.op}", args[0].sort, *args)
        if term.op in ("cast", *_OPERATORS):
            return self._rounded(term, args)
        raise Unsupported(f"the native encoder does not know the operator {term.op!r}")

    def _rounded(self, term: Term, args: Sequence[Node]) -> Node:
        ctx: Context = term.data
        self._check(decline_context(ctx))
        sort = _sort(ctx.format)
        if term.op == "cast":
            return self._converted(ctx, args[0])
        operands = []
        for arg, node in zip(term.args, args):
            if not contains(ctx.format, arg.format):
                self._check(f"{term.op} of {arg.format} into {ctx.format} would round twice")
            operands.append(self._converted(ctx, node))
        if term.op in ("add", "mul"):
            operands.sort(key=self._position)
        elif term.op == "fma":
            operands[:2] = sorted(operands[:2], key=self._position)
        return n.float_operation(f"{_OPERATORS[term.op]} {ctx.mode.value}", sort, *operands)

    def _converted(self, ctx: Context, node: Node) -> Node:
        eb, sb = _sort(ctx.format)
        if node.sort == (eb, sb):
            return node
        return n.float_operation(f"(_ to_fp {eb} {sb}) {ctx.mode.value}", (eb, sb), node)
