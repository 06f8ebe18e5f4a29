"""How far apart the results of one sum are, as a line: what can be reached, the exact sum, named orders, a sample.

The line goes from the least to the greatest result.  It is, and says that it is, one of

* ``every result``, when the set of outcomes is known: a tick for each;
* ``exact extremes``: both ends are reached, and what is between them is not known;
* ``a bracket``: bounds for every schedule (thin), and between them the results that a search reached (thick).

The histogram is a sample of random schedules: it shows what is common, and bounds nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any, Literal

from fpsmt.display.outline import fraction_text
from fpsmt.display.tables import cut
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, context
from fpsmt.kernel import Verdict
from fpsmt.networks.brackets import Bracket, bracket
from fpsmt.networks.executions import Execution
from fpsmt.networks.numpy_sums import ACCUMULATORS, numpy_sum_execution
from fpsmt.networks.orders import LEFT_TO_RIGHT, PAIRWISE, Order, given
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.packed import PackedSum
from fpsmt.networks.trees import Tree, left_fold

MOST_ADDITIONS = 50_000  #: that are run for a sample
MOST_TERMS = 10_000  #: of a sum whose named orders are run
BARS = " ▁▂▃▄▅▆▇█"

Kind = Literal["every result", "exact extremes", "a bracket"]


@dataclass(frozen=True)
class Mark:
    """The result of one named order.  `allowed`: the sum's execution allows it."""

    name: str
    value: Float
    allowed: bool


