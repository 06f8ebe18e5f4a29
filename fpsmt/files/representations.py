"""Tables x → f(x) from CSV and numpy files, and representations in files."""

from __future__ import annotations

import csv
import json
import math
import zipfile
import zlib
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fpsmt.claims.representation import Values
from fpsmt.constructions.sparse import SparseNetwork, network_from_data
from fpsmt.errors import UsageError
from fpsmt.files.arrays import load_array
from fpsmt.floats import Format, exactly, nearest, read_number
from fpsmt.floats.vector import embeds
from fpsmt.floats.vector import values as all_values
from fpsmt.functions import Function, Implementation, Table
from fpsmt.networks import save_arrays

MAX_BYTES = 1 << 28
MAX_ROWS = 1 << 20
MOST_RANDOM_BITS = 16
MOST_POINTS = 1 << 18  #: of random tables
MOST_DENSE = 1 << 20  #: weights of a network that is written as an ordinary one


def read_table(path: str, fmt: Format, outputs: int = 1) -> Values:
    """A table from rows x₁, …, x_d, f₁, …: a CSV file, a .npy array, or a .npz with arrays points and values.

    Every number must be a value of the format.  A first line of a CSV file without numbers is a header.
    """
    if not embeds(fmt):
        raise UsageError(f"{fmt} is not embedded in float64: tables are not read in it")
    if path.endswith(".npz"):
        points, values = _npz(path)
    else:
        rows = load_array(Path(path)) if path.endswith(".npy") else _csv(path, fmt)
        if rows.ndim != 2 or rows.shape[1] <= outputs:
            raise UsageError(f"{path}: rows of {outputs + 1} numbers or more are needed: inputs, then {outputs} values")
        points, values = rows[:, :-outputs], rows[:, -outputs:]
    if len(points) > MAX_ROWS:
        raise UsageError(f"{path} has {len(points)} rows: at most {MAX_ROWS} are read")
    try:
        return Values(fmt, _numbers(points), _numbers(values))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def row_length(path: str, fmt: Format) -> int:
    """How many numbers a row of the table has; 0 where there are no rows."""
    if path.endswith(".npz"):
        return sum(array.shape[1] if array.ndim == 2 else 1 for array in _npz(path))
    rows = load_array(Path(path)) if path.endswith(".npy") else _csv(path, fmt)
    return int(rows.shape[1]) if rows.ndim == 2 else 0


def read_tables(paths: Sequence[str], fmt: Format, outputs: int = 1) -> Values:
    """Tables side by side, on the inputs of all of them; where a table lacks an input, its values are 0."""
    tables = [read_table(path, fmt, outputs) for path in paths]
    for path, table in zip(paths, tables, strict=True):
        if table.inputs != tables[0].inputs:
            raise UsageError(f"{path} has {table.inputs} inputs in a row, and {paths[0]} has {tables[0].inputs}")
    points = np.unique(np.concatenate([table.points for table in tables]), axis=0)
    if len(points) > MAX_ROWS:
        raise UsageError(f"the tables have {len(points)} inputs together: at most {MAX_ROWS} are read")
    row = {x: i for i, x in enumerate(map(tuple, points.tolist()))}
    values = np.zeros((len(points), outputs * len(tables)))
    for k, table in enumerate(tables):
        here = [row[x] for x in map(tuple, table.points.tolist())]
        values[here, k * outputs : (k + 1) * outputs] = table.values
    return Values(fmt, points, values)


