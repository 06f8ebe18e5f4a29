"""Sums whose order is a variable of the query.

A sum becomes a term with choice variables; a model's choices are read back as a summation tree.  Two encodings:

* `ordered_sum`: a pool of the n terms and n − 1 steps.  Each step takes two values out of the pool, which ones is a
  choice, and puts their rounded sum back.  Neighbouring steps that do not depend on each other come in a fixed order:
  exchanging such a pair makes the list of chosen places smaller, so every tree keeps a description and few have
  several.  For the families ``any``, ``sequential`` and ``contiguous``; grows like n³.
* `enumerated_sum`: every schedule of the execution, with shared parts, and one choice among them.  Any family, any
  fma and bias rule, but (2n−3)!! trees for ``any``: up to about six terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from fpsmt import terms as t
from fpsmt.errors import InternalError, Unsupported, UsageError
from fpsmt.floats import Context
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.orders import AnyOrder, Contiguous, Sequential
from fpsmt.networks.trees import Tree, canonical, steps
from fpsmt.terms import Term
from fpsmt.terms.evaluate import Value
from fpsmt.terms.terms import ChoiceSort

Product = tuple[Term, Term]
MAX_ENUMERATED = 20_000


@dataclass(frozen=True)
class FreeSum:
    """A sum over free schedules: `value` is its result in the node's context.

    `value` means something only where `valid` holds: assert it together with what is asked.  `schedule` reads the
    tree off the values of the choice variables.
    """

    value: Term
    valid: Term
    choices: tuple[Term, ...]
    schedule: Callable[[Mapping[str, Value]], Tree]


class TreeTerms:
    """The terms of summation trees over given summands, shared between trees.

    What is computed is what `networks.sums.evaluate_tree` computes.
    """

    def __init__(
        self,
        ctx: Context,
        summands: Sequence[Term] | Sequence[Product],
        bias: Term | None = None,
        execution: Execution = PAPER,
    ) -> None:
        kinds = {isinstance(s, tuple) for s in summands}
        if len(kinds) > 1:
            raise UsageError("the summands are terms, or all of them pairs (w, x) of terms")
        if not summands and bias is None:
            raise UsageError("an empty sum has no tree")
        self.ctx, self.execution, self.bias = ctx, execution, bias
        self.products: list[Product] = list(summands) if kinds == {True} else []  # type: ignore[arg-type]
        self.plain: list[Term] = [] if self.products else list(summands)  # type: ignore[arg-type]
        self.n = len(summands)
        self.accumulator = execution.sum_context(ctx)
        self.exact = bool(self.products) and execution.products == "exact"

    def leaf(self, index: int) -> Term:
        """A leaf's value in the accumulator's format."""
        if index == self.n:
            if self.bias is None:
                raise UsageError(f"leaf {index} is beyond the {self.n} summands, and there is no bias")
            value = self.bias
        elif self.products:
            value = t.mul(self.execution.product_context(self.ctx) or self.accumulator, *self.products[index])
        else:
            value = self.plain[index]
        return value if value.format == self.accumulator.format else t.cast(self.accumulator, value)

    def unrounded(self, tree: Tree) -> Product | None:
        """The factors of a leaf whose product enters the addition exactly."""
        return self.products[tree] if self.exact and isinstance(tree, int) and tree < self.n else None

    def add(self, left: Term, right: Term) -> Term:
        return t.add(self.accumulator, left, right)

    def result(self, value: Term) -> Term:
        """In the node's context."""
        return value if self.accumulator == self.ctx else t.cast(self.ctx, value)

    def tree(self, tree: Tree) -> Term:
        """The value of a tree, before the final cast."""
        program = steps(tree)
        values: list[Term | None] = []
        factors: list[Product | None] = []
        for op, a, b in program:
            if op == "leaf":
                pair = self.unrounded(a)
                factors.append(self.products[a] if self.products and a < self.n else None)
                values.append(None if pair is not None and len(program) > 1 else self.leaf(a))
                continue
            factors.append(None)
            if op == "fma":
                values.append(t.fma(self.accumulator, *_known(factors[a]), _known(values[b])))
                continue
            left, right = values[a], values[b]
            if left is None and right is None:
                values.append(t.add_products(self.accumulator, *_known(factors[a]), *_known(factors[b])))
            elif left is None:
                values.append(t.fma(self.accumulator, *_known(factors[a]), _known(right)))
            elif right is None:
                values.append(t.fma(self.accumulator, *_known(factors[b]), left))
            else:
                values.append(self.add(left, right))
        return _known(values[-1])


