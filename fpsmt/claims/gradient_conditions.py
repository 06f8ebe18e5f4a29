"""Conditions 2 and 3 of arXiv 2605.01702 on an activation: witnesses that they hold, as claims.

σ and σ′ are correctly rounded; p = precision − 1.  The reading is that of a secondary source; side conditions that are
quantified over other numbers may be missing.

*Condition 2*, δ₀, δ₁ ∈ F and integers η₀ ≥ 1, η₁, η₂, with |σ′(δ₁)| = 2^k:

1. |σ(δ₀)|, |σ(δ₁)|, |σ(δ₀) − σ(δ₁)| ≤ 2^emax and σ(δ₀) ≠ σ(δ₁);
2. 2^η₀·|σ′(δ₀)| ≤ |σ′(δ₁)| and 2^−p ≤ |σ′(δ₁)| ≤ 1;
3. −k ≤ η₁ ≤ emax and k ≤ η₂ ≤ p − emin;
4. 2^(emin + η₂) ≤ max(|σ(δ₀)|, |σ(δ₁)|) ≤ 2^(emax − η₁).

*Condition 3*, ζ > 0 and x ∈ F, either x = 0 (second route): |σ′(0)| ≥ 2^−p and |σ| ≤ 2^emax on [−2ζ, 2ζ]; or (first
route) |x| ≥ ζ, x even, |σ′(x)| ≥ 2^−p, ζ + |x| ≤ Ω and |σ| ≤ 2^emax on [−(ζ + |x|), ζ + |x|].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Mode, context, pow2, round_real
from fpsmt.functions import Function, correctly_rounded, function_named, range_on

Part = tuple[str, bool, str]  #: what is required, whether it holds, and the numbers


class _Condition(Claim):
    function: Function
    context: Context

    def parts(self) -> list[Part]:
        """Each requirement with its numbers, computed now."""
        raise NotImplementedError

    @property
    def holds(self) -> bool:
        return all(good for _, good, _ in self.parts())

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {}; the requirements are computed again, and one fails."""
        parts = self.parts()
        lines = tuple(f"{'holds' if good else 'fails'}: {what} ({numbers})" for what, good, numbers in parts)
        return Replay(not self.holds, lines, {"fails": [what for what, good, _ in parts if not good]})


@claim_kind
@dataclass(frozen=True)
class GradientCondition2(_Condition):
    """δ₀, δ₁, η₀, η₁, η₂ witness Condition 2 for the correctly rounded activation."""

    kind = "gradient-condition-2"
    function: Function
    context: Context
    low: Float  #: δ₀
    high: Float  #: δ₁
    etas: tuple[int, int, int]

    def __post_init__(self) -> None:
        _of_format(self.context, self.low, self.high)
        object.__setattr__(self, "etas", tuple(self.etas))
        if len(self.etas) != 3 or any(type(e) is not int for e in self.etas):
            raise UsageError(f"η₀, η₁, η₂ are three whole numbers, not {self.etas}")

    @property
    def text(self) -> str:
        e = self.etas
        return (
            f"Condition 2 (arXiv 2605.01702) of {self.function.name} in {self.context}: "
            f"δ₀ = {self.low}, δ₁ = {self.high}, η = {e[0]}, {e[1]}, {e[2]}"
        )

    def fields(self) -> dict[str, Json]:
        ends = {"low": self.low.hex, "high": self.high.hex}
        return {"function": self.function.name, "context": str(self.context), **ends, "etas": list(self.etas)}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> GradientCondition2:
        ctx = context(data["context"])
        low, high = (read_value(ctx.format, data[name]) for name in ("low", "high"))
        return cls(function_named(data["function"]), ctx, low, high, tuple(data["etas"]))

    def parts(self) -> list[Part]:
        fmt, (e0, e1, e2) = self.context.format, self.etas
        ys = [correctly_rounded(self.function, self.context, x) for x in (self.low, self.high)]
        ds = [correctly_rounded(self.function.derivative, self.context, x) for x in (self.low, self.high)]
        if not all(v.is_finite for v in (*ys, *ds)):
            return [("σ and σ′ are finite at δ₀ and δ₁", False, ", ".join(map(str, (*ys, *ds))))]
        y0, y1, d0, d1 = (v.fraction for v in (*ys, *ds))
        top, most, slope = pow2(fmt.emax), max(abs(y0), abs(y1)), abs(d1)
        k = log2(slope)
        values, slopes = f"σ = {ys[0]}, {ys[1]}", f"σ′ = {ds[0]}, {ds[1]}"
        return [
            ("σ(δ₀) ≠ σ(δ₁)", y0 != y1, values),
            ("they and their difference are at most 2^emax", max(most, abs(y0 - y1)) <= top, values),
            ("η₀ ≥ 1 and 2^η₀·|σ′(δ₀)| ≤ |σ′(δ₁)|", e0 >= 1 and pow2(e0) * abs(d0) <= slope, slopes),
            ("2^−p ≤ |σ′(δ₁)| ≤ 1", pow2(-fmt.fraction_bits) <= slope <= 1, slopes),
            ("|σ′(δ₁)| = 2^k", k is not None, f"k = {k}"),
            ("−k ≤ η₁ ≤ emax", k is not None and -k <= e1 <= fmt.emax, f"k = {k}, η₁ = {e1}"),
            ("k ≤ η₂ ≤ p − emin", k is not None and k <= e2 <= fmt.fraction_bits - fmt.emin, f"k = {k}, η₂ = {e2}"),
            ("2^(emin + η₂) ≤ max|σ| ≤ 2^(emax − η₁)", pow2(fmt.emin + e2) <= most <= pow2(fmt.emax - e1), values),
        ]  # fmt: skip


