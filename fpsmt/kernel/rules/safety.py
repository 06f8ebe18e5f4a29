"""The rule about outputs that are safe on boxes of inputs: boxes split until linear bounds decide each."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.comparison import Agree
from fpsmt.claims.properties import Polytope, Query, Safe
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats.vector import to_carrier
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.rules.safety_intervals import excluded as misses
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.growth import float_up
from fpsmt.networks.nodes import Activation, Input
from fpsmt.networks.relaxation import Array, Bounds, Box, Relaxation, State, halves
from fpsmt.networks.relaxation_ascent import Effort, climb
from fpsmt.networks.relaxation_shares import good_shares, least_values

LEAF = 0xFFFF  #: in a tree of splits
MOST_NODES = 1 << 24
BOXES = 512  #: whose bounds are computed at a time
ROUNDS = 8  #: of ascent for the shares of minorants
SEARCH, CHECK = Effort(30, 16.0), Effort(60, 64.0)  #: what a search finds is found again, in another order of summation


class Rows(NamedTuple):
    """An unsafe polytope in float64: outputs with weights·y ≤ limits, each limit rounded up; shares to combine them."""

    weights: Array
    limits: Array
    shares: Array


def combinations(rows: int, points: Sequence[float] = (0.2, 0.4, 0.6, 0.8)) -> Array:
    """Shares (combinations, rows): each row alone, and mixtures of two of them."""
    listed = [np.eye(rows)[i] for i in range(rows)]
    for i in range(rows):
        for j in range(i):
            listed += [t * np.eye(rows)[i] + (1 - t) * np.eye(rows)[j] for t in points]
    return np.array(listed).reshape(len(listed), rows)


def rows_of(polytope: Polytope, outputs: int) -> Rows:
    """`Unsupported` when a coefficient is not a float64."""
    weights = np.zeros((len(polytope.rows), outputs))
    for k, row in enumerate(polytope.rows):
        for j, a in row:
            weights[k, j] = float_up(a)
            if not np.isfinite(weights[k, j]) or Fraction(weights[k, j]) != a:
                raise Unsupported(f"the coefficient {a} of output {j} is not a float64")
    limits = np.array([float_up(b) for b in polytope.rhs])
    if not np.isfinite(limits).all():
        raise Unsupported("a bound of an output is beyond float64")
    return Rows(weights, limits, combinations(len(limits)))


class Tried(NamedTuple):
    """Of a polytope on boxes: whether it is excluded, what the best mixture of its rows reaches, the coefficients of
    the inputs in a mixture of rows alone, and those of what units' activations make in the best one."""

    excluded: NDArray[np.bool_]
    reached: Array
    slopes: Array
    through: Array


def excluded(
    relaxation: Relaxation, state: State, rows: Rows, signs: NDArray[np.int64], effort: Effort = CHECK
) -> Tried:
    """On which boxes, with these signs (boxes, any number), no execution's outputs are in the polytope.

    Let minorants mₖ(x) be below cₖ·y − rhsₖ for the rows of the polytope, and below ±z for the signs.  If Σ λₖmₖ > 0
    on the box for some λ ≥ 0, one of the mₖ(x) is > 0 for each x: some row is violated, or a unit has another sign.
    Where such a combination is not found, one is bounded as a single row (`fpsmt.networks.relaxation_ascent`).
    """
    below = relaxation.minorants(state, rows.weights)
    boxes, count = len(state.low), len(rows.limits)
    slopes, constants = below.slopes, np.nextafter(below.constants - rows.limits, -np.inf)
    if signs.shape[1]:
        more = relaxation.sign_minorants(state, signs)
        slopes, constants = np.concatenate([slopes, more.slopes], 1), np.concatenate([constants, more.constants], 1)
    total = count + signs.shape[1]
    if not total:
        none = np.zeros((boxes, relaxation.inputs)), np.zeros((boxes, relaxation.units))
        return Tried(np.zeros(boxes, dtype=bool), np.full(boxes, -np.inf), *none)
    listed = np.zeros((len(rows.shares), total))
    listed[:, :count] = rows.shares
    shares = np.tile(listed, (boxes, 1, 1))
    values = least_values(state, slopes, constants, shares) if count else np.full((boxes, 1), -np.inf)
    best = values.argmax(axis=1)
    reached = values[np.arange(boxes), best]
    chosen = listed[best] if count else np.zeros((boxes, total))
    left = np.flatnonzero((reached <= 0) & ((signs >= 0).any(axis=1) | (count > 2)))  # each box as if it were alone
    if len(left):
        part = Box(state.low[left], state.high[left])
        found = good_shares(part, slopes[left], constants[left], chosen[left], ROUNDS)
        value = least_values(part, slopes[left], constants[left], found[:, None, :])[:, 0]
        better = value > reached[left]
        reached[left[better]], chosen[left[better]] = value[better], found[better]
    mixed, through = (np.einsum("br,brn->bn", chosen[:, :count], each) for each in (below.slopes, below.through))
    left = np.flatnonzero(reached <= 0)
    if count and len(left):
        climbed = climb(relaxation, state.part(left), rows.weights, rows.limits, chosen[left], signs[left], effort)
        reached[left] = np.maximum(reached[left], climbed.reached)
        through[left] = climbed.through
    return Tried(reached > 0, reached, mixed, through)


