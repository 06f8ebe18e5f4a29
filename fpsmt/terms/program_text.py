"""Float programs of one input as text, and the terms that they are.

    e = exp(-abs(x)); 1/(1 + e) if x >= 0 else e/(1 + e)

A program is assignments ``name = formula`` and a last formula, separated by semicolons.  A formula has the variable
``x``, decimal numbers, ``inf``, ``nan``, names assigned before, ``+ − * /``, ``formula if condition else formula``,
``abs``, ``fma(a, b, c)``, ``clamp(a, low, high)`` (``low if a < low else high if a > high else a``), and every
function of `fpsmt.functions` by name.  Conditions are comparisons ``< <= > >= ==``, joined with ``and``, ``or``,
``not``.  It is Python's syntax, read by Python's parser and not executed.

Every operation is rounded once, in the order in which it is written, left to right; numbers are rounded to nearest even
(a conversion at compile time, whatever the rounding direction of the context).  `fma` says whether an addition of a
product is fused: ``never``, ``always`` (the left product where both terms are products) or ``any``: then each is a free
choice.  A formula that occurs twice is one value.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, Mode, Subnormals, infinity, nan, read_number, round_real
from fpsmt.functions import FUNCTIONS, Contract, CorrectlyRounded, Implementation
from fpsmt.terms import terms as t
from fpsmt.terms.terms import ChoiceSort, Term

Fma = Literal["never", "always", "any"]
MOST_CHARACTERS = 20_000
_COMPARISONS = {ast.Lt: (t.lt, 1), ast.LtE: (t.le, 1), ast.Gt: (t.lt, -1), ast.GtE: (t.le, -1), ast.Eq: (t.eq, 1)}


@dataclass(frozen=True)
class Compiled:
    """A program as a term over ``x``: its free choices (fused or not), its functions that are not correctly rounded."""

    term: Term
    choices: tuple[Term, ...]
    inexact: tuple[Term, ...]

    @property
    def is_function(self) -> bool:
        """It has one result at every input."""
        return not self.choices and not self.inexact


def parse(body: str) -> ast.Module:
    """The syntax tree; a usage error when the text is none."""
    if len(body) > MOST_CHARACTERS or not body.isascii():
        raise UsageError(f"a program is at most {MOST_CHARACTERS} ASCII characters: {body[:60]!r}")
    try:
        return ast.parse(body.strip(), "a program", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"cannot read the program {body[:200]!r}: {why}") from None


def functions_of(body: str) -> set[str]:
    """The names of the real functions that a program calls."""
    calls = (node.func for node in ast.walk(parse(body)) if isinstance(node, ast.Call))
    return {f.id for f in calls if isinstance(f, ast.Name)} - {"abs", "fma", "clamp"}


def compile_program(body: str, ctx: Context, fma: Fma, inner: Mapping[str, Contract], x: Term) -> Compiled:
    """The term of a program whose operations are rounded into `ctx`; x is a term of ctx.format."""
    builder = _Builder(body.strip(), ctx, fma, inner, {"x": x})
    try:
        term = builder.run()
    except RecursionError:
        raise UsageError(f"the program {body[:60]!r} is nested too deeply") from None
    order = [node for node in t.postorder(term) if node.op in ("apply", "var")]
    choices = tuple(node for node in order if node.op == "var" and isinstance(node.sort, ChoiceSort))
    inexact = tuple(node for node in order if node.op == "apply" and not _rounded(node.data[0]))
    return Compiled(term, choices, inexact)


def _rounded(implementation: Implementation) -> bool:
    return isinstance(implementation.contract, CorrectlyRounded)


@dataclass
class _Builder:
    body: str
    ctx: Context
    fma: Fma
    inner: Mapping[str, Contract]
    names: dict[str, Term]
    sums: dict[tuple[Term, Term], Term] = field(default_factory=dict)

    def run(self) -> Term:
        *assignments, last = parse(self.body).body or [ast.Pass()]
        for line in assignments:
            if not isinstance(line, ast.Assign) or len(line.targets) != 1 or not isinstance(line.targets[0], ast.Name):
                raise self.error(line, "write NAME = FORMULA")
            name = line.targets[0].id
            if name in ("x", "inf", "nan") or name in FUNCTIONS:
                raise self.error(line, f"{name} cannot be assigned")
            self.names[name] = self.formula(line.value)
        if not isinstance(last, ast.Expr):
            raise self.error(last, "a program ends with a formula")
        return self.formula(last.value)

    def error(self, node: ast.AST, why: str) -> UsageError:
        shown = ast.get_source_segment(self.body, node) or self.body  # type: ignore[arg-type]
        return UsageError(f"cannot read {shown[:80]!r} in a program: {why}")

    def formula(self, node: ast.expr) -> Term:
        match node:
            case ast.Name(id="inf"):
                return t.const(infinity(self.ctx.format))
            case ast.Name(id="nan"):
                return t.const(nan(self.ctx.format))
            case ast.Name(id=name):
                if name not in self.names:
                    raise self.error(node, f"{name} is not assigned before")
                return self.names[name]
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                return self.number(node)
            case ast.UnaryOp(op=ast.USub()):
                return t.neg(self.formula(node.operand))
            case ast.BinOp(op=ast.Add()):
                return self.sum(self.formula(node.left), self.formula(node.right))
            case ast.BinOp(op=ast.Sub()):
                return self.sum(self.formula(node.left), t.neg(self.formula(node.right)))
            case ast.BinOp(op=ast.Mult()):
                return t.mul(self.ctx, self.formula(node.left), self.formula(node.right))
            case ast.BinOp(op=ast.Div()):
                return t.div(self.ctx, self.formula(node.left), self.formula(node.right))
            case ast.IfExp():
                return t.ite(self.condition(node.test), self.formula(node.body), self.formula(node.orelse))
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self.call(node, name, [self.formula(a) for a in node.args])
        raise self.error(node, "programs have + − * /, conditional formulas, comparisons and functions")

    def number(self, node: ast.expr) -> Term:
        value = read_number(ast.get_source_segment(self.body, node) or "")
        exact = replace(self.ctx, mode=Mode.RNE, subnormals=Subnormals.GRADUAL)
        return t.const(value if isinstance(value, Float) else round_real(exact, value))  # type: ignore[arg-type]

    def call(self, node: ast.expr, name: str, args: list[Term]) -> Term:
        arity = {"fma": 3, "clamp": 3}.get(name, 1)
        if len(args) != arity:
            raise self.error(node, f"{name} has {arity} argument{'s' * (arity > 1)}, not {len(args)}")
        if name == "abs":
            return t.absolute(args[0])
        if name == "fma":
            return t.fma(self.ctx, *args)
        if name == "clamp":
            a, low, high = args
            return t.ite(t.lt(a, low), low, t.ite(t.lt(high, a), high, a))
        if name == "sqrt" and name not in self.inner:
            return t.sqrt(self.ctx, args[0])
        if name not in FUNCTIONS:
            raise self.error(node, f"{name} is not a function of fpsmt.functions")
        return t.apply(Implementation(FUNCTIONS[name], self.inner.get(name, CorrectlyRounded())), self.ctx, args[0])

    def sum(self, a: Term, b: Term) -> Term:
        if (a, b) not in self.sums:
            ways = [t.add(self.ctx, a, b)]
            ways += [t.fma(self.ctx, *f, z) for y, z in ((a, b), (b, a)) for f in [_factors(y)] if f]
            if self.fma == "never" or len(ways) == 1:
                self.sums[a, b] = ways[0]
            elif self.fma == "always":
                self.sums[a, b] = ways[1]
            else:
                choice = t.var(f"fma{len(self.sums)}", ChoiceSort(len(ways)))
                self.sums[a, b] = t.choose(choice, ways)
        return self.sums[a, b]

    def condition(self, node: ast.expr) -> Term:
        match node:
            case ast.Compare(ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                compare, side = _COMPARISONS[type(op)]
                pair = self.formula(node.left), self.formula(right)
                return compare(*pair[::side])
            case ast.BoolOp(op=ast.And()):
                return t.all_of(*map(self.condition, node.values))
            case ast.BoolOp(op=ast.Or()):
                return t.any_of(*map(self.condition, node.values))
            case ast.UnaryOp(op=ast.Not()):
                return t.negation(self.condition(node.operand))
        raise self.error(node, "a condition is a comparison, or several joined with and, or, not")


def _factors(term: Term) -> tuple[Term, Term] | None:
    """The factors of a product, or of a negated one."""
    if term.op == "mul":
        return term.args[0], term.args[1]
    if term.op == "neg" and term.args[0].op == "mul":
        a, b = term.args[0].args
        return t.neg(a), b
    return None


def input_term(fmt: Format, ctx: Context) -> Term:
    """The variable x of a format, brought into the context of the program."""
    x = t.var("x", fmt)
    return x if fmt == ctx.format else t.cast(ctx, x)
