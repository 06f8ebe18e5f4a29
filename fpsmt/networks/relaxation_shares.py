"""Combinations of linear bounds on boxes: what they are never below, and which are good."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpsmt.networks.curves import ROOM
from fpsmt.networks.relaxation import TINY, Box, nu

Array = NDArray[np.float64]

MOST_LINES = 16  #: inputs for which shares are found by line searches too


def least_values(box: Box, slopes: Array, constants: Array, shares: Array) -> Array:
    """For each box and each of the combinations `shares` (boxes, combinations, rows ≥ 0) of minorants a·x + k, a number
    that no combination is below anywhere in the box.  −∞ says nothing."""
    c, r = box.centre, box.radius
    v = nu(slopes.shape[1] + slopes.shape[2])
    good = np.isfinite(constants)
    k = np.where(good, constants, 0.0)
    at = np.einsum("brn,bn->br", slopes, c) + k
    size = np.einsum("brn,bn->br", np.abs(slopes), np.abs(c) + r) + np.abs(k)  # of everything in a row
    mixed = np.einsum("bjr,brn->bjn", shares, slopes)
    low = np.einsum("bjr,br->bj", shares, at) - np.einsum("bjn,bn->bj", np.abs(mixed), r)
    slack = 8 * v * np.einsum("bjr,br->bj", shares, size) * ROOM + TINY
    silent = (np.where(good[:, None, :], 0.0, shares) > 0).any(axis=2)
    low = low - slack
    return np.where(silent | ~np.isfinite(low), -np.inf, low)


def good_shares(box: Box, slopes: Array, constants: Array, start: Array, rounds: int) -> Array:
    """Shares (boxes, rows ≥ 0) that make the least value of the combination of minorants large, by multiplicative
    ascent from `start`.  Any shares ≥ 0 are right: these need not be the best."""
    r = box.radius
    heard = np.isfinite(constants)
    k = np.where(heard, constants, 0.0)
    at = np.einsum("brn,bn->br", slopes, box.centre) + k
    spread = slopes * r[:, None, :]
    scale = np.abs(at) + np.abs(spread).sum(axis=2) + 2.0**-200
    at, spread = at / scale, spread / scale[:, :, None]
    share = np.where(heard, 0.5 * start * scale + 0.5 / heard.sum(axis=1, keepdims=True).clip(1), 0.0)
    best, chosen = np.full(len(r), -np.inf), share
    for number in range(rounds):
        share = share / share.sum(axis=1, keepdims=True).clip(2.0**-200)
        mixed = np.einsum("br,brn->bn", share, spread)
        value = (share * at).sum(axis=1) - np.abs(mixed).sum(axis=1)
        better = value > best
        best = np.where(better, value, best)
        chosen = np.where(better[:, None], share, chosen)
        slope = at - np.einsum("brn,bn->br", spread, np.sign(mixed))
        share = share * np.exp(np.clip(slope, -4.0, 4.0) * (4.0 / (1.0 + 0.3 * number)))
    if slopes.shape[2] <= MOST_LINES:
        _polish(chosen, at, spread, heard)
    return np.where(np.isfinite(chosen) & heard, chosen / scale, 0.0)


def _polish(share: Array, at: Array, spread: Array, heard: NDArray[np.bool_]) -> None:
    """Line searches in place, one share after the other: the value is concave and piecewise linear in it, so that the
    best is 0 or where some slope of the mixture vanishes."""
    boxes = np.arange(len(share))
    for row in [*range(share.shape[1])] * 2:
        slope = spread[:, row]
        rest = np.einsum("br,brn->bn", share, spread) - share[:, row, None] * slope
        base = (share * at).sum(axis=1) - share[:, row] * at[:, row]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            tried = np.clip(np.nan_to_num(-rest / slope, posinf=0.0, neginf=0.0), 0.0, 2.0**40)
        tried = np.concatenate([tried, share[:, row, None]], axis=1)
        mixed = rest[:, None, :] + tried[:, :, None] * slope[:, None, :]
        value = base[:, None] + tried * at[:, row, None] - np.abs(mixed).sum(axis=2)
        # a larger scale is no better: compare at the same sum of shares
        total = (share.sum(axis=1) - share[:, row])[:, None] + tried
        value = np.where(total > 0, value / (total + 2.0**-200), -np.inf)
        best = tried[boxes, value.argmax(axis=1)]
        share[:, row] = np.where(heard[:, row], best, 0.0)
