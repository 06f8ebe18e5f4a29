"""A revealed summation tree as text: drawn when small, in outline when large, with what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from fpsmt.engines.agreement import Mismatch, Shape
from fpsmt.engines.reveal import Revealed, family
from fpsmt.networks.trees import Tree, is_leaf, leaves, relabel, render, tree_text, unfuse

DRAWN = 24  #: terms of a tree that is drawn whole
LINES = 40  #: of an outline
TEXT = 64  #: terms of a tree whose text is on the first line


def machine_line(found: Revealed) -> str:
    """The first line: what was found, as words and NAME=VALUE."""
    word = {True: "agrees", False: "differs", None: "unchecked"}[found.agrees]
    order = found.family or ("multi-term" if found.tree is None else "given")
    if order == "given" and found.order is not None and found.n <= TEXT:
        order = str(found.order)
    words = [f"reveal {word} terms={found.n} calls={found.calls} order={order}"]
    words.append(f"accumulator={found.accumulator or ('mixed' if found.contexts else 'none')}")
    if found.products is not None:
        words.append(f"products={found.products.replace(' ', '-')}")
    return " ".join(words)


def report_lines(found: Revealed) -> list[str]:
    """What was found, in sentences, then the tree."""
    what = "dot product" if found.kind == "dot" else "sum"
    lines = [f"{found.target}: {what} of {found.n} terms of {found.format}"]
    if found.family:
        lines.append(f"order        equals {found.family}")
    elif found.tree is not None:
        lines.append("order        none of the named families: the tree is below")
    else:
        lines.append("order        not a binary tree: it has nodes that add more than two terms at once")
    lines.append(f"accumulator  {_accumulator(found)}")
    if found.products is not None:
        lines.append(f"products     {_products(found)}")
    if found.from_zero:
        lines.append("zero         a sum of only -0 is +0 (the routine adds +0); the bare tree gives -0")
    lines.append(f"calls        {found.calls}, which is {found.calls / found.n:.2f} for each term")
    lines += [f"note         {note}" for note in found.notes]
    lines += _agreement(found)
    lines += outline(found.shape if found.tree is None else found.tree)
    return lines


def _accumulator(found: Revealed) -> str:
    if found.contexts:
        return "different ones: " + ", ".join(sorted({str(c) for c in found.contexts}))
    if found.agrees is None:
        return "not known"
    if found.accumulator is None:
        return "not seen: nothing observable is rounded between terms"
    return str(found.accumulator)


def _products(found: Revealed) -> str:
    if found.products == "fused":
        return "fused with the addition that they meet (fma); only the first of a running sum is rounded by itself"
    if found.products == "exact":
        return "exact into the accumulator"
    if found.products == "rounded":
        return f"rounded to the accumulator ({found.accumulator}) before they are added"
    if found.products == "mixed":
        return "some fused with an addition (fma), some rounded before: the fma nodes of the tree say which"
    return f"{found.products} before they are added"


def _agreement(found: Revealed) -> list[str]:
    if found.agrees is None:
        return ["agreement    not compared with the routine"]
    if found.agrees:
        which = "random vectors" if found.tree is not None else "finite random vectors, but for the sign of zeros"
        return [f"agreement    bit for bit on {found.compared} {which} (no proof)"]
    assert found.mismatch is not None
    return ["agreement    FAILED: the routine computes something else on this vector", *_vector(found.mismatch)]


def _vector(mismatch: Mismatch, most: int = 12) -> list[str]:
    def text(values: Sequence[float]) -> str:
        return ", ".join(map(repr, values[:most])) + (", ..." if len(values) > most else "")

    lines = [f"  terms    {text(mismatch.terms)}"]
    if mismatch.weights is not None:
        lines.append(f"  weights  {text(mismatch.weights)}")
    return [*lines, f"  routine  {mismatch.routine!r}", f"  tree     {mismatch.model!r}"]


# -- outline ------------------------------------------------------------------------------------------------


def outline(tree: Shape) -> list[str]:
    """The tree drawn whole when it has few terms, else with one line for every subtree of a known shape.

    >>> from fpsmt.networks.trees import left_fold
    >>> print("\\n".join(outline((left_fold(range(0, 32)), left_fold(range(32, 60))))))
    +
    |-- left-to-right over 0, 1, ..., 31
    `-- left-to-right over 32, 33, ..., 59
    """
    if _few(tree):
        return render(tree).splitlines() if _binary(tree) else _draw(tree, whole=True)
    return _draw(tree)


def _binary(tree: Shape) -> bool:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, tuple):
            if len(node) > 2 and node[0] != "fma":
                return False
            todo += [c for c in node if c != "fma"]
    return True


def _few(tree: Shape) -> bool:
    return len(_terms(tree)) <= DRAWN


def _terms(tree: Shape) -> list[int]:
    out, todo = [], [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, tuple):
            todo += [c for c in reversed(node) if c != "fma"]
        else:
            out.append(node)
    return out


def _draw(tree: Shape, whole: bool = False) -> list[str]:
    lines: list[str] = []
    todo: list[tuple[Any, str, str]] = [(tree, "", "")]
    while todo and len(lines) < LINES:
        node, first, rest = todo.pop()
        name, children = _described(node, whole)
        lines.append(first + name)
        for k, child in reversed(list(enumerate(children))):
            last = k == len(children) - 1
            todo.append((child, rest + ("`-- " if last else "|-- "), rest + ("    " if last else "|   ")))
    if todo:
        lines.append(f"... {len(todo)} more subtrees")
    return lines


