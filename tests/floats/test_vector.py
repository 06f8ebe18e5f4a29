"""The vectorised twin against exact scalars: exhaustively where a format is small, by Hypothesis elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    FORMATS,
    Context,
    Float,
    Format,
    Mode,
    Overflow,
    Subnormals,
    all_values,
    bfloat16,
    context,
    exact,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float16,
    float32,
    float64,
    from_ordinal,
    ieee,
    nearest,
    p3109,
    zero,
)
from fpsmt.floats.compiled import NARROW, NATIVE, WIDE, ordinal, parameters
from fpsmt.floats.vector import (
    Arithmetic,
    arithmetic,
    decode,
    embeds,
    encode,
    from_ordinals,
    ordinals,
    round_array,
    to_carrier,
    to_floats,
    values,
)
from tests.strategies import (
    EMBEDDED,
    HUGE,
    ODD_FORMATS,
    cancelling_rows,
    contexts,
    every_context,
    floats,
    formats,
    landmarks,
    reals_near,
    rows,
)

ARITY = {"cast": 1, "sqrt": 1, "add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "add_products": 4}
BYTES = [f for f in FORMATS.values() if f.bits == 8]
SIXES = [f for f in FORMATS.values() if f.bits == 6]
SMALL = [float4_e2m1fn, ieee(2, 2), ieee(2, 3), p3109(5, 3), p3109(5, 2, False)]
OPEN = Format("finite_e2m2", 2, 3, 1, 0xE, False, "above")  #: NaN but no infinity, signed zero, 5 bits


def assert_same(mine: Any, expected: Any) -> None:
    """Equal carriers: NaN with NaN, zeros with their signs."""
    mine, expected = np.asarray(mine, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    np.testing.assert_array_equal(mine, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(mine)[number], np.signbit(expected)[number])


def check(ctx: Context, operands: Sequence[Format], name: str, table: Sequence[Sequence[Float]]) -> None:
    """One operation on rows of arguments, vector against scalars; rows whose result is no value are left out."""
    scalar = getattr(exact, name)
    expected, kept = [], []
    for row in table:
        arguments = row[: ARITY[name]]
        try:
            expected.append(float(scalar(ctx, *arguments)))
        except UsageError:
            assert not ctx.format.has_nan
            with pytest.raises(UsageError, match="a result is NaN"):
                getattr(arithmetic(ctx, operands), name)(*(to_carrier([x]) for x in arguments))
        else:
            kept.append(arguments)
    if kept:
        columns = [to_carrier(column) for column in zip(*kept)]
        assert_same(getattr(arithmetic(ctx, operands), name)(*columns), expected)


def check_all_pairs(ctx: Context, names: Sequence[str]) -> None:
    """Every pair of values (one NaN, both zeros) of the context's format."""
    line = list(all_values(ctx.format))
    carriers = values(ctx.format)
    assert_same(carriers, [float(x) for x in line])
    for name in names:
        scalar = getattr(exact, name)
        vector = getattr(arithmetic(ctx), name)
        if ctx.format.has_nan:
            mine = vector(carriers[:, None], carriers)
            if name in ("add", "mul"):  # commutative, for scalars by construction: half of the table is enough
                assert_same(mine, mine.T)
                places = np.tril_indices(len(line))
                expected = [float(scalar(ctx, line[i], line[j])) for i, j in zip(*(p.tolist() for p in places))]
                assert_same(mine[places], expected)
            else:
                assert_same(mine, [[float(scalar(ctx, a, b)) for b in line] for a in line])
        else:
            check(ctx, [ctx.format], name, [(a, b) for a in line for b in line])


# -- exhaustive -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [*SMALL, OPEN], ids=str)
def test_all_pairs_in_every_context(fmt: Format) -> None:
    for ctx in every_context(fmt):
        check_all_pairs(ctx, ["add", "mul", "div"])


@pytest.mark.parametrize("fmt", [float4_e2m1fn, ieee(2, 3), p3109(5, 2, False), OPEN, *SIXES], ids=str)
def test_all_differences_and_roots_in_every_mode(fmt: Format) -> None:
    line = list(all_values(fmt))
    for ctx in (c for c in every_context(fmt) if c.subnormals in (Subnormals.GRADUAL, Subnormals.FLUSH)):
        if fmt.bits <= 5:
            check_all_pairs(ctx, ["sub"])
        check(ctx, [fmt], "sqrt", [[a] for a in line])
        for source in (*SMALL, float8_e5m2):
            check(ctx, [source], "cast", [[a] for a in all_values(source)])


