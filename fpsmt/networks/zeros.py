"""Sums in every order without their terms that are zero: what is left has the same results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fpsmt.floats import Float, Mode, Subnormals
from fpsmt.networks.orders import AnyOrder
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import Tree, left_fold, relabel


def without_zeros(problem: Sum) -> tuple[Sum, Callable[[Tree], Tree]] | None:
    """The sum of the other terms, and for each of its schedules one of the whole sum with the same result.

    For every order, plain terms, no fma, the bias last, rounding to nearest even and gradual underflow; None otherwise,
    or when no term can go.  If every term is zero, one stays: +0 if there is one, because +0 ⊕ −0 = +0.

    Why nothing is lost: take any tree over all terms.  A node with a term that is not zero below it has, with zeros or
    without, one and the same value.  By induction: if one of its children has only zeros below it, the value is that
    of the other child v, because v ⊕ ±0 = v where v is not −0; and −0 it is not, since two floats whose exact sum is
    not zero have a rounded sum that is not zero, and x ⊕ −x is +0.  NaN and infinities stay what they are.

    >>> from fpsmt.floats import context, exactly, float16
    >>> terms = tuple(exactly(float16, v) for v in (0, 2048, 0, 1, 1))
    >>> rest, whole = without_zeros(Sum(context("float16"), terms))
    >>> [str(v) for v in rest.terms], whole(((0, 1), 2))
    (['2048.0', '1.0', '1.0'], ((((1, 3), 4), 0), 2))
    """
    how, terms = problem.execution, [t for t in problem.terms if isinstance(t, Float)]
    acc = how.sum_context(problem.context)
    usual = acc.mode is Mode.RNE and acc.subnormals is Subnormals.GRADUAL
    plain = how.fma == "never" and (problem.bias is None or how.bias == "last")
    same = len(terms) == problem.n and all(t.format == acc.format for t in terms)
    if not (isinstance(how.order, AnyOrder) and usual and plain and same):
        return None
    kept = [k for k, t in enumerate(terms) if not t.is_zero] or [
        next((k for k, t in enumerate(terms) if not t.negative), 0)
    ] * bool(terms)
    zeros = [k for k in range(len(terms)) if k not in set(kept)]
    if not zeros:
        return None
    names = [*kept, problem.n]

    def whole(tree: Tree) -> Tree:
        if problem.bias is None:
            return left_fold([relabel(tree, names), *zeros])
        assert isinstance(tree, tuple) and tree[-1] == len(kept)
        return (left_fold([relabel(tree[0], names), *zeros]), problem.n)

    return replace(problem, terms=tuple(terms[k] for k in kept)), whole
