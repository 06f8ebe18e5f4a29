"""One file for each way of deciding, and the loop that combines them."""

from fpsmt.engines import (
    approximation,
    blocks,
    comparison,
    conditions,
    contracts,
    extremes,
    formulas,
    gradient_conditions,
    gradient_functions,
    gradient_representation,
    gradient_vectors,
    gradients,
    identities,
    predictions,
    representation,
    safety,
    safety_search,
    separation,
    separation_points,
    steering,
    sums,
    telling,
)
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import ENGINES, Engine, Options, engine

__all__ = [
    "ENGINES", "Engine", "Options", "approximation", "blocks", "comparison", "conditions", "contracts", "decide",
    "engine", "extremes", "formulas", "gradient_conditions", "gradient_functions", "gradient_representation",
    "gradient_vectors", "gradients", "identities", "predictions", "representation", "safety", "safety_search",
    "separation", "separation_points", "steering", "sums", "telling",
]  # fmt: skip