@dataclass(frozen=True)
class SpreadView:
    """The results of a sum along a line, for terminals and notebooks; `svg` is the drawing alone.

    `low` and `high` are the least and the greatest result that is not NaN (None where there is none), of a bracket the
    bounds; `reached`, of a bracket, what was reached.  `nan`: ``yes``, ``no`` or ``possible``.  `exact` is the real
    sum of the terms, None when these are not finite or too many.  `sample` has the results of random schedules.
    """

    text: str
    kind: Kind
    outcomes: tuple[Float, ...]
    low: Float | None
    high: Float | None
    reached: tuple[Float | None, Float | None]
    nan: str
    exact: Fraction | None
    marks: tuple[Mark, ...]
    sample: tuple[Float, ...]

    # -- the line -----------------------------------------------------------------------------------------

    def _finite(self) -> Iterator[Fraction]:
        ends = (self.low, self.high, *self.reached)
        for value in (*self.outcomes, *ends, *(mark.value for mark in self.marks), *self.sample):
            if value is not None and value.is_finite:
                yield value.fraction
        if self.exact is not None:
            yield self.exact

    def place(self, x: Float | Fraction | None, span: tuple[Fraction, Fraction]) -> float | None:
        """Where a number is on the line, from 0 to 1; None for what is not finite."""
        if x is None or (isinstance(x, Float) and not x.is_finite):
            return None
        value = x.fraction if isinstance(x, Float) else x
        low, high = span
        return 0.5 if low == high else float((value - low) / (high - low))

    @property
    def span(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest finite number that is shown."""
        values = list(self._finite())
        return (min(values), max(values)) if values else (Fraction(0), Fraction(0))

    def bars(self, span: tuple[Fraction, Fraction], bins: int) -> list[int]:
        """How many results of the sample are in each of equally wide bins."""
        counts = [0] * bins
        for value in self.sample:
            at = self.place(value, span)
            if at is not None:
                counts[min(int(at * bins), bins - 1)] += 1
        return counts

    @property
    def heading(self) -> str:
        """What the line is, in words."""
        low, high = _word(self.low), _word(self.high)
        nan = {"yes": ", and NaN", "possible": ", NaN is possible"}.get(self.nan, "")
        if self.kind == "every result":
            if len(self.outcomes) == 1:
                return f"every result: {self.outcomes[0].decimal} only"
            return f"every result: {len(self.outcomes)} from {low} to {high}{nan}"
        if self.kind == "exact extremes":
            return f"exact extremes: from {low} to {high}{nan}; what is between is not known"
        found = f"[{_word(self.reached[0])}, {_word(self.reached[1])}]"
        return f"a bracket: every result is in [{low}, {high}]{nan}; reached {found}"

    @property
    def sample_label(self) -> str:
        infinite = sum(not value.is_finite for value in self.sample)
        more = f", {infinite} not finite" if infinite else ""
        return f"a sample: {len(self.sample)} random schedules{more}"

    # -- text ---------------------------------------------------------------------------------------------

    def lines(self, width: int | None = None) -> list[str]:
        """The plot as text, within the width (of the terminal)."""
        rows: list[tuple[str, str, str]] = []
        names = [mark.name for mark in self.marks]
        values = [mark.value.decimal for mark in self.marks]
        real = "" if self.exact is None else fraction_text(self.exact)
        label = max(map(len, ["exact real sum", *names]))
        width = width or shutil.get_terminal_size().columns
        room = width - label - max(map(len, ["", real, *values])) - 8
        columns = max(16, min(room, 100))
        span = self.span
        if self.sample:
            counts = self.bars(span, columns)
            most = max(max(counts), 1)
            bars = "".join(BARS[-(-count * (len(BARS) - 1) // most)] for count in counts)
            rows.append(("sample", bars, ""))
        rows.append(("results", self._axis(span, columns), ""))
        if self.exact is not None:
            rows.append(("exact real sum", _dot(self.place(self.exact, span), columns, "^"), real))
        for mark, name, value in zip(self.marks, names, values, strict=True):
            symbol = "*" if mark.allowed else "o"
            rows.append((name, _dot(self.place(mark.value, span), columns, symbol), value))
        drawn = [f"  {name:<{label}}  {plot}  {value}".rstrip() for name, plot, value in rows]
        notes = [f"  {self.sample_label}"] if self.sample else []
        if any(not mark.allowed for mark in self.marks):
            notes.append("  o: not among the allowed schedules")
        return [self.heading, f"  {cut(self.text, width - 2)}", *drawn, *notes]

    def _axis(self, span: tuple[Fraction, Fraction], columns: int) -> str:
        cells = [" "] * columns

        def draw(a: Float | None, b: Float | None, line: str, ends: str) -> None:
            start, stop = self.place(a, span), self.place(b, span)
            first = 0 if start is None else round(start * (columns - 1))
            last = columns - 1 if stop is None else round(stop * (columns - 1))
            cells[first : last + 1] = line * (last + 1 - first)
            cells[first], cells[last] = ends[0] if start is not None else "<", ends[1] if stop is not None else ">"

        if self.low is None or self.high is None:
            return "".join(cells)
        if self.kind == "a bracket":
            draw(self.low, self.high, ".", "()")
            if all(end is not None for end in self.reached):
                draw(*self.reached, "=", "[]")
        else:
            draw(self.low, self.high, "-" if self.outcomes else "=", "||" if self.outcomes else "[]")
        for value in self.outcomes:
            at = self.place(value, span)
            if at is not None:
                cells[round(at * (columns - 1))] = "|"
        return "".join(cells)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    # -- SVG ----------------------------------------------------------------------------------------------

    @property
    def svg(self) -> str:
        """One SVG element: the sample above the line, the exact sum across it, named orders below.

        Ticks, dots and bars have tooltips.  Hollow dots are orders that the sum's execution does not allow.
        """
        from fpsmt.display.spread_svg import draw

        return draw(self)

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}</div>"


def _word(value: Float | None) -> str:
    return "none" if value is None else value.decimal


def _dot(place: float | None, columns: int, symbol: str) -> str:
    if place is None:
        return " " * columns
    at = round(place * (columns - 1))
    return " " * at + symbol + " " * (columns - 1 - at)


# -- what is shown --------------------------------------------------------------------------------------------


def spread(result: Sum | Verdict | Bracket, samples: int = 1000, seed: int = 0) -> SpreadView:
    """The spread of a sum: of its proved outcomes or extremes, of a bracket, or of a sum itself (its outcomes, else
    extremes, else a bracket, are computed now; that may take minutes).

    `samples`: how many random schedules are run at most, fewer of long sums, none of very long ones.

    >>> from fpsmt.floats import exactly, float16
    >>> terms = tuple(exactly(float16, v) for v in (2048, 1, 1, 3))
    >>> view = spread(Sum(context("float16"), terms), samples=0)
    >>> print("\\n".join(view.lines(width=70)))
    every result: 2 from 2052.0 to 2054.0
      2048.0 + 1.0 + 1.0 + 3.0 in float16, any
      results                |---------------------------------|
      exact real sum                          ^                   2053
      left to right          *                                    2052.0
      pairwise               *                                    2052.0
      smallest |x| first     *                                    2052.0
      largest |x| first      *                                    2052.0
      numpy.sum, in float32  o                                    2052.0
      o: not among the allowed schedules
    """
    if isinstance(result, Sum):
        result = _solved(result)
    if isinstance(result, Bracket):
        return _of_bracket(result, samples, seed)
    return _of_verdict(result, samples, seed)


def _solved(problem: Sum) -> Verdict | Bracket:
    from fpsmt.engines.extremes import extremes
    from fpsmt.engines.sums import outcomes

    for solve in (outcomes, extremes):
        try:
            return solve(problem)
        except Unsupported:
            continue
    return bracket(PackedSum.pack(problem))


def _of_verdict(verdict: Verdict, samples: int, seed: int) -> SpreadView:
    from fpsmt.claims import SumExtremes, SumOutcomes
    from fpsmt.kernel import Proved

    claim = verdict.claim
    if not isinstance(verdict, Proved) or not isinstance(claim, SumOutcomes | SumExtremes):
        raise UsageError(f"spread shows proved outcomes or extremes, not {verdict.name}: {claim.text}")
    if isinstance(claim, SumOutcomes):
        values = claim.outcomes
        numbers = [v for v in values if not v.is_nan]
        low, high = (numbers[0], numbers[-1]) if numbers else (None, None)
        nan = "yes" if len(numbers) < len(values) else "no"
        shown = SpreadView("", "every result", values, low, high, (None, None), nan, None, (), ())
        return _with_runs(shown, claim.problem, samples, seed)
    boxed = claim.problem
    if not boxed.fixed:
        raise UsageError("spread shows sums of fixed terms: this one has terms in boxes")
    problem = Sum(boxed.context, boxed.terms, boxed.bias, boxed.execution)  # type: ignore[arg-type]
    nan = "yes" if claim.nan_reachable else "no"
    shown = SpreadView("", "exact extremes", (), claim.low, claim.high, (None, None), nan, None, (), ())
    return _with_runs(shown, problem, samples, seed)


def _of_bracket(found: Bracket, samples: int, seed: int) -> SpreadView:
    outer = found.outer
    nan = "yes" if found.found.nan else "possible" if outer.nan else "no"
    reached = found.reached_low, found.reached_high
    shown = SpreadView(found.problem.text, "a bracket", (), outer.low, outer.high, reached, nan, None, (), ())
    if found.problem.n > MOST_TERMS:
        return shown
    return _with_runs(shown, found.problem.unpack(), samples, seed)


def _with_runs(view: SpreadView, problem: Sum, samples: int, seed: int) -> SpreadView:
    return replace(
        view,
        text=problem.text,
        exact=exact_sum(problem),
        marks=tuple(named_orders(problem)),
        sample=tuple(sample(problem, samples, seed)),
    )


def exact_sum(problem: Sum) -> Fraction | None:
    """The real sum of the terms and the bias, without any rounding; None unless all of them are finite."""
    terms: list[Any] = [t if isinstance(t, tuple) else (t,) for t in problem.terms]
    terms += [] if problem.bias is None else [(problem.bias,)]
    if not all(x.is_finite for term in terms for x in term):
        return None
    total = Fraction(0)
    for term in terms:
        total += term[0].fraction * (term[1].fraction if len(term) == 2 else 1)
    return total


def sample(problem: Sum, samples: int, seed: int = 0) -> Iterator[Float]:
    """The results of random schedules that the execution allows (`Execution.random_schedule`)."""
    rng = Random(seed)
    count = min(samples, MOST_ADDITIONS // max(problem.n, 1)) if problem.n <= MOST_TERMS else 0
    for _ in range(count):
        tree = problem.execution.random_schedule(problem.n, rng, problem.bias is not None, problem.is_dot)
        yield problem.evaluate(tree)


def named_orders(problem: Sum) -> Iterator[Mark]:
    """The results of orders that people use, with the sum's own fusing, accumulator and place of the bias; and of
    numpy's sum, for plain sums in a format that numpy has."""
    runs: dict[Execution, str] = {}
    sizes = [_size(term) for term in problem.terms]
    ascending = sorted(range(problem.n), key=lambda i: sizes[i])
    named: list[tuple[str, Order]] = [("left to right", LEFT_TO_RIGHT), ("pairwise", PAIRWISE)]
    if problem.n > 1:
        named.append(("smallest |x| first", given(left_fold(ascending))))
        named.append(("largest |x| first", given(left_fold(ascending[::-1]))))
    for name, order in named:
        how = replace(problem.execution, order=order)
        runs[how] = f"{runs[how]}, {name}" if how in runs else name
    ctx = problem.context
    if not problem.is_dot and problem.bias is None and ctx.format in ACCUMULATORS and ctx == context(ctx.format):
        how = numpy_sum_execution(ctx.format, (problem.n,))
        plain = replace(problem.execution, order=PAIRWISE, fma="never", products=None, bias="last")
        known = replace(problem.execution, order=PAIRWISE) if how == plain else how
        runs[known] = f"{runs[known]} (numpy.sum)" if known in runs else "numpy.sum, in " + str(how.sum_context(ctx))
    for how, name in runs.items():
        mark = _mark(problem, name, how)
        if mark is not None:
            yield mark


def _size(term: Float | tuple[Float, Float]) -> tuple[int, Fraction]:
    """A key to sort terms by absolute value, infinities and NaN last."""
    parts = term if isinstance(term, tuple) else (term,)
    size = Fraction(1)
    for x in parts:
        if not x.is_finite:
            return 1, Fraction(0)
        size *= abs(x.fraction)
    return 0, size


def _mark(problem: Sum, name: str, how: Execution) -> Mark | None:
    try:
        tree: Tree = how.default_schedule(problem.n, problem.bias is not None, problem.is_dot)
    except UsageError:  # a tree for n terms, where the bias is one of n + 1
        return None
    value = replace(problem, execution=how).evaluate(tree)
    own = problem.execution
    same = how.sum_context(problem.context) == own.sum_context(problem.context)
    return Mark(name, value, same and problem.allows(tree))
