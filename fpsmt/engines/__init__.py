"""One file for each way of deciding, and the loop that combines them."""

from fpsmt.engines import approximation, extremes, formulas, gradients, predictions, separation, sums
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import ENGINES, Engine, Options, engine

__all__ = ["ENGINES", "Engine", "Options", "approximation", "decide", "engine", "extremes", "formulas", "gradients",
           "predictions", "separation", "sums"]  # fmt: skip
