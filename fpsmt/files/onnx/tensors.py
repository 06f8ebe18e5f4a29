"""Tensors in ONNX files as exact values: element types, raw bytes, external data."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import UsageError
from fpsmt.floats import (
    Format,
    bfloat16,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    nearest_context,
)
from fpsmt.floats.vector import Carriers, decode, round_array

MAX_ELEMENTS = 50_000_000  #: of one tensor

#: ONNX's numbers of the element types (TensorProto.DataType): floats, with the name that ONNX and VNN-LIB give them.
FLOATS: dict[int, tuple[str, Format]] = {
    1: ("float32", float32),
    10: ("float16", float16),
    11: ("float64", float64),
    16: ("bfloat16", bfloat16),
    17: ("float8e4m3fn", float8_e4m3fn),
    18: ("float8e4m3fnuz", float8_e4m3fnuz),
    19: ("float8e5m2", float8_e5m2),
    20: ("float8e5m2fnuz", float8_e5m2fnuz),
}
TYPE_NAMES = {fmt: name for name, fmt in FLOATS.values()}

#: Integers and booleans: numpy's types of the same width.
INTEGERS: dict[int, str] = {
    2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "?", 12: "<u4", 13: "<u8",
}  # fmt: skip
OTHERS = {
    8: "string", 14: "complex64", 15: "complex128", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0",
    25: "uint2", 26: "int2", 27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fixed:
    """A tensor known from the file: carriers of a format, or (format None) integers or booleans."""

    format: Format | None
    values: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


def type_name(number: int) -> str:
    """The name of an element type, for messages."""
    if number in FLOATS:
        return FLOATS[number][0]
    if number in INTEGERS:
        return np.dtype(INTEGERS[number]).name
    return OTHERS.get(number, f"of number {number}")


def checked_shape(dims: Any, where: str) -> tuple[int, ...]:
    """Dimensions as a shape; a usage error when one is negative or the tensor too large."""
    shape = tuple(int(d) for d in dims)
    if any(d < 0 for d in shape):
        raise UsageError(f"{where} has a negative dimension: {list(shape)}")
    if len(shape) > 16 or prod(shape) > MAX_ELEMENTS:
        raise UsageError(f"{where} has shape {list(shape)[:16]}: at most {MAX_ELEMENTS} elements are read")
    return shape


def read_tensor(tensor: Any, where: str, folder: Path | None = None) -> Fixed:
    """The values of a TensorProto.  `folder`: where its external data may be; None refuses external data."""
    shape, kind = checked_shape(tensor.dims, where), int(tensor.data_type)
    if kind not in FLOATS and kind not in INTEGERS:
        raise UsageError(f"{where} has elements of type {type_name(kind)}, which is not supported")
    if tensor.HasField("segment"):
        raise UsageError(f"{where} is stored in segments, which is not supported")
    codes = f"<u{(FLOATS[kind][1].bits + 7) // 8}" if kind in FLOATS else INTEGERS[kind]
    raw = tensor.raw_data
    if tensor.data_location == tensor.EXTERNAL:
        raw = _external(tensor, where, folder, prod(shape) * np.dtype(codes).itemsize)
    if raw:
        if len(raw) != prod(shape) * np.dtype(codes).itemsize:
            raise UsageError(f"{where} has {len(raw)} bytes of data, which is not what the shape {list(shape)} needs")
        flat: NDArray[Any] = np.frombuffer(raw, dtype=codes)
        values = decode(FLOATS[kind][1], flat) if kind in FLOATS else flat
    else:
        values = _listed(tensor, kind, codes)
        if values.size != prod(shape):
            raise UsageError(f"{where} has {values.size} elements, which is not what the shape {list(shape)} needs")
    if kind in FLOATS:
        return Fixed(FLOATS[kind][1], values.reshape(shape))
    if kind == 13 and (values > np.iinfo(np.int64).max).any():
        raise UsageError(f"{where} has a whole number that is too large")
    return Fixed(None, values.astype(bool if kind == 9 else np.int64).reshape(shape))


def _listed(tensor: Any, kind: int, codes: str) -> NDArray[Any]:
    """The values in the repeated field that the type uses."""
    if kind in FLOATS:
        fmt = FLOATS[kind][1]
        if fmt.bits > 16:
            return np.array(tensor.float_data if fmt.bits == 32 else tensor.double_data, dtype=np.float64)
        return decode(fmt, np.array(tensor.int32_data, dtype=np.int64).astype(codes))
    if kind == 7:
        return np.array(tensor.int64_data, dtype=np.int64)
    if kind in (12, 13):
        return np.array(tensor.uint64_data, dtype=np.uint64)
    return np.array(tensor.int32_data, dtype=np.int64)


def _external(tensor: Any, where: str, folder: Path | None, size: int) -> bytes:
    """The bytes of a file beside the model."""
    if folder is None:
        raise UsageError(f"{where} is stored in another file: allow that with --external-data")
    entries = {entry.key: entry.value for entry in tensor.external_data}
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", size))
    except ValueError:
        raise UsageError(f"{where}: the offset or length of its external data is not a whole number") from None
    if offset < 0 or length != size:
        raise UsageError(f"{where}: its external data has {length} bytes at {offset}, and {size} are needed")
    location = entries.get("location", "")
    try:
        path = (folder / location).resolve(strict=True)
        if not location or not path.is_relative_to(folder.resolve()) or not path.is_file():
            raise UsageError(f"{where}: its external data {location!r} is not a file inside the model's folder")
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{where}: its external data {location!r} cannot be read: {error}") from None
    if len(data) != length:
        raise UsageError(f"{where}: its external data {location!r} ends after {len(data)} of {length} bytes")
    return data


def rounded(fmt: Format, x: Any) -> Carriers:
    """Numbers rounded to nearest even in a format."""
    return round_array(nearest_context(fmt), np.asarray(x, dtype=np.float64))
