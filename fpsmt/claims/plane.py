"""Two coordinates, formats of at most 8 bits: exactly which vectors no affine map tells apart.

φ(x) = (w₁⊗x₁ ⊕ w₂⊗x₂) ⊕ b on [low, high]²; ⊕ commutes, so that two products have one order.  Under the readings
`finite-on-domain` and `any` whether a map counts does not depend on the vectors compared, so being together is an
equivalence.  Rounding is monotone: a map is finite on the whole box exactly when it is at the ends of the products and
of their sum.

What is indistinguishable in one dimension need not stay so.  With a second coordinate w₂⊗x₂ = z that is not 0, w₁⊗x₁
may move z by a whole ulp of z, which is more than it moves b alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.distinguishability import Reading, Setting, setting_from_json
from fpsmt.claims.functions import read_value
from fpsmt.claims.partition import labels
from fpsmt.errors import UsageError
from fpsmt.floats import Float
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import arithmetic, decode, encode, values

MOST_BITS = 8
Vector = tuple[Float, Float]
Codes = NDArray[np.int64]


@claim_kind
@dataclass(frozen=True)
class VectorClasses(Claim):
    """Two different vectors of [low, high]² are told apart by no admissible map exactly when a class holds both."""

    kind = "vector-classes"
    setting: Setting
    classes: tuple[tuple[Vector, ...], ...]

    def __post_init__(self) -> None:
        if self.setting.reading is Reading.FINITE_ON_PAIR or not self.setting.single:
            raise UsageError("being told apart by no map is no equivalence here: there are no classes")
        listed = [(x.ordinal, y.ordinal) for members in self.classes for x, y in members]
        if len(set(listed)) != len(listed) or any(len(members) < 2 for members in self.classes):
            raise UsageError("classes are disjoint and have two vectors or more")
        low, high = self.setting.low.ordinal, self.setting.high.ordinal
        if any(not low <= k <= high for pair in listed for k in pair):
            raise UsageError("a vector is not in the box")

    @property
    def text(self) -> str:
        name = self.setting.name
        inside = " ∪ ".join("{" + ", ".join(f"({x}, {y})" for x, y in c[:9]) + "}" for c in self.classes[:3]) or "∅"
        more = f" … ({len(self.classes)} classes)" if len(self.classes) > 3 else ""
        return (
            f"∀ x ≠ x′ ∈ [low, high]²: (∀ w, b: {name}(w₁⊗x₁⊕w₂⊗x₂⊕b) is equal at x and x′) ⇔ x, x′ are in one of "
            f"{inside}{more} ({self.setting})"
        )

    def fields(self) -> dict[str, Json]:
        return {
            "setting": self.setting.to_json(),
            "classes": [[[x.hex, y.hex] for x, y in members] for members in self.classes],
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> VectorClasses:
        setting = setting_from_json(data["setting"])
        fmt = setting.context.format
        classes = tuple(
            tuple((read_value(fmt, x), read_value(fmt, y)) for x, y in members) for members in data["classes"]
        )
        return cls(setting, classes)

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {}: computes the classes."""
        found = Plane.of(self.setting).classes()
        given = {frozenset((x.ordinal, y.ordinal) for x, y in members) for members in self.classes}
        right = {frozenset((x.ordinal, y.ordinal) for x, y in members) for members in found}
        return Replay(given != right, (f"{len(right)} classes of two vectors or more",))


