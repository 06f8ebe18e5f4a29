"""Which inputs an activation can tell apart through some affine map (paper A, §A3 and Corollary 4).

An affine map is φ(x) = w ⊗ x ⊕ b in the context.  Which maps are admissible is a *reading*:

* ``finite-on-domain`` (default): w ⊗ x and φ(x) are finite for every x of the domain.  Rounding is monotone,
  so on an interval this holds exactly when it holds at both ends;
* ``finite-on-pair``: they are finite at the two inputs compared;
* ``any``: w and b are finite, nothing else is asked; ±inf and NaN may do the telling apart.

Inputs are numbers, so the two zeros are one input.  Outputs are compared as numbers too: +0 and −0 are the
same output, NaN is an output like the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, add, context, equal, less, less_equal, mul, zero
from fpsmt.functions import Function, correctly_rounded, function_named


class Reading(Enum):
    """Which affine maps may do the telling apart."""

    FINITE_ON_DOMAIN = "finite-on-domain"
    FINITE_ON_PAIR = "finite-on-pair"
    ANY = "any"


def reading(text: str | Reading) -> Reading:
    """The reading of this name."""
    try:
        return Reading(text)
    except ValueError:
        names = ", ".join(r.value for r in Reading)
        raise UsageError(f"unknown reading {text!r}: write one of {names}") from None


@dataclass(frozen=True)
class Setting:
    """A correctly rounded activation in a context, an interval of inputs [low, high], and a reading."""

    function: Function
    context: Context
    low: Float
    high: Float
    reading: Reading

    def __post_init__(self) -> None:
        fmt = self.context.format
        if self.low.format != fmt or self.high.format != fmt:
            raise UsageError(f"the domain's ends must be values of {fmt}")
        if not (self.low.is_finite and self.high.is_finite and less(self.low, self.high)):
            raise UsageError(f"[{self.low}, {self.high}] is not an interval of finite values with two ends")

    def __str__(self) -> str:
        return f"{self.function.name} on [{self.low}, {self.high}] in {self.context}, maps {self.reading.value}"

    def affine(self, w: Float, b: Float, x: Float) -> tuple[Float, Float]:
        """(w ⊗ x, w ⊗ x ⊕ b)."""
        product = mul(self.context, w, x)
        return product, add(self.context, product, b)

    def output(self, w: Float, b: Float, x: Float) -> Float:
        """σ(w ⊗ x ⊕ b)."""
        return correctly_rounded(self.function, self.context, self.affine(w, b, x)[1])

    def finite_at(self, w: Float, b: Float, x: Float) -> bool:
        return all(value.is_finite for value in self.affine(w, b, x))

    def admissible(self, w: Float, b: Float, x: Float, y: Float) -> bool:
        """May this map be used to tell x from y?"""
        if not (w.is_finite and b.is_finite):
            return False
        if self.reading is Reading.ANY:
            return True
        ends = (self.low, self.high) if self.reading is Reading.FINITE_ON_DOMAIN else (x, y)
        return all(self.finite_at(w, b, end) for end in ends)

    def to_json(self) -> dict[str, Json]:
        return {
            "function": self.function.name,
            "context": str(self.context),
            "low": self.low.hex,
            "high": self.high.hex,
            "reading": self.reading.value,
        }


def setting_from_json(data: Mapping[str, Json]) -> Setting:
    ctx = context(data["context"])
    low, high = (read_value(ctx.format, data[end]) for end in ("low", "high"))
    return Setting(function_named(data["function"]), ctx, low, high, reading(data["reading"]))


@claim_kind
@dataclass(frozen=True)
class Inseparable(Claim):
    """No admissible affine map tells x from y."""

    kind = "inseparable"
    setting: Setting
    x: Float
    y: Float

    def __post_init__(self) -> None:
        _distinct_inputs(self.setting, self.x, self.y)

    @property
    def text(self) -> str:
        name = self.setting.function.name
        return f"∀ w, b: {name}(w⊗x⊕b) = {name}(w⊗x′⊕b) for x = {self.x}, x′ = {self.y} ({self.setting})"

    def fields(self) -> dict[str, Json]:
        return {"setting": self.setting.to_json(), "x": self.x.hex, "y": self.y.hex}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Inseparable:
        setting = setting_from_json(data["setting"])
        fmt = setting.context.format
        return cls(setting, read_value(fmt, data["x"]), read_value(fmt, data["y"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"w": hex, "b": hex}, a map that tells them apart."""
        fmt = self.setting.context.format
        w, b = read_value(fmt, counterexample["w"]), read_value(fmt, counterexample["b"])
        return replay_map(self.setting, w, b, self.x, self.y, expect_separated=True)