def _described(node: Any, whole: bool) -> tuple[str, list[Any]]:
    """One line for a subtree, and the children that need lines of their own."""
    if not isinstance(node, tuple):
        return str(node), []
    if not _binary(node):
        if len(node) > 2:
            return f"+ of {len(node)} at once", list(node)
        return "+", list(node)
    if not whole:
        named = _named(node)
        if named:
            return named, []
        core, added = _spine(node)
        if len(added) > 2:
            fused = "fused " if _is_fma(node) else ""
            return f"+ {fused}one by one, to the subtree below: {_list(added)}", [core]
    return ("fma", [node[1], node[2]]) if _is_fma(node) else ("+", list(node))


def _is_fma(node: Any) -> bool:
    return isinstance(node, tuple) and len(node) == 3 and node[0] == "fma"


def _named(tree: Tree) -> str | None:
    """A family's name with the terms, when they are evenly spaced and the subtree is of the family."""
    terms = sorted(leaves(tree))
    gaps = {b - a for a, b in pairwise(terms)}
    if len(terms) < 2 or len(gaps) != 1:
        return None
    place = {term: k for k, term in enumerate(terms)}
    plain = relabel(unfuse(tree), lambda term: place[term])
    name = family(plain, len(terms))
    if name is None:
        return tree_text(tree) if len(terms) <= 4 else None
    fused = ", fused" if "fma" in tree_text(tree) else ""
    return f"{name} over {_list(terms)}{fused}" if len(terms) > 2 else tree_text(tree)


def _spine(tree: Tree) -> tuple[Tree, list[int]]:
    """What is left when leaves are taken off at the root again and again, and these, the first added first."""
    taken: list[int] = []
    kind = _is_fma(tree)
    while isinstance(tree, tuple) and _is_fma(tree) == kind:
        if kind:
            leaf, tree = tree[1], tree[2]
        elif is_leaf(tree[1]) and not is_leaf(tree[0]):
            tree, leaf = tree
        elif is_leaf(tree[0]) and not is_leaf(tree[1]):
            leaf, tree = tree
        else:
            break
        taken.append(leaf)
    return tree, taken[::-1]


def _list(terms: Sequence[int]) -> str:
    if len(terms) <= 4:
        return ", ".join(map(str, terms))
    even = len({b - a for a, b in pairwise(terms)}) == 1
    if even:
        return f"{terms[0]}, {terms[1]}, ..., {terms[-1]}"
    return ", ".join(map(str, terms[:4])) + f", ... ({len(terms)} terms)"
