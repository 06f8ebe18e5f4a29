"""The tree of splits that a search grows: at any moment it is text, from which the search goes on.

The text is that of `fpsmt.kernel.rules.safety.tree_text`, with `OPEN` at the nodes that are neither split nor proved.
A text that was saved is not trusted: the rule verifies every box of the whole tree in the end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import UsageError
from fpsmt.kernel.rules.safety import LEAF, MOST_NODES, Boxes, halved, next_of, read_nodes, tree_of, tree_text, whole
from fpsmt.networks.nodes import Input
from fpsmt.networks.relaxation import Array

OPEN = LEAF - 2
BATCH = 512  #: boxes whose bounds are computed at a time
MOST_OPEN = 1 << 25  #: ends of open boxes that are held

Ints = NDArray[np.int64]


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
        self, node: Input, units: int, low: Array, high: Array, known: Callable[[Boxes], Boxes]
    ) -> list[Boxes]:
        """The open nodes, below a root with these ends, with the bounds that are known of the box above each: `known`
        adds those of boxes.  Usage errors, and evidence errors of `split_boxes`, for a tree that does not fit the
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
        found, stack = [], [whole(low, high).take(np.flatnonzero(wanted[:1]))]
        while stack:
            boxes = next_of(stack, BATCH)
            open_ = side[boxes.node] == OPEN
            if open_.any():
                found.append(boxes.take(np.flatnonzero(open_)))
            if not open_.all():
                boxes = known(boxes.take(np.flatnonzero(~open_)))
                nodes = boxes.node
                halves = halved(node, boxes, side[nodes], np.concatenate([lower[nodes], upper[nodes]]))
                stack.append(halves.take(np.flatnonzero(wanted[halves.node])))
        return found
