"""Paper A (arXiv 2605.28704), Theorem 5 and its corollaries, for single tables: networks that return given values.

The theorem gives a network for each reduction order; here one network holds for every order at once.  The statements
are about the networks that `constructions` makes for one table of random values, on all finite inputs of the format.
"""

import numpy as np

from fpsmt.claims import Case, Represents, Values, cases, spec
from fpsmt.constructions.absorption import absorption
from fpsmt.constructions.centred import centred
from fpsmt.constructions.conjunction import conjunction
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import SparseNetwork
from fpsmt.constructions.windows import shifted_windows
from fpsmt.floats import Format, context, float8_e4m3, float8_e5m2
from fpsmt.floats.vector import values
from fpsmt.functions import implementation_named

MADE_BY = {"tanh": centred, "identity": shifted_windows, "sin": absorption}


def random_table(fmt: Format, seed: int = 0, inputs: int = 1) -> Values:
    """All finite inputs of the format, with random finite values; every twentieth is inf, or −inf."""
    line = np.unique(values(fmt, finite=True) + 0.0)
    points = np.stack(np.meshgrid(*[line] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)
    f = np.random.default_rng(seed).choice(line, len(points))
    f[::20], f[10::20] = np.inf, -np.inf
    return Values(fmt, points, f[:, None])


def network(activation: str, table: Values) -> SparseNetwork:
    ctx, use = context(table.format), implementation_named(activation)
    layers = MADE_BY.get(activation, conjunction)(Shape(ctx, use), table.points, table.values)
    return SparseNetwork(ctx, table.inputs, use, layers)


def _cases() -> list[Case]:
    quick = cases(activation=["relu", "tanh"], fmt=[float8_e4m3])
    quick += cases(quick=False, activation=["relu", "tanh"], fmt=[float8_e5m2])
    return quick + cases(quick=False, activation=["sigmoid", "gelu"], fmt=[float8_e4m3])


@spec("A-theorem-5-table", source="arXiv 2605.28704, Theorem 5 (every order at once)", cases=_cases())
def theorem_5_table(activation: str, fmt: Format) -> Represents:
    """A network over the format returns a table's values at all finite inputs, for every order of every sum."""
    table = random_table(fmt)
    return Represents(network(activation, table), table)
