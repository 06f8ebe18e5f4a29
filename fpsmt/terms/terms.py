"""Terms: one small language of formulas over floats, bit vectors and finite choices.

A term is an immutable, hash-consed node: equal terms are the same object, so a dictionary keyed by terms is a
memo table.  Every pass (reference evaluation, vector evaluation, solver encodings, printing) walks
`postorder` once.  A pass that meets an operator it does not know raises `Unsupported` with its name.

Float operations carry their rounding context and take operands of any formats; the value is the exact result
rounded once into that context, as in `fpsmt.floats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format

if TYPE_CHECKING:
    from fpsmt.functions import Implementation


@dataclass(frozen=True)
class FloatSort:
    """Values of a format, NaN and infinities included."""

    format: Format

    def __str__(self) -> str:
        return self.format.name


MAX_WIDTH = 1 << 20  #: bits of a bit vector
MAX_OPTIONS = 1 << 32  #: values of a choice


@dataclass(frozen=True)
class BitsSort:
    """Bit vectors of a width, as unsigned integers modulo 2^width."""

    width: int

    def __post_init__(self) -> None:
        if type(self.width) is not int or not 1 <= self.width <= MAX_WIDTH:
            raise UsageError(f"bits[{self.width!r}]: the width is a whole number from 1 to {MAX_WIDTH}")

    def __str__(self) -> str:
        return f"bits[{self.width}]"


@dataclass(frozen=True)
class ChoiceSort:
    """A free choice among 0 … size − 1: which tree, fused or not, how many ulps."""

    size: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or not 1 <= self.size <= MAX_OPTIONS:
            raise UsageError(f"choice[{self.size!r}]: there are 1 to {MAX_OPTIONS} values to choose from")

    def __str__(self) -> str:
        return f"choice[{self.size}]"


@dataclass(frozen=True)
class BoolSort:
    def __str__(self) -> str:
        return "bool"


Sort = FloatSort | BitsSort | ChoiceSort | BoolSort
BOOL = BoolSort()


class Term:
    """A node: operator, sort, arguments and operator data (a constant, a name, a rounding context …).

    Immutable; a copy is the same object.  Build terms with the functions below, which check their arguments.
    """

    __slots__ = ("__weakref__", "args", "data", "op", "sort")
    op: str
    sort: Sort
    args: tuple[Term, ...]
    data: Any

    _interned: WeakValueDictionary[tuple[Any, ...], Term] = WeakValueDictionary()

    def __new__(cls, op: str, sort: Sort, args: tuple[Term, ...] = (), data: Any = None) -> Term:
        key = (op, sort, args, data)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            for name, value in zip(("op", "sort", "args", "data"), (op, sort, args, data)):
                object.__setattr__(found, name, value)
            cls._interned[key] = found
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"terms do not change: build another one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"terms do not change: {name} cannot be deleted")

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: object) -> Term:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from fpsmt.terms.json import term_from_json, term_to_json

        return term_from_json, (term_to_json(self),)

    @property
    def format(self) -> Format:
        """The format of a float term."""
        if not isinstance(self.sort, FloatSort):
            raise UsageError(f"{self.op} has sort {self.sort}; a float is needed here")
        return self.sort.format

    def __repr__(self) -> str:
        from fpsmt.terms.text import text

        return text(self)


def postorder(*roots: Term) -> Iterator[Term]:
    """Every sub-term once, arguments before the terms that use them; no recursion."""
    seen: set[Term] = set()
    stack: list[tuple[Term, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        term, done = stack.pop()
        if done:
            yield term
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            stack.extend((arg, False) for arg in reversed(term.args) if arg not in seen)


def variables(*roots: Term) -> list[Term]:
    """The variables of the terms, in order of first use."""
    return [term for term in postorder(*roots) if term.op == "var"]


# -- variables and constants ----------------------------------------------------------------------------


def var(name: str, sort: Sort | Format) -> Term:
    """A variable; a format stands for its float sort."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not a name of a variable")
    return Term("var", FloatSort(sort) if isinstance(sort, Format) else sort, (), name)


def const(value: Float | bool) -> Term:
    """A float or Boolean constant."""
    if isinstance(value, bool):
        return Term("const", BOOL, (), value)
    if not isinstance(value, Float):
        raise UsageError(f"{value!r} is not a value: give a Float or a bool (fpsmt.floats.exactly makes Floats)")
    return Term("const", FloatSort(value.format), (), value)


def bits(width: int, value: int) -> Term:
    """A bit-vector constant, modulo 2^width."""
    if type(value) is not int:
        raise UsageError(f"{value!r} is not a whole number: bits are unsigned integers")
    return Term("const", BitsSort(width), (), value % (1 << width))


