"""Every format and rounding rule as a bit-vector circuit: exact, then rounded once.  Pure QF_BV.

A float is its code.  Nothing is declined but the size: products of more than `MAX_WIDTH` bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format
from fpsmt.smt import nodes as n
from fpsmt.smt import unpacked as u
from fpsmt.smt.encoder import Encoder, Positions
from fpsmt.smt.nodes import Node
from fpsmt.terms.terms import Term

MAX_WIDTH = 256  #: widest significand product that is encoded


class CircuitEncoder(Encoder):
    """Encodes floats as codes."""

    name = "circuit"

    def __init__(self) -> None:
        super().__init__()
        self._position = Positions()
        self._parts: dict[tuple[Format, Node, bool, bool], u.Unpacked] = {}
        self._products: dict[tuple[object, ...], u.Unpacked] = {}
        self._rounded: dict[tuple[object, ...], Node] = {}

    def constant(self, value: Float) -> Node:
        return n.number(value.format.bits, value.code)

    def from_code(self, fmt: Format, code: Node, canonical: bool) -> Node:
        if canonical or fmt.nan_code is None:
            return code
        return n.ite(u.any_nan_code(fmt, code), n.number(fmt.bits, fmt.nan_code), code)

    def to_code(self, fmt: Format, value: Node) -> Node:
        return value

    def operation(self, term: Term, args: Sequence[Node]) -> Node:
        if term.op in _PREDICATES:
            return _PREDICATES[term.op](term.args[0].format, *args)
        if term.op in ("neg", "abs"):
            return (_negated if term.op == "neg" else _absolute)(term.format, args[0])
        if term.op in _ROUNDED:
            return self._round(term, args)
        raise Unsupported(f"the circuit encoder does not know the operator {term.op!r}")

    # -- rounded operations -------------------------------------------------------------------------------

    def _round(self, term: Term, args: Sequence[Node]) -> Node:
        ctx: Context = term.data
        formats = [arg.format for arg in term.args]
        operands = list(zip(formats, args))
        if term.op == "add":
            operands = self._sorted(operands)
        elif term.op in ("mul", "fma"):
            operands = [*self._sorted(operands[:2]), *operands[2:]]
        elif term.op == "add_products":
            pairs = [self._sorted(operands[:2]), self._sorted(operands[2:])]
            pairs.sort(key=lambda pair: [self._position(node) for _, node in pair])
            operands = [*pairs[0], *pairs[1]]
        key = (term.op, ctx, *operands)
        if key not in self._rounded:
            value, normal = _ROUNDED[term.op](self, ctx, operands)
            code, undefined = u.pack(ctx, value, normal)
            if undefined is not n.FALSE:
                self.undefined.append(undefined)
            self._rounded[key] = code
        return self._rounded[key]

    def _sorted(self, operands: Sequence[tuple[Format, Node]]) -> list[tuple[Format, Node]]:
        return sorted(operands, key=lambda operand: self._position(operand[1]))

    def _part(self, ctx: Context, operand: tuple[Format, Node], normal: bool = True) -> u.Unpacked:
        fmt, code = operand
        key = (fmt, code, ctx.subnormals.inputs, normal)
        if key not in self._parts:
            self._parts[key] = u.unpack(fmt, code, ctx.subnormals.inputs, normal)
        return self._parts[key]

    def _product(self, ctx: Context, a: tuple[Format, Node], b: tuple[Format, Node]) -> u.Unpacked:
        if a[0].precision + b[0].precision > MAX_WIDTH:
            raise Unsupported(f"a product of {a[0]} and {b[0]} is wider than {MAX_WIDTH} bits")
        key = (ctx.subnormals.inputs, a, b)
        if key not in self._products:
            self._products[key] = u.multiply(self._part(ctx, a), self._part(ctx, b))
        return self._products[key]

    def _add(self, ctx: Context, args: list[tuple[Format, Node]]) -> tuple[u.Unpacked, bool]:
        normal = args[0][0] != args[1][0]
        x, y = (self._part(ctx, arg, normal) for arg in args)
        return u.sum_of(x, y, ctx.format.precision, ctx.mode), False

    def _mul(self, ctx: Context, args: list[tuple[Format, Node]]) -> tuple[u.Unpacked, bool]:
        return self._product(ctx, *args), True

    def _fma(self, ctx: Context, args: list[tuple[Format, Node]]) -> tuple[u.Unpacked, bool]:
        product = self._product(ctx, *args[:2])
        return u.sum_of(product, self._part(ctx, args[2]), ctx.format.precision, ctx.mode), False

    def _add_products(self, ctx: Context, args: list[tuple[Format, Node]]) -> tuple[u.Unpacked, bool]:
        x, y = self._product(ctx, *args[:2]), self._product(ctx, *args[2:])
        return u.sum_of(x, y, ctx.format.precision, ctx.mode), False

    def _div(self, ctx: Context, args: list[tuple[Format, Node]]) -> tuple[u.Unpacked, bool]:
        x, y = (self._part(ctx, arg) for arg in args)
        return u.divide(x, y, ctx.format.precision), False

    def _sqrt(self, ctx: Context, args: list[tuple[Format, Node]]) -> tuple[u.Unpacked, bool]:
        return u.square_root(self._part(ctx, args[0]), ctx.format.precision), True

    def _cast(self, ctx: Context, args: list[tuple[Format, Node]]) -> tuple[u.Unpacked, bool]:
        return self._part(ctx, args[0]), True


_ROUNDED: dict[str, Callable[..., tuple[u.Unpacked, bool]]] = {
    "add": CircuitEncoder._add,
    "mul": CircuitEncoder._mul,
    "fma": CircuitEncoder._fma,
    "add_products": CircuitEncoder._add_products,
    "div": CircuitEncoder._div,
    "sqrt": CircuitEncoder._sqrt,
    "cast": CircuitEncoder._cast,
}


def _magnitude(fmt: Format, code: Node) -> Node:
    return n.extract(code, fmt.bits - 2, 0)


def _negated(fmt: Format, code: Node) -> Node:
    flipped = n.bits_xor(code, n.number(fmt.bits, fmt.sign_mask))
    kept = u.is_nan(fmt, code)
    if not fmt.has_signed_zero:
        kept = n.either(kept, n.equal(_magnitude(fmt, code), n.number(fmt.bits - 1, 0)))
    return n.ite(kept, code, flipped)


def _absolute(fmt: Format, code: Node) -> Node:
    return n.ite(u.is_nan(fmt, code), code, n.concat(n.number(1, 0), _magnitude(fmt, code)))


def ordinal(fmt: Format, code: Node) -> Node:
    """Position on the line of floats as a signed bit vector of fmt.bits bits: both zeros are 0.  Not for NaN."""
    wide = n.widen(_magnitude(fmt, code), fmt.bits)
    return n.ite(n.bit(code, fmt.bits - 1), n.negate(wide), wide)


def total_order_key(fmt: Format, code: Node) -> Node:
    """A key that orders codes like `ordinal` and puts −0 just below +0; signed, fmt.bits bits."""
    below = n.bits_xor(code, n.number(fmt.bits, fmt.sign_mask - 1))
    return n.ite(n.bit(code, fmt.bits - 1), below, code)


def _ordered(fmt: Format, a: Node, b: Node) -> Node:
    return n.both(n.no(u.is_nan(fmt, a)), n.no(u.is_nan(fmt, b)))


def _is_zero(fmt: Format, a: Node) -> Node:
    return n.both(n.equal(_magnitude(fmt, a), n.number(fmt.bits - 1, 0)), n.no(u.is_nan(fmt, a)))


_PREDICATES: dict[str, Callable[..., Node]] = {
    "eq": lambda fmt, a, b: n.both(
        _ordered(fmt, a, b), n.either(n.equal(a, b), n.both(_is_zero(fmt, a), _is_zero(fmt, b)))
    ),
    "lt": lambda fmt, a, b: n.both(_ordered(fmt, a, b), n.signed_less(ordinal(fmt, a), ordinal(fmt, b))),
    "le": lambda fmt, a, b: n.both(_ordered(fmt, a, b), n.signed_less_equal(ordinal(fmt, a), ordinal(fmt, b))),
    "is_nan": u.is_nan,
    "is_infinite": u.is_infinite,
    "is_finite": lambda fmt, a: n.no(n.either(u.is_nan(fmt, a), u.is_infinite(fmt, a))),
    "is_zero": _is_zero,
    "is_negative": lambda fmt, a: n.both(n.bit(a, fmt.bits - 1), n.no(u.is_nan(fmt, a))),
}
