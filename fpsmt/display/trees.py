"""Summation trees as people see them: the value at each node, and what rounding did there, as text and as SVG."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from html import escape

from fpsmt.display.outline import (
    EXACT,
    INEXACT,
    INVALID,
    OVERFLOW,
    SPECIAL,
    Item,
    fraction_text,
    nodes,
    path,
    term_names,
    whole,
)
from fpsmt.errors import UsageError
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import Tree, partings

MAX_LEAVES = 64  #: of a tree that is drawn whole
MARK = "<-- they part here"
INDENT, GAP = "  ", 4


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
    return [*cast_note(problem, tree), *_item_lines(problem, whole(nodes(problem, tree)), most)]


def cast_note(problem: Sum, tree: Tree) -> list[str]:
    """That the root is rounded once more, when the accumulator is not the sum's own context."""
    if problem.execution.sum_context(problem.context) == problem.context:
        return []
    return [f"result {problem.evaluate(tree)}, the root rounded to {problem.context}"]


def side_by_side_lines(
    problem: Sum,
    left: Tree,
    right: Tree,
    most: int = 2 * MAX_LEAVES - 1,
    titles: tuple[str, str] | None = None,
    width: int | None = None,
) -> list[str]:
    """Two trees of one sum, with the nodes where they part marked (`trees.partings`); in two columns if these fit into
    the width (of the terminal), else one below the other.

    Of a tree with more than `most` nodes only the path to one marked node is shown: ``N terms`` is a subtree that
    adds N terms, with its value.  Titles are by default the results.

    >>> from fpsmt.floats import context, exactly, float16
    >>> ones = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> two = side_by_side_lines(Sum(context("float16"), ones), ((0, 1), 2), (0, (1, 2)), width=100)
    >>> print("\\n".join(two))
    2048.0:                                                         2050.0:
      + = 2048.0   (error -1, -0.5 ulp)                               + = 2050.0
      |-- + = 2048.0   (error -1, -0.5 ulp)   <-- they part here      |-- 2048.0
      |   |-- 2048.0                                                  `-- + = 2.0   <-- they part here
      |   `-- 1.0                                                         |-- 1.0
      `-- 1.0                                                             `-- 1.0
    """
    columns = []
    for tree, marks, title in zip((left, right), partings(left, right), titles or (None, None), strict=True):
        ran = nodes(problem, tree)
        lines = [*cast_note(problem, tree)]
        if len(ran) <= most:
            lines += _item_lines(problem, whole(ran, marks), most)
        else:
            lines += _item_lines(problem, path(ran, marks), most)
            lines.append(_path_note(len(marks)))
        columns.append([title or f"{problem.evaluate(tree).decimal}:", *(INDENT + line for line in lines)])
    one, two = columns
    wide = max(map(len, one)) + GAP
    if wide + max(map(len, two)) > (width or shutil.get_terminal_size().columns):
        return [*one, "", *two]
    rows = max(len(one), len(two))
    one, two = (column + [""] * (rows - len(column)) for column in (one, two))
    return [(a.ljust(wide) + b).rstrip() for a, b in zip(one, two, strict=True)]


def _path_note(marked: int) -> str:
    which = "the node" if marked == 1 else f"one of {marked} nodes"
    return f"(the path to {which} where they part)" if marked else "(they are one tree)"


def _item_lines(problem: Sum, items: Sequence[Item], most: int) -> list[str]:
    """A line for each thing drawn, children indented below their parent; at most so many, then how many are left."""
    names = term_names(problem)
    lines: list[str] = []
    todo: list[tuple[int, str, str]] = [(len(items) - 1, "", "")]
    while todo and len(lines) < most:
        k, first, rest = todo.pop()
        item = items[k]
        lines.append(first + _item_text(item, names, problem.is_dot))
        for place, child in reversed(list(enumerate(item.children))):
            last = place == len(item.children) - 1
            todo.append((child, rest + ("`-- " if last else "|-- "), rest + ("    " if last else "|   ")))
    if len(lines) < len(items):
        lines.append(f"... {len(items) - len(lines)} more nodes")
    return lines


