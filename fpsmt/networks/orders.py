"""Order families: which summation trees a sum of n terms may use.

One name each, the same in Python, on the command line and in files:

=================  ==========================================================================  =================
name               trees over n terms (up to commuting)                                        how many
=================  ==========================================================================  =================
``any``            every tree over every permutation                                           (2n−3)!!
``contiguous``     every parenthesisation, terms in place                                      Catalan(n−1)
``sequential``     the left fold of every permutation                                          n!/2 (1 if n = 1)
``left-to-right``  ((t₀+t₁)+t₂)+…                                                              1
``right-to-left``  t₀+(t₁+(t₂+…))                                                              1
``pairwise``       what numpy's sum does on a contiguous array                                 1
``lanes:K``        K interleaved running sums, then halving                                    1
``blocks:K``       K contiguous blocks, each left to right, then their sums left to right      1
``depth:H``        every tree over every permutation of height ≤ H                             `count_of_height`
``((0+1)+2)``      this tree, for exactly its number of terms                                  1
``A|B``            the union of families                                                       of the union
=================  ==========================================================================  =================

Fused nodes are not the business of an order: `contains` looks through them.  n = 0 is a usage error
everywhere (an empty sum has no tree; its value is +0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from fpsmt.errors import UsageError
from fpsmt.networks import shapes
from fpsmt.networks.trees import (
    Tree,
    balanced,
    canonical,
    check_tree,
    fold,
    has_fused,
    height,
    left_fold,
    read_tree,
    right_fold,
    same_tree,
    size,
    steps,
    tree_text,
    unfuse,
)


@dataclass(frozen=True)
class Order:
    """A family of summation trees for every number of terms.  Engines dispatch on the subclass.

    `fixed`: one tree for each number of terms.  `symmetric`: closed under permuting the terms, so that the
    place of a term in the list does not matter.
    """

    @property
    def fixed(self) -> bool:
        return False

    @property
    def symmetric(self) -> bool:
        return False

    def has(self, n: int) -> bool:
        """Whether the family has a tree over n terms."""
        return n >= 1

    def trees(self, n: int) -> Iterator[Tree]:
        """The trees over 0…n−1, canonical, each once, lazily; a usage error where `has` says there is none."""
        raise NotImplementedError

    def count(self, n: int) -> int:
        """How many trees `trees` yields."""
        raise NotImplementedError

    def contains(self, tree: Tree) -> bool:
        """Whether the tree (over 0…n−1 for some n, fused or not) is one of the family, up to commuting."""
        raise NotImplementedError

    def random_tree(self, n: int, rng: Random) -> Tree:
        """A tree drawn so that every one of the family is possible, canonical."""
        raise NotImplementedError

    def default_tree(self, n: int) -> Tree:
        """The tree used when nobody chooses, canonical: left to right where the family has it."""
        _at_least_one(n)
        return left_fold(range(n))


def _at_least_one(n: int) -> None:
    if n < 1:
        raise UsageError(
            f"a sum needs at least one term to have an order, not {n}: an empty sum has no tree (its value is +0)"
        )


def _plain(tree: Tree) -> Tree:
    """Checked and without fused nodes."""
    check_tree(tree, size(tree))
    return unfuse(tree)


@dataclass(frozen=True)
class AnyOrder(Order):
    """Every tree over every permutation: (2n−3)!! up to commuting.  `random_tree` is uniform."""

    @property
    def symmetric(self) -> bool:
        return True

    def trees(self, n: int) -> Iterator[Tree]:
        _at_least_one(n)
        return shapes.all_trees(range(n))

    def count(self, n: int) -> int:
        _at_least_one(n)
        return shapes.double_factorial(2 * n - 3)

    def contains(self, tree: Tree) -> bool:
        _plain(tree)
        return True

    def random_tree(self, n: int, rng: Random) -> Tree:
        _at_least_one(n)
        return shapes.random_any(n, rng)

    def __str__(self) -> str:
        return "any"


@dataclass(frozen=True)
class Contiguous(Order):
    """Every parenthesisation with the terms in place: Catalan(n−1).  `random_tree` is uniform."""

    def trees(self, n: int) -> Iterator[Tree]:
        _at_least_one(n)
        return shapes.all_parenthesisations(range(n))

    def count(self, n: int) -> int:
        _at_least_one(n)
        return shapes.catalan(n - 1)

    def contains(self, tree: Tree) -> bool:
        """Every node's leaves are consecutive (up to commuting, that is enough)."""
        spans = fold(
            _plain(tree),
            lambda i: (i, i, True),
            lambda a, b: (min(a[0], b[0]), max(a[1], b[1]), a[2] and b[2] and (a[1] + 1 == b[0] or b[1] + 1 == a[0])),
        )
        return bool(spans[2])

    def random_tree(self, n: int, rng: Random) -> Tree:
        _at_least_one(n)
        return shapes.random_parenthesisation(n, rng)

    def __str__(self) -> str:
        return "contiguous"


