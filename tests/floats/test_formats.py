"""Formats: their tables, their names, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from fpsmt.errors import UsageError
from fpsmt.floats import FORMATS, Float, Format, all_values, format_named, ieee, p3109, pow2
from tests.strategies import EMBEDDED, HUGE

#: name: (bits, ω, smallest normal, Ω, finite values, has inf, has NaN), from the formats' standards
TABLE = {
    "float64": (64, pow2(-1074), pow2(-1022), (2 - pow2(-52)) * pow2(1023), None, True, True),
    "float32": (32, pow2(-149), pow2(-126), (2 - pow2(-23)) * pow2(127), None, True, True),
    "float16": (16, pow2(-24), pow2(-14), Fraction(65504), 63488, True, True),
    "bfloat16": (16, pow2(-133), pow2(-126), (2 - pow2(-7)) * pow2(127), 65280, True, True),
    "tfloat32": (19, pow2(-136), pow2(-126), (2 - pow2(-10)) * pow2(127), None, True, True),
    "float8_e5m2": (8, pow2(-16), pow2(-14), Fraction(57344), 248, True, True),
    "float8_e4m3": (8, pow2(-9), pow2(-6), Fraction(240), 240, True, True),
    "float8_e3m4": (8, pow2(-6), pow2(-2), Fraction(31, 2), 224, True, True),
    "float8_e4m3fn": (8, pow2(-9), pow2(-6), Fraction(448), 254, False, True),
    "float8_e4m3fnuz": (8, pow2(-10), pow2(-7), Fraction(240), 255, False, True),
    "float8_e4m3b11fnuz": (8, pow2(-13), pow2(-10), Fraction(30), 255, False, True),
    "float8_e5m2fnuz": (8, pow2(-17), pow2(-15), Fraction(57344), 255, False, True),
    "float6_e3m2fn": (6, pow2(-4), pow2(-2), Fraction(28), 64, False, False),
    "float6_e2m3fn": (6, pow2(-3), Fraction(1), Fraction(15, 2), 64, False, False),
    "float4_e2m1fn": (4, Fraction(1, 2), Fraction(1), Fraction(6), 16, False, False),
}


def test_every_named_format_is_in_the_table() -> None:
    assert set(TABLE) == set(FORMATS)


@pytest.mark.parametrize("name", TABLE)
def test_layout(name: str) -> None:
    fmt = FORMATS[name]
    bits, smallest, normal, largest, count, has_infinity, has_nan = TABLE[name]
    assert (fmt.bits, fmt.smallest, fmt.smallest_normal, fmt.largest) == (bits, smallest, normal, largest)
    assert (fmt.has_infinity, fmt.has_nan) == (has_infinity, has_nan)
    if count is not None:
        assert sum(1 for _ in all_values(fmt, finite=True)) == count


@pytest.mark.parametrize("fmt", EMBEDDED + HUGE, ids=str)
def test_special_codes_agree_with_each_other(fmt: Format) -> None:
    assert fmt.largest == Float(fmt, fmt.largest_code).fraction
    assert fmt.smallest == Float(fmt, 1).fraction
    if fmt.nan_code is not None:
        assert fmt.is_nan_code(fmt.nan_code)
    assert not fmt.is_nan_code(fmt.largest_code)
    if fmt.infinity_code is not None:
        assert not fmt.is_nan_code(fmt.infinity_code) and not fmt.is_nan_code(fmt.infinity_code | fmt.sign_mask)
    if fmt.bits <= 16:
        codes = [c for c in range(1 << fmt.bits) if not fmt.is_nan_code(c)]
        assert len(codes) == len({Float(fmt, c) for c in codes})


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in ("float64", "float32", "float16", "tfloat32")])
def test_every_code_reads_as_in_ml_dtypes(name: str) -> None:
    fmt = FORMATS[name]
    unsigned = np.uint8 if fmt.bits <= 8 else np.uint16
    with np.errstate(invalid="ignore"):
        theirs = np.arange(1 << fmt.bits).astype(unsigned).view(getattr(ml_dtypes, name)).astype(np.float64)
    for code, value in enumerate(theirs.tolist()):
        mine = Float(fmt, code)
        assert mine.is_nan == (value != value)
        assert mine.is_nan or (float(mine) == value and mine.negative == bool(np.signbit(value)))


def test_every_float16_code_reads_as_in_hardware() -> None:
    theirs = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float64).tolist()
    for code, value in enumerate(theirs):
        mine = Float(FORMATS["float16"], code)
        assert mine.is_nan if value != value else float(mine).hex() == value.hex()


@pytest.mark.parametrize("fmt", EMBEDDED, ids=str)
def test_names_read_back(fmt: Format) -> None:
    if fmt.name != "finite_e3m2":
        assert format_named(fmt.name) == fmt


def test_ieee_style_is_recognised() -> None:
    assert [f.name for f in FORMATS.values() if f.is_ieee] == [
        "float64", "float32", "float16", "bfloat16", "tfloat32", "float8_e5m2", "float8_e4m3", "float8_e3m4",
    ]  # fmt: skip


def test_p3109_formats() -> None:
    # values of the working group's tables: bias 2^(K−P−1), one zero, one NaN, infinities on top
    wide = p3109(8, 4)
    assert (wide.bias, wide.largest, wide.smallest, wide.nan_code, wide.infinity_code) == (
        8, Fraction(224), pow2(-10), 0x80, 0x7F,
    )  # fmt: skip
    assert p3109(8, 4, extended=False).largest == 240
    assert p3109(8, 3).largest == 49152


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: format_named("fp8"), "unknown format 'fp8': write one of float64, float32"),
        (lambda: format_named("float8"), "unknown format 'float8'"),
        (lambda: format_named("ieee(1,5)"), "ieee(1, 5): exponent bits and precision"),
        (lambda: ieee(1, 11), "must both be at least 2"),
        (lambda: ieee(5, 1), "must both be at least 2"),
        (lambda: ieee(31, 11), "at most 30"),
        (lambda: p3109(8, 8), "2 ≤ precision < bits"),
        (lambda: format_named("p3109_k8p1se"), "2 ≤ precision < bits"),
        (lambda: Float(FORMATS["float8_e5m2"], 256), "0x100 is not a code of float8_e5m2: it has 8 bits"),
        (lambda: Float(FORMATS["float8_e5m2"], -1), "is not a code of float8_e5m2"),
    ],
)
def test_errors_say_what_and_what_to_do(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        call()
    assert words in str(caught.value)
