"""Branch and bound over boxes of inputs: which boxes wait, who examines them, what is kept of it all.

Boxes are examined in several processes: what becomes of one does not depend on the others, so that the number of
processes changes nothing but the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.properties import safe_counterexample
from fpsmt.engines.engine import Options
from fpsmt.engines.pool import Died, Pool
from fpsmt.engines.split_trees import BATCH, GrowingTree
from fpsmt.engines.unsafe_executions import Found
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats.vector import ordinals
from fpsmt.kernel import Unknown, Verdict
from fpsmt.kernel.rules.safety import Boxes, halved, next_of, read_tree
from fpsmt.networks.nodes import Input
from fpsmt.networks.relaxation import Array, Bounds

FEW = 3  #: values on a side of a small box
ALONE = 64  #: so few boxes are not worth other processes
MOST_DEATHS = 8  #: of workers, before the search gives up
PAUSE = 10.0  #: seconds between states that are kept, at least
SELDOM = 20.0  #: how many times as long as keeping a state the pause after it is, at least

Unsafe = TypeVar("Unsafe")


@dataclass
class Progress:
    """What a search has done; `volume` is the share of the box of the present query that is proved, where a
    sign halves it."""

    boxes: int = 0
    leaves: int = 0
    volume: float = 0.0


@dataclass
class Step(Generic[Unsafe]):
    """What became of a block: its `proved` boxes, and of those `left` the sides on which they are split and what is
    known of them; or something unsafe, or why nothing can be done."""

    proved: NDArray[np.intp]
    volume: float
    left: NDArray[np.intp]
    side: NDArray[np.int64] | None = None
    known: Bounds | None = None
    unsafe: Unsafe | None = None
    reason: str = ""


class Examiner(Protocol[Unsafe]):
    """What examines the boxes of one query: nothing in it changes."""

    box: tuple[Array, Array] | None  #: the ends of the query's box, None when it holds no input
    trivial: bool  #: whether nothing is to be proved

    def shares(self, block: Boxes) -> Array:
        """Of the volume of the query's box."""

    def known(self, block: Boxes) -> Boxes:
        """The same boxes, with the bounds that are known of their parts."""

    def step(self, block: Boxes) -> Step[Unsafe]:
        """What becomes of boxes."""


@dataclass(frozen=True)
class Sides:
    """The sides of a query's box, from one end to the other."""

    wide: NDArray[np.bool_]
    width: Array  #: 1 where a side has one value

    @classmethod
    def of(cls, low: Array, high: Array) -> Sides:
        wide = high > low
        return cls(wide, np.where(wide, high - low, 1.0))

    def shares(self, block: Boxes) -> Array:
        """Of the volume of the query's box, where a sign halves it."""
        shares = np.where(self.wide, (block.high - block.low) / self.width, 1.0).prod(axis=1)
        return np.asarray(shares * 0.5 ** (block.signs >= 0).sum(axis=1))


def small(node: Input, block: Boxes) -> NDArray[np.bool_]:
    """Which boxes have at most `FEW` values on each side."""
    return np.asarray((ordinals(node.format, block.high) - ordinals(node.format, block.low) < FEW).all(axis=1))


