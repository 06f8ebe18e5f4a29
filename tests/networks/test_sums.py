"""Sums and dot products: public cases with known outcomes, exact products, and the twin on arrays."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import floats
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Mode, context, exactly, float16, float32, ieee, round_real
from fpsmt.floats.vector import to_carrier, to_floats
from fpsmt.networks import shapes
from fpsmt.networks.executions import Execution, execution
from fpsmt.networks.orders import parse_order
from fpsmt.networks.sums import SumFormats, evaluate_tree, evaluate_tree_batch
from tests import strategies

F16 = context("float16")


def values(fmt, numbers):
    return [exactly(fmt, x) for x in numbers]


def outcomes(ctx, terms, how, **options):
    products = isinstance(terms[0], tuple)
    return {
        evaluate_tree(ctx, tree, terms, execution=how, **options).result.decimal
        for tree in how.schedules(len(terms), products=products)
    }


@pytest.mark.parametrize(
    ("count", "order", "expected"),
    [
        (2, "any", {"0.0"}),
        (3, "any", {"0.0", "inf", "-inf", "nan"}),
        (3, "sequential", {"0.0", "inf", "-inf"}),
        (4, "contiguous", {"0.0", "inf", "-inf", "nan"}),
    ],
)
def test_float16_overflow_depends_on_the_order(count, order, expected):
    terms = values(float16, [32000] * count + [-32000] * count)
    assert outcomes(F16, terms, execution(order)) == expected


def test_float16_overflow_over_all_135135_trees():
    """Equal leaves give equal subtrees: the set of values of i positive and j negative terms is built bottom up,
    which covers every tree; a wide accumulator leaves only 0."""
    for ctx, expected in ((F16, {"0.0", "inf", "-inf", "nan"}), (context("float32"), {"0.0"})):
        reach = {(1, 0): {exactly(ctx.format, 32000)}, (0, 1): {exactly(ctx.format, -32000)}}
        for total in range(2, 9):
            for i in range(max(0, total - 4), min(4, total) + 1):
                j = total - i
                reach[i, j] = {
                    floats.add(ctx, a, b)
                    for (p, q), left in list(reach.items())
                    if p <= i and q <= j and p + q < total
                    for a in left
                    for b in reach[i - p, j - q]
                }
        assert {x.decimal for x in reach[4, 4]} == expected
        rng = Random(1)
        terms = values(ctx.format, [32000] * 4 + [-32000] * 4)
        drawn = {evaluate_tree(ctx, shapes.random_any(8, rng), terms).result for _ in range(300)}
        assert drawn <= reach[4, 4]
        assert {x.decimal for x in drawn} == expected


def test_dot_product_with_and_without_fma():
    """Two products, which commute: 0 when both are rounded, 2^−26 when the second is fused."""
    ctx = context("float32")
    x = values(float32, [1, 1 + Fraction(1, 2**13)])
    w = values(float32, [-(1 + Fraction(1, 2**12)), 1 + Fraction(1, 2**13)])
    terms = list(zip(w, x))
    assert outcomes(ctx, terms, execution()) == {"0.0"}
    by_tree = {
        tree: evaluate_tree(ctx, tree, terms, execution=execution(fma="any")).result.fraction
        for tree in execution(fma="any").schedules(2)
    }
    assert by_tree == {(0, 1): 0, ("fma", 1, 0): Fraction(1, 2**26), ("fma", 0, 1): 0}
    exact = evaluate_tree(ctx, (0, 1), terms, execution=execution(products="exact"))
    assert exact.result.fraction == Fraction(1, 2**26)
    assert exact.values == (None, None, exact.result)


def test_the_bias_and_the_accumulator():
    ctx = context("bfloat16")
    one, big = exactly(ctx.format, 1), exactly(ctx.format, 256)
    terms = [(one, big), (one, one), (one, one)]
    bias = exactly(ctx.format, -256)
    assert evaluate_tree(ctx, (((0, 1), 2), 3), terms, bias).result.fraction == 0
    wide = execution(accumulator="float32")
    trace = evaluate_tree(ctx, (((0, 1), 2), 3), terms, bias, wide)
    assert trace.result == exactly(ctx.format, 2)
    assert {v.format.name for v in trace.values} == {"float32"}
    assert evaluate_tree(ctx, (((0, 3), 1), 2), terms, bias).result.fraction == 2
    assert evaluate_tree(ctx, 0, [], bias).result == bias
    assert evaluate_tree(ctx, 0, [(big, big)]).result.fraction == 65536


def test_a_lone_term_is_not_touched_and_leaves_become_accumulator_values():
    flush = context("float16:flush")
    tiny = exactly(float16, Fraction(1, 2**24))
    assert evaluate_tree(flush, 0, [tiny]).result == tiny
    narrow = execution(accumulator="float8_e5m2")
    x = values(float16, [1.0625, 1.0625])
    assert evaluate_tree(F16, (0, 1), x, execution=narrow).values[0].fraction == 1
    assert evaluate_tree(F16, 0, x[:1], execution=narrow).result == exactly(float16, 1)


def test_products_context():
    how = execution(products="float8_e5m2", accumulator="float32")
    terms = [(exactly(float16, 1.0625), exactly(float16, 1.0625))] * 2
    rounded = evaluate_tree(F16, (0, 1), terms, execution=how)
    assert [v.fraction for v in rounded.values] == [Fraction(5, 4), Fraction(5, 4), Fraction(5, 2)]
    assert {v.format for v in rounded.values} == {float32}
    fused = evaluate_tree(context("float32"), ("fma", 0, 1), terms, execution=how).result.fraction
    assert fused == Fraction(5, 4) + Fraction(1.0625) ** 2


def test_text_shows_every_value():
    trace = evaluate_tree(F16, ("fma", 1, 0), [(exactly(float16, 2), exactly(float16, 3))] * 2)
    assert trace.text(["a", "b"]) == "fma = 12.0\n|-- b\n`-- a = 6.0"


@pytest.mark.parametrize(
    ("tree", "terms", "how", "message"),
    [
        (0, [], execution(), "empty sum"),
        ((0, 1), [exactly(float16, 1)], execution(), "leaf 1"),
        (("fma", 0, 1), values(float16, [1, 2]), execution(), "not a product"),
        (("fma", 0, 1), [(exactly(float16, 1),) * 2] * 2, execution(products="exact"), "nothing to fuse"),
        ((0, 1), [exactly(float16, 1), (exactly(float16, 1),) * 2], execution(), "all of them pairs"),
        ((0, 1), [1.0, 2.0], execution(), "are Floats"),
    ],
)
def test_error_messages(tree, terms, how, message):
    with pytest.raises(UsageError, match=message):
        evaluate_tree(F16, tree, terms, execution=how)


# -- an independent evaluation -----------------------------------------------------------------------------


def by_recursion(ctx: Context, tree, terms):
    """Plain sums by exact rationals, finite values only."""
    if isinstance(tree, int):
        return terms[tree]
    a, b = (by_recursion(ctx, t, terms) for t in tree)
    total = a.fraction + b.fraction
    minus = (a.negative and b.negative) if a.negative == b.negative else ctx.mode is Mode.RTN
    return round_real(ctx, total, minus)


@given(st.data())
@settings(max_examples=60)
def test_sums_of_finite_values_by_rationals(data):
    fmt = data.draw(strategies.formats([ieee(9, 5), ieee(9, 12), ieee(10, 3)]))
    ctx = Context(fmt, data.draw(st.sampled_from(list(Mode))), floats.Overflow.INFINITY, floats.Subnormals.GRADUAL)
    n = data.draw(st.integers(1, 7))
    small = strategies.finite_floats(fmt).filter(lambda x: abs(x.fraction) < fmt.largest / 16)
    terms = [data.draw(small) for _ in range(n)]
    tree = shapes.random_any(n, Random(data.draw(st.integers(0, 10**6))))
    assert evaluate_tree(ctx, tree, terms).result == by_recursion(ctx, tree, terms)


# -- the twin ---------------------------------------------------------------------------------------------


def executions_of(accumulators: list[Context | None]) -> st.SearchStrategy[Execution]:
    return st.builds(
        Execution,
        st.sampled_from([parse_order(t) for t in ("any", "lanes:2", "pairwise", "sequential")]),
        st.sampled_from(["never", "always", "any"]),
        st.sampled_from(accumulators),
        st.sampled_from([None, "exact", *accumulators]),
        st.sampled_from(["last", "first", "any"]),
    )


def same_or_same_error(one, many):
    """The result of both, or a usage error of both (a NaN where the format has none)."""
    try:
        expected = one()
    except UsageError:
        with pytest.raises(UsageError):
            many()
        return
    assert many() == expected


@given(st.data())
@settings(max_examples=150)
def test_batch_twin_with_special_values(data):
    ctx = data.draw(strategies.contexts())
    others = [None, data.draw(strategies.contexts()), context("float32")]
    how = data.draw(executions_of(others))
    some = st.one_of(st.just(ctx.format), strategies.formats())
    f_terms, f_weights, f_bias = data.draw(some), data.draw(some), data.draw(some)
    n, products, bias = data.draw(st.integers(0, 6)), data.draw(st.booleans()), data.draw(st.booleans())
    if n == 0:
        bias, products = True, False
    tree = how.random_schedule(n, Random(data.draw(st.integers(0, 10**6))), bias, products)
    batch = 3
    draw = lambda fmt: [data.draw(strategies.floats(fmt)) for _ in range(batch)]  # noqa: E731
    x, w, b = [draw(f_terms) for _ in range(n)], [draw(f_weights) for _ in range(n)], draw(f_bias)

    def one() -> list[Float]:
        out = []
        for k in range(batch):
            terms = [(w[i][k], x[i][k]) if products else x[i][k] for i in range(n)]
            out.append(evaluate_tree(ctx, tree, terms, b[k] if bias else None, how).result)
        return out

    def many() -> list[Float]:
        got = evaluate_tree_batch(
            ctx, tree,
            np.array([to_carrier(row) for row in x]).reshape(n, batch),
            np.array([to_carrier(row) for row in w]) if products else None,
            to_carrier(b) if bias else None, how, SumFormats(f_terms, f_weights, f_bias),
        )  # fmt: skip
        return to_floats(ctx.format, np.broadcast_to(got, batch))

    same_or_same_error(one, many)


def test_batch_twin_of_a_format_beyond_float64():
    fmt = ieee(15, 113)
    ctx = context(fmt)
    x = [floats.nearest(fmt, Fraction(k, 7)) for k in range(1, 5)]
    tree = ((0, 1), (2, 3))
    got = evaluate_tree_batch(ctx, tree, to_carrier(x), to_carrier(x))
    assert to_floats(fmt, np.array([got.item() if hasattr(got, "item") else got], dtype=object)) == [
        evaluate_tree(ctx, tree, [(v, v) for v in x]).result
    ]


def test_batch_errors():
    with pytest.raises(UsageError, match="2 weights for 3 inputs"):
        evaluate_tree_batch(F16, ((0, 1), 2), np.ones((3, 1)), np.ones((2, 1)))
    with pytest.raises(UsageError, match="empty sum"):
        evaluate_tree_batch(F16, 0, np.ones((0, 1)))
