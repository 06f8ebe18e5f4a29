"""Paper A (arXiv 2605.28704): conditions on activations, and which inputs these tell apart.

*Theorem 5 of the paper*, which is not proved here: if σ satisfies Condition 1 and tells the inputs of X apart under a
reduction order S, then every f: X → F ∪ {−∞, +∞} is represented exactly by a four-layer σ-network under S.  The
corollaries follow from it with what is proved here: the conditions (A-condition-1, A-condition-2) and that X is told
apart (A-corollaries-9-12, A-corollaries-13-16).  The exact text of the conditions was not available: they are a derived
reading with windows, see `fpsmt.claims.conditions`.

*Readings.*  Theorems about separation points need maps that are finite at the two inputs compared.  When maps must be
finite on the whole of (−2^(emax−1), 2^(emax−1)), |w| ≤ 4, and sigmoid, which is ½ around 0, cannot tell 0 from the
smallest float ω (but in float8_e4m3 and float16); the other activations have slopes at 0.
"""

from fractions import Fraction

from fpsmt.claims import Case, Distinguishable, Reading, Setting, cases, spec
from fpsmt.claims.conditions import Condition, default_windows
from fpsmt.claims.interval_condition import IntervalCondition
from fpsmt.claims.steering import AllDistinguishable, SameOutput, Steering
from fpsmt.constructions.witnesses import bound, run_of
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
    from_ordinal,
    pow2,
    zero,
)
from fpsmt.functions import CorrectlyRounded, Implementation, WithinUlps, function_named

PAPER = "arXiv 2605.28704"
UNIVERSAL = ("sigmoid", "tanh", "relu", "elu", "selu", "gelu", "swish", "mish", "sin", "identity")
FORMATS = (float8_e4m3, float16, bfloat16, float32, float64)
BELOW_ONE = ("sqrt1p_square", "cosh")


def implementation(function: str, ulps: int) -> Implementation:
    contract = WithinUlps(Fraction(ulps)) if ulps else CorrectlyRounded()
    return Implementation(function_named(function), contract)


def condition(function: str, fmt: Format, ulps: int) -> Condition:
    return Condition(implementation(function, ulps), context(fmt), default_windows(fmt))


@spec(
    "A-condition-1",
    source=f"{PAPER}, Condition 1 (derived reading)",
    cases=cases(function=UNIVERSAL, fmt=FORMATS)
    + cases("refuted", function=BELOW_ONE, fmt=FORMATS)
    + cases("refuted", function=["step"], fmt=[float16, float64])
    + cases(function=["cos", "gaussian"], fmt=[float16, bfloat16, float32, float64]),
)
def condition_1(function: str, fmt: Format) -> Condition:
    """The correctly rounded activation has a value that is small, one near 1, and a separation point in (1, 3/2].

    √(1 + x²) and cosh x are at least 1, so never small; the step function is constant near 1.  cos and exp(−x²) satisfy
    the condition: what they lack is that they tell inputs apart (Corollary 4).
    """
    return condition(function, fmt, 0)


@spec(
    "A-condition-2",
    source=f"{PAPER}, Condition 2 (derived reading), K = 10 ulps",
    cases=cases(function=UNIVERSAL, fmt=[bfloat16, float16, float32, float64])
    + cases("refuted", function=UNIVERSAL, fmt=[float8_e4m3]),
)
def condition_2(function: str, fmt: Format) -> Condition:
    """Every implementation within 10 ulps satisfies Condition 1, for p ≥ 7; in 8 bits some implementation does not."""
    return condition(function, fmt, 10)


@spec(
    "A-sigmoid-in-bfloat16",
    source=f"{PAPER}, Corollary 16 at p = 7 (derived reading)",
    cases=[Case({"ulps": 11}), Case({"ulps": 12}, "refuted")],
)
def sigmoid_in_bfloat16(ulps: int) -> Condition:
    """The largest error for which sigmoid satisfies Condition 2 in bfloat16 is 11 ulps: of all cases the narrowest."""
    return condition("sigmoid", bfloat16, ulps)


