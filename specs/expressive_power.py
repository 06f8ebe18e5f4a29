"""Paper A (arXiv 2605.28704): expressive power of float networks under arbitrary reduction orders.

The exact text of Corollary 4 was not available; which affine maps are admissible is taken as a parameter, the
reading.  Format parameters follow the paper: p = fraction bits, domain [−2^(p+3), 2^(p+3)].
"""

from fpsmt.claims import Case, Distinguishable, Reading, Setting, spec
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
)
from fpsmt.functions import function_named

COSINE_TYPE = ("cos", "sqrt1p_square", "cosh", "gaussian")


def corollary_4_setting(function: str, fmt: Format, reading: str) -> Setting:
    """σ correctly rounded on [−2^(p+3), 2^(p+3)], round to nearest even."""
    bound = exactly(fmt, pow2(fmt.fraction_bits + 3))
    return Setting(function_named(function), context(fmt), -bound, bound, Reading(reading))


def _corollary_4_cases() -> list[Case]:
    found = []
    for fmt in (float8_e5m2, float8_e4m3, float16, bfloat16, float32, float64):
        for function in COSINE_TYPE:
            exception = fmt is float8_e4m3 and function == "gaussian"
            expected = "proved" if exception else "refuted"
            found.append(Case({"function": function, "fmt": fmt, "reading": "finite-on-domain"}, expected))
    for reading in ("finite-on-pair", "any"):
        for fmt in (float16, bfloat16):
            found += [Case({"function": f, "fmt": fmt, "reading": reading}, "proved") for f in COSINE_TYPE]
    return found


@spec("A-corollary-4", source="arXiv 2605.28704, Corollary 4 (derived reading)", cases=_corollary_4_cases())
def corollary_4(function: str, fmt: Format, reading: str) -> Distinguishable:
    """Correctly rounded cos, √(1+x²), cosh and exp(−x²) tell apart all inputs of [−2^(p+3), 2^(p+3)].

    The corollary says that they do not.  That is so when maps must be finite on the whole domain, with one
    exception among the formats here: exp(−x²) in float8_e4m3.  Under the two other readings they do.
    """
    return Distinguishable(corollary_4_setting(function, fmt, reading))
