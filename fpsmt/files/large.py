"""Vectors of very many numbers from .npy files as arrays of values of a format, without an object for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import UsageError
from fpsmt.files.arrays import MAX_TERMS, load_array
from fpsmt.floats import Float, Format, exactly, largest, nearest_context
from fpsmt.floats.compiled import embeds
from fpsmt.floats.vector import decode, round_array

Array = NDArray[Any]


def read_large(path: str, fmt: Format) -> tuple[Array, list[tuple[str, Float]], int]:
    """(carriers, the first numbers that had to be rounded, how many had to).

    The same rules as `fpsmt.files.arrays.read_vector`: one dimension, floats or integers, or raw bytes as wide as the
    format, which are codes; numbers are rounded to nearest, ties to even, and a finite one beyond the format's range
    is a usage error, as are NaN and infinities that the format lacks.
    """
    array = load_array(Path(path))
    if array.ndim != 1:
        raise UsageError(f"{path} has shape {array.shape}: a vector with one dimension is needed")
    if len(array) > MAX_TERMS:
        raise UsageError(f"{path} has {len(array)} elements: at most {MAX_TERMS} are read")
    if not embeds(fmt):
        raise UsageError(f"{path}: {fmt} is not embedded in float64: at most a few thousand terms are read")
    kind, width = array.dtype.kind, 8 * array.dtype.itemsize
    if kind == "V" and array.dtype.names is None and width in (8, 16, 32, 64) and width >= fmt.bits > width // 2:
        return decode(fmt, array.view(f"u{array.dtype.itemsize}")), [], 0
    if kind in "iu":
        given = array.astype(np.float64)
        if len(array) and np.abs(given).max() >= 2.0**53:
            raise UsageError(f"{path} holds integers of 2^53 or more: save them as floats")
    elif kind == "f" and width <= 64:
        given = array.astype(np.float64)
    else:
        raise UsageError(f"{path} holds elements of type {array.dtype}: save float16, float32, float64 or integers")
    for there, missing, name in (
        (np.isnan(given), not fmt.has_nan, "NaN"),
        (np.isinf(given), not fmt.has_infinity, "infinity"),
    ):
        if missing and there.any():
            raise UsageError(f"{path}: element {int(np.argmax(there))} is {name}, and {fmt} has none")
    values = round_array(nearest_context(fmt), given)
    beyond = np.isfinite(given) & (~np.isfinite(values) | ((np.abs(given) > float(fmt.largest)) & (values != given)))
    if beyond.any():
        at = int(np.argmax(beyond))
        raise UsageError(f"{float(given[at])} is beyond the range of {fmt}, whose largest value is {largest(fmt)}")
    same = (values == given) & (np.signbit(values) == np.signbit(given)) | np.isnan(given)
    changed = np.flatnonzero(~same)
    some = [(repr(float(given[i])), exactly(fmt, float(values[i]))) for i in changed[:3].tolist()]
    return values, some, len(changed)
