"""Separation points (paper A, §A4): η with σ(η⁻) ∉ {σ(η), σ(η⁺)}, for one implementation or for all within a contract.

The points lie on a *run* of consecutive finite floats; the two zeros are one.  Results are compared as numbers, NaN
is a result like the others (`fpsmt.claims.places`).  An implementation is single-valued: any function within the
contract.

*Without a separation point.*  Let s₀, …, sₙ be the results on a run.  There is no separation point inside exactly when
sᵢ ∈ {sᵢ₊₁, sᵢ₊₂} for all i ≤ n − 2.  If sᵢ ≠ sᵢ₊₁ for such an i, then sᵢ = sᵢ₊₂ ≠ sᵢ₊₁, and the same holds of i + 1: so
the sequence is constant up to some place k and strictly alternates between two values after it (or changes only in its
last step, which is the same).  Conversely such sequences have none.  Hence three different values on a run force one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.claims.places import Places, allowed_places, value_at
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, context, from_ordinal
from fpsmt.functions import Implementation, implementation_from_json

FEW = 512  #: places at which a table is executed by reference


@dataclass(frozen=True)
class Run:
    """The consecutive finite floats from low to high, and what may be executed on them."""

    implementation: Implementation
    context: Context
    low: Float
    high: Float

    def __post_init__(self) -> None:
        fmt = self.context.format
        if self.low.format != fmt or self.high.format != fmt:
            raise UsageError(f"the run's ends must be values of {fmt}")
        if not (self.low.is_finite and self.high.is_finite and self.low.ordinal < self.high.ordinal):
            raise UsageError(f"[{self.low}, {self.high}] is not a run of finite values with two ends")
        if not self.implementation.single_valued or self.implementation.monotone:
            raise UsageError(
                f"separation points are those of single-valued implementations without further promises: write "
                f"{self.implementation.function.name} with a contract alone (what holds for all of them holds for the "
                "monotone ones)"
            )

    def __str__(self) -> str:
        return f"{self.implementation.text} on [{self.low}, {self.high}] in {self.context}"

    def __len__(self) -> int:
        return self.high.ordinal - self.low.ordinal + 1

    def at(self, place: int) -> Float:
        return from_ordinal(self.context.format, place)

    def allowed(self, place: int) -> tuple[int, int]:
        """The least and the greatest allowed place at a place, by reference."""
        return allowed_places(self.implementation, self.context, self.at(place))

    def is_point(self, place: int) -> bool:
        """Is the float at this place, inside the run, a separation point of every implementation?  By reference."""
        (low, high), *others = (self.allowed(p) for p in (place - 1, place, place + 1))
        return all(max(low, low2) > min(high, high2) for low2, high2 in others)

    def to_json(self) -> dict[str, Json]:
        ends = {"low": self.low.hex, "high": self.high.hex}
        return {"implementation": self.implementation.to_json(), "context": str(self.context), **ends}


def run_from_json(data: Mapping[str, Json]) -> Run:
    ctx = context(data["context"])
    low, high = (read_value(ctx.format, data[end]) for end in ("low", "high"))
    return Run(implementation_from_json(data["implementation"]), ctx, low, high)


@claim_kind
@dataclass(frozen=True)
class SeparationPoints(Claim):
    """The separation points of every implementation, inside the run, are exactly these: places [first, last],
    ascending.

    η is one of every implementation exactly when the set allowed at η⁻ meets neither the one at η nor the one at η⁺:
    where it meets one of them, some implementation gives equal results at both.
    """

    kind = "separation-points"
    run: Run
    places: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        last = self.run.low.ordinal
        for first, end in self.places:
            if not last < first <= end < self.run.high.ordinal:
                raise UsageError("the separation points are listed as ascending ranges of places inside the run")
            last = end + 1

    @property
    def count(self) -> int:
        return sum(end - first + 1 for first, end in self.places)

    @property
    def text(self) -> str:
        return f"{{η : ∀ I, I(η⁻) ∉ {{I(η), I(η⁺)}}}} has {self.count} elements, as listed ({self.run})"

    def fields(self) -> dict[str, Json]:
        return {"run": self.run.to_json(), "places": [list(pair) for pair in self.places]}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SeparationPoints:
        return cls(run_from_json(data["run"]), tuple((int(a), int(b)) for a, b in data["places"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"eta": hex}, a separation point that is not listed, or a float listed that is none."""
        eta = read_value(self.run.context.format, counterexample["eta"]).ordinal
        _inside(self.run, eta)
        listed = any(first <= eta <= end for first, end in self.places)
        return Replay(self.run.is_point(eta) != listed, _lines(self.run, eta), {"listed": listed})


