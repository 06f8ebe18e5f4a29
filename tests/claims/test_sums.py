"""Outcome sets of sums against every schedule run one by one; claims about them and their replays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import SumInvariant, SumOutcomes, claim_from_json
from fpsmt.engines import decide
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, Mode, Overflow, Subnormals, context, exactly, float16, float32, ieee
from fpsmt.kernel import Refuted, check_verdict, verdict_to_json
from fpsmt.networks import Sum, execution
from fpsmt.networks.outcomes import MAX_SPLITS, MOST_COMPILED_SPLITS, reachable
from fpsmt.networks.trees import tree_from_json
from tests.strategies import floats

TINY = [
    context(ieee(3, 3)),
    Context(ieee(2, 3), Mode.RTP, Overflow.INFINITY, Subnormals.GRADUAL),
    Context(ieee(3, 4), Mode.RTZ, Overflow.SATURATE, Subnormals.FLUSH),
]
ORDERS = [
    "any", "sequential", "contiguous", "left-to-right", "right-to-left", "pairwise", "lanes:2", "blocks:2", "depth:2",
    "depth:3", "contiguous|sequential", "right-to-left|depth:3", "((0+1)+2)",
]  # fmt: skip


@st.composite
def problems(draw: st.DrawFn) -> Sum:
    ctx = draw(st.sampled_from(TINY))
    order = draw(st.sampled_from(ORDERS))
    n = 3 if order.startswith("((") else draw(st.integers(1, 4))
    pool = draw(st.lists(floats(ctx.format), min_size=1, max_size=3))
    value = st.sampled_from(pool)
    dot = draw(st.booleans())
    terms: Any = tuple(draw(st.tuples(value, value)) if dot else draw(value) for _ in range(n))
    accumulator = draw(st.sampled_from([None, None, context(ieee(3, 5)), context(ieee(4, 3))]))
    products = draw(st.sampled_from([None, None, "exact", context(ieee(3, 3))])) if dot else None
    bias = draw(st.one_of(st.none(), value))
    how = execution(order, draw(st.sampled_from(["never", "always", "any"])), accumulator, products,
                    draw(st.sampled_from(["last", "first", "any"])))  # fmt: skip
    return Sum(ctx, terms, bias, how)


@given(problems())
@settings(max_examples=400)
def test_every_schedule(problem: Sum) -> None:
    """The set from subtrees is the set over all schedules, and each listed tree is a schedule with its result."""
    try:
        trees = list(problem.execution.schedules(problem.n, problem.bias is not None, problem.is_dot))
    except UsageError:
        with pytest.raises(UsageError):
            reachable(problem)
        return
    expected = {problem.evaluate(tree) for tree in trees}
    try:
        found = reachable(problem)
    except Unsupported as reason:
        pytest.skip(str(reason))
    assert set(found) == expected
    for value, tree in found.items():
        assert problem.allows(tree) and problem.evaluate(tree) == value
    order = [x.ordinal for x in found if not x.is_nan]
    assert order == sorted(order)


@given(problems(), st.data())
@settings(max_examples=60)
def test_verdicts(problem: Sum, data: st.DataObject) -> None:
    try:
        outcomes = list(reachable(problem))
    except (UsageError, Unsupported):
        return
    invariant = decide(SumInvariant(problem))
    assert invariant.name == ("proved" if len(outcomes) == 1 else "refuted")
    wrong = data.draw(st.lists(floats(problem.context.format), max_size=2))
    chosen = data.draw(st.lists(st.sampled_from([*outcomes, *wrong]), max_size=4, unique=True))
    for claimed in (outcomes, outcomes[1:], [*outcomes, *wrong], chosen):
        claim = SumOutcomes(problem, tuple(claimed))
        verdict = decide(claim)
        assert verdict.name == ("proved" if set(claimed) == set(outcomes) else "refuted")
        assert check_verdict(json.loads(json.dumps(verdict_to_json(verdict)))).name == verdict.name
        assert claim_from_json(claim.to_json()) == claim


def half(*values: float) -> tuple[Float, ...]:
    return tuple(exactly(float16, v) for v in values)


def test_special_outcomes_are_told_apart() -> None:
    """+0, −0, infinities and NaN are outcomes of their own; NaN is one."""
    zeros = Sum(context("float16"), half(0.0, -0.0))
    assert [str(v) for v in reachable(zeros)] == ["0.0"]
    assert decide(SumOutcomes(zeros, half(-0.0))).name == "refuted"
    mixed = Sum(context("float16"), half(65504, 65504, -65504, -65504))
    assert [str(v) for v in reachable(mixed)] == ["-inf", "0.0", "inf", "nan"]
    infinite = Sum(context("float16"), (Float(float16, 0x7C00), Float(float16, 0xFC00), *half(1)))
    assert [str(v) for v in reachable(infinite)] == ["nan"]
    assert decide(SumInvariant(infinite)).name == "proved"


def test_terms_of_another_format_are_cast_first() -> None:
    terms = (exactly(float32, 1 + 2**-20),)
    assert [v.format.name for v in reachable(Sum(context("float16"), terms * 2))] == ["float16"]
    assert [str(v) for v in reachable(Sum(context("float16"), terms * 2))] == ["2.0"]


@pytest.mark.parametrize(
    ("order", "n", "distinct"), [("any", 40, True), ("depth:6", 40, True), ("sequential", 40, True),
                                 ("contiguous", 1000, False), ("left-to-right|any", 30, True)],
)  # fmt: skip
def test_what_is_too_large_is_declined_at_once(order: str, n: int, distinct: bool) -> None:
    terms = half(*(k if distinct else 1 for k in range(1, n + 1)))
    problem = Sum(context("float16"), terms, None, execution(order))
    with pytest.raises(Unsupported, match=f"at most ({MAX_SPLITS}|{MOST_COMPILED_SPLITS}) are tried"):
        reachable(problem)


def test_what_is_just_small_enough() -> None:
    """Equal terms are one kind: 60 ones and 60 halves have 1891² splits; 1000 terms in order have one tree."""
    many = Sum(context("float16"), half(*([1] * 20 + [0.5] * 20)))
    assert [str(v) for v in reachable(many)] == ["30.0"]
    long = Sum(context("float16"), half(*[1] * 1000), None, execution("left-to-right"))
    assert [str(v) for v in reachable(long)] == ["1000.0"]
    folds = Sum(context("float16"), half(*range(1, 13)), None, execution("sequential"))
    assert [str(v) for v in reachable(folds)] == ["78.0"]


NO_TERMS = [(1, 2), (1.0,), (*half(1), half(1, 2)), (half(1),), (half(1, 2, 3),), ((1, 2),)]


@pytest.mark.parametrize("terms", NO_TERMS, ids=str)
def test_terms_that_are_none(terms: Any) -> None:
    with pytest.raises(UsageError, match="the terms of a sum are Floats"):
        Sum(context("float16"), terms)
    with pytest.raises(UsageError, match="is not a Float"):
        Sum(context("float16"), half(1), 2)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least one term"):
        Sum(context("float16"), ())


def test_too_many_additions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpsmt.networks.outcomes.MAX_STEPS", 10)
    monkeypatch.setattr("fpsmt.networks.outcome_sets.MOST_ADDITIONS", 20)
    compiled = Sum(context("float16"), half(1, 2, 4, 8, 16, 32, 3))
    with pytest.raises(Unsupported, match="needs more than 20 additions"):
        reachable(compiled)
    problem = Sum(context("float16"), half(1, 2, 4, 8, 16, 32, 3), None, execution("depth:6"))
    with pytest.raises(Unsupported, match="needs more than 10 additions for 7 terms"):
        reachable(problem)
    verdict = decide(SumInvariant(problem))
    assert verdict.name == "unknown" and "needs more than 10 additions" in str(verdict)


def test_replays_do_not_trust_what_they_can_compute() -> None:
    problem = Sum(context("float16"), half(2048, 1, 1))
    verdict = decide(SumInvariant(problem))
    assert isinstance(verdict, Refuted)
    first, second = (tree_from_json(s, 3) for s in verdict.counterexample["schedules"])
    assert problem.evaluate(first) != problem.evaluate(second)
    claim = SumInvariant(Sum(context("float16"), half(2048, 1, 1), None, execution("contiguous")))
    with pytest.raises(UsageError, match="is not a schedule"):
        claim.replay({"schedules": [[[0, 2], 1], [0, [1, 2]]]})


@pytest.mark.parametrize(
    "change",
    [
        {"problem": None}, {"outcomes": None}, {"outcomes": [["float16"]]}, {"outcomes": [["mine", "0x0p0"]]},
        {"outcomes": [["float16", "0x1.0001p0"]]}, {"outcomes": [["float16", 1]]}, {"kind": "mine"}, {"kind": []},
        {"problem": {}}, {"outcomes": "ab"}, {"outcomes": [["float16", "1/0"]]},
        {"outcomes": [["float16", "9" * 5000]]},
    ],
    ids=lambda c: str(c)[:50],
)  # fmt: skip
def test_what_is_no_claim(change: dict[str, Any]) -> None:
    data = SumOutcomes(Sum(context("float16"), half(1, 2)), half(3)).to_json()
    assert claim_from_json(data).kind == "sum-outcomes"
    with pytest.raises(UsageError):
        claim_from_json({**data, **change})


@pytest.mark.parametrize("part", ["context", "products", "terms", "bias", "execution"])
@pytest.mark.parametrize("junk", [None, 3, "x", [], [[]], {}, {"x": 1}, [["float16", "0x1p+0"]] * 2], ids=str)
def test_what_is_no_sum(part: str, junk: Any) -> None:
    """An error, or a claim that is again what its JSON says."""
    data = SumOutcomes(Sum(context("float16"), half(1, 2)), half(3)).to_json()
    data["problem"][part] = junk
    try:
        claim = claim_from_json(data)
    except UsageError:
        return
    assert claim_from_json(claim.to_json()) == claim
    assert claim.to_json()["problem"][part] == junk or (part, junk) in [("execution", {})]
