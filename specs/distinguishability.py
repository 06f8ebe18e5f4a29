"""Paper A (arXiv 2605.28704), §A3: inputs that an activation can tell apart through some affine map.

Ten activations, correctly rounded, in the two formats of 16 bits.  Which maps are admissible is a parameter, the
reading: under `any` and `finite-on-pair` the domain is all finite values, under `finite-on-domain` the open interval
(−2^(emax − 1), 2^(emax − 1)) of the paper's corollaries 9 and 12.
"""

from fractions import Fraction

from fpsmt.claims import (
    Case,
    Distinguishable,
    Inseparable,
    LineClasses,
    Reading,
    Setting,
    TogetherBeside,
    VectorClasses,
    cases,
    spec,
)
from fpsmt.floats import (
    Float,
    Format,
    bfloat16,
    context,
    exactly,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e4m3,
    float8_e5m2,
    float16,
    from_ordinal,
    ieee,
    largest,
    pow2,
    read_number,
)
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
            expected = "refuted" if (function, fmt) == ("sigmoid", bfloat16) else "proved"
            quick = expected == "refuted" or function == "relu"
            found.append(Case({"function": function, "fmt": fmt, "reading": "finite-on-domain"}, expected, quick))
    return found


@spec("A-distinguishable", source=SOURCE, cases=_cases())
def distinguishable(function: str, fmt: Format, reading: str) -> Distinguishable:
    """For all inputs x ≠ x′ some map has σ(w⊗x⊕b) ≠ σ(w⊗x′⊕b).

    False for the sigmoid in bfloat16 when maps must be finite on the domain: |w| < 4 moves 0 and ω by less than any
    step of the sigmoid.  In float16 w⊗ω can be 4ω, half a spacing where the sigmoid steps, and ties tell.
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


#: The sigmoid, maps finite on the domain: |x| ≤ the first stay together, and so does each of the others with the next
#: float away from zero, on both sides.
TOGETHER = {
    float8_e5m2: ("0x1.cp-9",),
    bfloat16: (
        "0x1.fep-19", "0x1.78p-18", "0x1.94p-18", "0x1.9ep-18", "0x1.a6p-18", "0x1.acp-18", "0x1.bap-18", "0x1.cp-18",
        "0x1.cap-18", "0x1.dp-18", "0x1.dap-18", "0x1.dep-18", "0x1.ecp-18", "0x1.fp-18", "0x1.f4p-18", "0x1.f8p-18",
        "0x1.fcp-18", "0x1.78p-17",
    ),
}  # fmt: skip
RESIDUAL = "arXiv 2605.28704, §A3 (derived): what the sigmoid does not tell apart under maps finite on the domain"


def classes_of_sigmoid(fmt: Format) -> tuple[tuple[Float, Float], ...]:
    """First and last input of each class of `TOGETHER`, in increasing order."""
    around, *pairs = (exactly(fmt, read_number(text)) for text in TOGETHER[fmt])
    positive = [(x, x.next_up) for x in pairs]
    return (*((-y, -x) for x, y in positive[::-1]), (-around, around), *positive)


@spec("A-residual-classes", source=RESIDUAL, cases=cases(fmt=[float8_e5m2]) + cases(quick=False, fmt=[bfloat16]))
def residual_classes(fmt: Format) -> LineClasses:
    """Two inputs are told apart by no map exactly when one of these classes holds both.

    In bfloat16: 27,903 inputs around 0, of 64,767, and 34 pairs of neighbours.
    """
    return LineClasses(paper_setting("sigmoid", fmt, "finite-on-domain"), classes_of_sigmoid(fmt))


@spec(
    "A-residual-pair",
    source=RESIDUAL,
    cases=[
        Case({"fmt": fmt, "low": low.hex, "high": high.hex}, quick=low.negative and not high.negative)
        for fmt in TOGETHER
        for low, high in classes_of_sigmoid(fmt)
    ],
)
def residual_pair(fmt: Format, low: str, high: str) -> Inseparable:
    """No map tells the ends of such a class apart; maps and the sigmoid are monotone, so nor what lies between."""
    ends = (exactly(fmt, read_number(end)) for end in (low, high))
    return Inseparable(paper_setting("sigmoid", fmt, "finite-on-domain"), *ends)


#: (k, m) for each function of Corollary 4: in one dimension what stays together on [−2^(p+3), 2^(p+3)] is |x| ≤ kω, and
#: in two it does beside another coordinate of size at most mω.
RADIUS = {
    float8_e5m2: {"cos": (1, 1), "sqrt1p_square": (2, 2), "cosh": (1, 1), "gaussian": (1, 1)},
    float8_e4m3: {"cos": (1, 2), "sqrt1p_square": (1, 2), "cosh": (1, 2), "gaussian": (0, 0)},
}
COSINE_TYPE = tuple(RADIUS[float8_e5m2])


def _plane_cases() -> list[Case]:
    tiny = [float4_e2m1fn, ieee(3, 3), float6_e3m2fn, float6_e2m3fn]
    found = cases(function=COSINE_TYPE, fmt=tiny, near=[0], beside=[0])
    for fmt, each in RADIUS.items():
        found += [Case({"function": f, "fmt": fmt, "near": k, "beside": m}, quick=False) for f, (k, m) in each.items()]
    return found


@spec(
    "A-two-coordinates",
    source="arXiv 2605.28704, Corollary 4 in two dimensions (derived): the exact set of pairs",
    cases=_plane_cases(),
)
def two_coordinates(function: str, fmt: Format, near: int, beside: int) -> VectorClasses:
    """Two vectors of the box are told apart by no map exactly when they differ in coordinates of size at most kω only,
    and the other coordinate is at most mω.

    In the two formats of 8 bits on [−2^(p+3), 2^(p+3)]².  So what is not told apart in one dimension is, as soon as the
    other coordinate is larger: w₁⊗ω moves w₂⊗x₂ by a whole ulp.  In the smaller formats, on all finite values, k = 0:
    all vectors are told apart.
    """
    high = exactly(fmt, pow2(fmt.fraction_bits + 3)) if fmt in RADIUS else largest(fmt)
    few = [from_ordinal(fmt, k) for k in range(-near, near + 1)]
    together = [tuple((x, y) for x in few for y in few)] if near else []
    for c in (from_ordinal(fmt, k) for k in range(-beside, beside + 1) if abs(k) > near):
        together += [tuple((x, c) for x in few), tuple((c, x) for x in few)]
    setting = Setting(function_named(function), context(fmt), -high, high, Reading.FINITE_ON_DOMAIN)
    return VectorClasses(setting, tuple(together))


#: (format, function) → (least, count): on [−2^(p+3), 2^(p+3)]² −ω, 0 and ω stay together beside `count` numbers c ≥ 0,
#: of which those up to least·ω are the first.
BESIDE = {
    (float8_e5m2, "cos"): (1, 2),
    (float8_e5m2, "sqrt1p_square"): (2, 3),
    (float8_e4m3, "cos"): (2, 3),
    (float8_e4m3, "gaussian"): (-1, 0),
    (bfloat16, "cos"): (8, 9),
    (bfloat16, "cosh"): (8, 9),
    (bfloat16, "sqrt1p_square"): (8, 9),
    (bfloat16, "gaussian"): (4, 5),
    (float16, "cos"): (16, 615),
    (float16, "cosh"): (16, 705),
    (float16, "sqrt1p_square"): (33, 1274),
    (float16, "gaussian"): (16, 615),
}


@spec(
    "A-beside",
    source="arXiv 2605.28704, Corollary 4 in two dimensions (derived)",
    cases=[
        Case({"function": name, "fmt": fmt, "least": least, "count": count}, quick=fmt.bits == 8)
        for (fmt, name), (least, count) in BESIDE.items()
    ],
)
def together_beside(function: str, fmt: Format, least: int, count: int) -> TogetherBeside:
    """No map of two coordinates tells −ω, 0 and ω apart beside exactly these numbers; beside all others maps do.

    In bfloat16 those are small.  In float16 |w| < 8, so that w⊗ω does little more than decide ties, and there are large
    numbers among them.
    """
    high = exactly(fmt, pow2(fmt.fraction_bits + 3))
    setting = Setting(function_named(function), context(fmt), -high, high, Reading.FINITE_ON_DOMAIN)
    return TogetherBeside(setting, 1, least, count)
