"""A condition as a solver query: encoder, activation facts, script, and the reading of models."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from fpsmt.errors import InternalError, Unsupported, UsageError
from fpsmt.floats import Float, from_ordinal
from fpsmt.smt import facts as f
from fpsmt.smt import nodes as n
from fpsmt.smt.circuit import CircuitEncoder
from fpsmt.smt.encoder import Application, Encoder
from fpsmt.smt.fixed import FixedEncoder
from fpsmt.smt.native import NativeEncoder
from fpsmt.smt.nodes import Node
from fpsmt.terms import Assignment, Term, evaluate_all, postorder, same, var
from fpsmt.terms.evaluate import Value
from fpsmt.terms.terms import BOOL, FloatSort

EncoderName = Literal["auto", "native", "circuit", "fixed"]
ENCODERS: dict[str, type[Encoder]] = {e.name: e for e in (NativeEncoder, CircuitEncoder, FixedEncoder)}
SMALL_BITS = 8  #: formats up to this width go to the circuit: solvers have wrong answers on small float sorts


@dataclass
class Query:
    """Is there an assignment that makes the condition true?

    `refined` counts the facts about large activations added so far; without them the query asks a weaker
    question, whose ``unsat`` is final and whose ``sat`` has to be checked.
    """

    condition: Term
    encoder: Encoder
    root: Node
    abstract: Term
    application_facts: list[Node] = field(default_factory=list)
    lazy: frozenset[int] = frozenset()
    refined: int = 0
    _known: set[tuple[int, Float]] = field(default_factory=set)
    _knots: dict[int, list[Float]] = field(default_factory=dict)

    # -- the script ---------------------------------------------------------------------------------------

    @property
    def sorts(self) -> frozenset[tuple[int, int]]:
        """Float sorts that occur."""
        every = n.postorder(self.assertions)
        return frozenset(node.sort for node in every if isinstance(node.sort, tuple))

    @property
    def defined(self) -> Node:
        """Every operation has a value (false only where NaN arises in a format without NaN)."""
        return n.no(n.either(*self.encoder.undefined))

    @property
    def assertions(self) -> list[Node]:
        return [*self.encoder.side, *self.application_facts, self.defined, self.root]

    @property
    def shown(self) -> tuple[Node, ...]:
        """Symbols whose values make up a model."""
        variables = [variable.node for variable in self.encoder.variables.values()]
        return (*variables, *(application.output for application in self.encoder.applications))

    def text(self) -> str:
        """The SMT-LIB script."""
        return n.script(self.assertions, self.shown, self._comments())

    def undefined_text(self) -> str | None:
        """The script that asks for an assignment without a value, or None where every assignment has one."""
        if not self.encoder.undefined:
            return None
        side = [*self.encoder.side, *self.application_facts]
        return n.script([*side, n.either(*self.encoder.undefined)], self.shown, ["is some operation undefined?"])

    def _comments(self) -> list[str]:
        lines = [f"fpsmt, {self.encoder.name} encoding; floats are given by their codes"]
        for variable in self.encoder.variables.values():
            name = "".join(c if c.isprintable() else "?" for c in str(variable.name))
            lines.append(f"{variable.node.value}: {name}, {variable.sort}")
        for application in self.encoder.applications:
            lines.append(f"{application.output.value}: output of {application.implementation.text}")
        return [line.replace("\n", " ") for line in lines]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()

    def export(self, path: str | Path) -> None:
        """Writes the script, readable by any solver of SMT-LIB 2.6."""
        Path(path).write_text(self.text(), encoding="utf-8")

    # -- models -------------------------------------------------------------------------------------------

    def read(self, values: Mapping[str, int]) -> tuple[dict[str, Value], list[Float]]:
        """The variables' values by name, and the outputs of the applications, from bit patterns by symbol."""
        missing = [str(node.value) for node in self.shown if node.value not in values]
        if missing:
            raise InternalError(f"the solver's model has no value for {', '.join(missing[:3])}")
        found: dict[str, Value] = {}
        for variable in self.encoder.variables.values():
            raw = values[str(variable.node.value)]
            if isinstance(variable.sort, FloatSort):
                found[variable.name] = Float(variable.sort.format, raw)
            else:
                found[variable.name] = bool(raw) if variable.sort == BOOL else raw
        outputs = [
            Float(application.context.format, values[str(application.output.value)])
            for application in self.encoder.applications
        ]
        return found, outputs

    def inputs(self, values: Mapping[str, Value], outputs: list[Float]) -> tuple[bool, list[Float]]:
        """(the condition, the applications' inputs) when the applications take these outputs, allowed or not."""
        everything = {**values, **{_output_name(i): y for i, y in enumerate(outputs)}}
        found = evaluate_all(self.abstract, everything)
        truth = found[self.abstract.args[0]]
        points = [found[each.args[0]] for each in self.abstract.args[1:]]
        assert isinstance(truth, bool)
        return truth, points  # type: ignore[return-value]

    # -- refinement ---------------------------------------------------------------------------------------

    def knows(self, index: int, point: Float) -> bool:
        """Every fact about this application at this input is in the query."""
        return index not in self.lazy or (index, point) in self._known

    def refine(self, index: int, point: Float, output: Float) -> None:
        """Adds the certain facts that exclude this output of application `index` at and around a point."""
        if self.knows(index, point):
            return
        application = self.encoder.applications[index]
        for i in self._related(application):
            self._add_point(i, point)
        if point.is_finite and not point.is_zero and not output.is_nan:
            self._exclude(index, point, output)

    def _related(self, application: Application) -> list[int]:
        """Applications of one implementation in one context: what is true of one is true of all."""
        return [
            i
            for i, other in enumerate(self.encoder.applications)
            if i in self.lazy
            and other.implementation == application.implementation
            and other.context == application.context
            and other.input_format == application.input_format
        ]

    def _add_point(self, index: int, point: Float) -> None:
        if (index, point) in self._known:
            return
        self._known.add((index, point))
        application = self.encoder.applications[index]
        x, y = application.input, application.output
        self.application_facts.append(f.point_fact(x, y, application.implementation, application.context, point))
        self.refined += 1

    def _exclude(self, index: int, point: Float, output: Float) -> None:
        """Range facts on the widest known neighbourhood of the point that excludes the output, and beside it."""
        application = self.encoder.applications[index]
        fmt = application.input_format
        knots = self._knots[index]
        position = sum(f.place(knot) < f.place(point) for knot in knots)
        at_knot = position < len(knots) and knots[position] == point
        left, right = knots[max(position - 1, 0)], knots[min(position + at_knot, len(knots) - 1)]

        def excludes(ordinal: int) -> bool:
            ends = sorted((point, from_ordinal(fmt, ordinal)), key=f.place)
            allowed = f.known_range(application.implementation, application.context, ends[0], ends[1])
            return allowed is not None and not f.place(allowed[0]) <= f.place(output) <= f.place(allowed[1])

        low = _farthest(point.ordinal, left.ordinal, excludes)
        high = _farthest(point.ordinal, right.ordinal, excludes)
        new = {from_ordinal(fmt, ordinal) for ordinal in (low, point.ordinal, high)} | {point}
        row = sorted({left, right, *new}, key=f.place)
        for i in self._related(application):
            other = sorted({*self._knots[i], *new}, key=f.place)
            self._knots[i] = other
            for a, b in pairwise(row):
                self._range(i, a, b)

    def _range(self, index: int, low: Float, high: Float) -> None:
        application = self.encoder.applications[index]
        fact = f.range_fact(
            application.input, application.output, application.implementation, application.context, low, high
        )
        if fact is not n.TRUE:
            self.application_facts.append(fact)
            self.refined += 1

    def start_lazy(self, index: int) -> None:
        """The facts that a large activation starts with."""
        fmt = self.encoder.applications[index].input_format
        for point in f.special_points(fmt):
            self._add_point(index, point)
        knots = self._knots.setdefault(index, f.first_knots(fmt))
        for low, high in pairwise(knots):
            self._range(index, low, high)


