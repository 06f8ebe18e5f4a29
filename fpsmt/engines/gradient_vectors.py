"""Networks of several inputs with the values and executed gradients of tables."""

from __future__ import annotations

from fpsmt import kernel
from fpsmt.claims.gradient_vectors import RepresentsVectorGradients, VectorGradients
from fpsmt.constructions.gradient_vectors import vector_network
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.engines.gradient_representation import GradientRepresentation
from fpsmt.errors import Unsupported
from fpsmt.floats import Context
from fpsmt.kernel import Verdict


@engine("gradient passes of vectors", RepresentsVectorGradients)
def gradient_passes_of_vectors(claim: RepresentsVectorGradients, options: Options) -> Verdict:
    """Every neuron at every input."""
    return kernel.apply("both passes at every vector", claim)


def represent_vector_gradients(ctx: Context, table: VectorGradients, options: Options) -> GradientRepresentation:
    """A ReLU network with the table's values and gradients for sums from left to right, verified at every input."""
    try:
        network = vector_network(ctx, table.points, table.values, table.upstream, table.gradients)
    except Unsupported as reason:
        return GradientRepresentation(None, None, str(reason))
    options.report(f"verifying the {network.text}")
    verdict = decide(RepresentsVectorGradients(network, table), options)
    return GradientRepresentation(network, verdict, getattr(verdict, "reason", ""), "gradient table of vectors")
