"""What a deployed activation may return: contracts, and the implementation record that carries one.

An implementation I of a real function f maps floats to floats.  A contract says which results are allowed at each
input, as an interval of floats; `Implementation.allowed` computes it exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    Context,
    Float,
    Format,
    Mode,
    Overflow,
    Subnormals,
    floor_log2,
    format_named,
    from_ordinal,
    largest,
    pow2,
    round_real,
    zero,
)
from fpsmt.functions.enclosures import place
from fpsmt.functions.function import Function
from fpsmt.functions.refine import (
    Bounds,
    breakpoint_quantum,
    decide,
    nudged,
    read_input,
    refinements,
    special_value,
)
from fpsmt.functions.rounding import correctly_rounded

Interval = tuple[Float, Float]


class Contract(ABC):
    """Which results are allowed at an input."""

    @abstractmethod
    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        """The least and the largest allowed result (−0 below +0); NaN twice when only NaN is allowed."""

    def arrays(
        self, function: Function, ctx: Context, x: NDArray[Any], fmt: Format
    ) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """`allowed` on a flat array of carriers of `fmt`; None when the contract has no way of its own."""
        return None

    def offsets(
        self, function: Function, ctx: Context, low: Float, high: Float, slope: Fraction = Fraction(0)
    ) -> tuple[Fraction, Fraction] | None:
        """a ≤ b with a ≤ I(x) − slope·x ≤ b for every allowed result at the floats x of [low, high], all of which are
        numbers; None when the contract has no way of its own, or finds no bounds."""
        return None

    analysed = False  #: whether `error_on` may know something

    def error_on(self, function: Function, ctx: Context, low: Float, high: Float) -> Fraction | None:
        """At least |I(x) − f(x)| for every allowed result at the floats x of [low, high], all of which are numbers;
        None when the contract has no way of its own, or finds no bound."""
        return None

    @property
    @abstractmethod
    def text(self) -> str:
        """Short text, as `implementation_named` reads it; empty for correct rounding."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class CorrectlyRounded(Contract):
    """I(x) = ⌈f(x)⌋, one result."""

    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        y = correctly_rounded(function, ctx, x)
        return y, y

    @property
    def text(self) -> str:
        return ""

    def to_json(self) -> dict[str, Any]:
        return {"kind": "correctly-rounded"}


@dataclass(frozen=True)
class WithinFloats(Contract):
    """I(x) is at most `count` places from ⌈f(x)⌋ on the line of floats (both zeros are one place).

    ±inf is the place after ±Ω where the context overflows to infinity; elsewhere the line ends at ±Ω.  At an
    exactly infinite result (exp(+inf), log(0)) and at NaN nothing else is allowed.
    """

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise UsageError(f"floats={self.count}: the number of floats must be at least 0")

    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        y = correctly_rounded(function, ctx, x)
        if y.is_nan or isinstance(special_value(function, ctx, read_input(ctx, x)), Float):
            return y, y
        fmt = ctx.format
        top = fmt.largest_code + (ctx.overflow is Overflow.INFINITY)
        if y.is_infinite and ctx.overflow is not Overflow.INFINITY:
            return y, y
        low = from_ordinal(fmt, max(y.ordinal - self.count, -top))
        high = from_ordinal(fmt, min(y.ordinal + self.count, top))
        if self.count == 0:
            return y, y
        return zero(fmt, True) if low.is_zero else low, high

    @property
    def text(self) -> str:
        return f"floats={self.count}"

    def to_json(self) -> dict[str, Any]:
        return {"kind": "floats", "count": self.count}