TRUE, FALSE = const(True), const(False)

# -- float operations -----------------------------------------------------------------------------------


def _floats(*terms: Term) -> None:
    for term in terms:
        _ = term.format


def _rounded(op: str, ctx: Context, *args: Term) -> Term:
    _floats(*args)
    return Term(op, FloatSort(ctx.format), args, ctx)


def add(ctx: Context, a: Term, b: Term) -> Term:
    """a ⊕ b."""
    return _rounded("add", ctx, a, b)


def sub(ctx: Context, a: Term, b: Term) -> Term:
    """a ⊖ b = a ⊕ (−b)."""
    return add(ctx, a, neg(b))


def mul(ctx: Context, a: Term, b: Term) -> Term:
    """a ⊗ b."""
    return _rounded("mul", ctx, a, b)


def fma(ctx: Context, a: Term, b: Term, c: Term) -> Term:
    """a·b + c rounded once."""
    return _rounded("fma", ctx, a, b, c)


def add_products(ctx: Context, a: Term, b: Term, c: Term, d: Term) -> Term:
    """a·b + c·d rounded once."""
    return _rounded("add_products", ctx, a, b, c, d)


def div(ctx: Context, a: Term, b: Term) -> Term:
    """a ⊘ b."""
    return _rounded("div", ctx, a, b)


def sqrt(ctx: Context, a: Term) -> Term:
    """√a rounded once."""
    return _rounded("sqrt", ctx, a)


def cast(ctx: Context, a: Term) -> Term:
    """a rounded once into ctx."""
    return _rounded("cast", ctx, a)


def neg(a: Term) -> Term:
    """Sign flipped; NaN and a single zero unchanged."""
    return Term("neg", FloatSort(a.format), (a,))


def absolute(a: Term) -> Term:
    """Sign cleared."""
    return Term("abs", FloatSort(a.format), (a,))


def apply(implementation: Implementation, ctx: Context, x: Term, site: str = "") -> Term:
    """An activation's output in ctx.format.

    Single-valued implementations are one function of x for the whole query (leave `site` empty);
    the others are free at each `site`.
    """
    _floats(x)
    if not isinstance(site, str):
        raise UsageError(f"a site is named by text, not by {site!r}")
    if site and implementation.single_valued:
        raise UsageError(f"{implementation.text} is single-valued: it cannot differ between sites")
    return Term("apply", FloatSort(ctx.format), (x,), (implementation, ctx, site))


def relu(x: Term) -> Term:
    """x where x > 0, NaN where x is NaN, else +0."""
    zero_ = const(Float(x.format, 0))
    return ite(lt(zero_, x), x, ite(is_nan(x), x, zero_) if x.format.has_nan else zero_)


def from_bits(fmt: Format, code: Term) -> Term:
    """The value with this code; every NaN code gives the one NaN."""
    if code.sort != BitsSort(fmt.bits):
        raise UsageError(f"a code of {fmt} has {fmt.bits} bits, not sort {code.sort}")
    return Term("from_bits", FloatSort(fmt), (code,))


# -- choices --------------------------------------------------------------------------------------------


def ite(condition: Term, a: Term, b: Term) -> Term:
    """a where the condition holds, else b; any one sort."""
    _bools(condition)
    if a.sort != b.sort:
        raise UsageError(f"the branches of ite have different sorts: {a.sort} and {b.sort}")
    return a if a is b else Term("ite", a.sort, (condition, a, b))


def choose(choice: Term, options: Sequence[Term]) -> Term:
    """options[choice]."""
    if not options or not isinstance(choice.sort, ChoiceSort) or choice.sort.size != len(options):
        raise UsageError(f"{len(options)} options cannot be chosen by sort {choice.sort}")
    if any(option.sort != options[0].sort for option in options):
        raise UsageError("the options of a choice must have one sort")
    return options[0] if len(set(options)) == 1 else Term("choose", options[0].sort, (choice, *options))


def choice_is(choice: Term, value: int) -> Term:
    """The choice has this value."""
    if not isinstance(choice.sort, ChoiceSort) or type(value) is not int or not 0 <= value < choice.sort.size:
        raise UsageError(f"{value} is not a value of sort {choice.sort}")
    return Term("choice_is", BOOL, (choice,), value)


# -- predicates -----------------------------------------------------------------------------------------


def _compare(op: str, a: Term, b: Term) -> Term:
    _floats(a, b)
    if a.format != b.format:
        raise UsageError(f"{op} compares values of one format, not {a.format} and {b.format}: cast one first")
    return Term(op, BOOL, (a, b))


