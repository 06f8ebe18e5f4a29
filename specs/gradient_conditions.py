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
FOUND = {  # δ₀, δ₁ and η₀, η₁, η₂ that do in every format
    "relu": (0.0, 2.0**-6, (1, 0, 0)), "elu": (-1.0, 0.0, (1, 0, 0)), "celu": (-1.0, 0.0, (1, 0, 0)),
    "gelu": (-0.5, 0.0, (1, 1, -1)), "gelu_tanh": (-0.5, 0.0, (1, 1, -1)), "swish": (-1.0, 0.0, (1, 1, -1)),
    "sigmoid": (2.0, 0.0, (1, 2, -2)), "tanh": (1.0, 0.0, (1, 0, 0)), "softplus": (-2.0, 0.0, (1, 1, -1)),
    "logsigmoid": (2.0, 0.0, (1, 1, -1)), "exp": (-1.0, 0.0, (1, 0, 0)), "sin": (2.0, 0.0, (1, 0, 0)),
}  # fmt: skip
#: The published δ₀ of GELU and swish, where σ(δ₀) is subnormal or 0.
TOO_SMALL = {("gelu", float16), ("swish", float16), ("gelu", float8_e5m2), ("swish", float8_e5m2)}


def _cases(names, formats=FORMATS, refuted=frozenset()):  # type: ignore[no-untyped-def]
    return [
        Case({"activation": a, "fmt": fmt}, "refuted" if (a, fmt) in refuted else "proved", fmt in (float16, float32))
        for a in names
        for fmt in formats
    ]


@spec(
    "B-condition-2-published",
    source=f"{SOURCE}, Condition 2, published witnesses",
    cases=_cases(PUBLISHED, FORMATS[1:], TOO_SMALL),
)
def condition_2_published(activation: str, fmt: Format) -> GradientCondition2:
    """The witnesses of the paper with η = (1, 2, 0): they do for all formats but GELU and swish in those of E = 5.

    There |σ(δ₀)| is below 2^emin, and 0 in float8_e5m2.
    """
    low, high = (exactly(fmt, v) for v in PUBLISHED[activation])
    return GradientCondition2(function_named(activation), context(fmt), low, high, (1, 2, 0))


@spec("B-condition-2", source=f"{SOURCE}, Condition 2", cases=_cases(FOUND))
def condition_2(activation: str, fmt: Format) -> GradientCondition2:
    """Witnesses that do in every format, float8_e4m3 included."""
    low, high, etas = FOUND[activation]
    return GradientCondition2(function_named(activation), context(fmt), exactly(fmt, low), exactly(fmt, high), etas)


@spec(
    "B-condition-3-published",
    source=f"{SOURCE}, Condition 3, published witnesses",
    cases=_cases(PUBLISHED, FORMATS[1:]),
)
def condition_3_published(activation: str, fmt: Format) -> GradientCondition3:
    """ζ = 2^−10 by the second route; ReLU by the first, ζ = 2^−11 and x = 2^−10."""
    zeta, point = (-11, exactly(fmt, pow2(-10))) if activation == "relu" else (-10, zero(fmt))
    return GradientCondition3(function_named(activation), context(fmt), exactly(fmt, pow2(zeta)), point)


@spec(
    "B-condition-3-second-route-of-relu",
    source=f"{SOURCE}, Condition 3; expected to fail",
    cases=_cases(
        ["relu", "step", "cos", "cosh"],
        [float16, float32],
        {(a, f) for a in ("relu", "step", "cos", "cosh") for f in FORMATS},
    ),
)
def condition_3_second_route(activation: str, fmt: Format) -> GradientCondition3:
    """The second route for functions with σ′(0) = 0 (ReLU by convention).  False."""
    return GradientCondition3(function_named(activation), context(fmt), exactly(fmt, pow2(-10)), zero(fmt))
