"""Rules for ∀ claims over terms: what each proves, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from fpsmt import kernel
from fpsmt.claims import (
    ForAll,
)
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats import (
    context,
    exactly,
    float4_e2m1fn,
    float16,
    float32,
    ieee,
    pow2,
)
from fpsmt.functions import implementation_named
from fpsmt.kernel import Proved, check_verdict, verdict_to_json
from fpsmt.kernel.rules.formulas import case_claims, points, sort_size
from fpsmt.terms import (
    BOOL,
    FALSE,
    TRUE,
    BitsSort,
    ChoiceSort,
    Term,
    add,
    all_of,
    any_of,
    apply,
    bits,
    bits_add,
    bits_less,
    choice_is,
    const,
    div,
    eq,
    extract,
    from_bits,
    implies,
    is_finite,
    is_nan,
    is_zero,
    le,
    lt,
    mul,
    neg,
    negation,
    same,
    term_to_json,
    var,
)
from tests.kernel.applying import left_open, proved, refuted

TINY = ieee(2, 3)
CTX = context(TINY)
X, Y = var("x", TINY), var("y", TINY)
COMMUTES = ForAll("x⊕y ≡ y⊕x", same(add(CTX, X, Y), add(CTX, Y, X)))




# -- exhausted --------------------------------------------------------------------------------------------


def test_exhausted() -> None:
    assert proved("exhausted", COMMUTES).evidence.found == {"assignments": 1 << 10}
    found = refuted("exhausted", ForAll("x⊕y finite", implies(all_of(is_finite(X), is_finite(Y)), is_finite(
        add(CTX, X, Y)))))  # fmt: skip
    assert found.replay.violates and found.replay.lines[-1] == "the condition is false"
    assert proved("exhausted", ForAll("true", TRUE)).evidence.found == {"assignments": 1}
    assert refuted("exhausted", ForAll("false", FALSE)).counterexample == {"values": {}, "outputs": []}


def test_exhausted_enumerates_every_sort() -> None:
    flag, pick, word = var("flag", BOOL), var("pick", ChoiceSort(3)), var("word", BitsSort(5))
    assert [sort_size(v.sort) for v in (flag, pick, word, X)] == [2, 3, 32, 32]
    whole = any_of(flag, negation(flag))
    assert proved("exhausted", ForAll("", any_of(*(choice_is(pick, k) for k in range(3))))).evidence.found == {
        "assignments": 3
    }
    assert proved("exhausted", ForAll("", whole)).evidence.found == {"assignments": 2}
    for last in (0, 1, 31):
        claim = ForAll("", negation(all_of(flag, choice_is(pick, 2), same(word, bits(5, last)))))
        found = refuted("exhausted", claim).counterexample["values"]
        assert found == {"flag": True, "pick": 2, "word": last}


def test_exhausted_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpsmt.kernel.rules.formulas.BLOCK", 100)
    proved("exhausted", COMMUTES)
    word = var("word", BitsSort(10))
    for last in (0, 99, 100, 1000, 1023):
        found = refuted("exhausted", ForAll("", negation(same(word, bits(10, last)))))
        assert found.counterexample["values"] == {"word": last}


def test_exhausted_declines() -> None:
    big = [var(name, float16) for name in "abc"]
    left_open("exhausted", ForAll("", any_of(*map(is_nan, big))), why="too many to exhaust")
    assert points(any_of(*map(is_nan, big))) == 1 << 48
    loose = apply(implementation_named("tanh:floats=1"), CTX, X)
    left_open("exhausted", ForAll("", same(loose, loose)), why="not one function")
    rounded = apply(implementation_named("tanh"), CTX, X)
    proved("exhausted", ForAll("", any_of(is_nan(X), le(rounded, const(exactly(TINY, 1))))))
    wide = var("wide", ieee(15, 3))
    left_open("exhausted", ForAll("", same(wide, wide)), why="cannot be held in arrays")
    without_nan = context(float4_e2m1fn, overflow="saturate")
    a = var("a", float4_e2m1fn)
    quotient = div(without_nan, a, a)
    left_open("exhausted", ForAll("", same(quotient, quotient)), why="has no value somewhere")


def test_one_name_with_two_sorts_is_no_claim() -> None:
    """The values of the wider sort would not all be tried."""
    word, pick = var("v", BitsSort(5)), var("v", ChoiceSort(2))
    with pytest.raises(UsageError, match="has two sorts"):
        ForAll("", any_of(bits_less(word, bits(5, 2)), choice_is(pick, 5 % 2)))


# -- solver -----------------------------------------------------------------------------------------------


def test_solver() -> None:
    x, y = var("x", float32), var("y", float32)
    ctx = context(float32)
    holds = proved("solver", ForAll("", same(add(ctx, x, y), add(ctx, y, x))))
    assert len(holds.evidence.trusted) == 2 and holds.evidence.trusted[1].endswith("encoding")
    refuted("solver", ForAll("", is_finite(add(ctx, x, y))))
    with pytest.raises(UsageError, match="unknown solver 'mine'"):
        kernel.apply("solver", COMMUTES, {"solvers": ["mine"]})
    left_open("solver", COMMUTES, {"solvers": []})


def test_solver_refutes_with_an_output_of_an_inexact_implementation() -> None:
    ctx = context(float32)
    y = apply(implementation_named("tanh:ulps=2"), ctx, var("x", float32))
    claim = ForAll("", any_of(negation(same(var("x", float32), const(exactly(float32, 1)))), lt(y, const(
        implementation_named("tanh:ulps=2").allowed(ctx, exactly(float32, 1))[1]))))  # fmt: skip
    found = refuted("solver", claim)
    assert len(found.counterexample["outputs"]) == 1
    data = verdict_to_json(found)
    data["counterexample"]["outputs"][0][-1][1] = exactly(float32, 2).bits
    with pytest.raises(UsageError, match="does not allow"):
        check_verdict(data)


@pytest.mark.parametrize(
    "data",
    [
        {"timeout": 0}, {"timeout": -1}, {"timeout": "60"}, {"timeout": True}, {"timeout": None}, {"memory_mb": 0},
        {"memory_mb": 1.5}, {"jobs": "2"}, {"witnesses": 0}, {"witnesses": -1}, {"encoder": "mine"}, {"encoder": []},
        {"solvers": "z3"}, {"solvers": [3]}, {"solvers": {"z3": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_solver_effort_is_checked(data: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        kernel.apply("solver", COMMUTES, data)


# -- exact integers ---------------------------------------------------------------------------------------


def test_exact_integers() -> None:
    ctx, a, b = context(float16), var("a", BitsSort(4)), var("b", BitsSort(4))
    one = const(exactly(float16, pow2(-24)))
    low, high = (from_bits(float16, bits_add(extend(v), bits(16, 1))) for v in (a, b))
    total = add(ctx, low, high)
    proved("exact integers", ForAll("a sum is above its parts", all_of(lt(low, total), le(one, high))))
    left_open("exact integers", ForAll("", lt(low, high)), why="sat")
    left_open("exact integers", ForAll("", le(mul(ctx, low, high), total)), why="integers do not do")
    with pytest.raises(UsageError, match="timeout"):
        kernel.apply("exact integers", ForAll("", lt(low, total)), {"timeout": "soon"})


def extend(v: Term) -> Term:
    from fpsmt.terms import concat

    return concat(bits(12, 0), v)


# -- consequence ------------------------------------------------------------------------------------------


def test_consequence() -> None:
    z = add(CTX, X, Y)
    never = proved("exhausted", ForAll("x⊕y is not 3.25", implies(is_zero(X), same(add(CTX, Y, X), add(CTX, X, Y)))))
    goal = ForAll("", implies(is_zero(z), same(add(CTX, z, z), add(CTX, z, z))))
    instance = {"instances": [[["x", term_to_json(z)], ["y", term_to_json(z)]]], "abstract": []}
    proved("consequence", goal, instance, [never])
    hidden = {"instances": [], "abstract": [term_to_json(z)]}
    proved("consequence", ForAll("", any_of(is_nan(z), eq(z, z))), hidden)


def test_consequence_of_a_false_statement_is_not_reached() -> None:
    goal = ForAll("x⊕x is finite", is_finite(add(CTX, X, X)))
    left_open("consequence", goal, {"instances": [], "abstract": []}, why="does not follow")
    hidden = {"instances": [], "abstract": [term_to_json(add(CTX, X, X))]}
    left_open("consequence", goal, hidden, why="does not follow")
    premise = proved("exhausted", ForAll("", same(X, X)))
    left_open("consequence", goal, {"instances": [[]], "abstract": []}, [premise], why="does not follow")


def test_consequence_hides_more_than_it_may() -> None:
    """Hiding makes the implication harder, never easier: terms that do not occur change nothing."""
    goal = ForAll("", any_of(is_nan(X), eq(X, X)))
    proved("consequence", goal, {"instances": [], "abstract": [term_to_json(mul(CTX, Y, Y))]})
    left_open("consequence", ForAll("", eq(X, X)), {"instances": [], "abstract": [term_to_json(X)]})
    left_open("consequence", goal, {"instances": [], "abstract": [term_to_json(is_nan(X))]}, why="does not follow")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"instances": [], "abstract": []}, EvidenceError),
        ({"instances": [[], []], "abstract": []}, EvidenceError),
        ({"instances": [[["x", term_to_json(TRUE)]]], "abstract": []}, UsageError),
        ({"instances": [[["x", []]]], "abstract": []}, UsageError),
    ],
)
def test_consequence_with_wrong_instances(data: dict[str, Any], error: type[Exception]) -> None:
    premise = proved("exhausted", ForAll("", same(X, X)))
    with pytest.raises(error):
        kernel.apply("consequence", ForAll("", same(Y, Y)), data, [premise])


def test_consequence_keeps_variables_of_two_claims_apart_only_by_name() -> None:
    """A premise speaks about all values of its variables, so one left as it is may be any variable of that name."""
    premise = proved("exhausted", ForAll("", any_of(is_nan(X), eq(X, X))))
    proved("consequence", ForAll("", any_of(is_nan(X), eq(X, X))), {"instances": [[]], "abstract": []}, [premise])
    other = var("x", BitsSort(3))
    claim = ForAll("", bits_less(other, bits(3, 7)))
    from fpsmt.errors import Unsupported

    with pytest.raises(Unsupported, match="two sorts"):
        kernel.apply("consequence", claim, {"instances": [[]], "abstract": []}, [premise])


# -- cases, conjunction, congruence -----------------------------------------------------------------------


def by_cases(claim: ForAll, cases: list[Term]) -> tuple[dict[str, Any], list[Proved]]:
    return {"cases": [term_to_json(c) for c in cases]}, [proved("exhausted", c) for c in case_claims(claim, cases)]


def test_cases() -> None:
    data, premises = by_cases(COMMUTES, [is_nan(X), is_finite(X), negation(any_of(is_nan(X), is_finite(X)))])
    proved("cases", COMMUTES, data, premises)
    for wrong in (premises[::-1], premises[:-1], [*premises, premises[0]], [premises[1], premises[0], *premises[2:]]):
        with pytest.raises(EvidenceError, match="not the cases and their completeness"):
            kernel.apply("cases", COMMUTES, data, wrong)
    with pytest.raises(EvidenceError):
        kernel.apply("cases", COMMUTES, {"cases": data["cases"][:2]}, premises)
    with pytest.raises(EvidenceError):
        kernel.apply("cases", ForAll("another", COMMUTES.condition), data, premises)


def test_cases_that_do_not_cover() -> None:
    claim = ForAll("x is no NaN", negation(is_nan(X)))
    cases = [is_finite(X)]
    assert kernel.apply("exhausted", case_claims(claim, cases)[-1]).name == "refuted"
    premises = [proved("exhausted", case_claims(claim, cases)[0])]
    complete = proved("exhausted", ForAll("the cases are complete", TRUE))
    with pytest.raises(EvidenceError):
        kernel.apply("cases", claim, {"cases": [term_to_json(c) for c in cases]}, [*premises, complete])
    with pytest.raises(EvidenceError):
        kernel.apply("cases", claim, {"cases": []}, [])


def test_conjunction() -> None:
    one, two = ForAll("1", same(X, X)), ForAll("2", any_of(is_nan(Y), eq(Y, Y)))
    premises = [proved("exhausted", c) for c in (one, two)]
    proved("conjunction", ForAll("both", all_of(one.condition, two.condition)), {}, premises)
    for condition in (all_of(two.condition, one.condition), all_of(one.condition, is_nan(X)), is_nan(X), FALSE):
        with pytest.raises(EvidenceError, match="not the parts"):
            kernel.apply("conjunction", ForAll("both", condition), {}, premises)
    proved("conjunction", ForAll("nothing", TRUE), {}, [])
    with pytest.raises(EvidenceError, match="not the parts"):
        kernel.apply("conjunction", ForAll("nothing", is_nan(X)), {}, [])


def congruence_data(where: Term, old: Term, new: Term, root: Term) -> dict[str, Any]:
    return {name: term_to_json(t) for name, t in {"where": where, "old": old, "new": new, "root": root}.items()}


def test_congruence() -> None:
    old, new, where = add(CTX, X, X), mul(CTX, const(exactly(TINY, 2)), X), is_finite(X)
    root, moved = neg(add(CTX, old, Y)), neg(add(CTX, new, Y))
    premise = proved("exhausted", ForAll("", implies(where, same(old, new))))
    goal = ForAll("", implies(where, same(root, moved)))
    data = congruence_data(where, old, new, root)
    proved("congruence", goal, data, [premise])
    for condition in (same(root, moved), implies(where, same(root, add(CTX, new, Y))), implies(where, is_nan(Y))):
        with pytest.raises(EvidenceError, match="not the equality that follows"):
            kernel.apply("congruence", ForAll("", condition), data, [premise])
    for wrong in ([], [premise, premise], [proved("exhausted", ForAll("", same(X, X)))]):
        with pytest.raises(EvidenceError, match="not the equality that is used"):
            kernel.apply("congruence", goal, data, wrong)
    with pytest.raises(EvidenceError):
        kernel.apply("congruence", goal, congruence_data(where, new, old, root), [premise])
    weaker = proved("exhausted", ForAll("", implies(where, eq(old, new))))
    with pytest.raises(EvidenceError, match="not the equality that is used"):
        kernel.apply("congruence", goal, data, [weaker])


def test_congruence_never_speaks_of_another_place() -> None:
    """The zeros are equal and not the same: from eq nothing follows about 1/x."""
    zero_, minus = const(exactly(TINY, 0)), const(exactly(TINY, -0.0))
    assert kernel.apply("exhausted", ForAll("", same(zero_, minus))).name == "refuted"
    premise = proved("exhausted", ForAll("", eq(zero_, minus)))
    root = div(CTX, const(exactly(TINY, 1)), zero_)
    goal = ForAll("", same(root, div(CTX, const(exactly(TINY, 1)), minus)))
    with pytest.raises(EvidenceError):
        kernel.apply("congruence", goal, congruence_data(TRUE, zero_, minus, root), [premise])


def test_bits_of_a_premise_are_bits_of_its_instance() -> None:
    """Instances of bit-vector variables by extracted parts, as the indicator proofs use them."""
    a, word = var("a", BitsSort(3)), var("word", BitsSort(5))
    premise = proved("exhausted", ForAll("", negation(bits_less(bits(3, 7), a))))
    goal = ForAll("", negation(bits_less(bits(3, 7), extract(word, 4, 2))))
    data = {"instances": [[["a", term_to_json(extract(word, 4, 2))]]], "abstract": []}
    proved("consequence", goal, data, [premise])
    with pytest.raises(UsageError, match="cannot be replaced"):
        data = {"instances": [[["a", term_to_json(word)]]], "abstract": []}
        kernel.apply("consequence", goal, data, [premise])