def _item_text(item: Item, names: Sequence[str], dot: bool) -> str:
    node = item.node
    if node is None:
        return f"... {item.cut} nodes ..."
    if item.cut:
        return f"{item.cut} terms = {node.value}"
    remark = f"   ({node.remark})" if node.remark else ""
    name = names[node.step.left] if node.is_leaf else {"add": "+"}.get(node.step.op, node.step.op)
    plain = node.value is None or (node.is_leaf and not dot and not remark)
    return name + ("" if plain else f" = {node.value}{remark}") + (f"   {MARK}" if item.parts else "")


# -- SVG ----------------------------------------------------------------------------------------------------

_COLOURS = {EXACT: "#1a7f37", INEXACT: "#b07d00", OVERFLOW: "#cf222e", INVALID: "#cf222e", SPECIAL: "#57606a"}
_PARTING, _GREY = "#8250df", "#57606a"
_ROW, _TOP, _CHAR = 58, 30, 6.6


def tree_svg(problem: Sum, tree: Tree, title: str = "") -> str:
    """The tree as an SVG element: root on top, at each node its value, below it the rounding error.

    Colours: green exact, amber inexact, red overflow or invalid, grey already special; dashed boxes are products
    that are not rounded on their own.  Each node has a tooltip with decimal, hex and bits.  Trees of more than
    `MAX_LEAVES` leaves are a usage error: print them with `tree_lines`.
    """
    ran = nodes(problem, tree)
    if len(ran) > 2 * MAX_LEAVES - 1:
        raise UsageError(f"a tree of {(len(ran) + 1) // 2} leaves is too large to draw: print it with tree_lines")
    width, height, body = _drawing(problem, tree, whole(ran))
    return _svg(width, height, title or f"summation tree with result {problem.evaluate(tree)}", body)


def side_by_side(problem: Sum, left: Tree, right: Tree) -> str:
    """Two trees of one sum in one SVG element, for comparing two executions.

    The nodes where they part (`trees.partings`) have a violet frame.  Of trees with more than `MAX_LEAVES` leaves only
    the path to one of these is drawn; a subtree that is cut off has its value and its number of terms.
    """
    drawings = []
    notes = []
    for tree, marks in zip((left, right), partings(left, right), strict=True):
        ran = nodes(problem, tree)
        small = len(ran) <= 2 * MAX_LEAVES - 1
        drawings.append(_drawing(problem, tree, whole(ran, marks) if small else path(ran, marks)))
        notes.append("" if small else _path_note(len(marks)))
    one, two = drawings
    at = max(one[0], len(notes[0]) * _CHAR) + 24
    height = max(one[1], two[1])
    body = f'{one[2]}<g transform="translate({at:.0f} 0)">{two[2]}</g>'
    legend = "the same tree, up to commuting" if not any(partings(left, right)) else "violet: where the two trees part"
    for x, y, text in ((4.0, height + 14, notes[0]), (at, height + 14, notes[1]), (4.0, height + 30, legend)):
        body += f'<text x="{x:.0f}" y="{y:.0f}" fill="{_PARTING if text == legend else _GREY}">{text}</text>'
    title = f"two summation trees with results {problem.evaluate(left)} and {problem.evaluate(right)}"
    return _svg(at + max(two[0], len(notes[1]) * _CHAR, 220.0 - at), height + 38, title, body)


