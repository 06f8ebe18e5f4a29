"""Vectors of numbers from .npy files and comma-separated lists, read with care and without pickles."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np

from fpsmt.errors import UsageError
from fpsmt.floats import Float, Format, exactly, largest, nearest, read_number

MAX_BYTES = 1 << 26  #: of a file
MAX_TERMS = 1 << 20

Number = Fraction | float


def read_vector(text: str, fmt: Format, where: str) -> list[tuple[str, Number]]:
    """(what was written, the number) for each element of a .npy file or of a list such as ``1,2^-3``.

    Arrays have one dimension and hold floats or integers; arrays of raw bytes as wide as the format, which is how
    ``numpy.save`` writes ml_dtypes arrays, are codes of the format.  `where` names the option in errors.
    """
    if text.endswith(".npy") or os.path.isfile(text):
        return [(_shown(x), x) for x in _numbers(load_array(Path(text)), fmt, text)]
    words = [word.strip() for word in text.split(",")]
    for place, word in enumerate(words, 1):
        if not word:
            raise UsageError(f"{where}: element {place} of the list {text[:60]!r} is empty")
    return [(word, read_number(word)) for word in words]


def load_array(path: Path) -> np.ndarray:
    """The array in a .npy file; one clear line when it is missing, too large, truncated, pickled or of another kind."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UsageError(f"{path} has {size >> 20} MiB: arrays of at most {MAX_BYTES >> 20} MiB are read")
        with path.open("rb") as file:
            start = file.read(6)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    if start != b"\x93NUMPY":
        raise UsageError(f"{path} is not a .npy file: write it with numpy.save")
    try:
        # mapping compares the size of the file with the shape before any memory is taken
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, OverflowError) as error:
        why = " ".join(str(error).split())
        if "Python objects" in why or "allow_pickle" in why:
            why = "it holds Python objects (pickled), which are never loaded; save an array of floats"
        elif "mmap" in why or "buffer" in why or "EOF" in why:
            why = f"it is truncated ({why})"
        raise UsageError(f"{path} cannot be read: {why}") from None
    except Exception as error:  # the header is evaluated as a literal: damage can raise nearly anything
        raise UsageError(f"{path} cannot be read: its header is damaged ({type(error).__name__})") from None
    return np.array(array)


def _numbers(array: np.ndarray, fmt: Format, path: str) -> list[Number]:
    if array.ndim != 1:
        raise UsageError(f"{path} has shape {array.shape}: a vector with one dimension is needed")
    if len(array) > MAX_TERMS:
        raise UsageError(f"{path} has {len(array)} elements: at most {MAX_TERMS} are read")
    kind, width = array.dtype.kind, 8 * array.dtype.itemsize
    if kind == "V" and array.dtype.names is None and width in (8, 16, 32, 64) and width >= fmt.bits > width // 2:
        codes = array.view(f"u{array.dtype.itemsize}")
        return [_number(Float(fmt, int(code))) for code in codes]
    if kind in "iu":
        return [Fraction(int(x)) for x in array]
    if kind == "f" and width <= 64:
        return [_exact(float(x)) for x in array]
    raise UsageError(f"{path} holds elements of type {array.dtype}: save float16, float32, float64 or integers")


def _exact(x: float) -> Number:
    return x if x == 0 or not math.isfinite(x) else Fraction(x)


def _number(x: Float) -> Number:
    return float(x) if x.is_zero or not x.is_finite else x.fraction


def _shown(x: Number) -> str:
    return repr(float(x)) if isinstance(x, float) or x.denominator != 1 else str(x)


def value_of(fmt: Format, written: str, x: Number) -> tuple[Float, bool]:
    """The value of the format nearest to the number (ties to even), and whether it is the number itself.

    A usage error when the format has no such NaN or infinity, or the number is beyond its range.
    """
    shown = written if len(written) <= 40 else written[:37] + "..."
    if isinstance(x, float) and not math.isfinite(x):
        try:
            return exactly(fmt, x), True
        except UsageError as error:
            raise UsageError(f"{shown} is not a value of {fmt}: {error}") from None
    if isinstance(x, float):
        value = exactly(fmt, x)
        return value, value.negative == (math.copysign(1.0, x) < 0)
    try:
        value = nearest(fmt, x)
    except UsageError:
        raise UsageError(f"{shown} is beyond the range of {fmt}, whose largest value is {largest(fmt)}") from None
    return value, value.fraction == x
