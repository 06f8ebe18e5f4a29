"""Fused multi-term accumulation with truncation, as matrix units do it: one step adds several products at once.

A step takes an accumulator c and products w·x, and computes

1. every product exactly;
2. the largest exponent E among the summands that are not zero;
3. every summand, c included, as a multiple of 2^(E − bits + 1): what falls below is cut off (or rounded);
4. the exact sum of these, rounded once into the accumulator's context.

This is not a sum of the kind of `fpsmt.networks.sums`: there is no tree, steps are not monotone in their operands
(M. Fasi, N. Higham, M. Mikaitis and S. Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7,
2021, e330), and **x + 0 = x is false**: a step without products still cuts its accumulator.  Error bounds need a whole
unit in the last place for each summand, not a half.

NaN among the operands, 0·inf, and opposite infinities give NaN; infinite summands of one sign give that infinity.
Zeros: when all summands are zeros the result is +0 (−0 if all are −0).  Subnormal operands count with their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal

from fpsmt import floats
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, context, floor_log2, infinity, nan, pow2, round_real, zero
from fpsmt.networks.sums import Product

MOST_STEPS = 50_000  #: steps that `outcomes` evaluates before it gives up


@dataclass(frozen=True)
class FusedAccumulator:
    """What a matrix unit does in a step.

    * `products`: how many it adds at once.
    * `bits`: how many bits of a summand with the largest exponent are kept, its leading bit included.
    * `accumulator`: the context of the result of a step.
    * `alignment`: ``truncate`` cuts towards zero, ``floor`` towards −inf (two's complement), ``round`` to nearest even.
    * `exponents`: the exponent of a product is that of its ``value``, or the sum of those of its ``operands``
      (one less when the product of the significands is at least 2).
    """

    products: int
    bits: int
    accumulator: Context
    alignment: Literal["truncate", "floor", "round"] = "truncate"
    exponents: Literal["value", "operands"] = "operands"

    def __post_init__(self) -> None:
        if self.products < 1 or self.bits < 1:
            raise UsageError("a step adds at least one product and keeps at least one bit")
        if self.alignment not in ("truncate", "floor", "round") or self.exponents not in ("value", "operands"):
            raise UsageError(f"alignment {self.alignment!r} or exponents {self.exponents!r} is unknown")

    def step(self, start: Float, pairs: Iterable[Product] = ()) -> Float:
        """start + Σ w·x in one step; `start` may be of any format.

        >>> fp22 = PRESETS["fp22"]
        >>> c = floats.exactly(floats.float32, 1 + pow2(-14))
        >>> str(fp22.step(c))
        '1.0'
        """
        terms = list(pairs)
        if len(terms) > self.products:
            raise UsageError(f"{len(terms)} products in a step of at most {self.products}")
        fmt = self.accumulator.format
        summands: list[tuple[Fraction, int]] = []
        signs: list[bool] = []
        infinite: set[bool] = set()
        for factors in [(start,), *terms]:
            negative = sum(f.negative for f in factors) % 2 == 1
            if any(f.is_nan for f in factors):
                return self._nan()
            if any(f.is_infinite for f in factors):
                if any(f.is_zero for f in factors):
                    return self._nan()
                infinite.add(negative)
                continue
            signs.append(negative)
            value = Fraction(1)
            for f in factors:
                value *= f.fraction
            if value:
                parts = factors if self.exponents == "operands" else ()
                exponent = sum(floor_log2(abs(f.fraction)) for f in parts) if parts else floor_log2(abs(value))
                summands.append((value, exponent))
        if infinite:
            if len(infinite) == 2:
                return self._nan()
            return floats.cast(self.accumulator, infinity(floats.float32, infinite.pop()))
        if not summands:
            return zero(fmt, all(signs))
        quantum = pow2(max(exponent for _, exponent in summands) - self.bits + 1)
        total = sum((self._aligned(value / quantum) for value, _ in summands), 0) * quantum
        return round_real(self.accumulator, total)

    def _aligned(self, x: Fraction) -> int:
        if self.alignment == "floor":
            return x.numerator // x.denominator
        if self.alignment == "round":
            return round(x)
        return int(x)

    def _nan(self) -> Float:
        if not self.accumulator.format.has_nan:
            raise UsageError(f"the result is NaN, and {self.accumulator.format} has none")
        return nan(self.accumulator.format)

    def dot(self, pairs: Sequence[Product], start: Float | None = None, result: Context | None = None) -> Float:
        """Σ w·x (+ start) in steps of `products` consecutive terms; then cast to `result`, if given."""
        acc = zero(self.accumulator.format) if start is None else start
        for at in range(0, max(len(pairs), 1), self.products):
            acc = self.step(acc, pairs[at : at + self.products])
        return acc if result is None else floats.cast(result, acc)

    def outcomes(
        self, pairs: Sequence[Product], start: Float | None = None, result: Context | None = None, regroup: bool = False
    ) -> dict[Float, tuple[tuple[int, ...], ...]]:
        """Every result over the orders of the steps, with the steps (places of their terms) that reach it first.

        The terms of a step are `products` consecutive ones; with `regroup` any ones (steps are full but for the last).
        Raises `Unsupported` beyond `MOST_STEPS` steps.

        >>> one, big = (floats.exactly(floats.float8_e5m2, v) for v in (1, 2**14))
        >>> unit = FusedAccumulator(1, 14, context("ieee(8,14):RTZ"))
        >>> sorted(str(v) for v in unit.outcomes([(one, one), (one, big), (one, -big)]))
        ['0.0', '1.0']
        """
        n = len(pairs)
        groups = [tuple(range(at, min(at + self.products, n))) for at in range(0, n, self.products)]
        first = zero(self.accumulator.format) if start is None else start
        reached: dict[frozenset[int], dict[Float, tuple[tuple[int, ...], ...]]] = {frozenset(): {first: ()}}
        taken = 0
        for _ in range(max(len(groups), 1)):
            further: dict[frozenset[int], dict[Float, tuple[tuple[int, ...], ...]]] = {}
            for done, values in reached.items():
                left = [i for i in range(n) if i not in done]
                size = min(self.products, len(left))
                ways: Iterable[tuple[int, ...]] = combinations(left, size)
                if not regroup:
                    ways = [g for g in groups if not done & set(g)] or [()]
                for group in ways:
                    for value, path in values.items():
                        taken += 1
                        if taken > MOST_STEPS:
                            raise Unsupported(f"more than {MOST_STEPS} steps for {n} terms: ask for fewer terms")
                        after = self.step(value, [pairs[i] for i in group])
                        further.setdefault(done | set(group), {}).setdefault(after, (*path, group))
            reached = further
        (values,) = reached.values()
        final: dict[Float, tuple[tuple[int, ...], ...]] = {}
        for value, path in values.items():
            final.setdefault(value if result is None else floats.cast(result, value), path)
        return final


#: Parameter sets with a public source.  Hardware differs between generations; measure before relying on one.
#:
#: * ``fp22``: the accumulator of 8-bit matrix instructions on one GPU generation as reported publicly (DeepSeek-V3
#:   technical report, arXiv 2412.19437, 3.3.2: products are aligned to the largest exponent of 32 and 14 bits are
#:   kept; SageAttention2, arXiv 2411.10958: an accumulator of 1 + 8 + 13 bits).
#: * ``truncating32``: the form that Fasi, Higham, Mikaitis and Pranesh (2021) describe for the first generation: four
#:   products and the accumulator aligned in 24 bits, no normalisation in between, the sum cut to float32.  Later
#:   generations keep extra bits and add more products.
PRESETS: dict[str, FusedAccumulator] = {
    "fp22": FusedAccumulator(32, 14, context("ieee(8,14):RTZ")),
    "truncating32": FusedAccumulator(4, 24, context("float32:RTZ")),
}