@claim_kind
@dataclass(frozen=True)
class SeparationCount(Claim):
    """Every implementation has these many separation points in common, inside the run."""

    kind = "separation-count"
    run: Run
    count: int

    @property
    def text(self) -> str:
        return f"|{{η : ∀ I, I(η⁻) ∉ {{I(η), I(η⁺)}}}}| = {self.count} ({self.run})"

    def fields(self) -> dict[str, Json]:
        return {"run": self.run.to_json(), "count": self.count}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SeparationCount:
        return cls(run_from_json(data["run"]), int(data["count"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {}; the run is counted by reference, where it is short."""
        if len(self.run) > FEW:
            raise UsageError(f"{len(self.run)} floats are too many to count by reference")
        found = sum(self.run.is_point(place) for place in range(self.run.low.ordinal + 1, self.run.high.ordinal))
        return Replay(found != self.count, (f"{found} separation points",), {"count": found})


@dataclass(frozen=True)
class Pattern:
    """Results on a run: `first` up to the place `last`, then `second`, `first`, `second`, … in turn (as places)."""

    last: int
    first: int
    second: int

    def at(self, place: int) -> int:
        return self.first if place <= self.last or (place - self.last) % 2 == 0 else self.second

    def between(self, low: int, high: int) -> Places:
        """The results at the places low…high."""
        at = np.arange(low, high + 1) - self.last
        return np.where((at <= 0) | (at % 2 == 0), self.first, self.second)

    def to_json(self) -> dict[str, Json]:
        return {"last": self.last, "first": self.first, "second": self.second}


def pattern_from_json(data: Mapping[str, Json]) -> Pattern:
    return Pattern(*(int(data[name]) for name in ("last", "first", "second")))


@claim_kind
@dataclass(frozen=True)
class Compliant(Claim):
    """The implementation with this pattern of results is within the contract on the run."""

    kind = "compliant"
    run: Run
    pattern: Pattern

    @property
    def text(self) -> str:
        fmt, p = self.run.context.format, self.pattern
        first, second, last = value_at(fmt, p.first), value_at(fmt, p.second), self.run.at(p.last)
        then = f", then {second} and {first} in turn" if p.last < self.run.high.ordinal else ""
        return f"I = {first} up to {last}{then} is allowed ({self.run})"

    def fields(self) -> dict[str, Json]:
        return {"run": self.run.to_json(), "pattern": self.pattern.to_json()}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Compliant:
        return cls(run_from_json(data["run"]), pattern_from_json(data["pattern"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"x": hex}, where the result is not allowed."""
        x = read_value(self.run.context.format, counterexample["x"])
        low, high = self.run.allowed(x.ordinal)
        inside = self.run.low.ordinal <= x.ordinal <= self.run.high.ordinal
        wrong = not low <= self.pattern.at(x.ordinal) <= high
        return Replay(inside and wrong, (_allowed_line(self.run, x.ordinal),), {"x": x.hex})


@claim_kind
@dataclass(frozen=True)
class AlwaysSeparates(Claim):
    """Every implementation has a separation point inside the run; which one may depend on the implementation."""

    kind = "always-separates"
    run: Run

    @property
    def text(self) -> str:
        return f"∀ I ∃ η: I(η⁻) ∉ {{I(η), I(η⁺)}} ({self.run})"

    def fields(self) -> dict[str, Json]:
        return {"run": self.run.to_json()}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> AlwaysSeparates:
        return cls(run_from_json(data["run"]))

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """Refuting needs a proof that the implementation is within the contract everywhere."""
        return [Compliant(self.run, pattern_from_json(counterexample))]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: a pattern {"last", "first", "second"}.  Looks for separation points in all of it, and
        executes it by reference at no more than `FEW` places: the ends, those about `last`, and others evenly
        between.
        """
        pattern, run = pattern_from_json(counterexample), self.run
        low, high = run.low.ordinal, run.high.ordinal
        s = pattern.between(low, high)
        points = int(((s[:-2] != s[1:-1]) & (s[:-2] != s[2:])).sum())
        step = max(1, len(s) // (FEW // 2))
        near = range(max(low, pattern.last - 8), min(high, pattern.last + 8) + 1)
        places = sorted({low, high, *near, *range(low, high + 1, step)})
        wrong = [p for p in places if not run.allowed(p)[0] <= pattern.at(p) <= run.allowed(p)[1]]
        shown = sorted({low, *range(max(low, pattern.last - 1), min(high, pattern.last + 3) + 1), high})
        lines = [f"{_allowed_line(run, p)}; the implementation gives {value_at(run.context.format, pattern.at(p))}"
                 for p in shown]  # fmt: skip
        lines.append(f"{points} separation points; executed at {len(places)} of {len(s)} floats")
        return Replay(not points and not wrong, tuple(lines), {"executed": len(places)})


def _allowed_line(run: Run, place: int) -> str:
    low, high = (value_at(run.context.format, p) for p in run.allowed(place))
    return f"at {run.at(place)}: {low} to {high}" if low != high else f"at {run.at(place)}: {low}"


def _lines(run: Run, eta: int) -> tuple[str, ...]:
    return tuple(_allowed_line(run, p) for p in (eta - 1, eta, eta + 1))


def _inside(run: Run, place: int) -> None:
    if not run.low.ordinal < place < run.high.ordinal:
        raise UsageError(f"{run.at(place)} is not inside the run")
