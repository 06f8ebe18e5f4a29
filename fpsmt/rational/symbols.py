"""Quotients of polynomials in several symbols, exactly: the language of identities.  Trusted.

An expression is text: numbers, symbols, ``+ - * /``, ``**`` with a number as exponent, parentheses.  It denotes a
rational function, and two expressions are equal as such exactly when u₁v₂ − u₂v₁ is the zero polynomial (u/v the
quotients): they then have one value wherever both are defined.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from flint import Ordering, fmpq_mpoly, fmpq_mpoly_ctx

from fpsmt.errors import UsageError
from fpsmt.rational.polynomials import to_fmpq

MOST_EXPONENT = 64
MOST_CHARACTERS = 1 << 16


def read(text: str) -> ast.expr:
    """The syntax tree of an expression; a usage error for anything else."""
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise UsageError(f"an expression is a text of at most {MOST_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"cannot read the expression {text[:80]!r}") from None
    _check(tree, text)
    return tree


def _check(node: ast.AST, text: str) -> None:
    match node:
        case ast.Constant(value=int()) if not isinstance(node.value, bool):
            return
        case ast.Name():
            return
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _check(inner, text)
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int() as n)) if 0 <= n <= MOST_EXPONENT:
            return _check(base, text)
        case ast.BinOp(left=a, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=b):
            _check(a, text)
            return _check(b, text)
    part = ast.unparse(node) if isinstance(node, ast.expr) else text
    raise UsageError(f"{part[:80]!r} in {text[:80]!r}: an expression has numbers, symbols, + - * /, and ** NUMBER")


def symbols_of(*texts: str) -> tuple[str, ...]:
    """The symbols in order of their names."""
    names = {node.id for text in texts for node in ast.walk(read(text)) if isinstance(node, ast.Name)}
    return tuple(sorted(names))


def value_at(text: str, values: Mapping[str, Fraction]) -> Fraction | None:
    """The exact value; None where something is divided by 0."""
    try:
        return _over(read(text), lambda n: Fraction(n), lambda name: Fraction(values[name]))  # type: ignore[no-any-return]
    except ZeroDivisionError:
        return None
    except KeyError as name:
        raise UsageError(f"no value for the symbol {name}") from None


def _over(node: ast.expr, number: Callable[[int], Any], symbol: Callable[[str], Any]) -> Any:
    match node:
        case ast.Constant(value=n):
            return number(n)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(operand=inner):
            return number(-1) * _over(inner, number, symbol)
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=n)):
            return _over(base, number, symbol) ** n  # type: ignore[operator]
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _over(left, number, symbol), _over(right, number, symbol)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div():
                    return a / b
    raise AssertionError(node)


class Quotient:
    """u/v for polynomials in the symbols of one context; v is not 0."""

    def __init__(self, above: fmpq_mpoly, below: fmpq_mpoly) -> None:
        if below.is_zero():
            raise ZeroDivisionError
        self.above, self.below = above, below

    def __add__(self, other: Quotient) -> Quotient:
        if self.below == other.below:
            return Quotient(self.above + other.above, self.below)
        return Quotient(self.above * other.below + other.above * self.below, self.below * other.below)

    def __sub__(self, other: Quotient) -> Quotient:
        return self + Quotient(-other.above, other.below)

    def __mul__(self, other: Quotient) -> Quotient:
        return Quotient(self.above * other.above, self.below * other.below)

    def __truediv__(self, other: Quotient) -> Quotient:
        return Quotient(self.above * other.below, self.below * other.above)

    def __pow__(self, n: int) -> Quotient:
        return Quotient(self.above**n, self.below**n)


def quotients(texts: Sequence[str]) -> list[Quotient]:
    """Expressions over one context; a usage error when one divides by the zero polynomial."""
    names = symbols_of(*texts) or ("x",)
    ctx = fmpq_mpoly_ctx.get(tuple(f"v{i}" for i in range(len(names))), Ordering.lex)
    gens, one = dict(zip(names, ctx.gens(), strict=True)), ctx.constant(1)
    try:
        return [
            _over(read(text), lambda n: Quotient(ctx.constant(n), one), lambda name: Quotient(gens[name], one))
            for text in texts
        ]
    except ZeroDivisionError:
        raise UsageError("an expression divides by 0") from None


def same(left: str, right: str) -> bool:
    """The two are one rational function.

    >>> same("(x**2 - y**2)/(x - y)", "x + y"), same("x/y", "y/x")
    (True, False)
    """
    a, b = quotients([left, right])
    return bool((a.above * b.below - b.above * a.below).is_zero())


def polynomials(texts: Sequence[str]) -> list[fmpq_mpoly]:
    """Expressions that are polynomials, over one context; divisions by numbers only."""
    found = []
    for text, q in zip(texts, quotients(texts), strict=True):
        if not q.below.is_constant():
            raise UsageError(f"{text[:80]!r} is not a polynomial")
        found.append(q.above / q.below.leading_coefficient())
    return found


def certifies(value: str, assumptions: Sequence[str], parts: Sequence[tuple[Fraction, str, Sequence[int]]]) -> bool:
    """value = Σ cₖ·sₖ²·Π assumptions, with cₖ ≥ 0: so value ≥ 0 wherever the assumptions are.

    >>> certifies("x*y", ["x", "y"], [(Fraction(1), "1", [0, 1])])
    True
    """
    if any(c < 0 for c, _, _ in parts) or any(not 0 <= i < len(assumptions) for _, _, p in parts for i in p):
        return False
    total, *rest = polynomials([value, *assumptions, *(s for _, s, _ in parts)])
    known, squares = rest[: len(assumptions)], rest[len(assumptions) :]
    for (c, _, product), s in zip(parts, squares, strict=True):
        term = s * s * to_fmpq(c)
        for i in product:
            term = term * known[i]
        total = total - term
    return bool(total.is_zero())
