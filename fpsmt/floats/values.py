"""One value of a format, its neighbours, its printing and its reading."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.errors import UsageError
from fpsmt.floats.formats import Format, pow2


@dataclass(frozen=True, slots=True)
class Float:
    """A value of `format`, held as its code.

    Equality is identity of the outcome: all NaN codes of a format are one value (payload and sign of NaN
    are out of scope), +0 and −0 are two.  Compare `.fraction` for the numeric order.
    """

    format: Format
    code: int

    def __post_init__(self) -> None:
        if not 0 <= self.code < (1 << self.format.bits):
            raise UsageError(f"{self.code:#x} is not a code of {self.format}: it has {self.format.bits} bits")
        if self.format.is_nan_code(self.code):
            object.__setattr__(self, "code", self.format.nan_code)

    # -- classes of values ----------------------------------------------------------------------------

    @property
    def magnitude(self) -> int:
        """The code without its sign bit."""
        return self.code & (self.format.sign_mask - 1)

    @property
    def negative(self) -> bool:
        """The sign bit (False for NaN)."""
        return bool(self.code & self.format.sign_mask) and not self.is_nan

    @property
    def is_nan(self) -> bool:
        return self.format.has_nan and self.code == self.format.nan_code

    @property
    def is_infinite(self) -> bool:
        return self.format.has_infinity and self.magnitude == self.format.infinity_code and not self.is_nan

    @property
    def is_finite(self) -> bool:
        return self.magnitude <= self.format.largest_code and not self.is_nan

    @property
    def is_zero(self) -> bool:
        return self.magnitude == 0 and not self.is_nan

    @property
    def is_subnormal(self) -> bool:
        """Nonzero and below the smallest normal value."""
        return 0 < self.magnitude < (1 << self.format.fraction_bits)

    # -- the number -----------------------------------------------------------------------------------

    @property
    def dyadic(self) -> tuple[int, int]:
        """(m, e) with value m·2^e, m signed; raises on NaN and infinity."""
        if not self.is_finite:
            raise UsageError(f"{self} is not a finite number")
        m, e = self.format.decode(self.magnitude)
        return (-m if self.negative else m), e

    @property
    def fraction(self) -> Fraction:
        """The exact value; both zeros give 0; raises on NaN and infinity."""
        m, e = self.dyadic
        return m * pow2(e)

    def __float__(self) -> float:
        """As a Python float: exact when the value is a float64, else correctly rounded (±inf beyond it)."""
        if self.is_nan:
            return math.nan
        sign = -1.0 if self.negative else 1.0
        if self.is_infinite:
            return sign * math.inf
        try:
            return math.copysign(float(self.fraction), sign)
        except OverflowError:
            return sign * math.inf

    def __neg__(self) -> Float:
        """Sign flipped; NaN unchanged; 0 unchanged in a format with a single zero."""
        if self.is_nan or (self.magnitude == 0 and not self.format.has_signed_zero):
            return self
        return Float(self.format, self.code ^ self.format.sign_mask)

    def __abs__(self) -> Float:
        return -self if self.negative else self

    # -- the line of floats ---------------------------------------------------------------------------

    @property
    def ordinal(self) -> int:
        """Position on the line of floats: 0 for both zeros, consecutive values differ by 1.  No NaN."""
        if self.is_nan:
            raise UsageError("NaN has no place on the line of floats")
        return -self.magnitude if self.negative else self.magnitude

    @property
    def next_up(self) -> Float:
        """The next larger value (x⁺): Ω⁺ is +inf where there is one, else an error.  (±0)⁺ = ω."""
        return from_ordinal(self.format, self.ordinal + 1)

    @property
    def next_down(self) -> Float:
        """The next smaller value (x⁻)."""
        return from_ordinal(self.format, self.ordinal - 1)

    @property
    def ulp(self) -> Fraction:
        """2^(max(⌊log₂|x|⌋, emin) − precision + 1); ω at 0; raises on NaN and infinity."""
        return ulp(self.format, self.fraction)

    # -- text -----------------------------------------------------------------------------------------

    @property
    def decimal(self) -> str:
        """A decimal that reads back as this value: exact up to 12 digits, else the shortest; ``nan``, ``-inf``."""
        if self.is_nan:
            return "nan"
        sign = "-" if self.negative else ""
        if self.is_infinite:
            return sign + "inf"
        if self.is_zero:
            return sign + "0.0"
        return sign + _shortest(abs(self))

    @property
    def hex(self) -> str:
        """A string that Python's ``float.fromhex`` reads; exact for every format."""
        if self.is_nan:
            return "nan"
        sign = "-" if self.negative else ""
        if self.is_infinite:
            return sign + "inf"
        m, e = self.format.decode(self.magnitude)
        if m == 0:
            return sign + "0x0p+0"
        shift = m.bit_length() - 1
        fraction = m - (1 << shift)
        digits = -(-shift // 4)
        text = f"{fraction << (4 * digits - shift):0{digits}x}".rstrip("0") if digits else ""
        return f"{sign}0x1{'.' + text if text else ''}p{e + shift:+d}"

    @property
    def bit_string(self) -> str:
        """Sign, exponent and fraction fields, e.g. ``0 01111 0000000000``."""
        text = f"{self.code:0{self.format.bits}b}"
        e = 1 + self.format.exponent_bits
        return f"{text[0]} {text[1:e]} {text[e:]}".rstrip()

    @property
    def bits(self) -> str:
        """The code as ``0x…``."""
        return f"{self.code:#0{2 + -(-self.format.bits // 4)}x}"

    def __str__(self) -> str:
        return self.decimal

    def __repr__(self) -> str:
        return f"<{self.format} {self.decimal} = {self.hex} = {self.bits}>"

    def _repr_html_(self) -> str:
        return f"<code>{self.decimal}</code> <small>{self.hex} · {self.bit_string} · {self.format}</small>"


EXACT_DIGITS = 12  #: decimals up to this long are printed exactly


def short_hex(text: str) -> str:
    """A hex float without the trailing zeros of its significand; other text as it is.

    >>> short_hex("0x1.8000p+3"), short_hex("0x0.0p+0"), short_hex("-inf")
    ('0x1.8p+3', '0x0p+0', '-inf')
    """
    significand, p, exponent = text.partition("p")
    return (significand.rstrip("0").rstrip(".") if "." in significand else significand) + p + exponent


def _shortest(x: Float) -> str:
    """Exact digits when few enough, else the shortest nearer to x than to any other value; x positive, finite."""
    value = x.fraction
    below = from_ordinal(x.format, x.ordinal - 1).fraction
    above = value if x.magnitude == x.format.largest_code else from_ordinal(x.format, x.ordinal + 1).fraction
    exponent = _floor_log10(value)
    exact = value * Fraction(10) ** (EXACT_DIGITS - 1 - exponent)
    for digits in range(1, max(EXACT_DIGITS, x.format.precision + 2) + 1):
        scale = Fraction(10) ** (exponent - digits + 1)
        n = round(value / scale)
        if n * scale == value if exact.denominator == 1 else below + value < 2 * n * scale < above + value:
            break
    else:  # pragma: no cover - precision + 1 decimal digits always separate neighbours
        raise AssertionError("no decimal found")
    text, exponent = str(n), exponent + (len(str(n)) - digits)
    if -5 <= exponent < 17:
        if exponent < 0:
            return "0." + "0" * (-exponent - 1) + (text.rstrip("0") or "0")
        text = text.rstrip("0").ljust(exponent + 1, "0")
        return text[: exponent + 1] + "." + (text[exponent + 1 :] or "0")
    text = text.rstrip("0")
    return text[0] + ("." + text[1:] if text[1:] else "") + f"e{exponent:+03d}"


def _floor_log10(value: Fraction) -> int:
    guess = math.floor((value.numerator.bit_length() - value.denominator.bit_length()) * math.log10(2))
    while Fraction(10) ** guess > value:
        guess -= 1
    while Fraction(10) ** (guess + 1) <= value:
        guess += 1
    return guess


def floor_log2(x: Fraction) -> int:
    """⌊log₂ x⌋ of a positive rational, exactly."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if pow2(k) <= x else k - 1


def ulp(fmt: Format, x: Fraction) -> Fraction:
    """ulp of a real number x in this format: 2^(max(⌊log₂|x|⌋, emin) − precision + 1)."""
    exponent = fmt.emin if x == 0 else max(floor_log2(abs(x)), fmt.emin)
    return pow2(exponent - fmt.fraction_bits)


def zero(fmt: Format, negative: bool = False) -> Float:
    """+0, or −0 where the format has one."""
    return Float(fmt, fmt.sign_mask if negative and fmt.has_signed_zero else 0)


def infinity(fmt: Format, negative: bool = False) -> Float:
    """±inf; a usage error in a format without infinities."""
    if fmt.infinity_code is None:
        raise UsageError(f"{fmt} has no infinity")
    return Float(fmt, fmt.infinity_code | (fmt.sign_mask if negative else 0))


def nan(fmt: Format) -> Float:
    """The NaN of the format; a usage error where there is none."""
    if fmt.nan_code is None:
        raise UsageError(f"{fmt} has no NaN")
    return Float(fmt, fmt.nan_code)


def largest(fmt: Format, negative: bool = False) -> Float:
    """±Ω."""
    return Float(fmt, fmt.largest_code | (fmt.sign_mask if negative else 0))


def from_ordinal(fmt: Format, ordinal: int) -> Float:
    """The value at this place on the line of floats (0 gives +0)."""
    if abs(ordinal) > fmt.largest_code + fmt.has_infinity:
        raise UsageError(f"{fmt} has no value at ordinal {ordinal}: its largest is {fmt.largest_code}")
    return Float(fmt, -ordinal | fmt.sign_mask if ordinal < 0 else ordinal)


def exactly(fmt: Format, x: Fraction | int | float) -> Float:
    """The value of the format equal to x; a usage error when there is none (use rounding to get a near one).

    A Python float may be NaN, ±inf or −0.0.
    """
    if isinstance(x, float):
        if math.isnan(x):
            return nan(fmt)
        if math.isinf(x):
            return infinity(fmt, x < 0)
        if x == 0:
            return zero(fmt, math.copysign(1.0, x) < 0)
    value = Fraction(x)
    if value == 0:
        return zero(fmt)
    n = abs(value) / ulp(fmt, value)
    if n.denominator != 1 or abs(value) > fmt.largest:
        raise UsageError(f"{shown_number(x)} is not a value of {fmt}")
    exponent = max(floor_log2(abs(value)), fmt.emin)
    significand = int(n)
    field = 0 if significand < (1 << fmt.fraction_bits) else exponent + fmt.bias
    magnitude = (field << fmt.fraction_bits) | (significand & ((1 << fmt.fraction_bits) - 1))
    return Float(fmt, magnitude | (fmt.sign_mask if value < 0 else 0))


def shown_number(x: Fraction | int | float) -> str:
    """A number in a message; a long one by its size."""
    value = Fraction(x)
    if value and value.numerator.bit_length() + value.denominator.bit_length() > 600:
        return f"a number of about {'-' if value < 0 else ''}2^{floor_log2(abs(value))}"
    return str(x)


def all_values(fmt: Format, finite: bool = False) -> Iterator[Float]:
    """Every value once, from −inf to +inf (−0 before +0), then NaN; only the finite ones if asked.

    >>> from fpsmt.floats import float4_e2m1fn
    >>> [str(x) for x in all_values(float4_e2m1fn)][:4]
    ['-6.0', '-4.0', '-3.0', '-2.0']
    """
    top = fmt.largest_code + (fmt.has_infinity and not finite)
    for magnitude in range(top, 0, -1):
        yield Float(fmt, magnitude | fmt.sign_mask)
    if fmt.has_signed_zero:
        yield zero(fmt, negative=True)
    for magnitude in range(top + 1):
        yield Float(fmt, magnitude)
    if fmt.has_nan and not finite:
        yield nan(fmt)


MOST_CHARACTERS = 4000  #: of a number; Python refuses to read longer decimals

_HEX = re.compile(r"([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?(?:p([+-]?\d{1,7}))?", re.IGNORECASE)
_DECIMAL = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,6}))?", re.IGNORECASE)


def read_number(text: str) -> Fraction | float:
    """Reads a number: decimal, hex float (``0x1.8p3``), a quotient (``1/3``), ``2^-24``, ``inf``, ``nan``, ``-0``.

    Returns the exact rational, or a Python float for NaN, ±inf and −0.0.

    >>> read_number("0x1.8p-1"), read_number("-2^-3"), read_number("-0")
    (Fraction(3, 4), Fraction(-1, 8), -0.0)
    """
    if not isinstance(text, str):
        raise UsageError(f"a number is read from text, not from {type(text).__name__}")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"cannot read {text[:20]!r}… as a number: it has {len(text)} characters, and at most {MOST_CHARACTERS} "
            "are read"
        )
    word = text.strip().lower().replace("_", "").replace("−", "-")
    if word in ("nan", "+nan", "-nan"):
        return math.nan
    if word in ("inf", "+inf", "-inf", "infinity", "-infinity", "+infinity"):
        return -math.inf if word[0] == "-" else math.inf
    if match := re.fullmatch(r"([+-]?)2\^\(?([+-]?\d{1,7})\)?", word):
        return pow2(int(match[2])) * (-1 if match[1] == "-" else 1)
    if match := re.fullmatch(r"([+-]?\d+)/(\d+)", word):
        if int(match[2]) == 0:
            raise UsageError(f"cannot read {text!r} as a number: division by zero")
        return Fraction(int(match[1]), int(match[2]))
    if (match := _HEX.fullmatch(word)) and (match[2] or match[3]):
        digits = match[2] + (match[3] or "")
        value = int(digits, 16) * pow2(int(match[4] or 0) - 4 * len(match[3] or ""))
    elif (match := _DECIMAL.fullmatch(word)) and (match[2] or match[3]):
        digits = match[2] + (match[3] or "")
        if abs(int(match[4] or 0)) > 200_000:
            raise UsageError(f"cannot read {text!r}: the exponent is out of every format's range")
        value = int(digits) * Fraction(10) ** (int(match[4] or 0) - len(match[3] or ""))
    else:
        raise UsageError(
            f"cannot read {text!r} as a number: write a decimal, a hex float such as 0x1.8p-3, "
            "a quotient such as 1/3, a power such as 2^-24, inf or nan"
        )
    if match[1] == "-":
        return -value if value else -0.0
    return value
