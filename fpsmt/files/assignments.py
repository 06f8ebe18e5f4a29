"""Satisfying assignments as the VNN-LIB standard has them: exact decimals, or TensorProto files."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from fpsmt.errors import UsageError
from fpsmt.files.onnx.tensors import FLOATS
from fpsmt.files.queries import Problem
from fpsmt.floats import Float, Format


def exact_decimal(x: Float) -> str:
    """The exact value, without an exponent; ``nan``, ``inf``, ``-inf`` and ``-0.0`` as such.

    >>> from fpsmt.floats import exactly, float16
    >>> exact_decimal(exactly(float16, Fraction(-3, 16))), exact_decimal(exactly(float16, 2048))
    ('-0.1875', '2048.0')
    """
    if not x.is_finite:
        return "nan" if x.is_nan else "-inf" if x.negative else "inf"
    value = abs(x.fraction)
    places = max(value.denominator.bit_length() - 1, 1)  # the denominator is a power of two
    digits = str(value * Fraction(10) ** places).rjust(places + 1, "0")
    whole, rest = digits[:-places], digits[-places:].rstrip("0") or "0"
    return f"{'-' if x.negative else ''}{whole}.{rest}"


def assignment_lines(problem: Problem, version: str, inputs: Sequence[Float], outputs: Sequence[Float]) -> list[str]:
    """Lines after ``sat``: for version 1.0 one list of pairs, else a block for each variable, in declared order."""
    named = [(t, problem.values(t, inputs, outputs)) for t in problem.tensors]
    if version == "1.0":
        pairs = [f"({t.name}_{k} {exact_decimal(x)})" for t, values in named for k, x in enumerate(values)]
        return [f"{'(' if k == 0 else ' '}{pair}{')' if k == len(pairs) - 1 else ''}" for k, pair in enumerate(pairs)]
    lines = []
    for t, values in named:
        lines += [f"{t.name} {t.type} [{','.join(map(str, t.shape))}]", *map(exact_decimal, values)]
    return lines


def serialise(problem: Problem, folder: Path, inputs: Sequence[Float], outputs: Sequence[Float]) -> list[Path]:
    """Writes NAME.pb, a TensorProto of the model's element type, for each variable."""
    from onnx import TensorProto

    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for t, fmt in zip(problem.tensors, problem.formats, strict=True):
            data = _raw(fmt, problem.values(t, inputs, outputs))
            proto = TensorProto(name=t.name, dims=list(t.shape), data_type=_number(fmt), raw_data=data)
            path = folder / f"{t.name}.pb"
            path.write_bytes(proto.SerializeToString())
            written.append(path)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from None
    return written


def _number(fmt: Format) -> int:
    return next(number for number, (_, known) in FLOATS.items() if known == fmt)


def _raw(fmt: Format, values: Sequence[Float]) -> bytes:
    return np.array([x.code for x in values], dtype=f"<u{(fmt.bits + 7) // 8}").tobytes()
