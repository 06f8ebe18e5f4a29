"""The rules of the kernel, a file for each subject.  Importing this package registers them all."""

from fpsmt.kernel.rules import approximation, extremes, formulas, functions, gradients, predictions, separation, sums

__all__ = ["approximation", "extremes", "formulas", "functions", "gradients", "predictions", "separation", "sums"]
