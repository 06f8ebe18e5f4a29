"""Networks with the values and executed gradients of tables, and that every table has one."""

from __future__ import annotations

from dataclasses import dataclass

from fpsmt import kernel
from fpsmt.claims.gradient_representation import AllGradientTables, GradientTable, RepresentsGradients, Sums
from fpsmt.constructions.gradient_flat import ACTIVATIONS, flat_network
from fpsmt.constructions.gradient_tables import LEAST_LAYERS, gradient_network, needs_order
from fpsmt.constructions.sparse import SparseNetwork
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context
from fpsmt.kernel import Refuted, Verdict


@engine("gradient traces", RepresentsGradients)
def gradient_traces(claim: RepresentsGradients, options: Options) -> Verdict:
    """Both passes at every input of the table."""
    return kernel.apply("traces of values and gradients", claim)


@engine("gradient passes", RepresentsGradients)
def gradient_passes(claim: RepresentsGradients, options: Options) -> Verdict:
    """Every neuron at every input: any activation, small networks."""
    return kernel.apply("both passes at every input", claim)


@engine("gradient cells", AllGradientTables)
def gradient_cells(claim: AllGradientTables, options: Options) -> Verdict:
    """The construction for every table at once."""
    relu = claim.activation == "relu"
    return kernel.apply("every table of values and gradients" if relu else "every table by flat neurons", claim)


@dataclass(frozen=True)
class GradientRepresentation:
    """A network and its verdict; or none, and why."""

    network: SparseNetwork | None
    verdict: Verdict | None
    reason: str
    construction: str = "gradient table"


def represent_gradients(
    ctx: Context,
    table: GradientTable,
    sums: Sums = "any",
    layers: int | None = None,
    options: Options | None = None,
    activation: str = "relu",
) -> GradientRepresentation:
    """A network with the table's values and gradients, verified at every input of the table.

    `layers`, for relu: six or more for sums from left to right, and seven or more for every order, but that six do for
    points away from 0; None takes the fewest.  Other activations (`gradient_flat.ACTIVATIONS`): from left to right.

    >>> from fpsmt.floats import context, float8_e5m2
    >>> x, f, h, g = [-4.0, 0.0, 3.0], [96.0, 0.0, -2.5], [1.0, 0.0, 57344.0], [-7.0, 0.0, 2.0**-16]
    >>> table = GradientTable(float8_e5m2, x, f, h, g)
    >>> found = represent_gradients(context("float8_e5m2"), table)
    >>> found.verdict.name, len(found.network.layers)
    ('proved', 7)
    """
    options = options or Options()
    if ctx.format != table.format:
        raise UsageError(f"the table is in {table.format}, and the network in {ctx.format}")
    if activation not in ("relu", *ACTIVATIONS):
        raise UsageError(f"activation {activation!r}: with gradients write one of {', '.join(('relu', *ACTIVATIONS))}")
    if activation != "relu" and sums == "any":
        raise UsageError(f"networks of {activation} with gradients are for sums from left to right alone")
    options.report(f"a network for {len(table)} inputs")
    try:
        network = _network(ctx, table, sums == "any", layers, activation)
    except Unsupported as reason:
        return GradientRepresentation(None, None, str(reason))
    options.report(f"verifying the {network.text}")
    verdict = decide(RepresentsGradients(network, table, sums), options)
    if isinstance(verdict, Refuted):
        x = table.points[verdict.counterexample["point"]]
        return GradientRepresentation(None, None, f"the network that was made differs from the table at x = {x:g}")
    return GradientRepresentation(network, verdict, getattr(verdict, "reason", ""))


def _network(ctx: Context, table: GradientTable, any_order: bool, layers: int | None, activation: str) -> SparseNetwork:
    columns = (table.points, table.values, table.upstream, table.gradients)
    if activation != "relu":
        return flat_network(ctx, activation, *columns, layers)
    least = LEAST_LAYERS + (any_order and needs_order(ctx, table.points))
    return gradient_network(ctx, *columns, least if layers is None else layers, any_order)