@dataclass(frozen=True)
class Sequential(Order):
    """The left fold of every permutation: n!/2 up to commuting (1 for n = 1).  `random_tree` is uniform."""

    @property
    def symmetric(self) -> bool:
        return True

    def trees(self, n: int) -> Iterator[Tree]:
        _at_least_one(n)
        return shapes.all_left_folds(n)

    def count(self, n: int) -> int:
        _at_least_one(n)
        out = 1
        for k in range(3, n + 1):
            out *= k
        return out

    def contains(self, tree: Tree) -> bool:
        """Every inner node has a leaf as a child."""
        program = steps(_plain(tree))
        return all(op == "leaf" or "leaf" in (program[a].op, program[b].op) for op, a, b in program)

    def random_tree(self, n: int, rng: Random) -> Tree:
        _at_least_one(n)
        return shapes.random_left_fold(n, rng)

    def __str__(self) -> str:
        return "sequential"


@dataclass(frozen=True)
class Depth(Order):
    """Every tree over every permutation with height at most `height`; none when n > 2^height.

    `default_tree` is the balanced one.  `random_tree` is not uniform, but every tree is possible.
    """

    height: int

    def __post_init__(self) -> None:
        if self.height < 0:
            raise UsageError(f"depth:{self.height}: the height of a tree is not negative")

    @property
    def symmetric(self) -> bool:
        return True

    def has(self, n: int) -> bool:
        return n >= 1 and (n - 1).bit_length() <= self.height

    def trees(self, n: int) -> Iterator[Tree]:
        self.default_tree(n)
        return shapes.all_trees(range(n), self.height)

    def count(self, n: int) -> int:
        _at_least_one(n)
        return shapes.count_of_height(n, self.height)

    def contains(self, tree: Tree) -> bool:
        return height(_plain(tree)) <= self.height

    def random_tree(self, n: int, rng: Random) -> Tree:
        _at_least_one(n)
        return shapes.random_of_height(n, self.height, rng)

    def default_tree(self, n: int) -> Tree:
        _at_least_one(n)
        if not self.has(n):
            raise UsageError(
                f"order depth:{self.height} has no tree over {n} terms: the least height is {(n - 1).bit_length()}"
            )
        return balanced(range(n))

    def __str__(self) -> str:
        return f"depth:{self.height}"


# -- families of one tree ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class FixedOrder(Order):
    """A family with exactly one tree for every number of terms, its `default_tree`."""

    @property
    def fixed(self) -> bool:
        return True

    def trees(self, n: int) -> Iterator[Tree]:
        yield self.default_tree(n)

    def count(self, n: int) -> int:
        _at_least_one(n)
        return int(self.has(n))

    def contains(self, tree: Tree) -> bool:
        n = size(tree)
        return same_tree(_plain(tree), self.default_tree(n))

    def random_tree(self, n: int, rng: Random) -> Tree:
        return self.default_tree(n)


@dataclass(frozen=True)
class LeftToRight(FixedOrder):
    """The running sum ((t₀+t₁)+t₂)+…: the papers' order for gradients."""

    def __str__(self) -> str:
        return "left-to-right"


@dataclass(frozen=True)
class RightToLeft(FixedOrder):
    """t₀+(t₁+(t₂+…))."""

    def default_tree(self, n: int) -> Tree:
        _at_least_one(n)
        return right_fold(range(n))

    def __str__(self) -> str:
        return "right-to-left"