@claim_kind
@dataclass(frozen=True)
class GradientCondition3(_Condition):
    """ζ and x witness Condition 3 for the correctly rounded activation; x = 0 is the second route."""

    kind = "gradient-condition-3"
    function: Function
    context: Context
    zeta: Float
    point: Float

    def __post_init__(self) -> None:
        _of_format(self.context, self.zeta, self.point)

    @property
    def text(self) -> str:
        route = "second route" if self.point.is_zero else f"x = {self.point}"
        return f"Condition 3 (arXiv 2605.01702) of {self.function.name} in {self.context}: ζ = {self.zeta}, {route}"

    def fields(self) -> dict[str, Json]:
        ends = {"zeta": self.zeta.hex, "point": self.point.hex}
        return {"function": self.function.name, "context": str(self.context), **ends}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> GradientCondition3:
        ctx = context(data["context"])
        zeta, point = (read_value(ctx.format, data[name]) for name in ("zeta", "point"))
        return cls(function_named(data["function"]), ctx, zeta, point)

    def parts(self) -> list[Part]:
        fmt, zeta, at = self.context.format, self.zeta.fraction, abs(self.point.fraction)
        slope = correctly_rounded(self.function.derivative, self.context, self.point)
        reach = 2 * zeta if self.point.is_zero else zeta + at
        steep = slope.is_finite and abs(slope.fraction) >= pow2(-fmt.fraction_bits)
        parts = [("ζ > 0", zeta > 0, f"ζ = {self.zeta}"), ("|σ′(x)| ≥ 2^−p", steep, f"σ′ = {slope}")]
        if not self.point.is_zero:
            even = self.point.code & 1 == 0
            parts += [("|x| ≥ ζ", at >= zeta, f"x = {self.point}"), ("x is even", even, self.point.bits)]
        parts.append(("the interval is finite", reach <= fmt.largest, f"±{float(reach):g}"))
        if 0 < reach <= fmt.largest:
            end = round_real(self.context.with_mode(Mode.RTN), reach)  # floats beyond it are outside
            least, most = range_on(self.function, self.context, -end, end)
            good = all(y.is_finite and abs(y.fraction) <= pow2(fmt.emax) for y in (least, most))
            parts.append(("|σ| ≤ 2^emax on it", good, f"{least} … {most}"))
        return parts


def _of_format(ctx: Context, *values: Float) -> None:
    for x in values:
        if not isinstance(x, Float) or x.format != ctx.format or not x.is_finite:
            raise UsageError(f"{x} is not a finite value of {ctx.format}")


def log2(x: Fraction) -> int | None:
    """k with x = 2^k, None where there is none."""
    if x <= 0:
        return None
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if x == pow2(k) else None


Condition = GradientCondition2 | GradientCondition3
