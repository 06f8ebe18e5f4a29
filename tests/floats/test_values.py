"""Values: the line of floats, ulps, printing and reading."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpsmt.errors import UsageError
from fpsmt.floats import (
    FORMATS,
    Float,
    Format,
    all_values,
    bfloat16,
    exactly,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float16,
    float32,
    float64,
    floor_log2,
    from_ordinal,
    ieee,
    infinity,
    largest,
    nan,
    nearest,
    pow2,
    read_number,
    ulp,
    zero,
)
from tests.strategies import EMBEDDED, HUGE, finite_floats, formats

SHORT = [f for f in EMBEDDED if f.bits <= 8]
SIXTEEN = [f for f in EMBEDDED if 8 < f.bits <= 16]


def check_text(x: Float) -> None:
    """The decimal, the hex float and the code of x read back as x."""
    assert nearest(x.format, read_number(x.decimal)) == x
    assert exactly(x.format, read_number(x.hex)) == x
    assert Float(x.format, int(x.bits, 16)) == x
    assert Float(x.format, int(x.bit_string.replace(" ", ""), 2)) == x


@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_text_of_every_value_reads_back(fmt: Format) -> None:
    for x in all_values(fmt):
        check_text(x)


@pytest.mark.parametrize("fmt", SIXTEEN, ids=str)
def test_text_of_every_16_bit_value_reads_back(fmt: Format) -> None:
    for place in range(1, fmt.largest_code + 1):
        x = from_ordinal(fmt, place)
        text = x.decimal
        assert nearest(fmt, read_number(text)) == x
        assert exactly(fmt, read_number(x.hex)) == x
        minus = from_ordinal(fmt, -place)
        assert (minus.hex, minus.code) == ("-" + x.hex, x.code | fmt.sign_mask)
        if place % 61 == 0:
            assert minus.decimal == "-" + text
    for x in (zero(fmt), zero(fmt, True), nan(fmt)):
        check_text(x)


@given(st.data(), formats((*EMBEDDED, *HUGE)))
def test_text_reads_back(data: st.DataObject, fmt: Format) -> None:
    check_text(data.draw(finite_floats(fmt)))


@given(st.data())
def test_float64_text_is_pythons(data: st.DataObject) -> None:
    x = data.draw(finite_floats(float64))
    assert float(x.decimal) == float.fromhex(x.hex) == float(x)


def test_how_values_print() -> None:
    texts = {
        exactly(float16, 0.5): "0.5",
        nearest(float16, 0.1): "0.0999755859375",
        from_ordinal(float16, 1): "6e-08",
        largest(float16): "65504.0",
        largest(float16, True): "-65504.0",
        infinity(float16, True): "-inf",
        zero(float16, True): "-0.0",
        nan(float16): "nan",
    }
    assert {x: str(x) for x in texts} == texts
    assert exactly(float16, -1.5).hex == "-0x1.8p+0"
    assert exactly(float16, -1.5).bit_string == "1 01111 1000000000"
    assert exactly(float16, -1.5).bits == "0xbe00"
    assert repr(exactly(float4_e2m1fn, 6)) == "<float4_e2m1fn 6.0 = 0x1.8p+2 = 0x7>"


@pytest.mark.parametrize(
    "text, value",
    [
        ("1", 1), ("-2.50", Fraction(-5, 2)), (".5", Fraction(1, 2)), ("1e-3", Fraction(1, 1000)), ("1E3", 1000),
        ("1/3", Fraction(1, 3)), ("-7/2", Fraction(-7, 2)), ("2^-24", pow2(-24)), ("-2^(10)", -1024),
        ("0x1.8p3", 12), ("-0X.8p-1", Fraction(-1, 4)), ("0xff", 255), ("1_000", 1000), ("−3", -3),
        ("inf", math.inf), ("-Infinity", -math.inf), ("+inf", math.inf),
    ],
)  # fmt: skip
def test_numbers_that_users_write(text: str, value: Fraction | float) -> None:
    assert read_number(text) == value


def test_zeros_and_nan_that_users_write() -> None:
    assert math.isnan(float(read_number("NaN")))
    for text in ("-0", "-0.0", "-0x0p0", "-0e5"):
        number = read_number(text)
        assert isinstance(number, float) and math.copysign(1, number) == -1 and number == 0
    assert nearest(float16, read_number("-0")) == zero(float16, True)
    assert nearest(float8_e4m3fnuz, read_number("-0")) == zero(float8_e4m3fnuz)


@pytest.mark.parametrize(
    "text", ["", "one", "1..2", "0x", "1/0", "1/", "2^", "e5", ".", "1e999999", "--1", "0x1p", "1,5"]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_number(text)


@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_the_line_of_floats(fmt: Format) -> None:
    line = [x for x in all_values(fmt) if not x.is_nan]
    assert len(set(line)) == len(line)
    assert [x.ordinal for x in line] == sorted(x.ordinal for x in line)
    finite = [x for x in line if x.is_finite]
    for x in finite:
        assert x.is_zero or -x == exactly(fmt, -x.fraction)
    for x, y in pairwise(finite):
        if not (x.is_zero and y.is_zero):
            assert x.fraction < y.fraction and y.ordinal == x.ordinal + 1
            assert x.next_up.fraction == y.fraction and y.next_down.fraction == x.fraction
    for x in line:
        place = from_ordinal(fmt, x.ordinal)
        assert place == x or (x.is_zero and place == zero(fmt))
    ends = (line[0], line[-1])
    for end, step in zip(ends, ("next_down", "next_up")):
        with pytest.raises(UsageError, match="no value at ordinal"):
            getattr(end, step)


@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_ulp_is_the_gap_above(fmt: Format) -> None:
    # away from zero the gap after a value is its ulp, and so is ω in the subnormal range and at zero
    for place in range(fmt.largest_code):
        x = from_ordinal(fmt, place)
        assert x.ulp == from_ordinal(fmt, place + 1).fraction - x.fraction == (-x).ulp


@given(st.data(), formats((*EMBEDDED, *HUGE)))
def test_neighbours_and_negation(data: st.DataObject, fmt: Format) -> None:
    x = data.draw(finite_floats(fmt))
    minus = -x
    assert -minus == x and minus.fraction == -x.fraction and abs(x).fraction == abs(x.fraction)
    if abs(x.ordinal) < fmt.largest_code:
        assert x.next_up.ordinal == x.ordinal + 1 and x.next_down.ordinal == x.ordinal - 1
        assert x.next_down.fraction < x.fraction < x.next_up.fraction
        assert x.next_up.fraction - x.fraction in (x.ulp, x.ulp / 2)
    if not x.is_zero:
        assert exactly(fmt, x.fraction) == x
    assert x.is_subnormal == (0 < abs(x.fraction) < fmt.smallest_normal)


def test_ulp_of_reals() -> None:
    assert ulp(float16, Fraction(0)) == pow2(-24)
    assert ulp(float16, Fraction(1)) == ulp(float16, Fraction(-19, 10)) == pow2(-10)
    assert ulp(float16, 1 - pow2(-40)) == pow2(-11)
    assert ulp(float16, Fraction(10) ** 9) == pow2(19)
    assert [floor_log2(Fraction(x)) for x in ("1", "1/3", "7/8", "8", "1023", "1025/1024")] == [0, -2, -1, 3, 9, 0]


def test_identity_is_of_the_outcome() -> None:
    assert Float(float16, 0x7E01) == Float(float16, 0xFC01) == nan(float16)
    assert zero(float16) != zero(float16, True)
    assert exactly(float16, 1) != exactly(bfloat16, 1)
    assert not nan(float8_e4m3fnuz).negative and -nan(float8_e4m3fnuz) == nan(float8_e4m3fnuz)


def test_floats_of_values_beyond_float64() -> None:
    quad = ieee(15, 113)
    assert float(largest(quad)) == math.inf and float(-largest(quad)) == -math.inf
    assert float(from_ordinal(quad, 1)) == 0.0 and math.copysign(1, float(from_ordinal(quad, -1))) == -1
    assert float(nearest(quad, Fraction(1, 3))) == 1 / 3


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: nearest(float16, 65520), "65520 is beyond the range of float16, whose largest value is 65504.0"),
        (lambda: nearest(float8_e4m3fn, 465), "beyond the range of float8_e4m3fn"),
        (lambda: nearest(float4_e2m1fn, math.nan), "float4_e2m1fn has no NaN"),
        (lambda: nearest(float8_e4m3fn, math.inf), "float8_e4m3fn has no infinity"),
        (lambda: exactly(float16, Fraction(1, 3)), "1/3 is not a value of float16"),
        (lambda: exactly(float16, 65536), "is not a value of float16"),
        (lambda: exactly(float16, 2.0**-25), "is not a value of float16"),
        (lambda: nan(float4_e2m1fn), "has no NaN"),
        (lambda: infinity(float4_e2m1fn), "has no infinity"),
        (lambda: from_ordinal(float16, 31745), "float16 has no value at ordinal 31745"),
        (lambda: from_ordinal(float4_e2m1fn, -8), "float4_e2m1fn has no value at ordinal -8: its largest is 7"),
        (lambda: nan(float32).ordinal, "NaN has no place"),
        (lambda: nan(float32).fraction, "nan is not a finite number"),
        (lambda: infinity(float32).fraction, "inf is not a finite number"),
    ],
)
def test_errors(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        call()
    assert words in str(caught.value)


def test_named_formats_are_listed_once() -> None:
    assert len(set(FORMATS.values())) == len(FORMATS)
