"""Summation trees: in which order n terms are added.

A tree over terms 0…n−1 is a nested tuple:

* a leaf is the index of its term, an ``int``;
* an inner node ``(left, right)`` rounds the sum of its children's values once;
* a fused node ``("fma", leaf, right)`` rounds w[leaf]·x[leaf] + value(right) once: the product of its leaf is
  not rounded on its own.

⊕ commutes (on values, ±0, ±inf and NaN included), so trees that differ by exchanging the children of inner
nodes are one tree; its *canonical* form puts the child with the smallest leaf on the left.  The two children
of a fused node do not commute.

Trees may be as deep as they have terms.  Everything here runs on explicit stacks; Python's own ``==``,
``hash``, ``repr`` and ``json`` recurse, so compare deep trees with `same_tree` and write them with `tree_text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from fpsmt.errors import UsageError

#: ``int``, ``(Tree, Tree)`` or ``("fma", int, Tree)``.
Tree = int | tuple[Any, ...]

#: Trees higher than this are written in JSON as one string, because JSON writers and readers recurse.
NESTED_HEIGHT = 200


class Step(NamedTuple):
    """One node of a tree in postorder: children come before their parent.

    `op` is ``"leaf"`` (then `left` is the index of the term and `right` is −1), ``"add"`` or ``"fma"`` (then
    both are positions of earlier steps; the left step of an ``fma`` is the leaf whose product it fuses).
    """

    op: str
    left: int
    right: int


def is_leaf(tree: Tree) -> bool:
    return isinstance(tree, int) and not isinstance(tree, bool)


def is_fused(tree: Tree) -> bool:
    return isinstance(tree, tuple) and len(tree) == 3 and tree[0] == "fma"


def steps(tree: Tree) -> list[Step]:
    """The tree as a straight-line program, left child first; the last step is the root.

    >>> steps(((0, 1), 2))[2:]
    [Step(op='add', left=0, right=1), Step(op='leaf', left=2, right=-1), Step(op='add', left=2, right=3)]
    """
    out: list[Step] = []
    done: list[int] = []  # positions of finished subtrees
    todo: list[tuple[Any, bool]] = [(tree, False)]
    while todo:
        node, ready = todo.pop()
        if ready:
            right, left = done.pop(), done.pop()
            done.append(len(out))
            out.append(Step("fma" if is_fused(node) else "add", left, right))
        elif is_leaf(node):
            done.append(len(out))
            out.append(Step("leaf", node, -1))
        elif isinstance(node, tuple) and len(node) == 2:
            todo += [(node, True), (node[1], False), (node[0], False)]
        elif is_fused(node):
            if not is_leaf(node[1]):
                raise UsageError(f"a fused node is ('fma', leaf, right): {_brief(node[1])} is not a leaf")
            todo += [(node, True), (node[2], False), (node[1], False)]
        else:
            raise UsageError(
                f"{_brief(node)} is not a summation tree: write a leaf (an int), (left, right) or ('fma', leaf, right)"
            )
    return out


def _brief(thing: object) -> str:
    if isinstance(thing, tuple | list):
        return f"a {type(thing).__name__} of length {len(thing)}"
    return repr(thing)


def fold(
    tree: Tree,
    leaf: Callable[[int], Any],
    node: Callable[[Any, Any], Any],
    fused: Callable[[int, Any], Any] | None = None,
) -> Any:
    """The value at the root when leaves, inner nodes and fused nodes (default: as inner nodes) compute as given.

    >>> fold(((0, 1), 2), str, lambda a, b: f"<{a} {b}>")
    '<<0 1> 2>'
    """
    program = steps(tree)
    values: list[Any] = [None] * len(program)
    for k, (op, a, b) in enumerate(program):
        if op == "leaf":
            values[k] = leaf(a)
        elif op == "add" or fused is None:
            values[k] = node(values[a], values[b])
            values[a] = values[b] = None
        else:
            values[k] = fused(program[a].left, values[b])
            values[b] = None
    return values[-1]


# -- shape ------------------------------------------------------------------------------------------------


def leaves(tree: Tree) -> list[int]:
    """The leaves from left to right."""
    return [a for op, a, _ in steps(tree) if op == "leaf"]


def size(tree: Tree) -> int:
    """How many leaves."""
    return (len(steps(tree)) + 1) // 2


def height(tree: Tree) -> int:
    """Edges on the longest path from the root to a leaf; 0 for a leaf.

    >>> height(((0, 1), 2)), height(((0, 1), (2, 3))), height(0)
    (2, 2, 0)
    """
    return int(fold(tree, lambda _: 0, lambda a, b: 1 + max(a, b), lambda _, b: 1 + b))


def has_fused(tree: Tree) -> bool:
    return any(op == "fma" for op, _, _ in steps(tree))


def check_tree(tree: Tree, n: int) -> None:
    """Raises a usage error unless the tree has the leaves 0…n−1, each once."""
    if n < 1:
        raise UsageError(f"a tree needs at least one term, not {n}: an empty sum has no tree (its value is +0)")
    seen = bytearray(n)
    for leaf in leaves(tree):
        if not 0 <= leaf < n:
            raise UsageError(f"the tree has a leaf {leaf}: with {n} terms the leaves are 0…{n - 1}")
        if seen[leaf]:
            raise UsageError(f"the tree has the leaf {leaf} twice: each of the {n} terms must appear once")
        seen[leaf] = 1
    missing = [i for i in range(n) if not seen[i]]
    if missing:
        some = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise UsageError(f"the tree leaves out terms {some}: each of the {n} terms must appear once")


# -- changing ---------------------------------------------------------------------------------------------


def canonical(tree: Tree) -> Tree:
    """The same tree with the children of every inner node ordered by their smallest leaf.

    >>> canonical(((2, (1, 0)), 3))
    (((0, 1), 2), 3)
    >>> canonical(("fma", 2, (1, 0)))
    ('fma', 2, (0, 1))
    """
    _, made = fold(
        tree,
        lambda i: (i, i),
        lambda a, b: (a[0], (a[1], b[1])) if a[0] <= b[0] else (b[0], (b[1], a[1])),
        lambda i, b: (min(i, b[0]), ("fma", i, b[1])),
    )
    return made  # type: ignore[no-any-return]


def unfuse(tree: Tree) -> Tree:
    """The tree with every fused node ``("fma", leaf, right)`` turned into the inner node ``(leaf, right)``."""
    return fold(tree, lambda i: i, lambda a, b: (a, b))  # type: ignore[no-any-return]


def relabel(tree: Tree, names: Sequence[int] | Callable[[int], int]) -> Tree:
    """The tree with each leaf i replaced by ``names[i]`` (or ``names(i)``); not canonical in general.

    >>> relabel(((0, 1), 2), [2, 0, 1])
    ((2, 0), 1)
    """
    name = names if callable(names) else names.__getitem__
    return fold(tree, name, lambda a, b: (a, b), lambda i, b: ("fma", name(i), b))  # type: ignore[no-any-return]


def same_tree(a: Tree, b: Tree) -> bool:
    """Whether two trees are equal up to commuting; safe for deep trees.

    >>> same_tree((2, (0, 1)), ((1, 0), 2)), same_tree((0, (1, 2)), ((0, 1), 2))
    (True, False)
    """
    return steps(canonical(a)) == steps(canonical(b))


def partings(a: Tree, b: Tree) -> tuple[list[int], list[int]]:
    """Where two trees over the same leaves part: the nodes of each that the other has not, though it has both children.

    They are positions in ``steps(a)`` and in ``steps(b)``, ascending; none when the trees are the same.  Subtrees are
    the same when they are equal up to commuting, fused nodes included: then they have the same value.

    >>> partings(((0, 1), 2), (2, (1, 0))), partings(((0, 1), 2), ((0, 2), 1)), partings((0, 1), ("fma", 1, 0))
    (([], []), ([2], [2]), ([2], [2]))
    """
    names: dict[Any, int] = {}  # of subtrees: their leaf, or what they add, by name
    programs = steps(a), steps(b)
    named: list[list[int]] = []
    for program in programs:
        own: list[int] = []
        for op, left, right in program:
            key: Any = left
            if op != "leaf":
                x, y = own[left], own[right]
                key = (op, x, y) if op == "fma" or x < y else (op, y, x)
            own.append(names.setdefault(key, len(names)))
        named.append(own)
    common = set(named[0]) & set(named[1])
    first, second = (
        [
            k
            for k, (op, left, right) in enumerate(program)
            if op != "leaf" and own[k] not in common and own[left] in common and own[right] in common
        ]
        for program, own in zip(programs, named, strict=True)
    )
    return first, second


# -- text and JSON ----------------------------------------------------------------------------------------


def tree_text(tree: Tree) -> str:
    """One line: ``((0+1)+2)``; a fused node is ``fma(2,(0+1))``.

    >>> tree_text(("fma", 3, ((0, 1), 2)))
    'fma(3,((0+1)+2))'
    """
    out: list[str] = []
    todo: list[Any] = [tree]
    steps(tree)
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            out.append(node)
        elif is_leaf(node):
            out.append(str(node))
        elif is_fused(node):
            todo += [")", node[2], f"fma({node[1]},"]
        else:
            todo += [")", node[1], "+", node[0], "("]
    return "".join(out)


_TOKEN = re.compile(r'\s*(?:(\d+)|([(\[])|([)\]])|([+,])|("?fma"?))')


def read_tree(text: str) -> Tree:
    """Reads `tree_text` and its JSON (``[[0, 1], 2]``, ``["fma", 2, [0, 1]]``); not made canonical.

    >>> read_tree("((0+1)+2)") == read_tree("[[0,1],2]") == ((0, 1), 2)
    True
    >>> read_tree("((0+1)+")
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: cannot read '((0+1)+' as a summation tree: it ends too early; \
write e.g. ((0+1)+2) or fma(2,(0+1))
    """
    stack: list[list[Any]] = [[]]
    brackets: list[str] = []
    want_value, at = True, 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text, f"unexpected {text[at : at + 10].strip()!r}")
        number, opening, closing, separator, fma = match.groups()
        if (want_value == bool(closing or separator)) or (brackets == [] and stack[0]):
            raise _unreadable(text, f"unexpected {match[0].strip()!r} at character {match.start() + 1}")
        at = match.end()
        if number:
            stack[-1].append(int(number))
            want_value = False
        elif separator:
            want_value = True
        elif opening:
            stack.append([])
            brackets.append(opening)
        elif fma == '"fma"':
            stack[-1].append("fma")
            want_value = False
        elif fma:
            if fma != "fma" or text[at : at + 1] != "(":
                raise _unreadable(text, "fma needs its arguments: fma(leaf,tree)")
            stack.append(["fma"])
            brackets.append("(")
            at += 1
        else:
            if not brackets or "([".index(brackets.pop()) != ")]".index(closing):
                raise _unreadable(text, f"unmatched {closing!r} at character {match.end()}")
            parts = stack.pop()
            stack[-1].append(_node(parts, text))
    if brackets or want_value or len(stack[0]) != 1:
        raise _unreadable(text, "it ends too early")
    tree = stack[0][0]
    if tree == "fma":
        raise _unreadable(text, "fma needs its arguments")
    return tree  # type: ignore[no-any-return]


def _node(parts: list[Any], text: str) -> Tree:
    if parts and parts[0] == "fma":
        if len(parts) == 3 and is_leaf(parts[1]) and parts[2] != "fma":
            return ("fma", parts[1], parts[2])
        raise _unreadable(text, "fma takes a leaf and a tree")
    if len(parts) == 2 and "fma" not in [p for p in parts if isinstance(p, str)]:
        return (parts[0], parts[1])
    raise _unreadable(text, f"a node has two children, not {len(parts)}")


def _unreadable(text: str, why: str) -> UsageError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UsageError(f"cannot read {shown!r} as a summation tree: {why}; write e.g. ((0+1)+2) or fma(2,(0+1))")


def tree_to_json(tree: Tree) -> Any:
    """Nested lists; a tree higher than `NESTED_HEIGHT` is its `tree_text` instead, which any JSON writer takes.

    >>> tree_to_json((("fma", 1, 0), 2))
    [['fma', 1, 0], 2]
    """
    if height(tree) > NESTED_HEIGHT:
        return tree_text(tree)
    return fold(tree, lambda i: i, lambda a, b: [a, b], lambda i, b: ["fma", i, b])


def tree_from_json(data: Any, n: int | None = None) -> Tree:
    """Reads what `tree_to_json` writes (nested lists or text); with n, also checks the leaves."""
    if isinstance(data, str):
        tree = read_tree(data)
    else:
        tree = _from_lists(data)
    if n is not None:
        check_tree(tree, n)
    return tree


def _from_lists(data: Any) -> Tree:
    done: list[Any] = []
    todo: list[tuple[Any, bool]] = [(data, False)]
    while todo:
        node, ready = todo.pop()
        if ready:
            right, left = done.pop(), done.pop()
            done.append((left, right) if len(node) == 2 else ("fma", left, right))
        elif isinstance(node, list | tuple) and len(node) == 2:
            todo += [(node, True), (node[1], False), (node[0], False)]
        elif isinstance(node, list | tuple) and len(node) == 3 and node[0] == "fma" and is_leaf(node[1]):
            todo += [(node, True), (node[2], False), (node[1], False)]
        elif is_leaf(node) and node >= 0:
            done.append(node)
        else:
            raise UsageError(
                f"{_brief(node)} is not a summation tree in JSON: write a term's index, [left, right] "
                'or ["fma", leaf, right]'
            )
    return done[0]  # type: ignore[no-any-return]


def render(
    tree: Tree,
    labels: Sequence[object] | None = None,
    terms: Sequence[object] | None = None,
    most: int = 400,
) -> str:
    """Several lines, a node on each, children indented below their parent.

    `labels` are the values at the nodes in the order of `steps` (None shows nothing); `terms` names the leaves
    (default their index).  At most `most` lines are written, then how many are left out.

    >>> print(render(((0, 1), 2), labels=[0.5, 1, 1.5, 2, 3.5], terms="abc"))
    + = 3.5
    |-- + = 1.5
    |   |-- a = 0.5
    |   `-- b = 1
    `-- c = 2
    """
    program = steps(tree)
    if labels is not None and len(labels) != len(program):
        raise UsageError(f"render: {len(labels)} labels for a tree of {len(program)} nodes")
    lines: list[str] = []
    todo: list[tuple[int, str, str]] = [(len(program) - 1, "", "")]
    while todo and len(lines) < most:
        k, first, rest = todo.pop()
        op, a, b = program[k]
        name = {"add": "+", "fma": "fma"}.get(op) or str(terms[a] if terms is not None else a)
        value = "" if labels is None or labels[k] is None else f" = {labels[k]}"
        lines.append(first + name + value)
        if op != "leaf":
            todo.append((b, rest + "`-- ", rest + "    "))
            todo.append((a, rest + "|-- ", rest + "|   "))
    if len(lines) < len(program):
        lines.append(f"... {len(program) - len(lines)} more nodes")
    return "\n".join(lines)


# -- common shapes ----------------------------------------------------------------------------------------


def left_fold(terms: Iterable[Tree]) -> Tree:
    """((t₀ + t₁) + t₂) + …, the running sum.

    >>> left_fold([2, 0, 1])
    ((2, 0), 1)
    """
    items = iter(terms)
    acc = next(items, None)
    if acc is None:
        raise UsageError("a summation tree needs at least one term: an empty sum has no tree (its value is +0)")
    for term in items:
        acc = (acc, term)
    return acc


def right_fold(terms: Sequence[Tree]) -> Tree:
    """t₀ + (t₁ + (t₂ + …)).

    >>> right_fold([0, 1, 2])
    (0, (1, 2))
    """
    if not terms:
        raise UsageError("a summation tree needs at least one term: an empty sum has no tree (its value is +0)")
    acc = terms[-1]
    for term in reversed(terms[:-1]):
        acc = (term, acc)
    return acc


def balanced(terms: Sequence[Tree]) -> Tree:
    """Halves of halves, in place: height ⌈log₂ n⌉, the least possible.

    >>> balanced([0, 1, 2, 3, 4])
    (((0, 1), 2), (3, 4))
    """
    if len(terms) < 2:
        return left_fold(terms)
    half = (len(terms) + 1) // 2
    return (balanced(terms[:half]), balanced(terms[half:]))
