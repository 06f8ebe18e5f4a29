"""Moving any two inputs onto a separation point, and what follows: claims about every activation that has one.

η is a separation point of I when I(η⁻) ∉ {I(η), I(η⁺)} (paper A, §A4).  If some affine map w⊗x ⊕ b sends one of x, x′
to η⁻ and the other to η or η⁺, then it tells x from x′, whatever I does elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, OverPair, Setting, setting_from_json
from fpsmt.claims.functions import read_value
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Mode, add, all_values, context, equal, less, less_equal, mul

MOST_BITS = 8  #: a refutation tries every map


@claim_kind
@dataclass(frozen=True)
class Steering(Claim):
    """Every two inputs of [−bound, bound] are moved onto every η with η⁻, η, η⁺ in [first, last] by finite w, b."""

    kind = "steering"
    context: Context
    bound: Float
    first: Float
    last: Float

    def __post_init__(self) -> None:
        if any(x.format != self.context.format for x in (self.bound, self.first, self.last)):
            raise UsageError(f"the bound and the ends must be values of {self.context.format}")
        if self.context.mode is not Mode.RNE:
            raise UsageError("η⁻ and η are told apart by ties to even: the rounding mode is RNE")
        positive = all(x.is_finite and not x.is_zero and not x.negative for x in (self.bound, self.first))
        if not (positive and self.last.is_finite and less(self.first, self.last)):
            raise UsageError("the bound is finite and positive, and so are first < last")

    @property
    def text(self) -> str:
        return (
            f"∀ x ≠ x′ ∈ [−{self.bound}, {self.bound}] ∀ η⁻, η, η⁺ ∈ [{self.first}, {self.last}] ∃ w, b: "
            f"{{w⊗x⊕b, w⊗x′⊕b}} is {{η⁻, η}} or {{η⁻, η⁺}} in {self.context}"
        )

    def fields(self) -> dict[str, Json]:
        ends = {name: getattr(self, name).hex for name in ("bound", "first", "last")}
        return {"context": str(self.context), **ends}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Steering:
        ctx = context(data["context"])
        return cls(ctx, *(read_value(ctx.format, data[name]) for name in ("bound", "first", "last")))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"x", "y", "eta"} in hex, in a format of at most 8 bits: tries every w and b."""
        fmt = self.context.format
        if fmt.bits > MOST_BITS:
            raise UsageError(f"the affine maps of {fmt} are too many to try: the limit is {MOST_BITS} bits")
        x, y, eta = (read_value(fmt, counterexample[name]) for name in ("x", "y", "eta"))
        below, above = eta.next_down, eta.next_up
        asked = not equal(x, y) and all(less_equal(abs(t), self.bound) for t in (x, y))
        asked &= less_equal(self.first, below) and less_equal(above, self.last)
        hit = False
        for w in all_values(fmt, finite=True):
            products = mul(self.context, w, x), mul(self.context, w, y)
            for b in all_values(fmt, finite=True):
                p, q = (add(self.context, product, b) for product in products)
                hit |= (p == below and q in (eta, above)) or (q == below and p in (eta, above))
        found = "some map moves" if hit else "no map moves"
        return Replay(asked and not hit, (f"{found} {x} and {y} onto {eta}",), {"x": x.hex, "y": y.hex})


@claim_kind
@dataclass(frozen=True)
class AllDistinguishable(Claim):
    """Several activations tell every two inputs of their domains apart."""

    kind = "all-distinguishable"
    settings: tuple[Setting, ...]

    def __post_init__(self) -> None:
        if not self.settings:
            raise UsageError("there is no activation to speak about")

    @property
    def parts(self) -> list[Distinguishable]:
        return [Distinguishable(setting) for setting in self.settings]

    @property
    def text(self) -> str:
        first = self.settings[0]
        names = ", ".join(setting.name for setting in self.settings)
        implementations = "" if all(setting.single for setting in self.settings) else "∀ I "
        return (
            f"∀ σ ∈ {{{names}}} {implementations}∀ x ≠ x′ ∃ w, b: σ(w⊗x⊕b) ≠ σ(w⊗x′⊕b) on [{first.low}, {first.high}] "
            f"in {first.context}, maps {first.reading.value}"
        )

    def fields(self) -> dict[str, Json]:
        return {"settings": [setting.to_json() for setting in self.settings]}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> AllDistinguishable:
        return cls(tuple(setting_from_json(setting) for setting in data["settings"]))

    def _part(self, counterexample: Json) -> Distinguishable:
        return self.parts[int(counterexample["setting"])]

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """What refuting the part needs."""
        return self._part(counterexample).refutation_needs(counterexample)

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: that of a part, with {"setting": its place}."""
        return self._part(counterexample).replay(counterexample)


@claim_kind
@dataclass(frozen=True)
class SameOutput(OverPair):
    """Every network over the activation gives one output at x and at y, whatever its depth, widths and parameters.

    Networks: one input; every neuron of the first layer is I(w⊗x ⊕ b) with an admissible map; later layers are any
    affine layers in any reduction order, with or without fma, and activations.  Outputs are compared as numbers.
    """

    kind = "same-output"

    @property
    def text(self) -> str:
        some = "" if self.setting.single else "∃ I "
        return f"{some}∀ networks N: N(x) = N(x′) for x = {self.x}, x′ = {self.y} ({self.setting})"

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: that of `Inseparable`: networks of one neuron that tell x from y, whatever I is."""
        return Inseparable(self.setting, self.x, self.y).replay(counterexample)
