"""What an audit has seen so far: errors, range, order of neighbours, NaN and infinities; by blocks, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.engines.audit_errors import above, ball_bounds, below, bounds, error_bounds, exact_bounds, stands_for
from fpsmt.engines.audit_inputs import carriers
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Format, Overflow, exactly, from_ordinal, infinity, largest, pow2, read_number
from fpsmt.floats.vector import encode, ordinals
from fpsmt.functions import Function, range_on
from fpsmt.functions.arrays import roomy

Array = NDArray[Any]
CANDIDATES = 24  #: inputs with the largest errors that are kept, to be enclosed at the end


@dataclass
class Seen:
    """How often something was seen, first and last (in the order of the inputs) and at its worst: (x, y) in hex."""

    count: int = 0
    first: tuple[str, str] | None = None
    last: tuple[str, str] | None = None
    worst: tuple[str, str] | None = None
    size: float = 0.0

    def add(self, x: Array, y: Array, sizes: Array) -> None:
        if not x.size:
            return
        pairs = [(float(x[i]).hex(), float(y[i]).hex()) for i in (0, -1, int(np.argmax(sizes)))]
        self.count += int(x.size)
        self.first = self.first or pairs[0]
        self.last = pairs[1]
        if float(sizes.max()) > self.size or self.worst is None:
            self.worst, self.size = pairs[2], float(sizes.max())

    def to_json(self) -> dict[str, Any]:
        pairs = {k: getattr(self, k) for k in ("first", "last", "worst")}
        named = {k: None if v is None else {"x": v[0], "y": v[1]} for k, v in pairs.items()}
        return {"count": self.count, **named, "size": self.size.hex()}

    @staticmethod
    def from_json(data: Any) -> Seen:
        first, last, worst = (
            None if data[k] is None else (data[k]["x"], data[k]["y"]) for k in ("first", "last", "worst")
        )
        return Seen(int(data["count"]), first, last, worst, float.fromhex(data["size"]))


@dataclass
class Tally:
    """The state of an audit.

    `candidates`: (upper, lower bound of the error in ulps, x, y) of the largest errors, in hex; every other error is at
    most `others`.  `binades`: for each sign and exponent of the inputs the largest error in ulps and the largest
    absolute error, both from above, and how many inputs.  `nan`, `infinite`: results that are NaN (infinite) where the
    correctly rounded one is not, or the other way; `over`, `under`: beyond what correct rounding ever gives; `falls`:
    neighbouring inputs whose results are in the wrong order.
    """

    inputs: int = 0
    next: int | None = None
    candidates: list[tuple[float, float, str, str]] = field(default_factory=list)
    others: float = 0.0
    binades: dict[int, list[float]] = field(default_factory=dict)
    nan: Seen = field(default_factory=Seen)
    infinite: Seen = field(default_factory=Seen)
    over: Seen = field(default_factory=Seen)
    under: Seen = field(default_factory=Seen)
    falls: Seen = field(default_factory=Seen)
    previous: tuple[int, float] | None = None

    SEEN = ("nan", "infinite", "over", "under", "falls")

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "next": self.next,
            "candidates": [[up.hex(), down.hex(), x, y] for up, down, x, y in self.candidates],
            "others": self.others.hex(),
            "binades": {str(k): [v.hex() for v in row] for k, row in self.binades.items()},
            **{name: getattr(self, name).to_json() for name in self.SEEN},
            "previous": None if self.previous is None else [self.previous[0], self.previous[1].hex()],
        }

    @staticmethod
    def from_json(data: Any) -> Tally:
        try:
            read = float.fromhex
            return Tally(
                int(data["inputs"]),
                data["next"],
                [(read(up), read(down), str(x), str(y)) for up, down, x, y in data["candidates"]],
                read(data["others"]),
                {int(k): [read(v) for v in row] for k, row in data["binades"].items()},
                **{name: Seen.from_json(data[name]) for name in Tally.SEEN},
                previous=None if data["previous"] is None else (int(data["previous"][0]), read(data["previous"][1])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"the saved audit cannot be read: {error!r}") from None

    def keep(self, up: Array, down: Array, x: Array, y: Array) -> None:
        """Takes the largest of these errors among the candidates."""
        if not up.size:
            return
        floor = max([float(down.max()), *(c[1] for c in self.candidates)])
        chosen = np.flatnonzero(up >= floor)
        if chosen.size > CANDIDATES:
            order = chosen[np.argsort(-up[chosen], kind="stable")]
            chosen, dropped = order[:CANDIDATES], order[CANDIDATES:]
            self.others = max(self.others, float(up[dropped].max()))
        found = [(float(up[i]), float(down[i]), float(x[i]).hex(), float(y[i]).hex()) for i in chosen]
        merged = sorted([*self.candidates, *found], key=lambda c: -c[0])
        merged = [c for c in merged if c[0] >= floor]
        self.others = max([self.others, *(c[0] for c in merged[CANDIDATES:])])
        self.candidates = merged[:CANDIDATES]


@dataclass
class Measure:
    """Measures results against a real function; `tally` collects."""

    function: Function
    context: Context
    format: Format
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.cuts, self.jumps, self.inexact = _cuts(self.function, self.format)
        self.directions = np.array(self.function.directions or [2])
        self.lowest = None if self.function.lowest is None else float(self.function.lowest)
        self.range = self._range()

    def _range(self) -> tuple[Float, Float] | None:
        """The least and the greatest correctly rounded result on the whole line; None where there is none."""
        top = infinity(self.format) if self.format.has_infinity else largest(self.format)
        for end in (top, largest(self.format)):  # sine has no limit at infinity
            low = -end
            if self.function.lowest is not None:
                low = exactly(self.format, self.function.lowest)
            try:
                return range_on(self.function, self.context, low, end)
            except (UsageError, Unsupported):
                pass
        return None

    # -- one block ----------------------------------------------------------------------------------------

    def block(self, places: Array, y: Array) -> None:
        """Results at inputs given by their places, ascending."""
        x = carriers(self.format, places)
        self.values(x, y, places)
        self._falls(places, x, y)
        self.tally.inputs += int(x.size)
        self.tally.next = int(places[-1])

    def values(self, x: Array, y: Array, places: Array | None = None) -> None:
        """Errors and range of results, without looking at neighbours (so also for NaN and −0)."""
        with np.errstate(all="ignore"):
            self._errors(x, y, places)
        if self.range is not None:
            least, most = (float(v) for v in self.range)
            for seen, on, end in ((self.tally.over, y > most, most), (self.tally.under, y < least, least)):
                seen.add(x[on], y[on], np.abs(y[on] - end))

    def _errors(self, x: Array, y: Array, places: Array | None) -> None:
        ctx, tally = self.context, self.tally
        low, high = bounds(self.function, ctx, self.format, x)
        rough = roomy(self.format) and roomy(ctx.format)  # else there are no bounds, and all is left
        left = np.isnan(low) | (ctx.overflow is Overflow.NAN) | ctx.subnormals.inputs
        infinite = np.isinf(y)
        if ctx.overflow is Overflow.INFINITY and rough:
            for negative in (False, True):
                edge = stands_for(ctx, negative)[1]
                if edge is not None:
                    a, b = (-high, -low) if negative else (low, high)
                    left |= (a <= float(edge)) & (b >= float(edge))
                    infinite ^= (a > float(edge)) & ~(np.isinf(y) & (np.signbit(y) != negative))
        nowhere = np.isnan(x) if self.lowest is None else np.isnan(x) | (x < self.lowest)
        left &= ~nowhere
        if rough:
            down, up, far = error_bounds(ctx, y, low, high)
        else:
            down, up, far = ball_bounds(self.function, ctx, np.where(left, x, np.nan), y)
            left &= np.isnan(up)
        strange = np.isnan(y) != nowhere
        infinite &= ~nowhere & ~np.isnan(y)
        at = np.flatnonzero(left)
        for i, found in zip(at, exact_bounds(self.function, ctx, self.format, x[at], y[at])):
            strange[i], infinite[i] = found.mismatch == "nan", found.mismatch == "infinite"
            down[i], up[i], far[i] = below(found.low), above(found.high), above(found.absolute)
        tally.nan.add(x[strange], y[strange], np.zeros(int(strange.sum())))
        tally.infinite.add(x[infinite], y[infinite], np.zeros(int(infinite.sum())))
        good = ~strange & ~nowhere & ~np.isnan(up)
        tally.keep(up[good], down[good], x[good], y[good])
        if places is not None and good.any():
            self._by_binade(places[good], up[good], far[good])

    def _by_binade(self, places: Array, up: Array, far: Array) -> None:
        field = np.minimum(np.abs(places), self.format.largest_code) >> self.format.fraction_bits
        ids = np.where(places < 0, -field - 1, field)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(ids)) + 1])
        ups, fars = np.maximum.reduceat(up, starts), np.maximum.reduceat(far, starts)
        counts = np.diff(np.concatenate([starts, [len(ids)]]))
        for k, u, f, n in zip(ids[starts].tolist(), ups.tolist(), fars.tolist(), counts.tolist()):
            row = self.tally.binades.setdefault(k, [0.0, 0.0, 0.0])
            row[:] = max(row[0], u), max(row[1], f), row[2] + n

    def _falls(self, places: Array, x: Array, y: Array) -> None:
        if not self.function.directions:
            return
        previous = self.tally.previous
        self.tally.previous = (int(places[-1]), float(y[-1]))
        if previous is not None and previous[0] == places[0] - 1:
            places, y = np.concatenate([[previous[0]], places]), np.concatenate([[previous[1]], y])
            x = np.concatenate([carriers(self.format, places[:1]), x])
        at = places[:-1]
        direction = self.directions[np.searchsorted(self.cuts, at, side="right")]
        a, b = y[:-1], y[1:]
        wrong = np.where(direction > 0, b < a, np.where(direction < 0, b > a, (b != a) & ~np.isnan(a) & ~np.isnan(b)))
        wrong &= np.diff(places) == 1
        for cut, jump, inexact in zip(self.cuts, self.jumps, self.inexact):
            wrong &= ~((at == cut) & (jump or inexact)) & ~((at == cut - 1) & jump)
        if self.lowest is not None:
            wrong &= x[:-1] >= self.lowest
        if wrong.any():
            steps = np.abs(ordinals(self.context.format, b[wrong]) - ordinals(self.context.format, a[wrong]))
            self.tally.falls.add(x[:-1][wrong], a[wrong], steps.astype(float))


def _cuts(function: Function, fmt: Format) -> tuple[list[int], list[bool], list[bool]]:
    """Places of the greatest float ≤ each turning point; whether it is a jump; whether it lies between two floats."""
    places, jumps, inexact = [], [], []
    for point in function.turning:
        bits = fmt.precision + 8
        while True:
            low, high = point.enclosure(pow2(-bits))
            first, last = (_floor_place(fmt, v) for v in (low, high))
            if first == last:
                break
            bits *= 2
        places.append(first)
        jumps.append(bool(point.limits))
        inexact.append(not (low == high == from_ordinal(fmt, first).fraction))
    return places, jumps, inexact


def _floor_place(fmt: Format, v: Fraction) -> int:
    """The place of the greatest finite value ≤ v, by bisection."""
    low, high = -fmt.largest_code, fmt.largest_code
    while low < high:
        middle = (low + high + 1) // 2
        if from_ordinal(fmt, middle).fraction <= v:
            low = middle
        else:
            high = middle - 1
    return low


def code_of(fmt: Format, x: float) -> Float:
    """A carrier as a value."""
    return Float(fmt, int(encode(fmt, np.array([x]))[0]))


def read_pair(text: str, fmt: Format) -> Float:
    return exactly(fmt, read_number(text))