@dataclass(frozen=True)
class Pairwise(FixedOrder):
    """The tree of ``numpy.sum`` on a contiguous array, or along the fast axis (more: `numpy_sums`).

    Fewer than 8 terms are summed left to right.  Up to 128, eight interleaved running sums r₀…r₇ are combined
    as ((r₀+r₁)+(r₂+r₃))+((r₄+r₅)+(r₆+r₇)), then the n mod 8 terms left over are added one by one.  Longer arrays
    are cut in two, the first part half of it rounded down to a multiple of 8.

    numpy then adds the result to +0, so where every term is −0 it returns +0 and this tree −0.  It sums
    float16 in float32 and rounds at the end: say ``accumulator=float32``.
    """

    def default_tree(self, n: int) -> Tree:
        _at_least_one(n)
        return _numpy(0, n)

    def __str__(self) -> str:
        return "pairwise"


def _numpy(start: int, n: int) -> Tree:
    if n < 8:
        return left_fold(range(start, start + n))
    if n > 128:
        half = n // 2 - n // 2 % 8
        return (_numpy(start, half), _numpy(start + half, n - half))
    whole = n - n % 8
    r = [left_fold(range(start + lane, start + whole, 8)) for lane in range(8)]
    lanes = (((r[0], r[1]), (r[2], r[3])), ((r[4], r[5]), (r[6], r[7])))
    return left_fold([lanes, *range(start + whole, start + n)])


@dataclass(frozen=True)
class Lanes(FixedOrder):
    """K interleaved running sums, then halving: a vector register of K lanes.

    Term i goes to lane i mod K, and each lane adds its terms left to right.  Then, with m = K lanes left and
    while m > 1, h = ⌈m/2⌉ and lane j takes lane j + h, for every j with j + h < m; m becomes h.  (For K a
    power of two: the upper half of the register is added onto the lower half, again and again.)  Lanes
    without a term, when n < K, take no part.
    """

    lanes: int

    def __post_init__(self) -> None:
        if self.lanes < 1:
            raise UsageError(f"lanes:{self.lanes}: the number of lanes is at least 1")

    def default_tree(self, n: int) -> Tree:
        _at_least_one(n)
        sums: dict[int, Tree] = {
            lane: left_fold(range(lane, n, self.lanes)) for lane in range(min(n, self.lanes))
        }
        m = self.lanes
        while m > 1:
            h = (m + 1) // 2
            for j in [lane - h for lane in sums if lane >= h]:
                high = sums.pop(j + h)
                sums[j] = (sums[j], high) if j in sums else high
            m = h
        return canonical(sums[0])

    def __str__(self) -> str:
        return f"lanes:{self.lanes}"


