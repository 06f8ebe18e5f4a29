"""Claims about whole networks over the reals: activations are replaced by rational networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.claims.approximation import domain_from_json, domain_to_json
from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.errors import UsageError
from fpsmt.rational import Formula, Interval, number_text
from fpsmt.rational.analytic import analytic
from fpsmt.rational.layers import Layer, check_layers


@claim_kind
@dataclass(frozen=True)
class NetworkWithin(Claim):
    """For every real x of the box, no output moves by more than `bound` when the activations are replaced.

    `replaced`: pairs of an activation's name and the formula in its place.  All arithmetic is that of the reals.
    """

    kind = "network-within"
    layers: tuple[Layer, ...]
    box: tuple[Interval, ...]
    replaced: tuple[tuple[str, Formula], ...]
    bound: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", Fraction(self.bound))
        object.__setattr__(self, "box", tuple((Fraction(a), Fraction(b)) for a, b in self.box))
        object.__setattr__(self, "replaced", tuple((analytic(name).name, formula) for name, formula in self.replaced))
        check_layers(self.layers, self.box)
        names = [name for name, _ in self.replaced]
        if names != sorted(set(names)) or any(a > b for a, b in self.box):
            raise UsageError("the replaced activations are sorted by name, and a box has LOW ≤ HIGH")

    @property
    def text(self) -> str:
        sizes = "–".join(str(n) for n in (len(self.box), *(len(layer.bias) for layer in self.layers)))
        what = ", ".join(f"{name} by {formula}" for name, formula in self.replaced)
        return f"∀ x ∈ box: |N(x) − Ñ(x)|∞ ≤ {number_text(self.bound)}, N of {sizes} values, Ñ with {what}"

    def fields(self) -> dict[str, Json]:
        return {
            "layers": [layer.to_json() for layer in self.layers],
            "box": domain_to_json(self.box),
            "replaced": [[name, formula.to_json()] for name, formula in self.replaced],
            "bound": str(self.bound),
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> NetworkWithin:
        layers = tuple(Layer.from_json(layer) for layer in data["layers"])
        replaced = tuple((str(name), Formula.from_json(formula)) for name, formula in data["replaced"])
        return cls(layers, domain_from_json(data["box"]), replaced, Fraction(str(data["bound"])))

    def replay(self, counterexample: Json) -> Replay:
        """Refutations are not made: a point would need both networks in balls."""
        return Replay(False, ("no counterexample is looked for",))