def same(a: Term, b: Term) -> Term:
    """One and the same outcome: NaN is NaN, +0 is not −0.  Also for bits, choices and Booleans."""
    if isinstance(a.sort, FloatSort):
        return _compare("same", a, b)
    if a.sort != b.sort:
        raise UsageError(f"same compares one sort, not {a.sort} and {b.sort}")
    return Term("same", BOOL, (a, b))


def eq(a: Term, b: Term) -> Term:
    """IEEE equality: the zeros are equal, NaN equals nothing."""
    return _compare("eq", a, b)


def lt(a: Term, b: Term) -> Term:
    """a < b; false with NaN."""
    return _compare("lt", a, b)


def le(a: Term, b: Term) -> Term:
    """a ≤ b; false with NaN."""
    return _compare("le", a, b)


def _test(op: str, a: Term) -> Term:
    _floats(a)
    return Term(op, BOOL, (a,))


def is_nan(a: Term) -> Term:
    return _test("is_nan", a)


def is_infinite(a: Term) -> Term:
    return _test("is_infinite", a)


def is_finite(a: Term) -> Term:
    return _test("is_finite", a)


def is_zero(a: Term) -> Term:
    return _test("is_zero", a)


def is_negative(a: Term) -> Term:
    """The sign bit is set (true for −0, false for NaN)."""
    return _test("is_negative", a)


# -- Boolean connectives --------------------------------------------------------------------------------


def _bools(*terms: Term) -> None:
    for term in terms:
        if term.sort != BOOL:
            raise UsageError(f"{term.op} has sort {term.sort}; a Boolean is needed here")


def _connect(op: str, neutral: Term, absorbing: Term, parts: Iterable[Term]) -> Term:
    unique = tuple(dict.fromkeys(parts))
    _bools(*unique)
    if absorbing in unique:
        return absorbing
    unique = tuple(part for part in unique if part is not neutral)
    if not unique:
        return neutral
    return unique[0] if len(unique) == 1 else Term(op, BOOL, unique)


def all_of(*parts: Term) -> Term:
    """Conjunction; true when empty."""
    return _connect("and", TRUE, FALSE, parts)


def any_of(*parts: Term) -> Term:
    """Disjunction; false when empty."""
    return _connect("or", FALSE, TRUE, parts)


def negation(a: Term) -> Term:
    _bools(a)
    if a.op == "not":
        return a.args[0]
    if a.op == "const":
        return FALSE if a is TRUE else TRUE
    return Term("not", BOOL, (a,))


def implies(a: Term, b: Term) -> Term:
    return any_of(negation(a), b)


# -- bit vectors ----------------------------------------------------------------------------------------


def _width(term: Term) -> int:
    if not isinstance(term.sort, BitsSort):
        raise UsageError(f"{term.op} has sort {term.sort}; bits are needed here")
    return term.sort.width


def _same_width(op: str, a: Term, b: Term) -> int:
    if _width(a) != _width(b):
        raise UsageError(f"{op} needs one width, not {_width(a)} and {_width(b)}")
    return _width(a)


def bits_add(a: Term, b: Term) -> Term:
    return Term("bits_add", BitsSort(_same_width("bits_add", a, b)), (a, b))


def bits_sub(a: Term, b: Term) -> Term:
    return Term("bits_sub", BitsSort(_same_width("bits_sub", a, b)), (a, b))


def bits_less(a: Term, b: Term) -> Term:
    """a < b, unsigned."""
    _same_width("bits_less", a, b)
    return Term("bits_less", BOOL, (a, b))


def bits_and(a: Term, b: Term) -> Term:
    return Term("bits_and", BitsSort(_same_width("bits_and", a, b)), (a, b))


def shift_left(a: Term, b: Term) -> Term:
    """a·2^b modulo 2^width; 0 when b ≥ width."""
    return Term("shift_left", BitsSort(_same_width("shift_left", a, b)), (a, b))


def concat(*parts: Term) -> Term:
    """The parts side by side, the first on top."""
    if not parts:
        raise UsageError("nothing is put side by side: bit vectors have at least one bit")
    return Term("concat", BitsSort(sum(map(_width, parts))), parts)


def extract(a: Term, high: int, low: int) -> Term:
    """Bits high … low."""
    if type(high) is not int or type(low) is not int or not 0 <= low <= high < _width(a):
        raise UsageError(f"bits {high!r}…{low!r} are not within {_width(a)} bits")
    return Term("extract", BitsSort(high - low + 1), (a,), (high, low))
