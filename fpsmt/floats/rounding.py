"""Rounding contexts: format + rounding mode + overflow rule + subnormal rule.  No hidden defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from fpsmt.errors import UsageError
from fpsmt.floats.formats import Format, format_named


class Mode(Enum):
    """The five IEEE 754 rounding directions, under their SMT-LIB names."""

    RNE = "RNE"  #: nearest, ties to even
    RNA = "RNA"  #: nearest, ties away from zero
    RTP = "RTP"  #: towards +infinity
    RTN = "RTN"  #: towards −infinity
    RTZ = "RTZ"  #: towards zero

    @property
    def nearest(self) -> bool:
        """To the nearest value, whatever becomes of ties."""
        return self in (Mode.RNE, Mode.RNA)


class Overflow(Enum):
    """What becomes of a finite result beyond Ω.

    `INFINITY` is IEEE 754: ±inf, or ±Ω in the directed modes that stop there.  `SATURATE` is ±Ω always;
    `NAN` is NaN always.  In a format without infinities an exactly infinite result (division by zero,
    a cast of inf) follows the same rule; in a format with infinities it stays infinite.
    """

    INFINITY = "infinity"
    SATURATE = "saturate"
    NAN = "nan"


class Subnormals(Enum):
    """What becomes of subnormal values.

    `FLUSH_INPUTS` (DAZ) reads a subnormal operand as the zero of its sign.  `FLUSH_OUTPUTS` (FTZ) replaces
    a nonzero result by the zero of its sign when it is below the smallest normal value after rounding to
    the precision with unbounded exponent (tininess after rounding, as x86 does).  `FLUSH` does both.
    """

    GRADUAL = "gradual"
    FLUSH_INPUTS = "flush-inputs"
    FLUSH_OUTPUTS = "flush-outputs"
    FLUSH = "flush"

    @property
    def inputs(self) -> bool:
        return self in (Subnormals.FLUSH_INPUTS, Subnormals.FLUSH)

    @property
    def outputs(self) -> bool:
        return self in (Subnormals.FLUSH_OUTPUTS, Subnormals.FLUSH)


@dataclass(frozen=True)
class Context:
    """How results are rounded.  Written ``float8_e4m3fn:RNE:saturate:gradual``."""

    format: Format
    mode: Mode
    overflow: Overflow
    subnormals: Subnormals

    def __post_init__(self) -> None:
        if self.overflow is Overflow.INFINITY and not self.format.has_infinity:
            allowed = "say overflow 'saturate' or 'nan'" if self.format.has_nan else "overflow can only be 'saturate'"
            raise UsageError(f"{self.format} has no infinity: {allowed}")
        if self.overflow is Overflow.NAN and not self.format.has_nan:
            raise UsageError(f"{self.format} has no NaN: overflow can only be 'saturate'")

    def with_mode(self, mode: Mode) -> Context:
        return replace(self, mode=mode)

    def __str__(self) -> str:
        """The shortest text that `context` reads back: rules that are the format's only choice are left out."""
        words = [self.format.name]
        if self.mode is not Mode.RNE:
            words.append(self.mode.value)
        if self.overflow is not _usual_overflow(self.format):
            words.append(self.overflow.value)
        if self.subnormals is not Subnormals.GRADUAL:
            words.append(self.subnormals.value)
        return ":".join(words)


def nearest_context(fmt: Format) -> Context:
    """Round to nearest even, gradual underflow, infinities where the format has them and else saturation."""
    overflow = Overflow.INFINITY if fmt.has_infinity else Overflow.SATURATE
    return Context(fmt, Mode.RNE, overflow, Subnormals.GRADUAL)


def _usual_overflow(fmt: Format) -> Overflow | None:
    if fmt.has_infinity:
        return Overflow.INFINITY
    return None if fmt.has_nan else Overflow.SATURATE


def context(
    spec: Format | str | Context,
    mode: Mode | str | None = None,
    overflow: Overflow | str | None = None,
    subnormals: Subnormals | str | None = None,
) -> Context:
    """A rounding context, from a format or from text such as ``"float16"`` or ``"float8_e4m3fn:saturate"``.

    What is left unsaid is IEEE 754's default: RNE, gradual underflow, and overflow to infinity where the
    format has one.  A format with NaN but no infinity has no default overflow rule: it must be said.

    >>> str(context("float16:RTZ"))
    'float16:RTZ'
    >>> context("float8_e4m3fn")
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: float8_e4m3fn has no infinity: say overflow 'saturate' or 'nan', \
e.g. float8_e4m3fn:saturate
    """
    if isinstance(spec, Context):
        fmt, chosen = spec.format, {Mode: spec.mode, Overflow: spec.overflow, Subnormals: spec.subnormals}
    elif isinstance(spec, Format):
        fmt, chosen = spec, {}
    else:
        name, *words = spec.strip().split(":")
        fmt, chosen = format_named(name), {}
        for word in words:
            rule = _rule(word)
            if type(rule) in chosen:
                raise UsageError(f"rounding context {spec!r} names two rules of one kind: {word!r} is the second")
            chosen[type(rule)] = rule
    for kind, given in ((Mode, mode), (Overflow, overflow), (Subnormals, subnormals)):
        if given is not None:
            chosen[kind] = given if isinstance(given, kind) else _of_kind(kind, str(given))
    usual = _usual_overflow(fmt)
    if Overflow not in chosen and usual is None:
        raise UsageError(
            f"{fmt} has no infinity: say overflow 'saturate' or 'nan', e.g. {fmt}:saturate"
        )
    return Context(
        fmt,
        chosen.get(Mode, Mode.RNE),  # type: ignore[arg-type]
        chosen.get(Overflow, usual),  # type: ignore[arg-type]
        chosen.get(Subnormals, Subnormals.GRADUAL),  # type: ignore[arg-type]
    )


def _rule(word: str) -> Mode | Overflow | Subnormals:
    for kind in (Mode, Overflow, Subnormals):
        for rule in kind:
            if word.lower() == rule.value.lower():
                return rule
    every = ", ".join(rule.value for kind in (Mode, Overflow, Subnormals) for rule in kind)
    raise UsageError(f"unknown rounding rule {word!r}: write one of {every}")


def _of_kind(kind: type[Enum], word: str) -> Enum:
    for rule in kind:
        if word.lower() == rule.value.lower():
            return rule
    every = ", ".join(rule.value for rule in kind)
    raise UsageError(f"unknown {kind.__name__.lower()} rule {word!r}: write one of {every}")