def excluded_by_values(claim: Safe, query: Query, low: Array, high: Array) -> NDArray[np.bool_]:
    """On which boxes the bounds of each output alone exclude every polytope, by `fpsmt.networks.bounds.enclosures`:
    a row is violated by all outputs between these bounds."""
    try:
        found = enclosures(claim.network, low, high, claim.executions)[claim.network.output.name]
    except Unsupported:
        return np.zeros(len(low), dtype=bool)
    return np.array([all(misses(p, a, b) for p in query.unsafe) for a, b in zip(*found, strict=True)], dtype=bool)


class Tree(NamedTuple):
    """Splits of a box: `inputs` the side that is halved, or the number of inputs + a unit whose sign is told, or
    `LEAF`; `second` the node of the upper half (z ≥ 0), the lower one (z ≤ 0) being the next node."""

    inputs: NDArray[np.int64]
    second: NDArray[np.int64]


def tree_text(inputs: NDArray[np.int64]) -> str:
    """A tree as text: the `inputs` of its nodes, each node before its lower half before its upper half."""
    return base64.b64encode(zlib.compress(inputs.astype("<u2").tobytes(), 9)).decode("ascii")


def read_tree(text: Json) -> Tree:
    """Reads `tree_text`; a usage error for anything that is not the text of one whole tree."""
    return tree_of(read_nodes(text))


def read_nodes(text: Json) -> NDArray[np.int64]:
    """The numbers in a `tree_text`; a usage error for what is no such text, or a longer one than is read."""
    if not isinstance(text, str):
        raise UsageError("a tree of splits is text")
    try:
        reader = zlib.decompressobj()
        raw = reader.decompress(base64.b64decode(text, validate=True), 2 * MOST_NODES)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise UsageError(f"a tree of splits cannot be read: {error}") from None
    if reader.unconsumed_tail or not reader.eof or len(raw) % 2:
        raise UsageError("a tree of splits is truncated, or larger than what is read")
    return np.frombuffer(raw, dtype="<u2").astype(np.int64)


def tree_of(inputs: NDArray[np.int64]) -> Tree:
    """A tree from the `inputs` of its nodes; a usage error when they are not one whole tree."""
    second = np.zeros(len(inputs), dtype=np.int64)
    waiting: list[int] = []  # nodes whose lower half is being read
    for at, side in enumerate(inputs.tolist()):
        if side != LEAF:
            waiting.append(at)
        elif waiting:
            second[waiting.pop()] = at + 1
        elif at + 1 != len(inputs):
            raise UsageError("a tree of splits has nodes beyond its end")
    # every inner node needs its two halves: one leaf more than inner nodes, in the right order
    if not len(inputs) or waiting or not _whole(inputs):
        raise UsageError("a tree of splits is not whole")
    return Tree(inputs, second)


def _whole(inputs: NDArray[np.int64]) -> bool:
    """Whether the nodes that are still needed run out exactly at the end."""
    need = 1 + np.cumsum(np.where(inputs == LEAF, -1, 1))
    return bool(need[-1] == 0 and (need[:-1] > 0).all())


