"""A network has given values and executed gradients (arXiv 2605.01702, Theorem 3.1); every table has a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.constructions.sparse import Digested, SparseNetwork, codes_from_text, codes_to_text, network_from_data
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, add, context, equal, mul, pow2, zero
from fpsmt.floats.vector import Carriers, encode, to_floats
from fpsmt.networks.autodiff import CORRECTLY_ROUNDED, Local

Sums = Literal["left-to-right", "any"]
COLUMNS = ("points", "values", "upstream", "gradients")


@dataclass(frozen=True, eq=False)
class GradientTable(Digested):
    """x → (f(x), h(x), g(x)): at each of distinct finite `points` the value f, and the gradient g that reverse mode
    returns for the loss derivative h.  All are finite, and g = 0 where h = 0.  Zeros are numbers."""

    format: Format
    points: Carriers
    values: Carriers
    upstream: Carriers
    gradients: Carriers

    def __post_init__(self) -> None:
        for name in COLUMNS:
            array = np.array(getattr(self, name), dtype=float) + 0.0
            if array.ndim != 1 or len(array) == 0:
                raise UsageError(f"the table's {name} have shape {array.shape}: one number for each row is needed")
            if not np.isfinite(array).all():
                raise UsageError(f"row {int(np.argmin(np.isfinite(array)))} of the table's {name} is not finite")
            encode(self.format, array)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if len({len(getattr(self, name)) for name in COLUMNS}) > 1:
            raise UsageError("the columns of a table have one length")
        line = np.sort(self.points)
        if (np.diff(line) == 0).any():
            raise UsageError(f"the input {line[int(np.argmax(np.diff(line) == 0))]} is in the table twice")
        lost = (self.upstream == 0.0) & (self.gradients != 0.0)
        if lost.any():
            i = int(np.argmax(lost))
            raise UsageError(
                f"row {i}: at x = {self.points[i]} the gradient {self.gradients[i]} is asked for with the loss "
                "derivative 0, which reverse mode multiplies by finite numbers: only 0 can come back"
            )

    def __len__(self) -> int:
        return len(self.points)

    def to_json(self) -> dict[str, Json]:
        return {name: codes_to_text(self.format, getattr(self, name)) for name in COLUMNS}


def gradient_table_from_json(fmt: Format, data: Mapping[str, Json]) -> GradientTable:
    return GradientTable(fmt, *(codes_from_text(fmt, data[name]) for name in COLUMNS))


def _check_sums(sums: str) -> None:
    if sums not in get_args(Sums):
        raise UsageError(f"sums {sums!r}: write one of {', '.join(get_args(Sums))}")


def sums_text(sums: Sums) -> str:
    return "sums of both passes from left to right" if sums == "left-to-right" else "every order of every sum"


@claim_kind
@dataclass(frozen=True)
class RepresentsGradients(Claim):
    """At every x of the table N(x) = f(x), and D^AD of N at x for the loss derivative h(x) is g(x).

    Biases are added last, nothing is fused, derivatives are correctly rounded with σ′(0) = 0 at a kink.  `sums`: both
    passes from left to right, the paper's order; or any, each sum of either pass in an order of its own.
    """

    kind = "represents gradients"
    network: SparseNetwork
    table: GradientTable
    sums: Sums

    def __post_init__(self) -> None:
        _check_sums(self.sums)
        check_fits(self.network, self.table.format)

    @property
    def text(self) -> str:
        return (
            f"∀ x ∈ X: N(x) = f(x) and D^AD(N, x; h(x)) = g(x) for {len(self.table)} inputs X, "
            f"{sums_text(self.sums)}, and the {self.network.text}"
        )

    def fields(self) -> dict[str, Json]:
        return {"network": self.network.to_json(), "table": self.table.to_json(), "sums": self.sums}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> RepresentsGradients:
        network = network_from_data(data["network"])
        return cls(network, gradient_table_from_json(network.format, data["table"]), data["sums"])

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"point": its index}.  Both passes run from left to right, which every family allows."""
        i, fmt, table = int(counterexample["point"]), self.network.format, self.table
        x, value, h, g = (to_floats(fmt, getattr(table, name)[i : i + 1])[0] for name in COLUMNS)
        return replay_both(self.network, [x], h, value, [g])


def check_fits(network: SparseNetwork, fmt: Format, inputs: int = 1) -> None:
    """A usage error unless the network has so many inputs and one output, and is in the table's format."""
    if fmt != network.format:
        raise UsageError(f"the table is in {fmt}, and the network in {network.format}")
    if network.inputs != inputs or network.outputs != 1:
        many = "one input" if inputs == 1 else f"{inputs} inputs"
        raise UsageError(f"the table is for {many} and one output, and the network has others")


def keep_numbers(table: object, fmt: Format, names: Sequence[str]) -> None:
    """Makes these columns of a frozen table arrays that nothing writes to; a usage error where one is no finite number
    of the format."""
    for name in names:
        array = np.array(getattr(table, name), dtype=float) + 0.0
        if not np.isfinite(array).all():
            raise UsageError(f"the table's {name} are not all finite")
        encode(fmt, array)
        array.setflags(write=False)
        object.__setattr__(table, name, array)


def replay_both(network: SparseNetwork, x: Sequence[Float], y: Float, value: Float, g: Sequence[Float]) -> Replay:
    """Both passes at x for the loss derivative y; it violates where N(x) is not `value` or the gradient is not g."""
    output, gradient = run_at(network, x, y)
    found, wanted, point = (", ".join(map(repr, each)) for each in (gradient, g, x))
    lines = (
        f"x = {point}",
        f"value {output!r}, the table has {value!r}",
        f"gradient {found} for the loss derivative {y!r}, the table has {wanted}",
    )
    differs = not (equal(output, value) and all(map(equal, gradient, g)))
    listed = [v.hex for v in gradient]
    return Replay(differs, lines, {"output": output.hex, "gradient": listed[0] if len(listed) == 1 else listed})


