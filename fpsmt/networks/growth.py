"""How much the roundings of a sum can add up to, whatever its tree: facts 3 and 4 of `fpsmt.networks.bounds`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fpsmt.floats import Context, pow2
from fpsmt.networks.executions import Execution
from fpsmt.networks.orders import Depth


def sum_growth(acc: Context, how: Execution, leaves: int, may_be_exact: bool) -> tuple[float, float]:
    """(1+u)^h − 1 and η of facts 3 and 4, rounded up; `may_be_exact`: products may be fused or kept exact."""
    fmt, mode, rule = acc.format, acc.mode, acc.subnormals
    nearest = mode.nearest
    height = leaves - 1
    if isinstance(how.order, Depth):
        height = min(height, how.order.height + 1)  # the bias may come on top
    u = pow2(-fmt.precision if nearest else 1 - fmt.precision)
    eta = Fraction(0)
    if may_be_exact:
        eta += fmt.smallest / 2 if nearest else fmt.smallest
    if rule.outputs:
        eta += fmt.smallest_normal
    if rule.inputs:
        eta += 4 * fmt.smallest_normal
    return _power_minus_one(u, height), float_up(eta)


def _power_minus_one(u: Fraction, h: int) -> float:
    """A float64 ≥ (1+u)^h − 1: for hu ≤ 1/2 from (1+u)^h ≤ 1/(1 − hu), else by the exact power."""
    if h * u <= Fraction(1, 2):
        return float_up(h * u / (1 - h * u))
    if h > 100_000:
        return np.inf
    return float_up((1 + u) ** h - 1)


def float_up(x: Fraction) -> float:
    """A float64 that is at least x."""
    try:
        near = float(x)
    except OverflowError:
        return np.inf
    return near if Fraction(near) >= x else float(np.nextafter(near, np.inf))
