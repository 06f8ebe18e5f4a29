"""Networks with the values of a table: constructions tried in turn, each verified; or a pair that prevents them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.representation import Represents, Values
from fpsmt.claims.universal import Universal
from fpsmt.constructions.absorption import absorption
from fpsmt.constructions.bumps import bumps, deep_bumps
from fpsmt.constructions.centred import centred
from fpsmt.constructions.conjunction import conjunction
from fpsmt.constructions.ending import Detectors, Shared, last_rows, network_layers, shared_detectors
from fpsmt.constructions.products import product
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.constructions.windows import identity_windows, shifted_windows
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, equal
from fpsmt.floats.vector import Carriers, to_floats
from fpsmt.functions import CorrectlyRounded, Implementation, Table, as_table, only_table
from fpsmt.kernel import Proved, Refuted, Unknown, Verdict

Construction = Callable[[Shape, Carriers, NDArray[np.bool_]], Detectors]

MOST_LAYERS = 7  #: of the constructions

CONSTRUCTIONS: dict[str, Construction] = {
    "conjunction": conjunction,
    "centred": centred,
    "absorption": absorption,
    "windows": identity_windows,
    "shifted windows": shifted_windows,
    "bumps": bumps,
    "deeper bumps": deep_bumps,
    "joined detectors": product,
}


@engine("indicators", Represents)
def indicators(claim: Represents, options: Options) -> Verdict:
    """The network's last hidden layer is nearly everywhere zero, for every order of its sums."""
    return kernel.apply("representation by indicators", claim)


@engine("detectors", Universal)
def detectors(claim: Universal, options: Options) -> Verdict:
    """Detectors of all inputs, from the first construction whose detectors are verified."""
    return every_function(claim, options).verdict


@dataclass(frozen=True)
class EveryFunction:
    """A verdict about every function on some inputs, with the detectors and their construction where it is proved."""

    verdict: Verdict
    shared: Shared | None = None
    construction: str = ""


def every_function(claim: Universal, options: Options, fewest: bool = False) -> EveryFunction:
    """Tries the constructions in turn; `fewest`: the claim that is proved is about as many layers as were needed."""
    shape, reasons = Shape(claim.context, claim.implementation), []
    for name in CONSTRUCTIONS:
        try:
            shared = share(name, shape, claim.points, options)
        except Unsupported as reason:
            reasons.append(f"{name}: {reason}")
            continue
        layers = (*shared.hidden, shared.one_hot())
        if len(layers) > claim.layers:
            reasons.append(f"{name}: {len(layers)} layers are needed")
            continue
        network = SparseNetwork(claim.context, claim.points.shape[1], claim.implementation, layers)
        options.report(f"verifying {network.neurons} neurons for {len(claim.points)} inputs")
        claim = replace(claim, layers=len(layers)) if fewest else claim
        verdict = kernel.apply("representation of every function", claim, {"detectors": network.to_json()})
        if isinstance(verdict, Proved):
            return EveryFunction(verdict, shared, name)
        reasons.append(f"{name}: {verdict.reason if isinstance(verdict, Unknown) else verdict}")
    return EveryFunction(Unknown(claim, "; ".join(reasons)))


def share(name: str, shape: Shape, points: Carriers, options: Options) -> Shared:
    """Detectors of all points by the construction of this name, for any number of tables."""
    options.report(f"{name}: detectors of {len(points)} inputs")
    found = CONSTRUCTIONS[name](shape, points, np.ones(len(points), bool))
    return shared_detectors(shape, found)


@dataclass(frozen=True)
class Tables:
    """A network with an output for each column of a table, on detectors that serve every function of its inputs.

    `seconds`: of making and verifying the detectors, of making the last layer, of verifying all outputs.
    """

    every: EveryFunction
    network: SparseNetwork | None = None
    verdict: Verdict | None = None
    seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)


def represent_tables(
    ctx: Context, implementation: Implementation, table: Values, options: Options | None = None
) -> Tables:
    """One network for many functions on the same inputs, the columns of a table, each verified at every input.

    The detectors depend on the inputs alone, and are verified once.
    """
    options = options or Options()
    times = [time.monotonic()]
    every = every_function(Universal(ctx, implementation, table.points, MOST_LAYERS), options, fewest=True)
    if every.shared is None:
        return Tables(every)
    times.append(time.monotonic())
    outputs = table.values.shape[1]
    options.report(f"{outputs} last layers")
    last = last_rows(Shape(ctx, implementation), every.shared, table.values)
    network = SparseNetwork(ctx, table.inputs, implementation, (*every.shared.hidden, last))
    times.append(time.monotonic())
    options.report(f"verifying {outputs} outputs at {len(table)} inputs")
    verdict = decide(Represents(network, table), options, only="indicators")
    times.append(time.monotonic())
    return Tables(every, network, verdict, (times[1] - times[0], times[2] - times[1], times[3] - times[2]))


