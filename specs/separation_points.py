"""Paper A (arXiv 2605.28704), §A4: separation points η with σ(η⁻) ∉ {σ(η), σ(η⁺)}."""

from fractions import Fraction

from fpsmt.claims import AlwaysSeparates, Case, Run, SeparationCount, cases, spec
from fpsmt.floats import Format, bfloat16, context, exactly, float16, float32, largest
from fpsmt.functions import Implementation, WithinUlps, function_named

SOURCE = "arXiv 2605.28704, separation points"
NINE = ("sigmoid", "tanh", "relu", "elu", "selu", "gelu", "swish", "mish", "sin")

#: Separation points among all finite values, correctly rounded: bfloat16, float16.
COUNTS = {
    "relu": (32638, 31742),
    "sigmoid": (1068, 5619),
    "tanh": (32496, 30554),
    "sin": (64921, 61477),
    "cos": (32857, 34213),
    "identity": (65277, 63485),
    "elu": (48865, 46867),
    "selu": (45732, 44205),
    "gelu": (48839, 45205),
    "swish": (49190, 46817),
    "mish": (45139, 44844),
}

#: The most whole ulps that leave every implementation a separation point in [1/2, 1]: bfloat16, float16.
BREAK_EVEN = {
    "relu": (62, 510),
    "sigmoid": (13, 111),
    "tanh": (51, 409),
    "sin": (61, 494),
    "identity": (62, 510),
    "elu": (62, 510),
    "selu": (60, 485),
    "gelu": (84, 675),
    "swish": (71, 572),
    "mish": (83, 668),
}


def everywhere(function: str, fmt: Format, ulps: int | None = None) -> Run:
    """All finite floats; correctly rounded, or within so many ulps."""
    f = function_named(function)
    use = Implementation(f) if ulps is None else Implementation(f, WithinUlps(Fraction(ulps)))
    return Run(use, context(fmt), largest(fmt, True), largest(fmt))


@spec("A-separation-points", source=SOURCE, cases=cases(function=tuple(COUNTS), fmt=[bfloat16, float16]))
def separation_points(function: str, fmt: Format) -> SeparationCount:
    """How many finite floats are separation points of the correctly rounded activation."""
    return SeparationCount(everywhere(function, fmt), COUNTS[function][fmt is float16])


@spec("A-separation-10-ulps", source=SOURCE, cases=cases(function=NINE, fmt=[bfloat16, float16, float32]))
def separation_within_ulps(function: str, fmt: Format) -> AlwaysSeparates:
    """Every implementation within 10 ulps has a separation point."""
    return AlwaysSeparates(everywhere(function, fmt, 10))


def _break_even_cases() -> list[Case]:
    return [
        Case({"function": function, "fmt": fmt, "ulps": ulps + more}, "refuted" if more else "proved")
        for function, both in BREAK_EVEN.items()
        for fmt, ulps in zip((bfloat16, float16), both)
        for more in (0, 1)
    ]


@spec("A-separation-break-even", source=SOURCE, cases=_break_even_cases())
def separation_break_even(function: str, fmt: Format, ulps: int) -> AlwaysSeparates:
    """Every implementation within so many ulps has a separation point in [1/2, 1].

    The largest such number of ulps for each activation, and with one ulp more an implementation that has none.
    """
    use = Implementation(function_named(function), WithinUlps(Fraction(ulps)))
    return AlwaysSeparates(Run(use, context(fmt), exactly(fmt, 0.5), exactly(fmt, 1)))
