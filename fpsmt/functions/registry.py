"""The functions by name."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache

from fpsmt.errors import UsageError
from fpsmt.floats import read_number
from fpsmt.functions import definitions
from fpsmt.functions.function import Function

_ALL = {f.name: f for f in definitions.all_functions()}
_SAME = {"softplus'": "sigmoid", "sin'": "cos", "exp'": "exp", "expm1'": "exp"}

#: Every named function, without the derivatives (those are ``FUNCTIONS["tanh"].derivative``).
FUNCTIONS: dict[str, Function] = {name: f for name, f in _ALL.items() if not name.endswith("'")}


def function_named(name: str) -> Function:
    """The function of this name; ``tanh'`` is the derivative of tanh, ``leaky_relu(0.2)`` has slope 1/5.

    The slope is read as an exact decimal or quotient, 0 ≤ slope < 1; plain ``leaky_relu`` has slope 1/100.
    ``elu(ALPHA)`` and ``selu(ALPHA,SCALE)`` have other constants than the usual ones, positive numbers read likewise.

    >>> function_named("leaky_relu(0.2)").exact(Fraction(-1))
    Fraction(-1, 5)
    >>> function_named("softplus'").name
    'sigmoid'
    """
    word = name.strip().replace("′", "'")
    word = _SAME.get(word, word)
    if word in _ALL:
        return _ALL[word]
    if match := re.fullmatch(r"leaky_relu\(([^()]+)\)('?)", word):
        slope = read_number(match[1])
        if isinstance(slope, float) or not 0 <= slope < 1:
            raise UsageError(f"{name}: the slope of leaky_relu must be a number with 0 ≤ slope < 1")
        return _leaky_relu(slope)[bool(match[2])]
    if match := re.fullmatch(r"(elu|selu)\(([^(),]+)(?:,([^(),]+))?\)('?)", word):
        alpha, scale = read_number(match[2]), read_number(match[3] or "1")
        if isinstance(alpha, float) or isinstance(scale, float) or alpha <= 0 or scale <= 0:
            raise UsageError(f"{name}: the constants of {match[1]} must be positive numbers")
        if (match[1] == "selu") == (match[3] is not None):
            return _elu(match[1], alpha, scale)[bool(match[4])]
    raise UsageError(
        f"unknown function {name!r}: write one of {', '.join(FUNCTIONS)}, leaky_relu(SLOPE), elu(ALPHA), "
        "selu(ALPHA,SCALE), "
        "or one of these with ' for its derivative"
    )


@cache
def _leaky_relu(slope: Fraction) -> tuple[Function, Function]:
    if slope == definitions.LEAKY_SLOPE:
        return _ALL["leaky_relu"], _ALL["leaky_relu'"]
    return definitions.leaky_relu(slope, f"leaky_relu({slope})")


@cache
def _elu(name: str, alpha: Fraction, scale: Fraction) -> tuple[Function, Function]:
    usual = {"elu": (1, 1), "selu": (definitions.SELU_ALPHA, definitions.SELU_SCALE)}
    if (alpha, scale) == usual[name]:
        return _ALL[name], _ALL[name + "'"]
    given = f"{alpha}" if name == "elu" else f"{alpha},{scale}"
    return definitions.elu(scale, alpha, f"{name}({given})")