@pytest.mark.parametrize("fmt", SIXES, ids=str)
@pytest.mark.parametrize("rules", [(Mode.RNE, Subnormals.GRADUAL), (Mode.RTN, Subnormals.FLUSH)], ids=str)
def test_all_pairs_of_six_bits(fmt: Format, rules: tuple[Mode, Subnormals]) -> None:
    check_all_pairs(context(fmt, rules[0], None, rules[1]), ["add", "sub", "mul", "div"])


@pytest.mark.parametrize("fmt", BYTES, ids=str)
@pytest.mark.parametrize(
    "rules",
    [(Mode.RNE, Overflow.NAN, Subnormals.GRADUAL), (Mode.RTP, Overflow.SATURATE, Subnormals.FLUSH_OUTPUTS)],
    ids=["RNE", "RTP"],
)
def test_all_pairs_of_eight_bits(fmt: Format, rules: tuple[Mode, Overflow, Subnormals]) -> None:
    usual = rules[0] is Mode.RNE and fmt.has_infinity
    ctx = Context(fmt, rules[0], Overflow.INFINITY if usual else rules[1], rules[2])
    check_all_pairs(ctx, ["add", "mul", "div"])
    check(ctx, [fmt], "sqrt", [[x] for x in all_values(fmt)])


def wide(ctx: Context) -> Arithmetic:
    """The same operations by the integer kernels."""
    twin = Arithmetic(ctx, (ctx.format,) * 4)
    assert twin.parameters is not None
    twin.parameters = twin.parameters._replace(path=WIDE, cast_path=WIDE)
    return twin


