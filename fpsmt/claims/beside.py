"""Two coordinates in formats of at most 16 bits: beside which numbers the smallest inputs stay together.

φ(x) = (w₁⊗x₁ ⊕ w₂⊗x₂) ⊕ b on [−H, H]², maps finite on it.  What one dimension does not tell apart, some of the numbers
of size at most kω, two may tell apart beside another coordinate c: w₁⊗a moves z = w₂⊗c, and a bias takes both sums to
either side of a place η where σ jumps.  Between z⊕w₁⊗a and z⊕w₁⊗a′ is a range of gaps (`fpsmt.claims.line`); where no
bias tells any of them, or none that is admissible, no map with these weights does.  Whether a bias that tells a gap
tells the pair is seen by executing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.distinguishability import Reading, Setting, setting_from_json
from fpsmt.claims.line import absorbs, farthest, numbers, place, tell_gaps, told_before
from fpsmt.claims.partition import labels
from fpsmt.claims.places import MAX_BITS, listed
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, exactly, from_ordinal
from fpsmt.floats import compiled as kernel
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import arithmetic, encode

TOGETHER, APART, OPEN = 0, 1, 2


@claim_kind
@dataclass(frozen=True)
class TogetherBeside(Claim):
    """On [−H, H]² no map tells (a, c) from (a′, c), for any a, a′ of size at most near·ω, for `count` of the c ≥ 0.

    Those are c ≤ least·ω, not (least + 1)·ω, and count − least − 1 larger ones.  Beside every other c maps tell all of
    them apart.  The same holds for −c, and with the coordinates exchanged.
    """

    kind = "together-beside"
    setting: Setting
    near: int
    least: int
    count: int

    def __post_init__(self) -> None:
        of = self.setting
        if of.reading is not Reading.FINITE_ON_DOMAIN or not of.single or of.low.fraction != -of.high.fraction:
            raise UsageError("maps finite on a box [−H, H]² and activations without a choice of results are needed")
        if not (1 <= self.near <= of.high.ordinal and -1 <= self.least < self.count <= of.high.ordinal + 1):
            raise UsageError(f"near = {self.near}, least = {self.least}, count = {self.count} are no numbers of inputs")

    @property
    def text(self) -> str:
        name = self.setting.name
        return (
            f"∀ |a|, |a′| ≤ {self.near}ω ∀ w₁, w₂, b: {name}(w₁⊗a ⊕ w₂⊗c ⊕ b) = {name}(w₁⊗a′ ⊕ w₂⊗c ⊕ b), for exactly "
            f"{self.count} of the c ≥ 0, of which c ≤ {self.least}ω are the first; for all other c maps tell every "
            f"a ≠ a′ apart ({self.setting})"
        )

    def fields(self) -> dict[str, Json]:
        return {"setting": self.setting.to_json(), "near": self.near, "least": self.least, "count": self.count}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> TogetherBeside:
        return cls(setting_from_json(data["setting"]), int(data["near"]), int(data["least"]), int(data["count"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {}: runs through all maps again."""
        found = beside(self.setting, self.near)
        least, count = found.least, len(found.together)
        lines = (f"together beside {count} numbers, the first {least + 1} among them", f"undecided: {found.undecided}")
        return Replay(found.undecided == 0 and (least, count) != (self.least, self.count), lines)


@dataclass(frozen=True)
class Beside:
    """The c ≥ 0 beside which all small inputs stay together, as ordinals in order; `least`: those up to it all do.

    `undecided`: the c beside which some of them do, or it was not settled.  maps[i] tells (a, c) from (a′, c) for the
    i-th pair of `told`, rows (ordinal of c, of a, of a′): w₁, w₂, b.
    """

    together: NDArray[np.int64]
    least: int
    undecided: int
    told: NDArray[np.int64]
    maps: NDArray[np.float64]


