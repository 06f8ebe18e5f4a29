"""Decides safety of outputs on boxes of inputs: descent to a violation, then branch and bound over splits of inputs.

Bounds are those that the kernel's rule computes again (`fpsmt.kernel.rules.safety`).  A box that they leave open is
halved on the side that the loss of the relaxation depends on most.  Everything here may guess: a proof counts when the
rule has verified the tree of splits, a violation when the reference interpreter has run it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
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
    Tried,
    ends_of,
    excluded,
    excluded_by_values,
    rows_of,
    split_boxes,
    tree_text,
)
from fpsmt.networks.relaxation import Array, Bounds, Relaxation, State

BATCH = 512  #: boxes whose bounds are computed at a time
MOST_SIGNS = 24  #: of units told on one way down
FEW_INPUTS = 16  #: with so few or fewer inputs they alone are split
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


@dataclass
class _Block:
    """Boxes that wait: their nodes, ends, and the bounds known of the box above each."""

    node: NDArray[np.int64]
    low: Array
    high: Array
    known: Bounds | None
    signs: NDArray[np.int64]  #: of units, as `fpsmt.networks.relaxation` numbers them

    def take(self, which: NDArray[np.intp]) -> _Block:
        known = None if self.known is None else [(a[which], b[which]) for a, b in self.known]
        return _Block(self.node[which], self.low[which], self.high[which], known, self.signs[which])


class Search:
    """Branch and bound for one query."""

    def __init__(
        self, claim: Safe, query: Query, relaxation: Relaxation, hunt: Hunt, options: Options, done: Progress
    ) -> None:
        self.claim, self.query, self.relaxation, self.hunt = claim, query, relaxation, hunt
        self.options, self.done = options, done
        self.rows = [rows_of(p, claim.network.sizes[claim.network.output.name]) for p in query.unsafe]
        self.sides: list[tuple[NDArray[np.int64], NDArray[np.int64], int]] = []  # (nodes, sides, first child)
        self.count = 1
        self.inputs, self.prefer = claim.network.input.size, PREFER
        self.few_units = 0 if self.inputs <= FEW_INPUTS else LEAF

    def run(self, deadline: float, name: str) -> str | Unknown | Found:
        """The text of a tree, or why there is none, or an input and schedules that are unsafe."""
        box = ends_of(self.claim, self.query)
        if box is None or not self.rows or excluded_by_values(self.claim, self.query, *box).all():
            return tree_text(np.array([LEAF]))
        self.wide = box[1] > box[0]
        self.width = np.where(self.wide, box[1] - box[0], 1.0)
        stack = [_Block(np.zeros(1, np.int64), *box, None, np.zeros((1, 0), np.int64))]
        self.done.volume = 0.0
        last = time.monotonic()
        while stack:
            block = stack.pop()
            if len(block.node) > BATCH:
                stack.append(block.take(np.arange(len(block.node) - BATCH)))
                block = block.take(np.arange(len(block.node) - BATCH, len(block.node)))
            elif stack and len(block.node) + len(stack[-1].node) <= BATCH:
                stack.append(_joined(stack.pop(), block))
                continue
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

    def _step(self, block: _Block) -> _Block | str | Found | None:
        state = self.relaxation.state(block.low, block.high, self.relaxation.signed(block.known, block.signs))
        tried = [excluded(self.relaxation, state, r, block.signs) for r in self.rows]
        good = np.logical_and.reduce([t.reached > SPARE for t in tried])
        self.done.boxes += len(good)
        left = np.flatnonzero(~good)
        found = self.hunt.middles(state, left, self.query)
        if found is not None:
            return found
        single = (block.low == block.high).all(axis=1)
        near = left[self._small(block)[left]]  # worth the tighter bounds of every sum
        if len(near):
            good[near] = excluded_by_values(self.claim, self.query, block.low[near], block.high[near])
            left = np.flatnonzero(~good)
        self.done.leaves += int(good.sum())
        shares = np.where(self.wide, (block.high - block.low) / self.width, 1.0).prod(axis=1)
        shares *= 0.5 ** (block.signs >= 0).sum(axis=1)
        self.done.volume += float(shares[good].sum())
        if single[left].any():
            at = left[single[left]][0]
            found = self.hunt.point(block.low[at], self.query)
            return found if found is not None else f"the input {block.low[at].tolist()[:8]} could not be decided"
        if not len(left):
            return None
        score, losses = (found[left] for found in self._scores(state, tried))
        score = np.where(block.high[left] > block.low[left], score, -1.0)
        side = score.argmax(axis=1)
        if losses.shape[1] and block.signs.shape[1] < MOST_SIGNS and self.inputs + losses.shape[1] < LEAF:
            unit = losses.argmax(axis=1)
            at = np.arange(len(left))
            worth = (losses[at, unit] > self.prefer * score[at, side]) & ((losses > 0).sum(axis=1) <= self.few_units)
            side = np.where(worth, self.inputs + unit, side)
        some = block.take(left)
        (la, ha), (lb, hb), signs = split_boxes(self.claim.network.input, some.low, some.high, some.signs, side)
        self.sides.append((some.node, side.astype(np.int64), self.count))
        nodes = np.arange(self.count, self.count + 2 * len(left)).reshape(2, -1)
        self.count += 2 * len(left)
        known = [(np.concatenate([a[left]] * 2), np.concatenate([b[left]] * 2)) for a, b in state.bounds]
        return _Block(nodes.reshape(-1), np.concatenate([la, lb]), np.concatenate([ha, hb]), known, signs)

    def _small(self, block: _Block) -> NDArray[np.bool_]:
        """Boxes of at most `FEW` values on each side."""
        fmt = self.claim.network.input.format
        return np.asarray((ordinals(fmt, block.high) - ordinals(fmt, block.low) < FEW).all(axis=1))

    def _scores(self, state: State, tried: list[Tried]) -> tuple[Array, Array]:
        """How much each input, and each unit, is worth splitting: the loss of each relu's line where it is used; for
        inputs shared as the unit's value depends on them, and a little of the slope of the bound itself."""
        radius = state.radius
        out, losses = np.zeros_like(state.low), np.zeros((len(state.low), int(self.relaxation.first[-1])))
        relus = [k for k, step in enumerate(self.relaxation.steps) if step.relu]
        weights = []
        slope = None
        for k, step in enumerate(self.relaxation.steps):
            if step.weights is not None:
                slope = step.weights[None] if slope is None else np.matmul(step.weights, slope)
            elif slope is None:
                slope = np.eye(step.size)[None]
            if step.relu:
                share = np.abs(slope) * radius[:, None, :]
                total = share.sum(axis=2, keepdims=True)
                weights.append(share / np.where(total > 0, total, 1.0))
                slope = state.lines[k][1][:, :, None] * slope
        for one in tried:
            open_ = ~one.excluded
            for at, k in enumerate(relus):
                low, high = state.bounds[k]
                rows = np.einsum("br,brn->bn", one.shares, one.below.through[at])
                loss = np.where(rows < 0, -rows * state.lines[k][2], rows * np.minimum(high, -low))
                loss = np.where(((low < 0) & (high > 0)) & open_[:, None], loss, 0.0)
                out += np.einsum("bn,bni->bi", loss, weights[at])
                losses[:, self.relaxation.first[k] : self.relaxation.first[k + 1]] += loss
            direct = np.abs(np.einsum("br,brn->bn", one.shares, one.below.slopes)) * radius
            out += np.where(open_[:, None], STEEPNESS * direct, 0.0)
        unknown = ~np.isfinite(out).all(axis=1, keepdims=True)
        worth = np.where(unknown, radius / self.width, out) + 1e-9 * radius / self.width
        return worth, np.where(unknown, 0.0, losses)

    def _tree(self) -> NDArray[np.int64]:
        """Sides of all nodes, each before its lower half before its upper half."""
        side, child = np.full(self.count, LEAF), np.zeros(self.count, dtype=np.int64)
        step = np.zeros(self.count, dtype=np.int64)
        for nodes, sides, first in self.sides:
            side[nodes] = sides
            child[nodes] = first + np.arange(len(nodes))
            step[nodes] = len(nodes)
        out, todo = [], [0]
        sides_, children, steps = side.tolist(), child.tolist(), step.tolist()
        while todo:
            node = todo.pop()
            out.append(sides_[node])
            if sides_[node] != LEAF:
                todo += [children[node] + steps[node], children[node]]
        return np.array(out)


def _joined(one: _Block, two: _Block) -> _Block:
    pairs = [(one.node, two.node), (one.low, two.low), (one.high, two.high)]
    node, low, high = (np.concatenate(p) for p in pairs)
    assert one.known is not None and two.known is not None
    width = max(one.signs.shape[1], two.signs.shape[1])
    signs = np.concatenate(
        [np.pad(b.signs, ((0, 0), (0, width - b.signs.shape[1])), constant_values=-1) for b in (one, two)]
    )
    known = [
        (np.concatenate([a, c]), np.concatenate([b, d])) for (a, b), (c, d) in zip(one.known, two.known, strict=True)
    ]
    return _Block(node, low, high, known, signs)
