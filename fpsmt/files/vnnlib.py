"""VNN-LIB queries, versions 1.0 and 2.0, as exact records: boxes of inputs and polytopes of unsafe outputs.

A query asks for inputs and outputs of the network that satisfy all assertions: such a pair is a counterexample to
safety.  Every number is an exact rational, and every arithmetic expression is evaluated exactly, whatever the element
type of its variables: only the network itself computes in floating point.  ``real`` (1.0: ``Real``) leaves the type to
the model.  ``!=`` means < or >, so that a NaN satisfies no comparison at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from pathlib import Path

from fpsmt.errors import UsageError
from fpsmt.files.limits import read_at_most
from fpsmt.files.sexpressions import MAX_BYTES, Atom, Expression, Group, parse, shown
from fpsmt.floats import read_number

MAX_CASES = 20_000  #: conjunctions of the disjunctive normal form
MAX_ROWS = 2_000_000  #: comparisons in all of them together
MAX_VARIABLES = 1_000_000
MAX_BITS = 6400  #: of a numerator or denominator; a quotient of two such can still be written in decimal
VERSIONS = ("1.0", "2.0")
TYPES = ("real", "float16", "float32", "float64", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
         "float8e5m2fnuz")  # fmt: skip
IGNORED = {"set-logic", "set-info", "set-option", "check-sat", "get-model", "exit"}

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OLD = re.compile(r"([XY])_([0-9]{1,7})")


@dataclass(frozen=True)
class Tensor:
    """A declared tensor; its elements are the variables start, start + 1, …, row-major."""

    name: str
    role: str  #: input, hidden or output
    type: str
    shape: tuple[int, ...]
    start: int
    onnx_name: str | None = None

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Declaration:
    """A declared network.  `same`: the network that it is equal to."""

    name: str
    tensors: tuple[Tensor, ...]
    same: str | None = None

    def of(self, role: str) -> list[Tensor]:
        return [t for t in self.tensors if t.role == role]


@dataclass(frozen=True)
class Row:
    """Σ coefficient·variable ≤ bound, or < when strict."""

    terms: tuple[tuple[int, Fraction], ...]
    bound: Fraction
    strict: bool


Case = tuple[Row, ...]  #: a conjunction


@dataclass(frozen=True)
class Specification:
    """A query: all rows of `base` and all those of one of the `cases` are to be satisfied."""

    version: str
    networks: tuple[Declaration, ...]
    base: Case
    cases: tuple[Case, ...]


def read_vnnlib(path: Path | str) -> Specification:
    """The query in a file.  Usage errors, one line with the number of the line: what is malformed, too large, or not
    supported (products of variables, hidden nodes, element types that are no floats)."""
    path = Path(path)
    try:
        text = read_at_most(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a VNN-LIB query: it is not text in UTF-8") from None
    return parse_vnnlib(text, str(path))


def parse_vnnlib(text: str, where: str = "query") -> Specification:
    """The query in a text; `where` names it in errors.

    >>> spec = parse_vnnlib("(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= X_0 1)) (assert (> Y_0 2))")
    >>> spec.version, len(spec.base), spec.base[1].bound, spec.base[1].strict
    ('1.0', 2, Fraction(-2, 1), True)
    """
    return _Reader(where).read(parse(text, where))


def _error(where: str, line: int, why: str) -> UsageError:
    return UsageError(f"{where}, line {line}: {why}")


def check_bits(x: Fraction) -> Fraction:
    """The number; a usage error when it is too long to work with."""
    if max(x.numerator.bit_length(), x.denominator.bit_length()) > MAX_BITS:
        raise UsageError(f"a number is too large, or needs too many digits: at most {MAX_BITS} bits are read")
    return x


@dataclass
class _Linear:
    """Σ coefficient·variable + constant."""

    terms: dict[int, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    def plus(self, other: _Linear, factor: Fraction) -> None:
        for variable, a in other.terms.items():
            self.terms[variable] = check_bits(self.terms.get(variable, Fraction(0)) + factor * a)
        self.constant = check_bits(self.constant + factor * other.constant)


class _Reader:
    """One file."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.version = "1.0"
        self.networks: list[Declaration] = []
        self.old: dict[str, dict[int, None]] = {"X": {}, "Y": {}}
        self.tensors: dict[str, Tensor] = {}
        self.count = 0
        self.base: list[Row] = []
        self.disjunctions: list[list[Case]] = []
        self.asserted = False

    def fail(self, at: Expression, why: str) -> UsageError:
        return _error(self.where, at.line, why)

    def read(self, expressions: list[Expression]) -> Specification:
        for command in expressions:
            if not isinstance(command, Group) or not command.head:
                raise self.fail(command, "expected a command such as (assert …)")
            self._command(command)
        if self.version == "1.0":
            self._finish_old(expressions)
        if not self.networks:
            raise _error(self.where, 1, "no network or variable is declared")
        cases = self._product()
        return Specification(self.version, tuple(self.networks), tuple(self.base), tuple(cases))

    def _command(self, command: Group) -> None:
        head = command.head
        if head == "vnnlib-version":
            text = command.items[1].text if len(command.items) == 2 and isinstance(command.items[1], Atom) else ""
            if not re.fullmatch(r"<2\.[0-9]{1,3}>", text):
                raise self.fail(command, f"version {shown(text) or '?'}: <2.0> and files without a version are read")
            self.version = text[1:-1]
        elif head in ("declare-const", "declare-fun"):
            self._declare_old(command)
        elif head == "declare-network":
            if self.version == "1.0":
                raise self.fail(command, "declare-network needs (vnnlib-version <2.0>) at the beginning of the file")
            self._declare_network(command)
        elif head == "assert":
            if len(command.items) != 2:
                raise self.fail(command, "an assertion is (assert FORMULA)")
            if self.version == "1.0" and not self.asserted:
                self._number_old(command)
            self.asserted = True
            self._assert(command.items[1])
        elif head not in IGNORED or self.version != "1.0":
            raise self.fail(command, f"unknown command {shown(head)!r}")

    # -- declarations -------------------------------------------------------------------------------------

    def _declare_old(self, command: Group) -> None:
        words = [item.text if isinstance(item, Atom) else "()" for item in command.items[1:]]
        if command.head == "declare-fun" and words[1:2] == ["()"]:
            words.pop(1)
        match = _OLD.fullmatch(words[0]) if len(words) == 2 else None
        if self.version != "1.0" or match is None or words[1] != "Real":
            raise self.fail(command, "a declaration is (declare-const X_0 Real) for an input, Y_0 for an output")
        if self.asserted:
            raise self.fail(command, "declarations come before assertions")
        kind, number = match[1], int(match[2])
        if number in self.old[kind]:
            raise self.fail(command, f"{words[0]} is declared twice")
        self.old[kind][number] = None

    def _number_old(self, at: Expression) -> None:
        tensors = []
        for kind, role in (("X", "input"), ("Y", "output")):
            numbers = self.old[kind]
            missing = next((k for k in range(len(numbers)) if k not in numbers), None)
            if not numbers or missing is not None:
                raise self.fail(at, f"{kind}_{missing or 0} is not declared: variables are numbered from 0")
            tensors.append(Tensor(kind, role, "real", (len(numbers),), self.count))
            self.count += len(numbers)
        self.tensors = {t.name: t for t in tensors}
        self.networks = [Declaration("", tuple(tensors))]

    def _finish_old(self, expressions: list[Expression]) -> None:
        if not self.networks and any(self.old.values()):
            self._number_old(expressions[-1])

    def _declare_network(self, command: Group) -> None:
        if self.asserted:
            raise self.fail(command, "networks are declared before the assertions")
        items = command.items[1:]
        if not items or not isinstance(items[0], Atom) or not _NAME.fullmatch(items[0].text):
            raise self.fail(command, "a network needs a name: (declare-network NAME (declare-input …) …)")
        name, same, tensors = items[0].text, None, list[Tensor]()
        if any(name == known.name for known in self.networks):
            raise self.fail(command, f"the network {shown(name)} is declared twice")
        for item in items[1:]:
            head = item.head if isinstance(item, Group) else ""
            if head in ("equal-to", "isomorphic-to"):
                assert isinstance(item, Group)
                other = item.items[1].text if len(item.items) == 2 and isinstance(item.items[1], Atom) else ""
                if other not in {known.name for known in self.networks}:
                    raise self.fail(item, f"{head} names {shown(other)!r}, which is no network declared before")
                same = other if head == "equal-to" else same
            elif head in ("declare-input", "declare-hidden", "declare-output"):
                assert isinstance(item, Group)
                tensors.append(self._tensor(item, head.removeprefix("declare-")))
            else:
                raise self.fail(item, "a network has declare-input, declare-output, equal-to and isomorphic-to")
        roles = [t.role for t in tensors]
        if roles != sorted(roles, key=["input", "hidden", "output"].index) or not {"input", "output"} <= set(roles):
            raise self.fail(command, "a network declares its inputs first, then its outputs, at least one of each")
        self.networks.append(Declaration(name, tuple(tensors), same))

    def _tensor(self, item: Group, role: str) -> Tensor:
        if role == "hidden":
            raise self.fail(item, "hidden nodes are not supported")
        words = [word.text if isinstance(word, Atom) else "(" for word in item.items[1:]]
        named = len(words) == 4 and words[3].startswith('"')
        if not (len(words) == 3 or named) or not _NAME.fullmatch(words[0]) or not words[2].startswith("["):
            raise self.fail(item, f"an {role} is (declare-{role} NAME TYPE [SHAPE]), and then its name in the model")
        name, kind = words[0], words[1].lower() if words[1] == "Real" else words[1]
        if kind not in TYPES:
            raise self.fail(item, f"the element type {shown(words[1])!r} is not supported: {', '.join(TYPES)} are")
        if name in self.tensors:
            raise self.fail(item, f"the variable {shown(name)} is declared twice")
        shape = self._index(item, words[2])
        if any(d < 1 for d in shape) or prod(shape) + self.count > MAX_VARIABLES:
            raise self.fail(item, f"the shape {words[2][:60]} has a dimension 0, or more than {MAX_VARIABLES} elements")
        made = Tensor(name, role, kind, shape, self.count, words[3][1:-1] if named else None)
        self.tensors[name] = made
        self.count += made.size
        return made

    def _index(self, at: Expression, text: str) -> tuple[int, ...]:
        inner = text[1:-1].strip()
        words = [w.strip() for w in inner.split(",")] if inner else []
        if len(words) > 16 or not all(re.fullmatch(r"[0-9]{1,9}", w) for w in words):
            raise self.fail(at, f"cannot read the index or shape {shown(text)}")
        return tuple(int(w) for w in words)

    # -- formulas -----------------------------------------------------------------------------------------

    def _assert(self, formula: Expression) -> None:
        """Conjunctions become rows of the base; what is left is a disjunction of cases."""
        todo = [formula]
        while todo:
            part = todo.pop()
            if isinstance(part, Group) and part.head == "and":
                todo += reversed(self._parts(part))
                continue
            cases = self._cases(part)
            if len(cases) == 1:
                self.base += cases[0]
            else:
                self.disjunctions.append(cases)

    def _parts(self, formula: Group) -> list[Expression]:
        if len(formula.items) < 2:
            raise self.fail(formula, f"({formula.head}) has no parts")
        return list(formula.items[1:])

    def _cases(self, formula: Expression) -> list[Case]:
        """The disjunctive normal form; formulas are at most `sexpressions.MAX_DEPTH` deep."""
        if not isinstance(formula, Group):
            raise self.fail(formula, f"expected a formula such as (<= X_0 1.0), not {shown(formula.text)!r}")
        if formula.head == "or":
            found, rows = list[Case](), 0
            for part in self._parts(formula):
                more = self._cases(part)
                found += more
                rows += sum(map(len, more))
                self._check(len(found), rows, formula)
            return found
        if formula.head == "and":
            found = [()]
            for part in self._parts(formula):
                found = self._joined(found, self._cases(part), formula)
            return found
        return self._comparison(formula)

    def _joined(self, one: list[Case], two: list[Case], at: Expression) -> list[Case]:
        rows = len(two) * sum(map(len, one)) + len(one) * sum(map(len, two))
        self._check(len(one) * len(two), rows, at)
        return [a + b for a in one for b in two]

    def _check(self, cases: int, rows: int, at: Expression) -> None:
        if cases > MAX_CASES or rows > MAX_ROWS:
            limits = f"{MAX_CASES} cases or {MAX_ROWS} comparisons"
            raise self.fail(at, f"the disjunctive normal form has more than {limits}")

    def _product(self) -> list[Case]:
        found: list[Case] = [()]
        for cases in self.disjunctions:
            found = self._joined(found, cases, Atom("", 1))
        return found

    def _comparison(self, formula: Group) -> list[Case]:
        signs = ["<=", "<", ">=", ">", "!=", "=="] + (["="] if self.version == "1.0" else [])
        items = self._with_indices(formula.items[1:])
        if formula.head not in signs or len(items) != 2:
            known = ", ".join([*signs, "and", "or"])
            raise self.fail(formula, f"({shown(formula.head) or '…'} …) is no formula: write {known} of two parts")
        left = _Linear()
        for item, sign in zip(items, (1, -1), strict=True):
            term = self._term(item)
            self._plus(formula, left, term, Fraction(sign))

        def row(sign: int, strict: bool) -> Case:
            terms = tuple((v, sign * a) for v, a in sorted(left.terms.items()) if a)
            bound = -sign * left.constant
            if not terms:
                return () if bound > 0 or (bound == 0 and not strict) else (Row((), Fraction(-1), False),)
            return (Row(terms, bound, strict),)

        match formula.head:
            case "<=" | "<":
                return [row(1, formula.head == "<")]
            case ">=" | ">":
                return [row(-1, formula.head == ">")]
            case "!=":
                return [row(1, True), row(-1, True)]
        return [row(1, False) + row(-1, False)]

    def _term(self, item: Group | tuple[Atom, Atom | None]) -> _Linear:
        return self._leaf(*item) if isinstance(item, tuple) else self._arithmetic(item)

    def _arithmetic(self, term: Group) -> _Linear:
        items = self._with_indices(term.items[1:])
        if term.head not in ("+", "-", "*", "/") or not items:
            raise self.fail(term, f"({shown(term.head) or '…'} …) is not a term: write +, - or * of terms")
        parts = [self._term(item) for item in items]
        made = _Linear()
        self._plus(term, made, parts[0], Fraction(-1 if term.head == "-" and len(parts) == 1 else 1))
        for item in parts[1:]:
            if term.head in ("+", "-"):
                self._plus(term, made, item, Fraction(1 if term.head == "+" else -1))
            elif term.head == "*" and not any(made.terms.values()):
                made, scaled = _Linear(), made.constant
                self._plus(term, made, item, scaled)
            elif any(item.terms.values()):
                raise self.fail(term, "a product or quotient of two variables is not supported")
            elif term.head == "/" and (item.constant == 0 or self.version != "1.0"):
                raise self.fail(term, "a division by 0, or one in version 2.0")
            else:
                before, made = made, _Linear()
                self._plus(term, made, before, item.constant if term.head == "*" else 1 / item.constant)
        return made

    def _plus(self, at: Expression, to: _Linear, other: _Linear, factor: Fraction) -> None:
        try:
            to.plus(other, factor)
        except UsageError as error:
            raise self.fail(at, str(error)) from None

    def _with_indices(self, items: Iterable[Expression]) -> list[Group | tuple[Atom, Atom | None]]:
        """Variables joined with the indices after them."""
        found: list[Group | tuple[Atom, Atom | None]] = []
        for item in items:
            last = found[-1] if found else None
            if isinstance(item, Atom) and item.text.startswith("["):
                if not isinstance(last, tuple) or last[1] is not None:
                    raise self.fail(item, f"the index {shown(item.text)} belongs to no variable")
                found[-1] = last[0], item
            else:
                found.append((item, None) if isinstance(item, Atom) else item)
        return found

    def _leaf(self, atom: Atom, index: Atom | None) -> _Linear:
        if _NUMBER.fullmatch(atom.text) and index is None:
            try:
                value = read_number(atom.text)
            except UsageError as error:
                raise self.fail(atom, str(error)) from None
            return _Linear({}, Fraction(0) if isinstance(value, float) else value)
        name, places = atom.text, () if index is None else self._index(atom, index.text)
        old = _OLD.fullmatch(name)
        if self.version == "1.0" and old and index is None and int(old[2]) in self.old[old[1]]:
            name, places = old[1], (int(old[2]),)
        tensor = self.tensors.get(name)
        if tensor is None:
            raise self.fail(atom, f"{shown(atom.text)!r} is neither a number nor a declared variable")
        if len(places) != len(tensor.shape) or any(k >= d for k, d in zip(places, tensor.shape)):
            raise self.fail(atom, f"{shown(name)} has shape {list(tensor.shape)}: there is no element {list(places)}")
        at = 0
        for k, d in zip(places, tensor.shape):
            at = at * d + k
        return _Linear({tensor.start + at: Fraction(1)})
