"""Conditions on an activation under which four layers represent every function (paper A, §A5 to §A7), as claims.

The exact text of the paper's Conditions 1 and 2 was not available.  This is a derived reading, with its windows as
parameters.  For an implementation I of an activation there are c₀, c₁, η with

* C0: |I(c₀)| ≤ `zero`: a neuron that is switched off;
* C1: |I(c₁)| in `one`: a usable constant, from which weights make every other one;
* C2: a separation point I(η⁻) ∉ {I(η), I(η⁺)} with η⁻, η, η⁺ in `point` and |I(η⁻)|, |I(η)|, |I(η⁺)| in `value`.

Condition 1 is this for the correctly rounded activation.  Condition 2 is it for every implementation within a
contract, such as K ulps: ∀ I ∃ c₀, c₁, η.  For C0 and C1 the order of the quantifiers does not matter, since what I
returns at one input does not restrict it at another; η depends on I.

*Default windows*, with p = precision − 1 and ε = 2^−p: `zero` = ε/4 (absorbed beside 1), `one` = [ε/2 + 2ε², 5/4 − 2ε]
(that of arXiv 2506.16065), `point` = (1, 3/2] (there every separation point tells every two inputs apart, see
`fpsmt.claims.steering`), `value` = [2^(emin+5), 2^(emax−6)] (room to scale without under- or overflow).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.claims.places import allowed_places, value_at
from fpsmt.claims.separation import Pattern
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, Mode, Overflow, Subnormals, context, from_ordinal, pow2, round_real
from fpsmt.functions import CorrectlyRounded, Implementation, Table, implementation_from_json

Pair = tuple[Fraction, Fraction]
PARTS = ("C0", "C1", "C2")
MOST_POINTS = 1 << 16  #: of a run that is visited one by one


@dataclass(frozen=True)
class Windows:
    """Where c₀, c₁ and η and their values may lie.  `point` bounds floats, the others bound absolute values."""

    zero: Fraction
    one: Pair
    point: Pair
    value: Pair

    def __post_init__(self) -> None:
        if self.zero < 0:
            raise UsageError(f"zero = {self.zero}: a bound of an absolute value is at least 0")
        for name in ("one", "point", "value"):
            low, high = getattr(self, name)
            if low > high or (name != "point" and low <= 0):
                raise UsageError(f"{name} = [{low}, {high}] is no window{'' if name == 'point' else ' above 0'}")

    def to_json(self) -> dict[str, Json]:
        pairs = {name: [str(end) for end in getattr(self, name)] for name in ("one", "point", "value")}
        return {"zero": str(self.zero), **pairs}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Windows:
        pairs = [tuple(Fraction(end) for end in data[name]) for name in ("one", "point", "value")]
        if any(len(pair) != 2 for pair in pairs):
            raise UsageError("a window is two numbers")
        return cls(Fraction(data["zero"]), *((pair[0], pair[1]) for pair in pairs))


def default_windows(fmt: Format) -> Windows:
    """The windows of the module's text for this format; a usage error where they are empty.

    >>> from fpsmt.floats import float8_e4m3
    >>> default_windows(float8_e4m3).value
    (Fraction(1, 2), Fraction(2, 1))
    """
    if fmt.emax >= 1 << 13:
        raise UsageError(f"{fmt} is too large for the default windows: they have ends of thousands of digits")
    eps = pow2(-fmt.fraction_bits)
    value = pow2(fmt.emin + 5), pow2(fmt.emax - 6)
    if value[0] > value[1] or fmt.fraction_bits < 2:
        raise UsageError(f"{fmt} is too small for the default windows: give some")
    return Windows(eps / 4, (eps / 2 + 2 * eps**2, Fraction(5, 4) - 2 * eps), (1 + eps, Fraction(3, 2)), value)


def window_places(fmt: Format, low: Fraction, high: Fraction) -> tuple[int, int]:
    """The places of the least finite float ≥ low and the greatest ≤ high; an empty interval when there is none."""
    beyond = fmt.largest_code + 1
    up, down = (Context(fmt, mode, Overflow.SATURATE, Subnormals.GRADUAL) for mode in (Mode.RTP, Mode.RTN))
    first = beyond if low > fmt.largest else round_real(up, low).ordinal
    last = -beyond if high < -fmt.largest else round_real(down, high).ordinal
    return first, last


def inside(fmt: Format, places: tuple[int, int], window: Pair) -> bool:
    """Every place of the interval is a number with an absolute value in the window, 0 ≤ low; and there is one."""
    low, high = window_places(fmt, *window)
    if window[0] == 0:
        return -high <= places[0] <= places[1] <= high
    return low <= places[0] <= places[1] <= high or -high <= places[0] <= places[1] <= -low


@claim_kind
@dataclass(frozen=True)
class Condition(Claim):
    """Condition 1 or 2: every implementation within the contract has c₀, c₁ and η in the windows."""

    kind = "condition"
    implementation: Implementation
    context: Context
    windows: Windows

    def __post_init__(self) -> None:
        if self.implementation.monotone or not self.implementation.single_valued:
            raise UsageError(f"{self.implementation.text}: implementations here are single-valued and promise no more")

    @property
    def single(self) -> bool:
        """There is one implementation only."""
        return isinstance(self.implementation.contract, CorrectlyRounded | Table)

    @property
    def text(self) -> str:
        f, w = ("σ" if self.single else "I"), self.windows
        prefix = "" if self.single else "∀ I "
        return (
            f"{prefix}∃ c₀, c₁, η: |{f}(c₀)| ≤ {w.zero}, |{f}(c₁)| ∈ {_shown(w.one)}, {f}(η⁻) ∉ {{{f}(η), {f}(η⁺)}}, "
            f"η⁻, η, η⁺ ∈ {_shown(w.point)} with values of size in {_shown(w.value)}; {f} = "
            f"{self.implementation.text} in {self.context}"
        )

    def fields(self) -> dict[str, Json]:
        return {
            "implementation": self.implementation.to_json(),
            "context": str(self.context),
            "windows": self.windows.to_json(),
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Condition:
        implementation = implementation_from_json(data["implementation"])
        return cls(implementation, context(data["context"]), Windows.from_json(data["windows"]))

    # -- what is asked of one input ---------------------------------------------------------------------------

    @property
    def run(self) -> tuple[int, int]:
        """The first and the last ordinal of the floats in the window for η⁻, η, η⁺."""
        return window_places(self.context.format, *self.windows.point)

    def allowed(self, x: Float) -> tuple[int, int]:
        """The places that I(x) may have."""
        return _allowed(self.implementation, self.context, x)

    def small(self, places: tuple[int, int]) -> bool:
        """C0 for these results."""
        return inside(self.context.format, places, (Fraction(0), self.windows.zero))

    def usable(self, places: tuple[int, int]) -> bool:
        """C1 for these results."""
        return inside(self.context.format, places, self.windows.one)

    def valued(self, places: tuple[int, int]) -> bool:
        """These results are in the window for values at a separation point."""
        return inside(self.context.format, places, self.windows.value)

    # -- refutation ---------------------------------------------------------------------------------------------

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """A proof that a part fails, unless the counterexample is an implementation on the whole run of C2."""
        part = counterexample["part"]
        return [] if part == "C2" and "segments" in counterexample else [PartFails(self, str(part))]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"part": …} with a proof; or an implementation without separation point in the window,
        {"part": "C2", "segments": [[first, last, turn, a, b], …]}: I is a up to the input `turn` and then alternates
        between b and a; outside the segments it leaves the window for values.
        """
        if "segments" not in counterexample:
            return PartFails(self, str(counterexample["part"])).replay({})
        fmt = self.context.format
        first, last = self.run
        if last - first >= MOST_POINTS:
            raise UsageError(f"the window for η holds {last - first + 1} floats: the limit is {MOST_POINTS}")
        values: dict[int, int] = {}
        for segment in counterexample["segments"]:
            low, high, turn = (read_value(fmt, end).ordinal for end in segment[:3])
            a, b = (read_value(fmt, y).ordinal for y in segment[3:])
            for k in range(max(low, first), min(high, last) + 1):
                values[k] = Pattern(turn, a, b).at(k)
        good, lines = True, [f"I = {self.implementation.text}, η⁻, η, η⁺ ∈ {_shown(self.windows.point)}"]
        for k in range(first, last + 1):
            low, high = self.allowed(from_ordinal(fmt, k))
            good &= low <= high and (low <= values[k] <= high if k in values else not self.valued((low, high)))
        for k in range(first, last - 1):
            if k in values and k + 1 in values and k + 2 in values:
                good &= values[k] in (values[k + 1], values[k + 2])
        for segment in counterexample["segments"][:8]:
            a_text, b_text = (read_value(fmt, y) for y in segment[3:])
            lines.append(f"on [{segment[0]}, {segment[1]}]: I(x) = {a_text}, after {segment[2]} also {b_text}")
        lines.append(f"I is {'' if good else 'not '}within the contract and without separation point in the window")
        return Replay(good, tuple(lines))


