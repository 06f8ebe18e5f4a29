"""A summation tree from questions about pairs: which terms lie below the node where terms i and j meet.

The answers come from an `Oracle`.  Terms that are known to form a subtree are *elements* of one problem; a question
about two of them names a smaller subtree, which is solved on its own and then stands for its terms as one element,
or says that the two meet at the problem's root.  Problems with more elements than an answer has bits are first cut
near the middle, by a pair whose subtree holds about half of a random sample of the elements.

Nodes may have more than two children.  Two kinds are told apart: below a *truncating* node, everything is lost when
two large terms meet; an *exact* node adds its children without rounding in between, so that only the children of
the two large terms are lost.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from fpsmt.errors import Unsupported

SAMPLES = 8  #: pairs tried for a cut near the middle


class Oracle(Protocol):
    """Answers questions about the tree of a sum."""

    width: int  #: bits of one answer

    def inside(self, i: int, j: int, terms: Sequence[int]) -> set[int]:
        """Those of the terms (not i, j) that are lost when large opposite terms at i and j meet."""
        ...


class Contradiction(Unsupported):
    """The answers fit no tree."""


@dataclass(eq=False)
class Node:
    """A node of the tree found: no children for a leaf; `term` is one of the terms below it."""

    term: int
    children: list[Node] = field(default_factory=list)
    exact: bool = False  #: more than two children, added without rounding in between
    last: int = -1  #: the largest term below it, as far as known

    def __post_init__(self) -> None:
        self.last = max([self.term, self.last, *(child.last for child in self.children)])

    @property
    def witness(self) -> int | None:
        """A term below another child than `term`'s."""
        return self.children[1].term if self.children else None


Problem = tuple[list[Node], list[Node]]
Solving = Generator[Problem, Node, Node]


def build(oracle: Oracle, n: int, seed: int = 0) -> Node:
    """The tree over terms 0…n−1 that the oracle's answers describe.

    Raises `Contradiction` when they fit no tree; n ≥ 1.  Questions asked: about 1.2 n for the usual orders and
    answers of 24 bits, n·log₂(n)/width more for large n.

    >>> class LeftToRight:
    ...     width = 24
    ...     def inside(self, i, j, terms):
    ...         return {k for k in terms if k < max(i, j)}
    >>> root = build(LeftToRight(), 3)
    >>> [child.term for child in root.children], [child.term for child in root.children[0].children]
    ([0, 2], [0, 1])
    """
    leaves = [Node(i) for i in range(n)]
    builder = _Builder(oracle, Random(seed))
    stack: list[Solving] = [builder.solve(leaves, [])]
    answer: Node | None = None
    while True:  # a problem that needs another one solved waits on the stack: trees may be deep
        try:
            problem = next(stack[-1]) if answer is None else stack[-1].send(answer)
        except StopIteration as stop:
            stack.pop()
            answer = stop.value
            if not stack:
                assert answer is not None
                return answer
        else:
            stack.append(builder.solve(*problem))
            answer = None