def _svg(width: float, height: float, title: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" style="max-width:100%;height:auto" font-family="monospace" font-size="11">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def _drawing(problem: Sum, tree: Tree, items: Sequence[Item]) -> tuple[float, float, str]:
    names = term_names(problem)
    captions = [_captions(item, names) for item in items]
    step = max(len(line) for lines in captions for line in lines) * _CHAR + 16
    x: list[float] = []
    y = [0] * len(items)
    leaves = 0
    for item in items:
        if not item.children:
            x.append((leaves + 0.5) * step)
            leaves += 1
        else:
            x.append(sum(x[c] for c in item.children) / len(item.children))
    for k in range(len(items) - 1, -1, -1):
        for child in items[k].children:
            y[child] = y[k] + 1
    edges, boxes = [], []
    for k, item in enumerate(items):
        edges += [
            f'<line x1="{x[k]:.1f}" y1="{_TOP + _ROW * y[k]}" x2="{x[c]:.1f}" y2="{_TOP + _ROW * y[c]}"/>'
            for c in item.children
        ]
        boxes.append(_box(item, captions[k], x[k], _TOP + _ROW * y[k]))
    for line in cast_note(problem, tree):
        text = f'<text x="{x[-1]:.1f}" y="14" text-anchor="middle" fill="currentColor">{escape(line)}</text>'
        boxes.append(text)
    lines = f'<g stroke="#8c959f" stroke-width="1">{"".join(edges)}</g>'
    return leaves * step, _TOP + _ROW * (max(y) + 1) - 10, lines + "".join(boxes)


def _captions(item: Item, names: Sequence[str]) -> list[str]:
    """The lines at a node: its value, or its term; then what rounding did, or what is left out."""
    node = item.node
    if node is None:
        return [f"{item.cut} nodes"]
    if item.cut:
        return [str(node.value), f"{item.cut} terms"]
    if node.is_leaf:
        name = names[node.step.left]
        text = name if node.value is None or name == str(node.value) else f"{name} = {node.value}"
    else:
        text = f"{'fma ' if node.step.op == 'fma' else ''}{node.value}"
    note = node.remark
    if node.kind == INEXACT and node.error is not None:
        note = f"error {fraction_text(node.error)}"
    return [text, note] if note else [text]


def _box(item: Item, captions: list[str], x: float, y: float) -> str:
    node = item.node
    drawn = node is not None and not item.cut
    kind = node.kind if node is not None and drawn else "cut"
    colour = _COLOURS.get(kind, _GREY)
    width = len(captions[0]) * _CHAR + 10
    dashed = ' stroke-dasharray="3 2"' if node is None or node.value is None else ""
    strong = "2" if kind in (OVERFLOW, INVALID, INEXACT) else "1"
    frame = note = ""
    if item.parts:
        frame = (
            f'<rect x="{x - width / 2 - 4:.1f}" y="{y - 14}" width="{width + 8:.1f}" height="28" rx="7" '
            f'fill="{_PARTING}" fill-opacity="0.15" stroke="{_PARTING}" stroke-width="2"/>'
        )
    if len(captions) > 1:
        below = y + (26 if item.parts else 22)
        note = f'<text x="{x:.1f}" y="{below}" text-anchor="middle" fill="{colour}">{escape(captions[1])}</text>'
    return (
        f'<g class="{kind}{" parting" if item.parts else ""}"><title>{escape(_tip(item))}</title>{frame}'
        f'<rect x="{x - width / 2:.1f}" y="{y - 10}" width="{width:.1f}" height="20" rx="4" fill="white" '
        f'stroke="{colour}" stroke-width="{strong}"{dashed}/>'
        f'<text x="{x:.1f}" y="{y + 4}" text-anchor="middle" fill="#1f2328">{escape(captions[0])}</text>{note}</g>'
    )


def _tip(item: Item) -> str:
    node = item.node
    if node is None:
        return f"{item.cut} nodes of the path are left out"
    tip = "not rounded on its own" if node.value is None else f"{node.value!r} {node.value.bit_string}"
    if item.cut:
        return f"{tip}; a subtree of {item.cut} terms"
    return tip + (f"; {node.remark}" if node.remark else "") + ("; the two trees part here" if item.parts else "")
