"""Networks of several inputs with the values and executed gradients of tables."""

from __future__ import annotations

from fpsmt import kernel
from fpsmt.claims.gradient_vectors import RepresentsVectorGradients
from fpsmt.engines.engine import Options, engine
from fpsmt.kernel import Verdict


@engine("gradient passes of vectors", RepresentsVectorGradients)
def gradient_passes_of_vectors(claim: RepresentsVectorGradients, options: Options) -> Verdict:
    """Every neuron at every input."""
    return kernel.apply("both passes at every vector", claim)
