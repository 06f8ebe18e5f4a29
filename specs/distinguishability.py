"""Paper A (arXiv 2605.28704), §A3: inputs that an activation can tell apart through some affine map.

Ten activations, correctly rounded, in the two formats of 16 bits.  Which maps are admissible is a parameter, the
reading: under `any` and `finite-on-pair` the domain is all finite values, under `finite-on-domain` the open interval
(−2^(emax − 1), 2^(emax − 1)) of the paper's corollaries 9 and 12.
"""

from fractions import Fraction

from fpsmt.claims import Case, Distinguishable, Reading, Setting, cases, spec
from fpsmt.floats import Format, bfloat16, context, exactly, float16, largest, pow2
from fpsmt.functions import WithinUlps, function_named

ACTIVATIONS = ("sigmoid", "tanh", "relu", "elu", "selu", "gelu", "swish", "mish", "sin", "identity")
SOURCE = "arXiv 2605.28704, corollaries 9 and 12 (derived reading)"


def paper_setting(function: str, fmt: Format, reading: str) -> Setting:
    """The domain that goes with the reading, round to nearest even."""
    high = largest(fmt)
    if Reading(reading) is Reading.FINITE_ON_DOMAIN:
        high = exactly(fmt, pow2(fmt.emax - 1)).next_down
    return Setting(function_named(function), context(fmt), -high, high, Reading(reading))


def _cases() -> list[Case]:
    found = cases(function=ACTIVATIONS, fmt=[float16, bfloat16], reading=["any"])
    found += cases(quick=False, function=ACTIVATIONS, fmt=[float16, bfloat16], reading=["finite-on-pair"])
    for fmt in (float16, bfloat16):
        for function in ACTIVATIONS:
            if (function, fmt) != ("sigmoid", float16):  # takes too long
                expected = "refuted" if function == "sigmoid" else "proved"
                quick = function in ("sigmoid", "relu")
                found.append(Case({"function": function, "fmt": fmt, "reading": "finite-on-domain"}, expected, quick))
    return found


@spec("A-distinguishable", source=SOURCE, cases=_cases())
def distinguishable(function: str, fmt: Format, reading: str) -> Distinguishable:
    """For all inputs x ≠ x′ some map has σ(w⊗x⊕b) ≠ σ(w⊗x′⊕b).

    False for the sigmoid in bfloat16 when maps must be finite on the domain: |w| < 4 moves 0 and ω by less than any
    step of the sigmoid.
    """
    return Distinguishable(paper_setting(function, fmt, reading))


@spec(
    "A-distinguishable-10-ulps",
    source="arXiv 2605.28704, corollaries 13 and 16 (derived reading)",
    cases=cases(quick=False, function=ACTIVATIONS, fmt=[bfloat16], reading=["any"]),
)
def distinguishable_within_ulps(function: str, fmt: Format, reading: str) -> Distinguishable:
    """The same for every implementation within 10 ulps, chosen before the maps: p = 7, the least precision there."""
    plain = paper_setting(function, fmt, reading)
    return Distinguishable(
        Setting(plain.function, plain.context, plain.low, plain.high, plain.reading, WithinUlps(Fraction(10)))
    )