@rule("splits of the inputs")
def splits_of_the_inputs(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Covers the box of each query by the leaves of a tree of splits, and excludes every unsafe polytope on each leaf.

    data: ``trees``, for each query the text of one tree, or a list of one for each of its polytopes.  A node's box has
    ends that are values of the input's format; its halves [low, m] and [m⁺, high] on the side it names, with neighbours
    m < m⁺, have all values of its box between them.  A node may also tell the sign of the value of a unit before its
    activation: each execution on an input of its box has z ≤ 0 there, or z ≥ 0, and its parts have the executions of
    either kind.  On a leaf no outputs are in the polytope, by linear bounds of its rows (`fpsmt.networks.relaxation`)
    or by the bounds of each output (`fpsmt.networks.bounds`).  Bounds of the values of a box hold for its parts.  A
    query whose box has no value of the format has nothing to prove.
    """
    if not isinstance(claim, Safe):
        raise EvidenceError(f"splits of the inputs do not speak about {claim.kind}")
    trees = data["trees"]
    if not isinstance(trees, list) or len(trees) != len(claim.safety.queries):
        raise UsageError(f"the claim has {len(claim.safety.queries)} queries, and evidence is trees for each")
    leaves = 0
    try:
        relaxation = Relaxation(claim.network, claim.executions)
        for k, (query, texts) in enumerate(zip(claim.safety.queries, trees, strict=True)):
            box = ends_of(claim, query)
            if box is None:
                continue
            parts = parts_of(query) if isinstance(texts, list) else [query]
            texts = texts if isinstance(texts, list) else [texts]
            if len(parts) != len(texts):
                raise UsageError(f"query {k} has {len(parts)} polytopes, and evidence is one tree for each, or for all")
            for part, text in zip(parts, texts, strict=True):
                found = _covered(claim, part, relaxation, read_tree(text), *box)
                if isinstance(found, Open):
                    return Open(f"query {k}: {found.reason}")
                leaves += found
    except Unsupported as reason:
        return Open(str(reason))
    trusted = (VECTOR, BALLS) if claim.network.of_kind(Activation) else (VECTOR,)
    return Holds({"queries": len(trees), "boxes": leaves}, trusted)


def parts_of(query: Query) -> list[Query]:
    """A query for each polytope."""
    return [replace(query, unsafe=(polytope,)) for polytope in query.unsafe]


def ends_of(claim: Safe | Agree, query: Query) -> tuple[Array, Array] | None:
    """The box's ends in the input's format, (1, inputs) each; None when a side has no value of it."""
    pairs = query.floats(claim.network.input.format)
    if pairs is None:
        return None
    low, high = (to_carrier([pair[side] for pair in pairs]) for side in (0, 1))
    return np.asarray(low, dtype=np.float64)[None] + 0.0, np.asarray(high, dtype=np.float64)[None] + 0.0


@dataclass(frozen=True)
class Boxes:
    """Boxes that wait: their nodes, ends, the signs of units told (boxes, any number), −1 for none; the unit whose sign
    tells each from the box that it is a part of, −1 where a side does; and bounds that hold for that box."""

    node: NDArray[np.int64]
    low: Array
    high: Array
    signs: NDArray[np.int64]
    unit: NDArray[np.int64]
    known: Bounds | None = None

    def take(self, which: NDArray[np.intp]) -> Boxes:
        """Some of them."""
        known = None if self.known is None else (self.known[0][which], self.known[1][which])
        return Boxes(
            self.node[which], self.low[which], self.high[which], self.signs[which], self.unit[which], known
        )

    def and_those(self, others: Boxes) -> Boxes:
        """Both, whose bounds are known, or unknown."""
        width = max(self.signs.shape[1], others.signs.shape[1])
        signs = [np.pad(b.signs, ((0, 0), (0, width - b.signs.shape[1])), constant_values=-1) for b in (self, others)]
        node, unit = np.concatenate([self.node, others.node]), np.concatenate([self.unit, others.unit])
        low, high = np.concatenate([self.low, others.low]), np.concatenate([self.high, others.high])
        known = None
        if self.known is not None or others.known is not None:
            assert self.known is not None and others.known is not None
            bottom, top = (np.concatenate([self.known[k], others.known[k]]) for k in (0, 1))
            known = bottom, top
        return Boxes(node, low, high, np.concatenate(signs), unit, known)

    def state(self, relaxation: Relaxation) -> State:
        """Of linear bounds: a sign changes only those of later steps."""
        fresh = None if self.known is None else relaxation.after(self.unit)
        return relaxation.state(self.low, self.high, relaxation.signed(self.known, self.signs), fresh)


def whole(low: Array, high: Array) -> Boxes:
    """The box of a query, as node 0."""
    return Boxes(np.zeros(1, np.int64), low.copy(), high.copy(), np.zeros((1, 0), np.int64), np.full(1, -1))


def next_of(waiting: list[Boxes], most: int) -> Boxes:
    """Takes at most so many of the boxes that wait, the last ones first."""
    boxes = waiting.pop()
    while waiting and len(boxes.node) + len(waiting[-1].node) <= most:
        boxes = waiting.pop().and_those(boxes)
    if len(boxes.node) > most:
        waiting.append(boxes.take(np.arange(len(boxes.node) - most)))
        boxes = boxes.take(np.arange(len(boxes.node) - most, len(boxes.node)))
    return boxes


def walk(
    node: Input, units: int, tree: Tree, root: Boxes, examine: Callable[[Boxes, NDArray[np.bool_]], Boxes | Open]
) -> int | Open:
    """Goes through the boxes of a tree, `BOXES` at a time: how many are leaves, or why one of them is not proved.

    `examine` gets boxes and which of them are leaves; it returns why a leaf is not proved, or the boxes with what is
    known of them, as the others are split further.
    """
    waiting = [root]
    while waiting:
        boxes = next_of(waiting, BOXES)
        leaf = tree.inputs[boxes.node] == LEAF
        known = examine(boxes, leaf)
        if isinstance(known, Open):
            return known
        if not leaf.all():
            boxes = known.take(np.flatnonzero(~leaf))
            side = tree.inputs[boxes.node]
            if side.max() >= node.size + units:
                raise UsageError(f"a tree splits side {side.max()}: there are {node.size} inputs and {units} units")
            waiting.append(halved(node, boxes, side, np.concatenate([boxes.node + 1, tree.second[boxes.node]])))
    return int((tree.inputs == LEAF).sum())


def not_proved(boxes: Boxes, good: NDArray[np.bool_]) -> Open:
    """Names the first box that is not good."""
    bad = int(np.flatnonzero(~good)[0])
    return Open(f"a box is not proved: {boxes.low[bad].tolist()[:8]} … {boxes.high[bad].tolist()[:8]}")


def _covered(claim: Safe, query: Query, relaxation: Relaxation, tree: Tree, low: Array, high: Array) -> int | Open:
    """How many leaves were proved, or why one was not."""
    network = claim.network
    rows = [rows_of(p, network.sizes[network.output.name]) for p in query.unsafe]

    def examine(boxes: Boxes, leaf: NDArray[np.bool_]) -> Boxes | Open:
        state = boxes.state(relaxation)
        if leaf.any():
            at = np.flatnonzero(leaf)
            some, part = boxes.take(at), state.part(at)
            tried = [excluded(relaxation, part, r, some.signs).excluded for r in rows]
            good = np.logical_and.reduce([leaf[at], *tried])
            if not good.all():
                good[~good] = excluded_by_values(claim, query, some.low[~good], some.high[~good])
            if not good.all():
                return not_proved(some, good)
        return replace(boxes, known=state.bounds)

    return walk(network.input, relaxation.units, tree, whole(low, high), examine)


def halved(node: Input, boxes: Boxes, side: NDArray[np.int64], nodes: NDArray[np.int64]) -> Boxes:
    """The lower parts of all boxes and then the upper ones, each split on its side, with their nodes."""
    below, above, signs = split_boxes(node, boxes.low, boxes.high, boxes.signs, side)
    known = None if boxes.known is None else (np.tile(boxes.known[0], (2, 1)), np.tile(boxes.known[1], (2, 1)))
    low, high = (np.concatenate([below[k], above[k]]) for k in (0, 1))
    return Boxes(nodes, low, high, signs, np.tile(np.where(side < node.size, -1, side - node.size), 2), known)


def split_boxes(
    node: Input, low: Array, high: Array, signs: NDArray[np.int64], side: NDArray[np.int64]
) -> tuple[tuple[Array, Array], tuple[Array, Array], NDArray[np.int64]]:
    """The lower and the upper parts (low, high) of boxes, each split on its side, and the signs of the lower and then
    of the upper parts; an evidence error for an input of a single value."""
    at = np.flatnonzero(side < node.size)
    of = side[at]
    if not (low[at, of] < high[at, of]).all():
        raise EvidenceError("a tree splits a side that has one value")
    upper, lower = low.copy(), high.copy()
    if len(at):
        lower[at, of], upper[at, of] = halves(node.format, low[at, of], high[at, of])
    if len(at) < len(side):
        told = np.where(side < node.size, -1, 2 * (side - node.size))
        first, second = (np.column_stack([signs, np.where(told < 0, -1, told + k)]) for k in (0, 1))
        signs = np.concatenate([first, second])
    else:
        signs = np.concatenate([signs, signs])
    signs = -np.sort(-signs, axis=1)  # what is empty comes last
    return (low, lower), (upper, high), signs[:, : int((signs >= 0).sum(axis=1).max(initial=0))]