def random_tables(fmt: Format, count: int, seed: int = 0, inputs: int = 1) -> Values:
    """All vectors of finite inputs of a format of at most 16 bits, with `count` columns of random values.

    Any value but NaN, with equal chances; in each column both infinities (where the format has them), zero, and the
    least and the largest values of both signs occur.
    """
    if fmt.bits > MOST_RANDOM_BITS:
        raise UsageError(f"--random is over all values of a format of at most {MOST_RANDOM_BITS} bits, not {fmt}")
    line = all_values(fmt)
    line = line[~np.isnan(line)]
    axis = np.unique(line[np.isfinite(line)] + 0.0)
    if inputs < 1 or float(len(axis)) ** inputs > MOST_POINTS:
        raise UsageError(f"--inputs {inputs}: {fmt} has {len(axis)}^{inputs} inputs, and {MOST_POINTS} is the limit")
    points = np.stack(np.meshgrid(*[axis] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)
    size = np.array([float(fmt.largest), float(fmt.smallest), *[np.inf] * fmt.has_infinity])
    special = np.concatenate([size, -size, [0.0]])
    rng = np.random.default_rng(seed)
    values = rng.choice(line, (len(points), count))
    for column in values.T:
        column[rng.choice(len(points), min(len(special), len(points)), replace=False)] = special[: len(points)]
    return Values(fmt, points, values)


def _numbers(array: Any) -> Any:
    """The array as float64, none of its numbers changed."""
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise UsageError(f"it holds {array.dtype}: numbers of at most 64 bits are needed")
    found = array.astype(float)
    if array.dtype.kind != "f" and (np.abs(found) >= 2.0**53).any():
        raise UsageError("it holds an integer of 2^53 or more: store the table as float64")
    return found


def _npz(path: str) -> tuple[Any, ...]:
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
        with np.load(path, allow_pickle=False) as arrays:
            if not {"points", "values"} <= set(arrays.files):
                raise UsageError(f"{path} has the arrays {', '.join(arrays.files)}: points and values are needed")
            points, values = arrays["points"], arrays["values"]
    except UsageError:
        raise
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    for name, array in (("points", points), ("values", values)):
        if array.ndim not in (1, 2):
            raise UsageError(f"{path}: {name} has {array.ndim} dimensions: rows of numbers are needed")
    return tuple(array[:, None] if array.ndim == 1 else array for array in (points, values))


def _csv(path: str, fmt: Format) -> Any:
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [row for row in csv.reader(file) if row and any(cell.strip() for cell in row)]
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if lines and not any(map(_is_number, lines[0])):
        lines = lines[1:]
    if not lines:
        raise UsageError(f"{path} has no rows of numbers")
    width = len(lines[0])
    rows = np.empty((len(lines), width))
    for i, cells in enumerate(lines):
        if len(cells) != width:
            raise UsageError(f"{path}, row {i + 1}: {len(cells)} numbers, and the first row has {width}")
        for j, cell in enumerate(cells):
            rows[i, j] = _value(cell, fmt, f"{path}, row {i + 1}, column {j + 1}")
    return rows


def _is_number(cell: str) -> bool:
    try:
        read_number(cell.strip())
    except UsageError:
        return False
    return True


def _value(cell: str, fmt: Format, where: str) -> float:
    try:
        number = read_number(cell.strip())
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    if isinstance(number, Fraction):
        value = nearest(fmt, number) if abs(number) <= fmt.largest else None
        if value is None or value.fraction != number:
            hint = "its range ends before" if value is None else f"the nearest is {value} = {value.hex}"
            raise UsageError(f"{where}: {cell.strip()} is not a value of {fmt}: {hint}")
        return float(value)
    if math.isinf(number):
        exactly(fmt, number)
    return float(number)


def read_implementation(path: str, function: Function, fmt: Format) -> Implementation:
    """An implementation from a table: a .npy array with the code of the output at each code of the format."""
    array = load_array(Path(path))
    if array.dtype.kind not in "ui" or array.shape != (1 << fmt.bits,):
        raise UsageError(
            f"{path} holds {array.dtype} of shape {array.shape}: an implementation is an array of {1 << fmt.bits} "
            f"codes of {fmt}, the output at each code"
        )
    if array.min() < 0 or array.max() >= 1 << fmt.bits:
        raise UsageError(f"{path} holds a number that is not a code of {fmt}")
    return Implementation(function, Table(fmt, fmt, tuple(int(code) for code in array)))


def save_representation(network: SparseNetwork, path: str) -> str:
    """Writes the network and says in which form: an ordinary one for all commands when it is small (.npz), else JSON.

    A name that ends in .json always gets the sparse form.
    """
    sizes = [network.inputs, *(layer.size for layer in network.layers)]
    dense = sum(a * b for a, b in pairwise(sizes))
    try:
        if not path.endswith(".json") and dense <= MOST_DENSE:
            save_arrays(network.materialised(), path)
            return "ordinary"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(network.to_json(), file)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
    return "sparse"


def load_representation(path: str) -> SparseNetwork:
    """Reads the sparse form."""
    try:
        if Path(path).stat().st_size > 8 * MAX_BYTES:
            raise UsageError(f"{path} is too large")
        with open(path, encoding="utf-8") as file:
            return network_from_data(json.load(file))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path} is not a representation: {error}") from None
