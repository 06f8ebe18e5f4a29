"""Floating-point formats as records.

A format is data: how many exponent bits, how much precision, which codes are special.  Nothing in the
package branches on a format's name.  A code is the bit pattern as an unsigned integer, sign bit on top.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from fpsmt.errors import UsageError

NanCodes = Literal["above", "negative-zero", "none"]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    The magnitude code (the code without its sign bit) counts upwards from zero through the subnormals and
    normals to `largest_code`, the code of the largest finite value.  The next code is infinity when
    `has_infinity`.  `nan` says where NaN lives: in all magnitude codes above those (``"above"``, IEEE and
    OCP e4m3fn), in the code that would be −0 (``"negative-zero"``, the fnuz formats and P3109), or nowhere.
    """

    name: str
    exponent_bits: int
    precision: int  #: significand bits with the hidden bit (the papers' p is precision − 1)
    bias: int
    largest_code: int
    has_infinity: bool
    nan: NanCodes

    # -- layout ---------------------------------------------------------------------------------------

    @cached_property
    def fraction_bits(self) -> int:
        """Stored significand bits: precision − 1."""
        return self.precision - 1

    @cached_property
    def bits(self) -> int:
        """Width of a code."""
        return 1 + self.exponent_bits + self.fraction_bits

    @cached_property
    def sign_mask(self) -> int:
        """The sign bit of a code."""
        return 1 << (self.bits - 1)

    @cached_property
    def has_nan(self) -> bool:
        return self.nan != "none"

    @cached_property
    def has_signed_zero(self) -> bool:
        return self.nan != "negative-zero"

    @cached_property
    def infinity_code(self) -> int | None:
        """Magnitude code of infinity, or None."""
        return self.largest_code + 1 if self.has_infinity else None

    @cached_property
    def nan_code(self) -> int | None:
        """The one code this package writes for NaN (quiet, positive where there is a choice), or None."""
        if self.nan == "none":
            return None
        if self.nan == "negative-zero":
            return self.sign_mask
        if self.has_infinity and self.fraction_bits > 0:
            quiet = 1 << (self.fraction_bits - 1)
            return (self.largest_code + 1) | quiet
        return self.largest_code + 1 + self.has_infinity

    # -- range ----------------------------------------------------------------------------------------

    @cached_property
    def emin(self) -> int:
        """Exponent of the smallest normal value."""
        return 1 - self.bias

    @cached_property
    def emax(self) -> int:
        """Exponent of the largest finite value."""
        return max(self.largest_code >> self.fraction_bits, 1) - self.bias

    @cached_property
    def smallest(self) -> Fraction:
        """ω, the smallest positive value: 2^(emin − precision + 1)."""
        return pow2(self.emin - self.fraction_bits)

    @cached_property
    def smallest_normal(self) -> Fraction:
        return pow2(self.emin)

    @cached_property
    def largest(self) -> Fraction:
        """Ω, the largest finite value."""
        significand, exponent = self.decode(self.largest_code)
        return significand * pow2(exponent)

    def decode(self, magnitude: int) -> tuple[int, int]:
        """(m, e) with value m·2^e for the magnitude code of a finite value."""
        field, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        if field == 0:
            return fraction, self.emin - self.fraction_bits
        return fraction | (1 << self.fraction_bits), field - self.bias - self.fraction_bits

    def is_nan_code(self, code: int) -> bool:
        if self.nan == "none":
            return False
        if self.nan == "negative-zero":
            return code == self.sign_mask
        return (code & (self.sign_mask - 1)) > self.largest_code + self.has_infinity

    @cached_property
    def is_ieee(self) -> bool:
        """True when codes, infinities and NaNs are laid out as IEEE 754 does for these widths."""
        return self == ieee(self.exponent_bits, self.precision, self.name)

    def __str__(self) -> str:
        return self.name


