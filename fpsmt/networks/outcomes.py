"""Every reachable result of one sum or dot product, each with a schedule that reaches it.

The set of results of a family is the set of values at the root of a *grammar* of trees: a state stands for the
terms summed so far, a split for the two subtrees of a node.  The values of a state are all roundings of all pairs
of values of its splits.  Equal terms are one kind of term, so that states are multisets.  NaN, ±inf and both zeros
are results of their own.  Compiled loops (`outcome_sets`) do the work for ``any``, ``sequential`` and ``contiguous``
with more than a few terms; exact scalars do the rest, and everything in `reachable_by_scalars`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from fpsmt import floats
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, zero
from fpsmt.floats.compiled import embeds, parameters
from fpsmt.floats.vector import to_floats
from fpsmt.networks import subset_tables as tables
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.extreme_tables import factor_parameters
from fpsmt.networks.orders import AnyOrder, Contiguous, Depth, FixedOrder, Order, Sequential, Union
from fpsmt.networks.outcome_sets import OutcomeSet
from fpsmt.networks.sums import Product, evaluate_tree
from fpsmt.networks.trees import Tree, steps

State = Any


@dataclass(frozen=True)
class Grammar:
    """A family of trees: the root, and the splits of each state, or the one leaf that it is.

    `pooled`: leaves are kinds of equal terms, not terms.
    """

    root: State
    splits: Callable[[State], list[tuple[State, State]] | int]
    pooled: bool = False


MAX_STEPS = 20_000_000  #: additions after which the exact set is given up: minutes of work
MAX_SPLITS = 20_000_000  #: splits of states; more take long, and more memory than there is
MOST_COMPILED_SPLITS = 50_000_000  #: the same, where compiled loops look at them
FEW = 4  #: leaves up to which exact scalars are as fast


@dataclass(frozen=True)
class Sum:
    """Σ terms (+ bias) in a context, run by an execution.  Terms are values, or pairs (w, x) of a dot product."""

    context: Context
    terms: tuple[Float, ...] | tuple[Product, ...]
    bias: Float | None = None
    execution: Execution = PAPER

    def __post_init__(self) -> None:
        if not self.terms and self.bias is None:
            raise UsageError("a sum needs at least one term (an empty sum is +0 and has no order)")
        pairs = [t for t in self.terms if isinstance(t, tuple)]
        values = [v for t in pairs for v in t] if pairs else [*self.terms]
        wrong = [v for v in values if not isinstance(v, Float)]
        if wrong or (pairs and (len(pairs) < self.n or any(len(t) != 2 for t in pairs))):
            raise UsageError("the terms of a sum are Floats, or all of them pairs (w, x) of Floats")
        if not (self.bias is None or isinstance(self.bias, Float)):
            raise UsageError(f"the bias {self.bias!r:.100} is not a Float")

    @property
    def is_dot(self) -> bool:
        """The terms are products."""
        return bool(self.terms) and isinstance(self.terms[0], tuple)

    @property
    def n(self) -> int:
        return len(self.terms)

    def evaluate(self, tree: Tree) -> Float:
        """The result under one schedule."""
        return evaluate_tree(self.context, tree, self.terms, self.bias, self.execution).result

    def allows(self, tree: Tree) -> bool:
        """Is this a schedule of the execution?"""
        return self.execution.allows(tree, self.n, self.bias is not None, self.is_dot)

    @property
    def text(self) -> str:
        """The sum in one line."""
        return sum_text(self.context, self.terms, self.bias, self.execution)


def sum_text(ctx: Context, terms: Sequence[object], bias: object, execution: Execution) -> str:
    """A sum in one line; only the first terms of a long one."""
    words = [f"{t[0]}·{t[1]}" if isinstance(t, tuple) else str(t) for t in terms[:12]]
    if len(terms) > 12:
        words.append(f"… ({len(terms)} terms)")
    if bias is not None:
        words.append(f"bias {bias}")
    return f"{' + '.join(words)} in {ctx}, {execution}"


@lru_cache(maxsize=64)
def reachable(problem: Sum) -> Mapping[Float, Tree]:
    """Each reachable result with one schedule for it; results in ascending order, NaN last.

    Raises `Unsupported`, before it starts, when there are more than `MOST_COMPILED_SPLITS` splits of the terms to look
    at (`MAX_SPLITS` for exact scalars), or later when that takes too many additions.

    >>> from fpsmt.floats import context, exactly, float16
    >>> ones = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> [str(v) for v in reachable(Sum(context("float16"), ones))]
    ['2048.0', '2050.0']
    """
    return _reachable(_Work(problem, compiled=True))


def reachable_by_scalars(problem: Sum) -> Mapping[Float, Tree]:
    """`reachable` without compiled arithmetic: the reference, and slow."""
    return _reachable(_Work(problem, compiled=False))


def uses_compiled(problem: Sum) -> bool:
    """Does `reachable` take the word of compiled arithmetic for part of its work?"""
    order = problem.execution.order
    work = _Work(problem, compiled=True)
    return any(work.all_compiled(part) for part in (order.parts if isinstance(order, Union) else (order,)))


def _reachable(work: _Work) -> Mapping[Float, Tree]:
    problem = work.problem
    found: dict[Float, Tree] = {}
    splits = work.splits(problem.execution.order)
    most = MOST_COMPILED_SPLITS if work.all_compiled(problem.execution.order) else MAX_SPLITS
    if splits > most:
        size = f"10^{len(str(splits)) - 1}" if splits < 10**1000 else "10^1000"
        raise Unsupported(
            f"the exact set of outcomes needs at least {size} splits of {problem.n} terms: at most "
            f"{most} are tried"
        )
    for result, tree in work.results(problem.execution.order):
        found.setdefault(result, tree)
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: _rank(item[0]))))


def _rank(x: Float) -> tuple[bool, int, bool]:
    return (True, 0, False) if x.is_nan else (False, x.ordinal, not x.negative)


class _Work:
    """The tables of one call: values of states, shared by all families of a union."""

    def __init__(self, problem: Sum, compiled: bool) -> None:
        self.problem = problem
        self.compiled = compiled
        self.acc = problem.execution.sum_context(problem.context)
        self.fuses = problem.execution.fuses(problem.is_dot)
        self.exact = problem.is_dot and problem.execution.products == "exact"
        leaves: list[Any] = [*problem.terms, *([] if problem.bias is None else [problem.bias])]
        first: dict[Any, int] = {}
        self.kind_of = [first.setdefault(leaf, i) for i, leaf in enumerate(leaves)]  # equal leaves are one kind
        if problem.bias is not None:
            self.kind_of[-1] = problem.n
        self.leaves = leaves
        self.sums: dict[tuple[int, int], int] = {}
        self.steps = 0
        used = {v.format for leaf in leaves for v in (leaf if isinstance(leaf, tuple) else (leaf,))}
        rounding = problem.execution.product_context(problem.context) or self.acc
        self.formats = used
        self.compiled = compiled and all(map(embeds, {*used, self.acc.format, rounding.format}))

    # -- the families -----------------------------------------------------------------------------------

    def splits(self, order: Order) -> int:
        """How many splits of states there are in a family, at least; each is looked at once."""
        n, has_bias = self.problem.n, self.problem.bias is not None
        if isinstance(order, Union):
            return sum(self.splits(part) for part in order.parts)
        places = n + 1 if has_bias and self.problem.execution.bias == "any" and not order.symmetric else 1
        if isinstance(order, Contiguous):
            return places * n * (n * n - 1) // 6
        counts = Counter(self.kind_of[:n]).values()
        if isinstance(order, AnyOrder | Depth):
            return math.prod((c + 1) * (c + 2) // 2 for c in counts)
        if isinstance(order, Sequential):
            return len(counts) * math.prod(c + 1 for c in counts)
        return places * n

    def results(self, order: Order) -> Iterator[tuple[Float, Tree]]:
        """(result, schedule) for every reachable result of a family, some results more than once."""
        n, has_bias = self.problem.n, self.problem.bias is not None
        place = self.problem.execution.bias if has_bias and n else "last"
        last, mixed = place != "first", place != "last"
        if isinstance(order, Union):
            for part in order.parts:
                if (last and part.has(max(n, 1))) or (mixed and part.has(n + 1)):
                    yield from self.results(part)
        elif isinstance(order, FixedOrder):
            for tree in Execution(order, bias=place).schedules(n, has_bias, self.problem.is_dot):
                yield from self._grammar(_tree_grammar(tree))
        elif n == 0:
            yield from self._grammar(_contiguous([0]))
        else:
            if mixed and order.has(n + 1):
                for at in [0] if place == "first" or order.symmetric else range(n + 1):
                    yield from self._any_of(order, [*range(at), n, *range(at, n)])
            elif mixed and not last:
                raise UsageError(f"the order {order} has no tree of {n + 1} terms")
            if last and (order.has(n) or not mixed or not order.has(n + 1)):
                yield from self._any_of(order, list(range(n)), n if has_bias else None)

    def all_compiled(self, order: Order) -> bool:
        """Compiled loops do the work for this family."""
        if isinstance(order, Union):
            return all(self.all_compiled(part) for part in order.parts)
        return self.compiled and isinstance(order, AnyOrder | Sequential | Contiguous) and len(self.leaves) > FEW + 1

    def _any_of(self, order: Order, leaves: list[int], last: int | None = None) -> Iterator[tuple[Float, Tree]]:
        """The trees of a family over these leaves, with the bias added at the very end if there is a last one."""
        if not self.all_compiled(order):
            family = self._family(order, leaves)
            yield from self._grammar(family if last is None else _with_last(family, last))
            return
        found = self._set(order, leaves)
        if last is None:
            for i, value in enumerate(to_floats(self.acc.format, found.values)):
                yield self._final(value), found.schedule(i)
            return
        bias = self._leaf(last)
        for i, value in enumerate(to_floats(self.acc.format, found.values)):
            yield self._final(floats.add(self.acc, value, bias)), (found.schedule(i), last)

    def _set(self, order: Order, leaves: list[int]) -> OutcomeSet:
        """The values of a family by compiled loops."""
        if isinstance(order, Contiguous):
            kind, kinds, pools = "contiguous", leaves, [[i] for i in leaves]
        else:
            kind = "any" if isinstance(order, AnyOrder) else "sequential"
            kinds = sorted({self.kind_of[i] for i in leaves})
            pools = [[i for i in leaves if self.kind_of[i] == name] for name in kinds]
        rule = {"never": tables.NEVER, "any": tables.ANY, "always": tables.ALWAYS}[self.fuses]
        rules = (
            tables.EXACT if self.exact else rule,
            parameters(self.acc),
            factor_parameters(self.acc, self.formats, True),
            factor_parameters(self.acc, self.formats, False),
        )
        found = OutcomeSet(np.array([self._row(i) for i in kinds]), rules, pools, kind)
        if not self.acc.format.has_nan and np.isnan(found.values).any():
            raise UsageError(f"the result is NaN, and {self.acc.format} has none")
        return found

    def _row(self, kind: int) -> list[float]:
        """A leaf for the compiled loops."""
        row = [0.0] * len(tables.LEAF)
        row[tables.LOW] = row[tables.HIGH] = float(self._leaf(kind))
        if self._is_product(kind):
            row[tables.PRODUCT] = 1.0
            flush = self.acc.subnormals.inputs
            w, x = (zero(v.format, v.negative) if flush and v.is_subnormal else v for v in self.leaves[kind])
            row[tables.WL], row[tables.XL] = float(w), float(x)
        return row

    def _final(self, value: Float) -> Float:
        return value if self.acc == self.problem.context else floats.cast(self.problem.context, value)

    def _family(self, order: Order, leaves: list[int]) -> Grammar:
        """The trees of a family over these leaves."""
        if isinstance(order, Contiguous):
            return _contiguous(leaves)
        kinds = sorted({self.kind_of[i] for i in leaves})
        counts = tuple(sum(self.kind_of[i] == kind for i in leaves) for kind in kinds)
        if isinstance(order, AnyOrder):
            return _multisets(kinds, counts)
        if isinstance(order, Sequential):
            return _left_folds(kinds, counts)
        if isinstance(order, Depth):
            return _bounded(kinds, counts, order.height)
        raise Unsupported(f"the exact outcomes of the order {order} are not known to this version")

    # -- values -----------------------------------------------------------------------------------------

    def _grammar(self, grammar: Grammar) -> Iterator[tuple[Float, Tree]]:
        table: dict[State, dict[int, Any]] = {}
        kind: dict[State, int | None] = {}
        stack = [grammar.root]
        while stack:
            state = stack[-1]
            if state in table:
                stack.pop()
                continue
            parts = grammar.splits(state)
            if isinstance(parts, int):
                kind[state] = parts
                table[state] = {self._leaf(parts).code: None}
                continue
            missing = [s for pair in parts for s in pair if s not in table]
            if missing:
                stack.extend(dict.fromkeys(missing))
                continue
            kind[state] = None
            values: dict[int, Any] = {}
            table[state] = values
            for a, b in parts:
                for code, how in self._node(kind[a], table[a], kind[b], table[b]):
                    values.setdefault(code, (a, b, *how))
        for code in table[grammar.root]:
            pools = {i: [i] for i in range(len(self.leaves))}
            if grammar.pooled:
                pools = {name: [i for i, k in enumerate(self.kind_of) if k == name] for name in self.kind_of}
            tree = _witness(table, kind, grammar.root, code, pools)
            yield self._final(Float(self.acc.format, code)), tree

    def _is_product(self, kind: int | None) -> bool:
        return kind is not None and self.problem.is_dot and kind < self.problem.n

    def _leaf(self, kind: int) -> Float:
        if self._is_product(kind):
            value = floats.mul(self.problem.execution.product_context(self.problem.context) or self.acc,
                               *self.leaves[kind])
        else:
            value = self.leaves[kind]
        return value if value.format == self.acc.format else floats.cast(self.acc, value)

    def _node(self, kind_a: int | None, a: dict[int, Any], kind_b: int | None, b: dict[int, Any]) -> Iterator[Any]:
        """(code, (value of a, value of b, fused side)) for each way of adding a value of a to one of b."""
        left, right = self._is_product(kind_a), self._is_product(kind_b)
        fmt, acc = self.acc.format, self.acc
        self.steps += len(a) * len(b)
        if self.steps > MAX_STEPS:
            raise Unsupported(
                f"the exact set of outcomes needs more than {MAX_STEPS} additions for {self.problem.n} terms"
            )
        fused_a = [(self._fma(kind_a, y), (next(iter(a)), y)) for y in b] if left else []
        fused_b = [(self._fma(kind_b, x), (x, next(iter(b)))) for x in a] if right else []
        if self.exact and left and right:
            both = floats.add_products(acc, *self.leaves[kind_a], *self.leaves[kind_b])  # type: ignore[index]
            yield both.code, (next(iter(a)), next(iter(b)), None)
            return
        if self.exact and (left or right):
            yield from ((code, (*operands, None)) for code, operands in fused_a or fused_b)
            return
        if self.fuses != "always" or not (left or right):
            for x, y in product(a, b):
                key = (x, y) if x <= y else (y, x)
                total = self.sums.get(key)
                if total is None:
                    total = self.sums[key] = floats.add(acc, Float(fmt, x), Float(fmt, y)).code
                yield total, (x, y, None)
        if self.fuses != "never":
            yield from ((code, (*operands, 0)) for code, operands in fused_a)
            yield from ((code, (*operands, 1)) for code, operands in fused_b)

    def _fma(self, kind: int | None, addend: int) -> int:
        assert kind is not None
        w, x = self.leaves[kind]
        return floats.fma(self.acc, w, x, Float(self.acc.format, addend)).code


def _witness(table: dict[State, dict[int, Any]], kind: dict[State, int | None], root: State, code: int,
             pools: dict[int, list[int]]) -> Tree:  # fmt: skip
    """The tree behind a value, its leaves drawn from the pools of their kinds; no recursion."""
    todo: list[tuple[State, int, bool]] = [(root, code, False)]
    done: list[Tree] = []
    while todo:
        state, value, ready = todo.pop()
        leaf = kind[state]
        if leaf is not None:
            done.append(pools[leaf].pop(0))
            continue
        a, b, x, y, fused = table[state][value]
        if not ready:
            todo += [(state, value, True), (b, y, False), (a, x, False)]
            continue
        right, left = done.pop(), done.pop()
        done.append((left, right) if fused is None else ("fma", left, right) if fused == 0 else ("fma", right, left))
    return done[0]


# -- the grammars of the families -------------------------------------------------------------------------


def _multisets(kinds: list[int], counts: tuple[int, ...]) -> Grammar:
    def splits(state: tuple[int, ...]) -> list[tuple[State, State]] | int:
        if sum(state) == 1:
            return kinds[state.index(1)]
        found = []
        for part in product(*(range(c + 1) for c in state)):
            rest = tuple(c - p for c, p in zip(state, part, strict=True))
            if any(part) and any(rest) and part <= rest:
                found.append((part, rest))
        return found

    return Grammar(counts, splits, pooled=True)


def _left_folds(kinds: list[int], counts: tuple[int, ...]) -> Grammar:
    def splits(state: tuple[int, ...]) -> list[tuple[State, State]] | int:
        if sum(state) == 1:
            return kinds[state.index(1)]
        found = []
        for i, count in enumerate(state):
            if count:
                one = tuple(int(j == i) for j in range(len(state)))
                found.append((tuple(c - o for c, o in zip(state, one, strict=True)), one))
        return found

    return Grammar(counts, splits, pooled=True)


def _bounded(kinds: list[int], counts: tuple[int, ...], height: int) -> Grammar:
    inner = _multisets(kinds, counts).splits

    def splits(state: tuple[tuple[int, ...], int]) -> list[tuple[State, State]] | int:
        parts = inner(state[0])
        if isinstance(parts, int):
            return parts
        low = state[1] - 1
        room = 1 << low
        return [((a, low), (b, low)) for a, b in parts if sum(a) <= room and sum(b) <= room]

    if sum(counts) > 1 << height:
        raise UsageError(f"no tree of height {height} has {sum(counts)} leaves")
    return Grammar((counts, height), splits, pooled=True)


def _contiguous(leaves: list[int]) -> Grammar:
    def splits(state: tuple[int, int]) -> list[tuple[State, State]] | int:
        low, high = state
        if high - low == 1:
            return leaves[low]
        return [((low, cut), (cut, high)) for cut in range(low + 1, high)]

    return Grammar((0, len(leaves)), splits)


def _with_last(family: Grammar, bias: int) -> Grammar:
    """The same trees with the bias added at the very end."""

    def wrapped(state: State) -> list[tuple[State, State]] | int:
        if state == "with bias":
            return [(family.root, "bias")]
        return bias if state == "bias" else family.splits(state)

    return Grammar("with bias", wrapped, family.pooled)


def _tree_grammar(tree: Tree) -> Grammar:
    program = steps(tree)

    def splits(state: int) -> list[tuple[State, State]] | int:
        step = program[state]
        return step.left if step.op == "leaf" else [(step.left, step.right)]

    return Grammar(len(program) - 1, splits)
