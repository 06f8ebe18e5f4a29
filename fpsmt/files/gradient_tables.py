"""Tables x → (f(x), h(x), g(x)) of values, loss derivatives and gradients, from files."""

from __future__ import annotations

from fpsmt.claims.gradient_representation import GradientTable
from fpsmt.claims.gradient_vectors import VectorGradients
from fpsmt.errors import UsageError
from fpsmt.files.representations import read_table, row_length
from fpsmt.floats import Format


def read_vector_gradients(path: str, fmt: Format) -> VectorGradients | None:
    """Rows x₁, …, x_d, f, h, g₁, …, g_d, d at least 2, from the same files; None where rows are of other lengths."""
    columns = row_length(path, fmt)
    if columns < 6 or columns % 2:
        return None
    inputs = (columns - 2) // 2
    read = read_table(path, fmt, inputs + 2)
    if read.inputs != inputs:
        return None
    try:
        return VectorGradients(fmt, read.points, read.values[:, 0], read.values[:, 1], read.values[:, 2:])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def read_gradient_table(path: str, fmt: Format) -> GradientTable:
    """Rows x, f, h, g: a CSV file, a .npy array, or a .npz with arrays points and values (of three columns)."""
    read = read_table(path, fmt, 3)
    if read.inputs != 1 or read.values.shape[1] != 3:
        raise UsageError(
            f"{path} has rows of {read.inputs + read.values.shape[1]} numbers: with gradients a row is x, f(x), h(x) "
            "and g(x), for one input"
        )
    try:
        return GradientTable(fmt, read.points[:, 0], *read.values.T)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
