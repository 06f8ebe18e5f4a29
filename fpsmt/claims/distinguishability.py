"""Which inputs an activation can tell apart through some affine map (paper A, §A3 and Corollary 4).

An affine map is φ(x) = w ⊗ x ⊕ b in the context.  Which maps are admissible is a *reading*:

* ``finite-on-domain`` (default): w ⊗ x and φ(x) are finite for every x of the domain.  Rounding is monotone,
  so on an interval this holds exactly when it holds at both ends;
* ``finite-on-pair``: they are finite at the two inputs compared;
* ``any``: w and b are finite, nothing else is asked; ±inf and NaN may do the telling apart.

Inputs are numbers, so the two zeros are one input.  Outputs are compared as numbers too: +0 and −0 are the
same output, NaN is an output like the others.

*Inexact activations.*  The implementation I is any function of numbers within a contract (`fpsmt.claims.places`),
chosen before the maps.  It fails to tell x from x′ when I(φ(x)) = I(φ(x′)) for every admissible φ, that is, when it
is constant on the connected components of the graph whose edges are the pairs (φ(x), φ(x′)).  Such an implementation
exists exactly when the allowed sets of each component have a common number.  They are intervals, so that otherwise
two of them in one component are disjoint, and the maps on a path between these two places tell x from x′ under every
implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.functions import read_value
from fpsmt.claims.places import allowed_places, place_of, value_at
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, add, context, equal, less, less_equal, mul, zero
from fpsmt.functions import Contract, CorrectlyRounded, Function, Implementation, Table, function_named
from fpsmt.functions.implementations import contract_from_json

Map = tuple[Float, Float]
ROUNDED = CorrectlyRounded()


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
    """An activation in a context, an interval of inputs [low, high], and a reading.

    The activation is correctly rounded, or any single-valued implementation within `contract`.
    """

    function: Function
    context: Context
    low: Float
    high: Float
    reading: Reading
    contract: Contract = ROUNDED

    def __post_init__(self) -> None:
        fmt = self.context.format
        if self.low.format != fmt or self.high.format != fmt:
            raise UsageError(f"the domain's ends must be values of {fmt}")
        if not (self.low.is_finite and self.high.is_finite and less(self.low, self.high)):
            raise UsageError(f"[{self.low}, {self.high}] is not an interval of finite values with two ends")

    def __str__(self) -> str:
        return f"{self.name} on [{self.low}, {self.high}] in {self.context}, maps {self.reading.value}"

    @property
    def implementation(self) -> Implementation:
        return Implementation(self.function, self.contract)

    @property
    def name(self) -> str:
        """The activation with its contract, e.g. ``tanh:ulps=2``."""
        return self.implementation.text

    @property
    def single(self) -> bool:
        """The contract allows one result at every input."""
        return isinstance(self.contract, CorrectlyRounded | Table)

    def affine(self, w: Float, b: Float, x: Float) -> tuple[Float, Float]:
        """(w ⊗ x, w ⊗ x ⊕ b)."""
        product = mul(self.context, w, x)
        return product, add(self.context, product, b)

    def output(self, w: Float, b: Float, x: Float) -> Float:
        """σ(w ⊗ x ⊕ b), where the contract leaves a choice the result nearest to the correctly rounded one."""
        return self.implementation.default(self.context, self.affine(w, b, x)[1])

    def allowed(self, y: Float) -> tuple[int, int]:
        """The places of the least and the greatest allowed result at y."""
        return allowed_places(self.implementation, self.context, y)

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
        contract = {} if self.contract == CorrectlyRounded() else {"contract": self.contract.to_json()}
        return {
            "function": self.function.name,
            "context": str(self.context),
            "low": self.low.hex,
            "high": self.high.hex,
            "reading": self.reading.value,
            **contract,
        }


def setting_from_json(data: Mapping[str, Json]) -> Setting:
    ctx = context(data["context"])
    low, high = (read_value(ctx.format, data[end]) for end in ("low", "high"))
    contract = contract_from_json(data["contract"]) if "contract" in data else CorrectlyRounded()
    return Setting(function_named(data["function"]), ctx, low, high, reading(data["reading"]), contract)


@dataclass(frozen=True)
class OverPair(Claim):
    """Statements about one activation at two different inputs of a domain."""

    setting: Setting
    x: Float
    y: Float

    def __post_init__(self) -> None:
        _distinct_inputs(self.setting, self.x, self.y)

    def fields(self) -> dict[str, Json]:
        return {"setting": self.setting.to_json(), "x": self.x.hex, "y": self.y.hex}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Self:
        setting = setting_from_json(data["setting"])
        fmt = setting.context.format
        return cls(setting, read_value(fmt, data["x"]), read_value(fmt, data["y"]))


@claim_kind
@dataclass(frozen=True)
class Inseparable(OverPair):
    """No admissible affine map tells x from y; where the contract allows a choice, under some implementation."""

    kind = "inseparable"

    @property
    def text(self) -> str:
        name, who = ("I", f"∃ I ∈ {self.setting.name} ") if not self.setting.single else (self.setting.name, "")
        return f"{who}∀ w, b: {name}(w⊗x⊕b) = {name}(w⊗x′⊕b) for x = {self.x}, x′ = {self.y} ({self.setting})"

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"w": hex, "b": hex}, a map that tells them apart under every implementation, or
        {"maps": [[w, b], …]}, maps that do so together."""
        fmt = self.setting.context.format
        pairs = counterexample.get("maps") or [[counterexample["w"], counterexample["b"]]]
        maps = [(read_value(fmt, w), read_value(fmt, b)) for w, b in pairs]
        return replay_maps(self.setting, maps, self.x, self.y, expect_separated=True)


