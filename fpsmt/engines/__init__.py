"""One file for each way of deciding, and the loop that combines them."""

from fpsmt.engines import extremes, formulas, gradient_conditions, gradients, predictions, separation, sums
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import ENGINES, Engine, Options, engine

__all__ = ["ENGINES", "Engine", "Options", "decide", "engine", "extremes", "formulas",
           "gradient_conditions", "gradients", "predictions",
           "separation", "sums"]  # fmt: skip