T = TypeVar("T")


def _known(value: T | None) -> T:
    assert value is not None
    return value


def enumerated_sum(
    ctx: Context,
    summands: Sequence[Term] | Sequence[Product],
    bias: Term | None = None,
    execution: Execution = PAPER,
    name: str = "order",
) -> FreeSum:
    """One choice among all schedules; raises `Unsupported` beyond 20,000 of them.

    >>> from fpsmt.floats import context, float16
    >>> from fpsmt.terms import var
    >>> free = enumerated_sum(context("float16"), [var(n, float16) for n in "abc"])
    >>> free.schedule({"order": 1})
    ((0, 1), 2)
    """
    terms = TreeTerms(ctx, summands, bias, execution)
    trees: list[Tree] = []
    for tree in execution.schedules(terms.n, bias is not None, bool(terms.products)):
        trees.append(tree)
        if len(trees) > MAX_ENUMERATED:
            raise Unsupported(
                f"{terms.n} terms have more than {MAX_ENUMERATED} schedules under {execution}: use ordered_sum"
            )
    if len(trees) == 1:
        return FreeSum(terms.result(terms.tree(trees[0])), t.TRUE, (), lambda values: trees[0])
    choice = t.var(name, ChoiceSort(len(trees)))
    value = terms.result(t.choose(choice, [terms.tree(tree) for tree in trees]))
    return FreeSum(value, t.TRUE, (choice,), lambda values: trees[_choice(values, choice)])


def _choice(values: Mapping[str, Value], choice: Term) -> int:
    value = values[choice.data]
    assert isinstance(value, int)
    return value


# -- the pool -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Slot:
    """A value in the pool: its rounded value, and its factors where it may be a product that is not rounded."""

    value: Term
    is_product: Term
    factors: Product | None


@dataclass(frozen=True)
class _Step:
    pairs: tuple[tuple[int, int], ...]
    choice: Term | None
    fuse: Term | None


def ordered_sum(
    ctx: Context,
    summands: Sequence[Term] | Sequence[Product],
    bias: Term | None = None,
    execution: Execution = PAPER,
    name: str = "order",
) -> FreeSum:
    """The sum with its schedule as choice variables ``name.0``, ``name.1``, …

    Families other than ``any``, ``sequential`` and ``contiguous``, and sums of fewer than three values, are enumerated.
    """
    terms = TreeTerms(ctx, summands, bias, execution)
    order = execution.order
    inside = bias is not None and execution.bias != "last"
    count = terms.n + inside
    network = isinstance(order, AnyOrder) or (isinstance(order, Sequential | Contiguous) and not inside)
    if not network or count < 3:
        return enumerated_sum(ctx, summands, bias, execution, name)
    return _Pool(terms, order, inside, name).run()


