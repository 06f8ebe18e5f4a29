"""Rules about outputs and predictions: bounds over every execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.predictions import OutputsClose, PredictionInvariant
from fpsmt.errors import EvidenceError, Unsupported
from fpsmt.floats.vector import to_carrier
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.networks.bounds import Interval, enclosures
from fpsmt.networks.interpreter import Executions
from fpsmt.networks.margins import margins
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation


@dataclass(frozen=True)
class Settled:
    """What bounds say about the predictions for a batch of inputs.

    `winners`: the class of an input in every execution, or −1.  `rivals` (batch, classes): which classes are not
    excluded (besides the likely one).  `bounds`: of every node's values.
    """

    winners: NDArray[np.intp]
    rivals: NDArray[np.bool_]
    bounds: dict[str, Interval]


@rule("bounds on every execution")
def bounds_on_every_execution(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Encloses the outputs over all allowed executions; one of them lies above all others whatever the execution.

    `fpsmt.networks.bounds` proves that every execution's outputs are finite numbers in the enclosures [lⱼ, hⱼ], and
    `fpsmt.networks.margins` that output i is at least dⱼ above output j in each.  When hⱼ < lᵢ or dⱼ > 0 for all j < i,
    and hⱼ ≤ lᵢ or dⱼ ≥ 0 for all j > i, then in every execution output i is above those before it and at least those
    after it: i is the first index of the greatest output.
    """
    if not isinstance(claim, PredictionInvariant):
        raise EvidenceError(f"bounds on outputs do not speak about predictions of {claim.kind}")
    try:
        winners = all_winners(claim)
    except Unsupported as reason:
        return Open(str(reason))
    left = np.flatnonzero(winners < 0)
    if left.size:
        what = f"input {left[0]}" if left.size == 1 else f"{left.size} of {len(winners)} inputs"
        return Open(f"the bounds of the outputs of {what} leave more than one class", "search for two executions")
    return Holds({"inputs": len(winners), "predictions": winners.tolist()}, _trusted(claim))


@rule("bounds within ulps")
def bounds_within_ulps(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Encloses the outputs over all allowed executions, each in an interval no wider than the claim allows.

    If all results of an output are finite and in [l, h], two of them, y and y′, differ by at most h − l, and
    max(ulp(y), ulp(y′)) is at least the least ulp(z) of z in [l, h]: that of l when l > 0, of h when h < 0, else the
    smallest positive value.  h − l, an exact difference of floats, is compared as a rational.
    """
    if not isinstance(claim, OutputsClose):
        raise EvidenceError(f"bounds on outputs do not speak about the distance of outputs of {claim.kind}")
    try:
        close = close_outputs(claim)
    except Unsupported as reason:
        return Open(str(reason))
    left = np.flatnonzero(~close)
    if left.size:
        what = f"input {left[0]}" if left.size == 1 else f"{left.size} of {len(close)} inputs"
        return Open(f"the bounds of the outputs of {what} are too wide", "search for two executions")
    return Holds({"inputs": len(close), "ulps": claim.ulps}, _trusted(claim))


def _trusted(claim: PredictionInvariant | OutputsClose) -> tuple[str, ...]:
    return (VECTOR, BALLS) if claim.network.of_kind(Activation) else (VECTOR,)


def points(claim: PredictionInvariant | OutputsClose) -> NDArray[np.float64]:
    """The inputs as carriers, of shape (inputs, size)."""
    return np.stack([to_carrier(x) for x in claim.inputs])


def value_bounds(claim: PredictionInvariant | OutputsClose) -> dict[str, Interval]:
    """The tight bounds of each node's values over all executions, of shape (inputs, size)."""
    return enclosures(claim.network, points(claim), executions=claim.executions)


#: Winners found in this process, by network object, executions and input: asking again costs nothing.
_KNOWN: WeakKeyDictionary[Network, list[tuple[Executions, dict[bytes, int]]]] = WeakKeyDictionary()


def _known(claim: PredictionInvariant) -> dict[bytes, int]:
    listed = _KNOWN.setdefault(claim.network, [])
    for executions, winners in listed:
        if executions == claim.executions:
            return winners
    listed.append((claim.executions, {}))
    return listed[-1][1]


def all_winners(claim: PredictionInvariant) -> NDArray[np.intp]:
    """The class of each input in every execution, or −1."""
    known = _known(claim)
    winners = np.array([known.get(row.tobytes(), -1) for row in points(claim)], dtype=np.intp)
    left = np.flatnonzero(winners < 0)
    if left.size:
        some = replace(claim, inputs=tuple(claim.inputs[k] for k in left))
        winners[left] = settle(some).winners
    return winners


def settle(claim: PredictionInvariant) -> Settled:
    """The quick bounds, then for the inputs that they leave open the tight ones, then bounds of differences."""
    x, network, output = points(claim), claim.network, claim.network.output.name
    found = enclosures(network, x, executions=claim.executions, charged=False)
    winners = certain_winners(*found[output])
    rivals = np.zeros(found[output][0].shape, dtype=bool)
    left = np.flatnonzero(winners < 0)
    if left.size:
        tight = enclosures(network, x[left], executions=claim.executions)
        for name, ends in tight.items():
            found[name] = np.array(found[name][0]), np.array(found[name][1])
            for whole, some in zip(found[name], ends, strict=True):
                whole[left] = some
        winners[left], rivals[left] = _by_margins(claim, tight)
    _known(claim).update((row.tobytes(), int(k)) for row, k in zip(x, winners, strict=True) if k >= 0)
    return Settled(winners, rivals, found)


def _by_margins(
    claim: PredictionInvariant, found: Mapping[str, Interval]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    low, high = found[claim.network.output.name]
    chosen = np.argmax(low, axis=1)
    open_ = np.asarray(~_beaten(low, high, chosen))
    bounded = np.asarray(np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1))
    asked = open_ & bounded[:, None]
    if asked.any():
        apart = margins(claim.network, found, claim.executions, chosen, asked)
        if apart is not None:
            before = np.arange(low.shape[1])[None, :] < chosen[:, None]
            open_ &= ~(np.where(before, apart > 0, apart >= 0) & bounded[:, None])
    open_[np.arange(len(low)), chosen] = False
    return np.where(bounded & ~open_.any(axis=1), chosen, -1), open_


def _beaten(low: NDArray[np.float64], high: NDArray[np.float64], chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which outputs lie below the chosen one, by their bounds."""
    threshold = low[np.arange(len(low)), chosen][:, None]
    index, winner = np.arange(low.shape[1])[None, :], chosen[:, None]
    return np.asarray(np.where(index < winner, high < threshold, high <= threshold) | (index == winner))


def certain_winners(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.intp]:
    """For each row of bounds the index that every choice of values makes the first greatest one, else −1."""
    best = np.argmax(low, axis=1)  # no other index can have a lower bound that is above all upper bounds
    finite = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
    return np.where(_beaten(low, high, best).all(axis=1) & finite, best, -1)


def close_outputs(claim: OutputsClose) -> NDArray[np.bool_]:
    """For which inputs the bounds of all outputs are narrow enough."""
    x, output = points(claim), claim.network.output.name
    close = np.zeros(len(x), dtype=bool)
    for charged in (False, True):
        left = np.flatnonzero(~close)
        if left.size:
            low, high = enclosures(claim.network, x[left], executions=claim.executions, charged=charged)[output]
            rows = zip(low.tolist(), high.tolist(), strict=True)
            close[left] = [all(map(claim.holds_between, a, b)) for a, b in rows]
    return close
