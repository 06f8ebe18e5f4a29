"""Numbers on one grid, with bounds from the formula, against every value; what has no encoding is declined."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Mode, Overflow, Subnormals, context, exactly, float8_e4m3, float16, ieee, pow2, zero
from fpsmt.smt import solve
from fpsmt.smt.encoding import Query, encode
from fpsmt.smt.interpret import interpret
from fpsmt.terms.arrays import evaluate_arrays
from fpsmt.terms.terms import BitsSort

CONTEXTS = [context(float8_e4m3), context(ieee(4, 6)), context(ieee(5, 3)), context(float16)]
WIDTH = 7  #: bits of a variable, at most


def values(query: Query, condition: t.Term) -> tuple[np.ndarray, np.ndarray]:
    """The condition at every assignment: as encoded, and by the reference arithmetic."""
    names = t.variables(condition)
    grids = [
        g.reshape(-1)
        for g in np.meshgrid(*(np.arange(1 << v.sort.width, dtype=np.uint64) for v in names), indexing="ij")
    ]
    symbols = {str(query.encoder.variables[v.data].node.value): g.astype(object) for v, g in zip(names, grids)}
    shape = grids[0].shape if grids else ()
    found = np.broadcast_to(interpret(query.root, symbols), shape)
    return found, np.broadcast_to(evaluate_arrays(condition, {v.data: g for v, g in zip(names, grids)}), shape)


@st.composite
def facts(draw: st.DrawFn, v: t.Term, width: int) -> tuple[t.Term, ...]:
    """What is said about the top bits of a code, or its bounds; sometimes nothing."""
    low = draw(st.integers(0, (1 << width) - 1))
    size = 1 << draw(st.integers(0, width - 1))
    start = low // size * size
    k = size.bit_length() - 1
    top = t.same(t.extract(v, width - 1, k), t.bits(width - k, start >> k))
    ends = (t.negation(t.bits_less(v, t.bits(width, start))), t.bits_less(v, t.bits(width, start + size)))
    bounded = ends if start + size < 1 << width else ends[:1]
    return draw(st.sampled_from([(top,), bounded, ()]))


@st.composite
def formulas(draw: st.DrawFn) -> t.Term:
    """Comparisons of rounded sums, products with constants, casts and choices of numbers given by codes."""
    ctx = draw(st.sampled_from(CONTEXTS))
    fmt = ctx.format
    given_: list[t.Term] = []
    numbers: list[t.Term] = []
    for k in range(draw(st.integers(1, 2))):
        v = t.var(f"v{k}", BitsSort(min(WIDTH, fmt.bits - 2)))
        given_ += draw(facts(v, v.sort.width))
        pad = fmt.bits - v.sort.width
        high = draw(st.integers(0, (fmt.largest_code >> v.sort.width)))
        parts = draw(st.sampled_from([(t.bits(pad, high), v), (t.bits(pad - 1, 0), v, t.bits(1, 0))]))
        code = t.concat(*parts)
        numbers.append(t.from_bits(fmt, code))
        if draw(st.booleans()):
            numbers.append(t.from_bits(fmt, t.bits_add(code, t.bits(fmt.bits, 1))))
    conditions: list[t.Term] = []
    for _ in range(draw(st.integers(1, 5))):
        a, b = (draw(st.sampled_from(numbers)) for _ in range(2))
        factor = pow2(draw(st.integers(-2, 2))) * draw(st.sampled_from([1, -1, 3, Fraction(3, 2)]))
        scale = t.const(exactly(fmt, factor))
        offset = t.const(exactly(fmt, Fraction(draw(st.integers(-4, 4))) * draw(st.sampled_from([1, fmt.smallest]))))
        kind = draw(st.integers(0, 6))
        if kind == 6:
            conditions.append(draw(st.sampled_from([t.lt, t.le, t.eq]))(a, b))
            numbers.append(t.ite(draw(st.sampled_from(conditions)), a, b))
        else:
            sums = [t.add(ctx, a, b), t.sub(ctx, a, b), t.add(ctx, a, offset)]
            numbers.append([*sums, t.mul(ctx, scale, a), t.neg(a), t.cast(ctx, a)][kind])
    a, b = numbers[-1], draw(st.sampled_from(numbers))
    compare = draw(st.sampled_from([t.lt, t.le, t.eq, t.same]))
    final = compare(a, b) if compare is not t.same else t.same(a, t.const(exactly(fmt, 1)))
    conditions.append(draw(st.sampled_from([final, t.negation(final)])))
    return t.all_of(*given_, draw(st.sampled_from([t.all_of, t.any_of]))(*conditions[-3:]))


ENCODED: list[int] = []


@given(formulas())
@settings(max_examples=200, deadline=None)
def test_random_formulas_at_every_value(condition: t.Term) -> None:
    try:
        query = encode(condition, "fixed")
    except Unsupported:
        return
    ENCODED.append(1)
    found, expected = values(query, condition)
    assert (found == expected).all()


def test_enough_random_formulas_were_encoded() -> None:
    if not ENCODED:
        pytest.skip("runs after test_random_formulas_at_every_value")
    assert len(ENCODED) >= 60


def number(low: int, high: int, fmt=float8_e4m3, name: str = "v") -> tuple[t.Term, t.Term]:
    """(where, x): a float with a code from low to high."""
    v = t.var(name, BitsSort(fmt.bits))
    where = t.all_of(
        t.negation(t.bits_less(v, t.bits(fmt.bits, low))), t.negation(t.bits_less(t.bits(fmt.bits, high), v))
    )
    return where, t.from_bits(fmt, v)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("field", [2, 3, 6, 13])
def test_every_sum_of_two_binades(field: int, sign: int) -> None:
    """x ± y for x in one binade, and y among the subnormals or in a binade: every rounding and every tie."""
    fmt, ctx = float8_e4m3, context(float8_e4m3)
    here, x = number(field << 3, (field << 3) + 7)
    for low in (0, field - 2 << 3, 7 << 3):
        there, y = number(low, low + 7, name="w")
        total = t.add(ctx, x, y if sign > 0 else t.neg(y))
        for bound in (0, 1, (field << 3) + 1, (field << 3) + 6, (field << 3) - 3):
            end = t.const(t.evaluate(t.from_bits(fmt, t.bits(8, bound)), {}))
            for compare in (t.lt(total, end), t.le(end, total), t.eq(total, end), t.lt(t.neg(end), total)):
                condition = t.all_of(here, there, compare)
                found, expected = values(encode(condition, "fixed"), condition)
                assert (found == expected).all()


def test_casts_among_subnormals_round() -> None:
    """From 10 fraction bits to 3, below and above the least normal value of the result."""
    small = context(ieee(5, 4))
    for low in (0, 1 << 10, 5 << 10, 15 << 10):
        v = t.var("v", BitsSort(16))
        where = t.same(t.extract(v, 15, 10), t.bits(6, low >> 10))
        y = t.cast(small, t.from_bits(float16, v))
        for code in (1, 3, 8, 9, 40, 41, 120, 121):
            condition = t.all_of(where, t.le(t.const(t.evaluate(t.from_bits(small.format, t.bits(9, code)), {})), y))
            found, expected = values(encode(condition, "fixed"), condition)
            assert (found == expected).all()


def test_bounds_come_from_conjuncts_alone() -> None:
    where, x = number(1, 7)
    one = t.const(exactly(float8_e4m3, 1))
    assert encode(t.negation(t.implies(where, t.lt(x, one))), "fixed").encoder.name == "fixed"
    with pytest.raises(Unsupported, match="not within one binade"):
        encode(t.any_of(where, t.lt(x, one)), "fixed")


def test_equal_parts_share_bounds() -> None:
    """The fields of two codes are equal, and one is known."""
    u, v = (t.var(name, BitsSort(8)) for name in "uv")
    fields = t.same(t.extract(u, 7, 3), t.extract(v, 7, 3))
    known = t.same(t.extract(v, 7, 3), t.bits(5, 9))
    condition = t.all_of(fields, known, t.lt(t.from_bits(float8_e4m3, u), t.from_bits(float8_e4m3, v)))
    found, expected = values(encode(condition, "fixed"), condition)
    assert (found == expected).all() and found.any()


def test_facts_that_contradict_each_other() -> None:
    v = t.var("v", BitsSort(8))
    where = t.all_of(t.bits_less(v, t.bits(8, 3)), t.bits_less(t.bits(8, 5), v))
    condition = t.all_of(where, t.lt(t.from_bits(float8_e4m3, v), t.const(exactly(float8_e4m3, 1))))
    try:
        found, expected = values(encode(condition, "fixed"), condition)
    except Unsupported:
        return
    assert not found.any() and not expected.any()


def test_solvers_answer_and_are_replayed() -> None:
    where, x = number(9 << 3, (9 << 3) + 7)
    ctx = context(float8_e4m3)
    tie = t.all_of(where, t.eq(t.add(ctx, x, t.const(exactly(float8_e4m3, Fraction(1, 4)))), x))
    answer = solve(tie, encoder="fixed", timeout=30)
    assert answer.status == "sat" and answer.encoder == "fixed"
    assert t.evaluate(tie, answer.assignment) is True
    never = t.all_of(where, t.lt(t.add(ctx, x, x), x))
    assert solve(never, encoder="fixed", timeout=30).status == "unsat"


HERE, X = number(8 << 3, (8 << 3) + 7)
THERE, Y = number(0, 7, name="w")
ONE = t.const(exactly(float8_e4m3, 1))
ZERO = t.const(zero(float8_e4m3))
PLAIN = context(float8_e4m3)
UP = Context(float8_e4m3, Mode.RTP, Overflow.INFINITY, Subnormals.GRADUAL)
FLUSH = context("float8_e4m3:flush")
DECLINED = {
    "a product of two variables": t.lt(t.mul(PLAIN, X, Y), ONE),
    "a sum that may overflow": t.lt(t.mul(PLAIN, X, t.const(exactly(float8_e4m3, 128))), ONE),
    "another rounding mode": t.lt(t.add(UP, X, Y), ONE),
    "flushing": t.lt(t.add(FLUSH, X, Y), ONE),
    "the signs of zeros": t.same(Y, t.neg(Y)),
    "a sign test": t.is_negative(Y),
    "a division": t.lt(t.div(PLAIN, X, ONE), ONE),
    "a variable float": t.lt(t.var("z", float8_e4m3), ONE),
    "an infinite constant": t.lt(X, t.from_bits(float8_e4m3, t.bits(8, 0x78))),
    "a fused operation": t.lt(t.fma(PLAIN, ONE, X, Y), ONE),
}


@pytest.mark.parametrize("what", DECLINED)
def test_declined(what: str) -> None:
    with pytest.raises(Unsupported):
        encode(t.all_of(HERE, THERE, DECLINED[what]), "fixed")