def pow2(exponent: int) -> Fraction:
    """2^exponent exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def ieee(exponent_bits: int, precision: int, name: str | None = None) -> Format:
    """The IEEE-style format with these widths; precision counts the hidden bit, as in SMT-LIB.

    >>> ieee(5, 11) == float16
    False
    >>> ieee(5, 11, "float16") == float16
    True
    >>> ieee(2, 3).largest
    Fraction(7, 2)
    """
    if exponent_bits < 2 or precision < 2:
        raise UsageError(
            f"ieee({exponent_bits}, {precision}): exponent bits and precision (with the hidden bit) "
            "must both be at least 2"
        )
    if exponent_bits > 30 or precision > 4096:
        raise UsageError(
            f"ieee({exponent_bits}, {precision}): values would not fit in memory; "
            "exponent bits must be at most 30 and precision at most 4096"
        )
    bias = (1 << (exponent_bits - 1)) - 1
    largest = (((1 << exponent_bits) - 1) << (precision - 1)) - 1
    return Format(name or f"ieee({exponent_bits},{precision})", exponent_bits, precision, bias, largest, True, "above")


def p3109(bits: int, precision: int, extended: bool = True) -> Format:
    """The signed IEEE P3109 format binaryKpP: one zero, one NaN in its negative place, bias 2^(K−P−1).

    `extended` formats have ±inf in the topmost codes; finite ones do not.
    """
    if not 1 <= precision < bits or bits < 3 or precision < 2:
        raise UsageError(f"p3109({bits}, {precision}): need 2 ≤ precision < bits")
    top = (1 << (bits - 1)) - 1
    name = f"p3109_k{bits}p{precision}s{'e' if extended else 'f'}"
    bias = 1 << (bits - precision - 1)
    return Format(name, bits - precision, precision, bias, top - extended, extended, "negative-zero")


float64 = ieee(11, 53, "float64")
float32 = ieee(8, 24, "float32")
float16 = ieee(5, 11, "float16")
bfloat16 = ieee(8, 8, "bfloat16")
tfloat32 = ieee(8, 11, "tfloat32")
float8_e5m2 = ieee(5, 3, "float8_e5m2")
float8_e4m3 = ieee(4, 4, "float8_e4m3")
float8_e3m4 = ieee(3, 5, "float8_e3m4")
float8_e4m3fn = Format("float8_e4m3fn", 4, 4, 7, 0x7E, False, "above")
float8_e4m3fnuz = Format("float8_e4m3fnuz", 4, 4, 8, 0x7F, False, "negative-zero")
float8_e4m3b11fnuz = Format("float8_e4m3b11fnuz", 4, 4, 11, 0x7F, False, "negative-zero")
float8_e5m2fnuz = Format("float8_e5m2fnuz", 5, 3, 16, 0x7F, False, "negative-zero")
float6_e3m2fn = Format("float6_e3m2fn", 3, 3, 3, 0x1F, False, "none")
float6_e2m3fn = Format("float6_e2m3fn", 2, 4, 1, 0x1F, False, "none")
float4_e2m1fn = Format("float4_e2m1fn", 2, 2, 1, 0x07, False, "none")

#: Every named format, by name.
FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        float64, float32, float16, bfloat16, tfloat32,
        float8_e5m2, float8_e4m3, float8_e3m4,
        float8_e4m3fn, float8_e4m3fnuz, float8_e4m3b11fnuz, float8_e5m2fnuz,
        float6_e3m2fn, float6_e2m3fn, float4_e2m1fn,
    )
}  # fmt: skip


def format_named(name: str) -> Format:
    """The format of this name: one of `FORMATS`, ``ieee(e,p)``, or ``p3109_kKpPse`` / ``…sf``.

    >>> format_named("bfloat16").emin
    -126
    >>> format_named("fp8")
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: unknown format 'fp8': write one of float64, float32, float16, bfloat16, tfloat32, \
float8_e5m2, float8_e4m3, float8_e3m4, float8_e4m3fn, float8_e4m3fnuz, float8_e4m3b11fnuz, float8_e5m2fnuz, \
float6_e3m2fn, float6_e2m3fn, float4_e2m1fn, ieee(EXPONENT_BITS,PRECISION) or p3109_kKpPse
    """
    if name in FORMATS:
        return FORMATS[name]
    if match := re.fullmatch(r"ieee\(\s*(\d{1,5})\s*,\s*(\d{1,5})\s*\)", name):
        return ieee(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"p3109_k(\d{1,2})p(\d{1,2})s([ef])", name):
        return p3109(int(match[1]), int(match[2]), match[3] == "e")
    known = ", ".join(FORMATS)
    raise UsageError(
        f"unknown format {name!r}: write one of {known}, ieee(EXPONENT_BITS,PRECISION) or p3109_kKpPse"
    )
