"""Evaluation on arrays agrees with the reference evaluation bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, Mode, all_values, context, float8_e4m3fn, float8_e4m3fnuz, float16, float32, ieee
from fpsmt.floats.vector import decode, encode
from fpsmt.functions import implementation_named
from fpsmt.terms.arrays import evaluate_arrays
from fpsmt.terms.terms import BitsSort, ChoiceSort, FloatSort
from tests.terms.generators import CONTEXTS, conditions, random_values


def as_arrays(root, assignments):
    arrays = {}
    for v in t.variables(root):
        column = [a[v.data] for a in assignments]
        if isinstance(v.sort, FloatSort):
            arrays[v.data] = decode(v.sort.format, np.array([x.code for x in column], dtype=np.uint64))
        elif isinstance(v.sort, BitsSort):
            arrays[v.data] = np.array(column, dtype=np.uint64 if v.sort.width <= 64 else object)
        else:
            arrays[v.data] = np.array(column)
    return arrays


def reference(root, assignment):
    value = t.evaluate(root, assignment)
    return value.code if isinstance(value, Float) else value


@given(conditions(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_random_terms(root, rng):
    assignments = [random_values(root, rng) for _ in range(16)]
    arrays = as_arrays(root, assignments)
    for term in t.postorder(root):
        got = np.broadcast_to(evaluate_arrays(term, arrays), (16,))
        if isinstance(term.sort, FloatSort):
            got = encode(term.format, got)
        assert [int(x) for x in got] == [int(reference(term, a)) for a in assignments]


@pytest.mark.parametrize("ctx", CONTEXTS, ids=str)
def test_every_operation_on_special_values(ctx):
    fmt = ctx.format
    codes = [x.code for x in all_values(fmt)] if fmt.bits <= 6 else special_codes(fmt)
    a, b = (c.reshape(-1) for c in np.meshgrid(codes, codes))
    x, y = t.var("x", fmt), t.var("y", fmt)
    for term in (t.add(ctx, x, y), t.mul(ctx, x, y), t.fma(ctx, x, y, x), t.add_products(ctx, x, y, y, y), t.neg(x)):
        arrays = {"x": decode(fmt, a), "y": decode(fmt, b)}
        try:
            got = encode(fmt, evaluate_arrays(term, arrays))
        except UsageError:
            assert not fmt.has_nan
            continue
        want = [t.evaluate(term, {"x": Float(fmt, int(p)), "y": Float(fmt, int(q))}).code for p, q in zip(a, b)]
        assert got.tolist() == want


def special_codes(fmt):
    top = fmt.largest_code + fmt.has_infinity
    around = (1 << fmt.fraction_bits, fmt.bias << fmt.fraction_bits, top)
    magnitudes = {0, 1, 2, *(m + d for m in around for d in (-1, 0, 1) if m + d < fmt.sign_mask)}
    return sorted({Float(fmt, m | s).code for m in magnitudes for s in (0, fmt.sign_mask)})


def test_bits_wider_than_a_machine_word():
    a, b = t.var("a", BitsSort(100)), t.var("b", BitsSort(100))
    root = t.concat(t.extract(t.shift_left(t.bits_add(a, b), b), 90, 3), t.bits_and(a, b))
    values = [{"a": (1 << 99) + 12345, "b": 7}, {"a": (1 << 100) - 1, "b": 100}, {"a": 5, "b": (1 << 100) - 2}]
    arrays = {k: np.array([v[k] for v in values], dtype=object) for k in "ab"}
    assert evaluate_arrays(root, arrays).tolist() == [t.evaluate(root, v) for v in values]


def test_shift_by_the_width_of_a_word():
    a, b = t.var("a", BitsSort(64)), t.var("b", BitsSort(64))
    root = t.concat(t.shift_left(a, b), t.bits_sub(a, b))
    values = [{"a": 3, "b": s} for s in (0, 1, 63, 64, 65, 1 << 63)]
    arrays = {k: np.array([v[k] for v in values], dtype=np.uint64) for k in "ab"}
    assert evaluate_arrays(root, arrays).tolist() == [t.evaluate(root, v) for v in values]


def test_activations():
    ctx = context("float8_e4m3")
    x = t.var("x", ctx.format)
    rounded = t.apply(implementation_named("tanh"), ctx, x)
    values = list(all_values(ctx.format))
    got = encode(ctx.format, evaluate_arrays(rounded, {"x": decode(ctx.format, [v.code for v in values])}))
    assert got.tolist() == [t.evaluate(rounded, {"x": v}).code for v in values]
    loose = t.apply(implementation_named("tanh:floats=1"), ctx, x)
    with pytest.raises(Unsupported, match="several values"):
        evaluate_arrays(loose, {"x": [0.5]})
    assert evaluate_arrays(loose, {"x": [0.5]}, {loose: [0.25]}).tolist() == [0.25]


@pytest.mark.parametrize("fmt", [float8_e4m3fn, float8_e4m3fnuz, float16, float32])
def test_values_that_are_not_of_the_format_are_refused(fmt):
    with pytest.raises(UsageError, match="x"):
        evaluate_arrays(t.neg(t.var("x", fmt)), {"x": [1.0 + 2.0**-40]})


def test_choices_out_of_range_are_refused():
    choice = t.var("c", ChoiceSort(3))
    with pytest.raises(UsageError, match="0 … 2"):
        evaluate_arrays(t.choice_is(choice, 1), {"c": [3]})


def test_a_format_that_is_not_embedded():
    wide = ieee(15, 113)
    ctx = context(wide)
    x = t.var("x", wide)
    root = t.lt(t.add(ctx, x, x), t.neg(t.absolute(x)))
    values = [Float(wide, c) for c in (1, 1 << 127, (1 << 127) + 5, wide.infinity_code, wide.nan_code)]
    array = np.empty(len(values), dtype=object)
    array[:] = values
    assert evaluate_arrays(root, {"x": array}).tolist() == [t.evaluate(root, {"x": v}) for v in values]


def test_all_modes_of_a_cast():
    x = t.var("x", float32)
    values = [1.0, 1.0 + 2.0**-11, -1.0 - 2.0**-11, 65520.0, -65520.0, 2.0**-26, -(2.0**-25)]
    for mode in Mode:
        root = t.cast(context("float16", mode), x)
        got = encode(float16, evaluate_arrays(root, {"x": values})).tolist()
        assert got == [t.evaluate(root, {"x": Float(float32, int(c))}).code for c in encode(float32, values)]
