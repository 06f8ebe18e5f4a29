"""What numpy's sum computes, bit for bit, for every format, axis and layout that `numpy_sum_execution` describes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import UsageError
from fpsmt.floats import Format, bfloat16, context, float8_e5m2, float16, float32, float64
from fpsmt.networks.executions import Execution
from fpsmt.networks.numpy_sums import numpy_sum_execution
from fpsmt.networks.sums import evaluate_tree_batch
from tests.networks.test_orders import by_tree

DTYPES: dict[Format, Any] = {
    float16: np.float16,
    float32: np.float32,
    float64: np.float64,
    bfloat16: ml_dtypes.bfloat16,
    float8_e5m2: ml_dtypes.float8_e5m2,
}
NATIVE = [float16, float32, float64]
Array = np.ndarray[Any, Any]


def numbers(fmt: Format, shape: tuple[int, ...], seed: int, spread: int = 6) -> Array:
    """Values of mixed signs and magnitudes, which other orders round otherwise."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-spread, spread + 1, shape))).astype(DTYPES[fmt])


def by_reference(fmt: Format, how: Execution, terms: Array) -> Array:
    """The sums over the first axis."""
    ctx = context(fmt)
    tree = how.default_schedule(len(terms), products=False)
    with np.errstate(all="ignore"):
        return evaluate_tree_batch(ctx, tree, terms.astype(np.float64), execution=how).astype(DTYPES[fmt])


def same(fmt: Format, one: Array, two: Array) -> bool:
    """Bit for bit, but for the sign of a zero."""
    assert one.dtype == two.dtype == DTYPES[fmt]
    return (one + DTYPES[fmt](0)).tobytes() == (two + DTYPES[fmt](0)).tobytes()


def agrees(fmt: Format, x: Array, axis: int | None, order: Any) -> bool:
    terms = x.ravel(order="K") if axis is None else np.moveaxis(x, axis, 0)
    how = numpy_sum_execution(fmt, x.shape, axis, order)
    with np.errstate(all="ignore"):
        return same(fmt, by_reference(fmt, how, np.array(terms)), np.asarray(x.sum(axis=axis)))


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(list(DTYPES)),
    st.lists(st.sampled_from([1, 2, 3, 7, 8, 9, 40, 129]), min_size=1, max_size=3),
    st.sampled_from("CF"),
    st.integers(0, 2**32 - 1),
    st.data(),
)
def test_any_axis_of_any_shape(fmt: Format, shape: list[int], order: Any, seed: int, data: st.DataObject) -> None:
    shape = shape if np.prod(shape) < 10**4 else shape[:2]
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    x = np.asarray(numbers(fmt, tuple(shape), seed), order=order)
    assert agrees(fmt, x, axis, order)


@pytest.mark.parametrize("fmt", NATIVE, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_and_columns(fmt: Format, order: Any) -> None:
    """One axis is pairwise, the other from left to right; lengths around the ends of lanes and blocks."""
    for n in (*range(1, 18), 127, 128, 129, 136, 255, 256, 257, 1023, 1024, 1025, 1100):
        x = np.asarray(numbers(fmt, (n, 5), n), order=order)
        assert agrees(fmt, x, 0, order) and agrees(fmt, np.asarray(x.T, order=order), 1, order), n


@pytest.mark.parametrize("n", [8 * 128 - 1, 8 * 128, 8 * 128 + 1, 8 * 128 + 8, 9 * 128, 16 * 128 + 5, 20_000])
@pytest.mark.parametrize("fmt", NATIVE, ids=str)
def test_long_vectors(fmt: Format, n: int) -> None:
    assert agrees(fmt, numbers(fmt, (n,), n), 0, "C")


def test_every_length_in_float16() -> None:
    """Rows of 1…1100 float16 values: pairwise in float32, rounded once (float32 and float64: test_orders)."""
    assert str(numpy_sum_execution(float16, (1100,))) == "pairwise accumulator=float32"
    own = 0
    for n in range(1, 1101):
        x = numbers(float16, (4, n), n, 9)
        columns = np.ascontiguousarray(x.T)
        assert same(float16, by_tree(columns.astype(np.float32)).astype(np.float16), x.sum(axis=1)), n
        own += n % 50 == 0 and not same(float16, by_tree(columns), x.sum(axis=1))
    assert own > 10  # adding in float16 is something else


@pytest.mark.parametrize("fmt", NATIVE, ids=str)
def test_views_are_summed_in_their_own_order(fmt: Format) -> None:
    x = numbers(fmt, (60, 400), 3)
    for view, axis in ((x[:, ::2], 1), (x[:, ::-1], 1), (x[:, ::-3], 1), (x[::2], 0), (x[::-1], 0), (x[5:50, 3:90], 1)):
        assert agrees(fmt, view, axis, "C")
    assert agrees(fmt, x.T, 0, "F") and agrees(fmt, x.T, 1, "F")
    assert agrees(fmt, x[0, ::-1], 0, "C")


def test_overflow_in_float16_depends_on_the_axis() -> None:
    """60000 + 60000 − 60000: held by the float32 accumulator of one axis, infinite along the other."""
    row = np.array([60000, 60000, -60000], dtype=np.float16)
    both = np.stack([row, row])
    with np.errstate(over="ignore"):
        assert both.sum(axis=1).tolist() == [60000, 60000]
        assert np.ascontiguousarray(both.T).sum(axis=0).tolist() == [np.inf, np.inf]
    assert agrees(float16, both, 1, "C") and agrees(float16, np.ascontiguousarray(both.T), 0, "C")


def test_what_is_refused() -> None:
    assert np.zeros((0, 3), dtype=np.float32).sum(axis=0).tolist() == [0, 0, 0]
    with pytest.raises(UsageError, match="no elements"):
        numpy_sum_execution(float32, (0, 3))
    with pytest.raises(UsageError, match="has the axes 0…1"):
        numpy_sum_execution(float32, (2, 3), 2)
    with pytest.raises(UsageError, match="write 'C' or 'F'"):
        numpy_sum_execution(float32, (2, 3), 0, "K")  # type: ignore[arg-type]
