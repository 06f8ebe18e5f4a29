"""Probes: calls of a summing routine with terms so far apart that the result tells where terms meet.

A probe has +M at term i, −M at term j, different powers of two (*units*) at some terms, and zeros elsewhere.  M is
so large that the sum of all units vanishes when it is added to ±M.  Below the node where i and j meet every unit is
lost, and M − M = 0; the units outside survive, and their sum, which is exact, tells which they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fpsmt.engines.targets import Target, Vector
from fpsmt.errors import Unsupported
from fpsmt.floats import Format, pow2


class Varying(Unsupported):
    """The routine's results are no function of its arguments."""


class NoSum(Unsupported):
    """A probe's result is not what a sum rounded to nearest gives."""


@dataclass
class Masks:
    """Probes of one target: units are 2^unit … 2^(unit + width − 1), and M is 1.5·2^top.

    In a dot product the weights are 1, and 2^weight for M.
    """

    target: Target
    unit: int
    top: int
    width: int
    weight: int = 0

    @property
    def gap(self) -> int:
        """Precision of an accumulator, at most, for which M absorbs all units together."""
        return self.top + self.weight - self.unit - self.width

    def result(self, i: int, j: int, units: dict[int, int], top: int | None = None) -> float:
        """The routine's result with ±M at i and j and powers of two at the terms of `units`, as multiple of a unit."""
        big = 1.5 * 2.0 ** (self.top if top is None else top)
        terms = np.zeros(self.target.n)
        weights: Vector | None = None
        if self.weight:
            weights = np.ones(self.target.n)
            weights[[i, j]] = 2.0**self.weight
        terms[i], terms[j] = big, -big
        for term, bit in units.items():
            terms[term] = 2.0 ** (self.unit + bit)
        return self.target(terms, weights) / 2.0**self.unit

    def inside(self, i: int, j: int, terms: Sequence[int]) -> set[int]:
        """Those of the terms that are lost when ±M at i and j meet: a call for each `width` of them."""
        lost: set[int] = set()
        for at in range(0, max(1, len(terms)), self.width):
            part = terms[at : at + self.width]
            units = {term: bit for bit, term in enumerate(part)}
            result = self.result(i, j, units)
            if not (0 <= result < 2 ** len(part) and result == math.floor(result)):
                self.explain(i, j, units, result)
            lost.update(term for term, bit in units.items() if not int(result) >> bit & 1)
        return lost

    def explain(self, i: int, j: int, units: dict[int, int], result: float) -> None:
        again = self.result(i, j, units)
        if not same(again, result):
            raise Varying(f"{self.target.name} gave two results for the same terms: {result!r} and {again!r} units")
        what = f"terms ±{1.5 * 2.0**self.top!r} at {i} and {j}, units of {2.0**self.unit!r} elsewhere"
        got = "the result is not a number" if math.isnan(result) else f"the result is {result!r} units"
        meaning = "which is no sum of different ones of them"
        raise NoSum(
            f"{self.target.name} does not behave as a sum of {self.target.format} rounded to nearest: "
            f"{what}, and {got}, {meaning}"
        )


def same(a: float, b: float) -> bool:
    """One outcome: NaN equals NaN, −0 differs from +0."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def attempts(target: Target) -> list[Masks]:
    """Probes of one unit, for finding an accumulator's precision: with growing gaps, the last one as large as possible.

    Units are normal values first, because subnormal ones may be flushed; in a dot product M may be a product.
    """
    fmt = target.format
    top = _top(fmt)
    if top - fmt.emin > 160:
        return [Masks(target, fmt.emin // 2, top, 1)]
    out = [Masks(target, unit, top, 1) for unit in (fmt.emin, fmt.emin - fmt.fraction_bits)]
    if target.kind == "dot":
        out.append(Masks(target, fmt.emin - fmt.fraction_bits, top, 1, weight=top))
    return out


def masks(found: Masks, precision: int | None) -> Masks:
    """The probes with as many units as answers have bits, and fewer where M would not absorb them all.

    `found` has shown something to be absorbed by an accumulator of this precision (None: nothing was).
    """
    target = found.target
    most = min(target.format.precision, target.output.precision if target.output else target.format.precision)
    if precision is None:
        return replace(found, width=most if found.gap > 160 else 1)
    if found.gap > 160:
        return replace(found, width=min(most, precision))
    units = (found.unit, target.format.emin - target.format.fraction_bits)
    made = [replace(found, unit=unit, width=found.top + found.weight - unit - precision) for unit in units]
    best = made[0] if made[0].width >= min(most, precision, 8) else made[1]
    return replace(best, width=max(1, min(most, precision, best.width)))


def _top(fmt: Format) -> int:
    """The exponent of M = 1.5·2^top, the largest in the format."""
    return fmt.emax if 3 * pow2(fmt.emax - 1) <= fmt.largest else fmt.emax - 1


# -- precision ----------------------------------------------------------------------------------------------


def absorbing_triple(probes: Masks) -> tuple[int, int, int] | None:
    """(i, j, k) such that a unit at k is lost when ±M at i and j meet, at the largest gap; None if there is none.

    Of the three ways to choose k among three terms, two are such in every binary tree.  Needs three terms.
    """
    n = probes.target.n
    for i, j, k in ((0, n - 1, n // 2), (0, n // 2, n - 1), (n // 2, n - 1, 0)):
        result = probes.result(i, j, {k: 0})
        if result not in (0, 1):
            probes.explain(i, j, {k: 0}, result)
        if result == 0:
            return i, j, k
    return None


def precision_at(probes: Masks, triple: tuple[int, int, int]) -> int:
    """The least p such that 1.5·2^p absorbs 1 where the triple's terms meet: an accumulator's precision there.

    Bisects over the exponent of M, assuming that larger M absorb what smaller ones do.
    """
    i, j, k = triple
    low, high = probes.weight, probes.top + probes.weight - probes.unit  # not absorbed at low; absorbed at high
    while high - low > 1:
        middle = (low + high) // 2
        result = probes.result(i, j, {k: 0}, probes.unit + middle - probes.weight)
        low, high = (low, middle) if result == 0 else (middle, high)
    return high