class _Builder:
    def __init__(self, oracle: Oracle, rng: Random) -> None:
        self.oracle, self.rng = oracle, rng
        self.room = max(1, oracle.width - 2)  # two bits are for the witnesses of the pair

    def solve(self, elements: list[Node], apart: list[Node]) -> Solving:
        """The node whose children the elements, or subtrees of them, are.

        `apart` are elements that are known to meet at the root, each with each other one.
        """
        if len(elements) == 1:
            return elements[0]
        state = _State(elements, apart)
        while state.rest and len(state.elements) > (2 if len(state.classes) > 1 else 1):
            if len(state.elements) == 2 and not any(e.children for e in state.elements):
                break  # two leaves meet at their root
            a, b, lost = self.ask(state)
            partial = [e.children != [] and e.witness not in lost for e in (a, b)]
            cluster = [e for e in state.elements if e is a or e is b or e.term in lost]
            if any(partial):
                yield from self.join(state, (a, b) if partial[0] else (b, a), all(partial), cluster)
            elif len(cluster) == len(state.elements):
                state.separate(a, b)
            else:
                state.contract(cluster, (yield cluster, [a, b]))
        if len(state.elements) == 1:
            return state.elements[0]
        return Node(state.elements[0].term, list(state.elements))

    def join(self, state: _State, pair: tuple[Node, Node], both: bool, cluster: list[Node]) -> Solving:
        """The terms below `node` did not all get lost: it adds `other` as well, in the same exact addition."""
        node, other = pair
        if both:
            node.children += other.children
            gone = [other]
        else:
            gone = [e for e in cluster if e is not node]
            node.children.append(other if len(gone) == 1 else (yield gone, []))
        node.exact = True
        state.remove(gone)
        return node

    def ask(self, state: _State) -> tuple[Node, Node, set[int]]:
        """A pair, and the terms of the elements and witnesses that are lost when it meets."""
        if len(state.elements) - 2 <= self.room:
            a, b = state.next_pair()
            return a, b, self.lost(a, b, [e for e in state.elements if e is not a and e is not b])
        best: tuple[int, Node, Node, list[Node], set[int]] | None = None
        for _ in range(SAMPLES):
            a, b = state.random_pair(self.rng)
            others = [e for e in state.elements if e is not a and e is not b]
            sample = self.rng.sample(others, self.room)
            lost = self.lost(a, b, sample)
            inside = sum(e.term in lost for e in sample)
            balance = min(inside, self.room - inside)
            if best is None or balance > best[0]:
                best = (balance, a, b, sample, lost)
            if 5 * balance >= self.room:
                break
        assert best is not None
        _, a, b, sample, lost = best
        known = {id(e) for e in (a, b, *sample)}
        return a, b, lost | self.lost(a, b, [e for e in state.elements if id(e) not in known], witnesses=False)

    def lost(self, a: Node, b: Node, others: Sequence[Node], witnesses: bool = True) -> set[int]:
        terms = [e.term for e in others]
        if witnesses:
            terms += [e.witness for e in (a, b) if e.witness is not None]
        return self.oracle.inside(a.term, b.term, terms)


class _State:
    """The elements of one problem; `classes` are known to meet at the root pairwise, `rest` is not settled yet."""

    def __init__(self, elements: list[Node], apart: list[Node]) -> None:
        self.elements = list(elements)
        self.classes = list(apart)
        self.rest = [e for e in elements if all(e is not a for a in apart)]
        self.tested: dict[Node, list[Node]] = {}  # element of rest -> classes that it is apart from

    def untested(self, b: Node) -> list[Node]:
        return [c for c in self.classes if c not in self.tested.get(b, [])]

    def next_pair(self) -> tuple[Node, Node]:
        if not self.classes:
            return self.rest[0], self.rest[1]
        pairs = [(c, b) for b in (self.rest[0], self.rest[-1]) for c in self.untested(b)]
        return min(pairs, key=lambda pair: min(abs(pair[0].term - pair[1].term), abs(pair[0].last - pair[1].term)))

    def random_pair(self, rng: Random) -> tuple[Node, Node]:
        if not self.classes:
            a, b = rng.sample(self.rest, 2)
            return a, b
        b = rng.choice(self.rest)
        return rng.choice(self.untested(b)), b

    def separate(self, a: Node, b: Node) -> None:
        """a and b meet at the root."""
        if not self.classes:
            self.classes = [a, b]
            self.rest = [e for e in self.rest if e is not a and e is not b]
            return
        self.tested.setdefault(b, []).append(a)
        if not self.untested(b):
            self.classes.append(b)
            self.rest.remove(b)

    def contract(self, cluster: list[Node], node: Node) -> None:
        """The cluster becomes one element."""
        inside = {id(e) for e in cluster}
        classes = [c for c in self.classes if id(c) in inside]
        tested = {id(c): c for e in cluster for c in self.tested.get(e, [])}
        if len(classes) > 1 or (classes and id(classes[0]) in tested):
            raise Contradiction("terms that meet at the root of a subtree were found together below it")
        first = self.elements.index(cluster[0])
        self.remove(cluster)
        self.elements.insert(first, node)
        if classes:
            self.classes.append(node)
        else:
            self.rest.insert(0, node)
            self.tested[node] = list(tested.values())

    def remove(self, gone: list[Node]) -> None:
        out = {id(e) for e in gone}
        self.elements = [e for e in self.elements if id(e) not in out]
        self.classes = [e for e in self.classes if id(e) not in out]
        self.rest = [e for e in self.rest if id(e) not in out]
