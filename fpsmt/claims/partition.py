"""The partition of a finite domain by affine maps: who is still not told apart.

One map labels every input with its output at once, so a few hundred maps settle all pairs of a 16-bit format.
Only classes of two or more inputs stay active; what has become alone stays alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.distinguishability import Reading, Setting
from fpsmt.claims.places import MAX_BITS, allowed_by_index, listed, offset
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float
from fpsmt.floats.vector import arithmetic, encode, from_ordinals
from fpsmt.functions import Implementation

Carriers = NDArray[np.float64]


@lru_cache(maxsize=64)
def labels(implementation: Implementation, ctx: Context) -> NDArray[np.int64]:
    """A label < 2^17 for the result at each code, one for results that are equal as numbers; `Unsupported` where a
    choice is left."""
    low, high = allowed_by_index(implementation, ctx)
    if (low != high).any():
        raise Unsupported(f"{implementation.text} leaves a choice of results: one map gives no classes of inputs")
    by_index = np.unique(low, return_inverse=True)[1].astype(np.int64)
    fmt = ctx.format
    codes = np.arange(1 << fmt.bits, dtype=np.int64)
    magnitude = codes & (fmt.sign_mask - 1)
    place = np.where(codes & fmt.sign_mask, -magnitude, magnitude)
    index = np.where(magnitude <= offset(fmt), place + offset(fmt), len(low) - 1)
    if fmt.nan == "negative-zero":
        index[fmt.sign_mask] = len(low) - 1
    return np.asarray(by_index[index], np.int64)


def outputs(setting: Setting, w: Any, b: Any, x: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """σ(w⊗x⊕b) as a number's label, and where w⊗x and w⊗x⊕b are finite; broadcasts."""
    ctx = setting.context
    vector = arithmetic(ctx)
    product = vector.mul(w, x)
    moved = vector.add(product, b)
    label = labels(setting.implementation, ctx)[encode(ctx.format, moved)]
    return label, np.isfinite(product) & np.isfinite(moved)


@dataclass
class Partition:
    """Inputs of a setting's domain with |x| ≤ `bound`, split by maps as they come.

    `active` are the inputs not yet told apart from every other one, `label` their classes.
    """

    setting: Setting
    active: Carriers
    label: NDArray[np.int64]
    maps: list[tuple[Float, Float]] = field(default_factory=list)

    @classmethod
    def of(cls, setting: Setting, bound: float = np.inf) -> Partition:
        """All inputs together in one class; the formats must have at most 16 bits to be listed."""
        fmt = setting.context.format
        if not listed(fmt):
            raise UsageError(f"the {1 << fmt.bits} values of {fmt} cannot be listed: the limit is {MAX_BITS} bits")
        xs = from_ordinals(fmt, np.arange(setting.low.ordinal, setting.high.ordinal + 1))
        xs = xs[np.abs(xs) <= bound]
        return cls(setting, xs, np.zeros(len(xs), np.int64))

    def refine(self, w: Float, b: Float) -> int:
        """Splits by one map; returns how many inputs became alone.

        The map must be admissible: finite on the whole domain, or just with finite parameters, by the reading; under
        `finite-on-pair` it splits the classes on which it is finite, of which there must be one.
        """
        if not len(self.active):
            return 0
        codes, finite = outputs(self.setting, np.float64(float(w)), np.float64(float(b)), self.active)
        if not (w.is_finite and b.is_finite):
            raise UsageError(f"w = {w}, b = {b}: the parameters of a map are finite")
        setting = self.setting
        if setting.reading is Reading.FINITE_ON_DOMAIN and not setting.admissible(w, b, setting.low, setting.high):
            raise UsageError(f"the map w = {w}, b = {b} is not finite on the domain")
        if setting.reading is Reading.FINITE_ON_PAIR and not finite.all():
            usable = np.ones(int(self.label.max()) + 1, bool)
            usable[self.label[~finite]] = False
            if not usable.any():
                raise UsageError(f"the map w = {w}, b = {b} is not finite on the inputs still together")
            codes = np.where(usable[self.label], codes, 0)
        key = self.label * (1 << (MAX_BITS + 1)) + codes
        _, label, counts = np.unique(key, return_inverse=True, return_counts=True)
        together = counts[label] > 1
        alone = int(len(label) - together.sum())
        self.active = self.active[together]
        self.label = np.unique(label[together], return_inverse=True)[1].astype(np.int64)
        self.maps.append((w, b))
        return alone

    @property
    def classes(self) -> list[Carriers]:
        """The classes of two or more inputs."""
        order = np.argsort(self.label, kind="stable")
        cuts = np.flatnonzero(np.diff(self.label[order])) + 1
        return [part for part in np.split(self.active[order], cuts) if len(part)]

    def first(self) -> tuple[float, float] | None:
        """Two inputs that are still together, or None."""
        if not len(self.active):
            return None
        members = self.active[self.label == self.label[0]]
        return float(members[0]), float(members[1])

    def some_pairs(self, rng: np.random.Generator, most: int = 256) -> Carriers:
        """Pairs that are still together, of shape (2, pairs): a sample."""
        order = np.argsort(self.label, kind="stable")
        at = np.flatnonzero(self.label[order][1:] == self.label[order][:-1])
        at = rng.permutation(at)[:most]
        return np.stack([self.active[order[at]], self.active[order[at + 1]]])


MOST_TOGETHER = 4096  #: inputs of one class whose pairs are looked at one by one


class Pairs:
    """The pairs still together in a partition, for maps that may be used for some pairs of a class only."""

    def __init__(self, partition: Partition) -> None:
        self.setting = partition.setting
        if any(len(members) > MOST_TOGETHER for members in partition.classes):
            raise Unsupported(f"more than {MOST_TOGETHER} inputs stay together: their pairs are too many")
        self.classes = [(x, ~np.eye(len(x), dtype=bool)) for x in partition.classes]

    def use(self, w: Float, b: Float) -> None:
        """Separates the pairs for which this map is admissible and gives two outputs."""
        setting = self.setting
        if setting.reading is Reading.FINITE_ON_DOMAIN and not setting.admissible(w, b, setting.low, setting.high):
            raise UsageError(f"the map w = {w}, b = {b} is not finite on the domain")
        for x, together in self.classes:
            label, finite = outputs(setting, np.float64(float(w)), np.float64(float(b)), x)
            good = finite if setting.reading is Reading.FINITE_ON_PAIR else np.ones(len(x), bool)
            together &= ~((label[:, None] != label) & good[:, None] & good)

    def first(self) -> tuple[float, float] | None:
        """A pair that is left, or None."""
        for x, together in self.classes:
            if together.any():
                i, j = np.unravel_index(int(np.argmax(together)), together.shape)
                return float(x[i]), float(x[j])
        return None
