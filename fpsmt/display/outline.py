"""What there is to draw of a summation tree that ran: its nodes, or the path to one of them with the rest cut off."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fpsmt.floats import Float
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.sums import evaluate_tree
from fpsmt.networks.trees import Step, Tree, steps

NEAR = 4  #: nodes of a path that are drawn at either end; what is between is left out

EXACT, INEXACT, OVERFLOW, INVALID, SPECIAL = "exact", "inexact", "overflow", "invalid", "special"


@dataclass(frozen=True)
class Node:
    """One step of a tree as it ran.

    `value` is None for a product that was not rounded on its own.  `error` is value − exact result of the node from
    its operands as they were, when both are finite.  `kind`: ``exact``; ``inexact``; ``overflow``, the exact
    result is finite and beyond the format's range; ``invalid``, NaN from operands that are not NaN; ``special``,
    an operand was infinite or NaN already.
    """

    step: Step
    value: Float | None
    error: Fraction | None
    kind: str

    @property
    def is_leaf(self) -> bool:
        return self.step.op == "leaf"

    @property
    def remark(self) -> str:
        """What rounding did, in a few words; empty where it did nothing."""
        if self.kind == INEXACT and self.error is not None and self.value is not None:
            ulps = self.error / self.value.ulp
            return f"error {fraction_text(self.error)}, {fraction_text(ulps)} ulp"
        return "" if self.kind in (EXACT, SPECIAL) else self.kind


def fraction_text(x: Fraction) -> str:
    """A short decimal; with ``~`` in front when it is not exact.

    >>> fraction_text(Fraction(-1, 4)), fraction_text(Fraction(1, 3)), fraction_text(Fraction(-64))
    ('-0.25', '~0.333333', '-64')
    """
    if x.denominator == 1 and abs(x) < 10**9:
        return str(x)
    try:
        text = f"{float(x):.6g}"
    except OverflowError:
        return f"~2^{x.numerator.bit_length() - x.denominator.bit_length()}"
    if x != 0 and float(x) == 0:
        return f"~2^{x.numerator.bit_length() - x.denominator.bit_length()}"
    return text if Fraction(text) == x else "~" + text


def nodes(problem: Sum, tree: Tree) -> list[Node]:
    """What happened at each step of the tree, in the order of `trees.steps`.

    >>> from fpsmt.floats import context, exactly, float16
    >>> ones = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> [node.remark for node in nodes(Sum(context("float16"), ones), ((0, 1), 2))]
    ['', '', 'error -1, -0.5 ulp', '', 'error -1, -0.5 ulp']
    """
    trace = evaluate_tree(problem.context, tree, problem.terms, problem.bias, problem.execution)
    program = steps(tree)
    leaves: list[tuple[Float, ...]] = [term if isinstance(term, tuple) else (term,) for term in problem.terms]
    if problem.bias is not None:
        leaves.append((problem.bias,))
    parts: list[tuple[Float, ...]] = []  # the exact result of a step as what the parent adds: a value, or two factors
    out: list[Node] = []
    for step, value in zip(program, trace.values, strict=True):
        operands = [leaves[step.left]] if step.op == "leaf" else [parts[step.left], parts[step.right]]
        out.append(_node(step, value, operands))
        parts.append(operands[0] if value is None else (value,))
    return out


def _node(step: Step, value: Float | None, operands: Sequence[tuple[Float, ...]]) -> Node:
    if value is None:
        return Node(step, None, None, EXACT)
    factors = [x for part in operands for x in part]
    if not all(x.is_finite for x in factors):
        invalid = value.is_nan and not any(x.is_nan for x in factors)
        return Node(step, value, None, INVALID if invalid else SPECIAL)
    exact = Fraction(0)
    for part in operands:
        product = Fraction(1)
        for x in part:
            product *= x.fraction
        exact += product
    error = value.fraction - exact if value.is_finite else None
    if error is None or (error != 0 and abs(exact) > value.format.largest):
        return Node(step, value, error, OVERFLOW)
    return Node(step, value, error, EXACT if error == 0 else INEXACT)


def term_names(problem: Sum) -> list[str]:
    """What the leaves are called: the terms, the bias last."""
    names = [f"{t[0]}·{t[1]}" if isinstance(t, tuple) else str(t) for t in problem.terms]
    return names if problem.bias is None else [*names, f"bias {problem.bias}"]


# -- what is drawn --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """One thing that is drawn.

    * A node: `children` are its children's places among the items, none for a leaf.
    * A subtree cut down to the value at its root: `cut` is how many terms it adds.
    * A stretch of a path that is left out: `node` is None, `cut` is how many nodes, and it has one child.

    `parts`: it is a node where the tree parts from another one.
    """

    node: Node | None
    children: tuple[int, ...] = ()
    cut: int = 0
    parts: bool = False


def whole(ran: Sequence[Node], marks: Collection[int] = ()) -> list[Item]:
    """Every node, children before their parent; those at the places `marks` part."""
    marks = set(marks)
    return [Item(n, () if n.is_leaf else (n.step.left, n.step.right), 0, k in marks) for k, n in enumerate(ran)]


def path(ran: Sequence[Node], marks: Sequence[int]) -> list[Item]:
    """The path from the root to one node where the tree parts: the first that is rounded, else the first, else the
    root.  Subtrees beside the path and below its end are cut, and so is the middle of a long path."""
    target = next((k for k in marks if ran[k].kind != EXACT), marks[0] if marks else len(ran) - 1)
    parent = [0] * len(ran)
    terms = [1] * len(ran)
    for k, node in enumerate(ran):
        if not node.is_leaf:
            parent[node.step.left] = parent[node.step.right] = k
            terms[k] = terms[node.step.left] + terms[node.step.right]
    climb = [target]
    while climb[-1] < len(ran) - 1:
        climb.append(parent[climb[-1]])
    items: list[Item] = []
    below = -1  # the item of the node of the path that was drawn last
    for place, up in _shortened(climb):
        if up is None:
            items.append(Item(None, (below,), place))
        else:
            step = ran[up].step
            children = []
            for child in () if ran[up].is_leaf else (step.left, step.right):
                if place and child == climb[place - 1]:
                    children.append(below)
                else:
                    items.append(Item(ran[child], cut=0 if ran[child].is_leaf else terms[child]))
                    children.append(len(items) - 1)
            items.append(Item(ran[up], tuple(children), 0, up in marks))
        below = len(items) - 1
    return items


def _shortened(climb: list[int]) -> Iterator[tuple[int, int | None]]:
    """(place, node) on the way up; (how many, None) for the middle of a long way."""
    left_out = len(climb) - 2 * NEAR - 1
    for place, k in enumerate(climb):
        if left_out <= 1 or place <= NEAR or place >= len(climb) - NEAR:
            yield place, k
        elif place == NEAR + 1:
            yield left_out, None