@lru_cache(maxsize=1 << 18)
def _allowed(implementation: Implementation, ctx: Context, x: Float) -> tuple[int, int]:
    return allowed_places(implementation, ctx, x)


def _shown(window: Pair) -> str:
    return "[" + ", ".join(_number(end) for end in window) + "]"


def _number(x: Fraction) -> str:
    d = x.denominator
    if d & (d - 1) == 0 and d > 1 << 12:
        k = d.bit_length() - 1
        whole = (x.numerator + (1 << (k - 1))) >> k
        rest = x - whole
        if rest.numerator in (1, -1) and whole:
            return f"{whole} {'+' if rest > 0 else '−'} 2^-{rest.denominator.bit_length() - 1}"
        return f"{x.numerator}·2^-{k}" if x.numerator != 1 else f"2^-{k}"
    if x.denominator == 1 and x.numerator > 1 << 12 and x.numerator & (x.numerator - 1) == 0:
        return f"2^{x.numerator.bit_length() - 1}"
    return str(x)


@claim_kind
@dataclass(frozen=True)
class PartFails(Claim):
    """Some implementation within the contract has no c₀ (part C0), no c₁ (C1) or no η (C2)."""

    kind = "condition-part-fails"
    condition: Condition
    part: str

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise UsageError(f"unknown part {self.part!r}: write one of {', '.join(PARTS)}")

    @property
    def text(self) -> str:
        f = "σ" if self.condition.single else "I"
        prefix = "" if self.condition.single else "∃ I "
        windows = self.condition.windows
        what = {"C0": f"∀ c₀: |{f}(c₀)| > {windows.zero}",
                "C1": f"∀ c₁: |{f}(c₁)| ∉ {_shown(windows.one)}",
                "C2": f"no separation point in {_shown(windows.point)} with values in the window"}  # fmt: skip
        return f"{prefix}{what[self.part]}; {f} = {self.condition.implementation.text} in {self.condition.context}"

    def fields(self) -> dict[str, Json]:
        return {"condition": self.condition.fields(), "part": self.part}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> PartFails:
        return cls(Condition.from_fields(data["condition"]), data["part"])

    def replay(self, counterexample: Json) -> Replay:
        """Executes the part at powers of two: can I avoid the window there?  What refutes a condition is the proof."""
        condition, fmt = self.condition, self.condition.context.format
        places = [0]
        for e in range(-8, 9):
            if fmt.emin <= e <= fmt.emax:
                place = (e + fmt.bias) << fmt.fraction_bits
                places += [place, -place]
        lines, avoided = [], True
        for x in (from_ordinal(fmt, k) for k in sorted(places)):
            low, high = condition.allowed(x)
            if self.part != "C2":
                avoided &= not (condition.small if self.part == "C0" else condition.usable)((low, high))
            y, z = value_at(fmt, low), value_at(fmt, high)
            lines.append(f"x = {x}: {y}" + ("" if low == high else f" … {z}"))
        return Replay(avoided, tuple(lines))
