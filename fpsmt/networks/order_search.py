"""Orders of very many terms, named by recipes, and a search for those that reach far.

A *recipe* is a few words from which a summation tree of any size is made again, bit for bit: where the terms start
(sorted, given, shuffled by a seed), and the shape over them.  So the schedule of a million terms is a line in a
result file.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import floats
from fpsmt.errors import InternalError, UsageError
from fpsmt.floats import Float
from fpsmt.floats.compiled import add
from fpsmt.floats.vector import arithmetic, to_floats
from fpsmt.networks import subset_tables as kernels
from fpsmt.networks.extreme_tables import Program, Table, WithLast
from fpsmt.networks.orders import AnyOrder, Contiguous, Depth, FixedOrder, Order, Sequential, Union
from fpsmt.networks.packed import PackedSum, order_program
from fpsmt.networks.subset_tables import threaded

Array = NDArray[Any]

STARTS = ("given", "ascending", "descending", "smallest first", "largest first", "positive first", "negative first")
SHAPES = ("order", "fold", "greedy", "lift", "halves", "chunks")


@dataclass(frozen=True)
class Recipe:
    """A summation tree: `shape` over the terms in the order `start`.

    * ``order``: the tree of the sum's own order family, which has only one.
    * ``fold``: left to right.
    * ``greedy``: left to right, each time the one of `size` terms among the next 64·size whose rounding helps the
      goal most.
    * ``lift``: left to right; first the terms that a large running sum would round against the goal, then the largest
      terms of one sign, until the sum is about 2^−size of all of that sign, then those that it rounds towards the goal,
      then what brings it back.  (Next to a sum of fixed exponent the rounding of a term depends on the term alone.)
    * ``halves``: halves of halves.
    * ``chunks``: the best trees over `size` neighbours, then over their sums, and so on (for ``contiguous``:
      the best parenthesisations).

    Where nodes may be fused, each is fused or not as the goal (``low`` or ``high``) wants it.  `seed` shuffles
    ``shuffled`` starts.  For a union of families, `family` names the one whose tree it is.
    """

    shape: str
    start: str = "given"
    goal: str = "high"
    size: int = 8
    seed: int = 0
    family: str = ""

    def __post_init__(self) -> None:
        numbers = isinstance(self.size, int) and isinstance(self.seed, int) and 1 <= self.size <= 12 and self.seed >= 0
        if self.shape not in SHAPES or self.start not in (*STARTS, "shuffled") or self.goal not in ("low", "high"):
            raise UsageError(f"unknown recipe of a schedule: {self}")
        if not numbers:
            raise UsageError(f"a recipe has a size from 1 to 12 and a seed of at least 0, not {self.size}, {self.seed}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Recipe:
        if not isinstance(data, Mapping) or not data.keys() <= set(Recipe.__dataclass_fields__):
            raise UsageError(f"{data!r:.80} is not a recipe of a schedule")
        return Recipe(**data)

    def __str__(self) -> str:
        start = f"{self.start} (seed {self.seed})" if self.start == "shuffled" else self.start
        size = f" of {self.size}" if self.shape in ("greedy", "chunks") else ""
        return f"{self.shape}{size}, {start}, for the {self.goal} end"


@dataclass(frozen=True)
class Plan:
    """A tree as arrays: leaves `use` in their places, additions as in `extreme_tables.program`; then the bias, if
    `last`."""

    use: Array
    left: Array
    right: Array
    last: bool


def plan(problem: PackedSum, recipe: Recipe) -> Plan:
    """The tree that the recipe makes; a usage error when the execution does not allow it."""
    problem = _in_family(problem, recipe)
    order: Any = problem.execution.order
    if not allows(order, recipe):
        raise UsageError(f"{order} has no tree {recipe}")
    place = problem.execution.bias if problem.bias is not None else "none"
    use = np.arange(problem.n) if place != "first" else np.concatenate([[problem.n], np.arange(problem.n)])
    if recipe.shape == "order":
        left, right = order_program(order, len(use))
    else:
        use = use[_start(problem.values[use], recipe)]
        use, left, right = _shape(problem, problem.values[use], use, recipe)
    if not (_once(use, len(use)) and _once(np.concatenate([left, right]), 2 * len(use) - 2)):
        raise InternalError(f"{recipe} does not use each of {len(use)} terms once")
    _check_height(order, left, right)
    return Plan(use, left, right, place in ("last", "any"))


def _once(found: Array, size: int) -> bool:
    """The numbers 0 … size−1 are there, each once."""
    return len(found) == size and bool((np.bincount(found, minlength=size)[:size] == 1).all())


def table_of(problem: PackedSum, recipe: Recipe) -> tuple[Table, int]:
    """The table of the recipe's tree with all its fused forms, and its root."""
    tree, leaves = plan(problem, recipe), problem.leaves()
    table = Program(leaves, tree.use.tolist(), tree.left, tree.right)
    if not tree.last:
        return table, table.root()
    return WithLast(leaves, table, table.root(), problem.n), -1


