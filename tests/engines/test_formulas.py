"""∀ claims over terms in formats of 4 to 6 bits: exhaustion, search and solvers agree with the reference evaluation."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.claims import ForAll
from fpsmt.engines import Options, decide
from fpsmt.errors import UsageError
from fpsmt.floats import (
    Context,
    Float,
    Mode,
    Overflow,
    Subnormals,
    all_values,
    context,
    float4_e2m1fn,
    float6_e2m3fn,
    float16,
    float32,
    float64,
    ieee,
    p3109,
    zero,
)
from fpsmt.kernel import Proved, Refuted, Unknown
from fpsmt.kernel.rules.formulas import points
from fpsmt.terms.terms import BOOL, BitsSort, ChoiceSort, FloatSort
from tests.terms.generators import conditions

CONTEXTS = [
    context(ieee(2, 2)),
    Context(ieee(2, 3), Mode.RTP, Overflow.INFINITY, Subnormals.GRADUAL),
    Context(ieee(3, 2), Mode.RTN, Overflow.NAN, Subnormals.FLUSH),
    Context(p3109(5, 2), Mode.RNA, Overflow.SATURATE, Subnormals.FLUSH_INPUTS),
    context(float4_e2m1fn, overflow="saturate"),
    Context(float6_e2m3fn, Mode.RTZ, Overflow.SATURATE, Subnormals.FLUSH_OUTPUTS),
]
MOST = 1500  #: assignments tried one by one


def truth(condition: t.Term) -> bool | None:
    """Is it true for every assignment?  None when it has no value for some."""
    names = t.variables(condition)
    try:
        return all(
            t.evaluate(condition, dict(zip([v.data for v in names], values)))
            for values in itertools.product(*(list(every(v.sort)) for v in names))
        )
    except UsageError:
        return None


def every(sort: t.Sort):
    if isinstance(sort, FloatSort):
        return all_values(sort.format)
    if isinstance(sort, BitsSort):
        return range(1 << sort.width)
    return range(sort.size) if isinstance(sort, ChoiceSort) else (False, True)


def verdicts(claim: ForAll, engines: list[str]) -> dict[str, str]:
    """What each engine says alone; refutations are replayed by the kernel."""
    found = {}
    for name in engines:
        verdict = decide(claim, Options(timeout=60, jobs=1, solvers=["z3"]), only=name)
        found[name] = verdict.name
        assert isinstance(verdict, Proved | Refuted | Unknown)
    return found


@given(conditions(CONTEXTS, 4))
@settings(max_examples=120)
def test_exhaustion_and_search_against_the_reference(condition: t.Term) -> None:
    if points(condition) > MOST:
        return
    expected = truth(condition)
    found = verdicts(ForAll("random", condition), ["exhaust", "search"])
    if expected is None:
        assert found["exhaust"] != "proved"
    else:
        assert found["exhaust"] == ("proved" if expected else "refuted")
    assert found["search"] in (("unknown",) if expected else ("unknown", "refuted"))


@given(conditions(CONTEXTS, 3))
@settings(max_examples=20)
def test_solvers_against_exhaustion(condition: t.Term) -> None:
    claim = ForAll("random", condition)
    if points(condition) > 1 << 16:
        return
    found = verdicts(claim, ["exhaust", "solve"])
    if found["exhaust"] == "unknown":
        assert found["solve"] != "proved"
    else:
        assert found["solve"] in (found["exhaust"], "unknown")


@given(st.sampled_from([float16, float32, float64, ieee(15, 113)]), st.integers(1, 100))
@settings(max_examples=10)
def test_search_in_wide_sorts(fmt, width: int) -> None:
    """Sampling neither fails on a sort nor proves anything."""
    x, word, flag = t.var("x", fmt), t.var("w", BitsSort(width)), t.var("b", BOOL)
    pick = t.var("c", ChoiceSort(1 << 32))
    whole = t.any_of(t.same(x, x), t.bits_less(word, word), t.choice_is(pick, 5), flag)
    verdict = decide(ForAll("", whole), only="search")
    assert verdict.name == "unknown"
    if fmt.bits <= 64:
        found = decide(ForAll("", t.negation(t.same(x, x))), only="search")
        assert isinstance(found, Refuted)


def test_the_loop_keeps_reasons() -> None:
    x, y, z = (t.var(name, float32) for name in "xyz")
    ctx = context(float32)
    hard = t.same(t.fma(ctx, x, y, z), t.fma(ctx, y, x, z))
    verdict = decide(ForAll("", t.any_of(t.negation(hard), t.is_nan(x), hard)), Options(solvers=[]))
    assert isinstance(verdict, Unknown)
    assert [reason.partition(":")[0] for reason in verdict.reason.split("; ")][:2] == ["exhaust", "search"]
    assert "too many to exhaust quickly" in verdict.reason
    assert decide(ForAll("", hard), only="no such engine").name == "unknown"
    none = decide(ForAll("", hard), Options(timeout=1e-9))
    assert isinstance(none, Unknown) and "no time left" in none.reason


def test_inexact_implementations_are_not_one_function() -> None:
    from fpsmt.functions import implementation_named

    fmt = ieee(2, 3)
    ctx, x = context(fmt), t.var("x", fmt)
    loose = t.apply(implementation_named("tanh:floats=1"), ctx, x)
    exact = t.apply(implementation_named("tanh"), ctx, x)
    claim = ForAll("one float off", t.same(loose, exact))
    assert decide(claim, only="exhaust").name == "unknown"
    assert decide(claim, only="search").name == "unknown"
    verdict = decide(claim)
    assert isinstance(verdict, Refuted) and verdict.counterexample["outputs"]
    within = ForAll("finite", t.implies(t.is_finite(x), t.is_finite(loose)))
    assert decide(within).name == "proved"


def test_a_contract_that_excludes_the_rounded_value() -> None:
    """A clamp to [−½, ½]: where no output is said, the nearest allowed one is taken."""
    from fpsmt.functions import implementation_named

    fmt = ieee(3, 3)
    ctx, x = context(fmt), t.var("x", fmt)
    clamped = t.apply(implementation_named("tanh:range=-1/2..1/2"), ctx, x)
    half = t.const(next(v for v in all_values(fmt, finite=True) if v.fraction * 2 == 1))
    assert t.evaluate(clamped, {"x": next(v for v in all_values(fmt) if v.is_infinite and not v.negative)}) == half.data
    claim = ForAll("at most ½", t.any_of(t.is_nan(x), t.le(clamped, half)))
    assert decide(claim, Options(timeout=60)).name == "proved"
    assert decide(ForAll("below ½", t.any_of(t.is_nan(x), t.lt(clamped, half)))).name == "refuted"


def test_monotone_implementations() -> None:
    """Outputs that fall are refused in a replay; a claim that needs them is not refuted."""
    from fpsmt import kernel
    from fpsmt.claims.formulas import assignment_to_json
    from fpsmt.functions import implementation_named
    from fpsmt.terms import Assignment

    fmt = float16
    ctx, x, y = context(fmt), t.var("x", fmt), t.var("y", fmt)
    use = implementation_named("sigmoid:ulps=3:monotone")
    at_x, at_y = t.apply(use, ctx, x), t.apply(use, ctx, y)
    claim = ForAll("keeps order", t.implies(t.lt(x, y), t.le(at_x, at_y)))
    one = Float(fmt, 0x3C00)
    two = one.next_up
    outputs = {(use.text, ctx, "", one): use.allowed(ctx, one)[1], (use.text, ctx, "", two): use.allowed(ctx, two)[0]}
    falling = assignment_to_json(Assignment({"x": one, "y": two}, outputs))
    try:
        kernel.refute(claim, falling)
    except UsageError as error:
        assert "promises to be monotone" in str(error)
    else:
        raise AssertionError("outputs that fall were accepted")
    flat = implementation_named("relu:floats=2:monotone")  # the query says nothing across the flat piece
    low, high = t.apply(flat, ctx, x), t.apply(flat, ctx, y)
    across = t.all_of(t.lt(x, t.const(zero(fmt))), t.lt(t.const(zero(fmt)), y))
    verdict = decide(ForAll("keeps order", t.implies(across, t.le(low, high))), Options(timeout=60))
    assert isinstance(verdict, Unknown) and "promises to be monotone" in verdict.reason
    free = implementation_named("sigmoid:ulps=3")
    loose = ForAll("keeps order", t.implies(t.lt(x, y), t.le(t.apply(free, ctx, x), t.apply(free, ctx, y))))
    chosen = {(free.text, ctx, "", point): end for (_, _, _, point), end in outputs.items()}
    assert kernel.refute(loose, assignment_to_json(Assignment({"x": one, "y": two}, chosen))).name == "refuted"