@spec(
    "A-steering",
    source=f"{PAPER}, what separation points are for (derived)",
    cases=cases(fmt=[float8_e4m3]) + cases(fmt=[bfloat16, float16, float32, float64], quick=False),
)
def steering(fmt: Format) -> Steering:
    """Some affine map sends one of x, x′ to η⁻ and the other to η or η⁺.

    For all x ≠ x′ in (−2^(emax−1), 2^(emax−1)) and all η with η⁻, η, η⁺ in (1, 3/2].
    """
    return Steering(context(fmt), bound(fmt), *run_of(fmt))


def settings(functions: tuple[str, ...], fmt: Format, ulps: int, reading: str) -> tuple[Setting, ...]:
    top, ctx = exactly(fmt, pow2(fmt.emax - 1)).next_down, context(fmt)
    chosen = [implementation(function, ulps) for function in functions]
    return tuple(Setting(i.function, ctx, -top, top, Reading(reading), i.contract) for i in chosen)


@spec(
    "A-corollaries-9-12",
    source=f"{PAPER}, Corollaries 9 and 12: that the domain is told apart",
    cases=cases(fmt=[float8_e4m3]) + cases(fmt=[bfloat16, float16, float32, float64], quick=False),
)
def corollaries_9_12(fmt: Format) -> AllDistinguishable:
    """The ten activations, correctly rounded, tell all inputs of (−2^(emax−1), 2^(emax−1)) apart.

    With maps that are finite at the two inputs compared.
    """
    return AllDistinguishable(settings(UNIVERSAL, fmt, 0, "finite-on-pair"))


@spec(
    "A-corollaries-13-16",
    source=f"{PAPER}, Corollaries 13 and 16: that the domain is told apart, K = 10 ulps",
    cases=cases(fmt=[bfloat16]) + cases(fmt=[float16, float32, float64], quick=False),
)
def corollaries_13_16(fmt: Format) -> AllDistinguishable:
    """The same for every implementation of each activation within 10 ulps."""
    return AllDistinguishable(settings(UNIVERSAL, fmt, 10, "finite-on-pair"))


def _finite_on_domain() -> list[Case]:
    found = []
    for fmt in (float8_e4m3, float8_e5m2):
        for function in UNIVERSAL:
            lost = function == "sigmoid" and fmt is float8_e5m2
            found.append(Case({"function": function, "fmt": fmt}, "refuted" if lost else "proved"))
    for fmt in (float32, float64):
        found.append(Case({"function": "sigmoid", "fmt": fmt}, "refuted"))
    return found


@spec(
    "A-corollaries-9-12-finite-on-domain",
    source=f"{PAPER}, Corollaries 9 and 12 with maps that are finite on the whole domain",
    cases=_finite_on_domain(),
)
def corollaries_finite_on_domain(function: str, fmt: Format) -> Distinguishable:
    """The same with maps that are finite on the whole domain.  False for sigmoid, true for it in float8_e4m3."""
    return Distinguishable(settings((function,), fmt, 0, "finite-on-domain")[0])


@spec(
    "A-lemma-2",
    source=f"{PAPER}, Lemma 2, for 0 and the smallest float ω in the setting of Corollary 4",
    cases=cases(function=("cos", "sqrt1p_square", "cosh", "gaussian"), fmt=[float16, float32, float64]),
)
def lemma_2(function: str, fmt: Format) -> SameOutput:
    """No network over the activation, of any depth, tells 0 from ω on [−2^(p+3), 2^(p+3)]."""
    top = exactly(fmt, pow2(fmt.fraction_bits + 3))
    setting = Setting(function_named(function), context(fmt), -top, top, Reading.FINITE_ON_DOMAIN)
    return SameOutput(setting, zero(fmt), from_ordinal(fmt, 1))


@spec(
    "D-condition-1",
    source="arXiv 2506.16065, Condition 1",
    cases=cases(function=["relu", "sigmoid", "tanh", "elu"], fmt=[float16, float32]),
)
def interval_condition(function: str, fmt: Format) -> IntervalCondition:
    """The condition for exact interval semantics, for correctly rounded activations."""
    return IntervalCondition(implementation(function, 0), context(fmt))