def ends(problem: PackedSum, recipe: Recipe) -> tuple[float, float, bool]:
    """(least, greatest, NaN?) in the accumulator over the fused forms of the recipe's tree."""
    if problem.mode != kernels.NEVER:
        table, root = table_of(problem, recipe)
        return table.ends(root)
    tree = plan(problem, recipe)
    last = float(problem.values[-1]) if tree.last else 0.0
    total = _plain_sum(np.ascontiguousarray(problem.values[tree.use]), tree.left, tree.right, tree.last, last,
                       problem.rules[1])  # fmt: skip
    return total, total, math.isnan(total)


@threaded
def _plain_sum(values: Any, left: Any, right: Any, has_last: Any, last: Any, k: Any) -> Any:
    n = values.size
    sums = np.empty(left.size)
    for m in range(left.size):
        a, b = left[m], right[m]
        sums[m] = add(values[a] if a < n else sums[a - n], values[b] if b < n else sums[b - n], k)
    total = sums[-1] if left.size else values[0]
    return add(total, last, k) if has_last else total


def _in_family(problem: PackedSum, recipe: Recipe) -> PackedSum:
    order = problem.execution.order
    if not isinstance(order, Union):
        return problem
    parts = [part for part in order.parts if str(part) == recipe.family]
    if not parts:
        raise UsageError(f"{recipe.family!r} is not one of the families {order}")
    return replace(problem, execution=replace(problem.execution, order=parts[0]))


def allows(order: Order, recipe: Recipe) -> bool:
    """Is the recipe's tree of the family?  (Heights are checked when the tree is made.)"""
    if isinstance(order, FixedOrder):
        return recipe.shape == "order"
    if recipe.shape == "order":
        return False
    if isinstance(order, Sequential):
        return recipe.shape in ("fold", "greedy", "lift")
    if isinstance(order, Contiguous):
        return recipe.start == "given" and recipe.shape not in ("greedy", "lift")
    return isinstance(order, AnyOrder | Depth)


def _check_height(order: Order, left: Array, right: Array) -> None:
    if isinstance(order, Depth) and left.size and _height(left, right) > order.height:
        raise UsageError(f"{order} has no tree of height {_height(left, right)}")


@threaded
def _height(left: Any, right: Any) -> Any:
    n = left.size + 1
    heights = np.zeros(n + left.size, np.int64)
    for m in range(left.size):
        heights[n + m] = 1 + max(heights[left[m]], heights[right[m]])
    return heights[-1]


def _start(values: Array, recipe: Recipe) -> Array:
    """Places of the terms in the order in which they start."""
    start = recipe.start
    if start == "given":
        return np.arange(len(values))
    if start == "shuffled":
        return np.random.Generator(np.random.PCG64(recipe.seed)).permutation(len(values))
    size = np.abs(values)
    if start in ("ascending", "descending"):
        return np.argsort(values if start == "ascending" else -values, kind="stable")
    if start in ("smallest first", "largest first"):
        return np.argsort(size if start == "smallest first" else -size, kind="stable")
    return np.lexsort((-size, values < 0 if start == "positive first" else values > 0))


def _shape(problem: PackedSum, values: Array, use: Array, recipe: Recipe) -> tuple[Array, Array, Array]:
    """(leaves in order, left, right)"""
    n, k, high = len(values), problem.rules[1], recipe.goal == "high"
    if recipe.shape == "greedy":
        use = use[_greedy(np.ascontiguousarray(values), recipe.size, recipe.seed, high, k)]
    if recipe.shape == "lift":
        use = use[_lift(problem, values, recipe)]
    if recipe.shape in ("fold", "greedy", "lift"):
        return use, np.concatenate([[0], np.arange(n, 2 * n - 2)])[: n - 1], np.arange(1, n)
    if recipe.shape == "halves":
        return use, *_halves(n)
    left, right = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64)
    contiguous = isinstance(problem.execution.order, Contiguous)
    _chunks(np.ascontiguousarray(values), recipe.size, high, contiguous, left, right, k)
    return use, left, right


