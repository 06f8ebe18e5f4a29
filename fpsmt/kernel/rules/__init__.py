"""The rules of the kernel, a file for each subject.  Importing this package registers them all."""

from fpsmt.kernel.rules import (
    approximation,
    conditions,
    contracts,
    extremes,
    formulas,
    functions,
    gradient_conditions,
    gradients,
    predictions,
    representation,
    safety_intervals,
    separation,
    separation_points,
    sums,
    universal,
    witness,
)

__all__ = [
    "approximation", "conditions", "contracts", "extremes", "formulas", "functions", "gradient_conditions",
    "gradients", "predictions", "representation", "safety_intervals", "separation", "separation_points", "sums",
    "universal", "witness",
]  # fmt: skip