@dataclass(frozen=True)
class Representation:
    """A network and its proof; or none, with the verdict that says why.

    `verdict` is `Proved` about the network; `Refuted` about the domain, with a pair of inputs of different values that
    no map tells apart; or `Unknown`.
    """

    network: SparseNetwork | None
    verdict: Verdict
    construction: str
    reasons: tuple[str, ...]
    pair: tuple[int, int] | None = None  #: rows of the table, where it is refuted


def represent(
    ctx: Context, implementation: Implementation, table: Values, options: Options | None = None
) -> Representation:
    """A network over the context that returns the table's values, whatever the order of its sums.

    >>> from fpsmt.claims import Values
    >>> from fpsmt.floats import context, float8_e4m3
    >>> from fpsmt.functions import implementation_named
    >>> table = Values(float8_e4m3, [[-1.0], [0.0], [0.5], [240.0]], [[3.0], [float("inf")], [0.0], [0.001953125]])
    >>> found = represent(context("float8_e4m3"), implementation_named("relu"), table)
    >>> found.verdict.name, len(found.network.layers)
    ('proved', 3)
    """
    options = options or Options()
    if ctx.format != table.format:
        raise UsageError(f"the table is in {table.format}, and the network in {ctx.format}")
    implementation = listed(ctx, implementation)
    shape = Shape(ctx, implementation)
    reasons: list[str] = []
    for name, construction in CONSTRUCTIONS.items():
        options.report(f"{name}: {len(table)} inputs")
        try:
            detectors = construction(shape, table.points, (table.values != 0.0).any(axis=1))
            layers = network_layers(shape, detectors, table.values)
        except Unsupported as reason:
            reasons.append(f"{name}: {reason}")
            continue
        network = SparseNetwork(ctx, table.inputs, implementation, layers)
        options.report(f"verifying {network.text}")
        verdict = decide(Represents(network, table), options, only="indicators")
        if isinstance(verdict, Proved):
            return Representation(network, verdict, name, tuple(reasons))
        why = verdict.reason if isinstance(verdict, Unknown) else f"wrong at {verdict.replay.lines[0]}"
        reasons.append(f"{name}: {why}")
    refusal = impossible(ctx, implementation, table, options)
    if refusal is not None:
        return Representation(None, refusal[0], "", tuple(reasons), refusal[1])
    empty = SparseNetwork(ctx, table.inputs, implementation, (_nothing(table),))
    return Representation(None, Unknown(Represents(empty, table), "; ".join(reasons)), "", tuple(reasons))


def listed(ctx: Context, implementation: Implementation) -> Implementation:
    """The implementation as a table where it is given otherwise, as by a program; a usage error where it leaves several
    results open, because a network has the values of a table for one implementation."""
    if isinstance(implementation.contract, CorrectlyRounded | Table) or ctx.format.bits > 16:
        return implementation
    return as_table(implementation.function, ctx.format, only_table(implementation, ctx))


def _nothing(table: Values) -> Layer:
    outputs = table.values.shape[1]
    none = np.zeros(0, np.int64)
    return Layer(np.zeros(outputs + 1, np.int64), none, np.zeros(0), np.zeros(outputs))


def impossible(
    ctx: Context, implementation: Implementation, table: Values, options: Options
) -> tuple[Refuted, tuple[int, int]] | None:
    """Lemma 2: two inputs of different values that no first layer of finite sums tells apart, as rows of the table.

    The maps are those that are finite on the box of the table's inputs.  Of several inputs, pairs that differ in one
    coordinate are examined, the others being 0: there a map is one of that coordinate, because w ⊗ 0 = 0 and z ⊕ 0 = z
    in every order, and it is finite on the interval of that coordinate.
    """
    for k in range(table.inputs):
        others = np.delete(table.points, k, axis=1)
        rows = np.flatnonzero((others == 0.0).all(axis=1))
        if len(rows) < 2:
            continue
        rows = rows[np.argsort(table.points[rows, k])]
        xs = to_floats(table.format, table.points[rows, k])
        ends = to_floats(table.format, [table.points[:, k].min(), table.points[:, k].max()])
        setting = Setting(
            implementation.function, ctx, ends[0], ends[1], Reading.FINITE_ON_DOMAIN, implementation.contract
        )
        verdict = decide(Distinguishable(setting), options)
        if not isinstance(verdict, Refuted):
            continue
        pair = [premise.claim for premise in verdict.premises if isinstance(premise.claim, Inseparable)]
        places = [_row(xs, pair[0].x), _row(xs, pair[0].y)] if pair else [None]
        if None in places:
            continue
        first, second = (int(rows[place]) for place in places if place is not None)
        if not np.array_equal(table.values[first], table.values[second]):
            return verdict, (first, second)
    return None


def _row(xs: list[Float], x: Float) -> int | None:
    return next((i for i, y in enumerate(xs) if equal(x, y)), None)
