"""Paper A (arXiv 2605.28704): 8 bits, where corollaries 13 and 16 do not reach, and the way out by tables.

For p ≤ 3 an implementation within K ulps may be too coarse: Condition 2 allows K ≤ 2 in float8_e4m3 and no K at all in
float8_e5m2, and with 10 ulps in float8_e5m2 one implementation gives one value to all large inputs.  But 8 bits are a
table of 256 entries.  A table is one implementation, not all within a bound, and each can be examined: here those of
programs that libraries use, run in 8 bits, and correctly rounded ones.

The window for a separation point is [1/4, 4]: (1, 3/2], the default, holds two floats of float8_e5m2 and no separation
point.  That such a table tells all inputs apart is then stated by itself, and so are networks, with the other ones
(A-float8-tables-network).
"""

from fractions import Fraction

from fpsmt.claims import Distinguishable, Reading, Setting, cases, spec
from fpsmt.claims.conditions import Condition, Windows, default_windows
from fpsmt.floats import Format, context, exactly, float8_e4m3, float8_e5m2, pow2
from fpsmt.functions import CorrectlyRounded, Implementation, WithinUlps, function_named, tabulated
from fpsmt.terms import program

SOURCE = "arXiv 2605.28704, what is left of Corollaries 13 and 16 in 8 bits (derived)"
#: activation → the program that is tabulated; those without one are rounded correctly
PROGRAMS = {
    "sigmoid": "sigmoid",
    "tanh": "tanh_exp_stable",
    "relu": "relu_select",
    "elu": "elu_exp",
    "selu": "selu_exp",
    "gelu": "gelu_erf",
    "swish": "silu",
    "mish": "mish",
    "sin": "",
    "identity": "",
}
FORMATS = (float8_e4m3, float8_e5m2)


def table_of(function: str, fmt: Format) -> Implementation:
    """The results of the activation's program at every code of the format."""
    body = PROGRAMS[function]
    contract = program(body) if body else CorrectlyRounded()
    return tabulated(Implementation(function_named(function), contract), context(fmt))


def domain(use: Implementation, fmt: Format) -> Setting:
    """(−2^(emax−1), 2^(emax−1)), with maps that are finite at the two inputs compared."""
    top = exactly(fmt, pow2(fmt.emax - 1)).next_down
    return Setting(use.function, context(fmt), -top, top, Reading.FINITE_ON_PAIR, use.contract)


@spec("A-float8-10-ulps", source=SOURCE, cases=cases("refuted", function=["sigmoid", "relu"], fmt=[float8_e5m2]))
def ten_ulps(function: str, fmt: Format) -> Distinguishable:
    """Every implementation within 10 ulps tells all inputs of (−2^(emax−1), 2^(emax−1)) apart: false."""
    use = Implementation(function_named(function), WithinUlps(Fraction(10)))
    return Distinguishable(domain(use, fmt))


@spec("A-float8-tables-condition", source=SOURCE, cases=cases(function=tuple(PROGRAMS), fmt=FORMATS))
def condition(function: str, fmt: Format) -> Condition:
    """The tabulated program satisfies Condition 1, with a separation point in [1/4, 4]."""
    usual = default_windows(fmt)
    wide = Windows(usual.zero, usual.one, (Fraction(1, 4), Fraction(4)), usual.value)
    return Condition(table_of(function, fmt), context(fmt), wide)


@spec("A-float8-tables", source=SOURCE, cases=cases(function=tuple(PROGRAMS), fmt=FORMATS))
def told_apart(function: str, fmt: Format) -> Distinguishable:
    """The tabulated program tells all inputs of (−2^(emax−1), 2^(emax−1)) apart."""
    return Distinguishable(domain(table_of(function, fmt), fmt))
