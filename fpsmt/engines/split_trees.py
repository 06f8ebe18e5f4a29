"""The tree of splits that a search grows: at any moment it is text, from which the search goes on.

The text is that of `fpsmt.kernel.rules.safety.tree_text`, with `OPEN` at the nodes that are neither split nor proved.
A text that was saved is not trusted: the rule verifies every box of the whole tree in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import UsageError
from fpsmt.kernel.rules.safety import LEAF, MOST_NODES, read_nodes, split_boxes, tree_of, tree_text
from fpsmt.networks.nodes import Input
from fpsmt.networks.relaxation import Array, Bounds

OPEN = LEAF - 2
BATCH = 512  #: boxes whose bounds are computed at a time
MOST_OPEN = 1 << 25  #: ends of open boxes that are held

Ints = NDArray[np.int64]


@dataclass
class Block:
    """Boxes that wait: their nodes, ends, and the bounds known of the box above each."""

    node: Ints
    low: Array
    high: Array
    known: Bounds | None
    signs: Ints  #: of units, as `fpsmt.networks.relaxation` numbers them

    def take(self, which: NDArray[Any]) -> Block:
        known = None if self.known is None else [(a[which], b[which]) for a, b in self.known]
        return Block(self.node[which], self.low[which], self.high[which], known, self.signs[which])

    def alike(self, other: Block) -> bool:
        """Whether bounds are known of both, or of neither."""
        return (self.known is None) == (other.known is None)

    def halves(self, of: Input, side: Ints, nodes: Ints) -> Block:
        """The lower halves and then the upper halves, which become these nodes; what is known of the boxes themselves
        is known of them."""
        (la, ha), (lb, hb), signs = split_boxes(of, self.low, self.high, self.signs, side)
        known = None
        if self.known is not None:
            known = [(np.concatenate([a, a]), np.concatenate([b, b])) for a, b in self.known]
        return Block(nodes, np.concatenate([la, lb]), np.concatenate([ha, hb]), known, signs)


def take_last(stack: list[Block], most: int) -> Block:
    """Takes at most so many of the boxes that came last."""
    block = stack.pop()
    if len(block.node) > most:
        stack.append(block.take(np.arange(len(block.node) - most)))
        return block.take(np.arange(len(block.node) - most, len(block.node)))
    while stack and len(block.node) + len(stack[-1].node) <= most and block.alike(stack[-1]):
        block = joined(stack.pop(), block)
    return block


def joined(one: Block, two: Block) -> Block:
    """The boxes of two blocks that are alike."""
    pairs = [(one.node, two.node), (one.low, two.low), (one.high, two.high)]
    node, low, high = (np.concatenate(p) for p in pairs)
    width = max(one.signs.shape[1], two.signs.shape[1])
    signs = np.concatenate(
        [np.pad(b.signs, ((0, 0), (0, width - b.signs.shape[1])), constant_values=-1) for b in (one, two)]
    )
    known = None
    if one.known is not None and two.known is not None:
        both = zip(one.known, two.known, strict=True)
        known = [(np.concatenate([a, c]), np.concatenate([b, d])) for (a, b), (c, d) in both]
    return Block(node, low, high, known, signs)


class GrowingTree:
    """Nodes are numbered as they are made, the root is 0; each is open until it is split or proved."""

    def __init__(self) -> None:
        self.count = 1
        self._splits: list[tuple[Ints, Ints, Ints, Ints]] = []  #: nodes, their sides, lower and upper halves
        self._proved: list[Ints] = []

    @property
    def full(self) -> bool:
        """Whether another split might make a tree that is not read."""
        return self.count > MOST_NODES - (1 << 16)

    def prove(self, nodes: Ints) -> None:
        self._proved.append(nodes)

    def split(self, nodes: Ints, sides: Ints) -> Ints:
        """The numbers of the lower halves and then of the upper halves."""
        halves = np.arange(self.count, self.count + 2 * len(nodes))
        self.count += 2 * len(nodes)
        self._splits.append((nodes, sides, halves[: len(nodes)], halves[len(nodes) :]))
        return halves

    def _arrays(self) -> tuple[Ints, Ints, Ints]:
        """The side of each node, or `LEAF` or `OPEN`; its lower and its upper half."""
        side = np.full(self.count, OPEN)
        lower, upper = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        for nodes, sides, one, two in self._splits:
            side[nodes], lower[nodes], upper[nodes] = sides, one, two
        for nodes in self._proved:
            side[nodes] = LEAF
        return side, lower, upper

    def text(self) -> str:
        side, lower, upper = (a.tolist() for a in self._arrays())
        out, todo = [], [0]
        while todo:
            node = todo.pop()
            out.append(side[node])
            if side[node] < OPEN:
                todo += (upper[node], lower[node])
        return tree_text(np.array(out))

    @staticmethod
    def read(text: object) -> GrowingTree:
        """A usage error for what is not the text of one whole tree."""
        side = read_nodes(text)
        tree = tree_of(np.where(side == OPEN, LEAF, side))
        made = GrowingTree()
        made.count = len(side)
        inner, proved = np.flatnonzero(side < OPEN), np.flatnonzero(side == LEAF)
        made._splits.append((inner, side[inner], inner + 1, tree.second[inner]))
        made._proved.append(proved)
        return made

    def open_boxes(
        self, node: Input, units: int, low: Array, high: Array, bounds: Callable[[Block], Bounds | None]
    ) -> list[Block]:
        """The open nodes, below a root with these ends, with the bounds that are known of the box above each; `bounds`
        computes those of boxes.  Usage errors, and evidence errors of `split_boxes`, for a tree that does not fit the
        network."""
        side, lower, upper = self._arrays()
        wanted, above = np.zeros(len(side), dtype=bool), np.full(len(side), -1)
        inner = np.flatnonzero(side < OPEN)
        above[lower[inner]], above[upper[inner]] = inner, inner
        at = np.flatnonzero(side == OPEN)
        if len(at) * node.size > MOST_OPEN or (side[inner] >= node.size + units).any():
            raise UsageError("the tree of splits is of another network, or has too many open boxes")
        while len(at):
            wanted[at] = True
            at = above[at]
            at = np.unique(at[(at >= 0) & ~wanted[at]])
        root = Block(np.zeros(1, np.int64), low, high, None, np.zeros((1, 0), np.int64))
        found, stack = [], [root.take(wanted[:1])]
        while stack:
            block = take_last(stack, BATCH)
            open_ = side[block.node] == OPEN
            if open_.any():
                found.append(block.take(open_))
            block = block.take(~open_)
            if len(block.node):
                block.known = bounds(block)
                nodes = block.node
                halves = block.halves(node, side[nodes], np.concatenate([lower[nodes], upper[nodes]]))
                stack.append(halves.take(wanted[halves.node]))
        return found