def _lift(problem: PackedSum, values: Array, recipe: Recipe) -> Array:
    """The permutation of the shape ``lift``."""
    up, down = values[values > 0.0].sum(), -values[values < 0.0].sum()
    total = max(up, down)
    if not 0.0 < total < math.inf or not np.isfinite(values).all():
        return np.arange(len(values))
    sign = 1.0 if up >= down else -1.0
    height = math.ldexp(1.5, math.frexp(total)[1] - 1 - recipe.size)
    level = float(arithmetic(problem.acc, floats.float64).cast([sign * height])[0])
    signed = sign * values
    order = np.argsort(-signed, kind="stable")
    first = order[signed[order] > 0.0]
    first = first[: int(np.searchsorted(np.cumsum(signed[first]), height))]
    back = order[::-1][signed[order[::-1]] < 0.0]
    back = back[: int(np.searchsorted(np.cumsum(-signed[back]), height))]
    with np.errstate(all="ignore"):
        gain = arithmetic(problem.acc).add(level, values) - level - values
    good = gain > 0.0 if recipe.goal == "high" else gain < 0.0
    taken = np.zeros(len(values), bool)
    taken[first] = taken[back] = True
    rest = np.arange(len(values))
    return np.concatenate([rest[~taken & ~good], first, rest[~taken & good], back])


def _halves(n: int) -> tuple[Array, Array]:
    left: list[int] = []
    right: list[int] = []
    slots = list(range(n))
    while len(slots) > 1:
        pairs = len(slots) // 2
        left += slots[0 : 2 * pairs : 2]
        right += slots[1 : 2 * pairs : 2]
        slots = [*range(n + len(left) - pairs, n + len(left)), *slots[2 * pairs :]]
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)


# -- compiled searches ----------------------------------------------------------------------------------------


@threaded
def _greedy(values: Any, size: int, seed: Any, high: bool, k: Any) -> Any:
    """A permutation that adds, each time, the one of the next few terms whose rounding helps most."""
    n = values.size
    out = np.arange(n)
    acc = values[out[0]]
    state = np.uint64(seed * 2 + 1)
    for at in range(1, n):
        best, gain = at, -math.inf
        for c in range(min(size, n - at)):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            window = min(n - at, 64 * size)
            j: Any = at + c if c < 2 else at + np.int64((state >> np.uint64(33)) % np.uint64(window))
            x = values[out[j]]
            v = add(acc, x, k)
            g = (v - acc) - x
            if not high:
                g = -g
            if g > gain:
                best, gain = j, g
        chosen = out[best]
        out[best] = out[at]
        out[at] = chosen
        acc = add(acc, values[chosen], k)
    return out


@threaded
def _chunks(values: Any, size: Any, high: bool, contiguous: bool, left: Any, right: Any, k: Any) -> None:
    """Writes the additions of the best trees over neighbours, level by level.

    Sets of a chunk are bit masks; intervals are those of them whose bits are consecutive.
    """
    n = values.size
    slots = np.arange(n)
    count, done = n, 0
    best = np.zeros(1 << size)
    split = np.zeros(1 << size, np.int64)
    place = np.zeros(1 << size, np.int64)
    stack = np.zeros(4 * size + 4, np.int64)
    current = values.copy()
    while count > 1:
        made = 0
        at = 0
        while at < count:
            c = min(size, count - at)
            full = (1 << c) - 1
            for i in range(c):
                best[1 << i] = current[at + i]
                place[1 << i] = slots[at + i]
            for s in range(3, full + 1):
                low = s & -s
                rest = s ^ low
                if rest == 0:
                    continue
                if contiguous and (s + low) & s:
                    continue
                b = rest
                first = True
                while b:
                    a = s ^ b
                    usable = True
                    if contiguous:
                        usable = (a + (a & -a)) & a == 0 and (b + (b & -b)) & b == 0
                    if usable:
                        v = add(best[a], best[b], k)
                        better = v > best[s] if high else v < best[s]
                        if first or better:
                            best[s], split[s], first = v, b, False
                    b = (b - 1) & rest
            top = 0
            stack[0] = full << 1
            while top >= 0:
                s = stack[top] >> 1
                ready = stack[top] & 1
                if s & (s - 1) == 0:
                    top -= 1
                elif ready:
                    left[done], right[done] = place[s ^ split[s]], place[split[s]]
                    place[s] = n + done
                    done += 1
                    top -= 1
                else:
                    stack[top] |= 1
                    stack[top + 1] = split[s] << 1
                    stack[top + 2] = (s ^ split[s]) << 1
                    top += 2
            current[made] = best[full]
            slots[made] = place[full]
            made += 1
            at += c
        count = made