@lru_cache(maxsize=2)
def beside(setting: Setting, near: int) -> Beside:
    """All maps at (a, c) and (a′, c), for all a, a′ of size at most near·ω and all c of the domain.

    Pairs (−a′, −a) are (a, a′) with −w₁ for w₁, and −c is c with −w₂: a + a′ ≥ 0 and c ≥ 0 are enough.
    """
    ctx, fmt = setting.context, setting.context.format
    if not listed(fmt):
        raise Unsupported(f"the values of {fmt} are too many to list as float64 numbers: the limit is {MAX_BITS} bits")
    if not ctx.mode.nearest:
        raise Unsupported(f"{ctx} is not symmetric: rounding to nearest is needed")
    line, k = numbers(setting), kernel.parameters(ctx)
    label = labels(setting.implementation, ctx)[encode(fmt, line)]
    above, below = np.zeros(len(line), np.int64), np.zeros(len(line), np.int64)
    jumps = line[1:][np.diff(label) != 0]
    tell_gaps(line, jumps, k, fmt.emin, fmt.fraction_bits, absorbs(ctx), above, below)
    vector, high = arithmetic(ctx), float(setting.high)
    weights = line[np.isfinite(vector.mul(line, high))]
    weights = weights[np.argsort(np.abs(weights), kind="stable")]
    c = line[(line >= 0) & (line <= high)]
    pairs = [(a, d) for a in range(-near, near + 1) for d in range(a + 1, near + 1) if a + d >= 0]
    state, maps = np.zeros((len(pairs), len(c)), np.int64), np.zeros((len(pairs), len(c), 3))
    for row, (a, d) in enumerate(pairs):
        ends = np.array([[float(from_ordinal(fmt, a))], [float(from_ordinal(fmt, d))]])
        products = vector.mul(weights, ends) + 0.0
        first = np.sort(np.unique(products, axis=1, return_index=True)[1])  # the first of equal ones has the least |w|
        first = first[products[0, first] != products[1, first]]
        _search(line, label, c, weights[first], products[:, first], weights[::-1].copy(), high, above, below, k,
                fmt.emin, fmt.fraction_bits, state[row], maps[row])  # fmt: skip
    whole, apart = (state == TOGETHER).all(axis=0), (state == APART).all(axis=0)
    least = int(np.argmin(whole)) - 1 if not whole.all() else len(c) - 1
    told = np.argwhere(state == APART)
    rows = np.array([(i, *pairs[row]) for row, i in told], np.int64).reshape(-1, 3)
    return Beside(np.flatnonzero(whole), least, int((~whole & ~apart).sum()), rows, maps[state == APART])


def telling_map(setting: Setting, found: Beside, i: int) -> tuple[Float, Float, Float]:
    """(w₁, w₂, b) of the i-th pair that is told apart."""
    w1, w2, b = (exactly(setting.context.format, float(v)) for v in found.maps[i])
    return w1, w2, b


@jit
def _search(
    line: Any, label: Any, c: Any, w1: Any, products: Any, w2: Any, high: float, above: Any, below: Any, k: Any,
    emin: int, bits: int, state: Any, maps: Any,
) -> None:  # fmt: skip
    """The state of each c, with a map where some tells the pair apart; products[:, q]: w₁[q]⊗a and w₁[q]⊗a′.

    w₁ goes up in size, w₂ down.  For each w₂ the steepest admissible w₁ have the widest range of sums.
    """
    zero = line.size // 2
    told = told_before(above, below)
    usable = np.zeros(w2.size, np.int64)  # how many of the w₁ are admissible, with b = 0
    for j in range(w2.size):
        usable[j] = usable[j - 1] if j else 0
        while usable[j] < w1.size and np.isfinite(_corner(w1[usable[j]], w2[j], high, k)):
            usable[j] += 1
    least, most = np.zeros(w1.size + 1), np.zeros(w1.size + 1)  # of the first products
    for q in range(w1.size):
        least[q + 1] = min(least[q], products[0, q], products[1, q])
        most[q + 1] = max(most[q], products[0, q], products[1, q])
    for i in range(c.size):
        for j in range(w2.size):
            z = kernel.mul(w2[j], c[i], k)
            widest = (
                place(kernel.add(z, least[usable[j]], k), emin, bits, zero),
                place(kernel.add(z, most[usable[j]], k), emin, bits, zero),
            )
            if told[widest[0]] == told[widest[1]]:
                continue
            for q in range(usable[j] - 1, -1, -1):
                s, t = kernel.add(z, products[0, q], k), kernel.add(z, products[1, q], k)
                at, to = place(s, emin, bits, zero), place(t, emin, bits, zero)
                at, to = min(at, to), max(at, to)
                if told[at] == told[to]:
                    continue
                corner = _corner(w1[q], w2[j], high, k)
                top, bottom = farthest(line, corner, zero, 1, k), farthest(line, -corner, zero, -1, k)
                for gap in range(at, to):
                    for b in (above[gap], below[gap]):
                        if not bottom <= b <= top:
                            continue
                        state[i] = OPEN
                        moved = place(kernel.add(s, line[b], k), emin, bits, zero)
                        other = place(kernel.add(t, line[b], k), emin, bits, zero)
                        if label[moved] != label[other]:
                            state[i] = APART
                            maps[i, 0], maps[i, 1], maps[i, 2] = w1[q], w2[j], line[b]
                            break
                    if state[i] == APART:
                        break
                if state[i] == APART:
                    break
            if state[i] == APART:
                break


@jit
def _corner(w1: float, w2: float, high: float, k: Any) -> float:
    """The largest w₁⊗x₁ ⊕ w₂⊗x₂ on the box; the least is its negative."""
    return float(kernel.add(kernel.mul(abs(w1), high, k), kernel.mul(abs(w2), high, k), k))