@dataclass(frozen=True)
class Blocks(FixedOrder):
    """Split-K: K contiguous blocks of ⌈n/K⌉ terms (the last ones may be shorter or empty), each summed left to
    right, then the block results left to right.  Empty blocks take no part."""

    blocks: int

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise UsageError(f"blocks:{self.blocks}: the number of blocks is at least 1")

    def default_tree(self, n: int) -> Tree:
        _at_least_one(n)
        length = -(-n // self.blocks)
        return left_fold(left_fold(range(at, min(at + length, n))) for at in range(0, n, length))

    def __str__(self) -> str:
        return f"blocks:{self.blocks}"


@dataclass(frozen=True)
class Given(FixedOrder):
    """One tree, for exactly its number of terms.  Build it with `given`; identity is its canonical text."""

    text: str
    tree: Tree = field(compare=False, repr=False)

    def has(self, n: int) -> bool:
        return n == size(self.tree)

    def default_tree(self, n: int) -> Tree:
        _at_least_one(n)
        if not self.has(n):
            raise UsageError(f"the order {_short(self.text)} is for {size(self.tree)} terms, and the sum has {n}")
        return self.tree

    def contains(self, tree: Tree) -> bool:
        return same_tree(_plain(tree), self.tree)

    def __str__(self) -> str:
        return self.text


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def given(tree: Tree) -> Given:
    """The family of this one tree.

    >>> str(given(((2, 1), 0)))
    '(0+(1+2))'
    """
    if has_fused(tree):
        raise UsageError(
            "an order has no fused nodes: give the tree without them and set fma, or give a schedule that has them"
        )
    check_tree(tree, size(tree))
    tree = canonical(tree)
    return Given(tree_text(tree), tree)


@dataclass(frozen=True)
class Union(Order):
    """The trees of several families.

    `count` sums for parts that one part contains by construction, else enumerates.  `random_tree` draws a
    part first, so trees of small parts are more likely.
    """

    parts: tuple[Order, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise UsageError("a union of orders needs at least one order")

    def _with(self, n: int) -> list[Order]:
        _at_least_one(n)
        parts = [p for p in self.parts if p.has(n)]
        if not parts:
            raise UsageError(f"the order {_short(str(self))} has no tree over {n} terms")
        return parts

    @property
    def symmetric(self) -> bool:
        return all(p.symmetric for p in self.parts)

    @property
    def fixed(self) -> bool:
        return all(p.fixed for p in self.parts) and len(set(self.parts)) == 1

    def has(self, n: int) -> bool:
        return any(p.has(n) for p in self.parts)

    def trees(self, n: int) -> Iterator[Tree]:
        parts = self._with(n)
        for k, part in enumerate(parts):
            for tree in part.trees(n):
                if not any(p.contains(tree) for p in parts[:k]):
                    yield tree

    def count(self, n: int) -> int:
        _at_least_one(n)
        if any(isinstance(p, AnyOrder) for p in self.parts):
            return AnyOrder().count(n)
        return sum(1 for _ in self.trees(n)) if self.has(n) else 0

    def contains(self, tree: Tree) -> bool:
        n = size(tree)
        return any(p.contains(tree) for p in self.parts if p.has(n))

    def random_tree(self, n: int, rng: Random) -> Tree:
        return rng.choice(self._with(n)).random_tree(n, rng)

    def default_tree(self, n: int) -> Tree:
        return self._with(n)[0].default_tree(n)

    def __str__(self) -> str:
        return "|".join(map(str, self.parts))


def union(*orders: Order) -> Order:
    """The union, flattened and without repetitions; one order alone is itself."""
    parts: dict[Order, None] = {}
    for order in orders:
        for part in order.parts if isinstance(order, Union) else (order,):
            parts[part] = None
    return next(iter(parts)) if len(parts) == 1 else Union(tuple(parts))


# -- reading ----------------------------------------------------------------------------------------------

ANY = AnyOrder()
CONTIGUOUS = Contiguous()
SEQUENTIAL = Sequential()
LEFT_TO_RIGHT = LeftToRight()
RIGHT_TO_LEFT = RightToLeft()
PAIRWISE = Pairwise()

_PLAIN: dict[str, Order] = {
    str(order): order for order in (ANY, CONTIGUOUS, SEQUENTIAL, LEFT_TO_RIGHT, RIGHT_TO_LEFT, PAIRWISE)
}
_WITH_NUMBER: dict[str, Callable[[int], Order]] = {"lanes": Lanes, "blocks": Blocks, "depth": Depth}

ORDER_NAMES = (*_PLAIN, *(f"{name}:N" for name in _WITH_NUMBER), "a tree such as ((0+1)+2)", "a union a|b")


def parse_order(text: str | Order) -> Order:
    """Reads an order family; ``str`` of it writes the same text.

    >>> parse_order("lanes:8|left-to-right").default_tree(3)
    ((0, 2), 1)
    >>> parse_order("((1+0)+2)")
    Given(text='((0+1)+2)')
    >>> parse_order("lanes")
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: order 'lanes' needs a number: write e.g. lanes:8
    """
    if isinstance(text, Order):
        return text
    words = [word.strip() for word in text.split("|")]
    return union(*map(_parse_one, words))


def _parse_one(word: str) -> Order:
    if word in _PLAIN:
        return _PLAIN[word]
    if word[:1] in ("(", "[") or word.isdigit() or word.startswith("fma("):
        return given(read_tree(word))
    name, colon, number = word.partition(":")
    if name in _WITH_NUMBER:
        if not colon:
            raise UsageError(f"order {word!r} needs a number: write e.g. {name}:8")
        if not re.fullmatch(r"\d{1,9}", number):
            raise UsageError(f"order {word!r}: {number!r} is not a number of at most 9 digits; write e.g. {name}:8")
        return _WITH_NUMBER[name](int(number))
    raise UsageError(f"unknown order {word!r}: write one of {', '.join(ORDER_NAMES)}")
