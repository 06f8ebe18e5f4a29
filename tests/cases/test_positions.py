"""Public reports of results that depend on an element's position: in a vector, in its tail, or beside a NaN."""

from __future__ import annotations

import pytest

from fpsmt import terms as t
from fpsmt.claims import ForAll
from fpsmt.engines import Options, decide
from fpsmt.floats import Float, context, float32, less_equal, nearest, read_number
from fpsmt.functions import correctly_rounded, function_named, implementation_named

#: inputs of log, its result for one element, and in a vector of four, in a released runtime
LOGS = [
    ("1.3", "0x1.0ca936p-2", "0x1.0ca934p-2"),
    ("1.7", "0x1.0fae82p-1", "0x1.0fae84p-1"),
    ("3.3", "0x1.31a4e6p+0", "0x1.31a4e8p+0"),
]


def read(text: str) -> Float:
    return nearest(float32, read_number(text))


def allowed(contract: str, x: Float, y: Float) -> bool:
    low, high = implementation_named(contract).allowed(context(float32), x)
    return less_equal(low, y) and less_equal(y, high)


@pytest.mark.parametrize(("x", "alone", "among"), LOGS)
def test_one_ulp_covers_both_results_and_correct_rounding_one(x: str, alone: str, among: str) -> None:
    ctx = context(float32)
    point, one, four = (read(text) for text in (x, alone, among))
    assert correctly_rounded(function_named("log"), ctx, point) == one
    assert allowed("log", point, one) and not allowed("log", point, four)
    assert allowed("log:ulps=1", point, one) and allowed("log:ulps=1", point, four)


@pytest.mark.parametrize(("x", "alone", "among"), LOGS)
def test_one_function_gives_one_result(x: str, alone: str, among: str) -> None:
    """Two results at one input: not of a single-valued implementation, whichever; of one that is not, they may be."""
    ctx, point = context(float32), t.const(read(x))
    fixed, loose = implementation_named("log:ulps=1"), implementation_named("log:ulps=1:any-value")
    same = t.same(t.apply(fixed, ctx, point), t.apply(fixed, ctx, point))
    assert decide(ForAll("alone and among four", same)).name == "proved"
    sites = [t.apply(loose, ctx, point, site) for site in ("alone", "among four")]
    verdict = decide(ForAll("alone and among four", t.same(*sites)), Options(timeout=60))
    assert verdict.name == "refuted"
    exact = [t.const(read(text)) for text in (alone, among)]
    pair = t.all_of(*(t.same(site, y) for site, y in zip(sites, exact, strict=True)))
    seen = decide(ForAll("these two results do not occur", t.negation(pair)), Options(timeout=60))
    assert seen.name == "refuted"


@pytest.mark.parametrize("length", [3, 4, 5, 8])
def test_a_tail_shorter_than_a_vector(length: int) -> None:
    """Vectors of four by one formula, what is left over by another: equal elements give equal results, or need not."""
    ctx, point, width = context(float32), t.const(read("1.7")), 4
    body = length - length % width
    loose = implementation_named("log:floats=1:any-value")
    results = [t.apply(loose, ctx, point, "vector" if k < body else "tail") for k in range(length)]
    claim = ForAll("equal elements give equal results", t.all_of(*(t.same(results[0], y) for y in results)))
    mixed = 0 < body < length
    assert decide(claim, Options(timeout=60)).name == ("refuted" if mixed else "proved")


def select(a: t.Term, b: t.Term) -> t.Term:
    return t.ite(t.lt(b, a), a, b)


def propagate(a: t.Term, b: t.Term) -> t.Term:
    return t.ite(t.is_nan(a), a, t.ite(t.is_nan(b), b, select(a, b)))


def test_the_greatest_element_beside_nan() -> None:
    """max by comparing and selecting gives 2 or NaN for {2, NaN}, by the order; a max that hands on NaN does not."""
    fmt = float32
    two, nan = t.const(read("2")), t.const(read("nan"))
    assert t.evaluate(select(two, nan), {}).is_nan and str(t.evaluate(select(nan, two), {})) == "2.0"
    a, b = t.var("a", fmt), t.var("b", fmt)
    for maximum, expected in ((select, "refuted"), (propagate, "proved")):
        invariant = t.any_of(t.same(maximum(a, b), maximum(b, a)), t.eq(a, b))  # the two zeros are equal
        verdict = decide(ForAll("the order of two elements does not matter", invariant), Options(timeout=60))
        assert verdict.name == expected
    some = t.implies(t.all_of(t.negation(t.is_nan(a)), t.negation(t.is_nan(b))), invariant)
    assert decide(ForAll("without NaN", some), Options(timeout=60)).name == "proved"