@claim_kind
@dataclass(frozen=True)
class Distinguishable(Claim):
    """Every two different inputs of the domain are told apart by some admissible affine map."""

    kind = "distinguishable"
    setting: Setting

    @property
    def text(self) -> str:
        name = self.setting.function.name
        return f"∀ x ≠ x′ ∃ w, b: {name}(w⊗x⊕b) ≠ {name}(w⊗x′⊕b) ({self.setting})"

    def fields(self) -> dict[str, Json]:
        return {"setting": self.setting.to_json()}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Distinguishable:
        return cls(setting_from_json(data["setting"]))

    def _pair(self, counterexample: Json) -> tuple[Float, Float]:
        fmt = self.setting.context.format
        return read_value(fmt, counterexample["x"]), read_value(fmt, counterexample["y"])

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """Refuting needs a proof that the pair is inseparable."""
        return [Inseparable(self.setting, *self._pair(counterexample))]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"x": hex, "y": hex}; executes the identity map and the steepest admissible one."""
        x, y = self._pair(counterexample)
        setting = self.setting
        _distinct_inputs(setting, x, y)
        lines, good = [f"x = {x!r}", f"x′ = {y!r}"], True
        for w in _steepest(setting, x, y):
            replayed = replay_map(setting, w, zero(setting.context.format), x, y, expect_separated=False)
            good &= replayed.violates
            lines += replayed.lines
        return Replay(good, tuple(lines), {"x": x.hex, "y": y.hex})


def _steepest(setting: Setting, x: Float, y: Float) -> list[Float]:
    """The largest power-of-two weight admissible with b = 0, and its negative."""
    fmt = setting.context.format
    b = zero(fmt)
    for exponent in range(fmt.largest_code >> fmt.fraction_bits, 0, -1):
        w = Float(fmt, exponent << fmt.fraction_bits)
        if w.is_finite and setting.admissible(w, b, x, y):
            return [w, -w]
    return []


def replay_map(setting: Setting, w: Float, b: Float, x: Float, y: Float, expect_separated: bool) -> Replay:
    """Executes one map at both inputs: does it separate them (or fail to), as expected?"""
    lines: list[str] = [f"w = {w!r}, b = {b!r}"]
    values: dict[str, Any] = {"w": w.hex, "b": b.hex}
    for name, point in (("x", x), ("x′", y)):
        product, moved = setting.affine(w, b, point)
        out = setting.output(w, b, point)
        lines.append(f"  {name} = {point}: w⊗{name} = {product}, ⊕ b = {moved}, output {out!r}")
        values[name] = out.hex
    separated = not same_number(setting.output(w, b, x), setting.output(w, b, y))
    admissible = setting.admissible(w, b, x, y)
    if not admissible:
        lines.append(f"  the map is not admissible ({setting.reading.value})")
    return Replay(admissible and separated == expect_separated, tuple(lines), values)


def same_number(a: Float, b: Float) -> bool:
    """Equal as numbers: the zeros are one, NaN is NaN."""
    return a == b or equal(a, b)


def _distinct_inputs(setting: Setting, x: Float, y: Float) -> None:
    for point in (x, y):
        if not (less_equal(setting.low, point) and less_equal(point, setting.high)):
            raise UsageError(f"{point} is not in the domain [{setting.low}, {setting.high}]")
    if equal(x, y):
        raise UsageError(f"{x} and {y} are one input")
