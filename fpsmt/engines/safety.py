"""Decides safety of outputs on boxes of inputs: descent to a violation, then branch and bound over splits of inputs.

Bounds are those that the kernel's rule computes again (`fpsmt.kernel.rules.safety`).  A box that they leave open is
halved on the side that the loss of the relaxation depends on most.  Everything here may guess: a proof counts when the
rule has verified the tree of splits, a violation when the reference interpreter has run it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.properties import Query, Safe, safe_counterexample
from fpsmt.engines.engine import Options, engine
from fpsmt.engines.root_bounds import left_at_root
from fpsmt.engines.split_trees import OPEN
from fpsmt.engines.splitting import Sides, Splitting, Step, concluded, small
from fpsmt.engines.unsafe_executions import Found, Hunt
from fpsmt.kernel import Unknown, Verdict
from fpsmt.kernel.rules.safety import (
    LEAF,
    SEARCH,
    Boxes,
    Tried,
    ends_of,
    excluded,
    excluded_by_values,
    parts_of,
    rows_of,
)
from fpsmt.networks.relaxation import Array, Relaxation, State

MOST_SIGNS = 64  #: of units told on one way down with many inputs
FEW_INPUTS = 16  #: with so few or fewer inputs these are split until few units are open
FEW_UNITS = 16  #: also the most signs told on one way down
LOWER = 1 / 64  #: weight of the loss of a lower line, which may be turned, beside that of an upper one
PREFER = 1.0  #: how many times the worth of an input the loss of a unit must be, to tell its sign
SPARE = 1e-12  #: by which a bound should pass its limit, so that it passes again in another order of summation
FIRST, THEN = 1 / 8, 1 / 2  #: until when inputs, and schedules, are looked for before boxes are split; of the time
LAST = 1 / 8  #: share of the time that is left to the search over executions
STEEPNESS = 0.05  #: weight of the slope of the bound beside the loss of the relaxation


@engine("splits", Safe)
def splits(claim: Safe, options: Options) -> Verdict:
    """Proves by boxes, or finds an execution that is unsafe.  A saved state is gone on with."""
    deadline = time.monotonic() + options.timeout * (1 - LAST)
    relaxation = Relaxation(claim.network, claim.executions)
    hunt = Hunt(claim, relaxation, Random(options.seed))
    run = splitting(claim, relaxation, hunt, options)
    if options.saved is None:
        options.report("splits: looking for a violation")
        start = time.monotonic()
        found = hunt.start(*(start + options.timeout * share for share in (FIRST, THEN)))
        if found is not None:
            return kernel.refute(claim, safe_counterexample(*found))
    else:
        run.take_up(options.saved)
    answer = concluded(claim, run, "splits", "splits of the inputs", partial(evidence, claim), deadline,
                       lambda left: splits(claim, left))  # fmt: skip
    if not isinstance(answer, str):
        return answer
    return Unknown(claim, answer, 0.0, "a longer time limit, or a higher precision")


def splitting(claim: Safe, relaxation: Relaxation, hunt: Hunt, options: Options) -> Splitting[Found]:
    """The search for trees of splits."""
    node = claim.network.input
    listed = [(k, part) for k, parts in enumerate(parts_of_claim(claim)) for part in parts]
    return Splitting(
        len(listed), node, relaxation.units, lambda number: Search(claim, *listed[number], relaxation, hunt), options
    )


def parts_of_claim(claim: Safe) -> list[list[Query]]:
    """What has a tree of its own: a query, or each of its polytopes where units are split, other ones for each."""
    few = claim.network.input.size <= FEW_INPUTS
    return [[query] if few or not query.unsafe else parts_of(query) for query in claim.safety.queries]


def evidence(claim: Safe, trees: list[str]) -> dict[str, Any]:
    """For the rule, from the trees of all parts."""
    left = iter(trees)
    grouped = [[next(left) for _ in parts] for parts in parts_of_claim(claim)]
    return {"trees": [texts[0] if len(texts) == 1 else texts for texts in grouped]}


class Search:
    """One step of branch and bound for one query of a claim, or a part of it."""

    def __init__(self, claim: Safe, number: int, query: Query, relaxation: Relaxation, hunt: Hunt) -> None:
        self.claim, self.number, self.query = claim, number, query
        self.relaxation, self.hunt = relaxation, hunt
        self.rows = [rows_of(p, claim.network.sizes[claim.network.output.name]) for p in self.query.unsafe]
        self.inputs = claim.network.input.size
        few = self.inputs <= FEW_INPUTS
        self.few_units, self.most_signs = (FEW_UNITS, FEW_UNITS) if few else (LEAF, MOST_SIGNS)
        self.trivial = not self.rows
        self.box = box = ends_of(claim, self.query)
        if box is not None:
            self.sides = Sides.of(*box)

    def shares(self, block: Boxes) -> Array:
        """Of the volume of the query's box."""
        return self.sides.shares(block)

    def known(self, block: Boxes) -> Boxes:
        """The same boxes, with their own bounds."""
        return replace(block, known=block.state(self.relaxation).bounds)

    def step(self, block: Boxes) -> Step[Found]:
        """Examines boxes: nothing else changes."""
        state = block.state(self.relaxation)
        tried = [excluded(self.relaxation, state, r, block.signs, SEARCH) for r in self.rows]
        good = np.logical_and.reduce([t.reached > SPARE for t in tried])
        left = np.flatnonzero(~good)
        unsafe = self.hunt.middles(state, left, self.query)
        near = left[small(self.claim.network.input, block)[left]]  # worth the tighter bounds of every sum
        if block.node[0] == 0 and len(left):
            good[0] = not set(self.query.unsafe) & set(left_at_root(self.claim, self.number))
        elif len(near):
            good[near] = excluded_by_values(self.claim, self.query, block.low[near], block.high[near])
        left = np.flatnonzero(~good)
        made = Step(np.flatnonzero(good), float(self.shares(block)[good].sum()), left, unsafe=unsafe)
        single = left[(block.low[left] == block.high[left]).all(axis=1)]
        if unsafe is None and len(single):
            made.unsafe = self.hunt.point(block.low[single[0]], self.query)
            made.reason = f"the input {block.low[single[0]].tolist()[:8]} could not be decided"
        if len(left) and made.unsafe is None and not made.reason:
            score, losses, few = self._scores(state, tried)
            made.side = self._sides(block.take(left), score[left], losses[left], few[left])
            made.known = state.bounds[0][left], state.bounds[1][left]
        return made

    def _sides(self, block: Boxes, score: Array, losses: Array, few: NDArray[np.bool_]) -> NDArray[np.int64]:
        """On which to split each box: units where only a few are left to split, and worth more than an input."""
        score = np.where(block.high > block.low, score, -1.0)
        score[:, OPEN:] = -1.0  # sides that a tree cannot name
        side, at = score.argmax(axis=1), np.arange(len(score))
        if self.inputs + losses.shape[1] <= OPEN:
            few &= (block.signs >= 0).sum(axis=1) < self.most_signs
            unit = losses.argmax(axis=1)
            side = np.where(few & (losses[at, unit] > PREFER * score[at, side]), self.inputs + unit, side)
        return side.astype(np.int64)

    def _scores(self, state: State, tried: list[Tried]) -> tuple[Array, Array, NDArray[np.bool_]]:
        """How much each input, and each unit, is worth splitting: the loss of each relu's line where it is used; for
        inputs shared as the unit's value depends on them, and a little of the slope of the bound itself.  And whether
        the upper lines of only a few units are used."""
        radius, (low, high) = state.radius, state.bounds
        out, losses = np.zeros_like(state.low), np.zeros_like(low)
        known = np.isfinite(low) & np.isfinite(high)
        middle = (np.where(known, low, 0.0) + np.where(known, high, 0.0)) / 2
        apart = (state.upper - state.lower) * middle + state.top - state.bottom
        open_units, used = (low < 0) & (high > 0) & known, np.zeros(low.shape, dtype=bool)
        for one in tried:
            open_, rows = ~one.excluded, one.through
            most = np.where(rows < 0, state.top, LOWER * np.minimum(high, -low))
            used |= open_[:, None] & open_units & (rows < 0)
            most = np.where(self.relaxation.relus & open_units, most, apart)
            losses += np.where(open_[:, None] & known, np.abs(rows) * most, 0.0)
            out += np.where(open_[:, None], STEEPNESS * np.abs(one.slopes) * radius, 0.0)
        if self.inputs <= FEW_INPUTS:  # of many, those are split along which the bound itself is steep, or units
            out += self._shared(state, losses, apart, radius)
        unknown = ~np.isfinite(out).all(axis=1, keepdims=True)
        worth = np.where(unknown, radius / self.sides.width, out) + 1e-9 * radius / self.sides.width
        return worth, np.where(open_units & ~unknown, losses, 0.0), used.sum(axis=1) <= self.few_units

    def _shared(self, state: State, losses: Array, apart: Array, radius: Array) -> Array:
        """The losses of units shared among the inputs as the units' values depend on them: linearly, where parts that
        cancel do no harm, and through what the lines of earlier units are `apart`, which adds up."""
        out = np.zeros_like(radius)
        slope, slack = np.eye(self.inputs)[None], np.zeros((1, self.inputs, self.inputs))
        for k, step in enumerate(self.relaxation.steps):
            of = self.relaxation.of(k)
            if step.weights is not None:
                slope, slack = np.matmul(step.weights, slope), np.matmul(np.abs(step.weights), slack)
            if step.curve is not None:
                share = np.abs(slope) * radius[:, None, :] + slack
                total = share.sum(axis=2, keepdims=True)
                share /= np.where(total > 0, total, 1.0)
                out += np.einsum("bn,bni->bi", losses[:, of], share)
                steep = state.upper[:, of, None]
                slope, slack = steep * slope, np.abs(steep) * slack + apart[:, of, None] / 2 * share
        return out
