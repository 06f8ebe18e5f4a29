"""What every encoder of terms shares: variables, choices, bits, connectives and activations.

An encoder turns float terms into nodes of its own kind (codes for the circuit, floats for the native theory)
and says how such a node relates to its code.  Facts that must hold beside the formula collect in `side`;
conditions under which the reference evaluation has no value (NaN in a format without one) in `undefined`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format
from fpsmt.smt import nodes as n
from fpsmt.smt.nodes import Node
from fpsmt.terms.terms import BitsSort, BoolSort, ChoiceSort, FloatSort, Sort, Term, postorder

if TYPE_CHECKING:
    from fpsmt.functions import Implementation


@dataclass(frozen=True)
class Variable:
    """A variable of the query and the solver's symbol for it (a float's symbol is its code)."""

    name: str
    sort: Sort
    node: Node


@dataclass(frozen=True)
class Application:
    """One use of an activation: the codes of its input and output."""

    term: Term
    input: Node
    output: Node

    @property
    def implementation(self) -> Implementation:
        found: Implementation = self.term.data[0]
        return found

    @property
    def context(self) -> Context:
        ctx: Context = self.term.data[1]
        return ctx

    @property
    def site(self) -> str:
        site: str = self.term.data[2]
        return site

    @property
    def input_format(self) -> Format:
        return self.term.args[0].format


def choice_width(size: int) -> int:
    """Bits of a choice among `size` values."""
    return max(1, (size - 1).bit_length())


class Encoder:
    """Encodes terms; subclasses give the float operations."""

    name = "abstract"

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.applications: list[Application] = []
        self.side: list[Node] = []
        self.undefined: list[Node] = []
        self._symbols = 0
        self._memo: dict[Term, Node] = {}

    # -- what subclasses give -----------------------------------------------------------------------------

    def constant(self, value: Float) -> Node:
        raise NotImplementedError

    def from_code(self, fmt: Format, code: Node, canonical: bool) -> Node:
        """The float with this code; `canonical` when NaN can only be the format's own code."""
        raise NotImplementedError

    def to_code(self, fmt: Format, value: Node) -> Node:
        """The canonical code of a float node."""
        raise NotImplementedError

    def operation(self, term: Term, args: Sequence[Node]) -> Node:
        """A float operation or predicate; `Unsupported` with the reason when the encoder cannot."""
        raise NotImplementedError

    # -- shared -------------------------------------------------------------------------------------------

    def encode(self, root: Term) -> Node:
        """The node of a term of any sort."""
        for term in postorder(root):
            if term not in self._memo:
                self._memo[term] = self._one(term, [self._memo[arg] for arg in term.args])
        return self._memo[root]

    def symbol(self, hint: str, sort: n.Sort) -> Node:
        """A fresh solver variable with a deterministic, harmless name."""
        self._symbols += 1
        return n.variable(f"v{self._symbols}_{re.sub(r'[^A-Za-z0-9_]', '_', hint)[:40]}", sort)

    def _one(self, term: Term, args: list[Node]) -> Node:
        if term.op == "var":
            return self._variable(term)
        if term.op == "const":
            return self._constant(term)
        if term.op in _SHARED:
            return _SHARED[term.op](term, args)
        if term.op == "from_bits":
            return self.from_code(term.format, args[0], canonical=False)
        if term.op == "apply":
            return self._apply(term, args[0])
        return self.operation(term, args)

    def _constant(self, term: Term) -> Node:
        if isinstance(term.sort, FloatSort):
            return self.constant(term.data)
        return n.truth(term.data) if isinstance(term.sort, BoolSort) else n.number(_width(term.sort), term.data)

    def _variable(self, term: Term) -> Node:
        name = term.data
        if name in self.variables:
            raise Unsupported(f"the variable {name!r} is used with two sorts: rename one of them")
        sort = term.sort
        if isinstance(sort, FloatSort):
            fmt = sort.format
            code = self.symbol(name, fmt.bits)
            self._canonical(fmt, code)
            self.variables[name] = Variable(name, sort, code)
            return self.from_code(fmt, code, canonical=True)
        node = self.symbol(name, _width(sort))
        if isinstance(sort, ChoiceSort) and sort.size < (1 << node.width):
            self.side.append(n.less(node, n.number(node.width, sort.size)))
        self.variables[name] = Variable(name, sort, node)
        return node

    def _canonical(self, fmt: Format, code: Node) -> None:
        """The code is not one of the NaN codes the package never writes."""
        from fpsmt.smt.unpacked import any_nan_code, is_nan

        self.side.append(n.implies(any_nan_code(fmt, code), is_nan(fmt, code)))

    def _apply(self, term: Term, x: Node) -> Node:
        implementation, ctx, _ = term.data
        fmt = term.args[0].format
        for other in self.applications:
            if other.implementation.text == implementation.text and other.implementation != implementation:
                raise Unsupported(f"two different implementations are both written {implementation.text}")
        output = self.symbol(f"apply_{len(self.applications)}", ctx.format.bits)
        self._canonical(ctx.format, output)
        self.applications.append(Application(term, self.to_code(fmt, x), output))
        return self.from_code(ctx.format, output, canonical=True)


def _width(sort: Sort) -> int:
    if isinstance(sort, BitsSort):
        return sort.width
    if isinstance(sort, ChoiceSort):
        return choice_width(sort.size)
    assert isinstance(sort, BoolSort)
    return n.BOOL


def select(index: Node, options: Sequence[Node]) -> Node:
    """options[index] as a balanced tree on the bits of the index; the index is in range."""
    level = list(options)
    for k in range(index.width):
        if len(level) == 1:
            break
        which = n.bit(index, k)
        level = [
            n.ite(which, level[i + 1], level[i]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)
        ]
    return level[0]


def _extract(term: Term, args: list[Node]) -> Node:
    return n.extract(args[0], *term.data)


_SHARED: dict[str, Callable[[Term, list[Node]], Node]] = {
    "ite": lambda term, args: n.ite(*args),
    "choose": lambda term, args: select(args[0], args[1:]),
    "choice_is": lambda term, args: n.equal(args[0], n.number(args[0].width, term.data)),
    "same": lambda term, args: n.equal(*args),
    "and": lambda term, args: n.both(*args),
    "or": lambda term, args: n.either(*args),
    "not": lambda term, args: n.no(args[0]),
    "bits_add": lambda term, args: n.add(*args),
    "bits_sub": lambda term, args: n.sub(*args),
    "bits_less": lambda term, args: n.less(*args),
    "bits_and": lambda term, args: n.bits_and(*args),
    "shift_left": lambda term, args: n.shift_left(*args),
    "concat": lambda term, args: n.concat(*args),
    "extract": _extract,
}


class Positions:
    """Numbers nodes by first use: a deterministic order for the operands of commutative operations."""

    def __init__(self) -> None:
        self._index: dict[Node, int] = {}

    def __call__(self, node: Node) -> int:
        return self._index.setdefault(node, len(self._index))
