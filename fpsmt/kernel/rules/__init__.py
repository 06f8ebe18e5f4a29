"""The rules of the kernel, a file for each subject.  Importing this package registers them all."""

from fpsmt.kernel.rules import (
    extremes,
    formulas,
    functions,
    gradient_conditions,
    gradients,
    predictions,
    separation,
    sums,
)

__all__ = ["extremes", "formulas", "functions", "gradient_conditions", "gradients", "predictions", "separation", "sums"]