class Splitting(Generic[Unsafe]):
    """Branch and bound for all queries of a claim: the boxes that wait are here, workers examine them.

    `search` makes the examiner of a query; the trees split the inputs and `units` units.
    """

    def __init__(
        self, queries: int, node: Input, units: int, search: Callable[[int], Examiner[Unsafe]], options: Options
    ) -> None:
        self.queries, self.node, self.units, self.make, self.options = queries, node, units, search, options
        self.done = Progress()
        self.trees: list[str] = []  #: of the queries that are proved
        self.tree: GrowingTree | None = None  #: of the one that is being proved
        self.searches: dict[int, Examiner[Unsafe]] = {}
        self.pool: Pool[tuple[int, Boxes], Step[Unsafe]] = Pool(self._examined, options.jobs)
        self.kept, self.pause = time.monotonic(), PAUSE

    def run(self, deadline: float) -> list[str] | str | tuple[Unsafe]:
        """The texts of the trees, or why there are none, or an input and schedules that are unsafe."""
        try:
            while len(self.trees) < self.queries:
                answer = self._query(len(self.trees), deadline)
                if isinstance(answer, tuple):
                    return answer
                if answer:
                    self.keep()
                    return answer
            self.keep()
            return self.trees
        except BaseException:
            self.pool.kill()
            self.keep()
            raise
        finally:
            self.pool.kill()

    def _query(self, number: int, deadline: float) -> str | tuple[Unsafe]:
        """Adds the tree of a query; else why it does not, or something unsafe."""
        search = self._search(number)
        stack = self._start(search)
        self.tree = tree = self.tree or GrowingTree()
        self.done.volume = 1.0 - sum(float(search.shares(block).sum()) for block in stack)
        last, deaths = time.monotonic(), 0
        while stack or self.pool.busy:
            why = ""
            for block, step in self._made(number, stack):
                if isinstance(step, Died):
                    stack.append(block)
                    deaths += 1
                    self.options.report(f"splits: {step}; its boxes wait again")
                    why = str(step) if deaths > MOST_DEATHS else ""
                    continue
                if step.unsafe is not None:
                    return (step.unsafe,)
                why = why or step.reason
                self.done.boxes += len(block.node)
                self.done.leaves += len(step.proved)
                self.done.volume += step.volume
                tree.prove(block.node[step.proved])
                if step.side is not None:
                    left = replace(block.take(step.left), known=step.known)
                    stack.append(halved(self.node, left, step.side, tree.split(left.node, step.side)))
            if tree.full:
                why = why or "there are too many boxes"
            if time.monotonic() > deadline:
                why = why or "the time limit was passed"
            if why:
                return f"{why}; {self.about()}"
            if time.monotonic() - last > 1.0:
                last = time.monotonic()
                waiting = sum(len(b.node) for b in [*stack, *(b for _, b in self.pool.running.values())])
                self.options.report(f"splits: {self.about()}, {waiting} wait")
            if time.monotonic() - self.kept > self.pause:
                self.keep()
        text, self.tree = tree.text(), None
        self.trees.append(text)
        return ""

    def about(self) -> str:
        """What is done, in words."""
        done, queries = len(self.trees), self.queries
        if done == queries:
            return f"boxes for all {queries} queries are found, to be verified"
        share = f"{self.done.volume:.4%} of the volume of query {done + 1} of {queries} is proved"
        return f"{share}, by {self.done.leaves} of {self.done.boxes} boxes"

    def _start(self, search: Examiner[Unsafe]) -> list[Boxes]:
        """The boxes that wait at first."""
        root = search.box
        if root is None or search.trivial:
            self.tree = GrowingTree()
            self.tree.prove(np.zeros(1, np.int64))
        if self.tree is None:
            self.tree = GrowingTree()
        if root is None:
            return []
        return self.tree.open_boxes(self.node, self.units, *root, search.known)

    def _made(self, number: int, stack: list[Boxes]) -> list[tuple[Boxes, Step[Unsafe] | Died]]:
        """Gives boxes to workers that are free, and what has come back; a few boxes are examined here."""
        waiting = sum(len(block.node) for block in stack)
        if not self.pool.busy and (self.options.jobs < 2 or waiting <= ALONE):
            block = next_of(stack, BATCH)
            return [(block, self._examined((number, block)))]
        size = min(BATCH, max(ALONE // 2, -(-waiting // self.options.jobs)))
        while stack and self.pool.free:
            self.pool.send((number, next_of(stack, size)))
        return [(block, step) for (_, block), step in self.pool.receive(0.5)]

    def _examined(self, task: tuple[int, Boxes]) -> Step[Unsafe]:
        return self._search(task[0]).step(task[1])

    def _search(self, number: int) -> Examiner[Unsafe]:
        if number not in self.searches:
            self.searches = {number: self.make(number)}
        return self.searches[number]

    # -- states -------------------------------------------------------------------------------------------

    def keep(self) -> None:
        """Gives away what has been done, seldom enough to take little time."""
        if self.options.keep is None:
            return
        start = time.monotonic()
        growing = None if self.tree is None else self.tree.text()
        self.options.keep({"trees": list(self.trees), "open": growing, "about": self.about()})
        self.kept = time.monotonic()
        self.pause = max(PAUSE, SELDOM * (self.kept - start))

    def take_up(self, saved: Json) -> None:
        """Goes on from what was kept; a usage error when it does not fit the claim."""
        try:
            trees, growing = saved["trees"], saved["open"]
            for text in trees:
                read_tree(text)
            if len(trees) > self.queries:
                raise UsageError(f"it has {len(trees)} queries, the claim {self.queries}")
            self.trees = list(trees)
            self.tree = None if growing is None else GrowingTree.read(growing)
            if self.tree is not None:
                self._start(self._search(len(trees)))
        except (UsageError, EvidenceError, KeyError, TypeError, IndexError) as error:
            raise UsageError(f"the saved state of the search cannot be gone on with: {error}") from None


def concluded(
    claim: Claim, run: Splitting[Found], name: str, rule: str, evidence: Callable[[list[str]], Json], deadline: float,
    again: Callable[[Options], Verdict],
) -> Verdict | str:  # fmt: skip
    """Runs a search, and has the rule verify its trees, or what is unsafe replayed; or why there is neither.

    Where a saved state was gone on with and its trees prove nothing, `again` decides the claim from the beginning.
    """
    options, answer = run.options, run.run(deadline)
    if isinstance(answer, str):
        return answer
    if isinstance(answer, tuple):
        return kernel.refute(claim, safe_counterexample(*answer[0]))
    options.report(f"{name}: {run.done.leaves} boxes found; verifying them")
    try:
        verdict = kernel.apply(rule, claim, evidence(answer))
        if options.saved is None or not isinstance(verdict, Unknown):
            return verdict
    except (UsageError, EvidenceError):
        if options.saved is None:
            raise
    options.report(f"{name}: what was saved does not prove what it says; starting over")
    return again(replace(options, saved=None).within(deadline - time.monotonic()))