class _Distance(Contract):
    """Results at most some distance from f(x)."""

    def distance(self, fmt: Format, b: Bounds) -> tuple[Fraction, Fraction] | None:
        """The distance for y near the low and near the high end; None when the bounds do not tell."""
        raise NotImplementedError

    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        nearest = correctly_rounded(function, ctx, x)
        x = read_input(ctx, x)
        special = special_value(function, ctx, x)
        if nearest.is_nan or isinstance(special, Float):
            return nearest, nearest
        low = decide(self._bounds(function, ctx, x, special), lambda b: self._end(ctx, b, -1))
        high = decide(self._bounds(function, ctx, x, special), lambda b: self._end(ctx, b, 1))
        return min(low, nearest, key=place), max(high, nearest, key=place)

    @staticmethod
    def _bounds(function: Function, ctx: Context, x: Float, limit: Fraction | None) -> Iterator[Bounds]:
        if limit is not None:
            return iter((Bounds(limit, limit),))
        return refinements(function, x.fraction, ctx.format)

    def _end(self, ctx: Context, b: Bounds, side: int) -> tuple[Float, Float]:
        """What the farthest allowed result on this side is for y at the low and at the high end of the bounds."""
        d = self.distance(ctx.format, b)
        if d is None:
            return zero(ctx.format), from_ordinal(ctx.format, 1)  # undecided
        q = Fraction(1, breakpoint_quantum(ctx.format).denominator)
        low = farthest(ctx, nudged(b.low + side * d[0], 1 if b.low_open else 0, q), side)
        if b.exact:
            return low, low
        return low, farthest(ctx, nudged(b.high + side * d[1], -1 if b.high_open else 0, q), side)


def farthest(ctx: Context, limit: Fraction, side: int) -> Float:
    """The largest float ≤ limit (side 1) or the smallest ≥ limit (side −1), as a possible result in the context.

    Beyond Ω: ±inf once the context rounds the limit to it, ±Ω before.  A zero is +0 as a largest, −0 as a
    smallest result.  Subnormals become zeros of their sign where outputs are flushed.
    """
    fmt = ctx.format
    if abs(limit) > fmt.largest and (limit > 0) == (side > 0):
        y = round_real(ctx, limit)
        return largest(fmt, limit < 0) if y.is_nan else y
    rule = Overflow.INFINITY if ctx.overflow is Overflow.INFINITY else Overflow.SATURATE
    inner = Context(fmt, Mode.RTN if side > 0 else Mode.RTP, rule, Subnormals.GRADUAL)
    y = round_real(inner, limit)
    if y.is_zero or (ctx.subnormals.outputs and y.is_subnormal):
        return zero(fmt, y.negative if y.is_subnormal else side < 0)
    return y


@dataclass(frozen=True)
class WithinUlps(_Distance):
    """|I(x) − f(x)| ≤ ulps·ulp(f(x)), with ulp(y) = 2^(max(⌊log₂|y|⌋, emin) − precision + 1) of the real y.

    The correctly rounded value is always allowed (for ulps ≥ ½ in the nearest modes it is within the distance
    anyway).  ±inf is allowed when f(x) ± ulps·ulp(f(x)) reaches the reals that overflow to it.  A zero within the
    distance is allowed with both signs.
    """

    ulps: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "ulps", Fraction(self.ulps))
        if self.ulps < 0:
            raise UsageError(f"ulps={self.ulps}: the number of ulps must be at least 0")

    def distance(self, fmt: Format, b: Bounds) -> tuple[Fraction, Fraction] | None:
        if b.beyond and self.ulps >= pow2(fmt.fraction_bits) - 1:
            raise Unsupported(
                f"{self.ulps} ulps reach from far beyond the largest {fmt} back into it; the most ulps that "
                f"make sense are {2**fmt.fraction_bits - 2}"
            )
        q = breakpoint_quantum(fmt)
        low, high = nudged(b.low, 1 if b.low_open else 0, q), nudged(b.high, -1 if b.high_open else 0, q)
        exponents = [max(floor_log2(abs(y)), fmt.emin) if y else fmt.emin for y in (low, high)]
        if exponents[0] != exponents[1] or (low < 0 < high and exponents[0] > fmt.emin):
            return None
        d = self.ulps * pow2(exponents[0] - fmt.fraction_bits)
        return d, d

    @property
    def text(self) -> str:
        return f"ulps={self.ulps}"

    def to_json(self) -> dict[str, Any]:
        return {"kind": "ulps", "ulps": str(self.ulps)}


@dataclass(frozen=True)
class WithinError(_Distance):
    """|I(x) − f(x)| ≤ error, absolute; otherwise as `WithinUlps`."""

    error: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", Fraction(self.error))
        if self.error < 0:
            raise UsageError(f"error={self.error}: the absolute error must be at least 0")

    def distance(self, fmt: Format, b: Bounds) -> tuple[Fraction, Fraction] | None:
        return self.error, self.error

    @property
    def text(self) -> str:
        return f"error={self.error}"

    def to_json(self) -> dict[str, Any]:
        return {"kind": "error", "error": str(self.error)}


