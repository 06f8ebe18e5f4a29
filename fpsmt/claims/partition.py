"""The partition of a finite domain by affine maps: who is still not told apart.

One map labels every input with its output at once, so a few hundred maps settle all pairs of a 16-bit format.
Only classes of two or more inputs stay active; what has become alone stays alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.distinguishability import Reading, Setting
from fpsmt.errors import UsageError
from fpsmt.floats import Float
from fpsmt.floats.vector import arithmetic, encode, from_ordinals
from fpsmt.functions import table

Carriers = NDArray[np.float64]
MAX_BITS = 16


def outputs(setting: Setting, w: Any, b: Any, x: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """σ(w⊗x⊕b) as a number's label (one for both zeros), and where w⊗x and w⊗x⊕b are finite; broadcasts."""
    ctx = setting.context
    vector = arithmetic(ctx)
    product = vector.mul(w, x)
    moved = vector.add(product, b)
    out = table(setting.function, ctx, ctx.format)[encode(ctx.format, moved)]
    label = encode(ctx.format, out + 0.0).astype(np.int64)  # + 0.0 turns −0 into +0
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
        if fmt.bits > MAX_BITS:
            raise UsageError(f"the {1 << fmt.bits} values of {fmt} cannot be listed: the limit is {MAX_BITS} bits")
        xs = from_ordinals(fmt, np.arange(setting.low.ordinal, setting.high.ordinal + 1))
        xs = xs[np.abs(xs) <= bound]
        return cls(setting, xs, np.zeros(len(xs), np.int64))

    def refine(self, w: Float, b: Float) -> int:
        """Splits by one map; returns how many inputs became alone.

        The map must be admissible for every pair still together: finite on the whole domain, or on all active
        inputs, or just with finite parameters, by the reading.
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
            raise UsageError(f"the map w = {w}, b = {b} is not finite on the inputs still together")
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
