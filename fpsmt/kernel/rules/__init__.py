"""The rules of the kernel, a file for each subject.  Importing this package registers them all."""

from fpsmt.kernel.rules import formulas, functions, gradients, predictions, separation, sums

__all__ = ["formulas", "functions", "gradients", "predictions", "separation", "sums"]
