"""Executions: how a sum or a dot product Σ wᵢxᵢ + b may run, and the schedules that this allows.

A *schedule* of one sum is a summation tree over its terms 0…n−1, with the bias, if there is one, as leaf n.
It settles the order, which nodes are fused, and where the bias enters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, Literal, get_args

from fpsmt.errors import UsageError
from fpsmt.floats import Context, context
from fpsmt.networks.orders import ANY, LEFT_TO_RIGHT, Order, parse_order
from fpsmt.networks.trees import Step, Tree, canonical, check_tree, relabel, steps, unfuse

Fma = Literal["never", "always", "any"]
Bias = Literal["last", "first", "any"]


@dataclass(frozen=True)
class Execution:
    """What is known of how a node's sums run.

    * `order`: the family of summation trees.
    * `accumulator`: the context of every addition, the bias's included; None is the node's own.  A term that is
      not of the accumulator's format is first cast to it, and the result is cast to the node's context when
      that differs from the accumulator.
    * `products`: the context that products are rounded to; None is the accumulator.  ``"exact"`` keeps them
      exact into the accumulator: a node of two products adds them with one rounding, a node of a product
      and a value is an fma, a lone product is rounded once; the choice of `fma` is then moot and there are no
      fused nodes.
    * `fma`: whether a node fuses one child that is a product with its addition into one rounding: ``never``;
      ``always``, every node with such a child fuses one of them; ``any``.
    * `bias`: ``last``, the root is (a tree of the family over the products, bias); ``first``, the bias is the
      first term of a tree of the family over n + 1 terms; ``any``, it is at any place of those terms, or
      last.
    """

    order: Order = ANY
    fma: Fma = "never"
    accumulator: Context | None = None
    products: Context | Literal["exact"] | None = None
    bias: Bias = "last"

    def __post_init__(self) -> None:
        if not isinstance(self.order, Order):
            raise UsageError(f"order {self.order!r} is not an order family: use parse_order")
        if self.fma not in get_args(Fma):
            raise UsageError(f"fma={self.fma!r}: write one of {', '.join(get_args(Fma))}")
        if self.bias not in get_args(Bias):
            raise UsageError(f"bias={self.bias!r}: write one of {', '.join(get_args(Bias))}")
        if not (self.accumulator is None or isinstance(self.accumulator, Context)):
            raise UsageError(f"accumulator={self.accumulator!r} is not a rounding context: use floats.context(…)")
        if not (self.products is None or self.products == "exact" or isinstance(self.products, Context)):
            raise UsageError(f"products={self.products!r}: write a rounding context, 'exact' or None")

    def sum_context(self, ctx: Context) -> Context:
        """Where additions round, for a node of this context."""
        return self.accumulator or ctx

    def product_context(self, ctx: Context) -> Context | None:
        """Where products round, or None when they are exact."""
        if self.products is None:
            return self.sum_context(ctx)
        return None if self.products == "exact" else self.products

    def fuses(self, products: bool) -> Fma:
        """The fma rule that is left when the terms are products, or not."""
        return self.fma if products and self.products != "exact" else "never"

    # -- schedules ------------------------------------------------------------------------------------

    def schedules(self, n: int, bias: bool = False, products: bool = True) -> Iterator[Tree]:
        """Every allowed schedule of n terms (products, or plain values), canonical, each once, lazily.

        Raises a usage error when there is none: no terms, or a family without a tree of that size.

        >>> from fpsmt.networks.trees import tree_text
        >>> [tree_text(t) for t in Execution(fma="any").schedules(2)]
        ['(0+1)', 'fma(1,0)', 'fma(0,1)']
        """
        rule = self.fuses(products)
        for tree in self._unfused(n, bias):
            yield from fusings(tree, n, rule)

    def _unfused(self, n: int, bias: bool) -> Iterator[Tree]:
        if not bias:
            yield from self.order.trees(n)
            return
        if n == 0:
            yield 0
            return
        if self.bias == "last":
            yield from ((tree, n) for tree in self.order.trees(n))
            return
        places = self._places(n)
        for k, place in enumerate(places):
            for tree in self.order.trees(n + 1):
                tree = canonical(relabel(tree, _term_at(place, n)))
                if not any(self._has_bias_at(tree, n, other) for other in places[:k]):
                    yield tree
        if self._may_be_last(n):
            for tree in self.order.trees(n):
                if not any(self._has_bias_at((tree, n), n, other) for other in places):
                    yield (tree, n)

    def _places(self, n: int) -> list[int]:
        """The places of the bias among n + 1 terms that need trying."""
        if self.bias == "any" and not self.order.has(n + 1):
            return []
        return [0] if self.bias == "first" or self.order.symmetric else list(range(n + 1))

    def _may_be_last(self, n: int) -> bool:
        return self.bias == "any" and (self.order.has(n) or not self.order.has(n + 1))

    def _has_bias_at(self, tree: Tree, n: int, place: int) -> bool:
        return self.order.contains(relabel(tree, _place_of(place, n)))

    def allows(self, tree: Tree, n: int, bias: bool = False, products: bool = True) -> bool:
        """Whether this tree is a schedule of the execution, up to commuting.

        A tree whose leaves are not the terms 0…n−1 (and n, the bias) is a usage error.
        """
        check_tree(tree, n + bias)
        program = steps(tree)
        rule = self.fuses(products)
        for op, a, b in program:
            if op == "fma" and (rule == "never" or program[a].left >= n):
                return False
            if op == "add" and rule == "always" and (_is_product(program, a, n) or _is_product(program, b, n)):
                return False
        plain = canonical(unfuse(tree))
        if not bias:
            return self.order.contains(plain)
        if n == 0:
            return True
        if self.bias != "first" and isinstance(plain, tuple) and plain[1] == n and self.order.contains(plain[0]):
            return True
        return self.bias != "last" and any(self._has_bias_at(plain, n, place) for place in self._places(n))

    def default_schedule(self, n: int, bias: bool = False, products: bool = True) -> Tree:
        """The schedule used when nobody chooses: the family's default tree; under ``fma=always`` the right child
        is fused where it is a product, else the left.  A bias ``any`` is last where the family allows it."""
        if bias and n == 0:
            return 0
        if not bias:
            tree = self.order.default_tree(n)
        elif self.bias == "last" or self._may_be_last(n):
            tree = (self.order.default_tree(n), n)
        else:
            tree = canonical(relabel(self.order.default_tree(n + 1), _term_at(0, n)))
        rule = self.fuses(products)
        return next(fusings(tree, n, rule)) if rule == "always" else tree

    def random_schedule(self, n: int, rng: Random, bias: bool = False, products: bool = True) -> Tree:
        """A schedule drawn so that every allowed one is possible, canonical; not uniform in general."""
        if bias and n == 0:
            return 0
        if not bias:
            tree = self.order.random_tree(n, rng)
        else:
            places = [None] if self.bias == "last" else [*self._places(n), *([None] if self._may_be_last(n) else [])]
            place = rng.choice(places)
            if place is None:
                tree = (self.order.random_tree(n, rng), n)
            else:
                tree = canonical(relabel(self.order.random_tree(n + 1, rng), _term_at(place, n)))
        rule = self.fuses(products)
        if rule == "never":
            return tree
        program = steps(tree)
        return canonical(_rebuilt(program, [rng.choice(way) for way in _ways(program, n, rule)]))

    # -- text -----------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """The order, then what differs from the papers' model, as `parse_execution` reads it."""
        words = [str(self.order)]
        if self.fma != "never":
            words.append(f"fma={self.fma}")
        if self.accumulator is not None:
            words.append(f"accumulator={self.accumulator}")
        if self.products is not None:
            words.append(f"products={self.products}")
        if self.bias != "last":
            words.append(f"bias={self.bias}")
        return " ".join(words)

    def to_json(self) -> dict[str, Any]:
        """All five choices as strings (None where the node's own context is meant)."""
        return {
            "order": str(self.order),
            "fma": self.fma,
            "accumulator": None if self.accumulator is None else str(self.accumulator),
            "products": None if self.products is None else str(self.products),
            "bias": self.bias,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Execution:
        """Reads `to_json`; what is left out has its default."""
        if not isinstance(data, dict) or not data.keys() <= {"order", "fma", "accumulator", "products", "bias"}:
            raise UsageError(
                f"an execution in JSON is an object with order, fma, accumulator, products and bias, not {data!r}"
            )
        return execution(**data)


#: The papers' model: any order, no fma, one format, the bias last.
PAPER = Execution()

#: The papers' model of reverse mode: sums from left to right.
PAPER_BACKWARD = Execution(LEFT_TO_RIGHT)


def execution(
    order: Order | str = "any",
    fma: str = "never",
    accumulator: Context | str | None = None,
    products: Context | str | None = None,
    bias: str = "last",
) -> Execution:
    """An execution from text.

    >>> str(execution("pairwise", accumulator="float32"))
    'pairwise accumulator=float32'
    """
    return Execution(
        parse_order(order),
        fma,  # type: ignore[arg-type]
        None if accumulator is None else context(accumulator),
        products if products is None or products == "exact" else context(products),  # type: ignore[arg-type]
        bias,  # type: ignore[arg-type]
    )


def parse_execution(text: str | Execution) -> Execution:
    """Reads ``ORDER [fma=…] [accumulator=…] [products=…] [bias=…]``, the form of ``str(execution)``.

    >>> parse_execution("any fma=any accumulator=float32 products=exact") == \
        execution(fma="any", accumulator="float32", products="exact")
    True
    >>> parse_execution("any fam=any")
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: execution 'any fam=any': unknown word 'fam=any'; \
write ORDER fma=… accumulator=… products=… bias=…
    """
    if isinstance(text, Execution):
        return text
    order, *words = text.split() or [""]
    options: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in ("fma", "accumulator", "products", "bias") or not value or name in options:
            what = "repeated" if name in options else "unknown"
            raise UsageError(
                f"execution {text!r}: {what} word {word!r}; write ORDER fma=… accumulator=… products=… bias=…"
            )
        options[name] = value
    return execution(order, **options)


# -- where the bias is ------------------------------------------------------------------------------------


def _term_at(place: int, n: int) -> list[int]:
    """Position in a list of n + 1 terms → term, when the bias (term n) is at this place."""
    return [*range(place), n, *range(place, n)]


def _place_of(place: int, n: int) -> list[int]:
    """Term → position: the inverse of `_term_at`."""
    return [*range(place), *range(place + 1, n + 1), place]


# -- fused nodes ------------------------------------------------------------------------------------------


def _is_product(program: list[Step], k: int, n: int) -> bool:
    return program[k].op == "leaf" and program[k].left < n


def _ways(program: list[Step], n: int, rule: Fma) -> list[str]:
    """For each step the ways it may run: ``+`` plain, ``r`` and ``l`` fusing the right or left child."""
    out = []
    for op, a, b in program:
        way = ""
        if op == "add" and rule != "never":
            way = ("r" if _is_product(program, b, n) else "") + ("l" if _is_product(program, a, n) else "")
        out.append(way if way and rule == "always" else "+" + way)
    return out


def _rebuilt(program: list[Step], ways: list[str] | tuple[str, ...]) -> Tree:
    made: list[Any] = []
    for (op, a, b), way in zip(program, ways, strict=True):
        if op == "leaf":
            made.append(a)
        elif op == "fma" or way == "l":
            made.append(("fma", made[a], made[b]))
        else:
            made.append((made[a], made[b]) if way == "+" else ("fma", made[b], made[a]))
    return made[-1]  # type: ignore[no-any-return]


def fusings(tree: Tree, n: int, rule: Fma) -> Iterator[Tree]:
    """Every way to fuse nodes of a tree without fused nodes, canonical, when the leaves below n are products.

    >>> list(fusings(((0, 1), 2), 2, "always"))
    [(('fma', 1, 0), 2), (('fma', 0, 1), 2)]
    """
    program = steps(tree)
    for ways in product(*_ways(program, n, rule)):
        yield canonical(_rebuilt(program, ways))


def count_fusings(tree: Tree, n: int, rule: Fma) -> int:
    """How many trees `fusings` yields."""
    out = 1
    for way in _ways(steps(tree), n, rule):
        out *= len(way)
    return out