class _Pool:
    """Builds the steps and remembers what is needed to read a tree off the choices."""

    def __init__(self, terms: TreeTerms, order: object, bias_inside: bool, name: str) -> None:
        self.terms = terms
        self.in_place = isinstance(order, Contiguous)
        self.chained = isinstance(order, Sequential)
        self.name = name
        self.bias_inside = bias_inside
        self.rule = terms.execution.fuses(bool(terms.products))
        self.steps: list[_Step] = []
        self.valid: list[Term] = []
        self.choices: list[Term] = []

    def run(self) -> FreeSum:
        terms = self.terms
        slots = [self._leaf(i) for i in range(terms.n + self.bias_inside)]
        while len(slots) > 1:
            slots = self._step(slots)
        value = slots[0].value
        if terms.bias is not None and not self.bias_inside:
            value = terms.add(value, terms.leaf(terms.n))
        return FreeSum(terms.result(value), t.all_of(*self.valid), tuple(self.choices), self.schedule)

    def _leaf(self, index: int) -> _Slot:
        needed = self.rule != "never" or self.terms.exact
        factors = self.terms.products[index] if self.terms.products and needed and index < self.terms.n else None
        return _Slot(self.terms.leaf(index), t.TRUE if factors else t.FALSE, factors)

    def _variable(self, kind: str, size: int) -> Term:
        choice = t.var(f"{self.name}.{kind}{len(self.steps)}", ChoiceSort(size))
        self.choices.append(choice)
        return choice

    def _step(self, slots: list[_Slot]) -> list[_Slot]:
        m = len(slots)
        if self.in_place:
            pairs = [(i, i + 1) for i in range(m - 1)]
        elif self.chained and self.steps:
            pairs = [(i, m - 1) for i in range(m - 1)]
        else:
            pairs = list(combinations(range(m), 2))
        choice = self._variable("pair", len(pairs)) if len(pairs) > 1 else None
        self._in_order(pairs, choice)
        left = self._pick(choice, [slots[i] for i, _ in pairs])
        right = self._pick(choice, [slots[j] for _, j in pairs])
        total, fuse = self._sum(left, right)
        self.steps.append(_Step(tuple(pairs), choice, fuse))
        result = _Slot(total, t.FALSE, None)
        after = [self._kept(list(range(m)), pair, m) for pair in pairs]
        return [self._pick(choice, [result if row[k] == m else slots[row[k]] for row in after]) for k in range(m - 1)]

    def _kept(self, places: list[int], pair: tuple[int, int], new: int) -> list[int]:
        """The pool after a step: old places, and `new` for the sum."""
        i, j = pair
        if self.in_place:
            return [*places[:i], new, *places[j + 1 :]]
        return [place for k, place in enumerate(places) if k not in pair] + [new]

    def _in_order(self, pairs: list[tuple[int, int]], choice: Term | None) -> None:
        """Independent neighbouring steps come in one order."""
        if not self.steps:
            return
        before = self.steps[-1]
        for b, first in enumerate(before.pairs):
            good = [k for k, pair in enumerate(pairs) if self._may_follow(first, pair, len(pairs))]
            if len(good) == len(pairs):
                continue
            if choice is None:
                raise InternalError("the last step of a sum depends on the one before")
            was = t.TRUE if before.choice is None else t.choice_is(before.choice, b)
            self.valid.append(t.implies(was, t.any_of(*(t.choice_is(choice, k) for k in good))))

    def _may_follow(self, first: tuple[int, int], pair: tuple[int, int], count: int) -> bool:
        if self.in_place:
            return pair[0] >= first[0] - 1
        if self.chained:
            return True
        last = (1 + int((1 + 8 * count) ** 0.5)) // 2 - 1  # pairs among last + 1 slots
        return pair[1] == last or pair[0] >= first[0]

    def _pick(self, choice: Term | None, options: Sequence[_Slot]) -> _Slot:
        if choice is None:
            return options[0]
        factored = [slot.factors for slot in options if slot.factors is not None]
        factors = None
        if factored:
            filled = [slot.factors or factored[0] for slot in options]
            factors = t.choose(choice, [w for w, _ in filled]), t.choose(choice, [x for _, x in filled])
        return _Slot(
            t.choose(choice, [slot.value for slot in options]),
            t.choose(choice, [slot.is_product for slot in options]),
            factors,
        )

    def _sum(self, left: _Slot, right: _Slot) -> tuple[Term, Term | None]:
        """The rounded sum of two slots, and the choice of the product that is fused."""
        accumulator = self.terms.accumulator
        plain = self.terms.add(left.value, right.value)
        if left.factors is None and right.factors is None:
            return plain, None
        into_left = plain if right.factors is None else t.fma(accumulator, *right.factors, left.value)
        into_right = plain if left.factors is None else t.fma(accumulator, *left.factors, right.value)
        if self.terms.exact:
            value = t.ite(left.is_product, into_right, t.ite(right.is_product, into_left, plain))
            if left.factors is not None and right.factors is not None:
                both = t.add_products(accumulator, *left.factors, *right.factors)
                value = t.ite(t.all_of(left.is_product, right.is_product), both, value)
            return value, None
        fuse = self._variable("fuse", 3)
        none, of_left, of_right = (t.choice_is(fuse, k) for k in range(3))
        self.valid += [t.implies(of_left, left.is_product), t.implies(of_right, right.is_product)]
        if self.rule == "always":
            self.valid.append(t.implies(none, t.negation(t.any_of(left.is_product, right.is_product))))
        return t.choose(fuse, [plain, into_right, into_left]), fuse

    def schedule(self, values: Mapping[str, Value]) -> Tree:
        """The canonical tree that the choices describe."""
        pool: list[Tree] = list(range(self.terms.n + self.bias_inside))
        for step in self.steps:
            pair = step.pairs[0 if step.choice is None else _choice(values, step.choice)]
            left, right = pool[pair[0]], pool[pair[1]]
            fused = 0 if step.fuse is None else _choice(values, step.fuse)
            node: Tree = ((left, right), ("fma", left, right), ("fma", right, left))[fused]
            pool = [node if place == -1 else pool[place] for place in self._kept(list(range(len(pool))), pair, -1)]
        tree = pool[0]
        if self.terms.bias is not None and not self.bias_inside:
            tree = (tree, self.terms.n)
        return canonical(tree)
