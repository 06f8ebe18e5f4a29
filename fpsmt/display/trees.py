"""Summation trees as people see them: the value at each node, and what rounding did there, as text and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from fpsmt.errors import UsageError
from fpsmt.floats import Float
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.sums import evaluate_tree
from fpsmt.networks.trees import Step, Tree, render, steps

MAX_LEAVES = 64  #: of a tree that is drawn

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


def tree_lines(problem: Sum, tree: Tree, most: int = 400) -> list[str]:
    """The tree, a node on each line, with its value and what rounding did.

    >>> from fpsmt.floats import context, exactly, float16
    >>> ones = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> print("\\n".join(tree_lines(Sum(context("float16"), ones), ((0, 1), 2))))
    + = 2048.0   (error -1, -0.5 ulp)
    |-- + = 2048.0   (error -1, -0.5 ulp)
    |   |-- 2048.0
    |   `-- 1.0
    `-- 1.0
    """
    labels: list[str | None] = []
    for node in nodes(problem, tree):
        remark = f"   ({node.remark})" if node.remark else ""
        plain = node.step.op == "leaf" and not problem.is_dot and not remark
        labels.append(None if node.value is None or plain else f"{node.value}{remark}")
    return [*cast_note(problem, tree), *render(tree, labels, term_names(problem), most).splitlines()]


def cast_note(problem: Sum, tree: Tree) -> list[str]:
    """That the root is rounded once more, when the accumulator is not the sum's own context."""
    if problem.execution.sum_context(problem.context) == problem.context:
        return []
    return [f"result {problem.evaluate(tree)}, the root rounded to {problem.context}"]


# -- SVG ----------------------------------------------------------------------------------------------------

_COLOURS = {EXACT: "#1a7f37", INEXACT: "#b07d00", OVERFLOW: "#cf222e", INVALID: "#cf222e", SPECIAL: "#57606a"}
_ROW, _TOP, _CHAR = 58, 30, 6.6


def tree_svg(problem: Sum, tree: Tree, title: str = "") -> str:
    """The tree as an SVG element: root on top, at each node its value, below it the rounding error.

    Colours: green exact, amber inexact, red overflow or invalid, grey already special; dashed boxes are products
    that are not rounded on their own.  Each node has a tooltip with decimal, hex and bits.  Trees of more than
    `MAX_LEAVES` leaves are a usage error: print them with `tree_lines`.
    """
    width, height, body = _drawing(problem, tree)
    return _svg(width, height, title or f"summation tree with result {problem.evaluate(tree)}", body)


def side_by_side(problem: Sum, left: Tree, right: Tree) -> str:
    """Two trees of one sum in one SVG element, for comparing two executions."""
    one, two = _drawing(problem, left), _drawing(problem, right)
    body = f'{one[2]}<g transform="translate({one[0] + 24:.0f} 0)">{two[2]}</g>'
    title = f"two summation trees with results {problem.evaluate(left)} and {problem.evaluate(right)}"
    return _svg(one[0] + 24 + two[0], max(one[1], two[1]), title, body)


def _svg(width: float, height: float, title: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" style="max-width:100%;height:auto" font-family="monospace" font-size="11">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def _drawing(problem: Sum, tree: Tree) -> tuple[float, float, str]:
    ran = nodes(problem, tree)
    if (len(ran) + 1) // 2 > MAX_LEAVES:
        raise UsageError(f"a tree of {(len(ran) + 1) // 2} leaves is too large to draw: print it with tree_lines")
    names = term_names(problem)
    captions = [_captions(node, names) for node in ran]
    step = max(len(line) for lines in captions for line in lines) * _CHAR + 16
    x: list[float] = []
    y = [0] * len(ran)
    leaves = 0
    for node in ran:
        if node.step.op == "leaf":
            x.append((leaves + 0.5) * step)
            leaves += 1
        else:
            x.append((x[node.step.left] + x[node.step.right]) / 2)
    for k in range(len(ran) - 1, -1, -1):
        if ran[k].step.op != "leaf":
            y[ran[k].step.left] = y[ran[k].step.right] = y[k] + 1
    edges, boxes = [], []
    for k, node in enumerate(ran):
        if node.step.op != "leaf":
            edges += [
                f'<line x1="{x[k]:.1f}" y1="{_TOP + _ROW * y[k]}" x2="{x[c]:.1f}" y2="{_TOP + _ROW * y[c]}"/>'
                for c in node.step[1:]
            ]
        boxes.append(_box(node, captions[k], x[k], _TOP + _ROW * y[k]))
    for line in cast_note(problem, tree):
        text = f'<text x="{x[-1]:.1f}" y="14" text-anchor="middle" fill="currentColor">{escape(line)}</text>'
        boxes.append(text)
    lines = f'<g stroke="#8c959f" stroke-width="1">{"".join(edges)}</g>'
    return leaves * step, _TOP + _ROW * (max(y) + 1) - 10, lines + "".join(boxes)


def _captions(node: Node, names: Sequence[str]) -> list[str]:
    """The lines at a node: its value, or its term; then what rounding did."""
    if node.step.op == "leaf":
        name = names[node.step.left]
        text = name if node.value is None or name == str(node.value) else f"{name} = {node.value}"
    else:
        text = f"{'fma ' if node.step.op == 'fma' else ''}{node.value}"
    note = node.remark
    if node.kind == INEXACT and node.error is not None:
        note = f"error {fraction_text(node.error)}"
    return [text, note] if note else [text]


def _box(node: Node, captions: list[str], x: float, y: float) -> str:
    colour = _COLOURS[node.kind]
    width = len(captions[0]) * _CHAR + 10
    dashed = ' stroke-dasharray="3 2"' if node.value is None else ""
    strong = "2" if node.kind in (OVERFLOW, INVALID, INEXACT) else "1"
    tip = "not rounded on its own" if node.value is None else f"{node.value!r} {node.value.bit_string}"
    if node.remark:
        tip += f"; {node.remark}"
    note = ""
    if len(captions) > 1:
        note = f'<text x="{x:.1f}" y="{y + 22}" text-anchor="middle" fill="{colour}">{escape(captions[1])}</text>'
    return (
        f'<g class="{node.kind}"><title>{escape(tip)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - 10}" width="{width:.1f}" height="20" rx="4" fill="white" '
        f'stroke="{colour}" stroke-width="{strong}"{dashed}/>'
        f'<text x="{x:.1f}" y="{y + 4}" text-anchor="middle" fill="#1f2328">{escape(captions[0])}</text>{note}</g>'
    )
