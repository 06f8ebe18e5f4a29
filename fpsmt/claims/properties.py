"""Claims about a network's outputs on boxes of inputs under every execution: no output is in an unsafe set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any

from fpsmt.claims.claim import Json, Replay, claim_kind
from fpsmt.claims.network_runs import (
    OfNetwork,
    check_executions,
    executed_from_json,
    executions_from_json,
    executions_to_json,
    network_records,
    network_text,
    outputs_to_json,
    schedules_to_json,
)
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, Mode, Overflow, Subnormals, round_real
from fpsmt.networks.interpreter import ActivationOutputs, Executions, Schedules
from fpsmt.networks.networks import Network

Row = tuple[tuple[int, Fraction], ...]  #: (output, coefficient) pairs, outputs increasing, no coefficient 0
Box = tuple[tuple[Fraction, Fraction], ...]  #: (low, high) of each input, ends included

MOST_SHOWN = 12  #: inputs or outputs of a counterexample in its lines


@dataclass(frozen=True)
class Polytope:
    """The outputs y with Σ a·yⱼ ≤ rhs[k] for every row k, or < where strict[k].

    *Special values.*  A row is compared with its negative terms moved to the other side: Σ_{a>0} a·yⱼ ≤ rhs +
    Σ_{a<0} |a|·yⱼ, in exact rationals extended by ±inf.  So y₁ − y₀ ≤ 0 says what the comparison y₁ ≤ y₀ of IEEE 754
    says, also of two infinities.  A row with a NaN among its outputs, or with both infinities on one side, is false.
    The two zeros are one number.  A polytope without rows holds every output, NaN included.
    """

    rows: tuple[Row, ...]
    rhs: tuple[Fraction, ...]
    strict: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not self.strict:
            object.__setattr__(self, "strict", (False,) * len(self.rows))
        if not len(self.rows) == len(self.rhs) == len(self.strict):
            raise UsageError(f"{len(self.rows)} rows, {len(self.rhs)} bounds and {len(self.strict)} strictness flags")
        for row in self.rows:
            places = [j for j, _ in row]
            if any(a == 0 for _, a in row) or places != sorted(set(places)) or (places and places[0] < 0):
                raise UsageError(f"the row {row} should name outputs in order, once each, with nonzero coefficients")

    @staticmethod
    def of(rows: Iterable[tuple[Mapping[int, Fraction | int], Fraction | int, bool]]) -> Polytope:
        """From rows ({output: coefficient}, bound, strict).

        >>> Polytope.of([({1: 1, 0: -1}, 0, False)]).text
        'y1 - y0 <= 0'
        """
        made = [(tuple((j, Fraction(a)) for j, a in sorted(row.items()) if a), Fraction(b), s) for row, b, s in rows]
        return Polytope(tuple(r for r, _, _ in made), tuple(b for _, b, _ in made), tuple(s for _, _, s in made))

    def contains(self, outputs: Sequence[Float]) -> bool:
        """Whether these outputs satisfy every row, decided exactly."""
        return all(_satisfied(row, b, s, outputs) for row, b, s in zip(self.rows, self.rhs, self.strict, strict=True))

    def holds(self, numbers: Sequence[Fraction]) -> bool:
        """Whether these real numbers satisfy every row."""
        for row, bound, strict in zip(self.rows, self.rhs, self.strict, strict=True):
            total = sum((a * numbers[j] for j, a in row), Fraction(0))
            if total > bound or (strict and total == bound):
                return False
        return True

    def holds_between(self, low: Sequence[float], high: Sequence[float]) -> bool:
        """Whether all numbers y with low ≤ y ≤ high satisfy every row; False where a bound that is needed is infinite.

        Each row is largest at the ends that its signs choose.
        """
        for row, bound, strict in zip(self.rows, self.rhs, self.strict, strict=True):
            ends = [high[j] if a > 0 else low[j] for j, a in row]
            if not all(map(isfinite, ends)):
                return False
            most = sum((a * Fraction(end) for (_, a), end in zip(row, ends, strict=True)), Fraction(0))
            if most > bound or (strict and most == bound):
                return False
        return True

    @property
    def outputs(self) -> frozenset[int]:
        """The outputs that some row names."""
        return frozenset(j for row in self.rows for j, _ in row)

    @property
    def text(self) -> str:
        """The rows, joined by ``and``."""
        rows = zip(self.rows, self.rhs, self.strict, strict=True)
        return " and ".join(_row_text(*row) for row in rows) or "anything"


def _row_text(row: Row, bound: Fraction, strict: bool) -> str:
    sign = "<" if strict else "<="
    if row and all(a < 0 for _, a in row):
        row, bound, sign = tuple((j, -a) for j, a in row), -bound, sign.replace("<", ">")
    words: list[str] = []
    for j, a in sorted(row, key=lambda term: -term[1]):  # positive terms first
        factor = "" if abs(a) == 1 else f"{abs(a)}·"
        words.append(f"{'- ' if a < 0 else '+ ' if words else ''}{factor}y{j}")
    return f"{' '.join(words) or '0'} {sign} {bound}"


def _satisfied(row: Row, bound: Fraction, strict: bool, outputs: Sequence[Float]) -> bool:
    if any(outputs[j].is_nan for j, _ in row):
        return False
    left = _extended([(a, outputs[j]) for j, a in row if a > 0], Fraction(0))
    right = _extended([(-a, outputs[j]) for j, a in row if a < 0], bound)
    if left is None or right is None:
        return False
    return left < right or (left == right and not strict)


def _extended(terms: list[tuple[Fraction, Float]], start: Fraction) -> tuple[int, Fraction] | None:
    """start + Σ a·y with a > 0 as (−1, 0, 1 for −inf, a number, +inf; the number), ordered as such; None: inf − inf."""
    infinite = {-1 if y.negative else 1 for _, y in terms if y.is_infinite}
    if len(infinite) > 1:
        return None
    if infinite:
        return infinite.pop(), Fraction(0)
    return 0, sum((a * y.fraction for a, y in terms), start)


@dataclass(frozen=True)
class Query:
    """A closed box of inputs and the unsafe outputs there: those in any of the polytopes."""

    box: Box
    unsafe: tuple[Polytope, ...]

    def has_input(self, inputs: Sequence[Float]) -> bool:
        """Whether these are finite numbers in the box, ends included, decided exactly."""
        return all(
            x.is_finite and low <= x.fraction <= high for x, (low, high) in zip(inputs, self.box, strict=True)
        )

    def unsafe_at(self, outputs: Sequence[Float]) -> int | None:
        """The first polytope that holds these outputs, or None."""
        return next((k for k, polytope in enumerate(self.unsafe) if polytope.contains(outputs)), None)

    def floats(self, fmt: Format) -> tuple[tuple[Float, Float], ...] | None:
        """The least and greatest value of the format in each side of the box, or None when a side has none.

        The values between these ends, and no others, are in the box; an end 0 stands for both zeros.
        """
        ends = [values_between(fmt, low, high) for low, high in self.box]
        return None if None in ends else tuple(pair for pair in ends if pair is not None)


def values_between(fmt: Format, low: Fraction, high: Fraction) -> tuple[Float, Float] | None:
    """The least finite value ≥ low and the greatest finite value ≤ high; None when no value is between.

    >>> from fpsmt.floats import float16
    >>> values_between(float16, Fraction(1, 3), Fraction(1, 2))
    (<float16 0.33349609375 = 0x1.558p-2 = 0x3556>, <float16 0.5 = 0x1p-1 = 0x3800>)
    >>> values_between(float16, Fraction(1, 10), Fraction(1, 10)) is None
    True
    """
    up, down = (
        round_real(Context(fmt, mode, Overflow.SATURATE, Subnormals.GRADUAL), end)
        for mode, end in ((Mode.RTP, low), (Mode.RTN, high))
    )
    if up.fraction < low or down.fraction > high or up.fraction > down.fraction:
        return None
    return up, down


@dataclass(frozen=True)
class Property:
    """Queries, any of which makes an execution unsafe.  None at all: nothing is unsafe."""

    queries: tuple[Query, ...]

    def to_json(self) -> Json:
        """Rationals as text, ``p/q``."""
        return [
            {
                "box": [[str(low), str(high)] for low, high in q.box],
                "unsafe": [
                    [{"row": [[j, str(a)] for j, a in row], "rhs": str(b), "strict": s}
                     for row, b, s in zip(p.rows, p.rhs, p.strict, strict=True)]
                    for p in q.unsafe
                ],
            }
            for q in self.queries
        ]  # fmt: skip

    @staticmethod
    def from_json(data: Json) -> Property:
        """Reads `to_json`."""
        queries = []
        for q in data:
            unsafe = []
            for rows in q["unsafe"]:
                for r in rows:
                    if not isinstance(r["strict"], bool):
                        raise UsageError(f"strict is true or false, not {r['strict']!r:.100}")
                made = tuple(tuple((int(j), rational(a)) for j, a in r["row"]) for r in rows)
                rhs = tuple(rational(r["rhs"]) for r in rows)
                unsafe.append(Polytope(made, rhs, tuple(r["strict"] for r in rows)))
            queries.append(Query(tuple((rational(a), rational(b)) for a, b in q["box"]), tuple(unsafe)))
        return Property(tuple(queries))


def rational(text: Any) -> Fraction:
    """Reads ``p/q``."""
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]+(/[0-9]*[1-9][0-9]*)?", text):
        raise UsageError(f"{str(text)[:60]!r} is not a rational number p/q")
    return Fraction(text)


@claim_kind
@dataclass(frozen=True, eq=False)
class Safe(OfNetwork):
    """For each query, every input of the network's format in the box and every allowed execution: the outputs are in
    none of the query's unsafe polytopes.

    *Inputs* are the finite values of the input's format whose exact value is in the closed box, both zeros where 0
    is.  *Executions*: every order, fusing, place of the bias (`executions`: one for all affine nodes, or one for each
    by name), and every result that the contracts of the activations allow.  *Outputs* that are infinite or NaN: see
    `Polytope`; a NaN satisfies no comparison, so an execution with a NaN output is unsafe only where the rows do not
    look at it.  The network has one input and one output.
    """

    kind = "outputs-safe"
    network: Network
    executions: Executions
    safety: Property

    def __post_init__(self) -> None:
        inputs, output = self.network.input.size, self.network.output
        outputs = self.network.sizes[output.name]
        for k, query in enumerate(self.safety.queries):
            if len(query.box) != inputs:
                raise UsageError(f"query {k} has a box of {len(query.box)} sides, and the network {inputs} inputs")
            for polytope in query.unsafe:
                if beyond := sorted(j for j in polytope.outputs if j >= outputs):
                    raise UsageError(f"query {k} names output {beyond[0]}, and the network has {outputs}")
        check_executions(self.network, self.executions)

    @cached_property
    def _records(self) -> list[Any]:
        return [network_records(self.network), self.safety, self.executions]

    @property
    def text(self) -> str:
        queries = self.safety.queries
        sets = sum(len(q.unsafe) for q in queries)
        boxes = "1 box" if len(queries) == 1 else f"{len(queries)} boxes"
        unsafe = "1 polytope" if sets == 1 else f"{sets} polytopes"
        fmt = self.network.input.format
        where = f"∀ x of {fmt} in {boxes}, ∀ executions s: N(x; s) is in no unsafe set ({unsafe} in all)"
        return f"{where}; {network_text(self.network, self.executions)}"

    def fields(self) -> dict[str, Json]:
        return {
            "network": self.network.to_json(),
            "executions": executions_to_json(self.executions),
            "property": self.safety.to_json(),
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Safe:
        return cls(
            Network.from_json(data["network"]),
            executions_from_json(data["executions"]),
            Property.from_json(data["property"]),
        )

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: an input and an execution, as `executed_from_json` reads them.

        Violates when the input is in the box of a query and the outputs of this execution, computed by the reference
        interpreter, are in one of its unsafe polytopes; both are decided in exact rationals.
        """
        x, y = executed_from_json(self.network, self.executions, counterexample, "a property")
        met = [
            (k, p)
            for k, query in enumerate(self.safety.queries)
            if query.has_input(x) and (p := query.unsafe_at(y)) is not None
        ]
        lines = [f"inputs {shown(x)}", f"outputs {shown(y)}"]
        if met:
            k, p = met[0]
            unsafe = self.safety.queries[k].unsafe[p].text
            lines.append(f"the input is in the box of query {k}, and the outputs are unsafe: {_short(unsafe)}")
        elif any(query.has_input(x) for query in self.safety.queries):
            lines.append("the outputs are in no unsafe set of a query whose box has the input")
        else:
            lines.append("the input is in no box")
        return Replay(bool(met), tuple(lines), {
            "query": met[0][0] if met else None, "unsafe": met[0][1] if met else None,
            "input": [v.hex for v in x], "outputs": [v.hex for v in y],
        })  # fmt: skip


def safe_counterexample(
    inputs: Sequence[Float], schedules: Schedules | None = None, outputs: ActivationOutputs | None = None
) -> dict[str, Json]:
    """The JSON form of a counterexample to a `Safe`."""
    data: dict[str, Json] = {"input": [x.hex for x in inputs], "schedules": schedules_to_json(schedules or {})}
    if outputs:
        data["outputs"] = outputs_to_json(outputs)
    return data


def shown(values: Sequence[Float]) -> str:
    """The first of some values."""
    more = f", … ({len(values)})" if len(values) > MOST_SHOWN else ""
    return ", ".join(map(repr, values[:MOST_SHOWN])) + more


def _short(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[: most - 2] + " …"
