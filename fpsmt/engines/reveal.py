"""The summation tree of a routine that can only be called: found by probes, then compared on random vectors.

Nothing is assumed about the order and nothing is guessed: every node of the tree is the answer of a probe
(`fpsmt.engines.probes`, `fpsmt.engines.clusters`), so are the precision of the accumulator and each fused product.
What the probes cannot show (that the routine does the same for other values, its accumulator's range, the sign of
zero) is compared on random vectors; a tree that does not give the routine's results on all of them, bit for bit,
comes with the vector on which it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fpsmt.engines.agreement import Mismatch, Model, Observations, Shape, random_vectors, usual_context
from fpsmt.engines.clusters import Node, build
from fpsmt.engines.probes import Masks, Varying, absorbing_triple, attempts, masks, precision_at, same
from fpsmt.engines.targets import Kind, Target
from fpsmt.errors import UsageError
from fpsmt.floats import FORMATS, Context, Format, format_named, ieee
from fpsmt.networks.executions import Execution
from fpsmt.networks.orders import Blocks, Given, Lanes, LeftToRight, Order, Pairwise, RightToLeft, given
from fpsmt.networks.trees import Step, Tree, canonical, steps, unfuse

VECTORS = 600  #: compared by default
CELLS = 3_000_000  #: terms of all vectors together, at most, by default


@dataclass(frozen=True)
class Revealed:
    """What was found about a routine.

    * `shape`: the tree, whose nodes may have more than two children; a leaf is the index of its term.
    * `tree`, `order`: the same when every node has two children, `tree` with its fused nodes; else None.
    * `accumulator`: the context of additions, None when nothing observable is rounded between terms, or when it
      is not the same at all nodes (`contexts`, by step of the tree, then).
    * `products`: for a dot product ``rounded`` (to the accumulator), ``rounded to F``, ``fused`` (all that meet an
      addition; the first of a running sum is rounded), ``exact``, or ``mixed``.
    * `execution`: order, accumulator, fma and products as other commands take them; None without a binary tree or
      with `contexts`.
    * `family`: the order family that the tree is of, e.g. ``pairwise``.
    * `calls` found the tree; `verification_calls` were made besides, on random vectors.
    * `agrees`: the tree gives the routine's result, bit for bit, on `compared` random vectors (of a multi-term tree:
      finite ones, zeros without sign); None when they could not be compared.  `mismatch` is where it does not.
    * `from_zero`: the sum of only −0 is +0.
    """

    target: str
    n: int
    format: Format
    kind: Kind
    shape: Shape
    tree: Tree | None
    order: Given | None
    accumulator: Context | None
    products: str | None
    execution: Execution | None
    contexts: tuple[Context, ...] | None
    from_zero: bool
    family: str | None
    calls: int
    verification_calls: int
    compared: int
    agrees: bool | None
    mismatch: Mismatch | None
    notes: tuple[str, ...]
    model: Model | None

    @property
    def multi_term(self) -> list[list[Shape]]:
        """The children of each node that adds more than two terms at once."""
        out, todo = [], [self.shape]
        while todo:
            node = todo.pop()
            if isinstance(node, tuple):
                if len(node) > 2:
                    out.append(list(node))
                todo += reversed(node)
        return out


def reveal(
    function: Callable[..., Any] | Target,
    n: int,
    fmt: Format | str = "float32",
    kind: Kind = "sum",
    vectors: int | None = None,
    seed: int = 0,
) -> Revealed:
    """The summation tree of a function of one array of n terms (``sum``) or two (``dot``).

    The function gets arrays of the format's dtype (numpy's or ml_dtypes') and returns one number.  `vectors` is how
    many random vectors are compared.  Raises `Varying` when results vary from call to call, `NoSum` when a probe's
    result is that of no sum rounded to nearest, `Contradiction` when the probes fit no tree (the order depends on
    the values), and `Unsupported` when the function raises or returns something else than a number.

    The method is that of probes with large opposite terms (FPRev); the division into problems is our own.

    >>> found = reveal(lambda x: (x[0] + x[1]) + (x[2] + x[3]), 4, "float16", vectors=60)
    >>> str(found.order), found.agrees, str(found.accumulator)
    ('((0+1)+(2+3))', True, 'float16')
    """
    fmt = format_named(fmt) if isinstance(fmt, str) else fmt
    name = str(getattr(function, "__name__", "the function"))
    target = function if isinstance(function, Target) else Target(name, function, n, fmt, kind)
    if (target.n, target.format) != (n, fmt):
        raise UsageError(f"{target.name} is for {target.n} terms of {target.format}, not {n} of {fmt}")
    if fmt.precision < 3:
        raise UsageError(f"{fmt} has too few significand bits for probes: use a format of precision 3 or more")
    count = min(VECTORS, max(60, CELLS // n)) if vectors is None else vectors
    if count < 1:
        raise UsageError(f"{count} vectors: at least one is compared, because a tree is not believed without")
    return _Session(target, count, seed).run()


class _Session:
    def __init__(self, target: Target, count: int, seed: int) -> None:
        self.target, self.count, self.seed = target, count, seed
        self.notes: list[str] = []

    def run(self) -> Revealed:
        target = self.target
        self.check_settled()
        before = target.calls
        probes, precision = self.measure()
        root = build(probes, target.n, self.seed) if target.n > 2 else _trivial(target.n)
        tree = _binary(root)
        kept: list[bool] = []
        if target.kind == "dot":
            kept = kept_products(target, root)
        calls = target.calls - before
        found = Revealed(
            target.name, target.n, target.format, target.kind, _shape(root), None, None, None, None, None, None,
            False, None, calls, 0, 0, None, None, (), None,
        )  # fmt: skip
        observations = Observations.of(target, self.count, self.seed)
        if observations.raised:
            count = len(observations.raised)
            self.notes.append(f"the routine refused {count} of the random vectors, left out: {observations.raised[0]}")
        if tree is not None:
            found = self.binary(found, tree, precision, kept, observations, probes)
        else:
            found = self.multi(found, precision, kept, observations, root)
        return replace(found, verification_calls=target.calls - found.calls, notes=tuple(self.notes))

    # -- measuring ------------------------------------------------------------------------------------------

    def check_settled(self) -> None:
        """The same vectors again, and elsewhere in memory, give the same results."""
        target = self.target
        x, w = random_vectors(target.format, target.n, 10, target.kind, self.seed + 1)
        for v in (6, 7, 8):
            weights = None if w is None else w[v]
            first = target(x[v], weights)
            for shift in (0, 0, 0, 0, 0, 0, 1, 3):
                again = target(x[v], weights, shift)
                if not same(first, again):
                    how = "called again" if shift == 0 else f"called with arrays {shift} elements further in memory"
                    raise Varying(
                        f"{target.name} gave {first!r}, and {again!r} when {how} with the same {target.n} terms: "
                        "its order varies, so there is no one tree"
                    )

    def measure(self) -> tuple[Masks, int | None]:
        """The probes to use, and the precision of the accumulator where the first and last terms meet."""
        tried = attempts(self.target)
        if self.target.n < 3:
            return tried[0], None
        for probes in tried:
            triple = absorbing_triple(probes)
            if triple is not None:
                precision = precision_at(probes, triple)
                return masks(probes, precision), precision
        self.notes.append(
            f"a unit is not absorbed by terms {self.target.format}'s range apart (2^{tried[-1].gap + 1}): "
            "nothing that this format can show is rounded between terms"
        )
        return masks(tried[-1], None), None

    # -- comparing ------------------------------------------------------------------------------------------

    def binary(
        self, found: Revealed, tree: Tree, precision: int | None, kept: list[bool], seen: Observations, probes: Masks
    ) -> Revealed:
        target = self.target
        zero = self.from_zero(seen)
        order = given(tree)
        found = replace(found, order=order, tree=order.tree, from_zero=zero, family=family(order.tree, target.n))
        first: Mismatch | None = None
        for ctx in accumulators(target.format, precision):
            model, products = self.model(order, ctx, kept, zero)
            compared, mismatch = self.compare(seen, model)
            if first is None or mismatch is None:
                first = mismatch
                found = replace(self.with_model(found, model, products, mismatch), compared=compared)
            if mismatch is None:
                return found
        if precision is not None and target.n > 2:
            mixed = self.mixed(found, precision, kept, seen, probes)
            if mixed is not None:
                return mixed
        return found

    def with_model(self, found: Revealed, model: Model, products: str | None, mismatch: Mismatch | None) -> Revealed:
        acc = model.execution.sum_context(model.output)
        return replace(
            found, tree=model.tree, accumulator=acc, products=products, execution=model.execution,
            agrees=mismatch is None, mismatch=mismatch, model=model,
        )  # fmt: skip

    def compare(self, seen: Observations, model: Model) -> tuple[int, Mismatch | None]:
        """How many vectors were compared (few where the arithmetic is slow), and the first that differs."""
        few = seen.first(40)
        mismatch = few.mismatch(model)
        if mismatch is not None or model.execution.sum_context(model.output).format.precision > 53:
            return len(few.results), mismatch
        return len(seen.results), seen.mismatch(model)

    def from_zero(self, seen: Observations) -> bool:
        """The first vector is all −0."""
        first = seen.results[0]
        only = bool(np.all((seen.terms[0] == 0) & np.signbit(seen.terms[0])))
        return only and bool(first == 0 and not np.signbit(first))

    def output(self, acc: Context) -> Context:
        """The context of results: the accumulator's, when the routine's own type holds all of its values."""
        fmt = self.target.output or self.target.format
        if fmt == acc.format or (fmt.precision >= acc.format.precision and fmt.emax >= acc.format.emax):
            return acc
        return usual_context(fmt)

    def model(self, order: Given, ctx: Context, kept: list[bool], zero: bool) -> tuple[Model, str | None]:
        fmt, out = self.target.format, self.output(ctx)
        acc = None if ctx == out else ctx
        if self.target.kind == "sum":
            return Model(order.tree, fmt, out, Execution(order, accumulator=acc), zero), None
        if ctx.format.precision >= 2 * fmt.precision:  # products are exact in the accumulator, or rounded before
            if all(kept):
                return Model(order.tree, fmt, out, Execution(order, accumulator=acc), zero), "rounded"
            ctx2 = usual_context(fmt)
            execution = Execution(order, accumulator=acc, products=None if ctx2 == ctx else ctx2)
            return Model(order.tree, fmt, out, execution, zero), f"rounded to {ctx2}"
        if all(kept) and len(kept) > 1 and _has_cherry(order.tree):
            return Model(order.tree, fmt, out, Execution(order, accumulator=acc, products="exact"), zero), "exact"
        tree = fuse(order.tree, kept)
        possible = fuse(order.tree, [True] * len(kept))
        fused = [sum(step.op == "fma" for step in steps(t)) for t in (tree, possible)]
        rule, word = "any", "mixed"
        if fused[0] == 0:
            rule, word = "never", "rounded"
        elif fused[0] == fused[1]:
            rule, word = "always", "fused"
        execution = Execution(order, fma=rule, accumulator=acc)  # type: ignore[arg-type]
        return Model(tree, fmt, out, execution, zero), word

    def mixed(
        self, found: Revealed, precision: int, kept: list[bool], seen: Observations, probes: Masks
    ) -> Revealed | None:
        """A model whose nodes round to different precisions, each measured; None if they do not, or it disagrees."""
        assert found.order is not None
        before = self.target.calls
        plain = found.order.tree
        precisions = node_precisions(probes, plain, precision)
        if set(precisions.values()) == {precision}:
            return None
        self.notes.append(_spread(precisions))
        tree = fuse(plain, kept) if kept else plain
        program, by_leaves = steps(tree), _by_leaves(tree)
        below = {tuple(sorted(leaves)): k for k, leaves in enumerate(_by_leaves(plain))}
        acc = next(iter(accumulators(self.target.format, precision)))
        widest = next(iter(accumulators(self.target.format, max(precisions.values()))))
        best = None
        for root in (widest, acc):
            contexts = []
            for k, step in enumerate(program):
                key = below[tuple(sorted(by_leaves[k]))]
                if step.op == "leaf":
                    contexts.append(acc)
                elif k == len(program) - 1:
                    contexts.append(root)
                else:
                    contexts.append(next(iter(accumulators(self.target.format, precisions[key]))))
            out = self.output(root) if self.target.output is None else usual_context(self.target.output)
            model = Model(tree, self.target.format, out, Execution(found.order), found.from_zero, tuple(contexts))
            mismatch = seen.mismatch(model)
            if best is None or mismatch is None:
                best = replace(
                    found, tree=tree, accumulator=None, execution=None, contexts=tuple(contexts), model=model,
                    agrees=mismatch is None, mismatch=mismatch, compared=len(seen.results),
                )  # fmt: skip
            if mismatch is None:
                break
        assert best is not None
        return replace(best, calls=best.calls + self.target.calls - before)

    def multi(
        self, found: Revealed, precision: int | None, kept: list[bool], seen: Observations, root: Node
    ) -> Revealed:
        """Nodes of more than two children: compared when all of them add exactly, else reported alone."""
        for node in _nodes(root):
            if len(node.children) > 2:
                how = "exactly, rounded once" if node.exact else "with small terms cut off before they are added"
                terms = sorted(leaf.term for leaf in _nodes(node) if not leaf.children)
                what = _brief(terms) if len(terms) == len(node.children) else f"subtrees over terms {_brief(terms)}"
                self.notes.append(f"a node adds {len(node.children)} parts at once, {how}: {what}")
        if any(len(node.children) > 2 and not node.exact for node in _nodes(root)):
            self.notes.append(
                "how many bits such a node keeps is not measured, so nothing could be compared; a routine that sorts "
                "its terms by size looks like this as well"
            )
            return found
        rounded = [not k for k in kept] or [False] * self.target.n
        few = seen.first(120).finite()
        first: Mismatch | None = None
        out = usual_context(self.target.output or self.target.format)
        accs = list(accumulators(self.target.format, precision)) if precision is not None else [out]
        for ctx in accs:
            mismatch = few.mismatch_exact(found.shape, self.target.format, ctx, out, rounded)
            if mismatch is None:
                acc = None if precision is None else ctx
                products = "exact" if kept and all(kept) else None
                agrees = True if len(few.results) else None
                return replace(
                    found, compared=len(few.results), agrees=agrees, accumulator=acc, products=products
                )
            first = first or mismatch
        return replace(found, agrees=False, mismatch=first)


# -- trees --------------------------------------------------------------------------------------------------


def _trivial(n: int) -> Node:
    leaves = [Node(i) for i in range(n)]
    return leaves[0] if n == 1 else Node(0, leaves)


def _nodes(root: Node) -> list[Node]:
    out, todo = [], [root]
    while todo:
        node = todo.pop()
        out.append(node)
        todo += reversed(node.children)
    return out


def _shape(root: Node) -> Shape:
    made: dict[int, Any] = {}
    for node in reversed(_nodes(root)):  # children before parents
        made[id(node)] = tuple(made[id(c)] for c in node.children) if node.children else node.term
    return made[id(root)]


def _binary(root: Node) -> Tree | None:
    if any(len(node.children) > 2 for node in _nodes(root)):
        return None
    return canonical(_shape(root))


def _by_leaves(tree: Tree) -> list[list[int]]:
    below: list[list[int]] = []
    for op, a, b in steps(tree):
        below.append([a] if op == "leaf" else below[a] + below[b])
    return below


def _has_cherry(tree: Tree) -> bool:
    program = steps(tree)
    return any(op == "add" and program[a].op == program[b].op == "leaf" for op, a, b in program)


def fuse(tree: Tree, kept: list[bool]) -> Tree:
    """The tree with a fused node for each leaf whose product is kept unrounded, where it meets an addition.

    >>> fuse(((0, 1), 2), [False, True, True])
    ('fma', 2, ('fma', 1, 0))
    """
    made: list[Any] = []
    program = steps(tree)
    for op, a, b in program:
        if op == "leaf":
            made.append(a)
        elif program[b].op == "leaf" and kept[program[b].left]:
            made.append(("fma", made[b], made[a]))
        elif program[a].op == "leaf" and kept[program[a].left]:
            made.append(("fma", made[a], made[b]))
        else:
            made.append((made[a], made[b]))
    return canonical(made[-1])


def family(tree: Tree, n: int) -> str | None:
    """The name of a family of one tree that this tree is of, the simplest first; None if it is of none.

    >>> family(((0, 2), (1, 3)), 4), family(((0, 1), (2, 3)), 4), family(((0, 3), (1, 2)), 4)
    ('lanes:2', 'blocks:2', None)
    """
    mine = steps(canonical(unfuse(tree)))
    for order in _families(mine, n):
        if steps(canonical(order.default_tree(n))) == mine:
            return str(order)
    return None


def _families(program: list[Step], n: int) -> Iterator[Order]:
    """The families that a canonical tree may be of, told by the terms that are added to term 0 first."""
    yield LeftToRight()
    if n < 3:
        return
    yield from (RightToLeft(), Pairwise())
    met: list[int] = []  # leaves that are added to the subtree of term 0, one by one
    at = 0
    for k, (op, a, b) in enumerate(program):
        if op != "leaf" and a == at:
            if program[b].op != "leaf":
                break
            met.append(program[b].left)
            at = k
    if met:
        yield from (Lanes(k) for k in sorted({met[0], 2 * met[0] - 1, 2 * met[0], n}) if k > 1)
    run = 1
    while met[run - 1 : run] == [run]:
        run += 1
    if run > 1:
        yield Blocks(-(-n // run))


# -- precision and products ---------------------------------------------------------------------------------


def accumulators(fmt: Format, precision: int | None) -> list[Context]:
    """The contexts of this precision that additions may round in, the likeliest first (unknown: some usual ones)."""
    known = [f for f in FORMATS.values() if f.is_ieee]
    if precision is None:
        return [usual_context(f) for f in (fmt, *(g for g in known if g.precision > fmt.precision))]
    found = [f for f in (fmt, *known) if f.precision == precision]
    if not found:
        found = [ieee(15 if precision > 53 else max(fmt.exponent_bits, 8), precision)]
    return [usual_context(f) for f in dict.fromkeys(found)]


def kept_products(target: Target, root: Node) -> list[bool]:
    """For each term whether its product is added unrounded: a call for each.

    With ε = 2^(1 − precision), (1 + ε)² is 1 + 2ε + ε², and 1 + 2ε is a value: added to −(1 + 2ε), a product that is
    rounded to the format (or to any precision that has no room for ε²) leaves 0.
    """
    eps = 2.0 ** -(target.format.precision - 1)
    kept = [False] * target.n
    for node in _nodes(root):
        for k, child in enumerate(node.children):
            if child.children:
                continue
            partner = node.children[1 if k == 0 else 0].term
            terms, weights = np.zeros(target.n), np.ones(target.n)
            terms[child.term] = weights[child.term] = 1 + eps
            terms[partner] = -(1 + 2 * eps)
            kept[child.term] = target(terms, weights) != 0
    return kept


def node_precisions(probes: Masks, tree: Tree, usual: int) -> dict[int, int]:
    """The precision of the accumulator at each inner node but the root, by step; one call where it is the usual one
    and not larger, two and a bisection where it differs."""
    program = steps(tree)
    term = [0] * len(program)
    out: dict[int, int] = {}
    for k, (op, a, _) in enumerate(program):
        term[k] = a if op == "leaf" else term[a]
    parent = {c: (k, b if c == a else a) for k, (op, a, b) in enumerate(program) if op != "leaf" for c in (a, b)}
    for k, (op, a, b) in enumerate(program):
        if op == "leaf" or k not in parent:
            continue
        i, small, j = term[a], term[b], term[parent[k][1]]
        at = [probes.result(i, j, {small: 0}, probes.unit + gap - probes.weight) for gap in (usual - 1, usual)]
        out[k] = usual if at == [1, 0] else precision_at(probes, (i, j, small))
    return out


def _spread(precisions: dict[int, int]) -> str:
    counts = {p: sum(q == p for q in precisions.values()) for p in sorted(set(precisions.values()))}
    return "additions round to different precisions: " + ", ".join(f"{c} to {p} bits" for p, c in counts.items())


def _brief(terms: list[int]) -> str:
    return ", ".join(map(str, terms[:8])) + (", …" if len(terms) > 8 else "")
