"""Paper A (arXiv 2605.28704), Theorem 5: every function on a set of inputs is a network, whatever the order of sums.

The theorem gives a network for each reduction order; here one network holds for every order at once.  The inputs are
all finite values of a format.  Two statements are about the networks of one table, or of many random ones.
"""

import numpy as np

from fpsmt.claims import Case, Represents, Universal, Values, cases, spec
from fpsmt.constructions.absorption import absorption
from fpsmt.constructions.centred import centred
from fpsmt.constructions.conjunction import conjunction
from fpsmt.constructions.ending import network_layers
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import SparseNetwork
from fpsmt.constructions.windows import shifted_windows
from fpsmt.floats import Format, bfloat16, context, float8_e4m3, float8_e5m2, float16
from fpsmt.floats.vector import Carriers, values
from fpsmt.functions import Implementation, implementation_named, tabulated

MADE_BY = {"tanh": centred, "identity": shifted_windows, "sin": absorption}


BOUNDED = ("sigmoid", "tanh", "erf", "sin")  #: no neuron returns an infinity
RAMPS = ("relu", "gelu", "swish", "mish", "softplus")


def finite_inputs(fmt: Format) -> Carriers:
    return np.unique(values(fmt, finite=True) + 0.0)[:, None]


def _universal_cases() -> list[Case]:
    out = cases(activation=["relu", "sigmoid", "tanh", "gelu"], fmt=[float8_e4m3], layers=[4])
    out += cases(quick=False, activation=["swish", "mish", "softplus", "erf", "sin"], fmt=[float8_e4m3], layers=[4])
    out += cases(quick=False, activation=[*RAMPS, *BOUNDED], fmt=[float8_e5m2], layers=[4])
    out += cases(quick=False, activation=["identity"], fmt=[float8_e4m3, float8_e5m2, float16], layers=[5])
    out += cases(quick=False, activation=[*RAMPS, *BOUNDED], fmt=[float16], layers=[4])
    return out + cases(quick=False, activation=["relu", "sigmoid", "tanh"], fmt=[bfloat16], layers=[4])


@spec("A-theorem-5", source="arXiv 2605.28704, Theorem 5 (every order at once)", cases=_universal_cases())
def theorem_5(activation: str, fmt: Format, layers: int) -> Universal:
    """Every function from the finite values of a format to these and ±inf is a network of at most so many layers.

    For sigmoid, tanh, erf and sin also with terms whose weight is 0: no neuron returns an infinity.
    """
    use = implementation_named(activation)
    return Universal(context(fmt), use, finite_inputs(fmt), layers, dense=activation in BOUNDED)


def random_table(fmt: Format, seed: int = 0, inputs: int = 1) -> Values:
    """All finite inputs of the format, with random finite values; every twentieth is inf, or −inf."""
    line = np.unique(values(fmt, finite=True) + 0.0)
    points = np.stack(np.meshgrid(*[line] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)
    f = np.random.default_rng(seed).choice(line, len(points))
    f[::20], f[10::20] = np.inf, -np.inf
    return Values(fmt, points, f[:, None])


def network(activation: str | Implementation, table: Values) -> SparseNetwork:
    use = implementation_named(activation) if isinstance(activation, str) else activation
    ctx = context(table.format)
    shape = Shape(ctx, use)
    detectors = MADE_BY.get(use.function.name, conjunction)(shape, table.points, (table.values != 0.0).any(axis=1))
    return SparseNetwork(ctx, table.inputs, use, network_layers(shape, detectors, table.values))


def _cases() -> list[Case]:
    quick = cases(activation=["relu", "tanh"], fmt=[float8_e4m3])
    quick += cases(quick=False, activation=["relu", "tanh"], fmt=[float8_e5m2])
    return quick + cases(quick=False, activation=["sigmoid", "gelu"], fmt=[float8_e4m3])


@spec("A-theorem-5-table", source="arXiv 2605.28704, Theorem 5 (every order at once)", cases=_cases())
def theorem_5_table(activation: str, fmt: Format) -> Represents:
    """A network over the format returns a table's values at all finite inputs, for every order of every sum."""
    table = random_table(fmt)
    return Represents(network(activation, table), table)


#: Programs that libraries use, run in 8 bits as tables.
TABLED = {"relu": "relu_select", "sigmoid": "sigmoid", "tanh": "tanh_exp_stable"}


def _tabled_cases() -> list[Case]:
    both = (float8_e4m3, float8_e5m2)
    return cases(activation=["relu"], fmt=both) + cases(quick=False, activation=["sigmoid", "tanh"], fmt=both)


@spec("A-float8-tables-network", source="arXiv 2605.28704, 8 bits by tables (derived)", cases=_tabled_cases())
def tabled_network(activation: str, fmt: Format) -> Represents:
    """The same where the activation is a table: the results of a program that libraries use, run in 8 bits."""
    table = random_table(fmt)
    use = implementation_named(f"{activation}:program({TABLED[activation]})")
    return Represents(network(tabulated(use, context(fmt)), table), table)