@dataclass(frozen=True)
class Clamped(Contract):
    """A contract whose result is then clamped to the real interval [low, high]; None is unbounded.

    The bounds are rounded inwards to values of the format; NaN passes.
    """

    inner: Contract
    low: Fraction | None
    high: Fraction | None

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise UsageError(f"range={self.low}..{self.high} is empty")

    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        a, b = self.inner.allowed(function, ctx, x)
        if a.is_nan:
            return a, b
        return self._clamp(ctx, a), self._clamp(ctx, b)

    def _clamp(self, ctx: Context, y: Float) -> Float:
        plain = replace(ctx, subnormals=Subnormals.GRADUAL)
        if self.low is not None and ((y.is_infinite and y.negative) or (y.is_finite and y.fraction < self.low)):
            return round_real(plain.with_mode(Mode.RTP), self.low)
        if self.high is not None and ((y.is_infinite and not y.negative) or (y.is_finite and y.fraction > self.high)):
            return round_real(plain.with_mode(Mode.RTN), self.high)
        return y

    @property
    def text(self) -> str:
        ends = ("" if end is None else str(end) for end in (self.low, self.high))
        return ":".join(word for word in (self.inner.text, "range=" + "..".join(ends)) if word)

    def to_json(self) -> dict[str, Any]:
        ends = [None if end is None else str(end) for end in (self.low, self.high)]
        return {"kind": "range", "range": ends, "inner": self.inner.to_json()}


@dataclass(frozen=True)
class Table(Contract):
    """The results listed by input code: outputs[code] is a code of `output`; only for inputs of format `input`."""

    input: Format
    output: Format
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.input.bits > 16 or len(self.outputs) != 1 << self.input.bits:
            raise UsageError(
                f"a table for {self.input} needs one output for each of its 2^{self.input.bits} codes "
                f"(at most 2^16), not {len(self.outputs)}"
            )

    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        if x.format != self.input or ctx.format != self.output:
            raise UsageError(
                f"this table maps {self.input} to {self.output}; it says nothing about {x.format} to {ctx.format}"
            )
        y = Float(self.output, self.outputs[x.code])
        return y, y

    @property
    def text(self) -> str:
        return f"table({self.input}→{self.output})"

    def to_json(self) -> dict[str, Any]:
        return {"kind": "table", "input": self.input.name, "output": self.output.name, "outputs": list(self.outputs)}


@dataclass(frozen=True)
class Piece:
    """A contract for the inputs low ≤ x ≤ high; None is unbounded (and includes ±inf)."""

    low: Fraction | None
    high: Fraction | None
    contract: Contract

    def covers(self, x: Float) -> bool:
        if x.is_infinite:
            return (self.low if x.negative else self.high) is None
        return (self.low is None or self.low <= x.fraction) and (self.high is None or x.fraction <= self.high)


@dataclass(frozen=True)
class Piecewise(Contract):
    """The first piece that covers the input decides; NaN gives NaN; an uncovered input is a usage error."""

    pieces: tuple[Piece, ...]

    def allowed(self, function: Function, ctx: Context, x: Float) -> Interval:
        if x.is_nan:
            return CorrectlyRounded().allowed(function, ctx, x)
        for piece in self.pieces:
            if piece.covers(x):
                return piece.contract.allowed(function, ctx, x)
        raise UsageError(f"no piece of {self.text!r} covers the input {x}: add one without an interval at the end")

    @property
    def text(self) -> str:
        words = []
        for piece in self.pieces:
            ends = ["" if end is None else str(end) for end in (piece.low, piece.high)]
            words.append((piece.contract.text or "rounded") + (" on " + "..".join(ends) if any(ends) else ""))
        return "; ".join(words)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "piecewise",
            "pieces": [
                {
                    "on": [None if end is None else str(end) for end in (piece.low, piece.high)],
                    "contract": piece.contract.to_json(),
                }
                for piece in self.pieces
            ],
        }


#: Contracts that allow the correctly rounded value everywhere.
ALWAYS_ALLOW_ROUNDED = (CorrectlyRounded, WithinFloats, WithinUlps, WithinError)