@claim_kind
@dataclass(frozen=True)
class Separable(OverPair):
    """Some admissible affine map tells x from y, whatever the implementation is (which map may depend on it)."""

    kind = "separable"

    @property
    def text(self) -> str:
        name, who = ("I", f"∀ I ∈ {self.setting.name} ") if not self.setting.single else (self.setting.name, "")
        return f"{who}∃ w, b: {name}(w⊗x⊕b) ≠ {name}(w⊗x′⊕b) for x = {self.x}, x′ = {self.y} ({self.setting})"

    @property
    def opposite(self) -> Inseparable:
        return Inseparable(self.setting, self.x, self.y)

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """Refuting needs a proof that no map does."""
        return [self.opposite]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {}; executes the steepest admissible maps without a bias."""
        return _replay_together(self.setting, self.x, self.y)


@claim_kind
@dataclass(frozen=True)
class Distinguishable(Claim):
    """Every two different inputs of the domain are told apart by some admissible affine map, whatever the
    implementation is."""

    kind = "distinguishable"
    setting: Setting

    @property
    def text(self) -> str:
        name, who = ("I", f"∀ I ∈ {self.setting.name} ") if not self.setting.single else (self.setting.name, "")
        return f"{who}∀ x ≠ x′ ∃ w, b: {name}(w⊗x⊕b) ≠ {name}(w⊗x′⊕b) ({self.setting})"

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
        """Counterexample: {"x": hex, "y": hex}; executes the steepest admissible maps without a bias."""
        x, y = self._pair(counterexample)
        _distinct_inputs(self.setting, x, y)
        return _replay_together(self.setting, x, y)


def _replay_together(setting: Setting, x: Float, y: Float) -> Replay:
    lines, good = [f"x = {x!r}", f"x′ = {y!r}"], True
    for w in steepest(setting, x, y):
        replayed = replay_maps(setting, [(w, zero(setting.context.format))], x, y, expect_separated=False)
        good &= replayed.violates
        lines += replayed.lines
    return Replay(good, tuple(lines), {"x": x.hex, "y": y.hex})


def steepest(setting: Setting, x: Float, y: Float) -> list[Float]:
    """The largest power-of-two weight admissible with b = 0, and its negative."""
    fmt = setting.context.format
    b = zero(fmt)
    for exponent in range(fmt.largest_code >> fmt.fraction_bits, 0, -1):
        w = Float(fmt, exponent << fmt.fraction_bits)
        if w.is_finite and setting.admissible(w, b, x, y):
            return [w, -w]
    return []


def replay_maps(setting: Setting, maps: Sequence[Map], x: Float, y: Float, expect_separated: bool) -> Replay:
    """Executes maps at both inputs: do they, together, tell them apart under every implementation, as expected?"""
    fmt = setting.context.format
    lines: list[str] = []
    values: dict[str, Any] = {}
    joined = Joined(setting)
    admissible = True
    for w, b in maps:
        lines.append(f"w = {w!r}, b = {b!r}")
        values["w"], values["b"] = w.hex, b.hex
        moved = []
        for name, point in (("x", x), ("x′", y)):
            product, end = setting.affine(w, b, point)
            moved.append(place_of(end))
            results = [value_at(fmt, place) for place in sorted(set(joined.allowed(moved[-1])))]
            output = " to ".join(map(repr, results))
            lines.append(f"  {name} = {point}: w⊗{name} = {product}, ⊕ b = {end}, output {output}")
            values[name] = results[0].hex if len(results) == 1 else [y.hex for y in results]
        joined.join(*moved)
        if not setting.admissible(w, b, x, y):
            admissible = False
            lines.append(f"  the map is not admissible ({setting.reading.value})")
    if len(maps) > 1 and joined.impossible:
        lines.append("no implementation is constant along these maps: two of the outputs cannot be equal")
    return Replay(admissible and joined.impossible == expect_separated, tuple(lines), values)


class Joined:
    """Places at which an implementation must give one number, with the numbers that are left for each set of them."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.impossible = setting, False
        self._allowed: dict[int, tuple[int, int]] = {}
        self._parent: dict[int, int] = {}
        self._left: dict[int, tuple[int, int]] = {}

    def allowed(self, place: int) -> tuple[int, int]:
        """The places of the least and the greatest allowed result at a place."""
        if place not in self._allowed:
            self._allowed[place] = self.setting.allowed(value_at(self.setting.context.format, place))
            self._parent[place], self._left[place] = place, self._allowed[place]
        return self._allowed[place]

    def _root(self, place: int) -> int:
        self.allowed(place)
        while self._parent[place] != place:
            place = self._parent[place]
        return place

    def join(self, a: int, b: int) -> None:
        """The outputs at a and b are to be equal."""
        first, second = self._root(a), self._root(b)
        (low, high), (low2, high2) = self._left[first], self._left[second]
        self._parent[second] = first
        self._left[first] = left = max(low, low2), min(high, high2)
        self.impossible |= left[0] > left[1]


def _distinct_inputs(setting: Setting, x: Float, y: Float) -> None:
    for point in (x, y):
        if not (less_equal(setting.low, point) and less_equal(point, setting.high)):
            raise UsageError(f"{point} is not in the domain [{setting.low}, {setting.high}]")
    if equal(x, y):
        raise UsageError(f"{x} and {y} are one input")
