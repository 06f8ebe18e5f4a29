"""The rules of the kernel, a file for each subject.  Importing this package registers them all."""

from fpsmt.kernel.rules import formulas, functions, predictions, separation, sums

__all__ = ["formulas", "functions", "predictions", "separation", "sums"]
