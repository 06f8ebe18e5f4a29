"""Substitution and generalisation mean what they say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, exactly, float16, float32
from fpsmt.terms.build import build
from fpsmt.terms.terms import BOOL, BitsSort, FloatSort
from tests.terms.generators import conditions, random_values

CTX = context("float16")
X, Y, Z = (t.var(name, float16) for name in "xyz")


def constant(sort: t.Sort, value: Float | int | bool) -> t.Term | None:
    if isinstance(sort, FloatSort) or sort == BOOL:
        return t.const(value)  # type: ignore[arg-type]
    return t.bits(sort.width, value) if isinstance(sort, BitsSort) else None  # type: ignore[arg-type]


@given(conditions(), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_values_for_variables(condition: t.Term, rng) -> None:
    """Putting in values is the same as evaluating with them."""
    values = random_values(condition, rng)
    given = {v: constant(v.sort, values[v.data]) for v in t.variables(condition)}
    known = {v: term for v, term in given.items() if term is not None and rng.random() < 0.7}
    left = t.substitute(condition, known)
    assert not set(known) & set(t.variables(left))
    assert t.evaluate(left, values) == t.evaluate(condition, values)


@given(conditions(), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_parts_by_their_values(condition: t.Term, rng) -> None:
    """A sub-term and a variable that has its value are interchangeable."""
    values = random_values(condition, rng)
    everything = t.evaluate_all(condition, values)
    parts = [term for term in everything if term.op not in ("var", "const")]
    chosen = rng.sample(parts, min(len(parts), 3)) if parts else []
    (general,) = t.generalise([condition], chosen)
    found = dict(values)
    for k, part in enumerate(sorted(chosen, key=lambda p: -sum(1 for _ in t.postorder(p)))):
        found[f"part{k}"] = everything[part]
    assert t.evaluate(general, found) == everything[condition]


def test_outermost_first_and_not_again() -> None:
    inner = t.add(CTX, X, Y)
    outer = t.neg(inner)
    root = t.mul(CTX, outer, inner)
    assert t.substitute(root, {outer: X, inner: Y}) is t.mul(CTX, X, Y)
    assert t.substitute(t.add(CTX, X, Y), {X: Y, Y: X}) is t.add(CTX, Y, X)
    assert t.substitute(X, {X: t.neg(X)}) is t.neg(X)
    assert t.substitute(root, {Z: X}) is root
    assert t.substitute(root, {}) is root


def test_sorts_must_agree() -> None:
    for new in (t.var("w", float32), t.TRUE, t.bits(16, 0)):
        with pytest.raises(UsageError, match="cannot be replaced"):
            t.substitute(X, {X: new})


def test_what_is_rebuilt_is_what_the_constructors_build() -> None:
    """So that a claim made by substitution is the one that its file gives back."""
    p, q = t.is_nan(X), t.is_nan(Y)
    assert t.substitute(t.all_of(p, q), {q: p}) is p
    assert t.substitute(t.all_of(p, q), {q: t.FALSE}) is t.FALSE
    assert t.substitute(t.any_of(p, q), {q: t.TRUE}) is t.TRUE
    assert t.substitute(t.negation(p), {p: t.TRUE}) is t.FALSE
    assert t.substitute(t.ite(p, X, Y), {Y: X}) is X


def test_fresh_names() -> None:
    taken = t.same(t.add(CTX, t.var("part0", float16), t.var("part0_", float16)), X)
    part = t.add(CTX, t.var("part0", float16), t.var("part0_", float16))
    (general,) = t.generalise([taken], [part])
    assert {v.data for v in t.variables(general)} == {"part0__", "x"}
    one, two = t.generalise([t.same(part, X), t.same(t.neg(part), X)], [part, t.neg(part)])
    assert t.variables(one)[0] is not t.variables(two)[0]


def test_larger_parts_first() -> None:
    inner, root = t.add(CTX, X, Y), t.neg(t.add(CTX, X, Y))
    (general,) = t.generalise([t.same(root, inner)], [inner, root])
    assert [v.data for v in t.variables(general)] == ["part0", "part1"]


def test_build_checks() -> None:
    fmt = FloatSort(float16)
    assert build("neg", fmt, (X,), None) is t.neg(X)
    assert build("const", BitsSort(4), (), 9) is t.bits(4, 9)
    for bad in (("neg", BOOL, (X,), None), ("var", fmt, (X,), "x"), ("const", BOOL, (), 1), ("mine", fmt, (X,), None)):
        with pytest.raises(UsageError):
            build(*bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not a value"):
        t.const(1.0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a name"):
        t.var(1, float16)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="whole number"):
        t.bits(4, 1.0)  # type: ignore[arg-type]
    assert t.const(exactly(float16, 1)) is not t.const(exactly(float32, 1))