@dataclass(frozen=True)
class Implementation:
    """A function, the contract of its implementation, and two promises.

    `single_valued`: the same input always gives the same output.  `monotone`: the implementation is monotone on
    every piece where the function is.  Both restrict which *combinations* of allowed results occur; `allowed` is
    about one input.
    """

    function: Function
    contract: Contract = CorrectlyRounded()
    single_valued: bool = True
    monotone: bool = False

    def allowed(self, ctx: Context, x: Float) -> Interval:
        """The least and the largest allowed result at x, values of ctx.format, −0 counting as below +0.

        Exact.  NaN twice when only NaN is allowed (NaN input, outside the domain, overflow to NaN).  At an exactly
        infinite result (exp(+inf), log(0)) only that infinity is allowed; a finite limit at ±inf is treated
        as the value there.  Where outputs are flushed the ends are flushed.

        >>> from fpsmt.floats import context, exactly, float32
        >>> from fpsmt.functions.implementation_text import implementation_named
        >>> low, high = implementation_named("tanh:ulps=2").allowed(context("float32"), exactly(float32, 0.5))
        >>> high.ordinal - low.ordinal
        3
        """
        return self.contract.allowed(self.function, ctx, x)

    def default(self, ctx: Context, x: Float) -> Float:
        """The correctly rounded value, or the allowed one nearest to it where the contract excludes it."""
        y = correctly_rounded(self.function, ctx, x)
        if isinstance(self.contract, ALWAYS_ALLOW_ROUNDED):
            return y
        low, high = self.allowed(ctx, x)
        if low.is_nan or y.is_nan:
            return low
        return min(max(y, low, key=place), high, key=place)

    def contains(self, ctx: Context, x: Float, y: Float) -> bool:
        """y is an allowed result at x."""
        if y.format != ctx.format:
            raise UsageError(f"a result in {ctx.format} is expected, not in {y.format}")
        low, high = self.allowed(ctx, x)
        if low.is_nan or y.is_nan:
            return low.is_nan and y.is_nan
        return place(low) <= place(y) <= place(high)

    @property
    def text(self) -> str:
        """Short text, e.g. ``tanh:ulps=2:monotone``."""
        words = [self.function.name, self.contract.text, "monotone" * self.monotone]
        return ":".join(word for word in (*words, "any-value" * (not self.single_valued)) if word)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `implementation_from_json` reads back."""
        return {
            "function": self.function.name,
            "contract": self.contract.to_json(),
            "single_valued": self.single_valued,
            "monotone": self.monotone,
        }

    def __str__(self) -> str:
        return self.text


#: Readers of contracts that other packages define, by kind (JSON) and by word (text, ``word(…)``); see `register`.
JSON_READERS: dict[str, Callable[[dict[str, Any]], Contract]] = {}
TEXT_READERS: dict[str, Callable[[str], Contract]] = {}


def register(
    kind: str, from_json: Callable[[dict[str, Any]], Contract], from_text: Callable[[str], Contract]
) -> None:
    """Makes contracts of this kind readable from JSON (`kind`) and from text, where they are written ``kind(…)``."""
    JSON_READERS[kind], TEXT_READERS[kind] = from_json, from_text


def contract_from_json(data: dict[str, Any]) -> Contract:
    """Reads what `Contract.to_json` wrote; `UsageError` on anything else."""
    try:
        match data["kind"]:
            case "correctly-rounded":
                return CorrectlyRounded()
            case "floats":
                return WithinFloats(int(data["count"]))
            case "ulps":
                return WithinUlps(Fraction(data["ulps"]))
            case "error":
                return WithinError(Fraction(data["error"]))
            case "range":
                return Clamped(contract_from_json(data["inner"]), *_ends(data["range"]))
            case "table":
                formats = format_named(data["input"]), format_named(data["output"])
                return Table(*formats, tuple(int(code) for code in data["outputs"]))
            case "piecewise":
                pieces = (Piece(*_ends(p["on"]), contract_from_json(p["contract"])) for p in data["pieces"])
                return Piecewise(tuple(pieces))
            case kind if kind in JSON_READERS:
                return JSON_READERS[kind](data)
            case kind:
                raise UsageError(f"unknown contract kind {kind!r} (programs are known once fpsmt.terms is imported)")
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"not a contract: {error!r} in {str(data)[:200]}") from error


def _ends(pair: list[str | None]) -> tuple[Fraction | None, Fraction | None]:
    low, high = (None if end is None else Fraction(end) for end in pair)
    return low, high
