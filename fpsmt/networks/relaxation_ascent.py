"""Mixtures of rows of outputs, bounded as one row, whose shares and lines climb to a bound that is high.

For rows c of outputs with limits d, shares λ ≥ 0, and signs σ of units with shares β ≥ 0 (σz ≤ 0 in every execution
that is spoken of, see `fpsmt.networks.relaxation`), Σ λ(c·y − d) ≥ Σ λ(c·y − d) + Σ βσz ≥ a·x + k.  One backward
substitution of the whole sum loses less than a sum of substitutions: coefficients of opposite signs cancel before a
line is chosen.  Any λ, β ≥ 0 and any slopes in [0, 1] of lower lines of relus are right; they are moved along the
gradient of the least value on the box, which is what the linear functions that stand for the units are at the corner x*
where a·x is least.  How well that is done does not matter for the truth of the bound.

**Arithmetic.**  w = Σ λc in float64 errs by ν·Σ λ|c|, hence w·y by at most ν·Σ λ|c|·Y with |y| ≤ Y; Σ λd errs by
ν·Σ λ|d|.  Both are subtracted, twice, for their own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpsmt.networks.backward import product
from fpsmt.networks.relaxation import TINY, Relaxation, State, nu
from fpsmt.networks.relaxation_shares import least_values

Array = NDArray[np.float64]

LEAST = 1e-3  #: share from which a row's may grow
SPEED = 0.5  #: by which a slope moves at first
GROWTH = 2.0  #: logarithm of the factor by which a share grows at first


class Effort(NamedTuple):
    """How long a mixture climbs: `rounds` at most, and only where `patience` times what the last rounds gained would
    be enough."""

    rounds: int
    patience: float


@dataclass
class Climbed:
    """For each box what the best mixture is never below on it (−∞: nothing is known), and its coefficients of what the
    units' activations make."""

    reached: Array
    through: Array


def climb(
    relaxation: Relaxation, state: State, weights: Array, limits: Array, shares: Array, signs: NDArray[np.int64],
    effort: Effort,
) -> Climbed:  # fmt: skip
    """From shares (boxes, rows + signs; ≥ 0), for boxes with signs (boxes, any number).  A box is left as soon as the
    least value is above 0."""
    count, boxes = len(limits), len(shares)
    found = Climbed(np.full(boxes, -np.inf), np.zeros((boxes, relaxation.units)))
    loose = relaxation.relus & (state.top > 0.0)  # any slope of [0, 1] is right
    turned = np.ascontiguousarray(weights.T)
    side, beta = np.zeros((2, boxes, relaxation.units))
    told, where = np.nonzero(signs >= 0)
    units = signs[told, where] // 2
    side[told, units] = np.where(signs[told, where] % 2 == 1, -1.0, 1.0)
    size = shares[:, :count].sum(axis=1, keepdims=True)
    shares = np.where(size > 0, shares / np.where(size > 0, size, 1.0), 0.0)
    beta[told, units] = shares[told, count + where]
    shares, lower, at, gain = shares[:, :count] + LEAST, state.lower, np.arange(boxes), np.zeros(boxes)
    for number in range(effort.rounds):
        shares = shares / shares.sum(axis=1, keepdims=True)
        through = np.zeros_like(beta)
        a, reached = _mixed(relaxation, replace(state, lower=lower), weights, limits, shares, side * beta, through)
        before = found.reached[at]
        better = reached > before
        found.reached[at[better]], found.through[at[better]] = reached[better], through[better]
        known = np.isfinite(reached)  # then it was so before, too
        if number:
            gain = np.maximum(np.where(known, reached, 0.0) - np.where(known, before, 0.0), gain / 2)
        hope = found.reached[at] + effort.patience * gain if number > 1 else np.ones(len(at))
        left = np.flatnonzero(known & (found.reached[at] <= 0) & (hope > 0))
        if number + 1 == effort.rounds or not len(left):
            break
        at, state, loose, side, gain = at[left], state.part(left), loose[left], side[left], gain[left]
        shares, lower, beta, through = shares[left], lower[left], beta[left], through[left]
        x = state.centre - np.sign(a[left]) * state.radius
        z, y = _linear(relaxation, replace(state, lower=lower), through, x)
        pace = 1.0 / (1.0 + 0.3 * number)
        rise = np.where(loose & (through > 0), through * z, 0.0)
        lower = np.where(loose, np.clip(lower + SPEED * pace * _even(rise), 0.0, 1.0), lower)
        scale = np.abs(through) + np.abs(through).mean(axis=1, keepdims=True)
        beta = np.maximum(beta + SPEED * pace * scale * _even(side * z), 0.0)
        more = product(y, turned) - limits
        shares = shares * np.exp(GROWTH * pace * more / np.abs(more).max(axis=1, keepdims=True, initial=TINY))
    return found


def _even(slope: Array) -> Array:
    """A gradient whose larger parts are made alike."""
    return np.asarray(slope / (np.abs(slope) + 0.1 * np.abs(slope).max(axis=1, keepdims=True, initial=0.0) + TINY))


def _mixed(
    relaxation: Relaxation, state: State, weights: Array, limits: Array, shares: Array, added: Array, through: Array
) -> tuple[Array, Array]:
    """a, and the least value of a·x + k on each box."""
    last, room = len(relaxation.steps) - 1, 4 * nu(len(limits))
    a, k = relaxation.below(state, last, product(shares, weights), np.arange(len(shares)), through, added)
    slack = (product(shares, np.abs(weights)) * state.outputs).sum(axis=1) + (shares * np.abs(limits)).sum(axis=1)
    k = np.nextafter(np.nextafter(k - (shares * limits).sum(axis=1), -np.inf) - room * slack, -np.inf)
    return a, least_values(state, a[:, None], k[:, None], np.ones((len(a), 1, 1)))[:, 0]


def _linear(relaxation: Relaxation, state: State, through: Array, x: Array) -> tuple[Array, Array]:
    """The values of all units before their activations, and the outputs, of the linear functions that stand for them
    where these are their coefficients."""
    z, h = np.zeros_like(through), x
    for k, step in enumerate(relaxation.steps):
        of = relaxation.of(k)
        turned = relaxation.turned[k]
        z[:, of] = h = (h if turned is None else product(h, turned)) + step.b
        if step.curve is not None:
            down = state.lower[:, of] * h + state.bottom[:, of]
            h = np.where(through[:, of] >= 0, down, state.upper[:, of] * h + state.top[:, of])
    return z, h