def run_both(network: SparseNetwork, x: Float, y: Float) -> tuple[Float, Float]:
    """N(x) and D^AD at x for y, as `run_at`, for one input."""
    output, (gradient,) = run_at(network, [x], y)
    return output, gradient


def run_at(network: SparseNetwork, x: Sequence[Float], y: Float) -> tuple[Float, list[Float]]:
    """N(x) and D^AD at x for y, by the reference arithmetic and from left to right; one output.

    This is `networks.run` and `networks.gradient` of the materialised network, whose terms ascend.
    """
    ctx, use, top = network.context, network.implementation, len(network.layers) - 1
    rows = [_rows(network, place) for place in range(top + 1)]
    below, hidden = list(x), []
    for place in range(top + 1):
        sums = [_row(ctx, terms, bias, below) for terms, bias in rows[place]]
        if place < top:
            known = {v: use.default(ctx, v) for v in set(sums)}
            below = [known[v] for v in sums]
            hidden.append((sums, below))
    output = sums[0]
    arrived = [y]
    for place in range(top, -1, -1):
        size = len(rows[place - 1]) if place else network.inputs
        sums_back: list[Float | None] = [None] * size
        for (terms, _), g in zip(rows[place], arrived, strict=True):
            for j, w in terms:
                p, q = mul(ctx, g, w), sums_back[j]
                sums_back[j] = p if q is None else add(ctx, q, p)
        arrived = [zero(ctx.format) if g is None else g for g in sums_back]  # what nothing reads has gradient +0
        if place:
            pre, post = hidden[place - 1]
            arrived = [
                CORRECTLY_ROUNDED.step(Local(use.function, g, a, b, ctx, ctx))
                for g, a, b in zip(arrived, pre, post, strict=True)
            ]
    return output, arrived


Row = tuple[list[tuple[int, Float]], Float]


def _rows(network: SparseNetwork, place: int) -> list[Row]:
    layer, fmt = network.layers[place], network.format
    weights, bias = to_floats(fmt, layer.weights), to_floats(fmt, layer.bias)
    columns, starts = layer.columns.tolist(), layer.starts.tolist()
    return [(list(zip(columns[a:b], weights[a:b])), bias[i]) for i, (a, b) in enumerate(pairwise(starts))]


def _row(ctx: Context, terms: Sequence[tuple[int, Float]], bias: Float, below: Sequence[Float]) -> Float:
    """The products from left to right, then the bias."""
    if not terms:
        return bias
    total: Float | None = None
    for j, w in terms:
        p = mul(ctx, w, below[j])
        total = p if total is None else add(ctx, total, p)
    assert total is not None
    return add(ctx, total, bias)


#: (M, H) by activation: inputs are the floats of X = [−M, M], and loss derivatives are |h| ≤ H; p fraction bits.
BOUNDS = {
    "relu": ("2^(emax − 2)", "Ω"),
    "elu": ("Ω", "Ω"),
    "gelu": ("Ω", "Ω"),
    "swish": ("Ω", "Ω"),
    "sigmoid": ("Ω/2", "2^(p − 1)"),
    "tanh": ("Ω", "2^(p − 2)"),
}


def bound(fmt: Format, text: str) -> float:
    """M or H in a format."""
    p, largest = fmt.fraction_bits, fmt.largest
    known = {
        "Ω": largest, "Ω/2": largest / 2, "2^(emax − 2)": pow2(fmt.emax - 2), "2^(p − 1)": pow2(p - 1),
        "2^(p − 2)": pow2(p - 2),
    }  # fmt: skip
    return float(known[text])


@claim_kind
@dataclass(frozen=True)
class AllGradientTables(Claim):
    """Every table of the whole domain has a network of L layers of one activation with its values and gradients.

    X = [−M, M], all floats; f, h, g finite with |h| ≤ H, and g = 0 where h = 0; M and H as in `BOUNDS`.
    """

    kind = "all gradient tables"
    context: Context
    layers: int
    sums: Sums
    activation: str = "relu"

    def __post_init__(self) -> None:
        _check_sums(self.sums)
        if self.layers < 1:
            raise UsageError("a network has at least one layer")
        if self.activation not in BOUNDS:
            raise UsageError(f"activation {self.activation!r}: write one of {', '.join(BOUNDS)}")

    @property
    def largest_input(self) -> float:
        """M."""
        return bound(self.context.format, BOUNDS[self.activation][0])

    @property
    def largest_upstream(self) -> float:
        """H."""
        return bound(self.context.format, BOUNDS[self.activation][1])

    @property
    def text(self) -> str:
        most, upstream = BOUNDS[self.activation]
        return (
            f"∀ f, h, g: X → F with |h| ≤ {upstream} and g = 0 where h = 0 ∃ {self.activation} network N of "
            f"{self.layers} layers in {self.context} ∀ x ∈ X = [−M, M], M = {most}: N(x) = f(x) and "
            f"D^AD(N, x; h(x)) = g(x), {sums_text(self.sums)}"
        )

    def fields(self) -> dict[str, Json]:
        other = {} if self.activation == "relu" else {"activation": self.activation}
        return {"context": str(self.context), "layers": self.layers, "sums": self.sums, **other}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> AllGradientTables:
        return cls(context(data["context"]), int(data["layers"]), data["sums"], data.get("activation", "relu"))

    def replay(self, counterexample: Json) -> Replay:
        """No single execution shows that a table has no network."""
        return Replay(False, ("no execution refutes that a network exists",))
