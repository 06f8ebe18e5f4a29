"""Claims about rationals in networks: what their coefficients absorb, and which networks are too small for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.errors import UsageError
from fpsmt.rational import Trainable, number_text
from fpsmt.rational.affine import Map, cannot_absorb
from fpsmt.rational.trainable import VERSIONS


@claim_kind
@dataclass(frozen=True)
class Absorbed(Claim):
    """For all a, b, γ ≠ 0 and θ there are a′, b′ with r(γu + θ; a, b) = r(u; a′, b′) for every u, of one form and type.

    `map` is ``affine``, or ``scale`` for θ = 0.  In the unsafe form 1 + Σ bⱼθʲ ≠ 0 is assumed, without which r(θ; a, b)
    may not exist, and both sides are equal where they are defined.
    """

    kind = "absorbed"
    version: str
    type: tuple[int, int]
    map: Map = "affine"

    def __post_init__(self) -> None:
        m, n = self.type
        object.__setattr__(self, "type", (int(m), int(n)))
        if self.version not in VERSIONS or self.map not in get_args(Map) or m < 0 or n < 0:
            raise UsageError(f"a version of {VERSIONS}, a pair of degrees, and a map of {get_args(Map)} are needed")

    @property
    def text(self) -> str:
        inner, names = ("γu + θ", "γ ≠ 0, θ") if self.map == "affine" else ("γu", "γ ≠ 0")
        return f"∀ a, b, {names} ∃ a′, b′ ∀ u: r({inner}; a, b) = r(u; a′, b′), form {self.version} of type {self.type}"

    def fields(self) -> dict[str, Json]:
        return {"version": self.version, "type": list(self.type), "map": self.map}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Absorbed:
        m, n = data["type"]
        return cls(data["version"], (m, n), data["map"])

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"a", "b", "scale", "shift"}, exact numbers for which no a′, b′ of any degrees exist."""
        a, b = ([Fraction(str(x)) for x in counterexample[name]] for name in ("a", "b"))
        scale, shift = (Fraction(str(counterexample[name])) for name in ("scale", "shift"))
        r = Trainable(self.version, tuple(a), tuple(b))
        why = cannot_absorb(r, scale, shift) if r.type == self.type else None
        if self.map == "scale" and shift != 0:
            why = None
        lines = tuple(f"{name} = {', '.join(map(number_text, values))}" for name, values in (("a", a), ("b", b)))
        return Replay(why is not None, (*lines, why or "nothing found"))


@claim_kind
@dataclass(frozen=True)
class SizeNeeded(Claim):
    """Networks of at most `size` weights and biases do not approximate 1/(x² + η²), of one rational neuron, to `error`.

    For every η with 0 < η⁴ ≤ error, and every feed-forward network of x with at most `size` weights and biases, each at
    most `weights` in size, whose neurons apply twice differentiable activations with |σ′| ≤ `slope` and
    |σ″| ≤ `curvature` to affine sums, and whose output is an affine sum: it is farther than `error` from 1/(x² + η²)
    somewhere on [−1, 1].
    """

    kind = "size-needed"
    error: Fraction
    size: int
    weights: Fraction
    slope: Fraction
    curvature: Fraction

    def __post_init__(self) -> None:
        for name in ("error", "weights", "slope", "curvature"):
            object.__setattr__(self, name, Fraction(getattr(self, name)))
        if min(self.error, self.weights, self.slope, self.curvature) <= 0 or self.size < 0:
            raise UsageError("the numbers of a lower bound are positive")

    @property
    def text(self) -> str:
        b, m1, m2 = (number_text(x) for x in (self.weights, self.slope, self.curvature))
        return (
            f"∀ η⁴ ≤ {number_text(self.error)} ∀ networks of at most {self.size} parameters within ±{b}, |σ′| ≤ {m1}, "
            f"|σ″| ≤ {m2} ∃ x ∈ [-1, 1]: |network(x) − 1/(x² + η²)| > {number_text(self.error)}"
        )

    def fields(self) -> dict[str, Json]:
        numbers = {name: str(getattr(self, name)) for name in ("error", "weights", "slope", "curvature")}
        return {**numbers, "size": self.size}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> SizeNeeded:
        numbers = [Fraction(str(data[name])) for name in ("error", "weights", "slope", "curvature")]
        return cls(numbers[0], int(data["size"]), *numbers[1:])

    def replay(self, counterexample: Json) -> Replay:
        """There is no form for a counterexample: it would be a network with a proof of its error."""
        return Replay(False, ("no counterexample is known for lower bounds of sizes",))


#: h⁻²·(R(h) − 2R(0) + R(−h)) = −h⁻⁴ for R(x) = 1/(x² + h²).
SECOND_DIFFERENCE = (
    "(1/(h**2 + h**2) - 2/(0**2 + h**2) + 1/((-h)**2 + h**2))/h**2",
    "-1/h**4",
)
#: With s = √ε ≤ ½ and v = h² ≤ s: 2ε − 8ε²h² − h⁴ ≥ 0, which is h⁻⁴ − 4ε/h² ≥ 1/(2ε) times 2εh⁴.
CURVATURE_LEFT = ("2*s**2 - 8*s**4*v - v**2", ("s", "v", "1 - 2*s", "s - v"))