# -- results --------------------------------------------------------------------------------------------------


def run(problem: PackedSum, recipe: Recipe) -> Float:
    """The result of the recipe's schedule, by compiled arithmetic; NaN where its goal is only reached by NaN."""
    return problem.result(ends(problem, recipe)[recipe.goal == "high"])


MOST_EXACT = 20_000  #: terms up to which `replay` runs by exact scalars


def replay(problem: PackedSum, recipe: Recipe) -> tuple[Float, str]:
    """The result of the recipe's schedule and how it was computed: by the exact scalars of the reference, up to
    `MOST_EXACT` terms of plain additions; else by compiled arithmetic.  An internal error when the two differ."""
    value = run(problem, recipe)
    if problem.n > MOST_EXACT or problem.mode != kernels.NEVER:
        return value, "compiled arithmetic"
    tree, acc = plan(problem, recipe), problem.acc
    slots = to_floats(acc.format, problem.values[tree.use])
    for a, b in zip(tree.left.tolist(), tree.right.tolist()):
        slots.append(floats.add(acc, slots[a], slots[b]))
    total = slots[-1]
    if tree.last:
        total = floats.add(acc, total, to_floats(acc.format, problem.values[-1:])[0])
    result = total if acc == problem.context else floats.cast(problem.context, total)
    if result != value:
        raise InternalError(f"{recipe} gives {result} by reference and {value} compiled, for {problem.text}")
    return result, "exact scalars"


def recipes(problem: PackedSum, effort: int = 1, seed: int = 0) -> Iterator[Recipe]:
    """Recipes worth trying, the most promising first; `effort` counts the shuffles."""
    order = problem.execution.order
    size = 8 if problem.n <= 100_000 else 6
    goals = ("low", "high") if problem.mode != kernels.NEVER else ("low",)
    plans = [Recipe("order", goal=goal) for goal in goals]
    plans += [Recipe("lift", "given", goal, size) for size in (1, 2, 3) for goal in ("low", "high")]
    for starts in (("ascending", "descending"), ("positive first", "negative first"), ("largest first",) * 2):
        plans += [Recipe("greedy", start, goal, 8, seed) for start, goal in zip(starts, ("low", "high"))]
    for start in ("given", "largest first", "ascending"):
        plans += [Recipe("chunks", start, goal, size) for goal in ("low", "high")]
    plans += [Recipe("fold", start, goal) for start in STARTS for goal in ("low", "high")]
    for start in ("given", "largest first", "ascending", "descending"):
        plans += [Recipe("halves", start, goal) for goal in ("low", "high")]
    for extra in range(effort):
        for goal in ("low", "high"):
            plans.append(Recipe("greedy", "shuffled", goal, 12, seed + extra))
            plans.append(Recipe("chunks", "shuffled", goal, size, seed + extra))
    for recipe in plans:
        if not isinstance(order, Union):
            if allows(order, recipe):
                yield recipe
            continue
        for part in order.parts:
            if allows(part, recipe):
                yield replace(recipe, family=str(part))


@dataclass(frozen=True)
class Found:
    """What a search reached: ends that are not NaN with their recipes (None when there is none), a recipe for NaN."""

    low: tuple[Float, Recipe] | None
    high: tuple[Float, Recipe] | None
    nan: Recipe | None
    tried: int


def search(problem: PackedSum, effort: int = 1, seed: int = 0, deadline: float = math.inf) -> Found:
    """The farthest results that the recipes reach; at least two are tried, the others until the deadline
    (`time.monotonic`)."""
    best: dict[str, tuple[Float, Recipe]] = {}
    nan: Recipe | None = None
    tried = 0
    for recipe in recipes(problem, effort, seed):
        if tried >= 2 and time.monotonic() > deadline:
            break
        try:
            value = run(problem, recipe)
        except UsageError:  # too high a tree
            continue
        tried += 1
        if value.is_nan:
            nan = nan or recipe
            continue
        for goal, sign in (("low", -1), ("high", 1)):
            if goal not in best or sign * _key(value) > sign * _key(best[goal][0]):
                best[goal] = (value, recipe)
    return Found(best.get("low"), best.get("high"), nan, tried)


def _key(x: Float) -> Any:
    return float(x) if x.is_infinite else x.fraction
