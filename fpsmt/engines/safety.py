"""Decides safety of outputs on boxes of inputs: descent to a violation, then branch and bound over splits of inputs.

Bounds are those that the kernel's rule computes again (`fpsmt.kernel.rules.safety`).  A box that they leave open is
halved on the side that the loss of the relaxation depends on most.  Everything here may guess: a proof counts when the
rule has verified the tree of splits, a violation when the reference interpreter has run it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.properties import Query, Safe, safe_counterexample
from fpsmt.engines.engine import Options, engine
from fpsmt.engines.unsafe_executions import Found, Hunt
from fpsmt.floats.vector import ordinals
from fpsmt.kernel import Unknown, Verdict
from fpsmt.kernel.rules.safety import (
    LEAF,
    Boxes,
    Tried,
    ends_of,
    excluded,
    excluded_by_values,
    halved,
    next_of,
    rows_of,
    tree_text,
    whole,
)
from fpsmt.networks.relaxation import Array, Relaxation, State

BATCH = 512  #: boxes whose bounds are computed at a time
MOST_SIGNS = 24  #: of units told on one way down
FEW_INPUTS = 16  #: with so few or fewer inputs these are split until few units are open
FEW_UNITS = 12
PREFER = 1.0  #: how many times the worth of an input the loss of a unit must be, to tell its sign
SPARE = 1e-12  #: by which a bound should pass its limit, so that it passes again in another order of summation
FIRST = 1 / 8  #: share of the time in which a violation is looked for before boxes are split
FEW = 3  #: values on a side of a small box
STEEPNESS = 0.05  #: weight of the slope of the bound beside the loss of the relaxation


@dataclass
class Progress:
    """What a search has done; `volume` is the share of the box of the present query that is proved, where a
    sign halves it."""

    boxes: int = 0
    leaves: int = 0
    volume: float = 0.0
    trees: list[str] = field(default_factory=list)


@engine("splits", Safe)
def splits(claim: Safe, options: Options) -> Verdict:
    """Proves by boxes, or finds an execution that is unsafe."""
    start = time.monotonic()
    deadline = start + options.timeout
    relaxation = Relaxation(claim.network, claim.executions)
    hunt = Hunt(claim, relaxation, Random(options.seed))
    found = hunt.start(min(deadline, start + options.timeout * FIRST))
    if found is not None:
        return kernel.refute(claim, safe_counterexample(*found))
    done = Progress()
    for k, query in enumerate(claim.safety.queries):
        search = Search(claim, query, relaxation, hunt, options, done)
        answer = search.run(deadline, f"query {k + 1} of {len(claim.safety.queries)}")
        if isinstance(answer, Unknown):
            return answer
        if not isinstance(answer, str):
            return kernel.refute(claim, safe_counterexample(*answer))
        done.trees.append(answer)
    options.report(f"splits: {done.leaves} boxes found; verifying them")
    return kernel.apply("splits of the inputs", claim, {"trees": done.trees})


class Search:
    """Branch and bound for one query."""

    def __init__(
        self, claim: Safe, query: Query, relaxation: Relaxation, hunt: Hunt, options: Options, done: Progress
    ) -> None:
        self.claim, self.query, self.relaxation, self.hunt = claim, query, relaxation, hunt
        self.options, self.done = options, done
        self.rows = [rows_of(p, claim.network.sizes[claim.network.output.name]) for p in query.unsafe]
        self.made: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []  # (nodes, sides, children)
        self.count = 1
        self.inputs, self.prefer = claim.network.input.size, PREFER
        self.few_units = FEW_UNITS if self.inputs <= FEW_INPUTS else LEAF

    def run(self, deadline: float, name: str) -> str | Unknown | Found:
        """The text of a tree, or why there is none, or an input and schedules that are unsafe."""
        box = ends_of(self.claim, self.query)
        if box is None or not self.rows or excluded_by_values(self.claim, self.query, *box).all():
            return tree_text(np.array([LEAF]))
        self.wide = box[1] > box[0]
        self.width = np.where(self.wide, box[1] - box[0], 1.0)
        stack = [whole(*box)]
        self.done.volume = 0.0
        last = time.monotonic()
        while stack:
            block = next_of(stack, BATCH)
            if time.monotonic() > deadline:
                return self._gave_up(name, "the time limit was passed")
            made = self._step(block)
            if isinstance(made, tuple):
                return made
            if isinstance(made, str):
                return self._gave_up(name, made)
            if made is not None:
                stack.append(made)
            if time.monotonic() - last > 1.0:
                last = time.monotonic()
                waiting = sum(len(b.node) for b in stack)
                share = f"{self.done.volume:.4%} of its volume proved"
                self.options.report(f"splits: {name}: {share}, {self.done.boxes} boxes, {waiting} wait")
        return tree_text(self._tree())

    def _gave_up(self, name: str, why: str) -> Unknown:
        share = f"{self.done.volume:.4%} of the volume of {name} is proved by {self.done.boxes} boxes"
        return Unknown(self.claim, f"{why}; {share}", 0.0, "a longer time limit, or a higher precision")

    def _step(self, block: Boxes) -> Boxes | str | Found | None:
        state = block.state(self.relaxation)
        block = replace(block, known=state.bounds)
        tried = [excluded(self.relaxation, state, r, block.signs) for r in self.rows]
        good = np.logical_and.reduce([t.reached > SPARE for t in tried])
        self.done.boxes += len(good)
        left = np.flatnonzero(~good)
        found = self.hunt.middles(state, left, self.query)
        if found is not None:
            return found
        near = left[self._small(block)[left]]  # worth the tighter bounds of every sum
        if len(near):
            good[near] = excluded_by_values(self.claim, self.query, block.low[near], block.high[near])
            left = np.flatnonzero(~good)
        self.done.leaves += int(good.sum())
        self.done.volume += float(self._volume(block)[good].sum())
        single = left[(block.low[left] == block.high[left]).all(axis=1)]
        if len(single):
            found = self.hunt.point(block.low[single[0]], self.query)
            return found or f"the input {block.low[single[0]].tolist()[:8]} could not be decided"
        if not len(left):
            return None
        score, losses = (found[left] for found in self._scores(state, tried))
        return self._split(block.take(left), score, losses)

    def _volume(self, block: Boxes) -> Array:
        """The share of the query's box that each box is, where a sign halves it."""
        shares = np.where(self.wide, (block.high - block.low) / self.width, 1.0).prod(axis=1)
        return np.asarray(shares * 0.5 ** (block.signs >= 0).sum(axis=1))

    def _split(self, block: Boxes, score: Array, losses: Array) -> Boxes:
        score = np.where(block.high > block.low, score, -1.0)
        side, at = score.argmax(axis=1), np.arange(len(score))
        if block.signs.shape[1] < MOST_SIGNS and self.inputs + losses.shape[1] < LEAF:
            unit = losses.argmax(axis=1)
            worth = (losses[at, unit] > self.prefer * score[at, side]) & ((losses > 0).sum(axis=1) <= self.few_units)
            side = np.where(worth, self.inputs + unit, side)
        nodes = self.count + np.arange(2 * len(at))
        self.count += len(nodes)
        self.made.append((block.node, side, nodes))
        return halved(self.claim.network.input, block, side, nodes)

    def _small(self, block: Boxes) -> NDArray[np.bool_]:
        """Boxes of at most `FEW` values on each side."""
        fmt = self.claim.network.input.format
        return np.asarray((ordinals(fmt, block.high) - ordinals(fmt, block.low) < FEW).all(axis=1))

    def _scores(self, state: State, tried: list[Tried]) -> tuple[Array, Array]:
        """How much each input, and each unit, is worth splitting: the loss of each relu's line where it is used; for
        inputs shared as the unit's value depends on them, and a little of the slope of the bound itself."""
        radius, (low, high) = state.radius, state.bounds
        out, losses = np.zeros_like(state.low), np.zeros_like(low)
        known = np.isfinite(low) & np.isfinite(high)
        middle = (np.where(known, low, 0.0) + np.where(known, high, 0.0)) / 2
        apart = (state.upper - state.lower) * middle + state.top - state.bottom
        open_units = (low < 0) & (high > 0) & known
        for one in tried:
            open_, shares = ~one.excluded, one.shares
            rows = np.einsum("br,bru->bu", shares, one.below.through)
            most = np.where(rows < 0, state.top, np.minimum(high, -low))
            most = np.where(self.relaxation.relus & open_units, most, apart)
            losses += np.where(open_[:, None] & known, np.abs(rows) * most, 0.0)
            direct = np.abs(np.einsum("br,brn->bn", shares, one.below.slopes)) * radius
            out += np.where(open_[:, None], STEEPNESS * direct, 0.0)
        if self.inputs <= FEW_INPUTS:  # of many, those are split along which the bound itself is steep, or units
            out += self._shared(state, losses, radius)
        unknown = ~np.isfinite(out).all(axis=1, keepdims=True)
        worth = np.where(unknown, radius / self.width, out) + 1e-9 * radius / self.width
        return worth, np.where(open_units & ~unknown, losses, 0.0)

    def _shared(self, state: State, losses: Array, radius: Array) -> Array:
        """The losses of units shared among the inputs as the units' values depend on them."""
        out, slope = np.zeros_like(radius), np.eye(self.inputs)[None]
        for k, step in enumerate(self.relaxation.steps):
            of = self.relaxation.of(k)
            if step.weights is not None:
                slope = np.matmul(step.weights, slope)
            if step.curve is not None:
                share = np.abs(slope) * radius[:, None, :]
                total = share.sum(axis=2, keepdims=True)
                out += np.einsum("bn,bni->bi", losses[:, of], share / np.where(total > 0, total, 1.0))
                slope = state.upper[:, of, None] * slope
        return out

    def _tree(self) -> NDArray[np.int64]:
        """Sides of all nodes, each before its lower half before its upper half."""
        side, first, second = (np.full(self.count, LEAF) for _ in range(3))
        for nodes, sides, made in self.made:
            side[nodes], first[nodes], second[nodes] = sides, made[: len(nodes)], made[len(made) - len(nodes) :]
        out, todo = [], [0]
        sides_, lower, upper = side.tolist(), first.tolist(), second.tolist()
        while todo:
            node = todo.pop()
            out.append(sides_[node])
            if sides_[node] != LEAF:
                todo += [upper[node], lower[node]]
        return np.array(out)