def _output_name(index: int) -> str:
    return f"output of application {index}"


def _abstracted(condition: Term, applications: Iterable[Application]) -> Term:
    """The condition and, as x ≡ x, the applications' inputs x, with each application replaced by a variable."""
    order = {application.term: i for i, application in enumerate(applications)}
    new: dict[Term, Term] = {}
    for term in postorder(condition):
        if term.op == "apply":
            new[term] = var(_output_name(order[term]), term.format)
        else:
            new[term] = Term(term.op, term.sort, tuple(new[arg] for arg in term.args), term.data)
    inputs = [same(new[term.args[0]], new[term.args[0]]) for term in order]
    return Term("and", BOOL, (new[condition], *inputs))


def encode(condition: Term, encoder: EncoderName = "auto") -> Query:
    """The query for a Boolean term.

    ``auto`` takes SMT-LIB's floating-point theory when every format and context of the condition has a reliable
    counterpart there and is wider than 8 bits, else the bit-vector circuit.  ``native`` raises `Unsupported`
    with the reason where it declines, and so does ``fixed``, for floats on one grid.

    >>> from fpsmt.floats import context, float16
    >>> from fpsmt.terms import add, lt, var
    >>> x = var("x", float16)
    >>> print(encode(lt(add(context("float16"), x, x), x)).encoder.name)
    native
    """
    if condition.sort != BOOL:
        raise UsageError(f"a query needs a Boolean term, not one of sort {condition.sort}")
    if encoder == "auto":
        small = any(isinstance(t.sort, FloatSort) and t.sort.format.bits <= SMALL_BITS for t in postorder(condition))
        if not small:
            try:
                return _encode(condition, NativeEncoder())
            except Unsupported:
                pass
        encoder = "circuit"
    if encoder not in ENCODERS:
        raise UsageError(f"unknown encoder {encoder!r}: write auto, {', '.join(ENCODERS)}")
    return _encode(condition, ENCODERS[encoder]())