@pytest.mark.parametrize("fmt", [*SMALL, OPEN, *SIXES, *BYTES], ids=str)
def test_both_kernels_agree_on_all_pairs_in_every_context(fmt: Format) -> None:
    # float64 with exact remainders against 128-bit integers: two algorithms, every context
    carriers = values(fmt)
    a, b = carriers[:, None], carriers
    few = carriers[:: max(1, carriers.size // 24)]
    doubles = np.concatenate([(carriers[1:] + carriers[:-1]) / 2, carriers * (1 + 2.0**-50), [5e-324, -1e308]])
    for ctx in every_context(fmt):
        one, other = arithmetic(ctx), wide(ctx)
        assert one.parameters is not None and one.parameters.path == NARROW
        flushed = np.where(np.abs(carriers) < float(fmt.smallest_normal), 0, carriers)
        read = flushed if ctx.subnormals.inputs else carriers
        meaning = np.ones((a.size, a.size), dtype=bool) if fmt.has_nan else (read[:, None] != 0) | (read != 0)
        for name in ("add", "sub", "mul"):
            assert_same(getattr(one, name)(a, b), getattr(other, name)(a, b))
        x, y = (v[meaning] for v in np.broadcast_arrays(a, b))
        assert_same(one.div(x, y), other.div(x, y))
        positive = carriers if fmt.has_nan else carriers[carriers >= 0]
        assert_same(one.sqrt(positive), other.sqrt(positive))
        x, y, z = few[:, None, None], few[:, None], few
        assert_same(one.fma(x, y, z), other.fma(x, y, z))
        assert_same(one.add_products(x, y, z, few[::-1]), other.add_products(x, y, z, few[::-1]))
        halves = doubles if fmt.has_nan else doubles[~np.isnan(doubles)]
        mine = round_array(ctx, halves)
        assert_same(mine, wide_cast(ctx, halves))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("target", [ieee(8, 51), ieee(9, 26), float32, float16], ids=str)
def test_narrow_kernels_at_the_limit_of_their_condition(target: Format, mode: Mode) -> None:
    # 26-bit operands fill the 53 bits of exact products and remainders; at 51 bits every second float64 is a value
    # or a midpoint of the target, so that the last bit of rounding to odd decides
    source = ieee(9, 26)
    ctx = context(target, mode)
    one, other = Arithmetic(ctx, (source,) * 4), Arithmetic(ctx, (source,) * 4)
    assert one.parameters is not None and one.parameters.path == NARROW
    other.parameters = one.parameters._replace(path=WIDE, cast_path=WIDE)
    rng = np.random.default_rng(5)
    one_ordinal = source.bias << source.fraction_bits
    for spread in (source.largest_code + 1 - one_ordinal, 1 << 26, 1 << 30):
        places = one_ordinal + rng.integers(-spread, spread, size=(4, 5000))
        x = from_ordinals(source, np.maximum(places, 0)) * rng.choice([-1.0, 1.0], size=(4, 5000))
        for name, count in ARITY.items():
            assert_same(getattr(one, name)(*x[:count]), getattr(other, name)(*x[:count]))
        table = [to_floats(source, row[:40]) for row in x]
        for name in ("div", "sqrt", "fma", "add_products"):
            check(ctx, [source] * 4, name, list(zip(*table)))


def wide_cast(ctx: Context, x: np.ndarray) -> np.ndarray:
    twin = Arithmetic(ctx, (float64,) * 4)
    assert twin.parameters is not None
    twin.parameters = twin.parameters._replace(cast_path=WIDE)
    return twin.cast(x)


@pytest.mark.parametrize(
    "ctx",
    [*every_context(float4_e2m1fn), context(ieee(2, 3)), context(ieee(2, 3), "RTN", "saturate", "flush")],
    ids=str,
)
def test_all_triples(ctx: Context) -> None:
    line = list(all_values(ctx.format))
    table = [(a, b, c) for a in line for b in line for c in line]
    a, b, c = (to_carrier(column) for column in zip(*table))
    assert_same(arithmetic(ctx).fma(a, b, c), [float(exact.fma(ctx, *row)) for row in table])


@pytest.mark.parametrize("fmt", [*SIXES, *BYTES], ids=str)
@pytest.mark.parametrize("mode", [Mode.RNE, Mode.RTN])
def test_many_triples(fmt: Format, mode: Mode) -> None:
    ctx = context(fmt, mode, "infinity" if fmt.has_infinity else "saturate")
    line = list(all_values(fmt))
    some = line[:: max(1, len(line) // 14)] + landmarks(fmt)[:10]
    check(ctx, [fmt], "fma", [(a, b, c) for a in some for b in some for c in some if defined(a, b, c)])


def defined(a: Float, b: Float, c: Float) -> bool:
    """Not NaN, which check() treats row by row in formats without one; those have no infinities either."""
    return a.format.has_nan or all(x.is_finite for x in (a, b, c))


@pytest.mark.parametrize("mode", Mode)
def test_every_float16_root_and_cast(mode: Mode) -> None:
    line = [Float(float16, code) for code in range(0, 1 << 16, 1 if mode is Mode.RNE else 7)]
    check(context(float16, mode), [float16], "sqrt", [[x] for x in line if not x.negative])
    check(context(float8_e4m3fn, mode, "nan"), [float16], "cast", [[x] for x in line])


# -- Hypothesis: every context, mixed operands, both kernels ----------------------------------------------


@pytest.mark.parametrize("name", ARITY)
@given(data=st.data())
def test_one_format(name: str, data: st.DataObject) -> None:
    ctx = data.draw(contexts())
    operands = [ctx.format] * ARITY[name]
    check(ctx, operands, name, data.draw(st.one_of(rows(operands), cancelling_rows(operands))))


@pytest.mark.parametrize("name", ARITY)
@given(data=st.data())
def test_mixed_formats(name: str, data: st.DataObject) -> None:
    ctx = data.draw(contexts())
    operands = [data.draw(formats()) for _ in range(ARITY[name])]
    check(ctx, operands, name, data.draw(st.one_of(rows(operands), cancelling_rows(operands))))


@given(data=st.data(), ctx=contexts([float64, ieee(8, 52), ieee(9, 27), ieee(10, 20), ieee(11, 40)]))
def test_wide_contexts(data: st.DataObject, ctx: Context) -> None:
    operands = [ctx.format] * 4
    table = data.draw(st.one_of(rows(operands), cancelling_rows(operands)))
    for name in ARITY:
        check(ctx, operands, name, table)


@given(data=st.data(), ctx=contexts())
def test_doubles_at_the_decisions_of_rounding(data: st.DataObject, ctx: Context) -> None:
    points = [nearest(float64, data.draw(reals_near(ctx.format))) for _ in range(5) if ctx.format != float64]
    points += [data.draw(floats(float64)) for _ in range(5)]
    check(ctx, [float64], "cast", [[x] for x in points])


@given(data=st.data())
def test_formats_beyond_float64(data: st.DataObject) -> None:
    ctx = data.draw(contexts(HUGE))
    other = data.draw(formats((*HUGE, float16, float64)))
    operands = [ctx.format, other, other]
    table = data.draw(rows(operands, 5))
    vector = arithmetic(ctx, operands)
    a, b, c = (to_carrier(column) for column in zip(*table))
    for name in ("add", "mul", "fma"):
        arguments = (a, b, c)[: ARITY[name]]
        expected = [getattr(exact, name)(ctx, *row[: ARITY[name]]) for row in table]
        assert getattr(vector, name)(*arguments).tolist() == expected


def test_which_kernels() -> None:
    paths = {
        "float16": NARROW, "float32:RTZ": NARROW, "ieee(9,26)": NARROW, "ieee(9,27)": WIDE, "ieee(10,20)": WIDE,
        "float64": NATIVE, "ieee(11,53)": NATIVE, "float64:RTZ": WIDE, "float64:saturate": WIDE, "float64:flush": WIDE,
    }  # fmt: skip
    assert {spec: parameters(context(spec)).path for spec in paths} == paths
    assert parameters(context("float16"), float64).path == WIDE
    assert parameters(context("float16"), float64).cast_path == NARROW
    assert parameters(context("float64"), float16).path == NATIVE
    assert parameters(context("float64:RTZ"), float16).path == WIDE


def test_native_float64_equals_the_integer_kernels() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2**64, size=(3, 20000), dtype=np.uint64)
    a, b, c = decode(float64, codes)
    close = decode(float64, (codes[0] & np.uint64(0x800FFFFFFFFFFFFF)) | np.uint64(1000 << 52))
    native, soft = arithmetic(context(float64)), wide(context(float64))
    for x, y, z in ((a, b, c), (a, a[::-1], -a), (close, close[::-1], -close), (close, 1 / close, -np.ones_like(a))):
        with np.errstate(all="ignore"):
            assert_same(native.add(x, y), x + y)
            assert_same(native.mul(x, y), x * y)
            assert_same(native.div(x, y), x / y)
            assert_same(native.sqrt(x), np.sqrt(x))
        for name in ("add", "sub", "mul", "div", "fma"):
            arguments = (x, y, z)[: ARITY[name]]
            assert_same(getattr(native, name)(*arguments), getattr(soft, name)(*arguments))
        assert_same(native.sqrt(x), soft.sqrt(x))
        assert_same(native.cast(x), soft.cast(x))


@pytest.mark.parametrize("fmt", [float16, float32])
def test_million_pairs_as_in_hardware(fmt: Format) -> None:
    kind = {float16: np.float16, float32: np.float32}[fmt]
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 1 << fmt.bits, size=(2, 10**6), dtype=np.uint64)
    a, b = decode(fmt, codes)
    x, y = a.astype(kind), b.astype(kind)
    vector = arithmetic(context(fmt))
    with np.errstate(all="ignore"):
        assert_same(vector.add(a, b), x + y)
        assert_same(vector.sub(a, b), x - y)
        assert_same(vector.mul(a, b), x * y)
        assert_same(vector.div(a, b), x / y)
        assert_same(vector.sqrt(a), np.sqrt(x))


@pytest.mark.parametrize("name", [f.name for f in FORMATS.values() if f.bits <= 8])
def test_all_pairs_as_in_ml_dtypes(name: str) -> None:
    # ml_dtypes rounds through float32, harmless at these precisions.  It turns overflow into inf, or NaN where there
    # is none, and saturates in the fp4 and fp6 formats; there 0/0 silently gives −0, which is left out.
    fmt, kind = FORMATS[name], getattr(ml_dtypes, name)
    vector = arithmetic(context(fmt, overflow=None if fmt.has_infinity or not fmt.has_nan else "nan"))
    carriers = values(fmt)
    a, b = (x.reshape(-1) for x in np.broadcast_arrays(carriers[:, None], carriers))
    x, y = a.astype(kind), b.astype(kind)
    with np.errstate(all="ignore"):
        assert_same(vector.add(a, b), x + y)
        assert_same(vector.sub(a, b), x - y)
        assert_same(vector.mul(a, b), x * y)
        keep = slice(None) if fmt.has_nan else b != 0
        assert_same(vector.div(a[keep], b[keep]), x[keep] / y[keep])


# -- codes, ordinals, scalars -----------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [f for f in EMBEDDED if f.bits <= 16], ids=str)
def test_every_code(fmt: Format) -> None:
    codes = np.arange(1 << fmt.bits)
    x = decode(fmt, codes)
    line = [Float(fmt, code) for code in codes.tolist()]
    assert_same(x, [float(v) for v in line])
    assert encode(fmt, x).tolist() == [v.code for v in line]
    assert to_floats(fmt, x) == line
    numbers = [v for v in line if not v.is_nan]
    assert ordinals(fmt, to_carrier(numbers)).tolist() == [v.ordinal for v in numbers]
    top = fmt.largest_code + fmt.has_infinity
    places = np.arange(-top, top + 1)
    assert_same(from_ordinals(fmt, places), [float(from_ordinal(fmt, place)) for place in places.tolist()])


@pytest.mark.parametrize("fmt", [f for f in (*EMBEDDED, ieee(12, 3)) if f.bits <= 16], ids=str)
@pytest.mark.parametrize("finite", [False, True])
def test_values_are_in_order(fmt: Format, finite: bool) -> None:
    assert to_floats(fmt, values(fmt, finite)) == list(all_values(fmt, finite))


@given(data=st.data(), fmt=formats((*EMBEDDED, *HUGE)))
def test_codes_of_wide_formats(data: st.DataObject, fmt: Format) -> None:
    line = [row[0] for row in data.draw(rows([fmt]))]
    x = to_carrier(line)
    assert to_floats(fmt, x) == line
    assert encode(fmt, x).tolist() == [v.code for v in line]
    assert to_floats(fmt, decode(fmt, encode(fmt, x))) == line
    numbers = [v for v in line if not v.is_nan]
    places = ordinals(fmt, to_carrier(numbers)) if numbers else np.zeros(0, dtype=int)
    assert places.tolist() == [v.ordinal for v in numbers]
    assert [v.ordinal for v in to_floats(fmt, from_ordinals(fmt, places))] == places.tolist()


@given(data=st.data(), fmt=formats())
def test_what_is_not_a_value_is_refused(data: st.DataObject, fmt: Format) -> None:
    x = data.draw(floats(float64))
    try:
        expected = exact.cast(context(fmt, overflow="nan" if fmt.has_nan else "saturate"), x)
        held = expected.is_nan if x.is_nan else float(expected) == float(x)
    except UsageError:
        held = False
    if held:
        assert to_floats(fmt, [float(x)]) == [expected]
    else:
        with pytest.raises(UsageError, match="is not a value of"):
            to_floats(fmt, [1.0, float(x)])


def test_shapes() -> None:
    vector = arithmetic(context(float16))
    assert vector.add(1.0, 2.0).shape == () and float(vector.add(1.0, 2.0)) == 3.0
    assert vector.mul(np.ones((3, 1)), np.arange(4)).shape == (3, 4)
    assert vector.fma(np.ones((2, 1, 1)), np.ones(3), np.ones((4, 1))).shape == (2, 4, 3)
    assert vector.add(np.zeros((0, 3)), 1.0).shape == (0, 3)
    assert vector.add([1, 2], np.float32(0.5)).dtype == np.float64
    assert vector.add(np.arange(8.0)[::2], np.arange(8.0)[1::2]).tolist() == [1.0, 5.0, 9.0, 13.0]
    given_array = np.array([1.0, -0.0])
    vector.add(given_array, given_array)
    assert_same(given_array, [1.0, -0.0])
    assert arithmetic(context(float16)) is arithmetic(context("float16"), float16)


def test_flushing_follows_each_operand() -> None:
    # 2^−24 is subnormal in float16 and normal in bfloat16
    tiny = 2.0**-24
    ctx = context("float32:flush-inputs")
    assert arithmetic(ctx, (float16, bfloat16)).add(tiny, tiny) == tiny
    assert arithmetic(ctx, float16).add(tiny, -tiny) == 0
    assert arithmetic(ctx, (bfloat16, bfloat16, float16)).fma(tiny, 1.0, tiny) == tiny


def test_zero_of_a_format_with_one_zero() -> None:
    ctx = context(float16, Mode.RTN)
    expected = exact.sub(ctx, zero(float8_e4m3fnuz), zero(float8_e4m3fnuz))
    assert_same(arithmetic(ctx, float8_e4m3fnuz).sub(0.0, 0.0), float(expected))
    assert_same(arithmetic(ctx).sub(0.0, 0.0), -0.0)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: values(float32), "float32 has 2^32 codes, too many to list"),
        (lambda: decode(float8_e5m2, [0, 256]), "0x100 is not a code of float8_e5m2: it has 8 bits"),
        (lambda: decode(float8_e5m2, [-1]), "is not a code of float8_e5m2"),
        (lambda: decode(float8_e5m2, [1.5]), "codes are integers, not float64"),
        (lambda: encode(float16, [1.0, 0.1]), "0.1) (element 1) is not a value of float16: round it first"),
        (lambda: encode(float8_e4m3fn, [np.inf]), "is not a value of float8_e4m3fn"),
        (lambda: encode(float4_e2m1fn, [np.nan]), "is not a value of float4_e2m1fn"),
        (lambda: ordinals(float16, [np.nan]), "NaN has no place on the line of floats"),
        (lambda: from_ordinals(float16, [0, 31745]), "float16 has no value at ordinal 31745"),
        (lambda: from_ordinals(float4_e2m1fn, [-8]), "no value at ordinal -8"),
        (lambda: from_ordinals(float16, [0.5]), "ordinals are integers"),
        (lambda: arithmetic(context(float4_e2m1fn)).div(0.0, 0.0), "a result is NaN, and float4_e2m1fn has none"),
        (lambda: round_array(context(float4_e2m1fn), [np.nan]), "a result is NaN"),
        (lambda: arithmetic(context(float16), ()), "0 operand formats"),
        (lambda: round_array(context(float16), np.array([nearest(float16, 1)])), "use to_carrier for lists of Float"),
        (lambda: arithmetic(context(float16)).add([2**60 + 1], 1.0), "need not be a float64"),
    ],
)
def test_errors(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        call()
    assert words in str(caught.value)


def test_compiled_kernels_decline_what_float64_cannot_hold() -> None:
    assert all(embeds(f) for f in EMBEDDED) and not any(embeds(f) for f in HUGE)
    with pytest.raises(Unsupported, match=r"ieee\(15,113\) has values that are not float64 values"):
        parameters(context("ieee(15,113)"))
    with pytest.raises(Unsupported, match=r"ieee\(12,3\)"):
        parameters(context(float16), ieee(12, 3))


def test_huge_formats_elementwise() -> None:
    quad = context("ieee(15,113)")
    third = arithmetic(quad).div([1.0, 2.0], [3.0])
    assert third.tolist() == [exact.div(quad, nearest(quad.format, k), nearest(quad.format, 3)) for k in (1, 2)]
    assert round_array(quad, [0.1]).tolist() == [nearest(quad.format, 0.1)]
    narrow = arithmetic(context(float16), quad.format).cast(third)
    assert narrow.tolist() == [exact.cast(context(float16), x) for x in third]


def test_odd_formats_have_distinct_names() -> None:
    assert len({f.name for f in (*EMBEDDED, *HUGE)}) == len({*EMBEDDED, *HUGE}) and ODD_FORMATS


def test_a_cached_loop_notices_a_changed_kernel(tmp_path: Any) -> None:
    # numba stamps a cached function with its own file only, although kernels are compiled into it
    program = (
        "import fpsmt.floats.machine as machine\n"
        "if {changed}: machine._STAMP = 'another'\n"
        "from user import loop\n"
        "loop(1.0)\n"
        "print(sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))\n"
    )
    (tmp_path / "user.py").write_text(
        "from fpsmt.floats.machine import jit\n@jit\ndef loop(x):\n    return x + 1.0\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])

    def run(changed: bool) -> str:
        command = [sys.executable, "-c", program.format(changed=changed)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert [run(False), run(False), run(True)] == ["0 1", "1 0", "0 1"]


@pytest.mark.parametrize("fmt", [float8_e5m2, float8_e4m3fn, float8_e4m3fnuz, float16, bfloat16], ids=str)
def test_compiled_ordinals_are_those_of_values(fmt: Format) -> None:
    top = fmt.largest_code + fmt.has_infinity
    for x in all_values(fmt):
        if not x.is_nan:
            assert ordinal(float(x), fmt.emin, fmt.fraction_bits, top) == x.ordinal