@dataclass(frozen=True)
class Plane:
    """Every admissible map as tables of codes.

    inputs: codes of the interval; products[w, i] of w⊗xᵢ for finite w; sums[p, q]; told[k, t]: the class of the code t
    under the k-th set of biases, equal where σ(t⊕b) is one number for all of them; biases[w₁, w₂] = k, or −1 where no
    bias is admissible.
    """

    setting: Setting
    inputs: Codes
    products: Codes
    sums: Codes
    told: Codes
    biases: Codes

    @classmethod
    def of(cls, setting: Setting) -> Plane:
        ctx, fmt = setting.context, setting.context.format
        if fmt.bits > MOST_BITS:
            raise UsageError(f"the maps of {fmt} in two dimensions are too many: the limit is {MOST_BITS} bits")
        vector = arithmetic(ctx)
        every = decode(fmt, np.arange(1 << fmt.bits, dtype=np.uint64))
        weights = np.unique(values(fmt, finite=True) + 0.0)
        x = weights[(weights >= float(setting.low)) & (weights <= float(setting.high))]
        products = vector.mul(weights[:, None], x[None, :])
        sums = vector.add(every[:, None], every[None, :])
        label = labels(setting.implementation, ctx)
        moved = vector.add(every[:, None], weights[None, :])
        results, finite = label[encode(fmt, moved)], np.isfinite(every)[:, None] & np.isfinite(moved)  # (sum, bias)
        codes = [encode(fmt, a).astype(np.int64) for a in (x, products, sums)]
        whole = setting.reading is Reading.FINITE_ON_DOMAIN
        usable = np.flatnonzero(np.isfinite(products).all(axis=1) if whole else np.ones(len(weights), bool))
        least, most = (
            codes[1][np.arange(len(weights)), pick(products, axis=1)] for pick in (np.argmin, np.argmax)
        )
        known: dict[bytes, int] = {}
        by_ends: dict[tuple[int, int], int] = {}
        told: list[Codes] = []
        biases = np.full((len(weights), len(weights)), -1, np.int64)
        for i in usable:
            for j in usable:
                ends = (int(codes[2][least[i], least[j]]), int(codes[2][most[i], most[j]])) if whole else (0, 0)
                if ends not in by_ends:
                    good = finite[ends[0]] & finite[ends[1]] if whole else np.ones(len(weights), bool)
                    key = good.tobytes()
                    if good.any() and key not in known:
                        known[key] = len(told)
                        told.append(np.unique(results[:, good], axis=0, return_inverse=True)[1].reshape(-1))
                    by_ends[ends] = known.get(key, -1)
                biases[i, j] = by_ends[ends]
        return cls(setting, codes[0], codes[1], codes[2], np.array(told, np.int64).reshape(len(told), -1), biases)

    def digests(self) -> NDArray[np.uint64]:
        """A number for each vector; where two differ, some map tells the vectors apart."""
        n = len(self.inputs)
        found = np.zeros(n * n, np.uint64)
        _digest(self.products, self.sums, self.told, self.biases, found)
        return found

    def together(self, first: Codes, second: Codes) -> bool:
        """No map tells the vector with places first[k] from that with places second[k], for every k."""
        return bool(_together(self.products, self.sums, self.told, self.biases, first, second))

    def classes(self) -> list[list[Vector]]:
        """Classes of two vectors or more, by digests; they are certain once `together` confirms them."""
        digests, n = self.digests(), len(self.inputs)
        order = np.argsort(digests, kind="stable")
        cuts = np.flatnonzero(np.diff(digests[order])) + 1
        fmt = self.setting.context.format
        x = [Float(fmt, int(code)) for code in self.inputs]
        groups = [group for group in np.split(order, cuts) if len(group) > 1]
        return [[(x[k // n], x[k % n]) for k in map(int, group)] for group in groups]


@jit
def _digest(products: Any, sums: Any, told: Any, biases: Any, found: Any) -> None:
    n = products.shape[1]
    for g in range(biases.shape[0]):
        for h in range(biases.shape[1]):
            k = biases[g, h]
            if k < 0:
                continue
            for i in range(n):
                p = products[g, i]
                for j in range(n):
                    seen = (found[i * n + j] ^ np.uint64(told[k, sums[p, products[h, j]]])) * np.uint64(
                        0x9E3779B97F4A7C15
                    )
                    found[i * n + j] = seen ^ (seen >> np.uint64(29))


@jit
def _together(products: Any, sums: Any, told: Any, biases: Any, first: Any, second: Any) -> bool:
    for g in range(biases.shape[0]):
        for h in range(biases.shape[1]):
            k = biases[g, h]
            if k < 0:
                continue
            for v in range(first.shape[0]):
                a = told[k, sums[products[g, first[v, 0]], products[h, first[v, 1]]]]
                b = told[k, sums[products[g, second[v, 0]], products[h, second[v, 1]]]]
                if a != b:
                    return False
    return True
