"""Activations as float programs: how far from the real function they are, and whether they keep its range.

ulps are of the real value; an infinite result stands for every real that overflows to it; NaN is allowed only where the
function has no value.
"""

from fpsmt.claims import Case, MeetsContract, spec
from fpsmt.floats import Format, bfloat16, context, exactly, float16, float32, read_number
from fpsmt.functions import Implementation, implementation_named
from fpsmt.terms import LIBRARY, program


def meets(name: str, fmt: Format, contract: str, fma: str, low: str, high: str) -> MeetsContract:
    """A program of the library, its functions correctly rounded, from `low` to `high` (everywhere when empty)."""
    asked = implementation_named(f"{LIBRARY[name].function}:{contract}")
    use = Implementation(asked.function, program(name, fma))  # type: ignore[arg-type]
    ends = [exactly(fmt, read_number(end)) if end else None for end in (low, high)]
    return MeetsContract(use, context(fmt), asked.contract, fmt, *ends)


def _case(name: str, fmt: Format, contract: str, expected: str, ends: str = ":", fma: str = "never") -> Case:
    low, high = ends.split(":")
    arguments = {"name": name, "fmt": fmt, "contract": contract, "fma": fma, "low": low, "high": high}
    return Case(arguments, expected)


_PROVED = [
    ("sigmoid_stable", float16, "ulps=2", ":"),
    ("sigmoid_stable", bfloat16, "ulps=2", ":"),
    ("sigmoid", bfloat16, "ulps=9/4", "-63:"),
    ("softplus_stable", float16, "ulps=2", ":"),
    ("logsigmoid", bfloat16, "ulps=2", ":"),
    ("elu", float16, "ulps=1/2", ":"),
    ("selu", float16, "ulps=4", ":"),
    ("swish", float32, "ulps=4", "-80:80"),
    ("gelu_erfc", float32, "ulps=64", "-3:3"),
]  # fmt: skip

_REFUTED = [
    ("sigmoid", float16, "ulps=64", ":"),
    ("swish", float16, "ulps=64", ":"),
    ("swish", bfloat16, "ulps=64", ":"),
    ("gelu_erf", float16, "ulps=64", ":"),
    ("gelu_erf", bfloat16, "ulps=64", ":"),
    ("gelu_tanh", float16, "ulps=64", ":"),
    ("tanh_exp", float16, "ulps=64", ":"),
    ("tanh_rational", float16, "ulps=64", ":"),
    ("softplus", float16, "ulps=64", ":"),
    ("log1p_log", float16, "ulps=64", ":"),
    ("gelu_erf", float32, "ulps=64", "-6:-4"),
]  # fmt: skip


def _cases() -> list[Case]:
    found = []
    for expected, rows in (("proved", _PROVED), ("refuted", _REFUTED)):
        for name, fmt, contract, ends in rows:
            low, _, high = ends.partition(":")
            whole = (low or "-inf", high or "inf") if low or high else ("", "")
            found.append(_case(name, fmt, contract, expected, ":".join(whole)))
    return found


@spec("float-programs-within-ulps", source="published programs, see fpsmt/terms/programs_library.py", cases=_cases())
def within_ulps(name: str, fmt: Format, contract: str, fma: str, low: str, high: str) -> MeetsContract:
    """The program is within so many ulps of its function.

    The definition of sigmoid and of swish fails far below zero, where exp(-x) overflows; gelu by erf in the lower tail,
    where 1 + erf cancels; tanh by (1 - e)/(1 + e) and log(1 + x) near zero.
    """
    return meets(name, fmt, contract, fma, low, high)


#: Every number of [-1, 1]: at most 4 from the value, and in the range.
RANGE_OF_TANH = "error=4:range=-1..1"

_TANH = [
    ("tanh_rational", float16, "never", ":", "refuted"),
    ("tanh_rational", float32, "always", "8.125:8.25", "refuted"),
    ("tanh_rational_clamped", float32, "always", "7.75:8", "proved"),
    ("tanh_exp_stable", float16, "never", ":", "proved"),
    ("tanh_exp_stable", float16, "always", ":", "proved"),
]  # fmt: skip


@spec(
    "tanh-programs-stay-in-range",
    source="public reports: tensorflow#23054, ncnn#6978",
    cases=[_case(name, fmt, RANGE_OF_TANH, expected, ends, fma) for name, fmt, fma, ends, expected in _TANH],
)
def in_range(name: str, fmt: Format, contract: str, fma: str, low: str, high: str) -> MeetsContract:
    """The program never leaves [-1, 1].  False for the 13/6 rational, which is below 1 in the reals."""
    return meets(name, fmt, contract, fma, low, high)
