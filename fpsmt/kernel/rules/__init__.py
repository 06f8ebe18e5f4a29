"""The rules of the kernel, a file for each subject.  Importing this package registers them all."""

from fpsmt.kernel.rules import (
    agreement,
    approximation,
    approximation_networks,
    conditions,
    contracts,
    extremes,
    formulas,
    functions,
    gradient_conditions,
    gradient_functions,
    gradient_representation,
    gradient_vectors,
    gradients,
    identities,
    predictions,
    representation,
    safety,
    safety_intervals,
    separation,
    separation_points,
    sums,
    universal,
    witness,
)

__all__ = [
    "agreement", "approximation", "approximation_networks", "conditions", "contracts", "extremes", "formulas",
    "functions", "gradient_conditions", "gradient_functions", "gradient_representation", "gradient_vectors",
    "gradients", "identities", "predictions", "representation", "safety", "safety_intervals", "separation",
    "separation_points", "sums", "universal", "witness",
]  # fmt: skip
