"""Conditions 2 and 3 of paper B (arXiv 2605.01702) for activations and formats, by witnesses."""

from fpsmt.claims import Case, spec
from fpsmt.claims.gradient_conditions import GradientCondition2, GradientCondition3
from fpsmt.floats import (
    Format,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    pow2,
    zero,
)
from fpsmt.functions import function_named

SOURCE = "arXiv 2605.01702"
PUBLISHED = {
    "relu": (-1.0, 2.0**-12), "elu": (-20.0, 0.0), "gelu": (-5.0, 0.0), "swish": (-20.0, 0.0),
    "sigmoid": (-20.0, 0.0), "tanh": (-10.0, 0.0),
}  # fmt: skip
FORMATS = [float8_e4m3, float8_e5m2, float16, bfloat16, float32, float64]
