"""All trees of a kind, one by one without repetition, and trees drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, permutations
from math import comb
from random import Random

from fpsmt.errors import UsageError
from fpsmt.networks.trees import Tree, canonical, left_fold


def all_trees(leaves: Sequence[int], most_height: int | None = None) -> Iterator[Tree]:
    """Every tree over these increasing leaves up to commuting, canonical; only those of bounded height if asked.

    There are (2n−3)!! of them without a bound.

    >>> list(all_trees([0, 1, 2]))
    [(0, (1, 2)), ((0, 1), 2), ((0, 2), 1)]
    """
    n = len(leaves)
    if n == 1:
        if most_height is None or most_height >= 0:
            yield leaves[0]
        return
    if most_height is not None and n > 1 << max(most_height, 0):
        return
    below = None if most_height is None else most_height - 1
    room = n if below is None else 1 << min(below, n)
    rest = leaves[1:]
    for size in range(max(1, n - room), min(n - 1, room) + 1):  # of the child with the first leaf
        for chosen in combinations(rest, size - 1):
            others = set(chosen)
            right = [x for x in rest if x not in others]
            for a in all_trees([leaves[0], *chosen], below):
                for b in all_trees(right, below):
                    yield (a, b)


def all_parenthesisations(leaves: Sequence[int]) -> Iterator[Tree]:
    """Every tree that keeps the leaves in place: the Catalan number C(n−1) of them.

    >>> list(all_parenthesisations([0, 1, 2]))
    [(0, (1, 2)), ((0, 1), 2)]
    """
    if len(leaves) == 1:
        yield leaves[0]
    for k in range(1, len(leaves)):
        for a in all_parenthesisations(leaves[:k]):
            for b in all_parenthesisations(leaves[k:]):
                yield (a, b)


def all_left_folds(n: int) -> Iterator[Tree]:
    """The left fold of every permutation of 0…n−1, canonical: n!/2 of them (1 for n = 1)."""
    for order in permutations(range(n)):
        if n == 1 or order[0] < order[1]:
            yield canonical(left_fold(order))


# -- counting ---------------------------------------------------------------------------------------------


def double_factorial(n: int) -> int:
    """n·(n−2)·(n−4)·…; 1 for n ≤ 0."""
    out = 1
    while n > 1:
        out, n = out * n, n - 2
    return out


def catalan(n: int) -> int:
    """The number of binary trees with n inner nodes in place: (2n choose n)/(n+1)."""
    return comb(2 * n, n) // (n + 1)


@cache
def count_of_height(n: int, most_height: int) -> int:
    """How many trees up to commuting over n labelled leaves have at most this height.

    c(1, h) = 1, c(n, 0) = 0 for n > 1, and c(n, h) = Σₖ (n−1 choose k−1)·c(k, h−1)·c(n−k, h−1), where k is
    the size of the child with the first leaf.
    """
    if n == 1:
        return 1
    if n > 1 << max(most_height, 0):
        return 0
    h = min(most_height, n - 1) - 1
    return sum(comb(n - 1, k - 1) * count_of_height(k, h) * count_of_height(n - k, h) for k in range(1, n))


# -- drawing ----------------------------------------------------------------------------------------------


class _Grown:
    """A binary tree that grows by grafting a leaf onto the edge above any node."""

    def __init__(self) -> None:
        self.children: list[tuple[int, int] | None] = [None]
        self.parent = [-1]
        self.root = 0

    def graft(self, at: int, left: bool) -> None:
        """A new leaf and a new inner node: the node takes `at`'s place, with `at` and the leaf below it."""
        leaf, node = len(self.parent), len(self.parent) + 1
        above = self.parent[at]
        self.parent += [node, above]
        self.children += [None, (leaf, at) if left else (at, leaf)]
        if above < 0:
            self.root = node
        else:
            a, b = self.children[above]  # type: ignore[misc]
            self.children[above] = (node, b) if a == at else (a, node)
        self.parent[at] = node

    def tree(self, labels: dict[int, int] | None) -> Tree:
        """As nested tuples; leaves are numbered by `labels`, or from left to right."""
        done: list[Tree] = []
        todo: list[tuple[int, bool]] = [(self.root, False)]
        count = 0
        while todo:
            k, ready = todo.pop()
            pair = self.children[k]
            if pair is None:
                done.append(count if labels is None else labels[k])
                count += 1
            elif ready:
                b, a = done.pop(), done.pop()
                done.append((a, b))
            else:
                todo += [(k, True), (pair[1], False), (pair[0], False)]
        return done[0]


def random_any(n: int, rng: Random) -> Tree:
    """A tree over 0…n−1, canonical, each of the (2n−3)!! with the same probability.

    Leaf k is grafted onto one of the 2k−1 edges of a tree over the leaves before it; every tree arises once.
    """
    grown, labels = _Grown(), {0: 0}
    for k in range(1, n):
        labels[len(grown.parent)] = k
        grown.graft(rng.randrange(2 * k - 1), False)
    return canonical(grown.tree(labels))


def random_parenthesisation(n: int, rng: Random) -> Tree:
    """A tree with the leaves in place, each of the Catalan many with the same probability (Rémy's algorithm)."""
    grown = _Grown()
    for k in range(1, n):
        grown.graft(rng.randrange(2 * k - 1), bool(rng.getrandbits(1)))
    return grown.tree(None)


def random_left_fold(n: int, rng: Random) -> Tree:
    """The left fold of a random permutation, canonical."""
    order = list(range(n))
    rng.shuffle(order)
    return canonical(left_fold(order))


def random_of_height(n: int, most_height: int, rng: Random) -> Tree:
    """A tree of at most this height, canonical.  Every such tree is possible; they are not equally likely."""
    if n > 1 << min(most_height, n.bit_length()):
        least = (n - 1).bit_length()
        raise UsageError(f"no tree over {n} terms has height {most_height} or less: the least is {least}")
    order = list(range(n))
    rng.shuffle(order)
    done: list[Tree] = []
    todo: list[tuple[int, int, int, bool]] = [(0, n, most_height, False)]
    while todo:
        start, count, h, ready = todo.pop()
        if count == 1:
            done.append(order[start])
        elif ready:
            b, a = done.pop(), done.pop()
            done.append((a, b))
        else:
            room = 1 << min(h - 1, n.bit_length())
            k = rng.randint(max(1, count - room), min(count - 1, room))
            todo += [(start, count, h, True), (start + k, count - k, h - 1, False), (start, k, h - 1, False)]
    return canonical(done[0])