def _encode(condition: Term, encoder: Encoder) -> Query:
    root = encoder.encode(condition)
    lazy: list[int] = []
    facts: list[Node] = []
    applications = encoder.applications
    for index, application in enumerate(applications):
        table = f.runs(application.implementation, application.context, application.input_format)
        if table is None:
            lazy.append(index)
        else:
            out = application.context.format
            facts.append(f.table_fact(application.input, application.output, application.input_format, *table, out))
        for other in applications[:index]:
            facts += _related_facts(application, other)
    query = Query(condition, encoder, root, _abstracted(condition, applications), facts, frozenset(lazy))
    for index in lazy:
        query.start_lazy(index)
    return query


def _related_facts(a: Application, b: Application) -> list[Node]:
    """The same input at the same site gives the same output; monotone implementations keep order."""
    if (a.implementation, a.context, a.site, a.input_format) != (b.implementation, b.context, b.site, b.input_format):
        return []
    facts = [n.implies(n.equal(a.input, b.input), n.equal(a.output, b.output))]
    if a.implementation.monotone:
        out = a.context.format
        pair = (a.input, b.input), (a.output, b.output)
        facts.append(f.monotone_fact(*pair, a.implementation, a.input_format, out))
    return facts


def _farthest(start: int, end: int, good: Callable[[int], bool]) -> int:
    """The place farthest from start towards end that is good, by bisection (good near the start, bad beyond)."""
    if start == end or good(end):
        return end
    step = 1 if end > start else -1
    near, far = 0, abs(end - start)
    while far - near > 1:
        middle = (near + far) // 2
        if good(start + step * middle):
            near = middle
        else:
            far = middle
    return start + step * near


def assignment(query: Query, values: Mapping[str, Value], points: list[Float], outputs: list[Float]) -> Assignment:
    """The assignment with these outputs of the applications."""
    table = {
        (application.implementation.text, application.context, application.site, x): y
        for application, x, y in zip(query.encoder.applications, points, outputs)
    }
    return Assignment(dict(values), table)
